"""What is asked about the quality of a session's map."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from napari_embedding_game.core.inspect.quality import (
    count_graph_parts,
    measure_map_quality,
)
from napari_embedding_game.session.quality import (
    find_group_codes,
    make_quality_job,
)
from worlds import play, session_of


def test_the_map_is_compared_by_the_distance_it_was_made_with(engine, dataset):
    session = session_of(dataset, engine, metric="cosine")
    play(session)
    session.settings.metric = "euclidean"  # for the next run
    shot = session.snapshot
    expected = measure_map_quality(
        dataset.X,
        shot.embedding,
        metric="cosine",
        columns={"kind": dataset.obs["kind"].cat.codes.to_numpy()},
        clusters=session.clusters.labels,
    )
    assert expected.clusters.same > expected.clusters.by_chance
    found = make_quality_job(session)()
    parts = count_graph_parts(shot.neighbors, found.parts.n_neighbors)
    told = replace(expected, parts=parts)
    np.testing.assert_equal(asdict(found), asdict(told))
    assert found != measure_map_quality(dataset.X, session.snapshot.embedding)


def test_a_column_of_one_level_and_gaps_is_not_compared(dataset):
    n = len(dataset.obs)
    one, two = pd.Categorical(["A", None] * (n // 2)), pd.Categorical(["A", "B"] * 20)
    dataset = replace(dataset, obs=dataset.obs.assign(one=one, two=two))
    assert {"one", "two"} <= {*dataset.level_columns}
    found = find_group_codes(dataset)
    assert "one" not in found
    assert found["two"].tolist() == [0, 1] * (n // 2)
