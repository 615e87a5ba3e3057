"""Jobs that measure the quality of a session's map, alone or against another map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings, resolve_n_neighbors
from napari_embedding_game.data.column_names import Role, is_cell_type_name
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.second_space import make_second_rows
from napari_embedding_game.session.timeline import GONE
from napari_embedding_game.session.timeline_comparison import TimelineComparison

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.quality import ColumnAgreement, MapQuality
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.session.session import Session

ONLY_AT_REST = "Pause or stop the game to compare two maps."
MAX_COLUMNS = 20
"""Most columns of groups that are compared with the map."""
DOUBTFUL = 0.8
"""Trustworthiness below which a map is to be doubted."""
FOLLOWED = 0.5
"""Agreement of the map with a column of samples from which a warning is given."""


def find_sample_effect_column(
    quality: MapQuality, roles: Mapping[str, Role]
) -> ColumnAgreement | None:
    """Return the column by which samples seem to shape the map; None if there is none.

    It is the first, by falling agreement with the map of at least ``FOLLOWED``, that

    - has the role of samples, or
    - agrees at least as well as the map's own clusters, and is not named after cell
      types.

    ``roles``: role of each column.
    """
    of_clusters = quality.clusters
    for column in quality.columns:
        if column.agreement < FOLLOWED:
            continue
        beats = of_clusters is not None and column.agreement >= of_clusters.agreement
        is_of_samples = roles.get(column.name) == "samples"
        if is_of_samples or (beats and not is_cell_type_name(column.name)):
            return column
    return None


def find_group_codes(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """Return integer codes (n,) of each column of groups, by name; -1 for no group.

    At most ``MAX_COLUMNS`` columns, the first that have two or more groups.
    """
    obs = dataset.obs
    several = [name for name in dataset.level_columns if obs[name].nunique() > 1]
    groups = {name: obs[name].astype("category") for name in several[:MAX_COLUMNS]}
    return {name: one.cat.codes.to_numpy() for name, one in groups.items()}


def find_dataset_and_settings(session: Session) -> tuple[Dataset, Settings] | None:
    """Return the dataset and the settings of the map on show, or None.

    None if the map has no record, or the data have no columns: of distances, or of data
    that were not read again.
    """
    dataset, settings = session.dataset, session.map_settings
    is_given = settings.metric == "precomputed"  # distances, and no rows to compare
    if dataset is None or session.run_record is None or is_given:
        return None
    return (dataset, settings) if dataset.var_names else None


def make_quality_job(session: Session) -> Callable[[], MapQuality | None] | None:
    """Return a job that measures the quality of the map on show, for any thread.

    The job also counts the connected parts of the neighbour graph, where enough of it
    is known.  It returns None where the map is too small.

    Returns None where there is no map, or where its data have no rows.
    """
    data, snapshot = find_dataset_and_settings(session), session.snapshot
    if data is None or snapshot is None:
        return None
    (dataset, settings), embedding = data, snapshot.embedding
    columns = find_group_codes(dataset)
    edges, clusters = session.edges, session.clusters.labels
    searched = resolve_n_neighbors(settings, len(embedding))

    def measure() -> MapQuality | None:
        """Return the quality of the map and the parts of its graph, or None."""
        from napari_embedding_game.core.graph.edges import N_NEAREST, Edges
        from napari_embedding_game.core.graph.two_spaces import find_known_rows
        from napari_embedding_game.core.inspect import quality

        result = quality.measure_map_quality(
            dataset.X,
            embedding,
            metric=settings.metric,
            columns=columns,
            clusters=clusters,
        )
        if result is None:
            return None
        kept = math.nan
        if settings.second_space:
            second = make_second_rows(dataset, settings)
            rows = np.flatnonzero(find_known_rows(second))
            found = quality.measure_map_quality(
                second[rows], embedding[rows], metric=settings.metric
            )
            kept = math.nan if found is None else found.neighbors_kept
        if isinstance(edges, Edges):
            graph = edges.to_csr_matrix()
        else:  # a snapshot keeps some of more: they may hang together less
            graph = snapshot.neighbors if searched <= N_NEAREST else None
        parts = None if graph is None else quality.count_graph_parts(graph, searched)
        return replace(result, parts=parts, kept_in_second=kept)

    return measure


def make_comparison_job(
    session: Session, number: int
) -> Callable[[], TimelineComparison]:
    """Return a job that compares the map on show with a mark, for any thread.

    The job compares the qualities of both maps too, where the data have rows.
    ``number``: of the mark.

    Raises DataError: the points are moving, there is no map, or the mark was removed.
    """
    base, mark = session.snapshot, session.timeline.find_mark(number)
    if base is None or session.is_moving:
        raise DataError(ONLY_AT_REST)
    if mark is None or len(mark.snapshot.embedding) != len(base.embedding):
        raise DataError(GONE)
    data = find_dataset_and_settings(session)

    def measure() -> TimelineComparison:
        """Return the comparison of both maps, with their qualities where known."""
        from napari_embedding_game.core.inspect.map_comparison import compare_maps
        from napari_embedding_game.core.inspect.quality import measure_map_quality

        maps = compare_maps(base.embedding, mark.snapshot.embedding)
        qualities = None
        if data is not None:
            (X, metric), snapshots = (data[0].X, data[1].metric), (base, mark.snapshot)
            one, other = (
                measure_map_quality(X, m.embedding, metric=metric) for m in snapshots
            )
            qualities = None if one is None or other is None else (one, other)
        return TimelineComparison(base, mark, maps, qualities)

    return measure
