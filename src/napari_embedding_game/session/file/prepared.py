"""Keep with a map what a recipe came to, so that opening it does not take as long.

The numbers are a few megabytes: of 5,000 cells 50 components, of 2,000 genes their
means, deviations and loadings.
"""

from __future__ import annotations

from collections.abc import Iterable

import scipy.sparse as sp

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.recipe import Prepared
from napari_embedding_game.session.file.origin import PREPARED
from napari_embedding_game.session.file.saved_map import SavedMap

_LARGEST = 64_000_000
"""Bytes of components that are stored."""
_DOUBLETS = "doublet_score"


def prepared_of(dataset: Dataset) -> Prepared | None:
    """Return what its recipe, or mixing its batches, came to for all of its rows."""
    if not dataset.X.shape[1]:
        found: Prepared | None = dataset.known.get(PREPARED)
        return found
    recipe, mixed = (dataset.provenance.get(key) for key in ("recipe", "harmony"))
    is_whole = recipe is None or recipe.get("cells_used") == len(dataset.obs)
    is_known = mixed is not None if recipe is None else dataset.projection is not None
    if not is_known or not is_whole or sp.issparse(dataset.X):
        return None
    if dataset.source is None or dataset.X.nbytes > _LARGEST:
        return None
    return Prepared(
        dataset.kept,
        dataset.X.astype("<f4"),
        None if recipe is None else dataset.projection,
        dataset.quality.get(_DOUBLETS),
    )


def prepared_for(saved: SavedMap, others: Iterable[SavedMap]) -> Prepared | None:
    """Return what is known of the recipe of a map: it may be a part of another one."""
    for one in (saved, *others):
        found: Prepared | None = one.dataset.known.get(PREPARED)
        if found is None or not _is_alike(one, saved):
            continue
        if found.kept[saved.dataset.kept].all():
            return found
    return None


def _is_alike(one: SavedMap, other: SavedMap) -> bool:
    if one.origin is None or other.origin is None:
        return False
    if len(one.dataset.kept) != len(other.dataset.kept):
        return False
    return (one.origin.path, one.origin.sha256, _steps(one)) == (
        other.origin.path,
        other.origin.sha256,
        _steps(other),
    )


def _steps(saved: SavedMap) -> tuple[object, object]:
    made = saved.origin.provenance if saved.origin is not None else {}
    return made.get("recipe"), made.get("harmony")
