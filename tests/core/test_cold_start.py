"""A game is the same whether its loops were just compiled or read from the cache."""

import os
import subprocess
import sys
from pathlib import Path

PLAYER = Path(__file__).with_name("cold_start.py")


def played(cache):
    """What the player prints, with numba's cache in a folder of its own."""
    ran = subprocess.run(
        [sys.executable, PLAYER],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return dict(line.split() for line in ran.stdout.splitlines())


def test_the_first_run_after_installation_is_that_of_all_later_ones(tmp_path):
    cold = played(tmp_path)
    assert list(tmp_path.rglob("*.nbi"))  # else nothing was cached, and nothing asked
    cached = played(tmp_path)
    assert cold == cached
    assert cached["serial"] == cached["shared"]
