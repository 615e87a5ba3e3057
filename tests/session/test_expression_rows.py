"""Rows of a dot plot: clusters, levels of a column, or both; axes of a scatter plot."""

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.axis_values import axis_of
from napari_embedding_game.session.expression_rows import RowChoice, rows_of


@pytest.fixture
def dataset():
    kinds = ["T", "B", "T", None, "B", "T"]
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(kinds, categories=["never", "T", "B"]),
            "stim": ["yes", "no"] * 3,
        }
    )
    return worlds.rows(np.zeros((6, 2)), obs=obs)


CLUSTERS = worlds.clustering([2, 2, 2, 7, 7, 7], {7: "seven", 2: "two"})


def test_levels_that_occur_in_their_order_and_what_is_missing(dataset):
    rows = rows_of(RowChoice("kind"), dataset, CLUSTERS)
    assert rows.categories[:2].tolist() == ["T", "B"]
    assert len(rows.categories) == 3
    assert rows.codes.tolist() == [0, 1, 0, 2, 1, 0]


def test_clusters_by_a_column_have_the_levels_that_are_in_them(dataset):
    rows = rows_of(RowChoice("stim", True), dataset, CLUSTERS)
    names = ["two · no", "two · yes", "seven · no", "seven · yes"]
    assert rows.categories.tolist() == names
    assert rows.codes.tolist() == [1, 0, 1, 2, 3, 2]


def test_an_axis_is_what_is_called_so_before_what_is_in_other_letters():
    obs = pd.DataFrame({"cd4": np.arange(6.0)}, index=list("abcdef"))
    dataset = worlds.rows(np.ones((6, 2)), obs=obs, var_names=["CD4", "ACTB"])
    assert axis_of(dataset, "CD4").tolist() == [1] * 6
    assert axis_of(dataset, "cd4 ").tolist() == [0, 1, 2, 3, 4, 5]
    assert axis_of(dataset, "actb").name == "ACTB"
    with pytest.raises(DataError, match='column of numbers "Cd4"'):
        axis_of(dataset, "Cd4")
