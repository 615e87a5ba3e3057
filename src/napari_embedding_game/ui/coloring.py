"""What "Colour by" may be, and how each choice colours the points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pandas as pd

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.report import is_continuous
from napari_embedding_game.ui.colors import (
    MISSING,
    Colors,
    category_colors,
    landmark_colors,
    value_colors,
    value_limits,
)

CLUSTER, PRESSURE = "Cluster", "Pressure"
MAX_LEVELS = 60
"""A column with more different names than this (such as barcodes) is no colour."""


@dataclass(frozen=True, slots=True)
class Legend:
    """How to read the colours: named levels, or a scale from low to high."""

    title: str
    levels: tuple[tuple[str, int], ...] = ()
    colors: Colors | None = field(default=None, compare=False)
    limits: tuple[float, float] | None = None


class Coloring(Protocol):
    """One choice of "Colour by"."""

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point: (N, 4), fresh or not to be changed."""
        ...

    def legend(self) -> Legend:
        """Return how to read the colours."""
        ...


class ByCluster:
    """The colour of the nearest landmark.

    A landmark keeps its colour for as long as it plays, so that the eye can
    follow a cluster.  Colours are given when the landmark is first seen, and
    once more after the first quarter, when the large picture stands.
    """

    def __init__(self) -> None:
        self.palette: Colors = np.empty((0, 4), dtype=np.float32)
        self._settled = False

    def restart(self) -> None:
        """Forget the colours: other landmarks play now."""
        self.palette = self.palette[:0]
        self._settled = False

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        self._extend(snapshot)
        return self.palette[snapshot.labels]

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return Legend("One colour for each cluster, by where it lies")

    def _extend(self, snapshot: Snapshot) -> None:
        if not self._settled and 4 * snapshot.iteration >= snapshot.n_iter:
            self.palette, self._settled = self.palette[:0], True
        # Never shortened: labels may be a little older than the landmarks.
        fresh = landmark_colors(snapshot.landmarks)[len(self.palette) :]
        if len(fresh):
            self.palette = np.concatenate([self.palette, fresh])


class ByCategory:
    """One colour for each level of a metadata column."""

    def __init__(self, name: str, values: pd.Series) -> None:
        coded = values.astype("category")
        counts = coded.value_counts()
        levels = [c for c in coded.cat.categories if counts[c] > 0]
        codes = coded.cat.set_categories(levels).cat.codes.to_numpy()
        palette = category_colors(len(levels))
        self._colors = np.concatenate([palette, MISSING[None]])[codes]
        self._legend = Legend(
            name, tuple((str(c), int(counts[c])) for c in levels), palette
        )

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        return self._colors

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return self._legend


class ByValue:
    """Viridis from the low to the high values of a metadata column."""

    def __init__(self, name: str, values: pd.Series) -> None:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        limits = value_limits(numbers)
        self._colors = value_colors(numbers, limits)
        self._legend = Legend(name, limits=limits)

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        return self._colors

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return self._legend


class ByPressure:
    """Viridis by the pressure of each point as it is now."""

    def __init__(self) -> None:
        self._limits = (0.0, 1.0)

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        self._limits = (0.0, value_limits(snapshot.pressure)[1])
        return value_colors(snapshot.pressure, self._limits)

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return Legend("Pressure", limits=self._limits)


def choices(dataset: Dataset | None) -> list[str]:
    """Return what the points of a dataset can be coloured by, best known first."""
    if dataset is None:
        return [CLUSTER, PRESSURE]
    usable = [c for c in dataset.obs.columns if _is_usable(dataset.obs[c])]
    usable.sort(key=lambda c: is_continuous(dataset.obs[c]))  # names before numbers
    return [CLUSTER, PRESSURE, *map(str, usable)]


def _is_usable(values: pd.Series) -> bool:
    if not values.notna().any():
        return False
    return is_continuous(values) or values.nunique() <= MAX_LEVELS


def metadata_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that a cluster's composition can be told by."""
    return choices(dataset)[2:]


def coloring(choice: str, dataset: Dataset, by_cluster: ByCluster) -> Coloring:
    """Return the colouring for one of the ``choices``."""
    if choice == CLUSTER:
        return by_cluster
    if choice == PRESSURE:
        return ByPressure()
    values = dataset.obs[choice]
    return (ByValue if is_continuous(values) else ByCategory)(choice, values)
