"""Cells that name and edit the clusters, and draw them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY, unique_names
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.clustering import (
    Clustering,
    resolve_n_clusters,
)
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.notebook.column_cells import known_columns
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import (
    PANDAS,
    PYPLOT,
    SCANPY,
    Code,
    Draft,
    call,
    code_of,
    listed,
)
from napari_embedding_game.session.splitting import groups_of, split_columns

LABELS = f"{KEY}_cluster"
MAP = f"X_{KEY}"
STRETCH, PRESSURE = f"{KEY}_stretch", f"{KEY}_pressure"
ISOLATION = f"{KEY}_isolation"
MOST_LANDMARKS = 40
"""Landmarks above which their clusters are in a table of their own."""


@dataclass(frozen=True)
class Clusters:
    """The clusters of a map, and how they are made of those of its run."""

    clustering: Clustering
    """As they were shown."""
    n_clusters: int | None
    """Into how many clusters ``tl.embedding_game`` merges landmarks; None: each is
    one."""
    names: Mapping[str, str]
    """What its clusters, or landmarks, are called."""
    rest: NDArray[np.intp]
    """Points that are of another cluster than that."""
    column: str
    """Of ``adata.obs``, with the names of the clusters."""


def clusters_of(saved: SavedMap) -> Clusters:
    """Return the clusters of a saved map that has been played.

    They are told by the clusters that the landmarks are merged into, or by landmarks
    where a split is not to be had from these.
    """
    from napari_embedding_game.core.new_rows.transform import nearest_landmark

    snapshot = saved.snapshot
    assert snapshot is not None
    clustering = clustering_of(saved)
    order = [cluster.name for cluster in clustering.clusters]
    labels, n_landmarks = snapshot.labels, len(snapshot.landmarks)
    if not snapshot.finished:  # those of the snapshot may be of a moment before
        every = np.ones(n_landmarks, bool)
        labels = nearest_landmark(snapshot.embedding, snapshot.landmarks, every)
    column = "cluster" if "cluster" not in saved.dataset.obs else "map_cluster"
    names, rest = _by_majority(labels, clustering.names, order)
    by_landmark = Clusters(clustering, None, names, rest, column)
    n_clusters = _merged_into(saved)
    if n_clusters is None:
        return by_landmark
    names, rest = _by_majority(
        _merged(saved, labels, n_clusters), clustering.names, order
    )
    by_cluster = Clusters(clustering, n_clusters, names, rest, column)
    return by_landmark if len(by_landmark.rest) < len(rest) else by_cluster


def clustering_of(saved: SavedMap) -> Clustering:
    """Return the clusters of a saved map, as they were shown."""
    book = ClusterBook(len(saved.dataset.obs))
    book.restore(saved.book, *saved.landmark_labels, saved.merging)
    return book.clustering


def _merged_into(saved: SavedMap) -> int | None:
    """Return how many clusters the landmarks are merged into along the graph.

    None where each is a cluster, or the graph may be of a moment before the last.
    """
    edits, snapshot = saved.book.edits, saved.snapshot
    is_known = snapshot is not None and snapshot.finished and saved.merging is not None
    if not is_known:
        return None
    n_landmarks = saved.landmark_labels[1]
    wanted = resolve_n_clusters(edits, n_landmarks)
    return None if wanted is None else min(wanted, n_landmarks)


def _merged(
    saved: SavedMap, labels: NDArray[np.int32], n_clusters: int
) -> NDArray[np.int32]:
    """Return the clusters (n,) that landmarks are merged into in a replayed run."""
    from napari_embedding_game.core.inspect.clusters import merge_tree

    assert saved.merging is not None
    sizes = np.bincount(labels, minlength=saved.landmark_labels[1])
    return merge_tree(saved.merging.graph, sizes).cut(n_clusters)[labels]


def cluster_cells(
    draft: Draft,
    saved: SavedMap,
    loaded: Loaded,
    clusters: Clusters,
    colors: Mapping[str, str],
) -> None:
    """Add the cells that give the clusters their names, and the figure of the map.

    Parameters
    ----------
    colors : mapping
        Name of a cluster to its colour on the screen; may be empty.
    """
    clustering, column = clusters.clustering, clusters.column
    names = clusters.names
    order = [cluster.name for cluster in clustering.clusters]
    draft.text("## Clusters", *_told(saved, clusters))
    if clusters.n_clusters is not None or len(names) <= MOST_LANDMARKS:
        shown = dict(sorted(names.items(), key=lambda pair: order.index(pair[1])))
        draft.code(f"names = {listed(shown)}")
    else:
        name = draft.beside("landmarks.csv", _writer_of_names(names))
        draft.code(
            f"landmarks = pd.read_csv({code_of(name)}, dtype=str)",
            'names = landmarks.set_index("landmark")["cluster"]',
            imports=[PANDAS],
        )
    lines = [f'clusters = adata.obs["{LABELS}"].astype(str).map(names)']
    if len(clusters.rest):
        lines += _by_hand(draft, saved.dataset, clusters)
    categories: Any = order
    if set(order) <= set(colors):
        shown = {name: colors[name] for name in order}
        draft.code("# As on the screen:", f"colors = {listed(shown)}")
        categories = Code("list(colors)")
    named = f"adata.obs[{code_of(column)}]"
    draft.code(
        *lines,
        call(f"{named} = pd.Categorical", "clusters", categories=categories),
        f"{named}.value_counts(sort=False)",
        imports=[PANDAS],
    )
    _figure(draft, saved, loaded, column, has_colors=categories is not order)


def _by_majority(
    played: NDArray[np.int32], names: NDArray[Any], order: list[str]
) -> tuple[dict[str, str], NDArray[np.intp]]:
    """Return the name of most points of each label, and the points of another."""
    places = np.array([order.index(name) for name in names.tolist()])
    labels, which = np.unique(played, return_inverse=True)
    votes = np.zeros((len(labels), len(order)), np.int64)
    np.add.at(votes, (which, places), 1)
    most = votes.argmax(axis=1)
    rest = np.flatnonzero(most[which] != places)
    return {
        str(label): order[m] for label, m in zip(labels.tolist(), most, strict=True)
    }, rest


def _by_hand(draft: Draft, dataset: Dataset, clusters: Clusters) -> list[str]:
    """Save the clusters of points that were put there one by one; return the code."""
    names, rest = row_names(dataset)[clusters.rest], clusters.rest

    def write(path: Path) -> None:
        frame = pd.DataFrame({"cluster": clusters.clustering.names[rest]}, index=names)
        frame.rename_axis("name").to_csv(path)

    name = draft.beside("by_hand.csv", write)
    return [
        "",
        "# Points that were drawn around, or have come from elsewhere:",
        f"by_hand = pd.read_csv({code_of(name)}, dtype=str)",
        'clusters[by_hand["name"]] = by_hand["cluster"].to_numpy()',
        "",
    ]


def row_names(dataset: Dataset) -> pd.Index:
    """Return the names of the rows on the map, made unique as AnnData does."""
    return pd.Index(unique_names(dataset.source_obs_names))[dataset.kept]


def _writer_of_names(names: Mapping[str, str]) -> Any:
    def write(path: Path) -> None:
        rows = sorted(names.items(), key=lambda pair: int(pair[0]))
        pd.DataFrame(rows, columns=["landmark", "cluster"]).to_csv(path, index=False)

    return write


def _told(saved: SavedMap, clusters: Clusters) -> list[str]:
    """Return how the clusters came about, and what was noted on them."""
    shown = clusters.clustering.clusters
    n_landmarks = saved.landmark_labels[1]
    if clusters.n_clusters is not None:
        how = (
            f"The {n_landmarks} landmarks were merged into {clusters.n_clusters} "
            "clusters along the graph of neighbours."
        )
    else:
        how = "Clusters are made of landmarks, each with the points nearest to it."
    sizes = ", ".join(f"{cluster.name} ({cluster.size:,})" for cluster in shown)
    notes = [f"- **{one.name}**: {one.note}" for one in shown if one.note]
    return [
        f"{how} Names, merges and splits are those of the window, which had these "
        f"clusters: {sizes}.",
        *(["\n".join(notes)] if notes else []),
    ]


def _figure(
    draft: Draft, saved: SavedMap, loaded: Loaded, column: str, *, has_colors: bool
) -> None:
    assert saved.snapshot is not None
    n_components = saved.snapshot.embedding.shape[1]
    options: dict[str, Any] = {}
    if has_colors:
        options["palette"] = Code("colors")
    if n_components == 1:
        draft.code(
            "# One dimension: the map is the axis across.",
            f"rows = adata.obs[{code_of(column)}].cat.codes",
            f'plt.scatter(adata.obsm["{MAP}"][:, 0], rows, s=4)',
            "plt.show()",
            imports=[PYPLOT],
        )
        return
    if n_components == 3:
        options["projection"] = "3d"
    draft.code(
        call("sc.pl.embedding", "adata", f'"{MAP}"', color=column, **options),
        imports=[SCANPY],
    )
    columns = known_columns(saved.dataset, loaded)
    besides = _shown_besides(saved, loaded, columns)
    if besides is not None:
        options.pop("palette", None)
        if besides not in saved.dataset.obs and loaded.use_raw is not None:
            options["use_raw"] = loaded.use_raw
        draft.code(
            call("sc.pl.embedding", "adata", f'"{MAP}"', color=besides, **options)
        )
    by = saved.look.split_by
    if n_components == 2 and by in columns and by in split_columns(saved.dataset):
        options.pop("palette", None)
        _split(draft, saved, by, besides or column, options)


def _split(
    draft: Draft, saved: SavedMap, by: str, color: str, options: dict[str, Any]
) -> None:
    """Draw the groups of a column side by side, in the same places and colours."""
    levels = groups_of(saved.dataset.obs[by])
    groups = [*map(str, levels.cat.categories)]
    draft.text(f"The groups of `{by}` side by side.")
    lines = [f"groups = {code_of(groups)}"]
    values = f"adata.obs[{code_of(by)}].astype(str)"
    if levels.hasnans:  # those are "nan" in values
        lines.append(f"groups.append({code_of(str(np.nan))})  # of no group")
    limits = _limits(saved, color)
    if limits is not None:
        options |= {"vmin": limits[0], "vmax": limits[1]}
    n_columns = math.ceil(math.sqrt(len(groups) + levels.hasnans))
    drawn = call(
        "sc.pl.embedding",
        f"adata[{values} == group]",
        f'"{MAP}"',
        color=color,
        title=Code("group"),
        ax=Code("panel"),
        show=False,
        **options,
    )
    draft.code(
        *lines,
        f"n_columns = {n_columns}",
        "n_rows = -(-len(groups) // n_columns)",
        "figure, axes = plt.subplots(",
        "    n_rows,",
        "    n_columns,",
        "    figsize=(6 * n_columns, 4.5 * n_rows),",
        "    sharex=True,",
        "    sharey=True,",
        "    squeeze=False,",
        ")",
        "for panel in axes.flat[len(groups) :]:",
        "    panel.remove()",
        "for group, panel in zip(groups, axes.flat):",
        *(f"    {line}" for line in drawn.splitlines()),
        "plt.show()",
        imports=[PYPLOT, SCANPY],
    )


def _limits(saved: SavedMap, color: str) -> tuple[float, float] | None:
    """Return the values between which all panels have their colours, if numbers."""
    dataset, snapshot = saved.dataset, saved.snapshot
    assert snapshot is not None
    if saved.look.limits is not None:
        return saved.look.limits
    values: Any
    if color == STRETCH:
        values = snapshot.stretch
    elif color == ISOLATION:
        values = snapshot.isolation
    elif color == PRESSURE:
        values = snapshot.pressure
    elif color in dataset.obs:
        values = dataset.obs[color]
        if not pd.api.types.is_numeric_dtype(values) or values.dtype == bool:
            return None
    elif color in dataset.profile_names:
        values = dataset.expression.column(dataset.profile_names.index(color))
    else:
        return None
    if values is None:  # nobody knows it, as of older files
        return None
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (float(f"{low:.4g}"), float(f"{high:.4g}")) if high > low else None


def _shown_besides(
    saved: SavedMap, loaded: Loaded, columns: Collection[str]
) -> str | None:
    """Return what the map was coloured by on the screen, if not by cluster."""
    by, dataset = saved.look.color_by, saved.dataset
    if by == "Stretch":
        return STRETCH
    if by == "Isolation":
        is_known = saved.snapshot is not None and saved.snapshot.isolation is not None
        return ISOLATION if is_known else None
    if by == "Pressure":
        has_pressure = saved.snapshot is not None and saved.snapshot.has_pressure
        return PRESSURE if has_pressure else None
    has_values = loaded.has_genes and not loaded.is_counts
    if by in columns or (has_values and by in dataset.profile_names):
        return by
    return None
