"""Quick runs of the reproductions on small data, and what they measure, by hand."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from napari_embedding_game.core.energy.pair_functions import NEAREST, UMAP_A, UMAP_B
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.reproductions import (
    explain,
    fenchel,
    game,
    pressure,
)
from napari_embedding_game.papers.reproductions.frame import run_reproduction
from napari_embedding_game.papers.reproductions.inputs import SOURCES, Inputs
from napari_embedding_game.papers.reproductions.table import find_reproduction


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Digits of 8 x 8 pixels under the names of the real files."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("covid", "cells", "texts"):
        (folder / SOURCES[name]).write_bytes(b"")
    pixels, y = load_digits(return_X_y=True)
    pixels = (pixels * 15).astype(np.uint8)
    for name in ("mnist", "coil20"):
        np.savez(folder / SOURCES[name], X=pixels, y=y)
    words = np.array([f"word{i}" for i in range(300)])
    np.savez(folder / SOURCES["words"], X=pixels[:300] / np.float32(16), word=words)
    return folder


def quick(name, data, tmp_path):
    facts = run_reproduction(
        find_reproduction(name), Inputs(data, quick=True), tmp_path
    )
    assert (tmp_path / name / f"{name}.png").stat().st_size > 0
    assert all(check["passed"] is None for check in facts["checks"])
    return [table["rows"] for table in facts["tables"]]


def test_linear_maps_keep_neighbours(data, tmp_path):
    (rows,) = quick("fenchel-table", data, tmp_path)
    assert [row["k"] for row in rows] == [2, 3, 6, 12]
    for method in fenchel.PAPER:
        kept = [row[method] for row in rows]
        assert kept == sorted(kept)
    assert all(row["random_projection"] < row["gradient_pca"] for row in rows)


def test_eigenmaps_of_a_roll(tmp_path):
    summary, each = quick("fenchel-roll", None, tmp_path)
    assert [row["method"] for row in summary] == ["LE", "ALE", "VRLE"]
    for row in summary:  # what falls into parts can only be more sensitive
        whole = row["where the graph is whole"]
        assert 0 < whole <= row["sensitivity to t"]
        assert (whole == row["sensitivity to t"]) is (row["most parts"] == 1)
    assert len(each) == 15


def test_sensitivity_knows_the_same_map():
    map_ = np.random.default_rng(0).normal(size=(50, 2))
    turned = 3 * map_ @ np.array([[0.6, 0.8], [0.8, -0.6]]) + 7
    assert fenchel.mean_procrustes_distance([map_, turned, map_]) < 1e-12
    other = np.random.default_rng(1).normal(size=(50, 2))
    assert fenchel.mean_procrustes_distance([map_, other]) > 0.5
    assert fenchel.mean_procrustes_distance([map_]) == 0


def test_descent_is_its_game_and_below_the_bound(tmp_path):
    (rows,) = quick("fenchel-convergence", None, tmp_path)
    assert len(rows) == 6
    assert all(0 <= row["gap"] < row["bound"] for row in rows)
    differences = [row["difference"] for row in rows]
    # two ways to the same numbers, not one way twice
    assert 0 < max(differences) <= 1e-12


def test_landmarks_tile_and_their_members_are_shown(data, tmp_path):
    (row,), clusters = quick("game-fig2", data, tmp_path)
    assert (row["N"], row["lambda N"]) == (400, 70)
    assert row["median majority"] > 2 * row["of all"]
    assert row["landmarks with points"] <= 20
    assert len(clusters) == game.N_CLUSTERS
    assert all(row["points"] > 0 for row in clusters)


def test_landmarks_that_are_too_fast_make_a_collapse(data, tmp_path):
    (table,) = quick("game-fig4", data, tmp_path)
    rows = {row["eta_z"]: row for row in table}
    assert rows[30.0]["distinct"] < 0.5 * rows[0.3]["distinct"]
    assert rows[30.0]["true energy (Eq. 1)"] > rows[0.3]["true energy (Eq. 1)"]


def test_sampled_landmarks_are_the_worst(data, tmp_path):
    (rows,) = quick("game-fig5", data, tmp_path)
    for size in (3, 30):
        own = [row for row in rows if row["L"] == size]
        worst = max(own, key=lambda row: row["true energy"])
        assert worst["repulsion"] == "sampled landmarks"


def test_a_point_is_misplaced_among_ten_of_which_most_are_of_others():
    y = np.random.default_rng(0).normal(size=(30, 2))
    near = pressure.find_ten_nearest_on_map(y)
    assert near.shape == (30, 10)
    for n_others, wrong in ((5, False), (6, True)):
        labels = np.zeros(30, int)
        labels[near[0, :n_others]] = 1
        assert pressure.are_misplaced(y, labels)[0] == wrong


def test_landmarks_play_with_a_lower_bound(data, tmp_path):
    (table,) = quick("game-fig6", data, tmp_path)
    rows = {row["repulsion"]: row for row in table}
    own = rows["optimised landmarks"]
    assert own["last approximate energy"] <= own["last true energy"]
    assert rows["sampled landmarks"]["last true energy"] > own["last true energy"]


def test_descent_reaches_pca(data, tmp_path):
    distances, cosines = quick("explain-fig2", data, tmp_path)
    assert distances[0]["full gradient"] > 0.9
    assert distances[-1]["full gradient"] < 1e-3
    early = [row[rank] for row in cosines[:3] for rank in ("rank 10", "rank 3")]
    assert min(early) > 0
    facts = json.loads((tmp_path / "explain-fig2" / "explain-fig2.json").read_text())
    distance, cosine = (check["found"] for check in facts["checks"])
    assert distance == f"{distances[-1]['full gradient']:.4g}"
    assert cosine == f"{min(early):.4g}"  # and not that of the end


def test_four_methods_from_two_starts(data, tmp_path):
    (rows,) = quick("explain-fig3", data, tmp_path)
    assert len(rows) == 8
    assert {row["start"] for row in rows} == {"random", "spectral"}
    assert min(row["kNN accuracy"] for row in rows) > 0.5


def test_gradients_along_runs(data, tmp_path):
    (rows,) = quick("explain-conjecture1", data, tmp_path)
    assert [row["data"] for row in rows] == ["mnist", "mnist", "roll", "roll"]
    assert all(0 < row["mean"] < row["max"] < 1 for row in rows)


def test_the_expected_gradient_of_umap():
    """One by one: each directed edge pulls both ends, its head flees 5 points."""
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    graph = knn_graph(X, 6)
    fuzzy = build_edges(graph, "fuzzy")
    expected = explain.make_umap_gradient(fuzzy)
    y = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
    weights = fuzzy.to_csr_matrix().toarray()
    wanted = np.zeros((40, 2))
    for i in range(40):
        apart = y[i] - y
        squared = (apart**2).sum(axis=1) + NEAREST
        curve = UMAP_A * squared**UMAP_B
        pull = 2 * UMAP_B * curve / (squared * (1 + curve))
        push = 2 * UMAP_B / (squared * (1 + curve))
        wanted[i] += 2 * (weights[i] * pull) @ apart
        wanted[i] -= 5 / 40 * weights[i].sum() * push @ apart
    found = expected(y)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(expected(y + 3), found, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("pressure-fig3", ["twisted roll, s-SNE", "COIL-20 midway, EE"]),
        ("pressure-fig4", ["300 digits, t-SNE"]),
    ],
)
def test_where_pressure_is(name, titles, data, tmp_path):
    (rows,) = quick(name, data, tmp_path)
    assert [row[""] for row in rows] == titles
    assert all(row["pressured among the others"] > 0 for row in rows)


def test_the_optimisers(data, tmp_path):
    summary, each, _ = quick("pressure-fig5", data, tmp_path)
    assert [row["paper"] for row in summary[:2]] == ["3.84 ± 0.18", "3.6 ± 0.14"]
    assert len(each) == 5
    assert all(0 < row["SD"] < pressure.EE_LAMBDA for row in each)
    assert all(row["iterations of SD"] <= 60 for row in each)


def test_the_words(data, tmp_path):
    (rows,) = quick("pressure-fig7", data, tmp_path)
    assert [row["optimiser"] for row in rows] == ["SD", "PP from SD"]
    assert all(0 < row["min"] < row["max"] < pressure.EE_LAMBDA for row in rows)
    assert all(row["iterations"] <= 60 for row in rows)


def test_the_energies_are_in_the_papers_unit(data):
    """All points at one place: EE is lambda, s-SNE the logarithm of all pairs."""
    X = Inputs(data).load("coil20").X[:300]
    for method, wanted in (("ee", pressure.EE_LAMBDA), ("ssne", np.log(300 * 299))):
        objective = pressure.make_objective(X, method, np.float64)
        assert objective.forces.edges.weights.sum() == pytest.approx(2)
        found = pressure.compare_minimisers(objective, np.zeros((300, 2)), 0)["SD"]
        assert found[-1] == pytest.approx(wanted)


def test_tilings_by_hand():
    landmarks = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], np.float32)
    layout = np.repeat(landmarks, 5, axis=0) + np.float32(0.5)
    assert game.measure_tiling(layout, landmarks) == pytest.approx(
        {"empty": 0, "far": 0, "evenness": 1}
    )
    landmarks = np.array([[0, 0], [1, 0], [50, 50], [51, 50]], np.float32)
    layout = np.array([[0, 0]] * 6 + [[0, 30]] * 2, np.float32)
    found = game.measure_tiling(layout, landmarks)
    assert found == {"empty": 0.75, "far": 0.25, "evenness": 0}


def test_recall_of_what_pressure_knows():
    wrong = np.arange(100) < 20
    row = pressure.measure_recall_by_pressure(
        {"heights": np.where(wrong, 1.0, 0.0), "wrong": wrong}
    )
    assert row["recall by the highest pressure"] == 1
    assert row["chance"] == 0.2
    assert row["probability by chance"] < 1e-10
    row = pressure.measure_recall_by_pressure(
        {"heights": np.where(wrong, 0.0, 1.0), "wrong": wrong}
    )
    assert row["recall by the highest pressure"] == 0
    assert row["probability by chance"] == 1
