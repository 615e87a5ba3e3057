"""Shares of clusters or types in samples: which columns are compared, and the jobs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.sample_comparison import INSIDE, OUTSIDE
from napari_embedding_game.core.inspect.shares import (
    ShareComparison,
    compare_shares,
    find_landmark_changes,
)
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.column_names import is_cell_type_name
from napari_embedding_game.data.columns import count_levels
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.cluster_report import to_levels
from napari_embedding_game.session.groups import CONDITION_NAME, list_sample_columns
from napari_embedding_game.session.session import Session

MAX_CONDITIONS = 30
"""Most levels of a column of conditions."""
_REFERENCE = re.compile(
    r"ctrl|control|untreated|unstim|healthy|normal|vehicle|mock|baseline|naive|placebo"
    r"|dmso|pbs|(?<![a-z])(wt|before|pre|none|no)(?![a-z])|wild",
    re.IGNORECASE,
)
"""Names of levels that others are compared with."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Two levels of a column of conditions, and the column that names the samples."""

    samples: str
    column: str
    levels: tuple[str, str]
    """The condition whose shares are compared, and that it is compared with."""

    def find_sides(self, dataset: Dataset) -> NDArray[np.int64]:
        """Return INSIDE, OUTSIDE, or -1 for neither of the two levels, (n,)."""
        found = to_levels(dataset.obs[self.column]).to_numpy()
        first, second = (found == level for level in self.levels)
        return np.where(first, INSIDE, np.where(second, OUTSIDE, -1))

    @property
    def title(self) -> str:
        """Both conditions in words, such as "stim: STIM against CTRL"."""
        return f"{self.column}: {self.levels[0]} against {self.levels[1]}"


def list_condition_columns(dataset: Dataset, samples: str) -> list[str]:
    """Return the columns whose levels may be conditions of samples, likely ones first.

    ``samples``: the column that names the samples.  A column of conditions has at least
    two levels.  Either each sample has one of them, and several samples share it, or
    the column is named as a condition.  Columns of cell types are left out.
    """
    obs, found = dataset.obs, []
    codes = pd.factorize(obs[samples])[0]
    n_samples = int(codes.max(initial=-1)) + 1
    for name in dataset.level_columns:
        if name == samples or is_cell_type_name(name):
            continue
        n_levels = count_levels(obs[name], MAX_CONDITIONS)
        if not 2 <= n_levels <= MAX_CONDITIONS:
            continue
        pairs = pd.DataFrame({"sample": codes, "level": obs[name].to_numpy()})
        n_pairs = len(pairs[codes >= 0].dropna().drop_duplicates())
        is_of_samples = n_pairs <= n_samples and n_levels < n_samples
        if is_of_samples or CONDITION_NAME.search(name):
            found.append(name)
    return sorted(found, key=lambda name: not CONDITION_NAME.search(name))


def list_conditions_by_samples(dataset: Dataset) -> dict[str, list[str]]:
    """Return the columns of conditions, keyed by the columns that can name samples.

    Columns of samples without a column of conditions are left out.
    """
    found = {
        samples: list_condition_columns(dataset, samples)
        for samples in list_sample_columns(dataset)
    }
    return {samples: columns for samples, columns in found.items() if columns}


def list_levels(dataset: Dataset, column: str) -> list[str]:
    """Return the levels of a column of conditions, those to compare with last."""
    levels = to_levels(dataset.obs[column].dropna())
    present = [
        str(name) for name in levels.cat.remove_unused_categories().cat.categories
    ]
    return sorted(present, key=lambda name: bool(_REFERENCE.search(name)))


def make_share_job(
    dataset: Dataset, groups: pd.Categorical, conditions: Conditions
) -> Callable[[], ShareComparison]:
    """Return a job, for any thread, that compares the shares of groups of points.

    ``groups`` (n,): the group of each point; points of none are not counted.
    """

    def compare_groups() -> ShareComparison:
        """Compare the shares, holding the lock of all computing."""
        with COMPUTING:
            return compare_shares(
                np.asarray(groups.codes, np.int64),
                len(groups.categories),
                conditions.find_sides(dataset),
                dataset.obs[conditions.samples].to_numpy(),
                conditions.levels,
            )

    return compare_groups


@dataclass(frozen=True, eq=False)
class MapChanges:
    """Where on a map shares have changed between two conditions."""

    values: NDArray[np.float32]
    """(n,) log2 fold change at each point; NaN where none holds."""
    n_landmarks: int
    """Number of landmarks with points."""
    n_changed: int
    refusal: str
    """Sentence on why nothing was tested; "" where the landmarks were tested."""


def make_map_change_job(
    session: Session, conditions: Conditions
) -> Callable[[], MapChanges]:
    """Return a job, for any thread, that compares the shares of landmarks.

    Raises DataError: there is no map with landmarks, or its points move.
    """
    dataset, snapshot = session.require_data(), session.snapshot
    merging = session.merging
    if snapshot is None or merging is None or session.is_moving:
        raise DataError("Wait until the map is at rest: its landmarks still move.")
    labels, graph = snapshot.labels, merging.graph

    def find_changes() -> MapChanges:
        """Compare the shares, holding the lock of all computing."""
        with COMPUTING:
            changes, refusal = find_landmark_changes(
                labels,
                graph,
                conditions.find_sides(dataset),
                dataset.obs[conditions.samples].to_numpy(),
                conditions.levels,
            )
        return MapChanges(
            values=changes[labels].astype(np.float32),
            n_landmarks=len(np.unique(labels)),
            n_changed=int(np.isfinite(changes).sum()),
            refusal=refusal,
        )

    return find_changes


def with_change_column(
    dataset: Dataset, conditions: Conditions, values: NDArray[np.floating]
) -> tuple[Dataset, str]:
    """Return the dataset with a column of changes (n,), and the column's name."""
    first, second = conditions.levels
    record = AddedColumns(kind="change", label=conditions.title)
    return dataset.with_columns(f"Change {first} / {second}", {"": values}, record)
