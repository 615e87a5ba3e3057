"""A user who does anything, for a while: ``tests/random_user.py`` with a few seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "random_user.py"
N_ACTIONS = 40


@pytest.mark.parametrize("seed", range(1, 4))
def test_nothing_breaks_whatever_a_user_does(seed, tmp_path):
    # a process of its own: what ends one must not end the tests
    done = subprocess.run(
        [sys.executable, SCRIPT, f"--seed={seed}", f"--actions={N_ACTIONS}"],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
