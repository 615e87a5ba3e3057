"""Paint the names of clusters over the map; a name is a handle of its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from napari.settings import get_settings
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QPointF
from qtpy.QtGui import QPainter

from napari_embedding_game.data.clustering import Cluster, find_label_indices
from napari_embedding_game.data.export.plots import NamedPosition
from napari_embedding_game.session.session import RESTING_STATES, Session
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.canvas.handles import Handle, make_game_handle
from napari_embedding_game.ui.canvas.label_layout import (
    compute_centers_and_radii,
    compute_label_offsets,
    compute_label_opacities,
    find_rows_by_group,
    find_zooms_without_overlap,
)
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import CanvasProjection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.halo_text import (
    ON_DARK,
    ON_LIGHT,
    find_text_points,
    measure_half_size,
    paint_text_with_halo,
)

MAX_NUMBERED = 40
"""With more clusters only given names are shown, and no numbers."""
MAX_LETTERS = 32
"""Letters of a name on the map."""
UNSELECTED_OPACITY = 0.25
"""Opacity of names of unselected clusters, while clusters are selected."""
COMPACT = 0.6
"""Radius of a cluster that is named in tissue, relative to the most spread cluster."""
AT_HOME = 0.5
"""Least number of a cluster's cells in a panel of tissue where it is named, relative to
the number that chance would put there."""
MIN_OPACITY = 0.3
"""Names below this opacity are no handles."""
MAX_RUNNING_POINTS = 100_000
"""With more points a running game has no names: placing them would slow it down."""


@dataclass(frozen=True, eq=False)
class PlacedNames:
    """The m names to paint with their places, the most important first."""

    clusters: tuple[Cluster, ...]
    texts: tuple[str, ...]
    positions: NDArray[np.floating]
    """(m, d) center of each cluster, in units of the map."""
    radii: NDArray[np.floating]
    """(m,) distance from the center within which most points of the cluster lie."""
    half_sizes: NDArray[np.floating]
    """(m, 2) half the height and half the width of each name, in pixels."""
    panels: NDArray[np.intp]
    """(m,) index of each name's panel; 0 on a single map."""

    def select_territories(self, counts: NDArray[np.integer]) -> PlacedNames:
        """Return the names of clusters that form a territory of their panel.

        The radius of each is at most ``COMPACT`` of the largest in its panel, and its
        number of points there, of ``counts`` (m,), is no less than ``AT_HOME`` says.
        """
        most = np.zeros(1 + int(self.panels.max(initial=0)))
        np.maximum.at(most, self.panels, self.radii)
        in_panel = np.bincount(self.panels, counts)[self.panels]
        groups = np.unique([c.id for c in self.clusters], return_inverse=True)[1]
        in_cluster = np.bincount(groups, counts)[groups]
        is_home = counts * counts.sum() >= AT_HOME * in_panel * in_cluster
        is_compact = self.radii <= COMPACT * most[self.panels]
        kept = np.flatnonzero(is_home & is_compact)
        lists = ([*map(each.__getitem__, kept)] for each in (self.clusters, self.texts))
        arrays = self.positions, self.radii, self.half_sizes, self.panels
        return PlacedNames(*map(tuple, lists), *(each[kept] for each in arrays))


EMPTY = np.empty((0, 2))
NO_NAMES = PlacedNames((), (), EMPTY, EMPTY[:, 0], EMPTY, np.empty(0, np.intp))


class MapNames(QObject):
    """Paints the names of clusters on a map at rest or late in a game.

    With ``is_in_tissue`` they are painted in tissue instead, where clusters that are
    spread over it have no name.
    """

    def __init__(self, overlay: MapOverlay, *, is_in_tissue: bool = False) -> None:
        super().__init__(overlay.dock)
        scene = overlay.scene
        self._overlay, self._session = overlay, scene.session
        self._is_in_tissue = is_in_tissue
        self._layers = scene.tissue_layers if is_in_tissue else scene.map_layers
        self.names = NO_NAMES
        self._source: tuple[object, ...] = ()
        """The objects that the names were placed for."""
        self._drag: tuple[int, NDArray[np.floating]] | None = None
        """Index of the name dragged on a map at rest, and its shift in pixels (2,)."""
        letters = get_settings().appearance.events.font_size
        Connections(self).connect(self.refresh_names, scene.map_rendered, letters)
        overlay.set_painter(self._paint_names, False, self._layers)
        self.refresh_names()

    def refresh_names(self, event: object = None) -> None:
        """Place the names again if clusters, map, panels, look or letters have changed.

        There are no names early in a game, nor in a game of many points.
        """
        session, look = self._session, self._session.look
        view, is_read = session.view, self._is_map_readable()
        of = session.clusters.clustering, look.show_names, look.color_by == CLUSTER
        of = *of, view.painted_snapshot, view.panels, is_read, find_text_points()
        of = *of, view.tissue if self._is_in_tissue else None
        if not are_same_objects(of, self._source):
            self._source = of
            self.names = self._place_names() if is_read else NO_NAMES
            has_names = bool(self.names.clusters)
            self._overlay.set_painter(self._paint_names, has_names, self._layers)

    def label_positions_and_opacities(
        self, projection: CanvasProjection
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the center pixels (x, y) of the names, (m, 2), and opacities (m,).

        Opacities go from 0 to 1; they are 0 where a name has no room or lies behind the
        camera, and are reduced for clusters without selected points.  Names of small
        clusters are above them, and names at the left or right edge are moved inwards.
        """
        names, selection = self.names, self._session.selection
        pixels = projection.to_pixels(names.positions)
        zooms = projection.compute_pixels_per_unit(names.positions)
        is_ahead, opacities = np.isfinite(pixels).all(axis=1), np.zeros(len(pixels))
        room = find_zooms_without_overlap(
            pixels[is_ahead, ::-1], names.half_sizes[is_ahead]
        )
        opacities[is_ahead] = compute_label_opacities(room)
        if not selection.is_empty:
            chosen = set(selection.clusters) or set(
                selection.selected_share_by_cluster()
            )
            is_muted = [cluster.id not in chosen for cluster in names.clusters]
            opacities[is_muted] *= UNSELECTED_OPACITY
        pixels[:, 1] -= compute_label_offsets(
            names.radii * zooms, names.half_sizes[:, 0]
        )
        x, _, width, _ = projection.canvas_box  # a name at an edge stays complete
        across, half_sizes = pixels[:, 0], names.half_sizes[:, 1]
        is_near = (across > x) & (across < x + width)
        across[:] = np.where(
            is_near, np.clip(across, x + half_sizes, x + width - half_sizes), across
        )
        pixels[names.panels > 0] += self._layers.find_grid_offset()
        return pixels, opacities

    def make_name_handle(self, pixel: NDArray[np.floating]) -> Handle | None:
        """Return a handle of the cluster whose name is at a pixel (x, y), or None.

        In a running game the handle drags the cluster.  Else it drags the name, and a
        drop asks for a game that begins with the moved cluster.
        """
        number, hand = self._find_name_index(pixel), self._session.hand
        if number is None:
            return None
        cluster, through = self.names.clusters[number].id, self.names.positions[number]

        def compute_shift_on_map(
            at: NDArray[np.floating],
        ) -> NDArray[np.floating] | None:
            """Return the shift (d,) on the map from the start pixel to ``at``.

            In space the shift is parallel to the canvas.  None where a pixel shows no
            part of the map's plane.
            """
            ends = [self._layers.position_at_pixel(end, through) for end in (pixel, at)]
            return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]

        def drag_to_pixel(at: NDArray[np.floating]) -> None:
            """Drag the cluster by the shift to a pixel on the map's plane."""
            shift = compute_shift_on_map(at)
            if shift is not None:
                hand.drag_by(shift)

        if self._session.state == "running":
            begin = partial(hand.begin_cluster_drag, cluster)
            return make_game_handle(hand, begin, drag_to_pixel, cluster)

        def show_drag(at: NDArray[np.floating] | None) -> None:
            """Paint the name at the mouse; None puts it back to its cluster."""
            self._drag = None if at is None else (number, at - pixel)
            self._overlay.refresh()

        def drop(at: NDArray[np.floating], is_pinned: bool) -> None:
            """Put the name back, and ask for a game with the cluster moved there."""
            shift = compute_shift_on_map(at)
            show_drag(None)
            if shift is not None:
                move = self._session.move_cluster
                begin = partial(move, cluster, shift, is_pinned=is_pinned)
                self._session.play_wanted.emit(begin)

        return Handle(show_drag, drop, lambda: show_drag(None), cluster)

    def _find_name_index(self, pixel: NDArray[np.floating]) -> int | None:
        """Return the index of the name at a pixel (x, y), or None.

        Names up to ``MIN_OPACITY`` are ignored, and those of a compared map.  Of
        several names it is the most important.
        """
        names, projection = self.names, self._layers.projection()
        if not names.clusters or projection is None or not projection.contains(pixel):
            return None
        pixels, opacities = self.label_positions_and_opacities(projection)
        is_hit = (np.abs(pixels - pixel) <= names.half_sizes[:, ::-1]).all(axis=1)
        is_hit &= opacities > MIN_OPACITY
        if self._session.view.is_side_by_side:
            is_hit &= names.panels == 0  # only points of this map can be moved
        return int(np.argmax(is_hit)) if is_hit.any() else None

    def _is_map_readable(self) -> bool:
        """Whether the map is at rest, or in the second half of a game.

        A warm start is readable from its first snapshot; a game of more than
        ``MAX_RUNNING_POINTS`` points, or one that is not on show, never is.
        """
        session, snapshot = self._session, self._session.snapshot
        run = session.run
        if session.state != "running":
            return session.state in RESTING_STATES and self._layers.points is not None
        if run is None or snapshot is None or not session.shows_map_of(run):
            return False
        is_late = run.warm_start or 2 * snapshot.iteration >= snapshot.n_iter
        return bool(is_late) and len(snapshot.embedding) <= MAX_RUNNING_POINTS

    def _place_names(self) -> PlacedNames:
        """Return the names of shown clusters, placed on each map or panel.

        A cluster has a name in each panel that holds its points.  Names are in order of
        their clusters, the most important first, then of panels.
        """
        view = self._session.view
        layout = view.tissue if self._is_in_tissue else view.layout
        clusters, labels = (
            find_clusters_with_shown_names(self._session),
            self._session.clusters.labels,
        )
        if layout is None or not clusters:
            return NO_NAMES
        seen = layout.positions
        n_maps = len(seen) // len(labels)
        panels = np.repeat(np.arange(n_maps), len(labels))
        if layout.panel_of_points is not None and layout.panels is not None:
            panels, n_maps = layout.panel_of_points, len(layout.panels.captions)
        labels = np.resize(labels, len(seen))
        groups = find_label_indices([c.id for c in clusters], labels)
        is_left_out = (groups < 0) | ~np.isfinite(seen[:, 0])
        groups = np.where(is_left_out, -1, groups * n_maps + panels)
        present, parts = find_rows_by_group(groups)
        named = tuple(clusters[group // n_maps] for group in present)
        texts = tuple(map(shorten_name, named))
        pairs = zip(texts, named, strict=True)
        half_sizes = np.array(
            [measure_half_size(text, c.is_named) for text, c in pairs]
        )
        centers, radii = compute_centers_and_radii(seen, parts)
        panels = np.array(present) % n_maps
        names = PlacedNames(named, texts, centers, radii, half_sizes, panels)
        if self._is_in_tissue:
            names = names.select_territories(np.array([*map(len, parts)], np.intp))
        return names

    def _paint_names(self, painter: QPainter, projection: CanvasProjection) -> None:
        """Paint the names by their opacities; a dragged name moves with the mouse."""
        names, (held, moved) = self.names, self._drag or (-1, np.zeros(2))
        colors = ON_LIGHT if self._overlay.is_on_light_canvas else ON_DARK
        pixels, seen = self.label_positions_and_opacities(projection)
        if 0 <= held < len(seen):
            pixels[held] += moved
        # The most important name is painted last, above names that fade out.
        for number in reversed(np.flatnonzero(seen > 0).tolist()):
            painter.setOpacity(seen[number])
            text, is_given = names.texts[number], names.clusters[number].is_named
            paint_text_with_halo(
                painter, QPointF(*pixels[number]), text, is_given, colors
            )


def find_clusters_with_shown_names(session: Session) -> tuple[Cluster, ...]:
    """Return the clusters whose names the map shows, the most important first.

    Given names come before numbers, and large clusters before small clusters.  Numbers
    are left out where there are many clusters, or where the map is not coloured by
    cluster, since they would seem to number something else.
    """
    clusters = list(session.clusters.clusters)
    if session.look.color_by != CLUSTER or len(clusters) > MAX_NUMBERED:
        clusters = [c for c in clusters if c.is_named]
    if not session.look.show_names:
        return ()
    return tuple(sorted(clusters, key=lambda c: (not c.is_named, -c.size)))


def list_names_for_figure(session: Session) -> list[NamedPosition]:
    """Return pairs of name and position (d,) for a figure of the map without panels.

    Names are those that the map shows, shortened, at the centers of their clusters, the
    most important first.  The list is empty without a snapshot or without shown names.
    """
    clusters, labels = find_clusters_with_shown_names(session), session.clusters.labels
    if session.snapshot is None or not clusters:
        return []
    present, parts = find_rows_by_group(
        find_label_indices([c.id for c in clusters], labels)
    )
    centers, _ = compute_centers_and_radii(session.snapshot.embedding, parts)
    texts = [shorten_name(clusters[number]) for number in present]
    return list(zip(texts, centers, strict=True))


def shorten_name(cluster: Cluster) -> str:
    """Return a cluster's name, cut to ``MAX_LETTERS`` letters with an ellipsis."""
    name = cluster.name
    return name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…"
