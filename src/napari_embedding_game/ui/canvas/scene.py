"""Render the map of a session: positions, colours and sizes of points, and landmarks.

Only the scene listens to the session for what the canvas shows; painters of the overlay
listen to :attr:`MapScene.map_rendered`.
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
from napari_embedding_game.data.columns import count_text, find_axes_by_external_map
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.palette import Colors
from napari_embedding_game.session.file.saved_map import PlacedOn
from napari_embedding_game.session.run.run import GameRun
from napari_embedding_game.session.session import RESTING_STATES
from napari_embedding_game.session.tissue import TissueLayout
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.canvas.layers import COMPARED, REFERENCE, MapLayers
from napari_embedding_game.ui.canvas.pick import AnyLayers, find_row_at_pixel
from napari_embedding_game.ui.canvas.picture import PointStyle
from napari_embedding_game.ui.canvas.projection import find_steps_right_and_up
from napari_embedding_game.ui.canvas.tissue_layers import TissueLayers
from napari_embedding_game.ui.connections import (
    Connections,
    disconnect_all,
    throttle_while_running,
)
from napari_embedding_game.ui.images.object_features import (
    write_map_features,
    write_vertex_features,
)
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    CLUSTER,
    MOVEMENT,
    UNCOLORED,
    choice_name_in_file,
    color_by_column_or_feature,
    color_points,
)
from napari_embedding_game.ui.style.theme import (
    is_canvas_light,
    list_canvas_color_events,
)
from napari_embedding_game.ui.workspace import Workspace

SELECTED_MAGNIFICATION, MAX_MAGNIFIED = 1.4, 3.0
MUTED, MUTED_VALUE = 0.88, 0.6
"""Share of grey in unselected points, coloured by levels or on a scale.

A scale must stay readable in both.  Opacity would not mute points: where many faint
points overlap they add up to full colour.
"""
GREYS = {True: 0.8, False: 0.24}
REFERENCE_GREYS = {True: (0.82, 0.82, 0.82, 1.0), False: (0.27, 0.27, 0.27, 1.0)}
"""Greys of muted points, and colours of cells of a reference, by whether the canvas is
light."""
FINISH_MS = 300
"""Delay after the last frame or edit until thumbnails and features are updated."""
NO_STYLE = PointStyle(UNCOLORED.rgba, np.empty(0, np.float32))
LOST = "The points layer was removed or changed. Press Run to make a new one."


class MapScene(QObject):
    """Renders snapshots, with colours by selection, clusters and look."""

    map_rendered = Signal()
    """The map was rendered, or removed, so that painters of the overlay must follow."""
    legend_changed = Signal(object)
    """The coloring whose legend is to be shown."""
    neighbors_message = Signal(str)
    """A sentence about the true neighbours on show; "" once they are hidden."""

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self.viewer, self.workspace = viewer, workspace
        self.session = session = workspace.session
        self._connections = Connections(self)
        self.map_layers = MapLayers(
            viewer, self._on_points_removed, self._on_points_colored, session.look
        )
        self.tissue_layers = TissueLayers(
            viewer, self._on_tissue_removed, self._on_points_colored
        )
        self._wanted_rows: NDArray[np.intp] | None = None
        """The rows that the camera goes to in tissue, instead of showing all."""
        self._shown: tuple[TissueLayout | None, bool, int] = None, True, 2
        """The tissue on show, whether the map is shown, and the number of axes."""
        self._rendered_run: GameRun | None = None
        self._hidden: PlacedOn | None = None
        """A reference whose layer of cells a person has removed."""
        self._n_holds = 0
        """The number of callers that hold rendering back."""
        self.is_showing_neighbors = False
        """Whether true neighbours are shown next to the selection."""
        self.coloring = UNCOLORED
        """The present coloring of the points."""
        self._coloring_inputs: tuple[object, ...] = ()
        self._sent_legend = UNCOLORED
        self._rendered_style: tuple[tuple[object, ...], PointStyle] = (), NO_STYLE
        """The objects that the last style was made from, and that style."""
        self._send_legend_soon = throttle_while_running(
            self, session, self._send_legend
        )
        self._finish_map_soon = self._make_debounced(
            FINISH_MS, self._finish_map_at_rest
        )
        self._write_features_soon = self._make_debounced(0, self._write_map_features)
        self._fit_camera_soon = self._make_debounced(0, self.fit_camera)
        self._add_blank_layers_soon = self._make_debounced(
            0, self._add_blank_layers_if_preparing
        )
        self._remove_stale_layers_soon = self._make_debounced(
            0, self._remove_stale_layers
        )
        self._move_map_soon = self._make_debounced(0, self.move_map_beside_layers)
        view, dims, hear = session.view, viewer.dims.events, self._connections.connect
        edits = session.columns_changed, session.clusters.changed
        hear(self.render_map, *edits, session.selection.changed)
        hear(
            self.render_map, view.comparison_changed, *list_canvas_color_events(viewer)
        )
        layers = workspace.linked_layers
        hear(self._finish_map_soon, *edits, layers.changed, layers.rows_changed)
        hear(self._on_dataset_changed, session.dataset_changed)
        hear(self.show_stored_map, session.restored, session.mark_shown)
        hear(self._on_panels_changed, view.panels_changed)
        hear(self._on_look_changed, session.look.events)
        hear(self._on_state_changed, session.state_changed)
        hear(
            self.move_map_beside_layers,
            dims.order,
            dims.ndim,
            workspace.linked_layers.changed,
        )
        hear(self._on_layer_inserted, viewer.layers.events.inserted)
        # Delayed, since napari has yet to update its own widgets.
        hear(self._move_map_soon, dims.ndisplay)
        hear(self._update_facing, viewer.scene.camera.events.angles)
        hear(self._on_reveal_wanted, workspace.reveal_wanted)
        self._update_facing()
        for layer in workspace.leftover_layers:  # the layers of a former dock
            if layer in viewer.layers:
                viewer.layers.remove(layer)
        if session.snapshot is not None:
            self._rendered_run = session.run
            self.show_stored_map()
            self._fit_camera_soon()  # after the dock is laid out
        self.render_map()

    def close(self) -> None:
        """Disconnect from session and viewer; points and landmarks stay in napari.

        The workspace notes these layers, and the next scene removes them.
        """
        disconnect_all(self)
        self.workspace.leftover_layers = (
            self.map_layers.points,
            self.map_layers.landmarks,
        )
        self.tissue_layers.close()
        self.map_layers.close()

    def list_placed_points(self) -> list[tuple[AnyLayers, NDArray[np.floating]]]:
        """Return the layers of points on show, each with all positions of the points.

        Entry i of m N positions is of row ``i % N``, as in :attr:`View.positions`.
        """
        view = self.session.view
        seen = None if view.positions is None else (self.map_layers, view.positions)
        tissue = view.tissue
        pairs = seen, None if tissue is None else (self.tissue_layers, tissue.positions)
        return [pair for pair in pairs if pair and pair[0].projection() is not None]

    def find_row_at_pixel(
        self, pixel: NDArray[np.floating], **limits: float
    ) -> int | None:
        """Return the row whose point is drawn at a pixel (x, y), on map or tissue.

        None off all points.  ``limits`` are those of :func:`~.pick.find_row_at_pixel`.
        """
        n_rows = len(self.session.clusters.labels)
        for layers, positions in self.list_placed_points():
            if layers.is_map_at(pixel):
                row = find_row_at_pixel(layers, positions, pixel, **limits)
                return None if row is None else row % n_rows
        return None

    # The camera

    def fit_camera(self) -> None:
        """Fit the camera to what is shown, or go to the rows that were asked for."""
        rows, self._wanted_rows = self._wanted_rows, None
        if rows is not None or not self.session.view.is_map_shown:
            self.tissue_layers.move_camera(rows)
        else:
            self.map_layers.fit_camera()

    def show_in_tissue(self, rows: NDArray[np.intp]) -> None:
        """Show the tissue beside the map, unless it is shown, and go to some rows."""
        look, self._wanted_rows = self.session.look, rows
        if look.show == "map":
            look.show = "map and tissue"
        self._fit_camera_soon()

    def _on_reveal_wanted(self, row: int) -> None:
        """Center the camera on the point of a row: on the map, or in tissue alone."""
        if self.session.view.is_map_shown:
            self.map_layers.center_on_point(row)
        else:
            self.tissue_layers.move_camera(np.array([row]))

    # Frames

    def prepare_layers(self, run: GameRun, snapshot: Snapshot) -> None:
        """Prepare the layers at the first snapshot of a run.

        A warm start keeps the layers with their scale.  Later snapshots of the same run
        change nothing.
        """
        if run is not self._rendered_run:
            self._rendered_run = run
            if run.warm_start is not None and self.map_layers.points is not None:
                return  # the run continues from the map on show
            self.map_layers.prepare_layers(snapshot)

    @contextmanager
    def hold_rendering(self) -> Iterator[None]:
        """Render nothing inside the ``with`` block, then render the present map.

        Of nested blocks the outermost renders.
        """
        self._n_holds += 1
        try:
            yield
        finally:
            self._n_holds -= 1
            self.render_map()
            self._finish_map_soon()

    def show_stored_map(self, event: object = None) -> None:
        """Render a restored map, or one of the timeline, on a new scale.

        Nothing is done without a snapshot.
        """
        snapshot = self.session.view.painted_snapshot
        if snapshot is not None:
            self.map_layers.prepare_layers(snapshot)
            self.render_map()
            self._finish_map_soon()

    def move_map_beside_layers(
        self, event: object = None, *, is_forced: bool = False
    ) -> None:
        """Move the map next to other layers, or to other displayed axes, if needed.

        With ``is_forced`` it is moved anyway.  A moved map is rendered with its
        thumbnails, and soon its features are written and the camera is fitted.  The
        session notes which directions of the map go right and up on the canvas.
        """
        self._update_facing()
        if self.session.snapshot is None:
            return
        is_moved = self.map_layers.move_beside_other_layers(is_forced=is_forced)
        if is_moved or self.tissue_layers.has_other_axes:
            self.render_map()
            self.map_layers.refresh_thumbnails_and_extents()
            self._write_features_soon()  # the layer may have been replaced
            self._fit_camera_soon()  # napari has fitted it to the former positions

    def set_true_neighbors_shown(self, is_shown: bool) -> None:
        """Show the selection with its true neighbours moved to it, or hide them again.

        Strangers are moved away from the selection.  Nothing is shown without a
        selection, without known neighbours, or while a game runs.  Showing and hiding
        emit :attr:`neighbors_message` and render the map.
        """
        session, selection = self.session, self.session.selection
        drawn, snapshot = session.view.painted_snapshot, session.snapshot
        if self.is_showing_neighbors and not is_shown:
            self.is_showing_neighbors = False
            self.neighbors_message.emit("")
            self.render_map()
        is_free = session.state in RESTING_STATES and not selection.is_empty
        if self.is_showing_neighbors or not (is_shown and is_free):
            return
        if drawn is not None and snapshot is not None and drawn.neighbors is not None:
            correction = correct_layout(
                snapshot.embedding, drawn.neighbors, selection.points
            )
            panel_shifts = drawn.embedding - snapshot.embedding
            moved = replace(drawn, embedding=panel_shifts + correction.embedding)
            style = self._make_point_style(moved)
            self.is_showing_neighbors = self.map_layers.show_snapshot(
                moved, style, follows_extent=False
            )
            self.map_rendered.emit()
            self.neighbors_message.emit(describe_neighbors_correction(correction))

    def recolor(self) -> None:
        """Find the colours again, after the palette has changed, and render the map."""
        self._coloring_inputs = ()
        self.render_map()

    def render_map(self, event: object = None) -> None:
        """Render the present map with its colours, unless rendering is held back.

        True neighbours on show are hidden.  :attr:`map_rendered` is emitted if there is
        a map, and the legend is sent soon.
        """
        if self.is_showing_neighbors:
            self.set_true_neighbors_shown(False)  # calls this method again
        elif not self._n_holds and self._update_coloring():
            if self.session.snapshot is not None:
                self._show_on_layers()
                self.map_rendered.emit()
            self._send_legend_soon()

    def _show_on_layers(self) -> None:
        """Show points, compared points, reference cells and landmarks on layers.

        The reference's cells are shown only behind the placed map itself, unless a
        person has removed their layer.  Landmarks are shown in a game or by the look,
        but not with panels.
        """
        session, layout = self.session, self.session.view.layout
        snapshot, panels = layout.snapshot, layout.panels
        style, reference = self._make_point_style(snapshot), session.placed_on
        # In panels the reference's cells would not lie on the map.
        is_hidden = snapshot is not session.snapshot or reference is self._hidden
        is_hidden |= not session.view.is_map_shown
        if reference and (is_hidden or not reference.has_layout_of(snapshot)):
            reference = None
        corners = None if reference is None else reference.corners
        if panels is not None:  # in space the camera may look from any side
            corners = panels.box if self.map_layers.is_shown_in_3d else panels.corners
        is_immediate = session.state in RESTING_STATES
        is_played = session.state in ("running", "paused")
        has_rings = session.look.show_landmarks or is_played
        has_rings = has_rings and session.view.is_map_shown
        self.map_layers.set_landmarks_visible(has_rings and panels is None)
        if self.map_layers.show_snapshot(
            snapshot, style, is_immediate=is_immediate, corners=corners
        ):
            is_shown, tissue = session.view.is_map_shown, session.view.tissue
            self.map_layers.set_points_visible(is_shown)
            if tissue is None:
                self.tissue_layers.hide()
            else:
                self.tissue_layers.show(tissue, style, self.map_layers.points)
            other = layout.other if is_shown else None
            self.map_layers.show_extra_points(COMPARED, other, style)
            cells = np.empty((0, 2)) if reference is None else reference.cells
            grey = np.array(REFERENCE_GREYS[is_canvas_light(self.viewer)], np.float32)
            greys = PointStyle(
                np.tile(grey, (len(cells), 1)), np.ones(len(cells), "f4")
            )
            self.map_layers.show_extra_points(
                REFERENCE, cells if len(cells) else None, greys
            )

    def _send_legend(self) -> None:
        """Emit the coloring for the legend if it is a new one.

        It is ``UNCOLORED`` while points are coloured by cluster.
        """
        # The table of clusters replaces their legend.
        is_cluster = self.session.look.color_by == CLUSTER
        legend = UNCOLORED if is_cluster else self.coloring
        if legend is not self._sent_legend:
            self._sent_legend = legend
            self.legend_changed.emit(legend)

    # Events

    def _make_debounced(
        self, milliseconds: int, job: Callable[[], None]
    ) -> Callable[..., None]:
        """Return a function that runs a job so long after the function's last call.

        The function ignores its arguments, such as an event.
        """
        turn = qdebounced(job, milliseconds, parent=self)
        return lambda *event: turn.throttle()

    def _on_layer_inserted(self, event: Any) -> None:
        """Move the map away from an added layer that holds data."""
        if self.map_layers.note_layer_with_data(event.value):
            self._move_map_soon()

    def _on_points_removed(self, name: str) -> None:
        """End what a layer showed after a person has removed or edited the layer.

        The comparison ends, or the reference's cells stay hidden.  Without the map's
        points the session stops its game and says so, and stale layers are removed
        soon.
        """
        session = self.session
        if name == COMPARED:
            session.view.set_comparison(None)
        elif name == REFERENCE:
            self._hidden = session.placed_on
        else:
            if session.state in ("running", "paused", "finished", "stopped"):
                session.stop()
                session.show_message(LOST)
            self._rendered_run = None
            self._remove_stale_layers_soon()  # napari may yet remove more layers
            self.map_rendered.emit()

    def _on_tissue_removed(self) -> None:
        """Show the map alone after a person has removed the points in tissue."""
        self.session.look.show = "map"

    def _on_points_colored(self, rgba: Colors) -> None:
        """Keep colours that were set in the layer until the coloring changes."""
        self.coloring = replace(self.coloring, rgba=rgba)
        self.render_map()

    def _on_dataset_changed(self) -> None:
        """Render the map of the new dataset, and soon remove layers without a map."""
        self._rendered_run, self._rendered_style = None, ((), NO_STYLE)
        self.render_map()
        if self.map_layers.points is not None or self.map_layers.landmarks is not None:
            self._remove_stale_layers_soon()

    def _remove_stale_layers(self) -> None:
        """Remove all layers without a snapshot, or a compared map without its points.

        Without a snapshot :attr:`map_rendered` is emitted.
        """
        if self.session.snapshot is None and self._rendered_run is None:
            self.map_layers.remove_layers()
            self.tissue_layers.hide()
            self.map_rendered.emit()
        elif self.map_layers.points is None:
            self.map_layers.show_extra_points(COMPARED, None, NO_STYLE)

    def _on_look_changed(self, info: EmissionInfo) -> None:
        """Render the map in its new look; another colour variable resets the limits."""
        look = self.session.look
        if info.signal.name == "color_by" and look.limits is not None:
            look.limits = None  # another choice has other limits; calls this again
        else:
            self.render_map()

    def _update_facing(self, event: object = None) -> None:
        """Tell the session which map directions go right and up on the canvas."""
        self.session.view.facing = find_steps_right_and_up(self.viewer)

    def _on_panels_changed(self) -> None:
        """Render panels, tissue or the map alone, and fit the camera at rest.

        The map moves beside a tissue that is now shown otherwise, and back after it.
        """
        view, (tissue, was_map_shown, n_axes) = self.session.view, self._shown
        self._shown = view.tissue, view.is_map_shown, view.n_axes_shown
        is_switched = view.is_map_shown != was_map_shown
        is_switched |= (view.tissue is None) != (tissue is None)
        if is_switched or view.n_axes_shown != n_axes:
            self.viewer.dims.ndisplay = 3 if view.n_axes_shown == 3 else 2
        self.render_map()
        if is_switched or view.tissue is not tissue:
            self.move_map_beside_layers(is_forced=True)
        self._finish_map_soon()
        if view.tissue is not tissue or self.session.state != "running":
            self._fit_camera_soon()

    def _on_state_changed(self, state: str) -> None:
        """Render the map; add blank layers for a run that is prepared.

        At rest blank layers are removed, unless rendering is held back, and thumbnails
        and features are updated soon.
        """
        if state == "preparing":
            self._add_blank_layers_soon()
        elif state in RESTING_STATES:
            if not self._n_holds:
                self.map_layers.remove_if_blank()
            self._finish_map_soon()
        self.render_map()

    def _add_blank_layers_if_preparing(self) -> None:
        """Add blank layers if another thread still prepares the run."""
        run = self.session.run
        if self.session.state == "preparing":
            n_points = len(self.session.require_data().obs)
            n_landmarks, d = run.settings.n_landmarks, run.settings.n_components
            self.map_layers.add_blank_layers(n_points, n_landmarks, d)

    def _finish_map_at_rest(self) -> None:
        """Update thumbnails of a map at rest, and soon its features."""
        if self.session.state in RESTING_STATES:
            self.map_layers.refresh_thumbnails_and_extents()
            self._write_features_soon()  # after other pending events

    def _write_map_features(self) -> None:
        """Set the points layer's features: metadata, clusters and measures.

        The features of linked layers get clusters and positions, for other plugins.
        Metadata columns with the name of a cluster or measure column get the suffix
        " (file)", and coordinates of external maps are left out.  Nothing is done where
        the layer has another number of points than the dataset.
        """
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
            axis
            for axes in find_axes_by_external_map(dataset.obs).values()
            for axis in axes
        ]
        metadata = dataset.obs.drop(columns=of_maps)  # napari shows all on hover

        def free_name(name: str) -> str:  # napari accepts no name twice
            return free_name(f"{name} (file)") if name in metadata else name

        table = metadata.rename(columns={name: free_name(name) for name in computed})
        table.index = range(len(table))  # set in place, as reindexing would copy
        for name, values in computed.items():  # assigned by position
            table[name] = values
        points = self.map_layers.points
        if points is not None and len(points.data) == len(table):
            points.features = table
        linked = self.workspace.linked_layers.current
        if linked is not None and dataset.objects is not None:
            label_ids, places = dataset.objects.label_ids, snapshot.embedding
            write_map_features(linked.labels, label_ids, columns["cluster"], places)
        for layer, rows in self.workspace.linked_layers.rows_by_layer.items():
            if rows.max(initial=-1) < len(snapshot.embedding):
                write_vertex_features(
                    layer, rows, columns["cluster"], snapshot.embedding
                )

    # Colours and sizes

    def _update_coloring(self) -> bool:
        """Update :attr:`coloring` to the choice of "Colour by".

        Colours are kept while the choice and its data are the same.  Return False where
        the choice cannot be shown: it was then changed to clusters, and the map is
        already rendered with them.  A DataError is shown as a message.
        """
        session, look = self.session, self.session.look
        dataset, snapshot = session.dataset, session.view.painted_snapshot
        is_built_in = look.color_by in BUILT_IN
        if dataset is None or (is_built_in and snapshot is None):
            self.coloring, self._coloring_inputs = UNCOLORED, ()
            return True
        choice, limits, compared = look.color_by, look.limits, session.view.comparison
        of: tuple[object, ...] = choice, limits, dataset, dataset.obs
        if is_built_in:
            of = choice, limits, snapshot, session.clusters.clustering, compared
        if are_same_objects(of, self._coloring_inputs):
            return True
        colors = None
        try:
            if snapshot is not None and is_built_in:
                if choice != MOVEMENT or compared is not None:
                    colors = color_points(choice, session, snapshot, limits)
            elif choice_name_in_file(choice, dataset) is not None:
                colors = color_by_column_or_feature(choice, dataset, limits)
        except DataError as error:  # the file with the gene may be gone
            session.show_message(str(error))
        if colors is None:
            look.color_by = CLUSTER  # calls this method again
            return False
        self.coloring, self._coloring_inputs = colors, of
        return True

    def _make_point_style(self, snapshot: Snapshot) -> PointStyle:
        """Return the style of a snapshot's points in the present coloring.

        Selected points are larger and above the others, which are muted.  Where the
        look asks for that, sizes show the pressure instead.  The last style is returned
        again for the same coloring, selection and pressure.
        """
        selection, is_light = self.session.selection, is_canvas_light(self.viewer)
        is_sized = self.session.look.size_by_pressure and snapshot.has_pressure
        above = None if selection.is_empty else selection.points
        of = self.coloring, above, is_light, snapshot if is_sized else None
        if not are_same_objects(of, self._rendered_style[0]):
            colors = self.coloring.rgba
            sizes = np.ones(len(colors), np.float32)
            if above is not None:
                is_scale = self.coloring.limits is not None
                share = MUTED_VALUE if is_scale else MUTED
                colors = colors * np.float32(1 - share)
                colors += np.float32(share * GREYS[is_light])
                colors[:, 3] = 1.0  # selected points stand out among opaque points
                colors[above] = self.coloring.rgba[above]
                sizes[above] = SELECTED_MAGNIFICATION
            if is_sized:
                sizes = compute_pressure_magnifications(snapshot.pressure)
            self._rendered_style = (
                of,
                PointStyle(np.asarray(colors, np.float32), sizes, above),
            )
        return self._rendered_style[1]


def describe_neighbors_correction(correction: Correction) -> str:
    """Return a sentence on what *True neighbours* has moved.

    True neighbours move to the selection, and strangers away from it.
    """
    n_in, n_out = len(correction.moved_in), len(correction.moved_out)
    if not (n_in or n_out):
        return "All true neighbours of the selection are beside it, without strangers."
    moved_in = count_text(n_in, "true neighbour")
    moved_out = count_text(n_out, "stranger")
    return (
        f"While you hold the button: {moved_in} moved in from elsewhere, "
        f"{moved_out} moved out."
    )


def compute_pressure_magnifications(
    pressure: NDArray[np.floating],
) -> NDArray[np.float32]:
    """Return size factors (N,) from 1 at pressure 0 to ``MAX_MAGNIFIED``.

    The largest factor begins at the 95th percentile of positive pressures; without any
    all factors are 1.
    """
    above = pressure[pressure > 0]
    if not len(above):
        return np.ones(len(pressure), np.float32)
    most = max(float(np.percentile(above, 95)), np.finfo(np.float32).tiny)
    share = np.clip(pressure / most, 0, 1)
    return (1 + (MAX_MAGNIFIED - 1) * share).astype(np.float32)
