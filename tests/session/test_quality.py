"""What is asked about the quality of a session's map."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from napari_embedding_game.core.inspect.quality import (
    ColumnAgreement,
    MapQuality,
    graph_parts,
    map_quality,
)
from napari_embedding_game.session.quality import (
    followed_samples,
    group_columns,
    quality_job,
)
from worlds import play, session_of


@pytest.fixture
def session(engine, dataset):
    return session_of(dataset, engine)


def test_the_map_is_compared_by_the_distance_it_was_made_with(session, dataset):
    session.settings.metric = "cosine"
    play(session)
    session.settings.metric = "euclidean"  # for the next run
    shot = session.snapshot
    expected = map_quality(
        dataset.X,
        shot.embedding,
        metric="cosine",
        columns=group_columns(dataset.obs),
        clusters=session.clusters.labels,
    )
    assert expected.clusters.same > expected.clusters.by_chance
    found = quality_job(session)()
    parts = graph_parts(shot.neighbors, found.parts.n_neighbors)
    told = replace(expected, parts=parts)
    np.testing.assert_equal(asdict(found), asdict(told))
    assert found != map_quality(dataset.X, session.snapshot.embedding)


def test_a_map_that_follows_samples_is_told_apart_from_one_that_follows_kinds():
    kinds = ColumnAgreement("cell_type", 0.95, 0.2)
    of_samples = ColumnAgreement("donor", 0.9, 0.5), ColumnAgreement("day", 0.95, 0.7)
    mixed = ColumnAgreement("donor", 0.6, 0.5)

    def quality(*columns):
        return MapQuality(0.2, 0.9, 0.9, 0.7, 1000, 15, columns=columns)

    assert followed_samples(quality()) is None
    assert followed_samples(quality(kinds, mixed)) is None
    assert followed_samples(quality(kinds, *of_samples)) is of_samples[0]
