import numpy as np
import pytest

from napari_embedding_game.papers.reproductions.metrics import (
    all_pairs_energy,
    knn_accuracy,
    neighbor_recall,
)


def test_neighbor_recall_by_hand():
    # On a line at 0, 1, 3, 7: the nearest others are 1, 0, 1 and 2.
    line = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert neighbor_recall(np.array([[1], [0], [1], [2]]), line) == 1
    assert neighbor_recall(np.array([[1], [2], [1], [0]]), line) == 0.5
    assert neighbor_recall(np.array([[3], [3], [3], [0]]), line) == 0
    # Of two neighbours each, in any order.
    assert neighbor_recall(np.array([[2, 1], [2, 0], [1, 0], [2, 1]]), line) == 1
    assert neighbor_recall(np.array([[2, 3], [2, 0], [1, 0], [2, 1]]), line) == 7 / 8


def test_knn_accuracy_of_parted_and_of_mixed_labels():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c", "d"], 60)
    parted = rng.normal(size=(240, 2)) + 100 * (labels[:, None] == ["a", "b"])
    parted[labels == "d"] += 1000
    assert knn_accuracy(parted, labels) == 1
    assert knn_accuracy(rng.normal(size=(240, 2)), labels) < 0.5


@pytest.mark.parametrize("d", [2, 3])
def test_true_energy_is_eq_1(make_problem, d):
    problem = make_problem(1500, d, 1, "fuzzy")
    wanted = problem.twin.all_pairs_energy(problem.y.double(), 0.2)
    found = all_pairs_energy(problem.edges, problem.y.numpy(), 0.2)
    assert found == pytest.approx(float(wanted), rel=1e-9)
