"""Groups that are compared: of the selection, and what stands against it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.session.groups import (
    REST,
    Against,
    groups,
    level_columns,
    levels_in,
    offered,
)
from worlds import play, session_of


@pytest.fixture
def session(engine, dataset):
    """Four clusters of ten cells, half of each stimulated."""
    rng = np.random.default_rng(0)
    obs = dataset.obs.assign(
        stim=pd.Categorical(["CTRL", "STIM"] * 20),
        donor=pd.Categorical(list("abcd") * 10),
        barcode=[f"b{i:02}" for i in range(40)],
        depth=rng.random(40),
    )
    session = session_of(replace(dataset, obs=obs), engine)
    play(session)
    return session


def rows_of(groups):
    return [np.flatnonzero(group).tolist() for group in groups]


def test_conditions_inside_the_selection(session):
    session.selection.select_points(np.arange(20))
    columns = level_columns(session.dataset.obs)
    assert "depth" not in columns
    stim = Against("levels", column="stim", levels=("STIM", "CTRL"))
    labels = {against: label for label, against in offered(session, columns)}
    assert labels[stim] == "stim: STIM against CTRL"
    assert labels[replace(stim, levels=("CTRL", "STIM"))] == "stim: CTRL against STIM"
    donor = Against("levels", column="donor", levels=("a", ""))
    assert labels[donor] == "donor: one level against another"
    assert levels_in(session, "donor") == dict.fromkeys("abcd", 5)
    assert not any(against.column in ("barcode", "depth") for against in labels)
    donor = replace(donor, levels=("b", ""))
    odd, even = list(range(1, 20, 2)), list(range(0, 20, 2))
    b, d = list(range(1, 20, 4)), list(range(3, 20, 4))
    assert rows_of(groups(session, stim)) == [odd, even]
    assert rows_of(groups(session, donor)) == [b, sorted({*range(20)} - {*b})]
    assert rows_of(groups(session, replace(donor, levels=("b", "d")))) == [b, d]


def test_clusters_and_the_rest(session):
    one, other = session.clusters.clusters[:2]
    session.selection.select(one.id)
    choices = dict(offered(session, []))
    assert choices["against all the rest"] == REST
    assert f"against cluster {one.name}" not in choices
    inside, outside = groups(session, choices[f"against cluster {other.name}"])
    np.testing.assert_array_equal(inside, session.clusters.labels == one.id)
    np.testing.assert_array_equal(outside, session.clusters.labels == other.id)
    assert groups(session, REST)[1] is None
