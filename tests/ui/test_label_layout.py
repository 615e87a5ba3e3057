"""Where the names of clusters stand, and at which zoom."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas.label_layout import (
    opacity,
    zooms_with_room,
)


@pytest.fixture
def crowd():
    """Places of 60 names in a world of 400, and half their sizes in pixels."""
    rng = np.random.default_rng(0)
    widths = rng.uniform(5, 40, 60)
    return rng.uniform(0, 400, (60, 2)), np.column_stack([np.full(60, 9.0), widths])


@pytest.mark.parametrize("zoom", [0.1, 0.7, 1.0, 2.3, 9.0])
def test_names_that_are_seen_never_touch(crowd, zoom):
    places, halves = crowd
    seen = opacity(zoom, zooms_with_room(places, halves)) > 0
    assert seen.sum() > 0
    apart = np.abs(places[seen][:, None] - places[seen][None]) * zoom
    free = (apart >= halves[seen][:, None] + halves[seen][None]).any(axis=2)
    assert (free | np.eye(seen.sum(), dtype=bool)).all()


def test_who_comes_nearer_sees_ever_more(crowd):
    zooms = zooms_with_room(*crowd)
    assert zooms[0] == 0  # the most important is always seen
    strengths = np.array([opacity(z, zooms) for z in np.geomspace(0.01, 100, 80)])
    assert (np.diff(strengths, axis=0) >= 0).all()
    assert 0 < (strengths[20] == 1).sum() < (strengths[60] == 1).sum()
    assert ((strengths > 0) & (strengths < 1)).any()  # softly
