"""Genes, scores and numeric columns as the axes of a scatter plot, and gates on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_names import find_names

FloatArray = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Axis:
    """One number of every point."""

    name: str
    values: FloatArray
    """(n,) NaN where it is missing."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A rectangle on two axes; its edges belong to it."""

    x: tuple[float, float]
    y: tuple[float, float]

    @classmethod
    def between(cls, one: tuple[float, float], other: tuple[float, float]) -> Gate:
        """Return the gate with these opposite corners, each (x, y)."""
        (x0, x1), (y0, y1) = (sorted(pair) for pair in zip(one, other, strict=True))
        return cls((x0, x1), (y0, y1))

    def inside(self, across: FloatArray, up: FloatArray) -> NDArray[np.bool_]:
        """Return which points, (n,), are inside; those of missing values are not."""
        is_across = (across >= self.x[0]) & (across <= self.x[1])
        return is_across & (up >= self.y[0]) & (up <= self.y[1])


def numeric_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns of numbers, the scores of gene sets first."""
    columns = [
        str(name)
        for name, kind in dataset.obs.dtypes.items()
        if pd.api.types.is_numeric_dtype(kind)
        and not pd.api.types.is_bool_dtype(kind)
        and dataset.obs[name].notna().any()
    ]
    return sorted(columns, key=lambda name: name not in dataset.scores)


def axis_names(dataset: Dataset) -> list[str]:
    """Return what can be an axis: numeric columns, then genes."""
    columns = numeric_columns(dataset)
    known = set(columns)
    return [*columns, *(name for name in dataset.profile_names if name not in known)]


def axis_of(dataset: Dataset, name: str) -> Axis:
    """Return a column of numbers, or a gene as it is compared everywhere.

    Letters may be of the other case where only one name is meant.

    Raises
    ------
    DataError
        There is no such column and no such gene.
    """
    columns = numeric_columns(dataset)
    found = find_names([name.strip()], columns)
    if found.places:
        column = columns[found.places[0]]
        values = dataset.obs[column].to_numpy(dtype=float, na_value=np.nan)
        return Axis(column, values)
    found = find_names([name.strip()], dataset.profile_names)
    if not found.places:
        raise DataError(
            f'There is no {dataset.word}, score or column of numbers "{name.strip()}": '
            "type a "
            "part of a name and choose one from the list."
        )
    place = found.places[0]
    return Axis(dataset.profile_names[place], dataset.expression.column(place))


def correlation(x: FloatArray, y: FloatArray) -> float:
    """Return Pearson's correlation over the points that have both; NaN if none."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known].astype(float), y[known].astype(float)
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
