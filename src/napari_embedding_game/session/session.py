"""The session: its dataset, run, clusters, selection and settings.

A driver (a window, a notebook, a test) iterates ``begin().frames()`` in
whatever thread it likes and hands each frame to ``receive``; all methods here
are called from one thread, the driver's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
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
    fill_approximation,
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
from napari_embedding_game.data.columns import axes_by_external_map
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.clusters.state import initial_cluster_state
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
    parameters,
    record,
)
from napari_embedding_game.session.run.run import PACE, UNPACED, Progress, Run
from napari_embedding_game.session.selection import Selection
from napari_embedding_game.session.settings import ChosenSettings, DisplaySettings
from napari_embedding_game.session.timeline import (
    Mark,
    MarkKind,
    Timeline,
    TimelineState,
    change_text,
    to_warm_start,
)
from napari_embedding_game.session.view import View
from napari_embedding_game.session.warm_starts import change_n_dimensions, move_rows

State = Literal[
    "idle", "preparing", "running", "paused", "finished", "stopped", "failed"
]
ALIVE: tuple[State, ...] = ("preparing", "running", "paused", "finished")
"""States in which a run can still be steered."""
RESTING: tuple[State, ...] = ("paused", "finished", "stopped", "failed")


class Session:
    """One dataset, its settings, its run, its clusters and its selection.

    ``engine``: what computes: the module :mod:`~.run.engine`, or what has its
    functions. ``pace``: seconds that a small game is made to last, so that it can be
    seen.
    """

    dataset_changed = Signal(object)
    state_changed = Signal(str)
    progressed = Signal(object)
    message_changed = Signal(str)
    staleness_changed = Signal(bool)
    restored = Signal(object)
    """A :class:`SavedMap` was taken up, with its view."""
    looked_back = Signal(object)
    """The :class:`Mark` whose layout is on show now."""
    columns_changed = Signal()
    """The same rows have other columns, such as the score of a gene set, or are other
    objects of an image that was edited."""
    play_wanted = Signal(object)
    """The function that returns the run which a person wants to be played."""

    def __init__(self, engine: Any = None, pace: float = PACE) -> None:
        self.settings = ChosenSettings()
        self.clusters = Clusters()
        self.selection = Selection()
        self.look = DisplaySettings()
        self.dataset: Dataset | None = None
        self.state: State = "idle"
        self.run: Run | None = None
        self.snapshot: Snapshot | None = None
        self.merging: LandmarkMerge | None = None
        """How the landmarks can be merged; None before the first frame."""
        self._source: Run | Moment | None = None
        """The run that ``snapshot`` is of, or the mark or the stored map."""
        self.steered = Settings()
        """The settings that ``run`` was given last."""
        self.placed_on: PlacedOn | None = None
        """The map of a reference that the points were placed on."""
        self._initial_settings = Settings()
        """What ``run`` was begun with, as it was chosen."""
        self.timeline = Timeline()
        self.hand = Hand(self)
        self.view = View(self)
        self.comparisons: tuple[ShownComparison, ...] = ()
        """Of groups of points, as they were kept or saved in the Inspector."""
        self.given_map = ""
        """Which of ``given_maps`` the method "given" shows; "": the first."""
        self.message = ""
        self._map_message = ""
        """The latest message on the map on show."""
        self.remedy: Mapping[str, Any] = {}
        """Settings that mend what the message says; none where nobody knows any."""
        self.stale = False
        """Whether the run was built from other settings than now chosen."""
        self._engine = engine or core_engine
        self.pace = pace
        self.settings.changed.connect(self._on_setting)
        self.clusters.changed.connect(self._on_clusters)
        self.selection.changed.connect(self.clusters.fix_numbers, max_args=0)

    def load(self, dataset: Dataset | None) -> None:
        """Take up a dataset; a run on the former one is stopped."""
        self.stop()
        self.run = self.snapshot = self.merging = None
        self._source = self.placed_on = None
        self.timeline.restore(TimelineState())
        self.hand.clear()
        self.dataset, self.given_map = dataset, ""
        self.clusters.restore(
            initial_cluster_state(0 if dataset is None else len(dataset.obs))
        )
        self.selection.clear()
        self.comparisons = ()
        if self.settings.method == "given":  # these may have come without a map
            self.settings.choose_method("game")
        self.show_message("")
        self._set_state("idle")
        self.dataset_changed.emit(dataset)

    def data(self) -> Dataset:
        """Return the data; raise DataError where there are none, or not their rows."""
        if self.dataset is None:
            raise DataError("Load some data first: there is nothing to map yet.")
        if not self.dataset.X.shape[1]:
            raise DataError(self.dataset.missing_reason)
        return self.dataset

    def shows_dataset(self, dataset: Dataset | None) -> bool:
        """Return whether a dataset is on show, whatever columns were added since."""
        if dataset is None:
            return self.dataset is None
        return dataset.differs_only_in_columns(self.dataset)

    @property
    def is_moving(self) -> bool:
        """Whether a run moves the points, or is going to."""
        return self.state in ("preparing", "running")

    # The run, as the buttons know it

    def begin(self) -> Run:
        """Stop what is played and return a new run with the present settings.

        The map on show stays in the timeline.
        """
        self.data()
        self.mark_present("Before Run again")
        is_given = self.settings.method == "given"
        return self._begin(self._map_of_data() if is_given else None)

    @property
    def given_maps(self) -> dict[str, list[str]]:
        """Columns of the coordinates of each map that the data came with."""
        return {} if self.dataset is None else axes_by_external_map(self.dataset.obs)

    def _map_of_data(self) -> WarmStart:
        """Return the map that the data came with, coloured by what its points are.

        Raises DataError if there is none, or it has no place for some of the points.
        """
        maps, data = self.given_maps, self.data()
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

    def play_on(self, label: str = "") -> Run:
        """Stop what is played and return a run that goes on from the map on show.

        With the present settings, and as a branch: what came after that map before
        stays in the timeline.  Where other neighbours or weights are chosen than the
        map was made of, they are worked out anew.

        ``label``: what is going to happen to it besides, for a mark of its own.

        Raises DataError or InputError: there is no map, or nothing that can go on from
        it.
        """
        snapshot = self._check_goes_on()
        moment, played = self.moment, self.played
        is_other = self.stale or (self._is_stopped and self._is_steered)
        if not label and played is not None and is_other:
            label = change_text(played.last, self.chosen())
        if label and moment is not None:
            self.timeline.add_mark(label, "hand", moment)
        self.mark_present("Before Continue")
        return self._begin(to_warm_start(snapshot))

    @property
    def can_continue(self) -> bool:
        """Whether the chosen method can go on from the map on show, if there is one."""
        is_fixed = bool(get_method(self.settings.method).moved_by)
        return self.snapshot is not None and not is_fixed

    def move_cluster(
        self, cluster: int, by: FloatArray, *, is_pinned: bool = False
    ) -> Run:
        """Move a cluster, and return a run that goes on from there, as a branch.

        ``cluster``: id of the cluster. ``by`` (d,) array: how far, in units of the
        map. ``is_pinned``: whether a spring holds it there.

        Raises DataError or InputError: there is no map, the cluster has no points, or
        nothing can go on from it.
        """
        snapshot = self._check_goes_on()
        rows = self.clusters.clustering.rows_in_cluster(cluster)
        if not len(rows):
            raise DataError("This cluster has no points any more: drag another one.")
        if is_pinned:
            validate_takes_hand_forces(self.settings.value)
        self.mark(f"{self.clusters.clustering.by_id[cluster].title} moved by hand")
        layout = move_rows(to_warm_start(snapshot), snapshot, rows, by)
        self._end_run()
        self.hand.move_forces(rows, by)
        if is_pinned:
            self.hand.pin_cluster(rows, layout.embedding)
        return self._begin(layout)

    def change_dimensions(self, n_components: int) -> Run | None:
        """Choose the dimensions of the map, and go on in them from the map on show.

        See :func:`~.warm_starts.change_n_dimensions`; what is held by hand goes along.

        Returns what is to be played; None where there is nothing to go on from: no map,
        or a method that always begins anew.

        Raises DataError: the data of the map are not there, so that nothing could move
        its points.
        """
        if n_components == self.settings.n_components:
            return None
        run, snapshot = self.run, self.snapshot
        layout = None if snapshot is None else to_warm_start(snapshot)
        begins_anew = False
        if run is not None and self.state == "preparing":
            layout, snapshot = run.warm_start, None
            begins_anew = layout is None
        is_fixed = bool(get_method(self.settings.method).moved_by)
        n_before = n_components if layout is None else layout.embedding.shape[1]
        if layout is None or is_fixed or n_before == n_components:
            self.settings.n_components = n_components
            return self.begin() if begins_anew else None
        self.data()
        self.mark(f"{n_before} to {n_components} dimensions")
        self.mark_present("Before Continue")
        self.settings.n_components = n_components
        seed = self.settings.random_state
        changed, transform = change_n_dimensions(layout, n_components, seed, snapshot)
        self._end_run()
        self.hand.transform_forces(transform)
        return self._begin(changed)

    def _check_goes_on(self) -> Snapshot:
        """Return the map on show; a run with the present settings can go on from it."""
        self.data()
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

    def _begin(self, warm: WarmStart | None) -> Run:
        """Stop what is played and return a new run, or a branch from a layout."""
        self._end_run()
        self.timeline.begin_branch(None if warm is None else self.timeline.state.head)
        old, settings, edges = self.run, self.chosen(), None
        if warm is None or not is_game(settings):
            self.hand.clear()
        if warm is not None and old is not None and _same_edges(old, settings):
            edges = old.edges
        pace = UNPACED if settings.method == "given" else self.pace
        self.run = Run(self.data().X, settings, self._engine, pace, warm, edges)
        self.steered, self._initial_settings = settings, self.settings.value
        if self.hand.forces:
            self.run.steer(forces=self.hand.forces)
        self.selection.clear()
        self.show_message("")
        self._set_state("preparing")
        return self.run

    def pause(self) -> None:
        """Hold the run."""
        if self.run and self.state == "running":
            self.run.pause()
            self.mark("Paused", "pause")
            self._set_state("paused")

    def resume(self) -> None:
        """Play on."""
        if self.run and self.state == "paused":
            self.run.resume()
            self._set_state("running")

    def stop(self) -> None:
        """End the run; its last snapshot stays."""
        if self.state in ALIVE:
            self._stop_run()
            self._end("stopped")

    def _stop_run(self) -> None:
        if self.playing:
            self.playing.stop()
            self.mark_present("Stopped")
            self.clusters.finish_numbering()
            self._set_state("stopped")

    def _end_run(self) -> None:
        """End the run; the map on show is one of its own if the next never moves."""
        self._stop_run()
        self._source = self.moment

    def _end(self, state: State) -> None:
        if isinstance(self._source, Moment):  # the run has never moved it
            self.hand.restore(self._source)
        self._set_state(state)

    # The timeline

    def mark(self, label: str, kind: MarkKind = "hand") -> Mark | None:
        """Keep the layout on show in the timeline, unless it is of a mark.

        Whoever changes a map by other means than its settings calls this before the
        change, so that a person can come back to what was there.

        ``label``: what is about to happen, or has happened, in a person's words.
        """
        if self.snapshot is None or isinstance(self._source, Mark):
            return None
        settings = self.settings.value
        if kind == "change":
            settings = replace_steerable(settings, self.steered)
        assert self.moment is not None
        return self.timeline.add_mark(
            label, kind, replace(self.moment, settings=settings)
        )

    def mark_present(self, label: str) -> None:
        """Keep the layout on show, unless the newest mark is of it."""
        newest, current = self.timeline.newest, self.snapshot
        if not (newest and current and newest.snapshot.embedding is current.embedding):
            self.mark(label, "end")

    def look_back(self, number: int) -> None:
        """Show the layout and the settings of a mark; what is played is stopped.

        Its run is not played on: :meth:`play_on` begins a branch from here.

        Raises DataError: the mark was forgotten.
        """
        newest, is_live = self.timeline.newest, self._source is self.run
        if newest and is_live and newest.forces is not self.hand.forces:
            self.mark("Left here", "end")  # the newest is from before the hand acted
        self.mark_present("Left here")
        self.stop()
        mark = self.timeline.show_mark(number)
        self._source, self.snapshot, self.merging = mark, mark.snapshot, mark.merging
        self._choose(mark.settings, self.look)
        self.hand.restore(mark)
        n_landmarks = len(mark.snapshot.landmarks)
        self.clusters.update_from_game(mark.snapshot.labels, n_landmarks, self.merging)
        self.clusters.fix_numbers()
        self._set_state("stopped")
        self._show_map_message()
        self.looked_back.emit(mark)

    # What the driver reports back

    @property
    def playing(self) -> Run | None:
        """The run that is played, and not yet ended."""
        return self.run if self.state in ALIVE else None

    def is_map_of(self, run: Run) -> bool:
        """Return whether the map on show is one of this run."""
        return self._source is run

    @property
    def edges(self) -> Any:
        """Edges that the map on show was made of; None where they are not at hand."""
        run, played = self.run, self.played
        if run is None or played is None or not _same_edges(run, played.settings):
            return None
        return run.edges

    def receive(self, run: Run, progress: Progress) -> None:
        """Take up a frame; one of a run that is no longer played is dropped."""
        if run is not self.playing:
            return
        if progress.snapshot is not None:
            self._follow(progress)
            if progress.snapshot.finished:
                run.resume()  # at its end it waits by itself, also for other settings
                self.clusters.finish_numbering()
                is_given = self.steered.method == "given"
                self.mark(self.given_map if is_given else "Finished", "end")
            elif run.paused:
                assert self.moment is not None
                self.timeline.update_pause(self.moment)
            is_held: State = "paused" if run.paused else "running"
            self._set_state("finished" if progress.snapshot.finished else is_held)
            self._show_map_message()
        self.progressed.emit(progress)

    def ended(self, run: Run) -> None:
        """Note that the frames of a run have come to their end."""
        if run is self.playing:
            self._set_state("stopped")

    def failed(self, run: Run, error: BaseException) -> None:
        """Note that a run broke off; its last snapshot stays."""
        if run is self.run:
            self._end("failed")
            self.show_message(error_text(error), getattr(error, "remedy", {}))

    def result(self) -> EmbeddingResult | None:
        """Return the last snapshot, ready to be written; None before the first."""
        played = self.played
        if self.dataset is None or played is None or self.snapshot is None:
            return None
        used = parameters(played, self.snapshot, self.dataset.space)
        if self.placed_on and self.placed_on.is_under(self.snapshot):
            used["placed_on"] = Path(self.placed_on.reference)
        return EmbeddingResult(self.snapshot, used, self.clusters.clustering)

    @property
    def moment(self) -> Moment | None:
        """What is on show, with the settings that it was played with."""
        run, snapshot = self._source, self.snapshot
        if snapshot is None or not isinstance(run, Run):
            return run if isinstance(run, Moment) else None
        return Moment(
            settings=replace_steerable(self._initial_settings, self.steered),
            snapshot=snapshot,
            record=record(run, snapshot),
            merging=self.merging,
            forces=self.hand.forces if run is self.run else None,  # of another map yet
        )

    @property
    def played(self) -> RunRecord | None:
        """What was played up to the present snapshot."""
        moment = self.moment
        return None if moment is None else moment.record

    @property
    def map_settings(self) -> Settings:
        """Settings of the map on show; those that are chosen where nobody knows."""
        played = self.played
        return self.settings.value if played is None else played.settings

    def split_cluster(self, cluster: int, n_parts: int = 2) -> list[int]:
        """Split a cluster along the neighbour graph inside it; return the parts' ids.

        Raises DataError or InputError: nothing was played yet, or it has too few
        landmarks for so many parts.
        """
        from napari_embedding_game.core.inspect.clusters import split_cluster

        if self.merging is None or self.snapshot is None:
            raise DataError("Press Run first: a cluster is split along what it finds.")
        rows = self.clusters.clustering.rows_in_cluster(cluster)
        landmarks, indices = np.unique(self.snapshot.labels[rows], return_inverse=True)
        parts = split_cluster(self.merging.tree, landmarks, n_parts)
        return self.clusters.split_into_groups(cluster, rows, parts[indices])

    def recluster(self, n_parts: int) -> Callable[[], Callable[[], list[int]]]:
        """Return what finds so many clusters in the selection, for another thread.

        No point moves.  That returns what makes the parts clusters, as one edit, and
        returns their ids, the largest first; it raises DataError: other data are on
        show by now, or there are no parts.

        Raises DataError: there is no map, nothing is selected, or the rows of the data
        are not there.
        """
        if self.snapshot is None:
            raise DataError("Press Run first: points of a map are clustered.")
        dataset, rows = self.data(), self.selection.rows
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

        def find() -> Callable[[], list[int]]:
            from napari_embedding_game.core.inspect.recluster import recluster_rows

            with COMPUTING, limit_threads(settings.n_jobs):
                parts = recluster_rows(dataset.X[rows], n_parts, **options)

            def apply() -> list[int]:
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

            return apply

        return find

    def add_columns(self, add: Callable[..., tuple[Dataset, str]], *args: Any) -> str:
        """Add columns to the metadata and return what they are called.

        ``add``: such as ``Dataset.with_map_column``: receives the dataset and ``args``.
        """
        self.dataset, name = add(self.dataset, *args)
        self.columns_changed.emit()
        return name

    def remember(self, new: ShownComparison) -> None:
        """Add a comparison to the notebook; it replaces one of its key."""
        others = (one for one in self.comparisons if one.key != new.key)
        self.comparisons = (*others, new)

    # To and from a file

    def capture(
        self, key: str = "", title: str = "", view: Mapping[str, Any] | None = None
    ) -> SavedMap | None:
        """Return all there is to store of the map, at once; None without data.

        ``view``: state that only the window has, such as the camera, as values for
        JSON.
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
        """Go on where a stored map stopped: everything is as it was shown.

        Its run is over: :meth:`play_on` goes on from its map.  Where this fails, the
        map that was open is shown again as it was, its run ended.  Without its data
        the map can be looked at and its clusters edited.
        """
        before, chosen = self.capture(), (self.settings.value, replace(self.look))
        try:
            self._restore(saved)
        except Exception:
            if before is None:
                self.load(None)
                self._choose(*chosen)
            else:
                self._restore(before)
            raise

    def _restore(self, saved: SavedMap) -> None:
        self.load(saved.dataset)
        self._choose(saved.settings, saved.look)
        self._source, self.snapshot, self.merging = saved, saved.snapshot, saved.merging
        self.placed_on, self.given_map = saved.placed_on, saved.given_map
        self.hand.restore(saved)
        self.comparisons = saved.comparisons
        self.clusters.restore(saved.clusters, saved.snapshot, saved.merging)
        if saved.snapshot is not None:
            self.timeline.restore(saved.timeline)
            current, embedding = self.timeline.current, saved.snapshot.embedding
            if current is not None and current.snapshot.embedding is embedding:
                self._source = current
            self.mark_present("As it was opened")
            self._set_state("stopped")
        if saved.drawn is not None:
            self.selection.select_points(saved.drawn)
        else:
            by_id = self.clusters.clustering.by_id  # names of a part may have come
            self.selection.replace(c for c in saved.selected if c in by_id)
        self.restored.emit(saved)

    def _choose(self, settings: Settings, look: DisplaySettings) -> None:
        self.settings.update(**asdict(settings))
        for field in fields(look):
            setattr(self.look, field.name, getattr(look, field.name))

    def _follow(self, progress: Progress) -> None:
        """Let the clusters follow the game, unless nothing has been found since."""
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

    def _on_clusters(self) -> None:
        self.selection.update_labels(self.clusters.labels)
        if self.message in ("", self._map_message):  # not another message
            self._show_map_message()

    def _show_map_message(self) -> None:
        """Show the message on the map on show, and on its names at rest."""
        snapshot = self.snapshot
        warning = "" if snapshot is None else snapshot.warning
        parted = "" if self.is_moving else self.clusters.state.scattered_names_text()
        self._map_message = text = " ".join(filter(None, (warning, parted)))
        self.show_message(text, snapshot.remedy if snapshot and warning else None)

    def _on_setting(self, name: str) -> None:
        if name == "n_landmarks":
            self.hand.release_landmarks()
        steers = name in STEERABLE and self._is_steered
        if self.playing and steers and not self._needs_restart:
            self._steer(self.playing, self.chosen())
        self._check_staleness()
        if self._is_stopped and steers and not self.stale:
            self.play_wanted.emit(self.play_on)

    def _steer(self, run: Run, chosen: Settings) -> None:
        settings = replace_steerable(run.settings, chosen)
        snapshot = self.snapshot if self._source is run else None
        text = change_text(self.steered, settings)
        if (
            snapshot
            and text
            and not self.timeline.extend_change_label(snapshot, settings)
        ):
            self.mark(text, "change")
        self.steered = settings
        run.steer(settings)

    @property
    def _is_steered(self) -> bool:
        """Whether settings that act during a game differ by now from those that act."""
        return replace_steerable(self.steered, self.chosen()) != self.steered

    @property
    def _is_stopped(self) -> bool:
        """Whether the map on show is where the newest run was stopped."""
        return self.state == "stopped" and self._source is self.run

    @property
    def _needs_restart(self) -> bool:
        """Whether what is played cannot become what is chosen."""
        if self.run is None:
            return False
        begun, chosen = self.run.settings, self.chosen()
        if not (is_game(begun) and is_game(chosen)):
            return replace_steerable(begun, chosen) != begun
        has_edges = begun.affinity == chosen.affinity
        return not (has_edges and is_within_point_limit(chosen, self.run.X.shape[0]))

    def chosen(self) -> Settings:
        """Return how the data would be mapped now, with what is left to them."""
        chosen = fill_affinity(self.settings.value)
        if self.dataset is None:
            return chosen
        if self.dataset.is_distances:
            # Distances have no rows of data, which a large picture needs.
            chosen = replace(chosen, metric="precomputed", large_picture=0.0)
        return fill_approximation(chosen, self.dataset.X.shape[0])

    def _check_staleness(self) -> None:
        is_live = self._source is self.run or self.state in ALIVE
        of = self.run if is_live else self.played
        # Of a stored map what steers can be changed without another graph.
        stale = of is not None and (
            needs_new_run(of.settings, self.chosen())
            or (is_live and self._needs_restart)
        )
        if stale != self.stale:
            self.stale = stale
            self.staleness_changed.emit(stale)

    def _set_state(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)
        self._check_staleness()

    def show_message(
        self, message: str, remedy: Mapping[str, Any] | None = None
    ) -> None:
        """Show a sentence with settings that solve it; "" for none."""
        if message != self.message:
            self.message, self.remedy = message, remedy or {}
            self.message_changed.emit(message)


def _same_edges(run: Run, settings: Settings) -> bool:
    """Return whether a run has the edges of these settings, in any dimensions."""
    begun = replace(run.settings, n_components=settings.n_components)
    return not needs_new_run(begun, settings)


def error_text(error: BaseException) -> str:
    """Return an error as one sentence for the person at the screen."""
    if isinstance(error, MissingValuesError):
        return error.sentence_with_remedy("tick the box below")
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
