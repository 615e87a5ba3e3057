import os

import pytest

from napari_embedding_game.data.loading import load


def open_files():
    return {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}")}  # fmt: skip


def test_stages_tell_what_is_done(counts_file):
    texts = [stage.text for stage in load(counts_file, space="X")]
    assert texts == [
        "Opening counts.h5ad",
        "Reading the table of cells (obs)",
        "Reading the table of genes (var)",
        "Reading X",
        "Reading the genes",
        "Checking the numbers",
    ]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux")
def test_cancelling_at_any_stage_closes_the_file(counts_file):
    n_stages = len(list(load(counts_file)))
    for n in range(1, n_stages + 1):
        stages = load(counts_file)
        for _ in range(n):
            next(stages)
        stages.close()
        assert str(counts_file) not in open_files()
