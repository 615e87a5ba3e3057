"""Points into pixels: the same as discs that are worked out plainly."""

import numpy as np
import pytest

from napari_embedding_game.ui.pixels import paint_discs

SHAPE = 30, 40
SAME = (1.0, 0.0), (1.0, 0.0)


def by_numpy(positions, sizes, colors, opacity):
    """Paint discs one after another over the whole picture."""
    row, column = np.indices(SHAPE) + 0.5
    picture = np.zeros((*SHAPE, 4))
    for (y, x), size, color in zip(positions, sizes, colors, strict=True):
        distance = np.hypot(row - y, column - x)
        radius = max(size / 2, 0.5)
        share = np.clip(radius + 0.5 - distance, 0, 1) * color[3] * opacity
        top = np.append(color[:3], 1.0) * 255
        picture = picture * (1 - share[..., None]) + share[..., None] * top
    return picture


@pytest.mark.parametrize("opacity", [1.0, 0.6])
def test_discs_lie_over_one_another_with_smooth_edges(opacity):
    rng = np.random.default_rng(0)
    positions = rng.uniform(-5, 45, (60, 2))
    sizes, colors = rng.uniform(0, 9, 60), rng.random((60, 4))
    drawn = paint_discs(positions, sizes, colors, SAME, SHAPE, opacity=opacity)
    expected = by_numpy(positions, sizes, colors, opacity)
    # Each disc rounds down once: after some over one another a few of 255.
    assert np.abs(drawn - expected).max() < 6
    assert np.abs(drawn - expected).mean() < 1.5
