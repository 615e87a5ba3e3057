"""The tools that select points, and what is done to those that are selected."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QHBoxLayout, QPushButton, QSlider, QVBoxLayout, QWidget

from napari_embedding_game.core.settings import NO_HAND, is_played
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    add_row,
    form,
    show_text,
    text_label,
)

LASSO_TIP = (
    "Draw around points; so does Shift and a drag, and Ctrl adds to what is selected."
)
NEIGHBORS_TIP = (
    "While you press: points that are like the selection in the data come to it, and "
    "those within it that are not move out."
)
LET_GO_TIP = (
    "Free the selected points of all that holds them; without a selection, all."
)


class SelectionControls(ControlsSection):
    """Buttons that select and steer points; whoever shows them connects them."""

    def __init__(self, session: Session, linked: LinkedLayers, brush: Any) -> None:
        super().__init__()
        self._session, self._linked, self._brush = session, linked, brush
        self._correction = ""
        self.tools = QWidget()
        """What selects points on the map."""
        self.lasso, self.brush = QPushButton("Lasso"), QPushButton("Brush")
        self.embed = QPushButton("Own map")
        self.show_objects = QPushButton("Show in image")
        self.hold, self.let_go = QPushButton("Hold"), QPushButton("Let go")
        self.neighbors = QPushButton("True neighbours (press and hold)")
        for button, tip in (
            (self.lasso, LASSO_TIP),
            (self.brush, "Paint over points to select them (B)."),
            (self.embed, "Lay out the selected points anew, without the others."),
            (self.show_objects, "Move to the selected objects in the image."),
            (self.hold, "Hold the selected points in place while the others move."),
            (self.let_go, LET_GO_TIP),
            (self.neighbors, NEIGHBORS_TIP),
        ):
            button.setToolTip(tip)
        self.size_row = QWidget()
        rows = form()
        self.size_row.setLayout(rows)
        self.size = QSlider(Qt.Orientation.Horizontal)
        self.size.setToolTip("Radius of the brush on the canvas, in pixels.")
        add_row(rows, "Size", self.size)
        self.painted, self.text, self.told = text_label(), text_label(), text_label()
        rows.addRow(self.painted)
        self.lasso.setCheckable(True)
        self.brush.setCheckable(True)
        tools = QVBoxLayout(self.tools)
        tools.setContentsMargins(0, 0, 0, 0)
        tools.addLayout(_row(self.lasso, self.brush))
        tools.addWidget(self.size_row)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.addWidget(self.text)
        self.column.addLayout(_row(self.embed, self.show_objects))
        self.column.addLayout(_row(self.hold, self.let_go))
        self.column.addWidget(self.neighbors)
        self.column.addWidget(self.told)
        self._connections = Connections(self)
        self._connections.connect(brush.changed, self._on_brush)
        changes = (
            session.selection.changed,
            session.view.hidden_changed,
            session.hand.changed,
            session.state_changed,
            session.settings.changed,
            linked.changed,
        )
        self._connections.connect_all(changes, self.refresh)
        self.lasso.toggled.connect(self._on_lasso)
        self._on_brush()
        self.refresh()

    def refresh(self, *event: object) -> None:
        """Follow the selection and the hand."""
        session, hand, shot = self._session, self._session.hand, self._session.snapshot
        is_some = shot is not None and not session.selection.is_empty
        is_game = is_played(session.settings.value)
        self.setVisible(shot is not None)
        mask, points = session.view.hidden, session.selection.points
        n_hidden = 0 if mask is None else int((mask & points).sum())
        show_text(self.text, f"{n_hidden:,} of them hidden" if n_hidden else "")
        self.embed.setEnabled(is_some)
        self.show_objects.setVisible(self._linked.current is not None)
        self.show_objects.setEnabled(is_some)
        self.hold.setEnabled(is_game and is_some)
        self.let_go.setEnabled(is_game and (is_some or bool(hand.forces)))
        is_known = shot is not None and shot.neighbors is not None
        is_at_rest = session.state in ("paused", "finished", "stopped", "failed")
        if not self.neighbors.isDown():  # disabled then, it would never be let go
            self.neighbors.setEnabled(is_some and is_known and is_at_rest)
        no_hand = NO_HAND if is_some and not is_game else ""
        show_text(self.told, self._correction or hand.told() or no_hand)

    def tell_correction(self, text: str) -> None:
        """Tell which true neighbours are shown; "": none are."""
        self._correction = text
        self.refresh()

    # Inside

    def _on_brush(self) -> None:
        """Show the brush, which takes the place of the lasso while it is on."""
        brush = self._brush
        self.brush.setChecked(brush.is_on)
        self.size.setValue(round(brush.radius))
        self.size_row.setVisible(brush.is_on)
        show_text(self.painted, brush.told)
        if brush.is_on:
            self.lasso.setChecked(False)

    def _on_lasso(self, is_on: bool) -> None:
        if is_on:
            self.brush.setChecked(False)


def _row(*buttons: QPushButton) -> QHBoxLayout:
    row = QHBoxLayout()  # one that is hidden leaves its room to the others
    row.setSpacing(4)
    for button in buttons:
        row.addWidget(button, 1)
    return row
