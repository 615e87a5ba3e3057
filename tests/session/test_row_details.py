"""What a card tells of one row."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.session.row_details import (
    MOST,
    row_details,
)


def cluster(name="3", is_named=False):
    return Cluster(
        id=3,
        name=name,
        is_named=is_named,
        color="",
        note="",
        size=7,
    )


def test_a_row_is_told_by_name_cluster_and_columns(dataset):
    told = row_details(dataset, 1, cluster(), ["kind", "counts"])
    assert (told.name, told.cluster, told.text) == ("cell1", "Cluster 3", "")
    assert told.facts == (("kind", "T"), ("counts", "121"))
    assert row_details(dataset, 1, cluster("B cells", True), []).cluster == "B cells"


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_a_gene_is_told_too(dataset, kind):
    X = dataset.X.copy()
    X[5, 2] = 0.12345
    sparse = replace(dataset, X=kind(X), profile=kind(X))
    assert row_details(sparse, 5, cluster(), ["c"]).facts == (("c", "0.123"),)


def test_what_is_missing_or_unknown_is_passed_over(dataset):
    obs = dataset.obs.assign(age=np.nan, site=pd.NA, batch=12345.678, n=7.0)
    names = ["age", "site", "nothing", "batch", "n", "n", "kind", "counts", "a", "b"]
    facts = row_details(replace(dataset, obs=obs), 0, cluster(), names).facts
    assert facts[:3] == (("batch", "12,346"), ("n", "7"), ("kind", "B"))
    assert len(facts) == MOST
