"""A tooltip for the point under the mouse: what is known of it, and its picture."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from qtpy.QtCore import QBuffer, QIODevice, QObject, QPoint, Qt
from qtpy.QtGui import QImage
from qtpy.QtWidgets import QApplication, QToolTip
from superqt.utils import qdebounced

from napari_embedding_game.core.snapshot import OUTLIER_ISOLATION
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.palette import to_hex_colors
from napari_embedding_game.session.row_details import RowDetails, describe_row
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.pick import row_at
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.images.picture_grid import fitted, to_qimage
from napari_embedding_game.ui.images.row_pictures import pictures_of
from napari_embedding_game.ui.style.coloring import (
    ISOLATION,
    LONG_NAMES,
    PRESSURE,
    STRETCH,
    composition_columns,
    name_in_file,
)
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.style.theme import theme_colors
from napari_embedding_game.ui.tasks.worker import Latest

REST_MS, NEXT_MS = 180, 40
"""Delay of the first tooltip, and of the next ones."""
PICTURE_SIDE, MAX_WIDTH = 88, 320
"""Pixels."""
STAYS_MS = 600_000


class Hover(QObject):
    """Shows a tooltip where the mouse rests on a point, and goes with it.

    Nothing is kept ready for it: the nearest of a million points is found in a few
    milliseconds.  After a first point the next tooltip comes sooner.
    """

    def __init__(self, overlay: MapOverlay) -> None:
        super().__init__(overlay.dock)
        self._overlay, scene = overlay, overlay.scene
        self._viewer, self._linked = scene.viewer, scene.workspace.linked
        self._session, self._layers = scene.session, scene.layers
        self.row: int | None = None
        """The point of the tooltip."""
        self._layer_tip = ""
        """What napari's own tooltip of a point was set to."""
        self._pixel = np.zeros(2)
        self._image: QImage | None = None
        """The picture of the row, once it is made."""
        # Where none can be made, the grid of pictures says why.
        self._picture_job = Latest(self, self._on_picture, lambda error: None)
        self._show_soon = qdebounced(self._look, REST_MS, parent=self)
        connections, session = Connections(self), self._session
        connections.hook(scene.viewer.mouse_move_callbacks, self._on_move)
        moves = scene.viewer.scene.camera.events, self._linked.changed
        connections.connect(self.hide, *moves, session.state_changed)
        connections.connect(self.hide, session.dataset_changed, session.columns_changed)
        connections.call(self.hide)
        layer_tip = scene.viewer.tooltip.events.text
        connections.connect(self._on_layer_tip, layer_tip)

    def hide(self, event: object = None) -> None:
        """The mouse is on nothing any more."""
        self._show_soon.cancel()
        if self.row is not None:
            self.row = None
            QToolTip.hideText()

    # Inside

    def _on_layer_tip(self, event: object) -> None:
        """Show napari's own tooltip of a point, where that is wanted, as plain text."""
        tooltip, points = self._viewer.tooltip, self._layers.points
        is_of_map = self._viewer.layers.selection.active is points is not None
        if is_of_map and tooltip.text != self._layer_tip:  # which is heard again
            self._layer_tip = escape_tooltip(tooltip.text)
            tooltip.text = self._layer_tip

    def _on_move(self, viewer: Any, event: Any) -> None:
        self._pixel = np.array(event.pos[:2], dtype=float)
        if event.buttons:  # the map is being moved, or drawn on
            self.hide()
        else:
            is_seen = self.row is not None and QToolTip.isVisible()
            delay = NEXT_MS if is_seen else REST_MS  # Qt hides it, too
            self._show_soon.setTimeout(delay)
            self._show_soon.throttle()

    def _look(self) -> None:
        seen, session = self._session.view.positions, self._session
        row, n_points = None, len(session.clusters.labels)
        if seen is not None and n_points:
            row = row_at(self._layers, seen, self._pixel)
        is_held = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        if row is None or session.dataset is None or is_held:
            self.hide()
        elif row % n_points != self.row or not QToolTip.isVisible():
            self.row = number = row % n_points
            self._image = None
            self._picture_job.stop()
            dataset, linked = session.dataset, self._linked.current
            if linked or dataset.images is not None:
                self._picture_job.submit(lambda: _picture(dataset, linked, number))
            self._show()

    def _on_picture(self, image: QImage | None) -> None:
        self._image = image
        if QToolTip.isVisible():  # a click has hidden it, if not
            self._show()

    def _show(self) -> None:
        canvas, dataset = self._overlay.canvas, self._session.dataset
        if self.row is None or canvas is None or dataset is None:
            return
        facts = self._facts(dataset, self.row)
        dim = theme_colors(self._viewer.theme).dim.name()
        points = self._layers.points
        color = (
            "" if points is None else to_hex_colors(points.face_color[[self.row]])[0]
        )
        text = as_html(facts, color, self._image, dim)
        position = canvas.mapToGlobal(QPoint(*self._pixel.round().astype(int).tolist()))
        QToolTip.showText(position, text, canvas, canvas.rect(), STAYS_MS)

    def _facts(self, dataset: Dataset, row: int) -> RowDetails:
        clustering, snapshot = self._session.clusters.clustering, self._session.snapshot
        cluster = clustering.by_id[int(clustering.labels[row])]
        choice, measured = self._session.look.color_by, dict[str, float]()
        if snapshot is not None:
            measures = {STRETCH: snapshot.stretch, ISOLATION: snapshot.isolation}
            measures |= {PRESSURE: snapshot.pressure if snapshot.has_pressure else None}
            for name, values in measures.items():
                # Of outliers a line is worth it anyway.
                least = 0.0 if name == choice else OUTLIER_ISOLATION
                is_listed = name in (choice, ISOLATION) and values is not None
                if is_listed and values[row] >= least:
                    measured[LONG_NAMES[name]] = float(values[row])
        column = name_in_file(choice, dataset)
        if column in dataset.obs and choice.endswith(dataset.value_suffix):
            column = choice
        names = [*filter(None, [column]), *composition_columns(dataset)]
        if dataset.objects is not None:
            names += dataset.profile_names[:3]
        return describe_row(dataset, row, cluster, names, measured)


def as_html(facts: RowDetails, color: str, image: QImage | None, dim: str) -> str:
    """Return what is known of a row, as a tooltip shows it.

    With the colour of its point, "" for none, and a dim one for the names of facts.
    """
    disc = f"<span style='color:{color}'>●</span> " if color else ""
    rows = "".join(
        f"<tr><td style='color:{dim}; padding-right:10px'>{escape(name)}</td>"
        f"<td>{escape(value)}</td></tr>"
        for name, value in facts.facts
    )
    words = f"<b>{escape(facts.name)}</b><br>{disc}{escape(facts.cluster)}"
    words += f"<table cellspacing=0>{rows}</table>" if rows else ""
    picture = (
        "" if image is None else f"<td width={PICTURE_SIDE + 10}>{_tag(image)}</td>"
    )
    width = f" width={MAX_WIDTH}" if facts.text else ""
    text = f"<p>{escape(facts.text)}</p>" if facts.text else ""
    return f"<table{width}><tr>{picture}<td>{words}</td></tr></table>{text}"


def _picture(dataset: Dataset, linked: Linked | None, row: int) -> QImage | None:
    """Return the picture of a row; takes a while where many objects are left out."""
    pictures = pictures_of(dataset, linked)
    return None if pictures is None else fitted(to_qimage(pictures[row]), PICTURE_SIDE)


def _tag(image: QImage) -> str:
    """Return a picture as HTML has it."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    data = bytes(buffer.data().toBase64().data()).decode()
    return f"<img src='data:image/png;base64,{data}'>"
