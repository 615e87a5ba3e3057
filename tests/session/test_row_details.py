"""What a card tells of one row."""

from dataclasses import replace

import numpy as np
import pandas as pd

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


def test_what_is_missing_or_unknown_is_passed_over(dataset):
    obs = dataset.obs.assign(age=np.nan, site=pd.NA, batch=12345.678, n=7.0)
    names = ["age", "site", "nothing", "batch", "n", "n", "kind", "counts", "a", "b"]
    facts = row_details(replace(dataset, obs=obs), 0, cluster(), names).facts
    assert facts[:3] == (("batch", "12,346"), ("n", "7"), ("kind", "B"))
    assert len(facts) == MOST
