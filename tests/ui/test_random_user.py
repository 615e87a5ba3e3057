"""A user who does anything, for a while: ``tests/random_user.py`` with one seed."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "random_user.py"
SEED, N_ACTIONS = 1, 28
"""Some ten seconds; other seeds, and longer walks, are tried by hand."""


def test_nothing_breaks_whatever_a_user_does(tmp_path):
    # a process of its own: what ends one must not end the tests
    done = subprocess.run(
        [sys.executable, SCRIPT, f"--seed={SEED}", f"--actions={N_ACTIONS}"],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
