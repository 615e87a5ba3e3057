"""Label images are drawn beside a run: no loop of napari waits for it, or meets it."""

import threading

import numpy as np
import pytest
from napari.layers import Labels
from napari.utils.colormaps import _accelerated_cmap as loops
from numba.core.compiler_lock import global_compiler_lock

from napari_embedding_game.core.threads import PARALLEL
from napari_embedding_game.ui.label_loops import mend_label_loops

LABELS = np.arange(12, dtype=np.int32).reshape(3, 4)


@pytest.fixture
def entered(monkeypatch):
    """Tells each time that one of napari's parallel loops is entered."""
    mend_label_loops()
    entered = []
    for name in (
        "_zero_preserving_modulo_inner_loop",
        "_labels_raw_to_texture_direct_inner_loop",
    ):
        loop = getattr(loops, name)
        monkeypatch.setattr(
            loops, name, lambda *a, _loop=loop, **k: entered.append(1) or _loop(*a, **k)
        )
    return entered


def drawn(colormap=None):
    """Return what napari makes of the labels."""
    return np.array(Labels(LABELS, colormap=colormap)._slice.image.view)


@pytest.fixture(params=[None, {1: "red", 2: "blue", None: "white"}])
def colormap(request):
    return request.param


def test_napari_loops_while_no_run_does(entered, colormap):
    drawn(colormap)
    assert entered
    assert PARALLEL.acquire(blocking=False)  # given back
    PARALLEL.release()


def test_no_loop_of_napari_meets_one_of_a_run(entered, colormap):
    wanted = drawn(colormap)
    entered.clear()
    with PARALLEL:
        np.testing.assert_array_equal(drawn(colormap), wanted)
    assert not entered


def test_the_window_does_not_wait_for_a_compiler(entered, colormap):
    wanted = drawn(colormap)
    entered.clear()
    is_held, is_over = threading.Event(), threading.Event()

    def compile_for_long():
        with global_compiler_lock:
            is_held.set()
            is_over.wait(60)

    other = threading.Thread(target=compile_for_long)
    other.start()
    is_held.wait(60)
    try:
        np.testing.assert_array_equal(drawn(colormap), wanted)
        assert not entered
    finally:
        is_over.set()
        other.join()
    assert PARALLEL.acquire(blocking=False)
    PARALLEL.release()
