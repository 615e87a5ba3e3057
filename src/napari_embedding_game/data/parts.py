"""From the parts of an AnnData (a space, its rows and columns, X) to a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .columns import chosen_places, listed, texts
from .contents import OBS, split_space
from .counts import counts_advice
from .dataset import Dataset, Matrix
from .errors import DataError
from .tables import from_frame
from .validation import (
    Missing,
    as_float32,
    check_missing,
    check_shape,
    check_values,
    usable_rows,
)


@dataclass(frozen=True)
class Parts:
    """One space with what describes its rows and columns."""

    space: str
    values: Any
    obs: pd.DataFrame
    var_names: pd.Index
    x: Any | None
    notes: tuple[str, ...] = ()


def dataset_of(
    parts: Parts,
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
        return _of_metadata(parts, obs, name, where, source, missing, chosen)
    X, var_names = _matrix(parts, where)
    _check_fit(X, parts, where)
    in_genes = X.shape[1] == len(parts.var_names) and not parts.space.startswith("obsm")
    profile = X if in_genes else None if parts.x is None else as_float32(parts.x)
    names = list(map(str, parts.var_names if in_genes or parts.x is not None else []))
    notes = list(parts.notes)
    if chosen is not None:
        places = chosen_places(var_names, chosen, where)
        notes.append(
            f"Embedded: {len(places)} of {len(var_names)} columns of {parts.space} "
            f"({listed([var_names[place] for place in places])})."
        )
        X, var_names = X[:, places], [var_names[place] for place in places]
    kept, row_notes = usable_rows(
        X, where, row_names=obs.index, var_names=var_names, missing=missing
    )
    whole = profile is None or profile is X
    dataset = Dataset.from_rows(
        name=name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=parts.space,
        kept=kept,
        source=source,
        notes=[*notes, *row_notes, *counts_advice(X, parts.space)],
        texts=texts(obs),
        profile=None if whole else profile,
        profile_names=() if whole else names,
        has_expression=profile is not None,
    )
    check_values(dataset.X, f"{where} ({parts.space})")
    return dataset


def _of_metadata(
    parts: Parts,
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
    if parts.x is None:
        return dataset
    return replace(
        dataset,
        profile=as_float32(parts.x)[dataset.kept],
        profile_names=tuple(map(str, parts.var_names)),
        has_expression=True,
    )


def _matrix(parts: Parts, where: str) -> tuple[Matrix, list[str]]:
    """Return the space as a float32 matrix, and the names of its columns."""
    values = parts.values
    place = split_space(parts.space)
    names = list(map(str, parts.var_names))
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        names = list(map(str, values.columns))
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif place and place[0] == "obsm":
        label = place[1].removeprefix("X_")
        names = [f"{label} {i + 1}" for i in range(values.shape[1])]
    check_shape(values.shape, f"{where} ({parts.space})")
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{where} ({parts.space}) holds {values.dtype} values where numbers "
            "belong: choose another space."
        )
    return as_float32(values), names


def _check_fit(X: Matrix, parts: Parts, where: str) -> None:
    """Raise DataError if the parts of a file are of different size."""
    n_cells, n_genes = len(parts.obs), len(parts.var_names)
    x_fits = parts.x is None or parts.x.shape == (n_cells, n_genes)
    if X.shape[0] != n_cells or not x_fits:
        raise DataError(
            f"{where} is damaged: {parts.space} has {X.shape[0]} rows, and the file "
            f"describes {n_cells} cells and {n_genes} genes; export it again."
        )
