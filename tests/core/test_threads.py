"""Work that is shared among threads: all of it, once, with the same bits."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from napari_embedding_game.core import threads


@pytest.mark.parametrize(
    ("cores", "n_jobs", "n_threads"),
    [
        (1, None, 1),
        (2, None, 2),
        (3, None, 2),
        (8, None, 7),
        (8, -1, 8),
        (8, -2, 7),
        (2, -5, 1),
        (8, 3, 3),
        (8, 0, 1),
    ],
)
def test_thread_counts(monkeypatch, cores, n_jobs, n_threads):
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    with threads.limited(n_jobs):
        assert threads.n_threads() == n_threads


def test_two_fits_in_threads_are_each_as_alone():
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("two_fits.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_torch_has_its_threads_again_after_runs_that_overlap():
    before, seen = torch.get_num_threads(), []
    entered, left = threading.Event(), threading.Event()

    def second():
        with threads.one_torch_thread():
            entered.set()
            left.wait(60)

    def new():
        seen.append(torch.get_num_threads())

    torch.set_num_threads(3)
    try:
        other, later = threading.Thread(target=second), threading.Thread(target=new)
        with threads.one_torch_thread():
            other.start()
            entered.wait(60)
        left.set()
        other.join()
        later.start()
        later.join()
        assert seen == [3]
    finally:
        torch.set_num_threads(before)
