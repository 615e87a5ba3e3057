"""Which points are compared with which: the selection, and what stands against it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.column_names import is_cell_type_name
from napari_embedding_game.data.columns import count_levels
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import to_levels
from napari_embedding_game.session.session import Session

OTHERS = "all others"
"""The name of all other levels, with which a level can be compared."""
MIN_ROWS = 3
"""Fewest selected points of a level that is offered for a comparison."""
MIN_SAMPLE_LEVELS = 3
"""Fewest levels of a column of samples that is not named as one: two levels are more
often conditions."""
CONDITION_NAME = re.compile(
    r"stim|treat|condition|time|(?<![a-z])(day|date)|tech|protocol|chemistry|assay"
    r"|platform|disease|diagnosis|status|genotype|group",
    re.IGNORECASE,
)
"""Names of what differs between samples, rather than of samples."""
CELLS_A_SAMPLE = 10
"""Fewest points of a sample on average: a column of more levels names cells."""


@dataclass(frozen=True, slots=True)
class Against:
    """What the selected points are compared with: all others, a cluster or levels.

    - ``column`` "" and ``cluster`` None: all other points.
    - ``cluster``: the points of the cluster of this id.
    - ``column``: within the selection, points of the first of ``levels`` are compared
      with those of the second; with None for the second, with those of all other
      levels.
    """

    cluster: int | None = None
    column: str = ""
    levels: tuple[str, str | None] = ("", None)


REST = Against()


def list_sample_columns(dataset: Dataset) -> list[str]:
    """Return the columns that can name samples of the points, those of samples first.

    A column needs at least ``MIN_SAMPLE_LEVELS`` levels, or two if its role is samples
    and at most one level for ``CELLS_A_SAMPLE`` points.  Columns named after cell types
    or conditions are left out, unless a person has chosen them as samples.
    """
    obs, roles = dataset.obs, dataset.roles
    chosen = {} if dataset.read_options is None else dataset.read_options.roles
    most = len(obs) // CELLS_A_SAMPLE
    found = []
    for name in dataset.level_columns:
        is_chosen = chosen.get(name) == "samples"
        least = 2 if is_chosen or roles[name] == "samples" else MIN_SAMPLE_LEVELS
        is_other = is_cell_type_name(name) or CONDITION_NAME.search(name)
        if is_other and not is_chosen:
            continue
        if least <= count_levels(obs[name], most) <= most:
            found.append(name)
    return dataset.sort_samples_first(found)


def offer_comparisons(session: Session) -> Iterator[tuple[str, Against]]:
    """Yield what the selection can be compared with, as pairs (menu text, comparison).

    In this order:

    - all other points
    - if two clusters are selected, each of the two against the other
    - each cluster that is not selected
    """
    yield f"Against {describe_other_group(session, REST)}", REST
    chosen, by_id = session.selection.clusters, session.clusters.clustering.by_id
    pair = [by_id[c] for c in chosen if c in by_id]
    for a, b in (pair, pair[::-1]) if len(pair) == 2 else ():
        yield f"{a.title} against {b.title}", Against(b.id)
    for cluster in session.clusters.clusters:
        if cluster.id not in chosen:
            against = Against(cluster.id)
            yield f"Against {describe_other_group(session, against)}", against


def list_comparable_columns(session: Session) -> list[str]:
    """Return the columns of which two levels can be compared inside the selection.

    Each has two or more levels of at least ``MIN_ROWS`` selected points. Columns that
    are named after conditions come first.
    """
    columns = [] if session.dataset is None else session.dataset.level_columns
    several = [x for x in columns if len(count_selected_by_level(session, x)) > 1]
    return sorted(several, key=lambda name: not CONDITION_NAME.search(name))


def describe_other_group(session: Session, against: Against) -> str:
    """Return in words what the selection is compared with, such as "all the rest"."""
    if against.column:
        return against.levels[1] or OTHERS
    if against.cluster is None:
        return "all the rest"
    cluster = session.clusters.clustering.by_id[against.cluster]
    return cluster.name if cluster.is_named else f"cluster {cluster.name}"


def make_comparison_title(session: Session, against: Against) -> str:
    """Return in words both sides of a comparison, such as "B cells against cluster 3".

    Up to three selected clusters are named; otherwise the first side is "Selection".
    """
    other = describe_other_group(session, against)
    if against.column:
        return f"{against.column}: {against.levels[0]} against {other}"
    named, chosen = session.clusters.clustering.by_id, session.selection.clusters
    if against.cluster in chosen:  # one of two that are selected
        other = named[against.cluster].title
        chosen = tuple(one for one in chosen if one != against.cluster)
    names = [named[one].title for one in chosen]
    first = ", ".join(names) if 0 < len(names) <= 3 else "Selection"
    return f"{first} against {other}"


def count_selected_by_level(session: Session, column: str) -> dict[str, int]:
    """Return the number of selected points of each level of a column, by level.

    Levels are in the order of the column; those of fewer than ``MIN_ROWS`` selected
    points are left out.  {} without data or selection, or where the column does not
    exist.
    """
    dataset, selection = session.dataset, session.selection
    if dataset is None or column not in dataset.obs or selection.is_empty:
        return {}
    # Without the names of the rows, which would be looked up as well.
    chosen = pd.Series(dataset.obs[column].array.take(selection.rows), copy=False)
    counts = to_levels(chosen).value_counts(sort=False)
    return {str(name): int(n) for name, n in counts.items() if n >= MIN_ROWS}


def find_compared_points(
    session: Session, against: Against
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return masks (N,) of the points of both groups of a comparison.

    The second mask is None where the first group is compared with all other points.
    Points in both the selection and the other cluster count to the selection, unless
    the other cluster is itself one of the selected clusters: then it is the second
    group.
    """
    chosen = session.selection.points
    if against.cluster is not None:
        is_other = session.clusters.labels == against.cluster
        if against.cluster in session.selection.clusters:
            return chosen & ~is_other, is_other
        return chosen, is_other & ~chosen
    if against.column and session.dataset is not None:
        levels = to_levels(session.dataset.obs[against.column]).to_numpy()
        one, other = against.levels
        is_other = levels != one if other is None else levels == other
        return chosen & (levels == one), chosen & is_other
    return chosen, None
