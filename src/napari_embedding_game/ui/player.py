"""Plays a session in a viewer: worker, layers and mouse in one place.

The docks only show and edit the session; whatever touches threads or layers
is here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from napari.layers import Points
from psygnal import EmissionInfo
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session import archive, engine
from napari_embedding_game.session.autosave import Orphan
from napari_embedding_game.session.run import Progress, Run
from napari_embedding_game.session.saved import SavedMap, SavedSession
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.sources import Loaded, Source, Wish
from napari_embedding_game.ui.cluster_colors import ClusterColors
from napari_embedding_game.ui.coloring import (
    ByCluster,
    Coloring,
    Legend,
    coloring,
    is_choice,
)
from napari_embedding_game.ui.flight import flight_of
from napari_embedding_game.ui.keeper import Keeper, load_session
from napari_embedding_game.ui.lasso import inside
from napari_embedding_game.ui.layers import MapLayers
from napari_embedding_game.ui.linked import (
    Linked,
    clicked_row,
    go_to,
    linked_layers,
    show_pictures,
    with_features,
)
from napari_embedding_game.ui.lit import LitObjects
from napari_embedding_game.ui.picking import Picker
from napari_embedding_game.ui.worker import FrameWorker, StageWorker, Worker

if TYPE_CHECKING:
    import napari

SELECTED_MAGNIFICATION = 1.4
MAX_MAGNIFICATION = 3.0
"""A point under the highest pressure is this much wider: larger ones are slow."""
FADED, FADED_VALUE = 0.16, 0.45
"""Opacity of the points outside the selection; of a gene one wants to see both."""
TIDY_MS = 300
"""After the last edit of clusters, until napari's table of the points has it."""
CLOSE_SECONDS = 1.0
"""How long closing waits for a worker."""

LOST = (
    "The points layer was removed or changed, so the game was stopped: "
    "Restart draws a new one."
)


class Player(QObject):
    """The one driver of a session in a viewer.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    """

    asked = Signal(object)
    """A source is going to be read."""
    loaded = Signal(object, object)
    """The source that was taken up, and the :class:`Loaded` that came of it."""
    cancelled = Signal()
    """Reading was given up; what was loaded before stays."""
    stage_changed = Signal(object)
    """The :class:`Stage` of reading, None when nothing is read."""
    busy_changed = Signal(str)
    """What is being read or written, "" when nothing is."""
    trouble = Signal(str)
    """A sentence about reading or writing that failed, "" when it is over."""
    saved = Signal(str)
    legend_changed = Signal(object)

    def __init__(self, viewer: napari.Viewer, session: Session) -> None:
        super().__init__()
        self._viewer = viewer
        self.session = session
        self.linked = linked_layers(session)
        self.keeper = Keeper(viewer, session)
        self.keeper.failed.connect(lambda error: self.trouble.emit(sentence(error)))
        session.restored.connect(self._on_restored)
        self.layers = MapLayers(viewer, self._on_lost)
        self._picker = Picker(
            viewer, self._on_click, session.selection.clear, self._on_lasso
        )
        self.lit = LitObjects(viewer, session, self.linked)
        self._worker: FrameWorker | None = None
        self._errand: Worker | None = None
        # A dock that is opened again finds the map of the former one.
        self._drawn_run = session.run if self.layers.points is not None else None
        self._receiving = False
        self._tidying = QTimer(self)
        self._tidying.setSingleShot(True)
        self._tidying.setInterval(TIDY_MS)
        self._tidying.timeout.connect(lambda: self._on_state(session.state))
        self.palette = palette_of(session)
        self._by_cluster = ByCluster(session.clusters, self.palette)
        self._coloring: Coloring = self._by_cluster
        self._legend: Legend | None = None
        session.dataset_changed.connect(self._on_dataset)
        session.selection.changed.connect(self._redraw)
        session.clusters.changed.connect(self._on_clusters)
        self._flight = flight_of(session)
        self._flight.asked.connect(self.layers.fly_to)
        session.look.events.connect(self._on_look)
        session.state_changed.connect(self._on_state)

    # Errands: reading and writing, one at a time, never in the window's thread

    def load(
        self,
        source: Source,
        wish: Wish | None = None,
        *,
        linked: Linked | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Read a source in the background and take it up; the newest wish wins.

        What is loaded stays when reading fails or is cancelled.  ``linked`` are
        the layers that show its objects; ``then`` is called afterwards if all
        went well.
        """
        self.asked.emit(source)

        def read() -> Stages[Loaded]:
            return source.read(wish or Wish())

        def take_up(loaded: Loaded) -> None:
            layers = linked
            if layers is None and loaded.labels is not None:
                layers = self._show_pictures(loaded)
            self.session.load(loaded.dataset)
            has_objects = loaded.dataset.objects is not None
            self.linked.set(layers if has_objects else None)
            self.loaded.emit(source, loaded)
            if then is not None:
                then()

        worker = StageWorker(read)
        worker.frame.connect(
            lambda stage: self._tell_stage(stage) if worker is self._errand else None
        )
        self._go_on_errand(f"Reading {source.name} …", worker, take_up)
        self.stage_changed.emit(Stage(f"Reading {source.name}"))

    def cancel(self) -> None:
        """Give up reading; what was loaded before stays."""
        if isinstance(self._errand, StageWorker):
            self._errand.abandon()
            self._end_errand()
            self.cancelled.emit()

    def _tell_stage(self, stage: Stage) -> None:
        self.busy_changed.emit(f"{stage.text} …")
        self.stage_changed.emit(stage)

    def _show_pictures(self, loaded: Loaded) -> Linked:
        present = self.linked.current
        is_shown = (
            present is not None
            and present.labels in self._viewer.layers
            and np.array_equal(present.labels.data, loaded.labels)
        )
        return present if is_shown else show_pictures(self._viewer, loaded)

    def save(self, path: Path) -> None:
        """Write the present map in the format that the ending of the path says."""
        dataset, result = self.session.dataset, self.session.result()
        if dataset is None or result is None:
            self.trouble.emit("There is no map to save yet: press Run first.")
            return

        choice = self.session.look.color_by
        known = choice in dataset.obs or choice in dataset.profile_names
        color_by = choice if known else None

        def write() -> None:
            from napari_embedding_game.data import writers

            if path.suffix.lower() in (".png", ".svg"):
                writers.write_figure(dataset, result, path, color_by=color_by)
            else:
                writers.write(dataset, result, path)

        self._go_on_errand(
            f"Saving {path.name} …",
            Worker(write),
            lambda _: self.saved.emit(path.name),
        )

    def write_features(self) -> None:
        """Write the clusters into the table of the Labels layer, beside what it has."""
        dataset, result = self.session.dataset, self.session.result()
        linked = self.linked.current
        if dataset is None or result is None or linked is None:
            self.trouble.emit("There is no map of a Labels layer's objects yet.")
            return
        try:
            linked.labels.features = with_features(
                linked.labels.features, dataset, result
            )
        except DataError as error:
            self.trouble.emit(str(error))
        else:
            self.saved.emit(f"columns of {linked.labels.name}")

    def save_session(self, path: Path) -> None:
        """Write a session file, to go on later."""
        saved = self.keeper.capture()
        if saved is None:
            self.trouble.emit("There is nothing to save yet: load some data first.")
            return
        self._go_on_errand(
            f"Saving {path.name} …",
            Worker(lambda: archive.save(saved, path)),
            lambda _: self.saved.emit(path.name),
        )

    def open_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Take up a session file as it was saved; ``then`` is called afterwards."""

        def take_up(found: tuple[SavedSession, list[str]]) -> None:
            self.asked.emit(None)
            self.linked.set(None)
            self.keeper.maps.restore(found[0])
            self.trouble.emit(" ".join(found[1]))
            if then is not None:
                then()

        worker = StageWorker(lambda: load_session(path))
        worker.frame.connect(
            lambda stage: self._tell_stage(stage) if worker is self._errand else None
        )
        self._go_on_errand(f"Reading {path.name} …", worker, take_up)

    def bring_back(self, orphan: Orphan) -> None:
        """Take up what a crash left behind; its file goes once it is saved anew."""
        self.open_session(orphan.path, lambda: self.keeper.take_over(orphan))

    def _go_on_errand(
        self, what: str, worker: Worker, then: Callable[[Any], None]
    ) -> None:
        if self._errand is not None:
            self._errand.abandon()
        self._errand = worker
        self.trouble.emit("")
        self.busy_changed.emit(what)

        def done(result: Any) -> None:
            self._end_errand()
            then(result)

        def failed(error: BaseException) -> None:
            self._end_errand()
            self.trouble.emit(sentence(error))

        worker.returned.connect(done)
        worker.failed.connect(failed)
        worker.begin()

    def _end_errand(self) -> None:
        self._errand = None
        self.stage_changed.emit(None)
        self.busy_changed.emit("")

    def warm_up(self) -> None:
        """Load and compile the engine in the background, before it is needed."""
        Worker(_warm_up).begin()

    # The run

    def play(self) -> None:
        """Start a new run, in place of the present one."""
        run = self.session.begin()
        self._worker = worker = FrameWorker(run.frames)
        worker.frame.connect(lambda progress: self._on_frame(run, progress))
        worker.returned.connect(lambda _: self.session.ended(run))
        worker.failed.connect(lambda error: self.session.failed(run, error))
        worker.begin()

    def close(self) -> None:
        """End the run, its thread and every tie to the viewer."""
        session = self.session
        session.stop()
        self._tidying.stop()
        session.dataset_changed.disconnect(self._on_dataset)
        session.selection.changed.disconnect(self._redraw)
        session.clusters.changed.disconnect(self._on_clusters)
        self._flight.asked.disconnect(self.layers.fly_to)
        session.look.events.disconnect(self._on_look)
        session.state_changed.disconnect(self._on_state)
        session.restored.disconnect(self._on_restored)
        self.lit.close()
        self.keeper.close()
        self._picker.close()
        self.layers.close()
        for worker in (self._worker, self._errand):
            if worker is not None:
                worker.abandon(CLOSE_SECONDS)
        self._worker = self._errand = None

    # What comes in

    def _on_frame(self, run: Run, progress: Progress) -> None:
        if not self.session.plays(run):
            return
        if progress.snapshot is not None and run is not self._drawn_run:
            self._begin_drawing(run, progress.snapshot)
        self._receiving = True
        try:
            # First of all, as the clusters that are drawn follow the game.
            self.session.receive(run, progress)
        finally:
            self._receiving = False
        if progress.snapshot is not None:
            self._draw(progress.snapshot)
            self._on_state(self.session.state)

    def _begin_drawing(self, run: Run, snapshot: Snapshot) -> None:
        self._drawn_run = run
        self.palette.restart()
        dataset = self.session.dataset
        if dataset is not None:
            self.layers.begin(snapshot, dataset.obs)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._drawn_run = None
        choice = self.session.look.color_by
        if dataset is not None and not is_choice(choice, dataset):
            self.session.look.color_by = "Cluster"
        self._choose_coloring()

    def _on_restored(self, saved: SavedMap) -> None:
        """Draw a map as it was stored."""
        snapshot, dataset = saved.snapshot, self.session.dataset
        if snapshot is None or dataset is None:
            return
        self.layers.begin(snapshot, dataset.obs)
        self._draw(snapshot)
        self.keeper.show_view(saved.view)
        self._on_state(self.session.state)

    def _on_state(self, state: str) -> None:
        # The snapshot that brought the state is drawn first.
        resting = state in ("paused", "finished", "stopped", "failed")
        if resting and not self._receiving:
            self.layers.finish()
            self._update_features()

    def _on_lost(self) -> None:
        if self.session.state in ("running", "paused", "finished"):
            self.session.stop()
            self.session.say(LOST)
        self._drawn_run = None

    def _on_click(self, world: np.ndarray, adds: bool) -> None:
        snapshot, place = self.session.snapshot, self.layers.to_map(world)
        if snapshot is None:
            return
        if place is None:
            self._on_object(world, adds)
            return
        # Not the nearest landmark: its points may have been split among clusters.
        nearest = int(np.argmin(((snapshot.embedding - place) ** 2).sum(axis=1)))
        cluster = int(self.session.clusters.labels[nearest])
        selection = self.session.selection
        (selection.toggle if adds else selection.select)(cluster)

    def _on_object(self, world: np.ndarray, adds: bool) -> None:
        """Select the point of the object that was clicked in the image."""
        dataset, linked = self.session.dataset, self.linked.current
        if dataset is None or dataset.objects is None or linked is None:
            return
        row = clicked_row(linked, dataset.objects, world)
        if row is None:
            return
        selection = self.session.selection
        mode = "replace"
        if adds:
            mode = "remove" if selection.points[row] else "add"
        selection.select_points(np.array([row]), mode)

    def _on_lasso(self, world: np.ndarray, adds: bool) -> None:
        """Select the points that were drawn around."""
        snapshot, points = self.session.snapshot, self.layers.points
        if snapshot is None or points is None or snapshot.embedding.shape[1] != 2:
            return
        found = inside(self.layers.in_map(world), snapshot.embedding)
        if found.any():
            mode = "add" if adds else "replace"
            self.session.selection.select_points(found, mode)

    def set_lasso(self, always: bool) -> None:
        """Let every drag on the canvas draw around points, or only with Shift."""
        self._picker.always_lasso = always

    def show_objects(self) -> None:
        """Move the camera to the selected objects in the image."""
        dataset, linked = self.session.dataset, self.linked.current
        rows = self.session.selection.rows
        if linked is None or dataset is None or dataset.objects is None:
            return
        if len(rows):
            go_to(self._viewer, linked.labels, dataset.objects.take(rows))

    def embed_selection(self) -> None:
        """Open a map of the selected points alone, and play."""
        selection, clusters = self.session.selection, self.session.clusters
        known = clusters.clustering.by_id
        names = [known[c].name for c in selection.clusters if c in known]
        title = ", ".join(names[:3]) or f"{len(selection.rows):,} points"
        try:
            self.keeper.embed(selection.points, title)
        except DataError as error:
            self.trouble.emit(str(error))
        else:
            self.play()

    def _on_clusters(self) -> None:
        if not self._receiving:
            self._redraw()
            self._tidying.start()

    def _on_look(self, info: EmissionInfo) -> None:
        if info.signal.name == "color_by" and self.session.look.limits is not None:
            self.session.look.limits = None  # another measure has other limits
            return
        self._choose_coloring()
        if self.layers.landmarks is not None:
            self.layers.landmarks.visible = self.session.look.show_landmarks
        self._redraw()

    # What goes out

    def _choose_coloring(self) -> None:
        if self.session.dataset is not None:
            look = self.session.look
            self._coloring = coloring(
                look.color_by, self.session.dataset, self._by_cluster, look.limits
            )
        self.tell_legend()

    def tell_legend(self) -> None:
        """Say how to read the colours, if that has changed."""
        legend = self._coloring.legend()
        if not legend.is_as(self._legend):
            self._legend = legend
            self.legend_changed.emit(legend)

    def _draw(self, snapshot: Snapshot) -> None:
        drawn = self.layers.show(
            snapshot, self._colors(snapshot), self._magnification(snapshot)
        )
        if drawn:
            self.tell_legend()

    def _redraw(self) -> None:
        snapshot = self.session.snapshot
        if snapshot is not None:
            self.layers.recolor(self._colors(snapshot), self._magnification(snapshot))
            self.layers.fade_landmarks(not self.session.selection.is_empty)
            self.tell_legend()

    def _colors(self, snapshot: Snapshot) -> np.ndarray:
        colors = self._coloring.colors(snapshot)
        if self.session.selection.is_empty:
            return colors
        faded = colors.copy()
        is_value = self._legend is not None and self._legend.limits is not None
        faded[~self.session.selection.points, 3] = FADED_VALUE if is_value else FADED
        return faded

    def _magnification(self, snapshot: Snapshot) -> np.ndarray | float:
        if self.session.look.size_by_pressure:
            return magnification(snapshot.pressure)
        if self.session.selection.is_empty:
            return 1.0
        return np.where(self.session.selection.points, SELECTED_MAGNIFICATION, 1.0)

    def _update_features(self) -> None:
        dataset, snapshot = self.session.dataset, self.session.snapshot
        if dataset is None or snapshot is None:
            return
        names = pd.Categorical(self.session.clusters.clustering.names)
        found = {"cluster": names, "pressure": snapshot.pressure}
        self.layers.set_features(
            pd.concat(
                [dataset.obs, pd.DataFrame(found, index=dataset.obs.index)], axis=1
            )
        )


_palettes: WeakKeyDictionary[Session, ClusterColors] = WeakKeyDictionary()


def palette_of(session: Session) -> ClusterColors:
    """Return the colours of a session's clusters, which its docks share."""
    if session not in _palettes:
        _palettes[session] = ClusterColors(session.clusters)
    return _palettes[session]


def magnification(pressure: np.ndarray) -> np.ndarray:
    """Return 1 for no pressure up to ``MAX_MAGNIFICATION`` for the highest: (N,)."""
    under = pressure[pressure > 0]
    if not len(under):
        return np.ones(len(pressure))
    cap = max(float(np.percentile(under, 95)), np.finfo(np.float32).tiny)
    return 1.0 + (MAX_MAGNIFICATION - 1.0) * np.clip(pressure / cap, 0, 1)


def _warm_up() -> None:
    # napari sets up its physical units with the first layer of a process, which
    # takes half a second: better here than in the window's thread.
    Points(np.zeros((1, 2)))
    engine.warm_up()
