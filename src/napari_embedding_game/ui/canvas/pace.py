"""How many points are painted at once, so that a painting stays within a budget."""

from __future__ import annotations

from napari_embedding_game.ui.tasks.worker import FRAME_SECONDS

BUDGET_SECONDS = FRAME_SECONDS / 3
"""Of a frame that the window paints itself: the rest is for all else it does."""
FIRST_SECONDS = 2e-8
"""For a point, until it has been measured."""
PIXEL = 0.3
"""Work of a pixel of the picture, that of a point being 1."""
LEAST_POINTS = 20_000
"""So many are painted on the slowest machine."""
EASE = 0.3
"""Weight of the newest measurement."""
MOST_SUDDEN = 4.0
"""One painting that takes longer than so many times the usual one counts as that.

It has waited for something, such as a compiler.
"""
SLACK = 1.5
"""More are painted once they would take the budget by this factor less."""


class Pace:
    """Measures each painting, and tells which share of the points comes next.

    The share is a half, a quarter and so on: it changes seldom, and a map that moves
    does not flicker.
    """

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS
        self._stride = 1

    def stride(self, n_points: int, n_pixels: int) -> int:
        """Return that one in so many of the points is to be painted: 1, 2, 4 ..."""
        allowed = BUDGET_SECONDS / self._seconds - PIXEL * n_pixels
        load = n_points / max(allowed, LEAST_POINTS)
        while self._stride < load:
            self._stride *= 2
        while self._stride > 1 and self._stride >= 2 * SLACK * load:
            self._stride //= 2
        return self._stride

    def measured(self, n_points: int, n_pixels: int, seconds: float) -> None:
        """Take up how long so many points on so many pixels took to paint."""
        work = max(n_points + PIXEL * n_pixels, 1.0)
        newest = min(seconds / work, MOST_SUDDEN * self._seconds)
        self._seconds += EASE * (newest - self._seconds)
