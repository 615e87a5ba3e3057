"""The names of the clusters, written on the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QPointF, QSize, QTimer
from qtpy.QtGui import QPainter, QPaintEvent
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.clustering import Cluster
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas import Sheet, camera_of, canvas_of, to_pixels
from napari_embedding_game.ui.drawing import RESTING
from napari_embedding_game.ui.layers import MapLayers
from napari_embedding_game.ui.lettering import ON_DARK, ON_LIGHT, half_size, write
from napari_embedding_game.ui.linked import linked_layers
from napari_embedding_game.ui.naming import centers, strength, zooms_with_room

if TYPE_CHECKING:
    import napari

MOST_NUMBERED = 40
"""More clusters than this show the names that were given, and no numbers."""
LONGEST = 32
"""Letters of a name on the map."""
STEPPED_BACK = 0.25
"""Of the names of other clusters, while some are selected."""
SOON_MS = 60


@dataclass(frozen=True, eq=False)
class MapNames:
    """What is written on the map, the most important first."""

    clusters: tuple[Cluster, ...] = ()
    texts: tuple[str, ...] = ()
    places: NDArray[np.floating] | None = None
    """(m, 2) row and column of the middle of each, in the world."""
    zooms: NDArray[np.floating] | None = None
    """(m,) from which zoom on it has room."""


NO_NAMES = MapNames()


class NamesOnMap(QObject):
    """Says which names are to be seen, and shows them over the canvas.

    They are seen while the map rests, in step with every edit; they come and go
    softly with the zoom.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    layers : MapLayers
    dock : QWidget
        Any widget in napari's window.
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, layers: MapLayers, dock: QWidget
    ) -> None:
        super().__init__(dock)
        self._viewer = viewer
        self._session = session
        self._layers = layers
        self._dock = dock
        self._watched: Points | None = None
        self.sheet: NameSheet | None = None
        self.names = NO_NAMES
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self.update)
        self._camera = camera_of(viewer)
        self._grid = getattr(viewer, "canvas", viewer).grid  # moved in napari 0.9
        for signal in self._signals():
            signal.connect(self._later)
        for signal in self._moves():
            signal.connect(self._repaint)
        self._later()

    def close(self) -> None:
        """Let go of the viewer; the names go too."""
        self._soon.stop()
        for signal in self._signals():
            signal.disconnect(self._later)
        for signal in self._moves():
            signal.disconnect(self._repaint)
        self._watch(None)
        if self.sheet is not None:
            self.sheet.take_off()
            self.sheet = None

    def update(self) -> None:
        """Find the names that are to be seen, and where."""
        self.names = self._find()
        self._watch(self._layers.points)
        if self.sheet is None and self.names.clusters:
            canvas = canvas_of(self._dock)
            if canvas is not None:
                self.sheet = NameSheet(canvas, self._seen)
        self._repaint()

    def shown(self) -> dict[str, float]:
        """Return the names that can be read now, and how strongly: 0 to 1."""
        names, zooms = self.names, self.names.zooms
        if zooms is None or not self._is_flat():
            return {}
        strengths = strength(self._camera.zoom, zooms)
        selection = self._session.selection
        if not selection.is_empty:
            chosen = set(selection.clusters) or set(selection.shares())
            back = [cluster.id not in chosen for cluster in names.clusters]
            strengths = strengths * np.where(back, STEPPED_BACK, 1.0)
        pairs = zip(names.texts, strengths.tolist(), strict=True)
        return {text: seen for text, seen in pairs if seen > 0}

    # Inside

    def _signals(self) -> tuple[Any, ...]:
        """Return what tells that other names are to be seen."""
        session = self._session
        return (
            session.clusters.changed,
            session.state_changed,
            session.dataset_changed,
            session.look.events.show_names,
            linked_layers(session).changed,  # the map may make room
        )

    def _moves(self) -> tuple[Any, ...]:
        """Return what tells that the same names are to be seen in another way."""
        return (
            self._camera.events.zoom,
            self._camera.events.center,
            self._viewer.dims.events.ndisplay,
            self._viewer.dims.events.order,
            self._grid.events.enabled,
            self._viewer.events.theme,
            self._session.selection.changed,
        )

    def _later(self, event: object = None) -> None:
        if self._session.state not in RESTING and self.names.clusters:
            self.names = NO_NAMES
            self._repaint()
        if not self._soon.isActive():
            self._soon.start()

    def _repaint(self, event: object = None) -> None:
        if self.sheet is not None:
            points = self._layers.points
            seen = points is not None and points.visible and bool(self.names.clusters)
            self.sheet.setVisible(seen and self._is_flat())
            self.sheet.update()

    def _watch(self, points: Points | None) -> None:
        """Hide the names with the points that they belong to."""
        if points is self._watched:
            return
        if self._watched is not None:
            self._watched.events.visible.disconnect(self._repaint)
        if points is not None:
            points.events.visible.connect(self._repaint)
        self._watched = points

    def _is_flat(self) -> bool:
        dims = self._viewer.dims
        in_order = tuple(dims.displayed) == tuple(sorted(dims.displayed))
        return dims.ndisplay == 2 and in_order and not self._grid.enabled

    def _find(self) -> MapNames:
        session, points = self._session, self._layers.points
        snapshot = session.snapshot
        if snapshot is None or points is None or session.state not in RESTING:
            return NO_NAMES
        clusters = to_be_named(session.clusters.clusters)
        is_plane = snapshot.embedding.shape[1] == 2
        if not (session.look.show_names and clusters and is_plane):
            return NO_NAMES
        ids = [cluster.id for cluster in clusters]
        places = centers(snapshot.embedding, session.clusters.labels, ids)
        places = np.asarray(self._layers.to_world(places))
        texts = tuple(map(text_of, clusters))
        pairs = zip(texts, clusters, strict=True)
        halves = np.array([half_size(text, c.is_named) for text, c in pairs])
        return MapNames(clusters, texts, places, zooms_with_room(places, halves))

    def _seen(self, size: QSize) -> Callable[[QPainter], None]:
        """Return what paints the present names on a canvas of a size."""
        names, shown = self.names, self.shown()

        def paint(painter: QPainter) -> None:
            if names.places is None:
                return
            pixels = to_pixels(names.places, self._camera, size.width(), size.height())
            colors = ON_LIGHT if self._viewer.theme == "light" else ON_DARK
            # The most important last: it lies above what is fading out.
            for cluster, text, pixel in reversed(
                list(zip(names.clusters, names.texts, pixels, strict=True))
            ):
                if text in shown:
                    painter.setOpacity(shown[text])
                    write(painter, QPointF(*pixel), text, cluster.is_named, colors)

        return paint


class NameSheet(Sheet):
    """A sheet over the canvas with the names on it."""

    def __init__(
        self, canvas: QWidget, seen: Callable[[QSize], Callable[[QPainter], None]]
    ) -> None:
        super().__init__(canvas)
        self._seen = seen

    def paintEvent(self, event: QPaintEvent) -> None:
        """Write the names."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._seen(self.size())(painter)
        painter.end()


def to_be_named(clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
    """Return the clusters whose names are written, the most important first.

    Given names come before numbers, large clusters before small ones; of many
    clusters only those with a given name can be read.
    """
    wanted = [c for c in clusters if c.is_named or len(clusters) <= MOST_NUMBERED]
    return tuple(sorted(wanted, key=lambda c: (not c.is_named, -c.size)))


def text_of(cluster: Cluster) -> str:
    """Return a cluster's name as it stands on the map."""
    name = cluster.name
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
