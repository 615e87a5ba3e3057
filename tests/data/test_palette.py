"""Colours of many groups: told apart, also by eyes that lack red or green cones."""

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from napari_embedding_game.data import palette


@pytest.fixture(autouse=True)
def usual_palette():
    yield
    palette.choose(palette.USUAL)


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [
        (palette.USUAL, 30, 8.0),
        (palette.USUAL, 50, 6.0),
        (palette.COLOR_BLIND, 30, 5.0),
    ],
)
def test_thirty_groups_are_told_apart(name, n, least):
    palette.choose(name)
    colors = palette.category_colors(n)
    one, other = np.triu_indices(n, 1)
    lab = rgb2lab(colors[None, :, :3].astype(float))[0]
    assert deltaE_ciede2000(lab[one], lab[other]).min() > least
    for eyes in palette.EYES[name]:
        seen = palette.as_seen_by(colors[:, :3].astype(float), eyes)
        assert np.linalg.norm(seen[one] - seen[other], axis=1).min() > 0.05
    np.testing.assert_array_equal(palette.category_colors(5), colors[:5])
