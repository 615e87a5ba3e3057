"""Figures of maps and of every measure on small data, as approved numbers.

Maps are of few iterations, so that what another library rounds stays small; that they
have the same bits anywhere is asked in ``test_any_machine.py``.
"""

from dataclasses import fields

import numpy as np
import pytest
from scipy import sparse

from approved import describe, numbers
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import EmbeddingGame, to_parameters
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.clusters import (
    build_merge_tree,
    landmark_graph,
    split_cluster,
)
from napari_embedding_game.core.inspect.correction import correct_layout
from napari_embedding_game.core.inspect.dip import measure_dip
from napari_embedding_game.core.inspect.firmness import (
    measure_cuts,
    suggest_n_clusters,
)
from napari_embedding_game.core.inspect.group_sums import (
    run_to_result,
    summarize_groups,
)
from napari_embedding_game.core.inspect.isolation import compute_isolation
from napari_embedding_game.core.inspect.log_concave import (
    find_emptiest_interval,
    fit_log_concave,
)
from napari_embedding_game.core.inspect.map_comparison import (
    compare_maps,
    measure_kept_neighbors,
)
from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.core.inspect.quality import (
    count_graph_parts,
    measure_map_quality,
)
from napari_embedding_game.core.inspect.reclustering import recluster_rows
from napari_embedding_game.core.inspect.separation import measure_separation
from napari_embedding_game.core.inspect.shares import (
    compare_shares,
    find_landmark_changes,
)
from napari_embedding_game.core.inspect.stretch import compute_stretch
from napari_embedding_game.core.inspect.teaching import classify_rows
from napari_embedding_game.core.inspect.transfer import (
    compute_share_at_least_as_high,
    vote_labels,
    vote_weights,
)
from napari_embedding_game.core.inspect.type_fits import TypeTable, iter_type_fits
from napari_embedding_game.core.settings import Settings

CASES = {
    "the game": {},
    "elastic": {"method": "ee", "n_components": 1},
    "t-SNE": {"method": "tsne", "n_components": 3},
    "UMAP": {"method": "umap", "metric": "cosine", "init": "pca"},
    "random pairs": {"approximation": "sampled_edges", "schedule": "paper"},
    "in large": {"large_picture": 2.0, "n_clusters": 3, "n_landmarks": 12},
}


def rows(n=90, d=6):
    """Return n rows around three centres, from numbers that are the same anywhere."""
    rng = np.random.default_rng(0)
    noise = rng.random((n, d)) + rng.random((n, d)) - 1
    return (noise + 3 * np.eye(3, d)[np.arange(n) % 3]).astype(np.float32)


@pytest.mark.filterwarnings("ignore")  # so few iterations are no map yet
def test_maps_are_made_as_approved(approve):
    X, lines = rows(), []
    for name, chosen in CASES.items():
        usual = {"n_landmarks": 20, "n_neighbors": 8, "perplexity": 5.0, "max_iter": 3}
        usual |= {"random_state": 0, "device": "cpu", "n_jobs": 1}
        model = EmbeddingGame(**to_parameters(usual | chosen))
        lines.append(f"== {name}")
        model.fit(X)
        lines += [
            f"neighbours {numbers(model.knn_distances_)}",
            f"weights {numbers(model.affinity_matrix_.data)}",
            f"layout {numbers(np.abs(model.embedding_))}",
            f"landmarks {numbers(np.abs(model.landmarks_))}",
            f"energy {model.energy_:.3g}, {model.n_iter_} iterations",
            f"repulsion {describe(model.repulsion_)}",
            f"pressure {numbers(model.pressure_)} stretch {numbers(model.stretch_)}",
            f"isolation {numbers(model.isolation_)}",
            f"labels {np.sort(np.bincount(model.labels_)).tolist()}",
        ]
        if hasattr(model, "transform"):
            lines.append(f"new rows {numbers(np.abs(model.transform(0.98 * X[:9])))}")
    approve("maps", lines)


def test_settings_are_those_approved(approve):
    lines = []
    for one in fields(Settings):
        lines.append(f"{one.name} = {one.default!r}")
        for key, value in one.metadata.items():
            lines.append(f"  {key}: {[*value()] if callable(value) else value}")
    wrong = {
        "n_neighbors": (0, 1, 2.5),
        "n_landmarks": (0, 1),
        "n_components": (0, 4),
        "repulsion": (-1, 0, np.inf),
        "large_picture": (-1, np.nan),
        "perplexity": (0, -1),
        "learning_rate": (0, -1),
        "momentum": (-1, 1, 2),
        "landmark_learning_rate": (0,),
        "max_iter": (-1, 0),
        "n_jobs": (0,),
        "random_state": (-1,),
        "method": ("none",),
        "metric": ("none",),
        "init": ("none",),
        "affinity": ("none",),
        "schedule": ("none",),
        "device": ("none",),
        "approximation": ("none",),
    }
    for name, values in wrong.items():
        for value in values:
            try:
                told = Settings(**{name: value}).validate() or "is allowed"
            except (InputError, ValueError, TypeError) as error:
                told = f"{type(error).__name__}: {error}"
            lines.append(f"{name} {value}: {told}")
    approve("settings", lines)


def test_each_measure_is_as_approved(approve):
    """All that tells of a map, its clusters and its genes."""
    X, kinds, lines = rows(), np.arange(90) % 3, []
    rng = np.random.default_rng(1)
    y = (X[:, :2] + 0.1 * rng.random((90, 2))).astype(np.float32)
    graph = knn_graph(X, 8)
    labels = (np.arange(90) % 12).astype(np.int32)
    edges = build_edges(graph, "mixed")

    def tell(name, value):
        lines.append(f"{name}: {describe(value)}")

    links = landmark_graph(edges, labels, 12)
    tree = build_merge_tree(links, np.bincount(labels))
    tell("graph of landmarks", links.toarray())
    tell("tree", tree)
    tell("split", split_cluster(tree, np.arange(6), 2))
    cuts = list(measure_cuts(X, tree, links, labels, max_clusters=5))
    tell("cuts", cuts)
    tell("suggested", suggest_n_clusters(cuts))
    tell("apart", measure_separation(X, *(np.flatnonzero(kinds == k) for k in (0, 1))))
    tell("isolation", compute_isolation(graph.indices, graph.distances))
    tell("stretch", compute_stretch(graph.indices, y))
    tell("quality", measure_map_quality(X, y, columns={"kind": kinds}, clusters=labels))
    tell("parts", count_graph_parts(edges.to_csr_matrix(), 8))
    tell("compared", compare_maps(y, y[:, ::-1] * [1, 2]))
    tell("kept", measure_kept_neighbors(y, y[:, ::-1] * [1, 2]))
    chosen = kinds == 0
    chosen[5:12] = True
    tell("corrected", correct_layout(y, graph.indices, chosen))
    tell("dip", measure_dip(X[:, 0]))
    counts = np.array([1, 4, 9, 3, 1, 0, 2, 7, 8, 2])
    fitted = fit_log_concave(counts)
    tell("log-concave", fitted)
    tell("emptiest", find_emptiest_interval(counts, fitted, 1, 9))
    genes = np.log1p(np.floor(8 * np.abs(X))).astype(np.float32)
    for options in (
        {"method": "wilcoxon"},
        {"method": "wilcoxon", "tie_correct": True},
        {"method": "t-test"},
        {"method": "t-test", "log1p": True},
    ):
        tell(f"markers {options}", markers(genes, kinds == 0, n_top=None, **options))
    of_samples = {"samples": np.repeat(np.array([*"abcdef"], object), 15)}
    of_samples |= {"method": "t-test", "n_top": None}
    tell("markers of samples", markers(genes, np.arange(90) < 45, **of_samples))
    tell("summary", summarize_groups(sparse.csr_matrix(genes), kinds, 3))
    sides, donors = np.arange(90) // 45, np.repeat(np.array([*"abcdef"], object), 15)
    levels = "treated", "control"
    tell("shares", compare_shares(kinds, 3, sides, donors, levels))
    tell("changes", find_landmark_changes(labels, links, sides, donors, levels))
    parts, codes = np.arange(30), kinds[:30]
    tell("taught", classify_rows(X, parts, codes))
    weights = vote_weights(graph.distances)
    tell("votes", weights)
    tell("voted", vote_labels(kinds[graph.indices], weights))
    tell("as high", compute_share_at_least_as_high(X[:9, 0], X[:, 0]))
    tell("again", recluster_rows(X, 3))
    table = TypeTable(
        columns=tuple(np.array([i, i + 3]) for i in range(3)),
        n_listed=np.array([2, 2, 2]),
        parents=np.array([-1, -1, 1]),
    )
    tell("types", run_to_result(iter_type_fits(genes, kinds, 3, table)))
    approve("measures", lines)
