"""Draw the names of the clusters over the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QPointF, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import Name
from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.canvas.drawing import RESTING
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.overlays.label_layout import (
    centers,
    lifts,
    members,
    opacity,
    radii,
    zooms_with_room,
)
from napari_embedding_game.ui.canvas.overlays.map_overlay import MapOverlay
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.halo_text import ON_DARK, ON_LIGHT, half_size, write
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.session.session import Session
    from napari_embedding_game.session.splitting import Split
    from napari_embedding_game.ui.workspace import Workspace

MOST_NUMBERED = 40
"""More clusters than this show the names that were given, and no numbers."""
LONGEST = 32
"""Letters of a name on the map."""
STEPPED_BACK = 0.25
"""Of the names of other clusters, while some are selected."""
SOON_MS = 60
BARELY_READ = 0.3
"""Names that are seen less are no handles."""
MOST_DRAGGED = 1000
"""Points that are drawn of a cluster under the mouse, about."""
DOT = 3.0
"""Pixels of each."""
DRAGGED_OPACITY = 0.7
MOST_NAMED_RUNNING = 100_000
"""Points; of more, finding the places of the names would slow down what moves."""


@dataclass(frozen=True, eq=False)
class LabelPlacement:
    """The labels to draw, the most important first."""

    clusters: tuple[Cluster, ...] = ()
    texts: tuple[str, ...] = ()
    places: NDArray[np.floating] | None = None
    """(m, d) [depth,] row and column of the middle of each, in the world."""
    centers: NDArray[np.floating] | None = None
    """(m, d) the same, in units of the map."""
    halves: NDArray[np.floating] | None = None
    """(m, 2) half the height and half the width of each, in pixels."""
    radii: NDArray[np.floating] | None = None
    """(m,) how far most points of its cluster lie from that place, in the world."""
    zooms: NDArray[np.floating] | None = None
    """(m,) from which zoom on it has room; in space that depends on the camera."""
    panels: NDArray[np.intp] | None = None
    """(m,) the panel that each stands in; None where there are none."""


NO_LABELS = LabelPlacement()


@dataclass(eq=False)
class _Drag:
    """A cluster that is held by its name."""

    cluster: Cluster
    text: str
    begun: NDArray[np.floating]
    """(2,) pixel at which the mouse took hold of it."""
    label: NDArray[np.floating]
    """(2,) pixel of the middle of its name then."""
    pixel: NDArray[np.floating]
    """(2,) where the mouse is now."""
    through: NDArray[np.floating]
    """(d,) place of the name, in units of the map: in space its cluster is dragged
    parallel to the canvas, as deep as this."""
    panel: int = 0
    """In which the name stands."""
    points: NDArray[np.floating] | None = None
    """(m, d) places of some of its points there, in units of the map, once it is
    dragged."""


class NameHandle:
    """A cluster's name under the mouse: drawn where it is dragged."""

    def __init__(self, labels: ClusterLabels, drag: _Drag) -> None:
        self._labels = labels
        self._drag = drag

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Show the cluster at the hand."""
        self._drag.pixel = pixel
        self._labels.show_drag(self._drag)

    def drop(self, pixel: NDArray[np.floating], *, is_pinned: bool) -> None:
        """Tell by how much the cluster was dragged."""
        self._drag.pixel = pixel
        by = self._labels.shift(self._drag)
        self._labels.show_drag(None)
        if by is not None:
            self._labels.dragged.emit(self._drag.cluster.id, by, is_pinned)

    def put_back(self) -> None:
        """Show the names as they were."""
        self._labels.show_drag(None)


class SpringHandle:
    """A cluster's name under the mouse while the game runs: its points follow."""

    def __init__(self, labels: ClusterLabels, session: Session, drag: _Drag) -> None:
        self._labels = labels
        self._session = session
        self._drag = drag
        self._is_begun = self._is_refused = False

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Draw the cluster to the hand."""
        self._drag.pixel = pixel
        if self._is_refused or not (self._is_begun or self._begin()):
            return
        by = self._labels.shift(self._drag)
        if by is not None:
            self._session.hand.drag_by(by)

    def drop(self, pixel: NDArray[np.floating], *, is_pinned: bool) -> None:
        """Let go of the cluster, or pin it at the hand."""
        self.move(pixel)
        self._session.hand.end_drag(is_pinned=is_pinned)

    def put_back(self) -> None:
        """Let go of the cluster where it has come to."""
        self._session.hand.end_drag()

    def _begin(self) -> bool:
        """Take hold of the cluster, or tell why it cannot be."""
        try:
            self._session.hand.begin_drag(self._drag.cluster.id)
        except (DataError, InputError) as error:
            self._is_refused = True
            self._session.hand.refuse(sentence(error))
            return False
        self._is_begun = True
        return True


class ClusterLabels(QObject):
    """Says which names are to be seen, and shows them over the canvas.

    They are seen while the map rests, in step with every edit, and while it moves once
    its points have sorted themselves; they come and go softly with the zoom.  Each is a
    handle of its cluster: see :meth:`handle_at`.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    layers : MapLayers
    overlay : MapOverlay
    dock : QWidget
    """

    dragged = Signal(int, object, bool)
    """Id of a cluster of a map at rest, by how much (d,) it was dragged, in units of
    the map, and whether it is to be pinned there."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        layers: MapLayers,
        overlay: MapOverlay,
        dock: QWidget,
    ) -> None:
        super().__init__(dock)
        self._viewer = viewer
        self._overlay = overlay
        self._session = workspace.session
        self._linked = workspace.linked
        self._layers = layers
        self.names = NO_LABELS
        self._drag: _Drag | None = None
        self._soon = throttled(SOON_MS, self.update, self)
        connections = Connections(self)
        connections.connect_all(self._signals(), self._later)
        connections.connect(workspace.session.progressed, self._on_frame)
        overlay.add(self._paint, lambda: bool(self.names.clusters))
        self._later()

    def update(self) -> None:
        """Find the names that are to be seen, and where."""
        self.names = self._find()
        self._overlay.update()

    def shown(self) -> dict[str, float]:
        """Return the names that can be read now, and how strongly: 0 to 1."""
        names, drawn = self.names, self._layers.projection()
        if names.places is None or not self._fits(drawn):
            return {}
        assert drawn is not None
        shown: dict[str, float] = {}
        pairs = zip(names.texts, self._seen(names.places, drawn).tolist(), strict=True)
        for text, seen in pairs:
            if seen > shown.get(text, 0.0):
                shown[text] = seen
        return shown

    # The names as handles

    def handle_at(
        self, pixel: NDArray[np.floating]
    ) -> NameHandle | SpringHandle | None:
        """Return the cluster whose name is read at a pixel (x, y), to be dragged."""
        names, drawn = self.names, self._layers.projection()
        snapshot = self._session.snapshot
        if names.places is None or names.halves is None or names.centers is None:
            return None
        if drawn is None or snapshot is None or not drawn.holds(pixel):
            return None
        if not self._fits(drawn):
            return None
        middles = self._middles(drawn)
        is_hit = (np.abs(middles - pixel) <= names.halves[:, ::-1]).all(axis=1)
        is_hit &= self._seen(names.places, drawn) > BARELY_READ
        if self._session.comparing.beside is not None:
            is_hit &= names.panels == 0  # points of other maps are not to be moved
        hits = np.flatnonzero(is_hit)
        if not len(hits):
            return None
        place = int(hits[0])
        cluster = names.clusters[place]
        through = names.centers[place]
        panel = 0 if names.panels is None else int(names.panels[place])
        text, label = names.texts[place], middles[place]
        drag = _Drag(cluster, text, pixel, label, pixel, through, panel)
        if self._session.state == "running":
            return SpringHandle(self, self._session, drag)
        return NameHandle(self, drag)

    def show_drag(self, drag: _Drag | None) -> None:
        """Paint a cluster where the mouse has it; None: no longer."""
        if drag is not None and drag.points is None:
            drag.points = self._some_points(drag.cluster.id, drag.panel)
        self._drag = drag
        self._overlay.repaint()

    def shift(self, drag: _Drag) -> NDArray[np.floating] | None:
        """Return by how much (d,) a cluster is dragged on the map.

        In space parallel to the canvas.  None where the mouse is beyond the plane of
        the map.
        """
        begun = self._layers.point_under(drag.begun, drag.through)
        at = self._layers.point_under(drag.pixel, drag.through)
        return None if begun is None or at is None else at - begun

    # Inside

    def _fits(self, drawn: Projection | None) -> bool:
        """Whether the names are of the plane or the space that is drawn."""
        places = self.names.places
        if drawn is None or places is None:
            return False
        return places.shape[1] == drawn.matrix.shape[1] - 1

    def _some_points(self, cluster: int, panel: int) -> NDArray[np.floating]:
        """Return places (m, d) of some points of a cluster, in units of the map.

        Where groups lie side by side, of its points in one panel.
        """
        drawn, split = self._session.drawn, self._session.splitting.current
        assert drawn is not None
        rows = self._session.clusters.clustering.rows(cluster)
        if split is not None:
            rows = rows[split.of_points[rows] == panel]
        return drawn.embedding[rows[:: max(1, len(rows) // MOST_DRAGGED)]]

    def _middles(self, drawn: Projection) -> NDArray[np.floating]:
        """Return the pixels (m, 2) in the middle of each name."""
        assert self.names.places is not None
        pixels = drawn.to_pixels(self.names.places)
        pixels[:, 1] -= self._lifts(drawn)
        return pixels

    def _seen(
        self, places: NDArray[np.floating], drawn: Projection
    ) -> NDArray[np.floating]:
        """Return how strongly each name is seen, while others may be selected: (m,)."""
        strengths = self._strengths(places, drawn)
        selection = self._session.selection
        if selection.is_empty:
            return strengths
        chosen = set(selection.clusters) or set(selection.shares())
        back = [cluster.id not in chosen for cluster in self.names.clusters]
        return strengths * np.where(back, STEPPED_BACK, 1.0)

    def _strengths(
        self, places: NDArray[np.floating], drawn: Projection
    ) -> NDArray[np.floating]:
        """Return how strongly each name is seen: 0 to 1, 0 behind the camera."""
        names, pixels = self.names, drawn.to_pixels(places)
        assert names.halves is not None
        assert names.zooms is not None
        in_front = np.isfinite(pixels).all(axis=1)
        strengths = np.zeros(len(places))
        if drawn.ahead is not None:  # who stands beside whom is up to the camera
            zooms = zooms_with_room(pixels[in_front, ::-1], names.halves[in_front])
            strengths[in_front] = opacity(1.0, zooms)
            return strengths
        # Seen from the side, names stand as close as the shortest way has them.
        zoom = min(map(drawn.zoom_at, places[in_front]), default=0.0)
        zooms = names.zooms[in_front]
        strengths[in_front] = opacity(zoom, zooms) if zoom else 0.0
        return strengths

    def _signals(self) -> tuple[Any, ...]:
        """Return what tells that other names are to be seen."""
        session = self._session
        return (
            session.clusters.changed,
            session.state_changed,
            session.dataset_changed,
            session.looked_back,
            session.comparing.moved,
            session.comparing.laid_out,
            session.splitting.moved,
            session.hiding.changed,
            session.look.events.show_names,
            session.look.events.color_by,
            self._linked.changed,  # the map may make room
            self._viewer.dims.events.order,  # also then
            self._viewer.dims.events.ndim,
            self._viewer.dims.events.ndisplay,
        )

    def _later(self, event: object = None) -> None:
        if not self._is_read() and self.names.clusters:
            self.names = NO_LABELS
            self._overlay.repaint()
        self._soon.throttle()

    def _on_frame(self, event: object = None) -> None:
        if self._session.state == "running" and self._is_read():
            self._soon.throttle()

    def _is_read(self) -> bool:
        """Whether the map is still enough for names to be read.

        While it moves, this is after the first half of the schedule: before, clusters
        are not yet what they will be.
        """
        session = self._session
        if session.state != "running":
            return session.state in RESTING
        run, snapshot = session.run, session.snapshot
        if run is None or snapshot is None or not session.has_played(run):
            return False
        if len(snapshot.embedding) > MOST_NAMED_RUNNING:
            return False
        return run.warm_start is not None or 2 * snapshot.iteration >= snapshot.n_iter

    def _find(self) -> LabelPlacement:
        session, points = self._session, self._layers.points
        snapshot = session.drawn
        if snapshot is None or points is None or not self._is_read():
            return NO_LABELS
        clusters, labels = named_clusters(session)
        split = session.splitting.current
        if not clusters:
            return NO_LABELS
        if split is not None:
            return self._place_in_groups(clusters, labels, split)
        return self._place_on_maps(clusters, labels, snapshot.embedding)

    def _place_on_maps(
        self,
        clusters: tuple[Cluster, ...],
        labels: NDArray[np.integer],
        embedding: NDArray[np.floating],
    ) -> LabelPlacement:
        """Return where the names of clusters stand, on each map that lies there."""
        beside, ids = self._session.comparing.beside, [c.id for c in clusters]
        maps = [embedding, *(() if beside is None else beside.places)]
        parts = members(labels, ids)
        each = [centers(places, parts) for places in maps]
        both = zip(maps, each, strict=True)
        away = [radii(places, parts, middles) for places, middles in both]
        return self._placement(
            # The most important of each map before the next one of any.
            tuple(c for c in clusters for _ in maps),
            np.stack(each, axis=1).reshape(-1, embedding.shape[1]),
            np.stack(away, axis=1).ravel(),
            np.tile(np.arange(len(maps)), len(clusters)),
        )

    def _place_in_groups(
        self, clusters: tuple[Cluster, ...], labels: NDArray[np.integer], split: Split
    ) -> LabelPlacement:
        """Return where names stand in each panel in which their clusters have points.

        The most important in each panel come before the next one in any.
        """
        n_panels = len(split.panels.panels)
        order = np.argsort([c.id for c in clusters])
        ids = np.array([c.id for c in clusters])[order]
        at = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
        groups = np.where(
            ids[at] == labels, order[at] * n_panels + split.of_points, NOWHERE
        )
        there = np.unique(groups)
        found = there[there >= 0].tolist()
        embedding, parts = split.snapshot.embedding, members(groups, found)
        middles = centers(embedding, parts)
        return self._placement(
            tuple(clusters[group // n_panels] for group in found),
            middles,
            radii(embedding, parts, middles),
            np.array(found, np.intp) % n_panels,
        )

    def _placement(
        self,
        clusters: tuple[Cluster, ...],
        middles: NDArray[np.floating],
        away: NDArray[np.floating],
        panels: NDArray[np.intp],
    ) -> LabelPlacement:
        """Return names with the middles (m, d) and radii (m,) of their clusters."""
        found, reach = self._session.panels, away * self._layers.scale
        places = np.asarray(self._layers.to_world(middles))
        texts = tuple(map(text_of, clusters))
        pairs = zip(texts, clusters, strict=True)
        halves = np.array([half_size(text, c.is_named) for text, c in pairs])
        zooms = zooms_with_room(places[:, -2:], halves)
        return LabelPlacement(
            clusters,
            texts,
            places,
            middles,
            halves,
            reach,
            zooms,
            None if found is None else panels,
        )

    def _lifts(self, drawn: Projection) -> NDArray[np.floating]:
        """Return how far each name stands above its cluster: (m,) pixels."""
        names = self.names
        assert names.places is not None
        assert names.radii is not None
        assert names.halves is not None
        zooms = np.array([drawn.zoom_at(place) for place in names.places])
        return lifts(names.radii * zooms, names.halves[:, 0])

    def _paint(self, painter: QPainter, drawn: Projection) -> None:
        """Write the present names."""
        names = self.names
        if names.places is None or not self._fits(drawn):
            return
        pixels, seen = self._middles(drawn), self._seen(names.places, drawn)
        colors = ON_LIGHT if self._viewer.theme == "light" else ON_DARK
        # The most important last: it lies above what is fading out.
        rows = zip(names.clusters, names.texts, pixels, seen.tolist(), strict=True)
        for cluster, text, pixel, strength in reversed(list(rows)):
            is_held = self._drag is not None and self._drag.cluster.id == cluster.id
            if strength > 0:
                painter.setOpacity(STEPPED_BACK if is_held else strength)
                write(painter, QPointF(*pixel), text, cluster.is_named, colors)
        if self._drag is not None:
            self._paint_drag(painter, drawn, self._drag, colors)

    def _paint_drag(
        self,
        painter: QPainter,
        drawn: Projection,
        drag: _Drag,
        colors: tuple[QColor, QColor],
    ) -> None:
        """Draw points of a cluster where it is dragged, and its name at the hand."""
        by = self.shift(drag)
        if by is None or drag.points is None:
            return
        pixels = drawn.to_pixels(np.asarray(self._layers.to_world(drag.points + by)))
        pixels = pixels[np.isfinite(pixels).all(axis=1)]
        painter.setOpacity(DRAGGED_OPACITY)
        pen = QPen(colors[0], DOT)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.drawPoints(QPolygonF([QPointF(x, y) for x, y in pixels.tolist()]))
        painter.setOpacity(1.0)
        middle = QPointF(*(drag.label + drag.pixel - drag.begun))
        write(painter, middle, drag.text, drag.cluster.is_named, colors)


NOWHERE = -(2**31)
"""Below any cluster's id: of points whose clusters get no name."""


def named_clusters(
    session: Session,
) -> tuple[tuple[Cluster, ...], NDArray[np.integer]]:
    """Return the clusters whose names the map has, the most important first.

    And of which cluster each point is that is not hidden, (N,).
    """
    labels, hidden = session.clusters.labels, session.hiding.mask
    if not session.look.show_names:
        return (), labels
    is_by_cluster = session.look.color_by == CLUSTER
    clusters = to_be_named(session.clusters.clusters, with_numbers=is_by_cluster)
    if hidden is not None:
        labels = np.where(hidden, NOWHERE, labels)
        there = set(np.unique(labels).tolist())
        clusters = tuple(c for c in clusters if c.id in there)
    return clusters, labels


def names_for_figure(session: Session) -> list[Name]:
    """Return the names that the map has, each where its cluster is on the whole map."""
    clusters, labels = named_clusters(session)
    if session.snapshot is None or not clusters:
        return []
    parts = members(labels, [cluster.id for cluster in clusters])
    places = centers(session.snapshot.embedding, parts)
    texts = map(text_of, clusters)
    return list(zip(texts, places, strict=True))


def to_be_named(
    clusters: tuple[Cluster, ...], *, with_numbers: bool = True
) -> tuple[Cluster, ...]:
    """Return the clusters whose names are written, the most important first.

    Given names come before numbers, large clusters before small ones; of many
    clusters only those with a given name can be read.  Where the map is coloured by
    something else than clusters, numbers would seem to be of that.
    """
    has_numbers = with_numbers and len(clusters) <= MOST_NUMBERED
    wanted = [c for c in clusters if c.is_named or has_numbers]
    return tuple(sorted(wanted, key=lambda c: (not c.is_named, -c.size)))


def text_of(cluster: Cluster) -> str:
    """Return a cluster's name as it stands on the map."""
    name = cluster.name
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
