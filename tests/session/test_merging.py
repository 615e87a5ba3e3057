import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.dynamics import play as play_module
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.run import run as run_module
from napari_embedding_game.session.run.engine import CoreEngine
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session


@pytest.fixture(scope="module")
def blobs():
    """Four blobs on two landmarks each, and a ninth landmark without points."""
    X, truth = make_blobs(400, 5, centers=4, cluster_std=0.5, random_state=1)
    halves = np.empty_like(truth)
    for blob in range(4):
        inside = truth == blob
        halves[inside] = 2 * blob + (X[inside, 0] > np.median(X[inside, 0]))
    found = edges(knn_graph(X.astype(np.float32), 8), "fuzzy")
    return found, halves.astype(np.int32), truth


def test_landmarks_of_a_blob_come_together(blobs):
    weighted, labels, truth = blobs
    merging = Merging.of(weighted, labels, 9)
    clusters = merging.cut(4)
    assert clusters[8] == -1
    of_points = clusters[labels]
    assert len(set(zip(truth.tolist(), of_points.tolist(), strict=True))) == 4


class Paced(CoreEngine):
    """The real engine, of which every iteration is seen, or only the ends."""

    def __init__(self, frame):
        self.frame = frame

    def play(self, edges, layout, settings, warm=None):
        return play(edges, layout, settings, frame_iterations=self.frame)


def shown_at_the_end(session):
    """Labels, names, and how one may go on from there."""
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if progress.snapshot is not None and progress.snapshot.finished:
            break
    return session.clusters.labels, session.clusters.clustering.names, session.merging


@pytest.mark.parametrize("n_clusters", [None, 5])
def test_the_end_of_a_run_does_not_depend_on_its_frames(monkeypatch, n_clusters):
    X, _ = make_blobs(600, 8, centers=9, cluster_std=2.5, random_state=3)
    rows = Dataset.from_rows(
        name="blobs",
        X=X.astype(np.float32),
        obs=pd.DataFrame(index=[f"row{i}" for i in range(len(X))]),
        var_names=list("abcdefgh"),
        space="X",
    )
    found = []
    for seconds, share, frame in ((0.0, 1e9, 1), (1e9, 1e-9, 60)):
        monkeypatch.setattr(play_module, "FRAME_SECONDS", seconds)
        monkeypatch.setattr(run_module, "REGROUPING", share)
        session = Session(Paced(frame), UNPACED)
        session.load(rows)
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


def test_split(blobs):
    weighted, labels, truth = blobs
    merging = Merging.of(weighted, labels, 9)
    two_blobs = np.unique(labels[truth < 2])
    parts = merging.split(two_blobs)
    assert len(set(zip(truth[truth < 2], parts[labels[truth < 2]], strict=True))) == 2
    with pytest.raises(InputError, match="cannot be split"):
        merging.split(two_blobs[:1])
