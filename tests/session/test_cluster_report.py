from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core.snapshot import MISPLACED_STRETCH
from napari_embedding_game.session.cluster_report import (
    describe_points,
    is_continuous,
    make_composition_table,
    rank_differing_columns,
    to_levels,
)
from worlds import rows


def test_what_is_told_of_a_selection(dataset, make_snapshot):
    points, row = np.repeat([False, True, False, True], 10), np.arange(40)
    stretch = np.where(row % 2 == 0, MISPLACED_STRETCH, MISPLACED_STRETCH + 0.1).astype(
        np.float32
    )
    shot = replace(make_snapshot(), stretch=None, isolation=None)
    report = describe_points(dataset, points, shot, column="kind", n_sampled=7)
    assert (report.size, report.share) == (20, 0.5)
    assert report.unlike_count == 0
    assert np.isnan(report.stretched_share)
    assert len(set(report.sampled)) == 7
    assert points[report.sampled].all()
    found = report.composition
    assert found["level"].tolist() == ["B", "T"]
    assert found["count"].tolist() == [10, 10]
    assert found["of_all"].tolist() == [0.5, 0.5]
    shot = replace(shot, stretch=stretch, isolation=stretch)
    report = describe_points(dataset, points, shot)
    assert report.stretched_share == (stretch[points] > MISPLACED_STRETCH).mean() > 0
    assert report.unlike_count == 20
    assert report.composition.empty


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
    named = to_levels(pd.Series(values))
    assert list(named.cat.categories)[: len(levels)] == levels
    assert not named.isna().any()


def test_many_levels_are_summed_up_and_missing_is_named():
    values = pd.Series([f"k{i % 12}" for i in range(48)] + [None] * 8)
    parts = make_composition_table(values, np.arange(56))
    assert len(parts) == 8
    assert parts["level"].iloc[0] == "(missing)"
    assert parts["level"].iloc[-1] == "other (6 more)"
    assert len(parts["levels"].iloc[-1]) == 6
    assert parts["count"].sum() == 56
    assert parts["share"].sum() == pytest.approx(1)


def test_levels_that_are_written_alike_are_one_and_missing_is_none_of_them():
    named = to_levels(pd.Series([1, "1", "missing", None, "x"], dtype=object))
    assert named.tolist() == ["1", "1", "missing", "(missing)", "x"]
    arrow = pd.Series([1, 2, None], dtype="int64[pyarrow]")
    assert to_levels(arrow.astype("category")).tolist() == ["1", "2", "(missing)"]
    ordered = pd.Categorical(["low", "high", None], ["low", "high"], ordered=True)
    assert list(to_levels(pd.Series(ordered)).cat.categories) == [
        "low", "high", "(missing)",
    ]  # fmt: skip


def measured(values):
    names = [f"column {i}" for i in range(values.shape[1])]
    X = np.random.default_rng(0).normal(size=(len(values), 2))
    return rows(X, profile=values, profile_names=names)


def test_contrast_is_cohens_d_and_the_largest_comes_first(make_snapshot):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 6)) * [1, 1, 1, 1, 1e-30, 1e25]  # in any unit
    values[:10, 1] += 3
    values[:, 3] = np.where(np.arange(30) < 10, 0.1, 0.3)  # makes none
    points = np.arange(30) < 10
    inside, outside = values[:10], values[10:]
    expected = (inside.mean(0) - outside.mean(0)) / np.sqrt(
        (inside.var(0) + outside.var(0)) / 2
    )
    found = rank_differing_columns(measured(values.astype(np.float32)), points)
    order = [i for i in np.argsort(-np.abs(expected)) if i != 3]
    assert found.index.tolist() == [f"column {i}" for i in order]
    np.testing.assert_allclose(found, expected[order], rtol=1e-5)
    for has_genes in (False, True):  # which have markers
        dataset = replace(measured(values), has_expression=has_genes)
        report = describe_points(dataset, points, make_snapshot(n_points=30))
        assert report.contrasts.empty is has_genes
    assert rank_differing_columns(measured(values), np.ones(30, bool)).empty
    many = rng.normal(size=(30, 13)).astype(np.float32)
    assert len(rank_differing_columns(measured(many), points)) == 12
    assert len(rank_differing_columns(measured(many[:, :12]), points)) == 12


def test_numbers_are_groups_where_they_were_read_as_levels():
    numbers = pd.Series(np.arange(62) % 3)
    assert is_continuous(numbers)
    assert not is_continuous(numbers.astype("category"))
    assert is_continuous(pd.Series([0.5, 1.0, np.nan]))
