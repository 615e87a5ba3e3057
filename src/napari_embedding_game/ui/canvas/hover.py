"""Shows a card for the point under the mouse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QEvent, QObject, QPoint, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.snapshot import UNLIKE
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.row_details import row_details
from napari_embedding_game.ui.canvas.hover_card import HoverCard
from napari_embedding_game.ui.canvas.hover_watch import HoverWatch, point_at
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.compat import camera_of, canvas_widget
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.picture_grid import PICTURE_ROLE, PictureModel
from napari_embedding_game.ui.images.row_pictures import AppearanceWatch, pictures_of
from napari_embedding_game.ui.style.coloring import (
    CLUSTER,
    ISOLATION,
    PRESSURE,
    STRETCH,
    composition_columns,
    name_of,
)
from napari_embedding_game.ui.style.legend import swatch
from napari_embedding_game.ui.style.texts import (
    ISOLATION_CHOICE,
    PRESSURE_CHOICE,
    STRETCH_CHOICE,
)
from napari_embedding_game.ui.style.theme import theme_colors

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

LEAVING = frozenset(
    {
        QEvent.Type.Leave,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.Hide,
        QEvent.Type.WindowDeactivate,
    }
)


class Hover(QObject):
    """Ties the mouse to the card: made when it is first needed, hidden in between.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    layers : MapLayers
    dock : QWidget
        Any widget in napari's window.
    """

    trouble = Signal(str)
    """A sentence about what failed."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        layers: MapLayers,
        dock: QWidget,
    ) -> None:
        super().__init__(dock)
        self._viewer = viewer
        self._workspace = workspace
        self._linked = workspace.linked
        self._layers = layers
        self._connections = Connections(self)
        self._session = workspace.session
        self._palette = workspace.palette
        self._dock = dock
        self.card: HoverCard | None = None
        self._pictures = PictureModel(self)
        self._pictures.dataChanged.connect(self._show_picture)
        self._pictures.failed.connect(self.trouble)
        self._looks = AppearanceWatch(self, self._on_linked)
        self.hovering = HoverWatch(viewer, self._find, self)
        self.hovering.changed.connect(self._on_row)
        self._on_linked()
        self._connections.connect_all(self._signals(), self.hovering.leave)
        changes = (self._session.dataset_changed, self._linked.changed)
        self._connections.connect_all(changes, self._on_linked)
        self._connections.call(self.hovering.close)
        self._connections.call(self._drop_card)

    def _drop_card(self) -> None:
        if self.card is not None:
            self.card.deleteLater()
            self.card = None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hide the card when the mouse leaves or clicks; let every event through."""
        if event.type() in LEAVING:
            self.hovering.leave()
        return False

    # Inside

    def _signals(self) -> tuple[Any, ...]:
        """Return what takes the point away from under the mouse."""
        camera = camera_of(self._viewer)
        moves = (camera.events.zoom, camera.events.center, camera.events.angles)
        return (*moves, self._session.state_changed)

    def _find(self, pixel: Any) -> int | None:
        return point_at(self._session, self._layers, pixel)

    def _on_linked(self, event: object = None) -> None:
        linked = self._linked.current
        self.hovering.leave()
        self._looks.watch(linked)
        self._pictures.set_pictures(pictures_of(self._session.dataset, linked))

    def _on_row(self, row: int | None) -> None:
        dataset = self._session.dataset
        if row is None or dataset is None or row >= len(dataset.obs):
            if self.card is not None:
                self.card.hide()
            return
        card = self._made_card()
        if card is not None:
            self._tell(card, dataset, row)
            card.stand_beside(QPoint(*map(round, self.hovering.pixel)))

    def _made_card(self) -> HoverCard | None:
        canvas = canvas_widget(self._dock)
        if self.card is None and canvas is not None:
            self.card = HoverCard(canvas)
            canvas.installEventFilter(self)
        if self.card is not None:
            self.card.set_theme(theme_colors(self._viewer.theme))
        return self.card

    def _tell(self, card: HoverCard, dataset: Dataset, row: int) -> None:
        clustering = self._session.clusters.clustering
        cluster = clustering.by_id[int(clustering.labels[row])]
        choice = self._session.look.color_by
        chosen = (name_of(choice, dataset), self._workspace.composition_column)
        columns = self._workspace.column_order.of(composition_columns(dataset))
        names = [*filter(None, chosen), *columns]
        if dataset.objects is not None:
            names += dataset.profile_names[:3]
        facts = row_details(dataset, row, cluster, names, self._worked_out(row))
        color = self._palette.of((cluster,))[0]
        card.tell(facts, swatch(color) if choice == CLUSTER else None)
        self._pictures.set_rows(np.array([row]))
        self._show_picture()

    def _worked_out(self, row: int) -> dict[str, float]:
        """Return what the map is coloured by and no file has, such as stretch."""
        snapshot, choice = self._session.snapshot, self._session.look.color_by
        if snapshot is None:
            return {}
        if choice == PRESSURE and snapshot.has_pressure:
            return {PRESSURE_CHOICE: float(snapshot.pressure[row])}
        if choice == STRETCH and snapshot.stretch is not None:
            return {STRETCH_CHOICE: float(snapshot.stretch[row])}
        isolation = math.nan if snapshot.isolation is None else snapshot.isolation[row]
        if choice == ISOLATION or isolation > UNLIKE:  # which is worth a line anyway
            return {ISOLATION_CHOICE: float(isolation)} if isolation >= 0 else {}
        return {}

    def _show_picture(self) -> None:
        pictures = self._pictures
        if self.card is None or not len(pictures.rows):
            return
        is_due = pictures.has_pictures
        image = pictures.data(pictures.index(0), PICTURE_ROLE) if is_due else None
        self.card.set_picture(image, is_due=is_due)
