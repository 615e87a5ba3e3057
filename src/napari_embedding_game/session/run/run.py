"""One run as a generator of frames that can be paused, resumed, stopped and steered.

A :class:`GameRun` is iterated in one thread (``iter_progress``) and controlled from
another.  Between two frames it waits on one condition, so that every control acts at
once and without polling.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
"""The stage of a minimiser, which plays no game."""
MERGING_SHARE = 0.15
"""Share of the time that may be spent on merging landmarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a run; ``snapshot`` is the newest, None before the first frame."""

    stage: str
    snapshot: Snapshot | None = None
    seconds_left: float | None = None
    merging: LandmarkMerge | None = None
    """The newest merge tree of the landmarks; None before the first."""


PACE, UNPACED = 2.0, 0.0
"""Seconds to which a small game is slowed, so that it can be seen, down to half of them
after a long preparation.  A game that takes longer is never slowed, nor a game of
unknown length.
"""


class _StoppedError(Exception):
    """The run was stopped during the search for neighbours or the start layout."""


@dataclass
class GameRun:
    """The run of one game on rows of numbers; iterate ``iter_progress`` once."""

    make_X: Callable[[], Any]
    """Returns the rows (n, D); called where neighbours are searched, and not kept."""
    settings: Settings
    engine: Any = core_engine
    """The module :mod:`~.run.engine`, or an object with its functions."""
    pace: float = PACE
    warm_start: WarmStart | None = None
    """The map from which the run continues; None for a start layout of its own."""
    edges: Any = None
    """The edges: given where they are known from another run, else set by this run."""
    make_second: Callable[[], Any] | None = None
    """Returns the rows of the second space, (n, E); None for one space."""

    def __post_init__(self) -> None:
        self._turn = threading.Condition()
        self.played = live_run.Run(self._start_game, self.settings)
        """The game with the settings and forces that were sent to it."""
        self.paused = False
        """Whether the run waits, or will wait after the present frame."""
        self.stopped = False
        """Whether the run has to end."""

    # Controls: from any thread, answered within one piece of work.

    def pause(self) -> None:
        """Pause after the frame that is being computed."""
        self._set_and_notify(paused=True)

    def resume(self) -> None:
        """Resume a paused run."""
        self._set_and_notify(paused=False)

    def stop(self) -> None:
        """End ``iter_progress`` after the block of work that is being computed."""
        self._set_and_notify(stopped=True)

    def steer(
        self, settings: Settings | None = None, forces: HandForces | None = None
    ) -> None:
        """Send settings, or forces of a hand, that act from the next frame on.

        Settings or forces that were sent before and not taken up yet are replaced; None
        leaves them.  A run that waits at its end goes on.
        """
        self.played.steer(settings, forces)
        self._set_and_notify()

    def _set_and_notify(self, **state: Any) -> None:
        """Set attributes of the run, and wake the thread that iterates it."""
        with self._turn:
            vars(self).update(state)
            self._turn.notify_all()

    # The run itself: in the thread that iterates it.

    def iter_progress(self) -> Iterator[Progress]:
        """Yield the stages of the preparation, then the snapshots of the game.

        While earlier work still computes, a first stage says so.  A run that continues
        from a map with known edges needs no preparation.  When the schedule has ended
        the iterator waits for new settings, with which the game continues, or for
        ``stop``.
        """
        begun = time.monotonic()
        if COMPUTING.locked():  # a stopped run still ends its block of work
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
        """Find the edges and the start layout; yield a progress before each of both.

        Raises _StoppedError: the run was stopped meanwhile.
        """
        yield Progress(stage=NEIGHBORS)
        with self._hold_computing_lock():
            X = self.make_X()
            graph = self.engine.find_neighbors(X, self.settings)
        yield Progress(stage=PLACING)
        with self._hold_computing_lock():
            second_X = None if self.make_second is None else self.make_second()
            self.edges, self._layout = self.engine.make_edges_and_layout(
                graph, X, self.settings, self.warm_start, second_X
            )
        coordinates = getattr(self.edges, "coordinates", None)
        if coordinates is not None:  # they would keep the rows as long as the run
            coordinates = replace(coordinates, X=self.make_X)
            self.edges = replace(self.edges, coordinates=coordinates)

    def find_edges(self, settings: Settings) -> Any:
        """Return the edges by which settings play the game; None before they exist."""
        edges = self.edges
        return None if edges is None else edges.mix_by_share(settings.second_share)

    @contextmanager
    def _hold_computing_lock(self) -> Iterator[None]:
        """Hold the lock of all computing; raise _StoppedError if the run is stopped.

        This is checked before, after and between the blocks of work.
        """

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
        """Return the generator of the game, as :class:`~.live_run.Run` needs it."""
        play = self.engine.play_game
        game: Game = play(self.edges, self._layout, settings, self.warm_start)
        return game

    def _iter_game_progress(
        self, snapshot: Snapshot | None, duration: float
    ) -> Iterator[Progress]:
        """Yield the progress of each frame, from a first snapshot on.

        Between frames it waits as :meth:`_wait_for_turn` does. ``duration``: seconds to
        which the game is slowed.
        """
        clock, regroup = Clock(duration), _MergeUpdater(self)
        while snapshot is not None:
            yield Progress(
                stage=PLAYING if is_game(self.settings) else MOVING,
                snapshot=snapshot,
                seconds_left=clock.estimate_seconds_left(snapshot),
                merging=regroup.update(snapshot),
            )
            self._wait_for_turn(snapshot, clock)
            snapshot = self._advance_game()

    def _advance_game(self) -> Snapshot | None:
        """Return the next snapshot; None where the game has ended or is stopped."""
        if self.stopped:
            return None
        with COMPUTING:
            return self.played.advance()

    def _wait_for_turn(self, snapshot: Snapshot, clock: Clock) -> None:
        """Wait while the run is ahead of its pace, paused or finished.

        After a pause or the end of a schedule the clock is restarted.
        """
        with self._turn:
            self._turn.wait_for(
                lambda: self.stopped or self.paused,
                timeout=clock.compute_seconds_ahead(snapshot),
            )
            held = not self._can_continue(snapshot)
            self._turn.wait_for(lambda: self._can_continue(snapshot))
            if held:
                clock.restart(snapshot)

    def _can_continue(self, snapshot: Snapshot) -> bool:
        """Return whether the run need not wait: stopped, or not paused nor finished.

        A finished game that has been steered since is not finished.
        """
        is_over = snapshot.finished and not self.played.has_pending_steer
        return self.stopped or not (is_over or self.paused)


class _MergeUpdater:
    """Updates the merge tree of the landmarks, for a small share of the time.

    During a game a merge tree is built to resemble the tree before, so that clusters
    change little.  The last tree of a schedule is built without the tree before, so
    that it depends on data, settings and seed only.
    """

    def __init__(self, run: GameRun) -> None:
        self._run = run
        self._merging: LandmarkMerge | None = None
        self._labels: Any = None
        self._n_landmarks, self._due = 0, 0.0

    def update(self, snapshot: Snapshot) -> LandmarkMerge | None:
        """Return the newest merge tree, updated if need be.

        It is updated where

        - the schedule has ended, or the number of landmarks has changed
        - labels have changed, and the share of time allows it
        """
        begun, n_landmarks = time.monotonic(), len(snapshot.landmarks)
        is_due = snapshot.labels is not self._labels and begun >= self._due
        if snapshot.finished:
            self._merging = None
        if snapshot.finished or is_due or n_landmarks != self._n_landmarks:
            self._labels, self._n_landmarks = snapshot.labels, n_landmarks
            steered, run = self._run.played.steered, self._run
            edges = run.find_edges(steered[-1][1] if steered else run.settings)
            with COMPUTING:
                self._merging = run.engine.merge_landmarks(
                    edges, snapshot.labels, n_landmarks, self._merging
                )
            now = time.monotonic()
            self._due = now + (now - begun) / MERGING_SHARE
        return self._merging


class Clock:
    """Keeps the pace of a game and estimates the time left, without pauses.

    ``duration``: seconds to which the first schedule is slowed.
    """

    def __init__(self, duration: float) -> None:
        self._duration, self._each = duration, 0.0
        self._begun: float | None = None
        self._first = 0
        self._halves = ((0.0, 0), (0.0, 0))
        """Seconds and iterations since the beginning, at two moments; the second has
        at least twice the iterations of the first."""

    def restart(self, snapshot: Snapshot) -> None:
        """Count time and iterations from this snapshot on, as after a pause."""
        self._begun, self._first = time.monotonic(), snapshot.iteration
        self._halves = ((0.0, 0), (0.0, 0))

    def compute_seconds_ahead(self, snapshot: Snapshot) -> float:
        """Return the seconds by which the game is ahead of its pace, at least 0.

        The first call starts the clock and sets the pace for good; a first schedule of
        unknown length has none.
        """
        if self._begun is None:
            self.restart(snapshot)
            # The pace of the first schedule also holds for what is played after.
            self._each = self._duration / (snapshot.n_iter or math.inf)
        passed, done = self._measure_elapsed(snapshot)
        return max(0.0, self._each * done - passed)

    def estimate_seconds_left(self, snapshot: Snapshot) -> float | None:
        """Estimate the seconds left from at least the last half of what was played.

        A call may also note the time of ``snapshot``: it does so whenever the
        iterations have doubled since the last note.  Early iterations are left out, as
        loops are compiled during them.  Each iteration left counts for at least the
        seconds of the pace.  None before the second note, or if the length of the
        schedule is unknown.
        """
        passed, done = self._measure_elapsed(snapshot)
        if done >= 2 * self._halves[1][1]:
            self._halves = self._halves[1], (passed, done)
        seconds, n = self._halves[0]
        if not 0 < n < done or not snapshot.n_iter:
            return None
        each = max((passed - seconds) / (done - n), self._each)
        return each * (snapshot.n_iter - snapshot.iteration)

    def _measure_elapsed(self, snapshot: Snapshot) -> tuple[float, int]:
        """Return the seconds and the iterations since the beginning; 0 before."""
        if self._begun is None:
            return 0.0, 0
        return time.monotonic() - self._begun, snapshot.iteration - self._first
