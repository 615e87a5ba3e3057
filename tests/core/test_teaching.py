"""Classes learned from examples: who is told apart, how well, and how surely."""

import numpy as np
import pytest

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.teaching import classify_rows


def blobs(distance, n=300, n_columns=5, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    middles = rng.normal(size=(3, n_columns)) * distance
    return (middles[codes] + rng.normal(size=(n, n_columns))).astype("f4"), codes


@pytest.mark.parametrize("is_scaled", [True, False])
def test_a_few_examples_tell_all_others(is_scaled):
    X, codes = blobs(5)
    rows = np.arange(15)
    units = 1 if is_scaled else np.array([1, 10, 100, 1, 1])
    found = classify_rows(X * units, rows, codes[rows], is_scaled=is_scaled)
    assert (found.codes == codes).mean() > 0.97
    assert found.score > 0.9
    assert found.counts.tolist() == [5, 5, 5]
    assert found.confidence.mean() > 0.8


def test_classes_that_are_alike_score_as_chance_does():
    X, codes = blobs(0)
    rows = np.arange(60)
    found = classify_rows(X, rows, codes[rows])
    assert abs(found.score - 1 / 3) < 3 * found.spread
    assert found.confidence.mean() < 0.55


def test_confidence_is_about_the_share_that_is_right():
    X, codes = blobs(0.8, n=900)
    rows = np.arange(120)
    found = classify_rows(X, rows, codes[rows])
    others = np.arange(900) >= 120
    right = (found.codes == codes)[others].mean()
    assert abs(found.confidence[others].mean() - right) < 0.08
    assert abs(found.score - right) < 3 * found.spread
    wrong = codes[rows].copy()
    wrong[0] = (wrong[0] + 1) % 3
    found = classify_rows(X, rows, wrong)  # an example keeps its class, and is doubted
    assert found.codes[0] == wrong[0]
    assert found.confidence[0] < 0.5


def test_a_class_of_one_example_is_learned_but_not_scored():
    X, codes = blobs(6)
    rows = np.array([0, 3, 6, 1])
    found = classify_rows(X, rows, codes[rows])
    assert found.score is None
    assert (found.codes[codes != 2] == codes[codes != 2]).mean() > 0.9


def test_one_class_is_refused():
    with pytest.raises(InputError, match="two classes"):
        classify_rows(np.ones((5, 2)), np.arange(3), np.zeros(3, int))
