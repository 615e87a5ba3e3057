"""The session: its dataset, run, clusters, selection and settings.

A driver (a window, a notebook, a test) iterates ``begin().iter_progress()`` in
whatever thread it likes and hands each frame to ``receive_frame``; all methods here
are called from one thread, the driver's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from psygnal import Signal

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import (
    STEERABLE,
    Settings,
    fill_affinity,
    fill_approximation_by_size,
    is_game,
    is_within_point_limit,
    needs_new_run,
    replace_steerable,
    validate_continuation,
    validate_takes_hand_forces,
)
from napari_embedding_game.core.snapshot import FloatArray, Snapshot, WarmStart
from napari_embedding_game.core.threads import COMPUTING, limit_threads
from napari_embedding_game.data.column_names import is_cell_type_name
from napari_embedding_game.data.columns import find_axes_by_external_map
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.clusters.state import make_initial_cluster_state
from napari_embedding_game.session.file.saved_map import (
    PlacedOn,
    SavedMap,
    ShownComparison,
)
from napari_embedding_game.session.hand import Hand
from napari_embedding_game.session.run import engine as core_engine
from napari_embedding_game.session.run.record import (
    Moment,
    RunRecord,
    flatten_parameters,
    make_record,
)
from napari_embedding_game.session.run.run import PACE, UNPACED, GameRun, Progress
from napari_embedding_game.session.second_space import (
    list_second_spaces,
    make_second_rows,
)
from napari_embedding_game.session.selection import Selection
from napari_embedding_game.session.settings import ChosenSettings, DisplaySettings
from napari_embedding_game.session.timeline import (
    Mark,
    MarkKind,
    Timeline,
    TimelineState,
    describe_changes,
    to_warm_start,
)
from napari_embedding_game.session.view import View
from napari_embedding_game.session.warm_starts import change_n_dimensions, move_rows

State = Literal[
    "idle", "preparing", "running", "paused", "finished", "stopped", "failed"
]
ACTIVE_STATES: tuple[State, ...] = ("preparing", "running", "paused", "finished")
"""States in which a run can still be steered."""
RESTING_STATES: tuple[State, ...] = ("paused", "finished", "stopped", "failed")
WHOLE_SCHEDULE = 10**9
"""Iterations left of a start from which the game plays its whole schedule, from the
beginning."""


class Session:
    """One dataset with its settings, run, clusters, selection and timeline.

    ``engine``: the module :mod:`~.run.engine`, or an object with its functions.
    ``pace``: seconds that a small game is slowed to, so that its frames can be seen.
    """

    dataset_changed = Signal(object)
    state_changed = Signal(str)
    progressed = Signal(object)
    message_changed = Signal(str)
    staleness_changed = Signal(bool)
    restored = Signal(object)
    """Emits the :class:`SavedMap` that was restored, with its view."""
    mark_shown = Signal(object)
    """Emits the :class:`Mark` whose layout is on show now."""
    columns_changed = Signal()
    """Columns of the metadata were added or changed, such as the score of a gene set,
    or the rows are other objects of an image that was edited."""
    play_wanted = Signal(object)
    """Emits a function that returns the run which a person wants to be played.

    ``Controller.play`` of the window hears it."""

    def __init__(self, engine: Any = None, pace: float = PACE) -> None:
        self.settings = ChosenSettings()
        self.clusters = Clusters()
        self.selection = Selection()
        self.look = DisplaySettings()
        self.dataset: Dataset | None = None
        self.state: State = "idle"
        self.run: GameRun | None = None
        self.snapshot: Snapshot | None = None
        self.merging: LandmarkMerge | None = None
        """The merge tree of the landmarks; None before the first frame."""
        self._source: GameRun | Moment | None = None
        """The run, the mark or the stored map that ``snapshot`` belongs to."""
        self.sent_settings = Settings()
        """The settings that were last sent to ``run``."""
        self.placed_on: PlacedOn | None = None
        """The map of a reference on which the points were placed; None without one."""
        self._initial_settings = Settings()
        """The chosen settings with which ``run`` was begun."""
        self.timeline = Timeline()
        self.hand = Hand(self)
        self.view = View(self)
        self.comparisons: tuple[ShownComparison, ...] = ()
        """Comparisons of groups of points that were kept or saved in the Inspector."""
        self.given_map = ""
        """Key in ``given_maps`` of the map that method "given" shows; "": the first."""
        self.message = ""
        self._map_message = ""
        """The latest message on the map on show."""
        self.remedy: Mapping[str, Any] = {}
        """Settings that solve the problem in the message; empty where unknown."""
        self.stale = False
        """Whether the map needs a new run to agree with the chosen settings."""
        self._engine = engine or core_engine
        self.pace = pace
        self.settings.changed.connect(self._on_setting_changed)
        self.clusters.changed.connect(self._on_clusters_changed)
        self.selection.changed.connect(self.clusters.fix_numbers, max_args=0)

    def load(self, dataset: Dataset | None) -> None:
        """Replace the dataset, and clear everything that belongs to the former one.

        The run is stopped; run, timeline, clusters, selection, comparisons, forces and
        message are dropped.  Settings stay, but the method "given" becomes "game".
        Emits ``dataset_changed``. ``dataset``: None for no data.
        """
        self.stop()
        self.run = self.snapshot = self.merging = None
        self._source = self.placed_on = None
        self.timeline.restore(TimelineState())
        self.hand.drop_forces()
        self.dataset, self.given_map = dataset, ""
        self.clusters.restore(
            make_initial_cluster_state(
                np.ones(0, bool) if dataset is None else dataset.kept
            )
        )
        self.selection.clear()
        self.comparisons = ()
        if self.settings.method == "given":  # these may have come without a map
            self.settings.choose_method("game")
        if self.settings.second_space not in list_second_spaces(dataset):
            self.settings.second_space = ""
        self.show_message("")
        self._set_state("idle")
        self.dataset_changed.emit(dataset)

    def require_data(self) -> Dataset:
        """Return the dataset; raise DataError if it, or its X, is missing."""
        if self.dataset is None:
            raise DataError("Load some data first: there is nothing to map yet.")
        if not self.dataset.var_names:
            raise DataError(self.dataset.missing_reason)
        return self.dataset

    def shows_dataset(self, dataset: Dataset | None) -> bool:
        """Return whether a dataset is on show; columns that were added do not count."""
        if dataset is None:
            return self.dataset is None
        return dataset.differs_only_in_columns(self.dataset)

    @property
    def is_moving(self) -> bool:
        """Whether a run moves the points or is being prepared."""
        return self.state in ("preparing", "running")

    # The run: one method for each button

    def begin(self) -> GameRun:
        """Stop the active run and return a new run with the chosen settings.

        The map on show is kept as a mark.  Method "given" starts from the given map.

        Raises DataError: there are no data, or, for method "given", no given map.
        """
        self.require_data()
        self.add_mark_if_new("Before Run again")
        is_given = self.settings.method == "given"
        return self._begin_run(self._make_given_map_start() if is_given else None)

    @property
    def given_maps(self) -> dict[str, list[str]]:
        """The columns of coordinates of each map in the metadata, by the map's name."""
        return (
            {} if self.dataset is None else find_axes_by_external_map(self.dataset.obs)
        )

    def _make_given_map_start(self) -> WarmStart:
        """Return the chosen given map as a start, with as many dimensions as it has.

        The first given map is taken where the chosen one does not exist.  Sets
        ``given_map``, and ``n_components`` to the map's, and colours points by their
        kind if nobody has chosen a colour.

        Raises DataError if there is no given map, or if it lacks some of the points.
        """
        maps, data = self.given_maps, self.require_data()
        if not maps:
            raise DataError(
                "These data came without a map: choose another method than "
                f"{get_method('given').title}."
            )
        name = self.given_map if self.given_map in maps else next(iter(maps))
        self.given_map = name
        layout = data.obs[maps[name]].to_numpy(np.float32, na_value=np.nan)
        are_missing = ~np.isfinite(layout).all(axis=1)
        if are_missing.any():
            raise DataError(
                f"The map {name} has no place for {are_missing.sum():,} of the points: "
                "leave these out, or choose the method Embedding game."
            )
        self.settings.n_components = layout.shape[1]
        kinds = [column for column in data.level_columns if is_cell_type_name(column)]
        if kinds and self.look.color_by == DisplaySettings.color_by:
            self.look.color_by = kinds[0]
        return WarmStart(embedding=np.ascontiguousarray(layout), landmarks=layout[:0])

    def continue_run(self, label: str = "") -> GameRun:
        """Stop the active run and return a run that continues from the map on show.

        The run has the chosen settings and is a branch: marks after the map on show
        stay in the timeline.  Neighbours and weights are computed again where other
        ones are chosen.

        ``label``: text of a mark of the map before it changes; "" for a mark only where
        settings have changed.

        Raises DataError or InputError: there is no map, or the chosen settings cannot
        continue from it.
        """
        snapshot = self._require_continuable_map()
        moment, played = self.moment, self.run_record
        is_other = self.stale or (self._shows_stopped_run and self._has_unsent_settings)
        if not label and played is not None and is_other:
            label = describe_changes(played.last_settings, self.resolve_settings())
        if label and moment is not None:
            self.timeline.add_mark(label, "hand", moment)
        self.add_mark_if_new("Before Continue")
        warm, chosen = to_warm_start(snapshot), self.resolve_settings()
        if played is not None and _differs_in_second_space(
            played.last_settings, chosen
        ):
            # As in a running game, see Game.replace_edges.
            warm = replace(warm, iterations_left=WHOLE_SCHEDULE)
        return self._begin_run(warm)

    @property
    def can_continue(self) -> bool:
        """Whether there is a map from which the chosen method can continue."""
        is_fixed = bool(get_method(self.settings.method).make_layouts)
        return self.snapshot is not None and not is_fixed

    def move_cluster(
        self, cluster: int, by: FloatArray, *, is_pinned: bool = False
    ) -> GameRun:
        """Move a cluster, and return a run that continues from there, as a branch.

        The map before the move is added to the timeline, and forces on the points move
        along.

        ``cluster``: id of the cluster. ``by`` (d,) array: shift in units of the map.
        ``is_pinned``: whether a spring holds the cluster there.

        Raises DataError or InputError: there is no map, the cluster has no points, or
        the chosen settings cannot continue from the map.
        """
        snapshot = self._require_continuable_map()
        rows = self.clusters.clustering.rows_in_cluster(cluster)
        if not len(rows):
            raise DataError("This cluster has no points any more: drag another one.")
        if is_pinned:
            validate_takes_hand_forces(self.settings.value)
        self.add_mark(f"{self.clusters.clustering.by_id[cluster].title} moved by hand")
        layout = move_rows(to_warm_start(snapshot), snapshot, rows, by)
        self._stop_and_keep_map()
        self.hand.move_forces(rows, by)
        if is_pinned:
            self.hand.pin_cluster(rows, layout.embedding)
        return self._begin_run(layout)

    def change_dimensions(self, n_components: int) -> GameRun | None:
        """Set the number of dimensions, and return a run that continues from the map.

        The map is added to the timeline and converted by
        :func:`~.warm_starts.change_n_dimensions`, and forces of a hand with it.  While
        a run is prepared, its own start is converted, or, without one, the run is begun
        anew.

        Returns the run to be played; None where the number is the same, where there is
        no map, or where the method makes its layouts without a start.

        Raises DataError: there are no data by which points could be moved.
        """
        if n_components == self.settings.n_components:
            return None
        run, snapshot = self.run, self.snapshot
        layout = None if snapshot is None else to_warm_start(snapshot)
        begins_anew = False
        if run is not None and self.state == "preparing":
            layout, snapshot = run.warm_start, None
            begins_anew = layout is None
        is_fixed = bool(get_method(self.settings.method).make_layouts)
        n_before = n_components if layout is None else layout.embedding.shape[1]
        if layout is None or is_fixed or n_before == n_components:
            self.settings.n_components = n_components
            return self.begin() if begins_anew else None
        self.require_data()
        self.add_mark(f"{n_before} to {n_components} dimensions")
        self.add_mark_if_new("Before Continue")
        self.settings.n_components = n_components
        seed = self.settings.random_state
        changed, transform = change_n_dimensions(layout, n_components, seed, snapshot)
        self._stop_and_keep_map()
        self.hand.transform_forces(transform)
        return self._begin_run(changed)

    def _require_continuable_map(self) -> Snapshot:
        """Return the snapshot on show; raise where no run can continue from it.

        Raises DataError: there are no data, no map, or another number of dimensions is
        chosen. Raises InputError: the chosen settings cannot continue from a map.
        """
        self.require_data()
        snapshot = self.snapshot
        if snapshot is None:
            raise DataError("There is no map to continue from yet: press Run.")
        n_dimensions = snapshot.embedding.shape[1]
        if n_dimensions != self.settings.n_components:
            raise DataError(
                f"This map has {n_dimensions} dimensions, but "
                f"{self.settings.n_components} are chosen: choose {n_dimensions} to "
                "continue from it, or press Run again."
            )
        validate_continuation(self.settings.value)
        return snapshot

    def _begin_run(self, warm: WarmStart | None) -> GameRun:
        """Stop the active run, and set and return a new run, in state "preparing".

        Selection and message are cleared.  Forces of a hand are dropped for a fresh
        start or where the method is no game, else sent to the run.  A branch with
        settings that need the same edges gets those of the former run.

        ``warm``: the layout from which the run branches off; None for a fresh start.
        """
        self._stop_and_keep_map()
        self.timeline.begin_branch(None if warm is None else self.timeline.state.head)
        old, settings, edges = self.run, self.resolve_settings(), None
        if warm is None or not is_game(settings):
            self.hand.drop_forces()
        if warm is not None and old is not None and _has_same_edges(old, settings):
            edges = old.edges
        pace = UNPACED if settings.method == "given" else self.pace
        data, make_second = self.require_data(), None
        if settings.second_space:
            make_second = partial(make_second_rows, data, settings)
        given = self._engine, pace, warm, edges, make_second
        self.run = GameRun(lambda: data.X, settings, *given)
        self.sent_settings, self._initial_settings = settings, self.settings.value
        if self.hand.forces:
            self.run.steer(forces=self.hand.forces)
        self.selection.clear()
        self.show_message("")
        self._set_state("preparing")
        return self.run

    def pause(self) -> None:
        """Pause the run, and mark the layout; nothing happens unless it is running."""
        if self.run and self.state == "running":
            self.run.pause()
            self.add_mark("Paused", "pause")
            self._set_state("paused")

    def resume(self) -> None:
        """Resume the paused run."""
        if self.run and self.state == "paused":
            self.run.resume()
            self._set_state("running")

    def stop(self) -> None:
        """Stop the active run, and mark its last layout, which stays on show.

        Forces that a run without a frame had are replaced by those of the map on show.
        """
        if self.state in ACTIVE_STATES:
            self._stop_run()
            self._end_in_state("stopped")

    def _stop_run(self) -> None:
        """Stop the active run, if any, mark its layout and fix the cluster numbers."""
        if self.active_run:
            self.active_run.stop()
            self.add_mark_if_new("Stopped")
            self.clusters.finish_numbering()
            self._set_state("stopped")

    def _stop_and_keep_map(self) -> None:
        """Stop the active run, if any, and keep the map on show as a moment of its own.

        So the map keeps its record if the next run ends before its first frame.
        """
        self._stop_run()
        self._source = self.moment

    def _end_in_state(self, state: State) -> None:
        """Set the state after a run has ended.

        Where the run never moved the map on show, the forces of this map are restored.
        """
        if isinstance(self._source, Moment):  # the run has never moved it
            self.hand.restore_forces(self._source)
        self._set_state(state)

    # The timeline

    def add_mark(self, label: str, kind: MarkKind = "hand") -> Mark | None:
        """Add the layout on show to the timeline, and return the mark.

        Returns None where there is no map, or where the layout is that of a mark.  Code
        that changes a map other than by settings calls this before the change, so that
        a person can return to the layout.

        ``label``: what is about to happen, or has happened, in a person's words.
        ``kind``: a mark of kind "change" keeps the settings before the change.
        """
        if self.snapshot is None or isinstance(self._source, Mark):
            return None
        settings = self.settings.value
        if kind == "change":
            settings = replace_steerable(settings, self.sent_settings)
        assert self.moment is not None
        return self.timeline.add_mark(
            label, kind, replace(self.moment, settings=settings)
        )

    def add_mark_if_new(self, label: str) -> None:
        """Add the layout on show to the timeline, unless the newest mark has it."""
        newest, current = self.timeline.newest, self.snapshot
        if not (newest and current and newest.snapshot.embedding is current.embedding):
            self.add_mark(label, "end")

    def show_mark(self, number: int) -> None:
        """Show the layout, the settings and the forces of a mark; stop the active run.

        The layout on show is marked first.  The state is "stopped", and ``mark_shown``
        is emitted. :meth:`continue_run` begins a branch from the mark.

        ``number``: of the mark.

        Raises DataError: the mark was removed.
        """
        newest, is_live = self.timeline.newest, self._source is self.run
        if newest and is_live and newest.forces is not self.hand.forces:
            self.add_mark(
                "Left here", "end"
            )  # the newest is from before the hand acted
        self.add_mark_if_new("Left here")
        self.stop()
        mark = self.timeline.show_mark(number)
        self._source, self.snapshot, self.merging = mark, mark.snapshot, mark.merging
        self._apply_settings(mark.settings, self.look)
        self.hand.restore_forces(mark)
        n_landmarks = len(mark.snapshot.landmarks)
        self.clusters.update_from_game(mark.snapshot.labels, n_landmarks, self.merging)
        self.clusters.fix_numbers()
        self._set_state("stopped")
        self._show_map_message()
        self.mark_shown.emit(mark)

    # What the driver reports back

    @property
    def active_run(self) -> GameRun | None:
        """The run that has not ended; None without one."""
        return self.run if self.state in ACTIVE_STATES else None

    def shows_map_of(self, run: GameRun) -> bool:
        """Return whether the map on show was made by this run."""
        return self._source is run

    @property
    def edges(self) -> Any:
        """The edges from which the map on show was made; None where unknown."""
        run, played = self.run, self.run_record
        if run is None or played is None or not _has_same_edges(run, played.settings):
            return None
        return run.find_edges(played.last_settings)

    def receive_frame(self, run: GameRun, progress: Progress) -> None:
        """Show a frame of the active run, and emit ``progressed``.

        A frame of any other run is ignored.  Snapshot, clusters, state and message
        follow the frame; the last frame is marked and its cluster numbers are fixed,
        and a frame that comes after Pause replaces the layout of the mark.
        """
        if run is not self.active_run:
            return
        if progress.snapshot is not None:
            self._update_from_frame(progress)
            if progress.snapshot.finished:
                run.resume()  # at its end it waits by itself, also for other settings
                self.clusters.finish_numbering()
                is_given = self.sent_settings.method == "given"
                self.add_mark(self.given_map if is_given else "Finished", "end")
            elif run.paused:
                assert self.moment is not None
                self.timeline.update_pause(self.moment)
            is_held: State = "paused" if run.paused else "running"
            self._set_state("finished" if progress.snapshot.finished else is_held)
            self._show_map_message()
        self.progressed.emit(progress)

    def note_run_ended(self, run: GameRun) -> None:
        """Set the state to "stopped" if the active run has yielded its last frame."""
        if run is self.active_run:
            self._set_state("stopped")

    def note_run_failed(self, run: GameRun, error: BaseException) -> None:
        """Set the state to "failed" and show the error, with its remedy if it has one.

        The last snapshot stays on show.  The failure of a former run is ignored.
        """
        if run is self.run:
            self._end_in_state("failed")
            self.show_message(error_text(error), getattr(error, "remedy", {}))

    def to_result(self) -> EmbeddingResult | None:
        """Return the map on show as a result to be written.

        None without data, without a map, or where the record of its run is unknown.
        """
        played = self.run_record
        if self.dataset is None or played is None or self.snapshot is None:
            return None
        used = flatten_parameters(played, self.snapshot, self.dataset.space)
        if self.placed_on and self.placed_on.has_layout_of(self.snapshot):
            used["placed_on"] = Path(self.placed_on.reference)
        return EmbeddingResult(self.snapshot, used, self.clusters.clustering)

    @property
    def moment(self) -> Moment | None:
        """The map on show with its settings, record and forces; None without a map.

        Forces are those of the hand, if the map is of the present run; else None.
        """
        run, snapshot = self._source, self.snapshot
        if snapshot is None or not isinstance(run, GameRun):
            return run if isinstance(run, Moment) else None
        return Moment(
            settings=replace_steerable(self._initial_settings, self.sent_settings),
            snapshot=snapshot,
            record=make_record(run, snapshot),
            merging=self.merging,
            forces=self.hand.forces if run is self.run else None,  # of another map yet
        )

    @property
    def run_record(self) -> RunRecord | None:
        """The record of the run up to the snapshot on show; None where unknown."""
        moment = self.moment
        return None if moment is None else moment.record

    @property
    def map_settings(self) -> Settings:
        """Settings of the map on show; the chosen settings where these are unknown."""
        played = self.run_record
        return self.settings.value if played is None else played.settings

    def split_cluster(self, cluster: int, n_parts: int = 2) -> list[int]:
        """Split a cluster along the merge tree of its landmarks; return the parts' ids.

        Raises DataError or InputError: there is no map, or the cluster has fewer
        landmarks than ``n_parts``.
        """
        from napari_embedding_game.core.inspect.clusters import split_cluster

        if self.merging is None or self.snapshot is None:
            raise DataError("Press Run first: a cluster is split along what it finds.")
        rows = self.clusters.clustering.rows_in_cluster(cluster)
        landmarks, indices = np.unique(self.snapshot.labels[rows], return_inverse=True)
        parts = split_cluster(self.merging.tree, landmarks, n_parts)
        return self.clusters.split_into_groups(cluster, rows, parts[indices])

    def make_recluster_job(self, n_parts: int) -> Callable[[], Callable[[], list[int]]]:
        """Return a job, for any thread, that finds clusters among the selected points.

        No point moves.  The job returns a second function, for the session's thread:
        it makes the parts clusters, as one edit, and returns their ids, the largest
        first.  The second function raises DataError where other data are on show by
        now, or where only one part was found.

        Raises DataError: there is no map, nothing is selected, or the data have no
        rows.
        """
        if self.snapshot is None:
            raise DataError("Press Run first: points of a map are clustered.")
        dataset, rows = self.require_data(), self.selection.rows
        if not len(rows):
            raise DataError(
                "Select clusters or points first, for instance with the lasso."
            )
        if dataset.is_distances:
            raise DataError(
                "These data are distances, of which no landmarks can be fitted to a "
                "part: split the cluster instead."
            )
        clusters, settings = self.selection.clusters, self.map_settings
        whole = clusters[0] if len(clusters) == 1 else None
        names = ("n_neighbors", "metric", "random_state")
        options = {name: getattr(settings, name) for name in names}

        def find_parts() -> Callable[[], list[int]]:
            """Cluster the selected rows; return a function that makes them groups."""
            from napari_embedding_game.core.inspect.reclustering import recluster_rows

            with COMPUTING, limit_threads(settings.n_jobs):
                parts = recluster_rows(dataset.X[rows], n_parts, **options)

            def make_groups() -> list[int]:
                """Make the parts groups, as one edit, and return their ids.

                If the points are still one cluster, its largest part keeps its id and
                name.
                """
                if not self.shows_dataset(dataset):
                    raise DataError(
                        "Other data were opened meanwhile: nothing was found."
                    )
                clustering = self.clusters.clustering
                is_same = whole is not None and np.array_equal(
                    clustering.rows_in_cluster(whole), rows
                )  # by now the id may be another cluster's
                return self.clusters.split_into_groups(
                    whole if is_same else None, rows, parts
                )

            return make_groups

        return find_parts

    def add_columns(self, add: Callable[..., tuple[Dataset, str]], *args: Any) -> str:
        """Add columns to the metadata, emit ``columns_changed`` and return their name.

        ``add``: a function such as ``Dataset.with_map_column``: receives the dataset
        and ``args``, and returns the new dataset and the name.
        """
        self.dataset, name = add(self.dataset, *args)
        self.columns_changed.emit()
        return name

    def store_comparison(self, new: ShownComparison) -> None:
        """Add a comparison for the notebook, replacing a comparison of the same key."""
        others = (one for one in self.comparisons if one.key != new.key)
        self.comparisons = (*others, new)

    # To and from a file

    def to_saved_map(
        self, key: str = "", title: str = "", view: Mapping[str, Any] | None = None
    ) -> SavedMap | None:
        """Return the map with all that belongs to it, as it is now; None without data.

        ``key``, ``title``: of the map in the session. ``view``: state of the window
        such as the camera, as values for JSON.
        """
        if self.dataset is None:
            return None
        same = "dataset", "snapshot", "merging", "comparisons", "placed_on", "given_map"
        moment = self.moment
        return SavedMap(
            key=key,
            title=title or self.dataset.name,
            settings=self.settings.value,
            record=None if moment is None else moment.record,
            forces=None if moment is None else moment.forces,
            clusters=self.clusters.state,
            selected=self.selection.clusters,
            drawn=self.selection.points if self.selection.is_of_points else None,
            look=replace(self.look),
            view=dict(view or {}),
            timeline=self.timeline.state,
            **{name: getattr(self, name) for name in same},
        )

    def restore(self, saved: SavedMap) -> None:
        """Replace the present map by a saved map, shown as it was when it was saved.

        The saved run has ended: :meth:`continue_run` continues from its map.  Without
        its data the map can be looked at, and its clusters edited.  Where this raises,
        the map that was open is shown again, its run ended.
        """
        before, chosen = self.to_saved_map(), (self.settings.value, replace(self.look))
        try:
            self._load_saved_map(saved)
        except Exception:
            if before is None:
                self.load(None)
                self._apply_settings(*chosen)
            else:
                self._load_saved_map(before)
            raise

    def _load_saved_map(self, saved: SavedMap) -> None:
        """Load a saved map: data, settings, forces, clusters, timeline and selection.

        With a map the state is "stopped".  Emits ``restored``.
        """
        self.load(saved.dataset)
        self._apply_settings(saved.settings, saved.look)
        self._source, self.snapshot, self.merging = saved, saved.snapshot, saved.merging
        self.placed_on, self.given_map = saved.placed_on, saved.given_map
        self.hand.restore_forces(saved)
        self.comparisons = saved.comparisons
        self.clusters.restore(saved.clusters, saved.snapshot, saved.merging)
        if saved.snapshot is not None:
            self.timeline.restore(saved.timeline)
            current, embedding = self.timeline.current, saved.snapshot.embedding
            if current is not None and current.snapshot.embedding is embedding:
                self._source = current
            self.add_mark_if_new("As it was opened")
            self._set_state("stopped")
        if saved.drawn is not None:
            self.selection.select_points(saved.drawn)
        else:
            by_id = self.clusters.clustering.by_id  # names of a part may have come
            self.selection.select_clusters(c for c in saved.selected if c in by_id)
        self.restored.emit(saved)

    def _apply_settings(self, settings: Settings, look: DisplaySettings) -> None:
        """Set all chosen settings and display settings, emitting their signals."""
        self.settings.update(**asdict(settings))
        for field in fields(look):
            setattr(self.look, field.name, getattr(look, field.name))

    def _update_from_frame(self, progress: Progress) -> None:
        """Set the snapshot of a frame, and update the clusters if need be.

        Clusters are updated if labels, merge tree or number of landmarks have changed.
        """
        previous, snapshot = self.snapshot, progress.snapshot
        assert snapshot is not None
        self.snapshot, self._source = snapshot, self.run
        n_landmarks = len(snapshot.landmarks)
        is_same = previous is not None and previous.labels is snapshot.labels
        is_merged = progress.merging is self.merging
        if is_same and is_merged and n_landmarks == self.clusters.n_landmarks:
            return
        self.merging = progress.merging
        self.clusters.update_from_game(snapshot.labels, n_landmarks, self.merging)

    def _on_clusters_changed(self) -> None:
        """Update the selection, and the message if it is empty or about the map."""
        self.selection.update_labels(self.clusters.labels)
        if self.message in ("", self._map_message):  # not another message
            self._show_map_message()

    def _show_map_message(self) -> None:
        """Show the warning of the map on show, and, at rest, on scattered groups.

        Without either the message is cleared.
        """
        snapshot = self.snapshot
        warning = "" if snapshot is None else snapshot.warning
        parted = (
            "" if self.is_moving else self.clusters.state.describe_scattered_names()
        )
        self._map_message = text = " ".join(filter(None, (warning, parted)))
        self.show_message(text, snapshot.remedy if snapshot and warning else None)

    def _on_setting_changed(self, name: str) -> None:
        """Steer the run by a changed setting where possible, and update staleness.

        If the map on show is of a stopped run, ``play_wanted`` is emitted, to continue
        with the setting. A new number of landmarks drops the forces on landmarks.
        """
        if name == "n_landmarks":
            self.hand.release_landmarks()
        steers = name in STEERABLE and self._has_unsent_settings
        if self.active_run and steers and not self._needs_restart:
            self._steer_run(self.active_run, self.resolve_settings())
        self._update_staleness()
        if self._shows_stopped_run and steers and not self.stale:
            self.play_wanted.emit(self.continue_run)

    def _steer_run(self, run: GameRun, chosen: Settings) -> None:
        """Send settings that act during a game to a run, and mark the change.

        A change soon after another one extends the label of its mark instead.
        """
        settings = replace_steerable(run.settings, chosen)
        snapshot = self.snapshot if self._source is run else None
        text = describe_changes(self.sent_settings, settings)
        if (
            snapshot
            and text
            and not self.timeline.extend_change_label(snapshot, settings)
        ):
            self.add_mark(text, "change")
        self.sent_settings = settings
        run.steer(settings)

    @property
    def _has_unsent_settings(self) -> bool:
        """Whether chosen settings that steer a game were not yet sent to the run."""
        return (
            replace_steerable(self.sent_settings, self.resolve_settings())
            != self.sent_settings
        )

    @property
    def _shows_stopped_run(self) -> bool:
        """Whether the map on show is the last layout of the newest run, now stopped."""
        return self.state == "stopped" and self._source is self.run

    @property
    def _needs_restart(self) -> bool:
        """Whether the run cannot take up the chosen settings without a restart.

        A game can take up settings with the same affinity, within the method's limit of
        points.  Another method can take up no setting that steers a game.  False
        without a run.
        """
        if self.run is None:
            return False
        begun, chosen = self.run.settings, self.resolve_settings()
        if not (is_game(begun) and is_game(chosen)):
            return replace_steerable(begun, chosen) != begun
        has_edges = begun.affinity == chosen.affinity
        n_points = len(self.require_data().obs)
        return not (has_edges and is_within_point_limit(chosen, n_points))

    def resolve_settings(self) -> Settings:
        """Return the chosen settings with automatic values resolved for the data.

        For data that are distances the metric is "precomputed", without a large
        picture or a second space.
        """
        chosen = fill_affinity(self.settings.value)
        if self.dataset is None:
            return chosen
        if self.dataset.is_distances:
            # Distances have no rows of data, which a large picture needs.
            chosen = replace(
                chosen, metric="precomputed", large_picture=0.0, second_space=""
            )
        return fill_approximation_by_size(chosen, len(self.dataset.obs))

    def _update_staleness(self) -> None:
        """Set ``stale``, and emit ``staleness_changed`` if it has changed.

        A map is stale if the chosen settings need a new run; that of the present run
        also if this run cannot take them up.
        """
        is_live = self._source is self.run or self.state in ACTIVE_STATES
        of = self.run if is_live else self.run_record
        # Of a stored map what steers can be changed without another graph.
        stale = of is not None and (
            needs_new_run(of.settings, self.resolve_settings())
            or (is_live and self._needs_restart)
        )
        if stale != self.stale:
            self.stale = stale
            self.staleness_changed.emit(stale)

    def _set_state(self, state: State) -> None:
        """Set the state, emit ``state_changed`` if it is new, and update staleness."""
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)
        self._update_staleness()

    def show_message(
        self, message: str, remedy: Mapping[str, Any] | None = None
    ) -> None:
        """Show a sentence, and the settings that solve its problem; "" clears it.

        Nothing happens where this sentence is on show already.
        """
        if message != self.message:
            self.message, self.remedy = message, remedy or {}
            self.message_changed.emit(message)


def _differs_in_second_space(before: Settings, after: Settings) -> bool:
    """Return whether two settings differ in the second space or in its share."""
    if before.second_space != after.second_space:
        return True
    return bool(after.second_space) and before.second_share != after.second_share


def _has_same_edges(run: GameRun, settings: Settings) -> bool:
    """Return whether settings need the same edges as a run, in any dimensions."""
    begun = replace(run.settings, n_components=settings.n_components)
    return not needs_new_run(begun, settings)


def error_text(error: BaseException) -> str:
    """Return an error as one sentence for the person who uses the program.

    An error of the program itself is shown as it is; other errors get an explanation.
    """
    if isinstance(error, MissingValuesError):
        return error.describe_with_remedy("tick the box below")
    if isinstance(error, InputError | DataError):
        return str(error)
    if isinstance(error, MemoryError):
        return (
            "This computer's memory is not enough for this: embed fewer rows, "
            "or their principal components."
        )
    text = " ".join(str(error).split()) or "no further explanation"
    if isinstance(error, OSError) and "torch" in text:  # on Windows, after some Qt
        return (
            f"torch cannot be loaded here ({text[:300]}): close napari, and open it by "
            "the command napari-embedding-game, which loads torch first."
        )
    return (
        f"Something broke ({type(error).__name__}: {text[:300]}). "
        "What is on the map stays; Run again tries anew."
    )
