import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.core.snapshot import FAR
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import (
    ColumnSums,
    Reporter,
    as_levels,
    composition,
    is_continuous,
)


@pytest.fixture
def labels():
    return np.repeat([0, 1, 2, 3], 10)


@pytest.fixture
def pressure():
    return np.tile([0.0, 0.5], 20).astype(np.float32)


def test_size_share_pressure_and_draw(dataset, labels, pressure):
    report = Reporter(dataset).describe((1, 3), labels, pressure, n_draw=7)
    assert (report.size, report.share) == (20, 0.5)
    assert (report.mean_pressure, report.pressured_share) == (0.25, 0.5)
    assert len(set(report.draw)) == 7
    assert set(labels[report.draw]) <= {1, 3}


def test_the_share_of_points_that_lie_far(dataset, labels, pressure):
    reporter = Reporter(dataset)
    assert np.isnan(reporter.describe((1,), labels, pressure).stretched_share)
    stretch = np.where(np.arange(len(labels)) % 2 == 0, FAR, FAR + 0.1)
    far = reporter.describe((1, 3), labels, pressure, stretch=stretch)
    chosen = np.isin(labels, (1, 3))
    assert far.stretched_share == (stretch[chosen] > FAR).mean() > 0
    assert far.unlike_count == 0
    unlike = reporter.describe((1, 3), labels, pressure, isolation=stretch)
    assert unlike.unlike_count == chosen.sum()


def test_no_number_tells_a_pressure_that_is_not_defined(dataset, labels, pressure):
    report = Reporter(dataset).describe((1, 3), labels, np.full_like(pressure, np.nan))
    assert not report.has_pressure
    assert np.isnan([report.mean_pressure, report.pressured_share]).all()


def test_another_seed_is_another_draw(dataset, labels, pressure):
    reporter = Reporter(dataset)
    draws = [
        reporter.describe((1,), labels, pressure, n_draw=5, seed=seed).draw.tolist()
        for seed in (0, 0, 1)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_composition_of_categories_beside_their_share_of_all(dataset, labels, pressure):
    report = Reporter(dataset).describe((0,), labels, pressure, column="kind")
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


def test_a_column_without_values_composes_nothing_wrong():
    parts = composition(pd.Series([np.nan] * 4), np.arange(4))
    assert [(p.level, p.count) for p in parts] == [("missing", 4)]


@pytest.mark.parametrize("pack", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_contrast_is_cohens_d(pack):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3))
    values[:10, 1] += 3
    inside, outside = values[:10], values[10:]
    expected = (inside.mean(0) - outside.mean(0)) / np.sqrt(
        (inside.var(0) + outside.var(0)) / 2
    )
    _, _, d = ColumnSums.of(pack(values)).contrast(ColumnSums.of(pack(inside)))
    np.testing.assert_allclose(d, expected)


def test_missing_values_and_constants_make_no_contrast():
    values = np.array([[1.0, np.nan, 5.0], [2.0, 7.0, 5.0], [9.0, np.nan, 5.0]])
    everything, inside = ColumnSums.of(values), ColumnSums.of(values[:1])
    mean_in, _, d = everything.contrast(inside)
    assert mean_in[0] == 1.0
    assert d[0] < 0
    assert d[1:].tolist() == [0.0, 0.0]


def test_the_column_that_differs_most_comes_first(dataset, labels, pressure):
    profile = np.random.default_rng(1).normal(size=(40, 4)).astype(np.float32)
    profile[labels == 2, 3] += 5
    parts = {
        field: getattr(dataset, field)
        for field in ("name", "X", "obs", "var_names", "space")
    }
    other = Dataset.from_rows(**parts, profile=profile, profile_names=list("wxyz"))
    best = Reporter(other).contrasts(labels == 2)[0]
    assert best.name == "z"
    assert best.difference > 2


def test_all_points_contrast_with_nothing(dataset):
    assert Reporter(dataset).contrasts(np.ones(40, bool)) == ()


@pytest.mark.parametrize("pack", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_sums_are_those_of_an_array_and_take_less_memory(pack, monkeypatch):
    monkeypatch.setattr("napari_embedding_game.session.cluster_report.ENTRIES", 1000)
    rng = np.random.default_rng(0)
    values = np.where(rng.random((300, 2000)) < 0.05, rng.normal(size=(300, 2000)), 0)
    values[3, 7] = np.nan
    expected, packed = ColumnSums.of(values), pack(values)
    tracemalloc.start()
    found = ColumnSums.of(packed)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    for part in ("count", "total", "squares"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part))
    assert most < values.nbytes / 4


def test_a_value_that_is_stored_in_two_parts_counts_once():
    twice = sp.coo_matrix(([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    parts = sp.csr_matrix((twice.data, twice.col, [0, 2, 3]), shape=(2, 2))
    assert ColumnSums.of(parts).squares.tolist() == [25.0, 9.0]


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
