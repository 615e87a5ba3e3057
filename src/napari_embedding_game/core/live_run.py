"""A running game as an object: iterate its snapshots, and steer it.

``play._Driver.steer`` takes up what is sent here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from napari_embedding_game.core.interrupts import delay_interrupts
from napari_embedding_game.core.settings import (
    Settings,
    replace_steerable,
    validate_takes_hand_forces,
)
from napari_embedding_game.core.snapshot import HandForces, Snapshot, Steer

if TYPE_CHECKING:
    from napari_embedding_game.core.dynamics.play import Playing


class Run:
    """A game that is played while it is iterated, and steered from any thread.

    A change acts from the next snapshot on, the newest wins.  At the end of the
    schedule the iteration ends; after another change it can be iterated again, and
    plays on.  Left early (``break``, :meth:`stop`, Ctrl-C), the last snapshot is the
    fit.  ``settings`` are those at the start, ``steered`` and ``forced`` the later
    settings and forces, with their iterations.
    """

    def __init__(
        self,
        begin: Callable[[Settings, Callable[[int], int]], Playing],
        settings: Settings,
        changed: Callable[[dict[str, Any]], Settings] | None = None,
        keep: Callable[[Snapshot, Settings], None] | None = None,
        script: Mapping[int, Steer] | None = None,
        stop_at: int | None = None,
        shape: tuple[int, int] | None = None,
        every: int = 0,
    ) -> None:
        self.settings, self._shape = settings, shape
        self.snapshot: Snapshot | None = None
        self.steered: list[tuple[int, Settings]] = []
        self.forced: list[tuple[int, HandForces]] = []
        self._begin, self._changed, self._keep = begin, changed, keep
        self.script, self._stop_at = dict(script or {}), stop_at
        self._every = every
        self._playing: Playing | None = None
        self._is_stopped = self._is_leaving = False
        self._wish = Steer()
        self._wishing, self._computing = threading.RLock(), threading.RLock()

    def set(self, **parameters: Any) -> None:
        """Change parameters of ``STEERABLE`` in the run: ``run.set(repulsion=700)``.

        InputError: the parameter cannot change on the way, or is out of range.
        """
        assert self._changed is not None
        with self._wishing:
            self.steer(self._changed(parameters))

    def hold(self, forces: HandForces) -> None:
        """Let a hand act on the points, instead of what it did: drag, pin, let go.

        ``HandForces(holds=(Hold(rows=numbers, places=positions),))`` pins rows, a
        ``Spring(rows=numbers, place=position)`` draws their mean, a ``LandmarkHold``
        holds a landmark (all of ``core.snapshot``), and ``HandForces()`` lets go.
        InputError: the method is no game, there are no such rows, or a position is off
        the map.
        """
        import torch

        from napari_embedding_game.core.dynamics.hand import AppliedForces

        assert self._shape is not None
        validate_takes_hand_forces(self.settings)
        given = torch.zeros(self._shape)
        AppliedForces(forces, given, self._shape[1], None, 1)  # refuses at once
        self.steer(forces=forces)

    def steer(
        self, settings: Settings | None = None, forces: HandForces | None = None
    ) -> None:
        """Play on with these settings or forces."""
        with self._wishing:
            if settings is not None:
                settings = replace_steerable(self.settings, settings)
            wish = self._wish
            forces = wish.forces if forces is None else forces
            self._wish = Steer(settings=settings or wish.settings, forces=forces)

    @property
    def has_wish(self) -> bool:
        """Whether a wish waits to be taken up."""
        return bool(self._wish)

    def __iter__(self) -> Iterator[Snapshot]:
        """Yield snapshots to the end of the schedule, or until :meth:`stop`."""
        try:
            while (snapshot := self.advance()) is not None:
                yield snapshot
        finally:
            self._settle()

    def advance(self, look: bool = False) -> Snapshot | None:
        """Play up to the next snapshot; None at the end, unless it has a wish.

        ``look``: nothing moves, and the snapshot has all of its moment.  Raises
        InputError for what the engine refuses.
        """
        with self._computing, delay_interrupts():
            if self._is_stopped or (self._is_leaving and not look):
                return None
            steer: Steer | None = None
            if self._playing is None:
                with self._wishing:  # what was wished so far holds from the start
                    self.settings = self._wish.settings or self.settings
                    self._wish = replace(self._wish, settings=None)
                self._playing = self._begin(self.settings, self._until_next)
            else:
                steer = Steer(look=True) if look else self._next_wish()
                if steer is None:
                    return None
            try:
                snapshot = self._playing.send(steer or None)
                if snapshot.iteration == self._stop_at and not snapshot.finished:
                    snapshot = self._playing.send(Steer(look=True))
            except BaseException:
                self._is_stopped, self._playing = True, None
                raise
            self.snapshot = snapshot
            return snapshot

    def _next_wish(self) -> Steer | None:
        """Return and note down the newest wish, or the script's; None at the end."""
        assert self.snapshot is not None
        at = self.snapshot.iteration
        planned = self.script.pop(at, Steer())
        self.steer(planned.settings, planned.forces)
        with self._wishing:
            if at == self._stop_at or (self.snapshot.finished and not self.has_wish):
                return None
            wish, self._wish = self._wish, Steer()
        if wish.settings is not None:
            self.steered.append((at, wish.settings))
        if wish.forces is not None:
            self.forced.append((at, wish.forces))
        return wish

    def _until_next(self, done: int) -> int:
        """Return how many iterations may follow until something is to happen."""
        stops = [*self.script, *([] if self._stop_at is None else [self._stop_at])]
        if self._every:  # a snapshot of each so-many-th iteration
            stops.append((done // self._every + 1) * self._every)
        return min((stop - done for stop in stops if stop > done), default=0)

    def _settle(self) -> None:
        """Let the last snapshot have all of its moment, and be the fit."""
        with self._computing, delay_interrupts():
            if self.snapshot is None or self._playing is None:
                return
            if not (self.snapshot.finished or self.snapshot.iteration == self._stop_at):
                self.advance(look=True)
            if self._keep is not None:
                last = self.steered[-1][1] if self.steered else self.settings
                self._keep(self.snapshot, last)

    def stop(self) -> None:
        """End here: the last snapshot is the fit."""
        self._is_leaving = True  # whoever iterates leaves the lock
        with self._computing:  # else another thread plays on in between
            self._settle()
            self.close()

    def close(self) -> None:
        """End without another look."""
        with self._computing:
            self._is_stopped = True
            if self._playing is not None:
                self._playing.close()
                self._playing = None
