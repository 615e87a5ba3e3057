"""What is asked about the quality of a session's map."""

from dataclasses import asdict, replace

import numpy as np

from napari_embedding_game.core.inspect.quality import graph_parts, map_quality
from napari_embedding_game.session.quality import quality_job
from worlds import play, session_of


def test_the_map_is_compared_by_the_distance_it_was_made_with(engine, dataset):
    session = session_of(dataset, engine, metric="cosine")
    play(session)
    session.settings.metric = "euclidean"  # for the next run
    shot = session.snapshot
    expected = map_quality(
        dataset.X,
        shot.embedding,
        metric="cosine",
        columns={"kind": dataset.obs["kind"].cat.codes.to_numpy()},
        clusters=session.clusters.labels,
    )
    assert expected.clusters.same > expected.clusters.by_chance
    found = quality_job(session)()
    parts = graph_parts(shot.neighbors, found.parts.n_neighbors)
    told = replace(expected, parts=parts)
    np.testing.assert_equal(asdict(found), asdict(told))
    assert found != map_quality(dataset.X, session.snapshot.embedding)
