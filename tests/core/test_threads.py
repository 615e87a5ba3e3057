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
    monkeypatch.setattr(threads, "count_cores", lambda: cores)
    with threads.limit_threads(n_jobs):
        assert threads.count_threads() == n_threads


def test_two_fits_in_threads_are_each_as_alone():
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("two_fits.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_a_thread_that_first_uses_torch_during_a_frame_keeps_its_threads():
    before, seen = torch.get_num_threads(), []

    def in_new_thread(work):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def count():
        torch.zeros(3).sum()
        seen.append(torch.get_num_threads())

    def compute():
        with threads.use_one_torch_thread():
            count()
            in_new_thread(count)
        count()

    torch.set_num_threads(3)
    try:
        in_new_thread(compute)
        in_new_thread(count)
        assert seen == [1, 3, 3, 3]
    finally:
        torch.set_num_threads(before)
