"""Draws the map of a session: positions and colours of points, landmarks.

The scene is the one that listens to the session for what the canvas shows; whatever is
painted over the map listens to :attr:`Scene.drawn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import napari
import numpy as np
from numpy.typing import NDArray
from psygnal import EmissionInfo
from qtpy.QtCore import QObject, Signal
from superqt.utils import qdebounced

from napari_embedding_game.core.inspect.correction import Correction, correct_layout
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.columns import axes_by_external_map, count_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.palette import Colors
from napari_embedding_game.session.file.saved_map import PlacedOn
from napari_embedding_game.session.run.run import Run
from napari_embedding_game.session.session import RESTING
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.canvas.layers import COMPARED, REFERENCE, MapLayers
from napari_embedding_game.ui.canvas.picture import Looks
from napari_embedding_game.ui.canvas.projection import facing_of
from napari_embedding_game.ui.connections import Connections, in_step, release
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    CLUSTER,
    MOVEMENT,
    UNCOLORED,
    color_by_column,
    color_points,
    name_in_file,
)
from napari_embedding_game.ui.style.theme import canvas_color_events, is_canvas_light
from napari_embedding_game.ui.workspace import Workspace

SELECTED_MAGNIFICATION, MAX_MAGNIFIED = 1.4, 3.0
MUTED, MUTED_VALUE = 0.88, 0.6
"""Share of grey in points outside the selection; of a gene one wants to see both.

Not by opacity: where many points lie on each other the faintest add up to full colour.
"""
GREYS = {True: 0.8, False: 0.24}
REFERENCE_GREYS = {True: (0.82, 0.82, 0.82, 1.0), False: (0.27, 0.27, 0.27, 1.0)}
"""On a light canvas and on a dark one: of muted points, of cells of a reference."""
TIDY_MS = 300
"""After the last frame or edit, until thumbnails and napari's table have it."""
NO_LOOKS = Looks(UNCOLORED.rgba, np.empty(0, np.float32))
LOST = "The points layer was removed or changed: Run again draws a new one."


class Scene(QObject):
    """Draws snapshots, in step with the selection, the clusters and the look."""

    drawn = Signal()
    """The map, or what is to be seen over it, has changed."""
    legend_changed = Signal(object)
    neighbors_message = Signal(str)
    """A sentence about true neighbours that are shown, "" when none are."""

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self.viewer, self.workspace = viewer, workspace
        self.session = session = workspace.session
        self._connections = Connections(self)
        self.layers = MapLayers(viewer, self._on_removed, self._on_colored)
        self._drawn_run: Run | None = None
        self._hidden: PlacedOn | None = None
        """A reference whose cells a person has removed from behind the map."""
        self._n_freezes = 0
        """How many gestures keep the map as it is drawn."""
        self.is_showing_neighbors = False
        """Whether true neighbours are drawn at the selection."""
        self.colored = UNCOLORED
        """The points as they are coloured now."""
        self._colored_from: tuple[object, ...] = ()
        self._sent_legend = UNCOLORED
        self._drawn_looks: tuple[tuple[object, ...], Looks] = (), NO_LOOKS
        """How the points look, and what of."""
        self._send_legend_soon = in_step(self, session, self._send_legend)
        self._tidy_soon = self._after(TIDY_MS, self._tidy)
        self._write_soon = self._after(0, self._write_table)
        self._fit_soon = self._after(0, self.layers.fit_camera)
        self._add_empty_layers_soon = self._after(0, self._add_empty_layers)
        self._clear_soon = self._after(0, self._clear)
        self._make_room_soon = self._after(0, self.make_room)
        view, dims, hear = session.view, viewer.dims.events, self._connections.connect
        edits = session.columns_changed, session.clusters.changed
        hear(self.draw, *edits, session.selection.changed)
        hear(self.draw, view.comparison_changed, *canvas_color_events(viewer))
        hear(self._tidy_soon, *edits)
        hear(self._on_dataset, session.dataset_changed)
        hear(self.show_stored, session.restored, session.looked_back)
        hear(self._lay_out, view.panels_changed)
        hear(self._on_look, session.look.events)
        hear(self._on_state, session.state_changed)
        hear(self.make_room, dims.order, dims.ndim, workspace.linked.changed)
        hear(self._on_inserted, viewer.layers.events.inserted)
        # napari is still about to tell its own widgets
        hear(self._make_room_soon, dims.ndisplay)
        hear(self._update_facing, viewer.scene.camera.events.angles)
        hear(self.layers.center_on, workspace.reveal)
        self._update_facing()
        for layer in workspace.left_layers:  # by a former dock
            if layer in viewer.layers:
                viewer.layers.remove(layer)
        if session.snapshot is not None:
            self._drawn_run = session.run
            self.show_stored()
            self._fit_soon()  # once the dock has taken its room
        self.draw()

    def close(self) -> None:
        """Undo the connections to session and viewer; the layers stay."""
        release(self)
        self.workspace.left_layers = self.layers.points, self.layers.landmarks
        self.layers.close()

    # Frames

    def prepare(self, run: Run, snapshot: Snapshot) -> None:
        """Make the layers ready at the first snapshot of a run."""
        if run is not self._drawn_run:
            self._drawn_run = run
            if run.warm_start is not None and self.layers.points is not None:
                return  # it goes on from the map that is drawn
            self.layers.begin(snapshot)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Leave the map as it is drawn, whatever comes; then draw what is there."""
        self._n_freezes += 1
        try:
            yield
        finally:
            self._n_freezes -= 1
            self.draw()
            self._tidy_soon()

    def show_stored(self, event: object = None) -> None:
        """Draw a map of another time."""
        snapshot = self.session.view.drawn
        if snapshot is not None:
            self.layers.begin(snapshot)
            self.draw()
            self._tidy_soon()

    def make_room(self, event: object = None) -> None:
        """Move a map that layers lie on, or of which other axes are displayed."""
        self._update_facing()
        if self.session.snapshot is not None and self.layers.make_room():
            self.draw()
            self.layers.finish()
            self._write_soon()  # the layer may be another
            self._fit_soon()  # napari has fitted the camera to the former positions

    def show_true_neighbors(self, is_asked: bool) -> None:
        """Draw in the true neighbours of the selection, until the map changes."""
        session, selection = self.session, self.session.selection
        drawn, whole = session.view.drawn, session.snapshot
        if self.is_showing_neighbors and not is_asked:
            self.is_showing_neighbors = False
            self.neighbors_message.emit("")
            self.draw()
        is_free = session.state in RESTING and not selection.is_empty
        if self.is_showing_neighbors or not (is_asked and is_free):
            return
        if drawn is not None and whole is not None and drawn.neighbors is not None:
            correction = correct_layout(
                whole.embedding, drawn.neighbors, selection.points
            )
            panels = drawn.embedding - whole.embedding
            moved = replace(drawn, embedding=panels + correction.embedding)
            looks = self._looks(moved)
            self.is_showing_neighbors = self.layers.show(moved, looks, follows=False)
            self.drawn.emit()
            self.neighbors_message.emit(neighbors_text(correction))

    def recolor(self) -> None:
        """Show the map in colours of another palette."""
        self._colored_from = ()
        self.draw()

    def draw(self, event: object = None) -> None:
        """Show the map as it is now, unless it is held."""
        if self.is_showing_neighbors:
            self.show_true_neighbors(False)  # comes back here
        elif not self._n_freezes and self._color():
            if self.session.snapshot is not None:
                self._show()
                self.drawn.emit()
            self._send_legend_soon()

    def _show(self) -> None:
        """Draw the points, those of other maps, and the landmarks of a whole map."""
        session, layout = self.session, self.session.view.layout
        snapshot, panels = layout.snapshot, layout.panels
        looks, reference = self._looks(snapshot), session.placed_on
        # In panels its cells would lie elsewhere than the map's.
        is_hidden = snapshot is not session.snapshot or reference is self._hidden
        if reference and (is_hidden or not reference.is_under(snapshot)):
            reference = None
        corners = None if reference is None else reference.corners
        if panels is not None:  # in space the camera may see these from any side
            corners = panels.box if self.layers.is_deep else panels.corners
        settles = session.state in RESTING
        is_played = session.state in ("running", "paused")
        has_rings = session.look.show_landmarks or is_played
        self.layers.show_landmarks(has_rings and panels is None)
        if self.layers.show(snapshot, looks, settles=settles, corners=corners):
            self.layers.show_extra(COMPARED, layout.other, looks)
            cells = np.empty((0, 2)) if reference is None else reference.cells
            grey = np.array(REFERENCE_GREYS[is_canvas_light(self.viewer)], np.float32)
            greys = Looks(np.tile(grey, (len(cells), 1)), np.ones(len(cells), "f4"))
            self.layers.show_extra(REFERENCE, cells if len(cells) else None, greys)

    def _send_legend(self) -> None:
        # Of clusters their list says the rest.
        is_cluster = self.session.look.color_by == CLUSTER
        legend = UNCOLORED if is_cluster else self.colored
        if legend is not self._sent_legend:
            self._sent_legend = legend
            self.legend_changed.emit(legend)

    # What happens

    def _after(self, milliseconds: int, job: Callable[[], None]) -> Callable[..., None]:
        """Return what has a job done so long after its last call."""
        turn = qdebounced(job, milliseconds, parent=self)
        return lambda *event: turn.throttle()

    def _on_inserted(self, event: Any) -> None:
        """Make room for a layer that holds something."""
        if self.layers.note_added(event.value):
            self._make_room_soon()

    def _on_removed(self, name: str) -> None:
        """Do without points whose layer somebody has removed, or edited."""
        session = self.session
        if name == COMPARED:
            session.view.set_comparison(None)
        elif name == REFERENCE:
            self._hidden = session.placed_on
        else:
            if session.state in ("running", "paused", "finished", "stopped"):
                session.stop()
                session.show_message(LOST)
            self._drawn_run = None
            self._clear_soon()  # napari may be about to remove more
            self.drawn.emit()

    def _on_colored(self, rgba: Colors) -> None:
        """Keep colours that somebody set in the layer, until others are asked for."""
        self.colored = replace(self.colored, rgba=rgba)
        self.draw()

    def _on_dataset(self) -> None:
        self._drawn_run, self._drawn_looks = None, ((), NO_LOOKS)
        self.draw()
        if self.layers.points is not None or self.layers.landmarks is not None:
            self._clear_soon()

    def _clear(self) -> None:
        """Remove layers of earlier data, or the compared map alone, without a map."""
        if self.session.snapshot is None and self._drawn_run is None:
            self.layers.clear()
            self.drawn.emit()
        elif self.layers.points is None:
            self.layers.show_extra(COMPARED, None, NO_LOOKS)

    def _on_look(self, info: EmissionInfo) -> None:
        look = self.session.look
        if info.signal.name == "color_by" and look.limits is not None:
            look.limits = None  # another measure has other limits; comes back here
        else:
            self.draw()

    def _update_facing(self, event: object = None) -> None:
        """Tell the session from where a map in space is seen."""
        self.session.view.facing = facing_of(self.viewer)

    def _lay_out(self) -> None:
        """Draw groups, or maps, side by side, or the map as a whole."""
        self.draw()
        self._tidy_soon()
        if self.session.state != "running":
            self._fit_soon()

    def _on_state(self, state: str) -> None:
        if state == "preparing":
            self._add_empty_layers_soon()
        elif state in RESTING:
            if not self._n_freezes:
                self.layers.discard()
            self._tidy_soon()
        self.draw()

    def _add_empty_layers(self) -> None:
        """Make the layers while another thread prepares the run."""
        run = self.session.run
        if self.session.state == "preparing":
            n_landmarks, d = run.settings.n_landmarks, run.settings.n_components
            self.layers.add_empty(run.X.shape[0], n_landmarks, d)

    def _tidy(self) -> None:
        """Do what only a map at rest needs."""
        if self.session.state in RESTING:
            self.layers.finish()
            self._write_soon()  # after what else waits for its turn

    def _write_table(self) -> None:
        """Give napari's layer a table of what is known of each point."""
        dataset, snapshot = self.session.dataset, self.session.snapshot
        if dataset is None or snapshot is None:
            return
        columns = {
            "cluster": self.session.clusters.clustering.names_by_point,
            "pressure": snapshot.pressure,
            "stretch": snapshot.stretch,
            "isolation": snapshot.isolation,
        }
        computed = {name: x for name, x in columns.items() if x is not None}
        of_maps = [
            axis for axes in axes_by_external_map(dataset.obs).values() for axis in axes
        ]
        metadata = dataset.obs.drop(columns=of_maps)  # napari shows all on hover

        def free(name: str) -> str:  # napari takes no name twice
            return free(f"{name} (file)") if name in metadata else name

        table = metadata.rename(columns={name: free(name) for name in computed})
        table.index = range(len(table))  # in place: another index copies all
        for name, values in computed.items():  # by position: no index is compared
            table[name] = values
        points = self.layers.points
        if points is not None and len(points.data) == len(table):
            points.features = table

    # Colours and sizes

    def _color(self) -> bool:
        """Find the colours of the choice; by cluster if it does not exist.

        False where the choice was changed, and all is drawn in its colours by now.
        """
        session, look = self.session, self.session.look
        dataset, snapshot = session.dataset, session.view.drawn
        is_ours = look.color_by in BUILT_IN
        if dataset is None or (is_ours and snapshot is None):
            self.colored, self._colored_from = UNCOLORED, ()
            return True
        choice, limits, compared = look.color_by, look.limits, session.view.comparison
        of: tuple[object, ...] = choice, limits, dataset, dataset.obs
        if is_ours:
            of = choice, limits, snapshot, session.clusters.clustering, compared
        if are_same_objects(of, self._colored_from):
            return True
        colors = None
        try:
            if snapshot is not None and is_ours:
                if choice != MOVEMENT or compared is not None:
                    colors = color_points(choice, session, snapshot, limits)
            elif name_in_file(choice, dataset) is not None:
                colors = color_by_column(choice, dataset, limits)
        except DataError as error:  # the file that the gene is in may be gone
            session.show_message(str(error))
        if colors is None:
            look.color_by = CLUSTER  # comes back here
            return False
        self.colored, self._colored_from = colors, of
        return True

    def _looks(self, snapshot: Snapshot) -> Looks:
        """Return how the points look, with those that are selected above the others."""
        selection, is_light = self.session.selection, is_canvas_light(self.viewer)
        is_sized = self.session.look.size_by_pressure and snapshot.has_pressure
        above = None if selection.is_empty else selection.points
        of = self.colored, above, is_light, snapshot if is_sized else None
        if not are_same_objects(of, self._drawn_looks[0]):
            colors = self.colored.rgba
            sizes = np.ones(len(colors), np.float32)
            if above is not None:
                is_scale = self.colored.limits is not None
                share = MUTED_VALUE if is_scale else MUTED
                colors = colors * np.float32(1 - share)
                colors += np.float32(share * GREYS[is_light])
                colors[:, 3] = 1.0  # opaque: others stand out among them
                colors[above] = self.colored.rgba[above]
                sizes[above] = SELECTED_MAGNIFICATION
            if is_sized:
                sizes = magnification(snapshot.pressure)
            self._drawn_looks = of, Looks(np.asarray(colors, np.float32), sizes, above)
        return self._drawn_looks[1]


def neighbors_text(correction: Correction) -> str:
    """Return in a sentence what is shown."""
    n_in, n_out = len(correction.moved_in), len(correction.moved_out)
    if not (n_in or n_out):
        return "All true neighbours of the selection are beside it, and no strangers."
    drawn_in, out = count_text(n_in, "true neighbour"), count_text(n_out, "stranger")
    return (
        f"Shown for as long as you press: {drawn_in} from elsewhere drawn in, "
        f"{out} stepped out."
    )


def magnification(pressure: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return 1 for 0 up to ``MAX_MAGNIFIED`` for all but a few of the highest."""
    above = pressure[pressure > 0]
    if not len(above):
        return np.ones(len(pressure), np.float32)
    most = max(float(np.percentile(above, 95)), np.finfo(np.float32).tiny)
    share = np.clip(pressure / most, 0, 1)
    return (1 + (MAX_MAGNIFIED - 1) * share).astype(np.float32)
