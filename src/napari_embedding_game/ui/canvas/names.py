"""The names of the clusters, written over the map; each is a handle of its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QPointF
from qtpy.QtGui import QPainter

from napari_embedding_game.data.clustering import Cluster, label_indices
from napari_embedding_game.data.export.plots import Name
from napari_embedding_game.session.session import RESTING, Session
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.canvas.hand import Handle, live_handle
from napari_embedding_game.ui.canvas.label_layout import (
    centers_and_radii,
    group_rows,
    label_offsets,
    opacity,
    zooms_without_overlap,
)
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.halo_text import (
    ON_DARK,
    ON_LIGHT,
    paint_text_with_halo,
    text_half_size,
)

MAX_NUMBERED = 40
"""More clusters than this show the names that were given, and no numbers."""
MAX_LETTERS = 32
"""Letters of a name on the map."""
UNSELECTED_OPACITY = 0.25
"""Of the names of other clusters, while some are selected."""
MIN_OPACITY = 0.3
"""Names that are seen less are no handles."""
MAX_NAMED_RUNNING = 100_000
"""Points; with more, positioning the names would slow down moving maps."""


@dataclass(frozen=True, eq=False)
class Names:
    """The names to write, the most important first."""

    clusters: tuple[Cluster, ...]
    texts: tuple[str, ...]
    positions: NDArray[np.floating]
    """(m, d) the middle of each cluster, in units of the map."""
    radii: NDArray[np.floating]
    """(m,) how far most points of its cluster lie from there."""
    halves: NDArray[np.floating]
    """(m, 2) half the height and half the width of each, in pixels."""
    panels: NDArray[np.intp]
    """(m,) the panel of each, 0 where there is one map."""


EMPTY = np.empty((0, 2))
NO_NAMES = Names((), (), EMPTY, EMPTY[:, 0], EMPTY, np.empty(0, np.intp))


class MapNames(QObject):
    """Paints the names of clusters, of a map at rest or late in a game."""

    def __init__(self, overlay: MapOverlay) -> None:
        super().__init__(overlay.dock)
        scene = overlay.scene
        self._overlay, self._session = overlay, scene.session
        self._layers = scene.layers
        self.names = NO_NAMES
        self._source: tuple[object, ...] = ()
        """What they were found of."""
        self._drag: tuple[int, NDArray[np.floating]] | None = None
        """The name of a map at rest that is dragged, and by how many pixels (2,)."""
        Connections(self).connect(self.update, scene.drawn)
        overlay.want(self._paint, False)
        self.update()

    def update(self) -> None:
        """Find the names that are to be seen, and where, if that has changed."""
        session, look = self._session, self._session.look
        view, is_read = session.view, self._is_read()
        of = session.clusters.clustering, look.show_names, look.color_by == CLUSTER
        of = *of, view.drawn, view.panels, is_read
        if not are_same_objects(of, self._source):
            self._source = of
            self.names = self._find_names() if is_read else NO_NAMES
            self._overlay.want(self._paint, bool(self.names.clusters))

    def layout_at(
        self, projection: Projection
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return the pixels in the middle of each name, and how strongly it is seen.

        (m, 2) of x and y, and (m,) from 0, also behind the camera, to 1.
        """
        names, selection = self.names, self._session.selection
        pixels = projection.to_pixels(names.positions)
        zooms = projection.zooms_at(names.positions)
        is_ahead, strengths = np.isfinite(pixels).all(axis=1), np.zeros(len(pixels))
        room = zooms_without_overlap(pixels[is_ahead, ::-1], names.halves[is_ahead])
        strengths[is_ahead] = opacity(room)
        if not selection.is_empty:
            chosen = set(selection.clusters) or set(selection.shares())
            back = [cluster.id not in chosen for cluster in names.clusters]
            strengths[back] *= UNSELECTED_OPACITY
        pixels[:, 1] -= label_offsets(names.radii * zooms, names.halves[:, 0])
        x, _, width, _ = projection.cell  # a name at an edge is read in full
        across, halves = pixels[:, 0], names.halves[:, 1]
        is_near = (across > x) & (across < x + width)
        across[:] = np.where(
            is_near, np.clip(across, x + halves, x + width - halves), across
        )
        pixels[names.panels > 0] += self._layers.grid_offset()
        return pixels, strengths

    def handle_at(self, pixel: NDArray[np.floating]) -> Handle | None:
        """Return the cluster whose name is read at a pixel (x, y), to be dragged."""
        number, hand = self._number_at(pixel), self._session.hand
        if number is None:
            return None
        cluster, through = self.names.clusters[number].id, self.names.positions[number]

        def shift_to(at: NDArray[np.floating]) -> NDArray[np.floating] | None:
            """Return the way (d,) on the map; in space parallel to the canvas."""
            ends = [self._layers.point_under(end, through) for end in (pixel, at)]
            return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]

        def follow(at: NDArray[np.floating]) -> None:
            shift = shift_to(at)
            if shift is not None:
                hand.drag_by(shift)

        if self._session.state == "running":
            begin = partial(hand.begin_cluster_drag, cluster)
            return live_handle(hand, begin, follow, cluster)

        def show(at: NDArray[np.floating] | None) -> None:
            self._drag = None if at is None else (number, at - pixel)
            self._overlay.refresh()

        def drop(at: NDArray[np.floating], is_pinned: bool) -> None:
            shift = shift_to(at)
            show(None)
            if shift is not None:
                move = self._session.move_cluster
                begin = partial(move, cluster, shift, is_pinned=is_pinned)
                self._session.play_wanted.emit(begin)

        return Handle(show, drop, lambda: show(None), cluster)

    # Inside

    def _number_at(self, pixel: NDArray[np.floating]) -> int | None:
        names, projection = self.names, self._layers.projection()
        if not names.clusters or projection is None or not projection.contains(pixel):
            return None
        pixels, strengths = self.layout_at(projection)
        is_hit = (np.abs(pixels - pixel) <= names.halves[:, ::-1]).all(axis=1)
        is_hit &= strengths > MIN_OPACITY
        if self._session.view.is_side_by_side:
            is_hit &= names.panels == 0  # points of other maps are not to be moved
        return int(np.argmax(is_hit)) if is_hit.any() else None

    def _is_read(self) -> bool:
        """Whether the map is at rest, or in the second half of a game."""
        session, snapshot = self._session, self._session.snapshot
        run = session.run
        if session.state != "running":
            return session.state in RESTING and self._layers.points is not None
        if run is None or snapshot is None or not session.is_map_of(run):
            return False
        is_late = run.warm_start or 2 * snapshot.iteration >= snapshot.n_iter
        return bool(is_late) and len(snapshot.embedding) <= MAX_NAMED_RUNNING

    def _find_names(self) -> Names:
        """Return the names on each map, or in each panel with points of their clusters.

        The most important of each come before the next one of any.
        """
        layout = self._session.view.layout
        clusters, labels = named_clusters(self._session), self._session.clusters.labels
        if layout is None or not clusters:
            return NO_NAMES
        seen = layout.positions
        n_maps = len(seen) // len(labels)
        panels = np.repeat(np.arange(n_maps), len(labels))
        if layout.panel_of_points is not None and layout.panels is not None:
            panels, n_maps = layout.panel_of_points, len(layout.panels.captions)
        labels = np.resize(labels, len(seen))
        groups = label_indices([c.id for c in clusters], labels)
        groups = np.where(groups < 0, -1, groups * n_maps + panels)
        present, parts = group_rows(groups)
        named = tuple(clusters[group // n_maps] for group in present)
        texts = tuple(map(name_text, named))
        pairs = zip(texts, named, strict=True)
        halves = np.array([text_half_size(text, c.is_named) for text, c in pairs])
        centers, radii = centers_and_radii(seen, parts)
        panels = np.array(present) % n_maps
        return Names(named, texts, centers, radii, halves, panels)

    def _paint(self, painter: QPainter, projection: Projection) -> None:
        """Write the present names, and the one that is dragged at the hand."""
        names, (held, moved) = self.names, self._drag or (-1, np.zeros(2))
        colors = ON_LIGHT if self._overlay.is_on_light else ON_DARK
        pixels, seen = self.layout_at(projection)
        if 0 <= held < len(seen):
            pixels[held] += moved
        # The most important last: it lies above what is fading out.
        for number in reversed(np.flatnonzero(seen > 0).tolist()):
            painter.setOpacity(seen[number])
            text, is_given = names.texts[number], names.clusters[number].is_named
            paint_text_with_halo(
                painter, QPointF(*pixels[number]), text, is_given, colors
            )


def named_clusters(session: Session) -> tuple[Cluster, ...]:
    """Return the clusters whose names the map has, the most important first.

    Given names come before numbers, large clusters before small ones; of many clusters
    only those with a given name can be read.  Where the map is coloured by something
    else than clusters, numbers would seem to be of that.
    """
    clusters = list(session.clusters.clusters)
    if session.look.color_by != CLUSTER or len(clusters) > MAX_NUMBERED:
        clusters = [c for c in clusters if c.is_named]
    if not session.look.show_names:
        return ()
    return tuple(sorted(clusters, key=lambda c: (not c.is_named, -c.size)))


def names_for_figure(session: Session) -> list[Name]:
    """Return the names that the map has, each where its cluster is on the whole map."""
    clusters, labels = named_clusters(session), session.clusters.labels
    if session.snapshot is None or not clusters:
        return []
    present, parts = group_rows(label_indices([c.id for c in clusters], labels))
    centers, _ = centers_and_radii(session.snapshot.embedding, parts)
    texts = [name_text(clusters[number]) for number in present]
    return list(zip(texts, centers, strict=True))


def name_text(cluster: Cluster) -> str:
    """Return a cluster's name as it is written on the map."""
    name = cluster.name
    return name if len(name) <= MAX_LETTERS else f"{name[: MAX_LETTERS - 1]}…"
