"""Which points are compared with which: the selection, and what it stands against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.session.cluster_report import as_levels, is_continuous
from napari_embedding_game.session.session import Session

MOST_LEVELS = 60
"""Columns with more levels, such as barcodes, are no groups."""
FEWEST = 3
"""Points of a level in the selection, below which it is not offered."""
EACH_SAMPLE_ONCE = "Each sample counts once."
MOST_SAMPLES = 500
"""Columns with more levels name cells, or nothing."""
FEWEST_SAMPLES = 3
"""Columns of two levels name conditions rather than samples."""


def sample_columns(obs: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return those of the columns that can name the samples of the points."""
    named = (column for column in columns if not is_continuous(obs[column]))
    most = min(MOST_SAMPLES, len(obs) // 10)
    return [
        column for column in named if FEWEST_SAMPLES <= obs[column].nunique() <= most
    ]


@dataclass(frozen=True, slots=True)
class Against:
    """What the selected points are compared with.

    ``levels``: not all of the selection is compared, but its points of the first level
    of ``column`` with those of the second; "" is every other one.
    """

    kind: Literal["rest", "cluster", "levels"] = "rest"
    cluster: int = -1
    column: str = ""
    levels: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a column in the selection."""

    name: str
    n_points: int


REST = Against()


@dataclass(frozen=True, eq=False)
class Groups:
    """Two groups of points."""

    inside: NDArray[np.bool_]
    """(N,)"""
    outside: NDArray[np.bool_] | None
    """(N,); None for all others."""


class GroupChoice:
    """The groups that a session's points can be compared in.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of_levels: tuple[object, dict[object, bool]] = None, {}
        """The metadata, and whether a column is of few levels: to find out of many rows
        takes long."""

    def offered(self) -> Iterator[tuple[str, Against]]:
        """Yield what the selection can be compared with, and how that is called."""
        session = self._session
        yield "against all the rest", REST
        dataset, selection = session.dataset, session.selection
        if dataset is not None and not selection.is_empty:
            yield from self._of_columns(dataset.obs, selection.rows)
        for cluster in session.clusters.clusters:
            if cluster.id not in selection.clusters:
                name = cluster.name if cluster.is_named else f"cluster {cluster.name}"
                yield f"against {name}", Against("cluster", cluster.id)

    def levels(self, column: str) -> tuple[Level, ...]:
        """Return the levels of a column that the selection has enough points of.

        In the order of the column.
        """
        dataset, selection = self._session.dataset, self._session.selection
        if dataset is None or column not in dataset.obs:
            return ()
        return _levels_in(dataset.obs[column], selection.rows)

    def groups(self, against: Against) -> Groups:
        """Return the groups of this comparison, from the present selection.

        Points that are in both count to the selection.
        """
        session, chosen = self._session, self._session.selection.points
        if against.kind == "cluster":
            other = session.clusters.labels == against.cluster
            return Groups(chosen, other & ~chosen)
        if against.kind == "levels" and session.dataset is not None:
            levels = as_levels(session.dataset.obs[against.column]).to_numpy()
            one, other = against.levels
            inside = chosen & (levels == one)
            outside = chosen & (levels == other if other else levels != one)
            return Groups(inside, outside)
        return Groups(chosen, None)

    def _of_columns(
        self, obs: pd.DataFrame, rows: NDArray[np.intp]
    ) -> Iterator[tuple[str, Against]]:
        """Yield the comparisons inside of the chosen points.

        Both ways round of two levels; of more the first with the others, which stands
        for all that can be chosen.
        """
        if self._of_levels[0] is not obs:
            self._of_levels = obs, {}
        are_known = self._of_levels[1]
        for column in obs.columns[~obs.columns.duplicated(keep=False)]:
            values = obs[column]
            if column not in are_known:
                are_known[column] = is_of_levels(values)
            if not are_known[column]:
                continue
            name, levels = str(column), _levels_in(values, rows)
            if is_of_many(levels):
                first = Against("levels", column=name, levels=(levels[0].name, ""))
                yield f"{name}: one level against another", first
            elif len(levels) == 2:
                one, other = sorted(level.name for level in levels)
                for pair in ((one, other), (other, one)):
                    label = f"{name}: {pair[0]} against {pair[1]}"
                    yield label, Against("levels", column=name, levels=pair)


def is_of_many(levels: Sequence[Level]) -> bool:
    """Return whether two of these levels have to be chosen: there are more."""
    return len(levels) > 2


def is_of_levels(values: pd.Series) -> bool:
    """Return whether a column has few enough levels to be groups."""
    if is_continuous(values):
        return False
    is_coded = isinstance(values.dtype, pd.CategoricalDtype)
    if is_coded and len(values.cat.categories) <= MOST_LEVELS:
        return True  # no need to count them
    return int(values.nunique()) <= MOST_LEVELS


def _levels_in(values: pd.Series, rows: NDArray[np.intp]) -> tuple[Level, ...]:
    # Without the names of the rows, which would be looked up as well.
    chosen = pd.Series(values.array.take(rows), copy=False)
    counts = as_levels(chosen).value_counts(sort=False)
    return tuple(Level(str(name), int(n)) for name, n in counts.items() if n >= FEWEST)
