"""Paint the paths of selected tracks, and ring the objects of the present frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QLineF, QObject, QPointF, Qt
from qtpy.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF

from napari_embedding_game.session.tracks import find_frames_of_rows, find_tracks
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    layer_projection,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import displayed_axes_and_position

MAX_TRACKS = 50
"""Up to so many selected tracks have paths: more would hide the points."""
PATH, HALO = 1.6, 4.0
"""Widths of a path and of the edge around it, in pixels."""
ARROW, ARROW_STEP = 5.0, 60.0
"""Half the length of an arrow, and pixels of a path between two arrows."""
RING, DISC = 11.0, 7.0
"""Diameters of the ring of a present object, and of the disc in it, in pixels."""
SHORTEST = 2.0
"""Pixels of the shortest step with an arrow: the way of shorter ones is by chance."""
INKS = QColor(255, 255, 255, 190), QColor(20, 20, 20, 190)
"""Colours on a dark and on a light canvas; the edge has the other one."""


class TrackPaths(QObject):
    """Paints paths on the map and the movie, and marks the frame on show on the map.

    Paths are of the tracks with selected moments, up to ``MAX_TRACKS``.  The frame is
    that of the linked labels, while they are visible.
    """

    def __init__(self, overlay: MapOverlay) -> None:
        super().__init__(overlay.dock)
        self._overlay, self._session = overlay, (session := overlay.scene.session)
        self._viewer = viewer = overlay.scene.viewer
        self._linked = linked = overlay.scene.workspace.linked_layers
        self._steps = np.empty((0, 2), np.intp)
        """(k, 2) rows at both ends of each step of the paths, the former moment first.
        """
        self._ends: NDArray[np.float64] | None = None
        """(k, 2, ndim) places of these rows in the labels; None where they have none.
        """
        self._pictures: dict[str, tuple[Any, QPixmap]] = {}
        """The paths on the map and on the movie, each with what it was painted of."""
        self._rows_by_frame: dict[int, NDArray[np.intp]] = {}
        self._frames_of: object = None
        """The metadata for which the frames were found."""
        connections = Connections(self)
        data = session.dataset_changed, session.columns_changed, linked.changed
        connections.connect(self._update_frames, *data)
        connections.connect(self._update_paths, *data, session.selection.changed)
        steps = viewer.dims.events.current_step
        connections.connect(self._on_slider_moved, steps)
        overlay.set_painter(self._paint_frame, False)
        overlay.set_painter(self._paint_paths, False)
        self._update_frames()
        self._update_paths()

    def find_present_rows(self) -> NDArray[np.intp]:
        """Return the rows whose objects are in the frame on show.

        There are none without visible labels of a movie, or while time is displayed as
        an axis of space.
        """
        linked, viewer = self._linked.current, self._viewer
        nothing = np.empty(0, np.intp)
        if linked is None or linked.labels not in viewer.layers:
            return nothing
        axes, position = displayed_axes_and_position(viewer.dims, linked.labels)
        if not linked.labels.visible or 0 in axes:
            return nothing
        return self._rows_by_frame.get(round(float(position[0])), nothing)

    def _update_frames(self, event: object = None) -> None:
        """Find the rows of each frame, once for the same data."""
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if obs is not self._frames_of or obs is None:
            self._frames_of, self._rows_by_frame = obs, {}
            if (frames := find_frames_of_rows(dataset)) is not None:
                order = np.argsort(frames, kind="stable")
                values, firsts = np.unique(frames[order], return_index=True)
                parts = np.split(order, firsts[1:])
                self._rows_by_frame = dict(zip(values.tolist(), parts, strict=True))
        self._overlay.set_painter(self._paint_frame, bool(self._rows_by_frame))

    def _update_paths(self, event: object = None) -> None:
        """Find the steps of the tracks with selected moments."""
        dataset, points = self._session.dataset, self._session.selection.points
        tracks, self._steps, self._ends = find_tracks(dataset), self._steps[:0], None
        if tracks is not None and len(points) == len(tracks.track_of_row):
            chosen = tracks.find_tracks_of_rows(points)
            rows = tracks.find_moments_of_tracks(
                chosen if len(chosen) <= MAX_TRACKS else []
            )
            rows = rows[tracks.previous[rows] >= 0]
            self._steps = np.stack([tracks.previous[rows], rows], axis=1)
            objects = None if dataset is None else dataset.objects
            if objects is not None and self._rows_by_frame:
                centers = [objects.take(rows).centers for rows in self._steps.T]
                self._ends = np.stack(centers, axis=1)
        self._overlay.set_painter(self._paint_paths, bool(len(self._steps)))

    def _on_slider_moved(self, event: object = None) -> None:
        """Paint the marks of another frame."""
        if self._rows_by_frame:
            self._overlay.refresh()

    @property
    def _ink_and_edge_color(self) -> tuple[QColor, QColor]:
        """The colour of lines on the present canvas, and that of their edges."""
        return INKS[::-1] if self._overlay.is_on_light_canvas else INKS

    def _paint_frame(self, painter: QPainter, projection: CanvasProjection) -> None:
        """Paint discs in the colours of the present rows, with a ring around each."""
        layout, rows = self._session.view.layout, self.find_present_rows()
        colors = self._overlay.scene.coloring.rgba
        if layout is None or not len(rows) or rows.max() >= len(colors):
            return
        pixels = projection.to_pixels(layout.snapshot.embedding[rows])
        rows, pixels = rows[is_seen := projection.contains(pixels)], pixels[is_seen]
        ink, edge = self._ink_and_edge_color
        groups, members = np.unique(
            np.round(colors[rows] * 255).astype(int), axis=0, return_inverse=True
        )
        discs = [(QColor(*rgba), DISC, i) for i, rgba in enumerate(groups.tolist())]
        for color, width, group in ((edge, RING + 1.5, -1), (ink, RING, -1), *discs):
            chosen = pixels if group < 0 else pixels[members.ravel() == group]
            cap = Qt.PenCapStyle.RoundCap
            painter.setPen(QPen(color, width, Qt.PenStyle.SolidLine, cap))
            painter.drawPoints(QPolygonF([QPointF(x, y) for x, y in chosen.tolist()]))

    def _paint_paths(self, painter: QPainter, projection: CanvasProjection) -> None:
        """Paint the steps on map and movie, apart from steps between panels."""
        layout = self._session.view.layout
        if layout is None or self._steps.max(initial=-1) >= len(
            layout.snapshot.embedding
        ):
            return
        panels, steps = layout.panel_of_points, self._steps
        if panels is not None:
            steps = steps[panels[steps[:, 0]] == panels[steps[:, 1]]]
        ends = layout.snapshot.embedding[steps.ravel()]
        pixels = projection.to_pixels(ends).reshape(-1, 2, 2)
        self._paint_steps_once(painter, "map", pixels)
        linked, ends = self._linked.current, self._ends
        if linked is None or ends is None:
            return
        drawn = layer_projection(self._viewer, linked.labels, includes_slices=True)
        axes, _ = displayed_axes_and_position(self._viewer.dims, linked.labels)
        if drawn is not None and 0 not in axes:
            painter.setClipping(False)  # the movie may lie in another box of the grid
            places = ends.reshape(-1, ends.shape[2])[:, axes]
            pixels = drawn.to_pixels(places).reshape(-1, 2, 2)
            self._paint_steps_once(painter, "movie", pixels)

    def _paint_steps_once(
        self, painter: QPainter, place: str, ends: NDArray[np.float64]
    ) -> None:
        """Paint lines (k, 2, 2), from a picture where they lie as they did before.

        500 long lines take some 40 ms, and the time slider moves none of them.
        ``place``: "map" or "movie", which have a picture each.
        """
        overlay = self._overlay
        ratio = overlay.devicePixelRatioF()
        key = ends.tobytes(), overlay.is_on_light_canvas, overlay.size(), ratio
        if self._pictures.get(place, (None,))[0] != key:
            picture = QPixmap(overlay.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            on_picture = QPainter(picture)
            on_picture.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_steps(on_picture, ends)
            on_picture.end()
            self._pictures[place] = key, picture
        painter.drawPixmap(0, 0, self._pictures[place][1])

    def _paint_steps(self, painter: QPainter, ends: NDArray[np.float64]) -> None:
        """Paint lines (k, 2, 2) from pixel to pixel (x, y), with arrows along them."""
        ends = ends[np.isfinite(ends).all(axis=(1, 2))]
        lines = [QLineF(*one) for one in ends.reshape(-1, 4).tolist()]
        ink, edge = self._ink_and_edge_color
        cap = Qt.PenCapStyle.RoundCap
        for color, width in ((edge, HALO), (ink, PATH)):
            painter.setPen(QPen(color, width, Qt.PenStyle.SolidLine, cap))
            painter.drawLines(lines)
        painter.setPen(QPen(edge, 1.0))
        painter.setBrush(QColor(*ink.getRgb()[:3]))
        for tip in compute_arrow_corners(ends).tolist():
            painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in tip]))


def compute_arrow_corners(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners (a, 3, 2) of arrows in the middles of steps (k, 2, 2).

    There is one about every ``ARROW_STEP`` pixels of a path, and one at its end: the
    last step before one that begins elsewhere.
    """
    moves = ends[:, 1] - ends[:, 0]
    lengths = np.hypot(*moves.T)
    passed = np.floor(np.cumsum(lengths) / ARROW_STEP)
    is_last = np.append((ends[1:, 0] != ends[:-1, 1]).any(axis=1), [True])[: len(ends)]
    is_marked = is_last | (np.diff(passed, prepend=0) > 0)
    rows = np.flatnonzero(is_marked & (lengths > SHORTEST))
    ahead = ARROW * moves[rows] / lengths[rows, None]
    aside = 0.7 * ahead[:, ::-1] * [-1.0, 1.0]
    middles = ends[rows].mean(axis=1)
    corners = middles + ahead, middles - ahead + aside, middles - ahead - aside
    return np.stack(corners, axis=1)
