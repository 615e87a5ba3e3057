"""Similarity to the selection: in the data, by the distance of the map."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from napari_embedding_game.session import similarity as module
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.similarity import similarity


@pytest.fixture
def session(engine, dataset):
    session = Session(engine)
    session.load(dataset)
    play(session)
    return session


def play(session):
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break


def test_a_point_is_most_similar_to_itself_and_the_others_follow(session, dataset):
    assert similarity(session) is None
    session.selection.select_points(np.array([7]))
    found = similarity(session)
    assert found[7] == 1.0
    assert (found.min(), found.max()) == (0.0, 1.0)
    distance = np.linalg.norm(dataset.X - dataset.X[7], axis=1)
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(distance))


def test_several_points_are_compared_by_their_mean(session, dataset, monkeypatch):
    rows = np.array([3, 8, 21])
    session.selection.select_points(rows)
    found = similarity(session)
    distance = np.linalg.norm(dataset.X - dataset.X[rows].mean(axis=0), axis=1)
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(distance))
    monkeypatch.setattr(module, "BLOCK", 7)
    np.testing.assert_array_equal(similarity(session), found)


def test_it_is_by_the_distance_of_the_map_also_for_sparse_rows(session, dataset):
    X = np.abs(dataset.X)
    session.load(replace(dataset, X=sp.csr_matrix(X)))
    session.settings.metric = "cosine"
    play(session)
    session.settings.metric = "euclidean"  # of the next map
    session.selection.select_points(np.array([5]))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_array_equal(
        np.argsort(-similarity(session))[:10], np.argsort(-unit @ unit[5])[:10]
    )


def test_without_rows_it_is_not_known(session, dataset):
    saved = session.capture()
    session.restore(saved, replace(dataset, X=np.empty((40, 0)), var_names=[]))
    session.selection.select_points(np.array([5]))
    assert similarity(session) is None
