"""Points into pixels: the same as discs, and as counts, that are worked out plainly."""

import numpy as np
import pytest

from napari_embedding_game.ui.pixels import (
    FAINTEST_ABOVE,
    paint_density,
    paint_discs,
)

SHAPE, FEW = (30, 40), (4, 6)
RED, GREEN, BLUE = (1.0, 0, 0, 1), (0, 1.0, 0, 1), (0, 0, 1.0, 1)
SAME = (1.0, 0.0), (1.0, 0.0)


def paint(positions, sizes, colors, lines=SAME, **options):
    positions = np.atleast_2d(np.asarray(positions, float))
    sizes = np.broadcast_to(np.asarray(sizes, float), len(positions))
    colors = np.broadcast_to(np.asarray(colors, float), (len(positions), 4))
    return paint_discs(positions, sizes, colors, lines, SHAPE, **options)


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
    drawn = paint(positions, sizes, colors, opacity=opacity)
    expected = by_numpy(positions, sizes, colors, opacity)
    # Each disc rounds down once: after some over one another a few of 255.
    assert np.abs(drawn - expected).max() < 6
    assert np.abs(drawn - expected).mean() < 1.5


def repeated(*counts_and_colors):
    """Return points in one pixel of the first row after another, and their colours."""
    counts = [n for n, _ in counts_and_colors]
    columns = np.repeat(np.arange(len(counts)), counts)
    positions = np.column_stack([np.full(len(columns), 0.5), columns + 0.5])
    colors = np.repeat([color for _, color in counts_and_colors], counts, axis=0)
    return positions.astype(np.float32), colors.astype(np.float32)


def test_chosen_points_are_not_lost_among_others():
    positions, colors = repeated((500, RED), (500, RED))
    colors[3] = BLUE
    is_above = np.arange(1000) == 3
    drawn = paint_density(positions, colors, SAME, FEW, is_above)
    assert drawn[0, 0, 0] == 0
    assert drawn[0, 0, 2] >= FAINTEST_ABOVE * 255 - 1
    assert drawn[0, 1, 0] == 255
    only = paint_density(positions[3:4], colors[3:4], SAME, FEW, is_above[3:4])
    assert only[0, 0, 2] == drawn[0, 0, 2]
    assert not paint_density(positions[:0], colors[:0], SAME, FEW).any()
