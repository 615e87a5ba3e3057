"""Build a Dataset from parts of an AnnData: a space, its rows and columns, X."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    chosen_places,
    listed,
    numbered_names,
    repeated_names,
    texts,
    unique_names,
)
from napari_embedding_game.data.dataset import (
    MISSING_VALUES,
    Dataset,
    Matrix,
    is_of_pairs,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import COUNTS_NOTE
from napari_embedding_game.data.formats.anndata_contents import OBS, split_space
from napari_embedding_game.data.formats.tables import from_frame
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.raw_counts import are_counts, counts_advice
from napari_embedding_game.data.read_options import Missing
from napari_embedding_game.data.stored_columns import StoredColumns, seen_values
from napari_embedding_game.data.validation import (
    as_float32,
    as_rows,
    check_missing,
    check_shape,
    check_values,
    usable_rows,
)

OF_DISTANCES = (
    "Laid out by the neighbours of the file, as scanpy's pp.neighbors found them."
)
GENES_OF_RAW = "Genes: "
"""Begins the note that genes are compared by .raw."""
RAW_HOLDS_COUNTS = "Genes are not compared by .raw, because it holds counts."


@dataclass(frozen=True)
class Genes:
    """Expression (cells x genes) with the names of the genes."""

    values: Any
    names: pd.Index


@dataclass(frozen=True)
class AnnDataParts:
    """One space with what describes its rows and columns."""

    space: str
    values: Any
    obs: pd.DataFrame
    var_names: pd.Index
    x: Any | None
    notes: tuple[str, ...] = ()
    raw: Genes | None = None
    projection: Projection | None = None
    """The way from genes to the space, where an earlier map has noted it."""
    colors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """As :func:`level_colors` returns them."""


def level_colors(
    obs: pd.DataFrame, read: Callable[[str], Any]
) -> dict[str, dict[str, str]]:
    """Return the colour that a file has for each level of its columns.

    Parameters
    ----------
    obs : DataFrame
    read : callable
        Returns what ``uns`` holds under a key, None where there is nothing.  scanpy
        keeps the colours of "leiden" under "leiden_colors".
    """
    found = {}
    for name in obs.columns[~obs.columns.duplicated(keep=False)]:
        if not isinstance(obs[name].dtype, pd.CategoricalDtype):
            continue
        levels, colors = obs[name].cat.categories, read(f"{name}_colors")
        if colors is not None and np.ndim(colors) == 1 and len(colors) >= len(levels):
            texts = zip(map(str, levels), map(str, colors), strict=False)
            found[str(name)] = dict(texts)
    return found


def dataset_of(
    parts: AnnDataParts,
    name: str,
    where: str,
    source: Path | None,
    missing: Missing,
    chosen: Sequence[str] | None = None,
) -> Dataset:
    """Check the parts and put them together; `chosen` columns only, if given."""
    check_missing(missing)
    obs = parts.obs.set_axis(parts.obs.index.astype(str), axis="index")
    if parts.space == OBS:
        of_obs = _of_metadata(parts, obs, name, where, source, missing, chosen)
        return replace(of_obs, level_colors=parts.colors)
    X, var_names = _matrix(parts, where)
    _check_fit(X, parts, where)
    in_genes = X.shape[1] == len(parts.var_names) and not parts.space.startswith("obs")
    profile, names, gene_notes = _compared(parts, X if in_genes else None)
    notes = [*parts.notes, *gene_notes]
    if is_of_pairs(parts.space):
        chosen = None
        notes.append(OF_DISTANCES)
    if chosen is not None:
        places = chosen_places(var_names, chosen, where)
        notes.append(
            f"Embedded: {len(places)} of {len(var_names)} columns of {parts.space} "
            f"({listed([var_names[place] for place in places])})."
        )
        X, var_names = X[:, places], [var_names[place] for place in places]
    are_empty, empty_notes = _rows_without_values(X, parts.space)
    filled = np.where(are_empty[:, None], 0, X) if are_empty.any() else X
    kept, row_notes = usable_rows(
        filled, where, row_names=obs.index, var_names=var_names, missing=missing
    )
    left_out = {f"no values in {parts.space}": are_empty, MISSING_VALUES: ~kept}
    kept &= ~are_empty
    whole = profile is None or profile is X
    dataset = Dataset.from_rows(
        name=name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=parts.space,
        kept=kept,
        source=source,
        notes=[
            *notes,
            *empty_notes,
            *row_notes,
            *repeated_names(obs.index),
            *_advice(X, parts.space),
        ],
        texts=texts(obs),
        profile=None if whole else profile,
        profile_names=() if whole else names,
        has_expression=profile is not None,
        left_out=left_out,
    )
    dataset = replace(dataset, level_colors=parts.colors)
    check_values(dataset.X, f"{where} ({parts.space})")
    if parts.projection is not None and chosen is None:
        dataset = replace(dataset, projection=parts.projection)
    return dataset


def _rows_without_values(X: Matrix, space: str) -> tuple[NDArray[np.bool_], list[str]]:
    """Rows that a space says nothing of, as whoever made it left them out; a note."""
    none = np.zeros(X.shape[0], bool)
    if not space.startswith("obsm") or sp.issparse(X):
        return none, []
    are_empty = np.isnan(X).all(axis=1)
    n_empty = int(np.count_nonzero(are_empty))
    if not n_empty or n_empty > X.shape[0] - 2:
        return none, []
    told = (
        f"{n_empty:,} of {X.shape[0]:,} rows left out, of which {space} has no values."
    )
    return are_empty, [told]


def _advice(X: Matrix, space: str) -> Sequence[str]:
    return () if is_of_pairs(space) else counts_advice(X, space)


def _of_metadata(
    parts: AnnDataParts,
    obs: pd.DataFrame,
    name: str,
    where: str,
    source: Path | None,
    missing: Missing,
    chosen: Sequence[str] | None,
) -> Dataset:
    """Numbers among the metadata as the space; genes stay what clusters differ in."""
    dataset = from_frame(
        obs,
        f"The metadata (obs) of {where}",
        name,
        source=source,
        chosen=chosen,
        missing=missing,
    )
    dataset = replace(
        dataset, space=OBS, obs=obs[dataset.kept], source_obs=obs, texts=texts(obs)
    )
    profile, names, gene_notes = _compared(parts, None)
    notes = (*dataset.notes, *parts.notes, *gene_notes)
    if profile is None:
        return replace(dataset, notes=notes)
    return replace(
        dataset,
        profile=profile[dataset.kept],
        profile_names=tuple(names),
        has_expression=True,
        notes=notes,
    )


def _compared(
    parts: AnnDataParts, embedded: Matrix | None
) -> tuple[Matrix | None, list[str], list[str]]:
    """Genes to compare clusters by, their names, and notes; None without genes.

    As in scanpy those of .raw, which stay unscaled; but not its counts where X has
    the logarithm of them.  `embedded` are the numbers of genes that make the map.
    """
    x, origin = (parts.x, "X") if embedded is None else (embedded, parts.space)
    raw = parts.raw
    if raw is not None and (
        x is None or goes_below_0(x) or not are_counts(seen_values(raw.values))
    ):
        names, notes = numbered_names(raw.names)
        told = f"{GENES_OF_RAW}{len(names):,} from .raw."
        values = _in_single_precision(raw.values)
        return values, names, [told, *notes, *_counts_notes(values)]
    if x is None:
        return None, [], []
    names, notes = numbered_names(parts.var_names)
    if raw is not None:
        notes.append(RAW_HOLDS_COUNTS)
    if goes_below_0(x):
        notes.append(
            f"{origin} has values below 0: fold changes of genes need unscaled values, "
            "which AnnData keeps in .raw."
        )
    values = _in_single_precision(x) if embedded is None else x
    return values, names, [*notes, *_counts_notes(values)]


def _counts_notes(values: Matrix) -> list[str]:
    return [COUNTS_NOTE] if are_counts(seen_values(values)) else []


def _in_single_precision(values: Any) -> Matrix:
    return values if isinstance(values, StoredColumns) else as_float32(values)


def goes_below_0(X: Matrix) -> bool:
    """Tell whether there are values below 0, as there are where genes were scaled."""
    X = seen_values(X)
    values = X.data if sp.issparse(X) else X
    return bool(np.fmin.reduce(values, axis=None, initial=0) < 0)


def column_names(parts: AnnDataParts) -> list[str]:
    """Return the names of all columns of the space; of ``obs``, the numbers."""
    values, place = parts.values, split_space(parts.space)
    if is_of_pairs(parts.space):
        return []
    if parts.space == OBS:
        kinds = parts.obs.dtypes
        return [str(name) for name, kind in kinds.items() if kind.kind in "uif"]
    if isinstance(values, pd.DataFrame):
        return list(map(str, values.select_dtypes("number").columns))
    if place and place[0] == "obsm":
        label = place[1].removeprefix("X_")
        return [f"{label} {i + 1}" for i in range(values.shape[1])]
    return unique_names(parts.var_names)


def _matrix(parts: AnnDataParts, where: str) -> tuple[Matrix, list[str]]:
    """Return the space as a matrix, and the names of its columns."""
    values, names = parts.values, column_names(parts)
    if is_of_pairs(parts.space):
        names = list(map(str, parts.obs.index))
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    check_shape(values.shape, f"{where} ({parts.space})")
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{where} ({parts.space}) holds {values.dtype} values where numbers "
            "belong: choose another space."
        )
    return as_rows(values), names


def _check_fit(X: Matrix, parts: AnnDataParts, where: str) -> None:
    """Raise DataError if the parts of a file are of different size."""
    n_cells, n_genes = len(parts.obs), len(parts.var_names)
    x_fits = parts.x is None or parts.x.shape == (n_cells, n_genes)
    raw = parts.raw
    raw_fits = raw is None or raw.values.shape == (n_cells, len(raw.names))
    is_square = not is_of_pairs(parts.space) or X.shape[1] == n_cells
    if X.shape[0] != n_cells or not is_square or not x_fits or not raw_fits:
        raise DataError(
            f"{where} is damaged: {parts.space} has {X.shape[0]} rows, and the file "
            f"describes {n_cells} cells and {n_genes} genes; export it again."
        )
