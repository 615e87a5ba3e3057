import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core.snapshot import FAR
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import (
    as_levels,
    cluster_report,
    composition,
    contrasts,
    is_continuous,
)


@pytest.fixture
def labels():
    return np.repeat([0, 1, 2, 3], 10)


@pytest.fixture
def pressure():
    return np.tile([0.0, 0.5], 20).astype(np.float32)


def test_size_share_pressure_and_draw(dataset, labels, pressure):
    report = cluster_report(dataset, (1, 3), labels, pressure, n_draw=7)
    assert (report.size, report.share) == (20, 0.5)
    assert (report.mean_pressure, report.pressured_share) == (0.25, 0.5)
    assert len(set(report.draw)) == 7
    assert set(labels[report.draw]) <= {1, 3}


def test_the_share_of_points_that_lie_far(dataset, labels, pressure):
    assert np.isnan(cluster_report(dataset, (1,), labels, pressure).stretched_share)
    stretch = np.where(np.arange(len(labels)) % 2 == 0, FAR, FAR + 0.1)
    far = cluster_report(dataset, (1, 3), labels, pressure, stretch=stretch)
    chosen = np.isin(labels, (1, 3))
    assert far.stretched_share == (stretch[chosen] > FAR).mean() > 0
    assert far.unlike_count == 0
    unlike = cluster_report(dataset, (1, 3), labels, pressure, isolation=stretch)
    assert unlike.unlike_count == chosen.sum()


def test_composition_of_categories_beside_their_share_of_all(dataset, labels, pressure):
    report = cluster_report(dataset, (0,), labels, pressure, column="kind")
    assert [(s.level, s.count, s.share_overall) for s in report.composition] == [
        ("B", 5, 0.5),
        ("T", 5, 0.5),
    ]


def test_numbers_are_composed_by_quarters_in_their_order():
    parts = composition(pd.Series(np.linspace(0, 4.0, 100)), np.arange(60))
    assert [part.count for part in parts] == [25, 25, 10]
    assert next(part.level for part in parts).endswith("to 1")


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (100_001 + np.arange(101), ["100000 to 100030", "100030 to 100050"]),
        (1.7e9 + np.arange(101) / 100, ["1700000000 to 1700000000.2"]),
        ([1.0] * 99 + [1 + 2**-52], ["1 to 1.0000000000000002"]),
        ([0.5] * 4, ["0.5"]),
    ],
    ids=["numbers of cells", "times", "next to each other", "constant"],
)
def test_ranges_of_numbers_are_told_apart(values, levels):
    named = as_levels(pd.Series(values))
    assert list(named.cat.categories)[: len(levels)] == levels
    assert not named.isna().any()


def test_what_is_infinite_is_in_no_range():
    named = as_levels(pd.Series([np.inf, 1.5, 2.5, 3.5, 5.5]))
    assert list(named) == ["missing", *[f"{a} to {b}" for a, b in QUARTERS]]


QUARTERS = [(1.5, 2.25), (2.25, 3), (3, 4), (4, 5.5)]


def test_many_levels_are_summed_up_and_missing_is_named():
    values = pd.Series([f"k{i % 12}" for i in range(48)] + [None] * 8)
    parts = composition(values, np.arange(56))
    assert len(parts) == 8
    assert parts[0].level == "missing"
    assert parts[-1].level == "other (6 more)"
    assert sum(part.count for part in parts) == 56
    assert sum(part.share for part in parts) == pytest.approx(1)


def measured(values):
    names = [f"column {i}" for i in range(values.shape[1])]
    return Dataset.from_rows(
        name="objects",
        X=np.random.default_rng(0).normal(size=(len(values), 2)).astype("f4"),
        obs=pd.DataFrame(index=[str(i) for i in range(len(values))]),
        var_names=["a", "b"],
        space="X",
        profile=values,
        profile_names=names,
    )


def test_contrast_is_cohens_d_and_the_largest_comes_first():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3))
    values[:10, 1] += 3
    points = np.arange(30) < 10
    inside, outside = values[:10], values[10:]
    expected = (inside.mean(0) - outside.mean(0)) / np.sqrt(
        (inside.var(0) + outside.var(0)) / 2
    )
    found = contrasts(measured(values), points)
    order = np.argsort(-np.abs(expected))
    assert [one.name for one in found] == [f"column {i}" for i in order]
    np.testing.assert_allclose([one.difference for one in found], expected[order])
    assert contrasts(measured(values), np.ones(30, bool)) == ()


def test_missing_values_and_constants_make_no_contrast():
    values = np.array([[1.0, np.nan, 5.0], [2.0, 7.0, 5.0], [9.0, np.inf, 5.0]])
    (found,) = contrasts(measured(values), np.array([True, False, False]))
    assert (found.name, found.mean_inside) == ("column 0", 1.0)
    assert found.difference < 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 1.5, 2.25], True),
        ([0, 1, 2, 1], False),
        (list(range(100)), True),
        ([True, False], False),
        (["a", "b"], False),
    ],
)
def test_what_counts_as_a_measurement(values, expected):
    assert is_continuous(pd.Series(values)) is expected
