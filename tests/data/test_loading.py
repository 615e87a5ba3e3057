import os

import pytest

from napari_embedding_game.data.loading import load


def open_files():
    return {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}")}  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux")
def test_cancelling_at_any_stage_closes_the_file(counts_file):
    n_stages = len(list(load(counts_file)))
    for n in range(1, n_stages + 1):
        stages = load(counts_file)
        for _ in range(n):
            next(stages)
        stages.close()
        assert str(counts_file) not in open_files()
