import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.ui.coloring import (
    ByCluster,
    ByPressure,
    choices,
    coloring,
)
from napari_embedding_game.ui.colors import (
    category_colors,
    landmark_colors,
    oklch,
    value_colors,
    value_limits,
)


def test_oklch_of_known_colours():
    # https://bottosson.github.io/posts/oklab/
    red = oklch(0.62796, 0.25768, np.array([29.234 / 360]))
    np.testing.assert_allclose(red, [[1, 0, 0, 1]], atol=0.01)
    grey = oklch(0.5, 0.0, np.array([0.0]))
    np.testing.assert_allclose(grey[0, :3], grey[0, 0], atol=1e-3)


@pytest.mark.parametrize("n", [1, 10, 60])
def test_categories_can_be_told_apart(n):
    colors = category_colors(n)
    assert colors.shape == (n, 4)
    apart = np.linalg.norm(colors[:, None] - colors, axis=2) + np.eye(n) * 9
    assert apart.min() > 0.02


def test_opposite_sides_of_the_map_differ_in_hue():
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    colors = landmark_colors(np.column_stack([np.cos(angle), np.sin(angle)]))
    opposite = np.linalg.norm(colors - np.roll(colors, 50, axis=0), axis=1)
    beside = np.linalg.norm(colors - np.roll(colors, 1, axis=0), axis=1)
    assert np.median(opposite) > 2 * np.median(beside)
    assert beside.min() > 0.02


def test_outliers_do_not_grey_the_map():
    values = np.append(np.linspace(0, 1, 999), 1e9)
    low, high = value_limits(values)
    assert high < 2
    colors = value_colors(np.array([low, high, np.nan]), (low, high))
    assert np.linalg.norm(colors[0] - colors[1]) > 0.5
    assert colors[2, 3] < 1


@pytest.mark.parametrize("values", [[3.0, 3.0], [np.nan], [0.0] * 200 + [7.0]])
def test_limits_are_never_empty(values):
    low, high = value_limits(np.array(values))
    assert low < high


def test_a_landmark_keeps_its_colour_while_others_come_and_go(make_snapshot):
    by_cluster = ByCluster()
    by_cluster.colors(make_snapshot(20, n_landmarks=4))
    before = by_cluster.palette.copy()
    by_cluster.colors(make_snapshot(30, n_landmarks=8))
    np.testing.assert_array_equal(by_cluster.palette[:4], before)
    assert len(by_cluster.palette) == 8
    fewer = make_snapshot(40, n_landmarks=8)
    colors = by_cluster.colors(fewer)
    np.testing.assert_array_equal(colors, by_cluster.palette[fewer.labels])


def test_labels_older_than_the_landmarks_still_have_a_colour(make_snapshot):
    by_cluster = ByCluster()
    by_cluster.colors(make_snapshot(30, n_landmarks=8))
    old = make_snapshot(40, n_landmarks=8)
    few = make_snapshot(40, n_landmarks=2, labels=old.labels)
    assert by_cluster.colors(few).shape == (40, 4)


def test_what_can_colour_names_before_numbers(dataset):
    dataset.obs.insert(0, "barcode", [f"ACGT{i}" for i in range(40)])
    dataset.obs["many"] = pd.Categorical([f"n{i}" for i in range(40)])
    dataset.obs["empty"] = np.nan
    assert choices(dataset) == [
        "Cluster",
        "Pressure",
        "barcode",
        "kind",
        "many",
        "counts",
    ]
    assert choices(None) == ["Cluster", "Pressure"]


def test_a_category_has_one_colour_and_its_legend_counts(dataset, make_snapshot):
    dataset.obs["kind"] = pd.Categorical(
        ["B"] * 10 + [None] * 10 + ["T"] * 20, categories=["A", "B", "T"]
    )
    by_kind = coloring("kind", dataset, ByCluster())
    colors = by_kind.colors(make_snapshot())
    assert len(np.unique(colors, axis=0)) == 3
    assert by_kind.legend().levels == (("B", 10), ("T", 20))
    np.testing.assert_array_equal(by_kind.legend().colors[1], colors[-1])


def test_a_measurement_has_a_scale(dataset, make_snapshot):
    by_counts = coloring("counts", dataset, ByCluster())
    low, high = by_counts.legend().limits
    assert 100 < low < high < 900.5
    assert by_counts.colors(make_snapshot()).shape == (40, 4)


def test_pressure_is_a_scale_from_zero(make_snapshot):
    by_pressure = ByPressure()
    colors = by_pressure.colors(make_snapshot())
    assert by_pressure.legend().limits[0] == 0
    assert not np.array_equal(colors[0], colors[1])
