"""Levels that are hidden: which points these are, and when they are shown again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.session.display import HiddenLevels
from napari_embedding_game.session.hiding import CLUSTERS
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.splitting import split


@pytest.fixture
def session(dataset):
    kinds = ["A", "B", "C", None] * 10
    obs = dataset.obs.assign(site=pd.Categorical(kinds, ["A", "B", "C", "D"]))
    session = Session()
    session.load(replace(dataset, obs=obs))
    return session


@pytest.fixture
def told(session):
    told = []
    session.hiding.changed.connect(lambda: told.append(session.look.hidden.levels))
    return told


def test_levels_are_hidden_one_by_one_and_shown_again(session, told):
    hiding = session.hiding
    hiding.hide("site", "A")
    np.testing.assert_array_equal(np.flatnonzero(hiding.mask), range(0, 40, 4))
    hiding.hide("site", "C")
    assert (hiding.n_levels, hiding.n_points) == (2, 20)
    assert hiding.mask is hiding.mask  # found once
    hiding.show("site", "A")
    assert hiding.hidden_of("site") == {"C"}
    hiding.show_all()
    assert hiding.mask is None
    assert told == [("A",), ("A", "C"), ("C",), ()]


def test_a_level_alone_hides_points_without_one_as_well(session):
    session.hiding.isolate("site", "B")
    np.testing.assert_array_equal(session.hiding.rows, range(1, 40, 4))


def test_one_column_is_hidden_at_a_time(session):
    session.hiding.hide("site", "A")
    session.hiding.hide("kind", "B")
    assert session.look.hidden == HiddenLevels("kind", ("B",))
    assert session.hiding.hidden_of("site") == frozenset()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("site", None),  # gone
        ("site", ["X", "Y"] * 20),  # other levels
        ("site", ["A"] * 40),  # nothing would be left
        ("site", np.linspace(0, 1, 40)),  # no levels
    ],
)
def test_other_data_show_all_and_say_so(session, column, values):
    session.hiding.hide(column, "A")
    obs = session.dataset.obs.drop(columns=column)
    if values is not None:
        obs[column] = values
    session.load(replace(session.dataset, obs=obs))
    assert session.hiding.mask is None
    assert session.look.hidden.levels == ()
    assert session.message.startswith("All points are shown again: ")


def test_clusters_are_hidden_by_their_ids(session, make_snapshot):
    snapshot = make_snapshot()
    session.clusters.receive(snapshot.labels, 4)
    first = session.clusters.clusters[0].id
    session.hiding.hide(CLUSTERS, str(first))
    before = session.hiding.mask
    np.testing.assert_array_equal(before, session.clusters.labels == first)
    session.clusters.receive(np.roll(snapshot.labels, 3), 4)
    after = session.hiding.mask  # it follows the game
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, session.clusters.labels == first)


def test_hidden_groups_have_no_panel_and_are_not_counted(session, make_snapshot):
    site = session.dataset.obs["site"]
    session.hiding.hide("site", "A")
    of_site = split(make_snapshot(), site, session.hiding.mask)
    assert [panel.name for panel in of_site.panels.panels] == ["B", "C", "(none)"]
    by_kind = split(make_snapshot(), session.dataset.obs["kind"], session.hiding.mask)
    assert [panel.told for panel in by_kind.panels.panels] == ["10", "20"]
