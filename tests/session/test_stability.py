"""The map of a session made again with other seeds."""

import anndata
import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.stability import (
    COLUMN,
    ONLY_AT_REST,
    stability_job,
    take_stability,
)
from worlds import play, session_of


def end_of(stages):
    told = []
    while True:
        try:
            told.append(next(stages))
        except StopIteration as end:
            return told, end.value


@pytest.fixture
def played(dataset):
    session = session_of(dataset, max_iter=30)
    play(session)
    session.stop()
    return session


def test_it_becomes_a_column_and_leaves_the_map_alone(played, tmp_path):
    before, embedding = played.snapshot, played.snapshot.embedding.copy()
    heard = []
    played.columns_changed.connect(lambda: heard.append(1))
    told, found = end_of(stability_job(played, 2)())
    assert [one.share for one in told] == sorted(one.share for one in told)
    assert told[0].share == 0
    assert found[1].kept.shape == (2, len(embedding))
    assert take_stability(played, *found)
    assert heard == [1]
    assert played.snapshot is before
    np.testing.assert_array_equal(played.snapshot.embedding, embedding)
    column = played.dataset.obs[COLUMN]
    np.testing.assert_array_equal(column, found[1].of_points)
    assert take_stability(played, *found)  # again: the column is replaced
    assert list(played.dataset.obs.columns).count(COLUMN) == 1
    write(played.dataset, played.result(), tmp_path / "map.h5ad")
    written = anndata.read_h5ad(tmp_path / "map.h5ad").obs[COLUMN]
    np.testing.assert_allclose(written.dropna(), column)


def test_the_other_maps_are_those_of_the_next_seeds(played, dataset):
    from napari_embedding_game.core.inspect.compare import neighbors_kept

    _, found = end_of(stability_job(played, 2)())
    seed = played.settings.random_state + 2
    play(other := session_of(dataset, max_iter=30, random_state=seed))
    kept = neighbors_kept(played.snapshot.embedding, other.snapshot.embedding)
    np.testing.assert_array_equal(found[1].kept[1], kept)


def test_where_it_cannot_be_told_a_sentence_says_why(dataset, engine):
    session = Session(engine)
    with pytest.raises(DataError, match="no map yet"):
        stability_job(session)
    session.load(dataset)
    run = session.begin()
    with pytest.raises(DataError) as told:
        stability_job(session)
    assert str(told.value) == ONLY_AT_REST
    run.stop()
