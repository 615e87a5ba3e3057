"""The tools that select points, and what is done to those that are selected."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSlider, QWidget

from napari_embedding_game.core.settings import NO_HAND, is_played
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.form_widgets import (
    add_row,
    form,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.layouts import (
    column,
    evenly,
    panel,
    push_button,
)

BUTTONS = {
    "lasso": ("Lasso", "Draw around points (Shift and drag; Ctrl adds)."),
    "brush": ("Brush", "Paint over points to select them (B)."),
    "embed": ("Own map", "Lay out the selected points anew, without the others."),
    "show_objects": ("Show in image", "Move to the selected objects in the image."),
    "hold": ("Hold", "Hold the selected points in place while the others move."),
    "let_go": ("Let go", "Free the selected points, or all."),
    "neighbors": (
        "True neighbours (press and hold)",
        "While you press, points like the selection come to it.",
    ),
}
"""Text and tooltip of each button."""


HOW = "Paint with the mouse. Shift adds, Ctrl takes away."


class SelectionControls(QWidget):
    """Buttons that select and steer points; whoever shows them connects them."""

    def __init__(self, session: Session, linked: LinkedLayers) -> None:
        super().__init__()
        self._session, self._linked = session, linked
        self._correction = ""
        (
            self.lasso,
            self.brush,
            self.embed,
            self.show_objects,
            self.hold,
            self.let_go,
            self.neighbors,
        ) = (push_button(*words) for words in BUTTONS.values())
        self.size = QSlider(Qt.Orientation.Horizontal)
        self.size.setToolTip("Radius of the brush on the canvas, in pixels.")
        self.told = text_label()
        sizes = form()
        add_row(sizes, "Size", self.size)
        sizes.addRow(text_label(HOW))
        self.size_row = panel(sizes)
        self.lasso.setCheckable(True)
        self.brush.setCheckable(True)
        self.tools = panel(column(evenly(self.lasso, self.brush), self.size_row))
        """What selects points on the map."""
        rows = evenly(self.embed, self.show_objects), evenly(self.hold, self.let_go)
        self.setLayout(column(*rows, self.neighbors, self.told, spacing=5))
        connections = Connections(self)
        changes = (
            session.selection.changed,
            session.hand.changed,
            session.state_changed,
            session.settings.changed,
            linked.changed,
        )
        connections.connect_all(changes, self.refresh)
        self.size_row.hide()
        self.refresh()

    def refresh(self, *event: object) -> None:
        """Follow the selection and the hand."""
        session, hand, shot = self._session, self._session.hand, self._session.snapshot
        is_some = shot is not None and not session.selection.is_empty
        is_game = is_played(session.settings.value)
        self.setVisible(shot is not None)
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

    def show_tool(self, tool: str, radius: int) -> None:
        """Show which tool the mouse has, and how wide the brush is."""
        self.lasso.setChecked(tool == "lasso")
        self.brush.setChecked(tool == "brush")
        self.size.setValue(radius)
        self.size_row.setVisible(tool == "brush")
