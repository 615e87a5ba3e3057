"""napari-embedding-game: a live, steerable map of single cells, images or texts.

``EmbeddingGame`` is loaded when it is first asked for, so that importing the
package loads neither torch nor Qt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_embedding_game.core.estimator import EmbeddingGame

__all__ = ["EmbeddingGame"]


def __getattr__(name: str) -> Any:
    if name == "EmbeddingGame":
        from napari_embedding_game.core.estimator import EmbeddingGame

        return EmbeddingGame
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
