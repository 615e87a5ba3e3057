"""What is asked about the quality of a session's map."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.core.inspect.map_quality import map_quality
from napari_embedding_game.session.quality import label_column, quality_job
from napari_embedding_game.session.session import Session


@pytest.fixture
def session(engine, dataset):
    session = Session(engine)
    session.load(dataset)
    return session


def play(session):
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break


def test_without_a_map_or_without_rows_there_is_nothing_to_ask(session, dataset):
    assert quality_job(session) is None
    play(session)
    assert quality_job(session) is not None
    session.restore(
        session.capture(), replace(dataset, X=np.empty((40, 0)), var_names=[])
    )
    assert quality_job(session) is None


def test_the_map_is_compared_by_the_distance_it_was_made_with(session, dataset):
    session.settings.metric = "cosine"
    play(session)
    session.settings.metric = "euclidean"  # for the next run
    shot = session.snapshot
    expected = map_quality(
        dataset.X, shot.embedding, metric="cosine", neighbors=shot.neighbors
    )
    found = quality_job(session)()
    np.testing.assert_equal(found, expected)
    assert found != map_quality(dataset.X, session.snapshot.embedding)


def test_groups_count_and_numbers_and_texts_do_not(session, dataset):
    obs = dataset.obs.assign(
        group=np.arange(40) % 3, number=np.linspace(0, 1, 40), text=list("ab" * 20)
    )
    obs["group"] = obs["group"].astype("category")
    session.load(replace(dataset, obs=obs))
    for color_by, expected in (
        ("Cluster", None),
        ("number", None),
        ("gone", None),
        ("group", "group"),
    ):
        session.look.color_by = color_by
        assert label_column(session) == expected
    play(session)
    assert np.isfinite(quality_job(session)().accuracy)
