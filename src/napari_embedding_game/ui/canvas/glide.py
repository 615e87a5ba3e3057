"""Let the points of a slow game glide from each frame to the next."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer

from napari_embedding_game.core.types import Snapshot

SLOW_SECONDS = 0.2
"""Points glide where frames come no sooner than this after one another."""
LONGEST_SECONDS = 3.0
"""Time that a glide takes at most: then the points wait for the next frame."""
STEP_MS = 30
"""Between two pictures of a glide, and longer where a picture takes half of it."""

Move = Callable[[NDArray[np.floating], NDArray[np.floating]], bool]


class Glide(QObject):
    """Draws snapshots, and what lies between them where they come seldom.

    A million points take a second for an iteration: a map that jumps once a second
    cannot be followed by eye.  Between two frames the points go straight from one to
    the other; what is drawn is so much behind the game as a frame takes.  When the game
    rests, its last frame is drawn at once.

    Parameters
    ----------
    draw : callable
        Draws a snapshot, with its colours and all else.
    move : callable
        Draws points (N, d) and landmarks (L, d) elsewhere, in the looks that they have;
        returns whether it did.
    is_quick : callable
        Returns whether the points are drawn quickly enough for more pictures.
    """

    def __init__(
        self,
        draw: Callable[[Snapshot], None],
        move: Move,
        is_quick: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._draw, self._move, self._is_quick = draw, move, is_quick
        self._last = -math.inf
        """When the last frame came."""
        self._from: Snapshot | None = None
        self._to: Snapshot | None = None
        self._begun = self._seconds = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._step)

    @property
    def is_gliding(self) -> bool:
        """Whether points are on the way to where a snapshot has them."""
        return self._timer.isActive()

    def show(self, snapshot: Snapshot) -> None:
        """Draw a frame of a game, or begin to glide to it."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        here = self._here(now)
        self._timer.stop()
        self._from, self._to = here, snapshot
        if here is None or not self._can_glide(here, snapshot, passed):
            self._from = None
            self._draw(snapshot)
            return
        self._begun, self._seconds = now, min(passed, LONGEST_SECONDS)
        places = {"embedding": here.embedding, "landmarks": here.landmarks}
        self._draw(replace(snapshot, **places))
        self._timer.start(STEP_MS)

    def settle(self) -> None:
        """Draw the last frame where it is, as the game rests."""
        was_gliding, snapshot = self.is_gliding, self._to
        self.forget()
        if was_gliding and snapshot is not None:
            self._draw(snapshot)

    def forget(self) -> None:
        """Leave the points where they are: another map follows, or none."""
        self._timer.stop()
        self._last = -math.inf
        self._from = self._to = None

    # Inside

    def _can_glide(self, here: Snapshot, there: Snapshot, passed: float) -> bool:
        return (
            SLOW_SECONDS <= passed < math.inf
            and not there.finished
            and here.embedding.shape == there.embedding.shape
            and here.landmarks.shape == there.landmarks.shape
            and self._is_quick()
        )

    def _here(self, now: float) -> Snapshot | None:
        """Return the last frame with the places in which its points are drawn."""
        if self._from is None or self._to is None or not self._timer.isActive():
            return self._to
        share = (now - self._begun) / self._seconds
        return _between(self._from, self._to, share)

    def _step(self) -> None:
        self._timer.stop()
        if self._from is None or self._to is None:
            return
        begun = time.monotonic()
        share = (begun - self._begun) / self._seconds
        between = _between(self._from, self._to, share)
        if not self._move(between.embedding, between.landmarks):
            self.forget()
        elif share < 1.0:
            spent = 1000 * (time.monotonic() - begun)
            self._timer.start(round(max(spent, STEP_MS - spent)))


def _between(first: Snapshot, second: Snapshot, share: float) -> Snapshot:
    """Return the second snapshot with its points on the way from the first."""
    if share >= 1.0:
        return second
    way = np.float32(max(share, 0.0))
    embedding = first.embedding + way * (second.embedding - first.embedding)
    landmarks = first.landmarks + way * (second.landmarks - first.landmarks)
    return replace(second, embedding=embedding, landmarks=landmarks)
