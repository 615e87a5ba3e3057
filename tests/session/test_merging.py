"""Clusters at the end of a run, however it was seen."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import worlds
from napari_embedding_game.core.dynamics import play as play_module
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.session.run import engine
from napari_embedding_game.session.run import run as run_module
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session


def paced(frame):
    """Return the engine, of which every iteration is seen, or only the ends."""

    def framed(edges, layout, settings, warm=None):
        return play(edges, layout, settings, frame_iterations=frame)

    return SimpleNamespace(**{**vars(engine), "play_game": framed})


def shown_at_the_end(session):
    """Labels, names, and how one may go on from there."""
    worlds.play(session)
    return (
        session.clusters.labels,
        session.clusters.clustering.names_by_point,
        session.merging,
    )


@pytest.mark.parametrize("n_clusters", [None, 5])
def test_the_end_of_a_run_does_not_depend_on_its_frames(monkeypatch, n_clusters):
    X, _ = make_blobs(600, 8, centers=9, cluster_std=2.5, random_state=3)
    found = []
    for seconds, share, frame in ((0.0, 1e9, 1), (1e9, 1e-9, 60)):
        monkeypatch.setattr(play_module, "FRAME_SECONDS", seconds)
        monkeypatch.setattr(run_module, "MERGING_SHARE", share)
        session = Session(paced(frame), UNPACED)
        session.load(worlds.rows(X))
        session.settings.n_landmarks = 60
        session.settings.max_iter = 60
        if n_clusters is not None:
            session.clusters.set_n_clusters(n_clusters)
        found.append(shown_at_the_end(session))
        # Once more, on the clusters of the first run.
        found.append(shown_at_the_end(session))
    first, *others = found
    for labels, names, merging in others:
        np.testing.assert_array_equal(labels, first[0])
        np.testing.assert_array_equal(names, first[1])
        np.testing.assert_array_equal(merging.tree.levels, first[2].tree.levels)
