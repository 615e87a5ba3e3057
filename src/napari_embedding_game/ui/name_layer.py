"""The names of the clusters, written on the map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from qtpy.QtCore import QObject, QTimer

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.layers import MapLayers
from napari_embedding_game.ui.measure_panel import OWN
from napari_embedding_game.ui.naming import centers, with_room

if TYPE_CHECKING:
    import napari

NAME = "cluster names"
SIZE = 10
PIXELS = SIZE * 96 / 72
"""Napari takes the size of type in points, of which 72 make an inch of 96 pixels."""
SOON_MS = 120
RESTING = ("finished", "paused", "stopped", "failed")


class NameLayer(QObject):
    """A Points layer of text; seen while the map rests, in step with every edit."""

    def __init__(
        self, viewer: napari.Viewer, session: Session, layers: MapLayers
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._layers = layers
        self.layer: Points | None = None
        self._written: tuple[Any, ...] = ()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SOON_MS)
        self._soon.timeout.connect(self.update)
        self._camera = getattr(viewer, "scene", viewer).camera
        self._camera.events.zoom.connect(self._later)
        viewer.events.theme.connect(self._later)
        session.clusters.changed.connect(self._later)
        session.state_changed.connect(self._later)

    def close(self) -> None:
        """Let go of the viewer; the names go too."""
        self._soon.stop()
        self._camera.events.zoom.disconnect(self._later)
        self._viewer.events.theme.disconnect(self._later)
        self._session.clusters.changed.disconnect(self._later)
        self._session.state_changed.disconnect(self._later)
        self._drop()

    def update(self) -> None:
        """Write the names that find room at the present zoom."""
        snapshot, points = self._session.snapshot, self._layers.points
        named = [c for c in self._session.clusters.clusters if c.is_named]
        resting = self._session.state in RESTING
        if snapshot is None or points is None or not named or not resting:
            self._drop()
            return
        if snapshot.embedding.shape[1] != 2:
            return
        named.sort(key=lambda c: -c.size)
        names = [c.name for c in named]
        labels = self._session.clusters.labels
        places = centers(snapshot.embedding, labels, [c.id for c in named])
        world = np.array([points.data_to_world(place)[-2:] for place in places])
        shown = with_room(world * self._camera.zoom, names, PIXELS)
        self._write(world[shown], [n for n, s in zip(names, shown, strict=True) if s])

    def _later(self, event: Any = None) -> None:
        if self._session.state not in RESTING:
            self._drop()
        self._soon.start()

    def _write(self, world: np.ndarray, names: list[str]) -> None:
        is_dark = self._viewer.theme != "light"
        written = (is_dark, names, world.tolist())
        if self.layer in self._viewer.layers and written == self._written:
            return
        self._drop()
        self._written = written
        active = self._viewer.layers.selection.active
        self.layer = Points(
            world,
            features={"name": names},
            text={
                "string": "{name}",
                "size": SIZE,
                "color": "white" if is_dark else "black",
                "anchor": "center",
            },
            size=1e-6,
            opacity=1.0,
            name=NAME,
            metadata=dict(OWN),
        )
        self._viewer.add_layer(self.layer)
        self._viewer.layers.selection.active = active

    def _drop(self) -> None:
        if self.layer is not None and self.layer in self._viewer.layers:
            self._viewer.layers.remove(self.layer)
        self.layer = None
