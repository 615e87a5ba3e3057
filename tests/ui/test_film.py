"""A film of a run: played again, painted, written."""

import numpy as np
import pytest
from PIL import Image

import worlds
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.session.panels import STRAIGHT
from napari_embedding_game.ui.tasks.film import FRAME_MS, LAST_MS, write_film


@pytest.fixture
def record(dataset):
    session = worlds.session_of(dataset, max_iter=60, n_neighbors=5)
    worlds.play(session)
    return session.run_record


def test_a_film_shows_the_map_grow_or_leaves_no_file(dataset, record, tmp_path):
    path = tmp_path / "run.gif"
    with pytest.raises(InputError):
        write_film(dataset.X[:3], record, np.ones((3, 4)), path, STRAIGHT)
    assert not path.exists()
    colors = np.ones((40, 4), np.float32) * [1, 0, 0, 1]
    write_film(dataset.X, record, colors, path, STRAIGHT)
    times, pictures = [], []
    with Image.open(path) as film:
        for index in range(film.n_frames):
            film.seek(index)
            times.append(film.info["duration"])
            pictures.append(np.asarray(film.convert("RGB")))
    assert len(pictures) > 20
    assert times[-1] >= LAST_MS
    assert sum(times[:-1]) >= 20 * FRAME_MS
    last = pictures[-1].astype(int)
    red = (last[..., 0] > 240) & (last[..., 1:].max(axis=2) < 30)
    assert red.any()
    assert (pictures[-1] == 255).all(axis=2).mean() > 0.5
    assert not np.array_equal(pictures[0], pictures[-1])
