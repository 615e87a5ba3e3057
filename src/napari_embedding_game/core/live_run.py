"""A running game as an object: iterate its snapshots, and steer it.

``play._Driver.steer`` applies the settings and forces that are sent here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from napari_embedding_game.core.interrupts import delay_interrupts
from napari_embedding_game.core.settings import (
    STEERABLE,
    Settings,
    replace_steerable,
    validate_takes_hand_forces,
)
from napari_embedding_game.core.snapshot import HandForces, Snapshot, Steer

if TYPE_CHECKING:
    from napari_embedding_game.core.dynamics.play import Playing


class Run:
    """A game that runs while it is iterated, and can be steered from any thread.

    A change acts from the next snapshot on; the newest change wins.  At the end of the
    schedule the iteration ends; after a later change the run can be iterated again.  If
    the iteration ends early (``break``, :meth:`stop`, Ctrl-C), the last snapshot is the
    fit.  ``settings``: at the start; ``steered`` and ``forced``: lists of later
    settings and forces, each with its iteration; ``snapshot``: the last one.

    Parameters
    ----------
    start_playing : function
        Takes settings, and a function from an iteration to the number of iterations
        that may follow; returns the generator of :func:`play.play`.
    settings : Settings
        The settings at the start.
    change_settings : function, optional
        Takes changed parameters, and returns all settings, for :meth:`set`.
    store_snapshot : function, optional
        Takes the last snapshot and the last settings, to store the fit.
    script : dict of iteration to Steer, optional
        Changes that are applied at these iterations.
    stop_at : int, optional
        Iteration at which the run ends.
    map_shape : (N, d), optional
        Shape of the map, for :meth:`hold`.
    snapshot_every : int, default=0
        Yield a snapshot of each iteration that this number divides; 0 for none.
    """

    def __init__(
        self,
        start_playing: Callable[[Settings, Callable[[int], int]], Playing],
        settings: Settings,
        change_settings: Callable[[dict[str, Any]], Settings] | None = None,
        store_snapshot: Callable[[Snapshot, Settings], None] | None = None,
        script: Mapping[int, Steer] | None = None,
        stop_at: int | None = None,
        map_shape: tuple[int, int] | None = None,
        snapshot_every: int = 0,
    ) -> None:
        self.settings, self._map_shape = settings, map_shape
        self.snapshot: Snapshot | None = None
        self.steered: list[tuple[int, Settings]] = []
        self.forced: list[tuple[int, HandForces]] = []
        self._start_playing = start_playing
        self._change_settings, self._store_snapshot = change_settings, store_snapshot
        self.script, self._stop_at = dict(script or {}), stop_at
        self._snapshot_every = snapshot_every
        self._playing: Playing | None = None
        self._is_stopped = self._is_leaving = False
        self._pending_steer = Steer()
        self._steer_lock, self._compute_lock = threading.RLock(), threading.RLock()

    def set(self, **parameters: Any) -> None:
        """Change parameters during the run: ``run.set(repulsion=700)``.

        They act from the next snapshot on, with the changes made before.  Raises
        InputError for a parameter that is not in :data:`settings.STEERABLE`, or out of
        range.
        """
        assert self._change_settings is not None
        with self._steer_lock:
            self.steer(self._change_settings(parameters))

    def hold(self, forces: HandForces) -> None:
        """Replace the forces by which a person drags and pins points and landmarks.

        ``HandForces(holds=(Hold(rows=rows, places=positions),))`` pins points, a
        ``Spring(rows=rows, place=position)`` pulls their mean to a position, a
        ``LandmarkHold`` holds a landmark (all of ``core.snapshot``), and
        ``HandForces()`` removes all forces.  The forces act from the next snapshot on.
        Raises InputError if the method is no game, rows do not exist, or a position is
        too far away.
        """
        import torch

        from napari_embedding_game.core.dynamics.hand import AppliedForces

        assert self._map_shape is not None
        validate_takes_hand_forces(self.settings)
        points = torch.zeros(self._map_shape)
        # This raises errors here rather than in the thread that computes.
        AppliedForces(
            forces,
            points,
            n_components=self._map_shape[1],
            memory_rows=None,
            iterations_left=1,
        )
        self.steer(forces=forces)

    def steer(
        self, settings: Settings | None = None, forces: HandForces | None = None
    ) -> None:
        """Request new settings or hand forces for the next snapshot; None: no change.

        Of ``settings`` only steerable fields are used.  A request that was not applied
        yet is replaced: settings by settings, forces by forces.
        """
        with self._steer_lock:
            if settings is not None:
                settings = replace_steerable(self.settings, settings)
            pending = self._pending_steer
            forces = pending.forces if forces is None else forces
            settings = settings or pending.settings
            self._pending_steer = Steer(settings=settings, forces=forces)

    @property
    def has_pending_steer(self) -> bool:
        """Whether requested settings or forces have not been applied yet."""
        return bool(self._pending_steer)

    def __iter__(self) -> Iterator[Snapshot]:
        """Yield snapshots until the schedule ends or :meth:`stop`; store the fit."""
        try:
            while (snapshot := self.advance()) is not None:
                yield snapshot
        finally:
            self._store_fit()

    def advance(self, look: bool = False) -> Snapshot | None:
        """Play up to the next snapshot and return it; None at the end of the run.

        The first call begins the game, with pending settings as those of the start.
        The run does not end while a change is pending.  None also at ``stop_at``, and
        once :meth:`stop` was called or an error has stopped the run.

        ``look``: whether no point moves, and the snapshot has complete diagnostics of
        the present state, as has the snapshot at ``stop_at``.  A look is also answered
        at the end of the run, at ``stop_at``, and for the fit that :meth:`stop` stores,
        but not in a stopped run; in the first call it is ignored.

        Raises InputError for settings or data that the game cannot use; any error stops
        the run.
        """
        with self._compute_lock, delay_interrupts():
            if self._is_stopped or (self._is_leaving and not look):
                return None
            steer: Steer | None = None
            if self._playing is None:
                with self._steer_lock:  # pending settings become those of the start
                    self.settings = self._pending_steer.settings or self.settings
                    self._pending_steer = replace(self._pending_steer, settings=None)
                self._playing = self._start_playing(
                    self.settings, self._count_iterations_to_stop
                )
            else:
                steer = Steer(look=True) if look else self._take_next_steer()
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

    def _take_next_steer(self) -> Steer | None:
        """Return the pending change together with the script's for this iteration.

        The change, which may be empty, is recorded in ``steered`` and ``forced`` and is
        no longer pending.  Return None at ``stop_at``, and at the end of the schedule
        if no change is pending.
        """
        assert self.snapshot is not None
        at = self.snapshot.iteration
        with self._steer_lock:
            if planned := self.script.pop(at, Steer()):
                self._pending_steer = self._add_pending_to(planned)
            is_over = self.snapshot.finished and not self.has_pending_steer
            if at == self._stop_at or is_over:
                return None
            steer, self._pending_steer = self._pending_steer, Steer()
        if steer.settings is not None:
            self.steered.append((at, steer.settings))
        if steer.forces is not None:
            self.forced.append((at, steer.forces))
        return steer

    def _add_pending_to(self, planned: Steer) -> Steer:
        """Return a change of the script with the pending change on top of it.

        Where both change a setting or the forces, the pending change wins, as it was
        requested last.  The lock of pending changes must be held.
        """
        pending, settings = self._pending_steer, planned.settings
        if settings is None:
            settings = pending.settings
        else:
            settings = replace_steerable(self.settings, settings)
            if pending.settings is not None:
                before = self.steered[-1][1] if self.steered else self.settings
                wanted = {name: getattr(pending.settings, name) for name in STEERABLE}
                changed = {
                    name: value
                    for name, value in wanted.items()
                    if value != getattr(before, name)
                }
                settings = replace(settings, **changed)
        forces = planned.forces if pending.forces is None else pending.forces
        return Steer(settings=settings, forces=forces)

    def _count_iterations_to_stop(self, done: int) -> int:
        """Return the iterations from ``done`` to the next planned stop; 0 for none.

        Stops: changes of the script, ``stop_at``, multiples of ``snapshot_every``.
        """
        stops = [*self.script, *([] if self._stop_at is None else [self._stop_at])]
        if self._snapshot_every:
            stops.append((done // self._snapshot_every + 1) * self._snapshot_every)
        return min((stop - done for stop in stops if stop > done), default=0)

    def _store_fit(self) -> None:
        """Take a last snapshot with complete diagnostics, and store it as the fit.

        A snapshot that is finished, or of ``stop_at``, is stored itself.  Nothing is
        stored before the first snapshot or after the run was closed.
        """
        with self._compute_lock, delay_interrupts():
            if self.snapshot is None or self._playing is None:
                return
            if not (self.snapshot.finished or self.snapshot.iteration == self._stop_at):
                self.advance(look=True)
            if self._store_snapshot is not None:
                last = self.steered[-1][1] if self.steered else self.settings
                self._store_snapshot(self.snapshot, last)

    def stop(self) -> None:
        """End the run now, and store the last snapshot as the fit.

        Nothing is stored if the run is already closed or has no snapshot.  Waits for
        the step that another thread computes.
        """
        self._is_leaving = True  # so that the iterating thread releases the lock
        with self._compute_lock:  # else another thread may play on in between
            self._store_fit()
            self.close()

    def close(self) -> None:
        """End the run now without storing a fit.

        Waits for the step that another thread computes.
        """
        with self._compute_lock:
            self._is_stopped = True
            if self._playing is not None:
                self._playing.close()
                self._playing = None
