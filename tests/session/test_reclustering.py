"""A selection clustered again: one edit, points where they are, told otherwise."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.reclustering import (
    Reclustered,
    reclustering,
    take_parts,
)
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session

TWO = 2


@pytest.fixture
def session(engine, dataset):
    """A played session whose data are two blobs: even rows and odd ones."""
    X = dataset.X.copy()
    X[::2] += 20
    session = Session(engine, UNPACED)
    session.load(replace(dataset, X=X))
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break
    return session


def test_a_cluster_falls_into_parts_and_keeps_its_name(session):
    session.clusters.merge([0, 1])
    session.clusters.rename(0, "B cells")
    session.selection.select(0)
    before = session.snapshot.embedding.copy()
    ids = take_parts(session, reclustering(session, TWO)())
    assert ids[0] == 0
    assert session.clusters.clustering.by_id[0].name == "B cells"
    labels = session.clusters.labels[:20]
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert set(labels) == set(ids)
    np.testing.assert_array_equal(session.snapshot.embedding, before)
    assert session.clusters.undo_label == "Undo split of B cells"
    session.clusters.undo()
    assert set(session.clusters.labels[:20]) == {0}
    session.clusters.redo()
    np.testing.assert_array_equal(session.clusters.labels[:20], labels)


def test_what_cannot_be_clustered_is_told(session, dataset):
    with pytest.raises(DataError, match="Select clusters or points"):
        reclustering(session, TWO)
    session.selection.select(0)
    rows = session.selection.rows
    one = Reclustered(session.dataset, rows, np.zeros(len(rows), np.int32), 0)
    with pytest.raises(DataError, match="are one cluster"):
        take_parts(session, one)
    find = reclustering(session, TWO)
    session.load(dataset)
    with pytest.raises(DataError, match="Other data were opened"):
        take_parts(session, find())
    with pytest.raises(DataError, match="Press Run first"):
        reclustering(session, TWO)
