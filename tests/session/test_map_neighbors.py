"""Neighbours of a map that keeps none are searched for in its data."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session


@pytest.fixture
def session(engine, dataset, make_snapshot):
    session = Session(engine, UNPACED)
    session.load(dataset)
    session.snapshot = make_snapshot(neighbors=None)
    return session


def test_they_are_found_for_the_rows_and_the_distance_of_the_map(session, engine):
    asked, neighbors, told = [], np.arange(40, dtype=np.int64)[:, None], []
    engine.neighbors = lambda X, start: (
        asked.append((X, start)) or SimpleNamespace(indices=neighbors)
    )
    session.settings.metric, session.settings.n_neighbors = "cosine", 30
    session.neighbors.found.connect(lambda: told.append(True))
    assert session.neighbors.of(session.snapshot) is None
    session.neighbors.take(session.neighbors.job()())
    ((X, start),) = asked
    assert X is session.dataset.X
    assert (start.metric, start.n_neighbors) == ("cosine", 15)
    assert told
    found = session.neighbors.of(session.snapshot)
    assert found.dtype == np.int32
    assert np.array_equal(found, neighbors)
    session.settings.metric = "euclidean"
    assert session.neighbors.of(session.snapshot) is None
    session.settings.metric = "cosine"
    session.dataset = replace(session.dataset, X=session.dataset.X.copy())
    assert session.neighbors.of(session.snapshot) is None


def test_those_that_a_map_keeps_are_its_own(session, make_snapshot):
    kept = make_snapshot()
    assert session.neighbors.of(kept) is kept.neighbors
    assert session.neighbors.of(None) is None


def test_without_data_it_is_said_why(session):
    X = np.zeros((40, 0), np.float32)
    session.dataset = replace(
        session.dataset, X=X, var_names=(), missing_reason="Where is it?"
    )
    assert session.neighbors.job() is None
    assert session.neighbors.missing_reason == "Where is it?"
    session.load(None)
    assert session.neighbors.missing_reason == "Load some data first."
