"""napari-embedding-game: a live, steerable map of single cells, images or texts.

``EmbeddingGame``, ``tl``, the same for AnnData, and ``read``, which reads a file as
AnnData, are loaded when they are first asked for, so that importing the package loads
neither torch nor Qt; ``__version__`` is that of the installed package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import napari_embedding_game.papers.registrations  # noqa: F401  (adds to what can be chosen)

if TYPE_CHECKING:
    from napari_embedding_game import tl
    from napari_embedding_game.core.estimator import EmbeddingGame
    from napari_embedding_game.data.as_anndata import read

    __version__: str

__all__ = ["EmbeddingGame", "__version__", "read", "tl"]


_HOMES = {"EmbeddingGame": ".core.estimator", "read": ".data.as_anndata"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    if name == "tl":
        return import_module(".tl", __name__)
    if name == "__version__":
        from importlib.metadata import version

        return version("napari-embedding-game")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
