"""Colours of many groups: told apart, also by eyes that lack red or green cones."""

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from napari_embedding_game.data import palette

NO_GREEN = np.array(
    [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
)
"""Linear RGB as eyes without green cones see it (Machado and others, 2009)."""


@pytest.fixture(autouse=True)
def usual_palette():
    yield
    palette.choose_palette(palette.USUAL)


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [
        (palette.USUAL, 30, 8.0),
        (palette.USUAL, 50, 6.0),
        (palette.COLOR_BLIND, 30, 5.0),
    ],
)
def test_thirty_groups_are_told_apart(name, n, least):
    palette.choose_palette(name)
    colors = palette.make_palette_colors(n)
    one, other = np.triu_indices(n, 1)
    rgb = colors[:, :3].astype(float)
    without_green = np.clip(rgb**2.2 @ NO_GREEN.T, 0, 1) ** (1 / 2.2)
    for seen in [rgb, without_green][: 1 + (name == palette.COLOR_BLIND)]:
        lab = rgb2lab(seen[None])[0]
        assert deltaE_ciede2000(lab[one], lab[other]).min() > least
    np.testing.assert_array_equal(palette.make_palette_colors(5), colors[:5])
    for given, seen in (("yellow", "#e9e900"), ("navy", "#4444c4")):  # on black, white
        assert palette.to_hex_colors(palette.level_colors(["B"], {"B": given})) == [
            seen
        ]
