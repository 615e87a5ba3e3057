"""Rows of a dot plot: clusters, levels of a column, or both."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.expression_rows import (
    RowChoice,
    rows_of,
)


def of_rows(obs):
    X = np.zeros((len(obs), 2), np.float32)
    return Dataset.from_rows(
        name="cells", X=X, obs=obs, var_names=["a", "b"], space="X"
    )


@pytest.fixture
def dataset():
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(
                ["T", "B", "T", None, "B", "T"], categories=["never", "T", "B"]
            ),
            "name": list("abcdef"),
            "stim": ["yes", "no"] * 3,
        }
    )
    return of_rows(obs)


def cluster(number, name):
    return Cluster(id=number, name=name, is_named=True, color="", note="", size=3)


LABELS = np.array([7, 7, 7, 2, 2, 2])
BOTH = [cluster(7, "seven"), cluster(2, "two")]


def test_levels_that_occur_in_their_order_and_what_is_missing(dataset):
    rows = rows_of(RowChoice("kind"), dataset, LABELS, BOTH)
    assert rows.names[:2] == ("T", "B")
    assert len(rows.names) == 3
    assert rows.labels.tolist() == [0, 1, 0, 2, 1, 0]


def test_clusters_by_a_column_have_the_levels_that_are_in_them(dataset):
    rows = rows_of(RowChoice("stim", True), dataset, LABELS, BOTH)
    assert rows.names == ("seven · no", "seven · yes", "two · no", "two · yes")
    assert rows.labels.tolist() == [1, 0, 1, 2, 3, 2]
    only = rows_of(RowChoice("kind", True), dataset, LABELS, BOTH[:1])
    assert only.names == ("seven · T", "seven · B")
    assert only.labels.tolist() == [0, 1, 0, -1, -1, -1]
