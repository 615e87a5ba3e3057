"""A tooltip for the point under the mouse: its facts and its picture."""

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
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import ObjectLayers
from napari_embedding_game.ui.images.picture_grid import fit_into_square, to_qimage
from napari_embedding_game.ui.images.row_pictures import make_row_pictures
from napari_embedding_game.ui.style.coloring import (
    ISOLATION,
    LONG_NAMES,
    PRESSURE,
    STRETCH,
    choice_name_in_file,
    composition_columns,
)
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.style.theme import find_theme_colors
from napari_embedding_game.ui.tasks.worker import JobRunner

REST_MS, NEXT_MS = 180, 40
"""Delay of the first tooltip, and of the next ones."""
PICTURE_SIDE, MAX_WIDTH = 88, 320
"""Side of the picture and width of a long text, in pixels."""
STAYS_MS = 600_000


class HoverTooltip(QObject):
    """Shows a tooltip where the mouse rests on a point, and hides it when it leaves.

    No index of points is needed: among a million the nearest is found in a few
    milliseconds.  After a first tooltip the next one comes sooner.
    """

    def __init__(self, overlay: MapOverlay) -> None:
        super().__init__(overlay.dock)
        self._overlay, scene = overlay, overlay.scene
        self._viewer, self._linked = scene.viewer, scene.workspace.linked_layers
        self._session, self._layers = scene.session, scene.map_layers
        self.row: int | None = None
        """The row whose tooltip is shown; None without a tooltip."""
        self._layer_tip = ""
        """The escaped text that napari's own tooltip was set to."""
        self._pixel = np.zeros(2)
        self._image: QImage | None = None
        """The picture of the row; None until it is made."""
        # An error is ignored, as the grid of pictures says why there are none.
        self._picture_job = JobRunner(self, self._on_picture_made, lambda error: None)
        self._look_soon = qdebounced(self._update_row_under_mouse, REST_MS, parent=self)
        connections, session = Connections(self), self._session
        connections.append_callback(
            scene.viewer.mouse_move_callbacks, self._on_mouse_moved
        )
        moves = scene.viewer.scene.camera.events, self._linked.changed
        connections.connect(self.hide, *moves, session.state_changed)
        connections.connect(self.hide, session.dataset_changed, session.columns_changed)
        connections.add_cleanup(self.hide)
        layer_tip = scene.viewer.tooltip.events.text
        connections.connect(self._escape_napari_tooltip, layer_tip)

    def hide(self, event: object = None) -> None:
        """Hide the tooltip, and cancel a pending one."""
        self._look_soon.cancel()
        if self.row is not None:
            self.row = None
            QToolTip.hideText()

    def _escape_napari_tooltip(self, event: object) -> None:
        """Escape the text of napari's own tooltip while the map's points are active."""
        tooltip, points = self._viewer.tooltip, self._layers.points
        is_of_map = self._viewer.layers.selection.active is points is not None
        if (
            is_of_map and tooltip.text != self._layer_tip
        ):  # setting the text calls this again
            self._layer_tip = escape_tooltip(tooltip.text)
            tooltip.text = self._layer_tip

    def _on_mouse_moved(self, viewer: Any, event: Any) -> None:
        """Look for a point under the mouse after a delay; hide the tooltip in a drag.

        The delay is ``NEXT_MS`` while a tooltip is visible, and else ``REST_MS``.
        """
        self._pixel = np.array(event.pos[:2], dtype=float)
        if event.buttons:  # a drag moves the map or traces a line
            self.hide()
        else:
            is_seen = self.row is not None and QToolTip.isVisible()
            delay = NEXT_MS if is_seen else REST_MS  # Qt may have hidden it
            self._look_soon.setTimeout(delay)
            self._look_soon.throttle()

    def _update_row_under_mouse(self) -> None:
        """Show the tooltip of the point under the mouse, or hide it without a point.

        It is also hidden while a button is pressed.  A new point starts the job that
        makes its picture, where there are images, and stops that of the former point.
        """
        session = self._session
        row = self._overlay.scene.find_row_at_pixel(self._pixel)
        is_held = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        if row is None or session.dataset is None or is_held:
            self.hide()
        elif row != self.row or not QToolTip.isVisible():
            self.row = number = row
            self._image = None
            self._picture_job.stop()
            dataset, linked = session.dataset, self._linked.current
            if linked or dataset.images is not None:
                self._picture_job.submit(
                    lambda: _make_row_picture(dataset, linked, number)
                )
            self._show_tooltip()

    def _on_picture_made(self, image: QImage | None) -> None:
        """Keep the picture of the row, and show a visible tooltip again with it."""
        self._image = image
        if QToolTip.isVisible():  # a click may have hidden the tooltip
            self._show_tooltip()

    def _show_tooltip(self) -> None:
        """Show facts and picture of the current row, if any, at the mouse."""
        canvas, dataset = self._overlay.canvas, self._session.dataset
        if self.row is None or canvas is None or dataset is None:
            return
        facts = self._collect_row_facts(dataset, self.row)
        dim = find_theme_colors(self._viewer.theme).dim.name()
        points = self._layers.points
        color = (
            "" if points is None else to_hex_colors(points.face_color[[self.row]])[0]
        )
        text = format_row_details(facts, color, self._image, dim)
        position = canvas.mapToGlobal(QPoint(*self._pixel.round().astype(int).tolist()))
        QToolTip.showText(position, text, canvas, canvas.rect(), STAYS_MS)

    def _collect_row_facts(self, dataset: Dataset, row: int) -> RowDetails:
        """Return the facts of a row of the dataset, with its name and its cluster.

        Facts are the colour variable, isolation of an outlier, composition columns, and
        for objects of an image the first three profile columns.
        """
        clustering, snapshot = self._session.clusters.clustering, self._session.snapshot
        cluster = clustering.by_id[int(clustering.labels[row])]
        choice, measured = self._session.look.color_by, dict[str, float]()
        if snapshot is not None:
            measures = {STRETCH: snapshot.stretch, ISOLATION: snapshot.isolation}
            measures |= {PRESSURE: snapshot.pressure if snapshot.has_pressure else None}
            for name, values in measures.items():
                # An outlier shows its isolation even if it is not the colour variable.
                least = 0.0 if name == choice else OUTLIER_ISOLATION
                is_listed = name in (choice, ISOLATION) and values is not None
                if is_listed and values[row] >= least:
                    measured[LONG_NAMES[name]] = float(values[row])
        column = choice_name_in_file(choice, dataset)
        if column in dataset.obs and choice.endswith(dataset.value_suffix):
            column = choice
        names = [*filter(None, [column]), *composition_columns(dataset)]
        if dataset.objects is not None:
            names += dataset.profile_names[:3]
        return describe_row(dataset, row, cluster, names, measured)


def format_row_details(
    facts: RowDetails, color: str, image: QImage | None, dim: str
) -> str:
    """Return the HTML of a tooltip with facts of a row, its text and its picture.

    ``color`` is the colour of the row's point, "" for no disc; ``dim`` is the colour of
    the facts' names.  All texts are escaped.
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
        ""
        if image is None
        else f"<td width={PICTURE_SIDE + 10}>{_make_image_tag(image)}</td>"
    )
    width = f" width={MAX_WIDTH}" if facts.text else ""
    text = f"<p>{escape(facts.text)}</p>" if facts.text else ""
    return f"<table{width}><tr>{picture}<td>{words}</td></tr></table>{text}"


def _make_row_picture(
    dataset: Dataset, linked: ObjectLayers | None, row: int
) -> QImage | None:
    """Return the picture of a row, at most ``PICTURE_SIDE`` pixels wide and high.

    None without pictures.  It takes a while where many objects are left out.
    """
    pictures = make_row_pictures(dataset, linked)
    return (
        None
        if pictures is None
        else fit_into_square(to_qimage(pictures[row]), PICTURE_SIDE)
    )


def _make_image_tag(image: QImage) -> str:
    """Return an HTML tag that holds a picture as PNG."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    data = bytes(buffer.data().toBase64().data()).decode()
    return f"<img src='data:image/png;base64,{data}'>"
