"""What can be an axis of a scatter plot."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Added
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.axis_values import (
    axis_names,
    axis_of,
)


@pytest.fixture
def cells(dataset):
    obs = dataset.obs.assign(
        is_live=True, empty=np.nan, doubt=pd.array([None, *range(39)], "Int64")
    )
    counts = np.random.default_rng(0).poisson(3, (40, 5)).astype(np.float32)
    return replace(dataset, obs=obs, profile=counts, has_expression=True)


def test_numbers_come_first_and_scores_before_them(cells):
    cells.add("mine", {"": np.arange(40.0)}, Added(kind="score"))
    assert axis_names(cells) == ["mine", "counts", "doubt", *"abcde"]


def test_an_axis_is_a_column_or_a_gene_as_it_is_compared(cells):
    assert axis_of(cells, " Counts ").name == "counts"
    np.testing.assert_array_equal(axis_of(cells, "counts"), cells.obs["counts"])
    doubt = axis_of(cells, "doubt")
    assert np.isnan(doubt[0])
    assert doubt[39] == 38
    gene = axis_of(cells, "C")
    assert gene.name == "c"
    np.testing.assert_array_equal(gene, cells.expression.column(2))
    with pytest.raises(DataError, match='no gene, score or column of numbers "kind"'):
        axis_of(cells, "kind")
