"""Keep with a map what a recipe came to, so that opening it does not take as long.

The numbers are a few megabytes: of 5,000 cells 50 components, of 2,000 genes their
means, deviations and loadings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.recipe import Prepared
from napari_embedding_game.session.file.json_schema import PreparedText
from napari_embedding_game.session.file.moment_writer import Arrays
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


def write_prepared(dataset: Dataset) -> tuple[PreparedText | None, Arrays]:
    """Return the text and the arrays, nothing where there was no recipe."""
    made = prepared_of(dataset)
    if made is None:
        return None, {}
    arrays: Arrays = {"prepared_x": made.X.astype("<f4")}
    if made.doublet_scores is not None:
        arrays["prepared_doublets"] = made.doublet_scores.astype("<f8")
    way = made.projection
    if way is not None:
        for name in ("mean", "std", "loadings", "offset"):
            arrays[f"prepared_{name}"] = getattr(way, name).astype("<f4")
    return PreparedText(
        genes=() if way is None else way.genes,
        target_sum=0.0 if way is None else way.target_sum,
        max_value=0.0 if way is None else way.max_value,
        has_doublets=made.doublet_scores is not None,
    ), arrays


def read_prepared(
    text: PreparedText,
    kept: NDArray[np.bool_],
    arrays: Callable[..., NDArray[np.floating]],
    expect: Callable[[bool, str], None],
) -> Prepared:
    """Return what :func:`write_prepared` wrote, checked."""
    X = arrays("prepared_x", "<f4", int(np.count_nonzero(kept)), None)
    n_genes, way = len(text.genes), None
    parts = [X]
    if n_genes:
        mean, std = (
            arrays(f"prepared_{name}", "<f4", n_genes) for name in ("mean", "std")
        )
        loadings = arrays("prepared_loadings", "<f4", n_genes, X.shape[1])
        offset = arrays("prepared_offset", "<f4", X.shape[1])
        way = Projection(
            text.genes, mean, std, loadings, offset, text.target_sum, text.max_value
        )
        parts += [mean, std, loadings, offset]
    scores = None
    if text.has_doublets:
        scores = arrays("prepared_doublets", "<f8", len(kept))
    are_finite = all(bool(np.isfinite(part).all()) for part in parts)
    expect(are_finite and X.shape[1] > 0, "its recipe")
    return Prepared(kept, X, way, scores)
