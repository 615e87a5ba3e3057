"""One run as a generator of frames: pause, resume, stop and steer it.

A :class:`Run` is iterated in one thread (``frames``) and controlled from another.
Between two frames it waits on one condition, so that every control answers at once and
nothing spins.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from napari_embedding_game.core import live_run
from napari_embedding_game.core.settings import Settings, is_game
from napari_embedding_game.core.snapshot import HandForces, Snapshot, WarmStart
from napari_embedding_game.core.threads import BETWEEN_BLOCKS, COMPUTING
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.run import engine as core_engine
from napari_embedding_game.session.run.engine import Game

WAITING = "Waiting for earlier work to end"
NEIGHBORS = "Finding neighbours"
PLACING = "Placing the start layout"
PLAYING = "Playing the game"
MOVING = "Moving the points"
"""By a minimiser: there is no game."""
MERGING_SHARE = 0.15
"""Share of the time in which is looked how landmarks can be merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a run; ``snapshot`` is the newest once there is one."""

    stage: str
    snapshot: Snapshot | None = None
    seconds_left: float | None = None
    merging: LandmarkMerge | None = None
    """How the landmarks can be merged, as far as is known by now."""


PACE, UNPACED = 2.0, 0.0
"""Seconds that a small game lasts, so that it can be seen at all; after a long
preparation down to half of them.  A game that takes longer by itself is never slowed,
nor one of which nobody knows how many iterations it has.
"""


class _StoppedError(Exception):
    """The run was stopped while its neighbours were searched or its points placed."""


@dataclass
class Run:
    """The run of one game on the rows of ``X`` (n, D); iterate ``frames`` once."""

    X: Any
    settings: Settings
    engine: Any = core_engine
    """The module that computes, or what has its functions."""
    pace: float = PACE
    warm_start: WarmStart | None = None
    """The map that the run goes on from; None: from the start layout."""
    edges: Any = None
    """Edges of a run that needs no others, where they are known already; then those of
    this run."""

    def __post_init__(self) -> None:
        self._turn = threading.Condition()
        self.played = live_run.Run(self._start_game, self.settings)
        """Settings that were sent to the game, and those that it uses."""
        self.paused = False
        """Whether the run holds, or will after the present frame."""
        self.stopped = False
        """Whether the run is to end."""

    # Controls: from any thread, answered within one piece of work.

    def pause(self) -> None:
        """Hold after the frame now being computed."""
        self._set_and_notify(paused=True)

    def resume(self) -> None:
        """Play on."""
        self._set_and_notify(paused=False)

    def stop(self) -> None:
        """End ``frames`` after the piece of work now being done."""
        self._set_and_notify(stopped=True)

    def steer(
        self, settings: Settings | None = None, forces: HandForces | None = None
    ) -> None:
        """Play on with these settings, or under these forces of a hand.

        From the next frame on; the newest win.
        """
        self.played.steer(settings, forces)
        self._set_and_notify()

    def _set_and_notify(self, **state: Any) -> None:
        with self._turn:
            vars(self).update(state)
            self._turn.notify_all()

    # The run itself: in the thread that iterates it.

    def frames(self) -> Iterator[Progress]:
        """Yield the stages, then the game's snapshots, until stopped.

        When the schedule has ended the iterator waits: new settings make the game play
        on, ``stop`` ends it.
        """
        begun = time.monotonic()
        if COMPUTING.locked():  # what is broken off ends its piece of work
            yield Progress(stage=WAITING)
            with COMPUTING:
                pass
        if self.edges is None or self.warm_start is None:
            try:
                yield from self._prepare()
            except _StoppedError:
                return
        else:
            self._layout = self.warm_start.embedding
        snapshot = self._advance_game()
        self.settings = self.played.settings
        due = 1.75 * self.pace - (time.monotonic() - begun)
        try:
            yield from self._iter_game_progress(
                snapshot, min(self.pace, max(self.pace / 2, due))
            )
        finally:
            self.played.close()

    def _prepare(self) -> Iterator[Progress]:
        """Find the edges and the start layout, unless stopped between two pieces."""
        yield Progress(stage=NEIGHBORS)
        with self._hold_computing_lock():
            graph = self.engine.find_neighbors(self.X, self.settings)
        yield Progress(stage=PLACING)
        with self._hold_computing_lock():
            self.edges, self._layout = self.engine.make_edges_and_layout(
                graph, self.X, self.settings, self.warm_start
            )

    @contextmanager
    def _hold_computing_lock(self) -> Iterator[None]:
        def raise_if_stopped() -> None:
            if self.stopped:
                raise _StoppedError

        raise_if_stopped()
        with COMPUTING:
            before = BETWEEN_BLOCKS.set(raise_if_stopped)
            try:
                yield
            finally:
                BETWEEN_BLOCKS.reset(before)
        raise_if_stopped()

    def _start_game(self, settings: Settings, until_next: Any) -> Game:
        play = self.engine.play_game
        game: Game = play(self.edges, self._layout, settings, self.warm_start)
        return game

    def _iter_game_progress(
        self, snapshot: Snapshot | None, duration: float
    ) -> Iterator[Progress]:
        clock, regroup = Clock(duration), _MergeUpdater(self)
        while snapshot is not None:
            yield Progress(
                stage=PLAYING if is_game(self.settings) else MOVING,
                snapshot=snapshot,
                seconds_left=clock.seconds_left(snapshot),
                merging=regroup.update(snapshot),
            )
            self._wait_for_turn(snapshot, clock)
            snapshot = self._advance_game()

    def _advance_game(self) -> Snapshot | None:
        if self.stopped:
            return None
        with COMPUTING:
            return self.played.advance()

    def _wait_for_turn(self, snapshot: Snapshot, clock: Clock) -> None:
        """Wait until the next frame is due, or the run is to end."""
        with self._turn:
            self._turn.wait_for(
                lambda: self.stopped or self.paused,
                timeout=clock.seconds_ahead(snapshot),
            )
            held = not self._can_continue(snapshot)
            self._turn.wait_for(lambda: self._can_continue(snapshot))
            if held:
                clock.restart(snapshot)

    def _can_continue(self, snapshot: Snapshot) -> bool:
        is_over = snapshot.finished and not self.played.has_wish
        return self.stopped or not (is_over or self.paused)


class _MergeUpdater:
    """Keeps up with how landmarks can be merged, for a small share of the time.

    On the way a merging follows the one before, which steadies what is seen.  The last
    one of a schedule starts from nothing: it is the same for the same data, settings
    and seed.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._merging: LandmarkMerge | None = None
        self._labels: Any = None
        self._n_landmarks, self._due = 0, 0.0

    def update(self, snapshot: Snapshot) -> LandmarkMerge | None:
        """Return the newest merging; it always fits the number of landmarks."""
        begun, n_landmarks = time.monotonic(), len(snapshot.landmarks)
        is_due = snapshot.labels is not self._labels and begun >= self._due
        if snapshot.finished:
            self._merging = None
        if snapshot.finished or is_due or n_landmarks != self._n_landmarks:
            self._labels, self._n_landmarks = snapshot.labels, n_landmarks
            with COMPUTING:
                self._merging = self._run.engine.merge_landmarks(
                    self._run.edges, snapshot.labels, n_landmarks, self._merging
                )
            now = time.monotonic()
            self._due = now + (now - begun) / MERGING_SHARE
        return self._merging


class Clock:
    """Keeps the pace of a game and foretells its end, pauses left out."""

    def __init__(self, duration: float) -> None:
        self._duration, self._each = duration, 0.0
        self._begun: float | None = None
        self._first = 0
        self._halves = ((0.0, 0), (0.0, 0))
        """Seconds and iterations since it began, at two looks: at the second twice as
        many iterations were done, or more."""

    def restart(self, snapshot: Snapshot) -> None:
        """Count time and iterations from here: what went before was a pause."""
        self._begun, self._first = time.monotonic(), snapshot.iteration
        self._halves = ((0.0, 0), (0.0, 0))

    def seconds_ahead(self, snapshot: Snapshot) -> float:
        """Return by how many seconds the game is ahead of its pace."""
        if self._begun is None:
            self.restart(snapshot)
            # The pace of the first schedule also holds for what is played after.
            self._each = self._duration / (snapshot.n_iter or math.inf)
        passed, done = self._elapsed(snapshot)
        return max(0.0, self._each * done - passed)

    def seconds_left(self, snapshot: Snapshot) -> float | None:
        """Return the seconds left, None while nothing is known.

        They are foretold by the later iterations: loops are compiled in the first.
        """
        passed, done = self._elapsed(snapshot)
        if done >= 2 * self._halves[1][1]:
            self._halves = self._halves[1], (passed, done)
        seconds, n = self._halves[0]
        if not 0 < n < done or not snapshot.n_iter:
            return None
        each = max((passed - seconds) / (done - n), self._each)
        return each * (snapshot.n_iter - snapshot.iteration)

    def _elapsed(self, snapshot: Snapshot) -> tuple[float, int]:
        """Return the seconds and the iterations since it began; 0 before that."""
        if self._begun is None:
            return 0.0, 0
        return time.monotonic() - self._begun, snapshot.iteration - self._first
