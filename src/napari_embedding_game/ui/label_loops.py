"""napari's compiled loops over label images, beside the loops of a run.

napari 0.9 brings labels of 32 and 64 bits to the canvas by parallel loops of numba, in
the window's thread, and does not know what else uses numba.

*Two parallel loops at once.*  With numba's own threading layer, "workqueue", which it
takes where it finds neither TBB nor OpenMP, the process ends when a run is in such a
loop meanwhile.

*Two compilers at once.*  While the loops of a run are compiled, at the very first use
of this package, the window would wait until numba's lock is free: for seconds.

In both cases napari's own numpy functions do the same, somewhat slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from napari.utils.colormaps import _accelerated_cmap as loops
from numba.core.compiler_lock import global_compiler_lock

from napari_embedding_game.core.threads import PARALLEL
from napari_embedding_game.ui.vispy_fixes import replace_method

NUMPY_FOR = {
    "_zero_preserving_modulo_loop": "zero_preserving_modulo_numpy",
    "_labels_raw_to_texture_direct_loop": "_labels_raw_to_texture_direct_numpy",
}
"""For each of the loops the function of numpy that does the same."""


def mend_label_loops() -> None:
    """Have no loop wait for a run, or meet one, for all of the process.

    Without the parts of napari that this needs all stays as it was.
    """
    for name, other in NUMPY_FOR.items():
        by_numpy = getattr(loops, other, None)
        owner = None if by_numpy is None else loops
        replace_method(owner, name, lambda loop, by=by_numpy: _free(loop, by), "napari")
    choose = getattr(loops, "set_colormap_backend", None)
    if choose is not None:  # takes up what has been replaced
        choose(loops.COLORMAP_BACKEND)


def _free(loop: Any, by_numpy: Any) -> Any:
    def free(*arguments: Any) -> Any:
        """Loop where nothing else does, and else use numpy."""
        with _to_oneself() as is_free:
            return loop(*arguments) if is_free else by_numpy(*arguments)

    return free


@contextmanager
def _to_oneself() -> Iterator[bool]:
    """Hold numba's parallel loops and its compiler; bring whether both were free."""
    compiler = getattr(global_compiler_lock, "_lock", None)
    with ExitStack() as held:
        for lock in (PARALLEL, compiler):
            if lock is None:
                continue
            if not lock.acquire(blocking=False):
                yield False
                return
            held.callback(lock.release)
        yield True
