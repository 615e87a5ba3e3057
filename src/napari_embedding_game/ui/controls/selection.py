"""Controls of the tools that select points and of the actions on a selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import get_args

from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QPushButton, QWidget

from napari_embedding_game.core.settings import NO_HAND, is_game
from napari_embedding_game.session.session import RESTING_STATES
from napari_embedding_game.session.settings import Shown
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.form_widgets import CTRL, ChoiceBox, TextLabel
from napari_embedding_game.ui.style.layouts import (
    equal_width_box,
    horizontal_box,
    push_button,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.workspace import Workspace

TIPS = {
    "lasso": f"Draw around points (Shift and drag); {CTRL} adds.",
    "brush": f"Paint over points (B); Shift adds, {CTRL} takes away.",
    "embed": "Open a map of the selected points alone; this one stays.",
    "hold": "Hold the selected points in place while the others move.",
    "free": "Free the selected points that are held, or all.",
    "neighbors": "Press and hold: similar points move to the selection.",
}
SHOWN_TIP = "Show the cells on the map, in the tissue, or both beside each other."
IN_IMAGE, IN_TISSUE = (
    (f"Show in {where}", f"Zoom to the selected {what}; M brings the map back.")
    for where, what in (
        ("image", "objects in the image"),
        ("tissue", "cells in tissue"),
    )
)
"""Text and tooltip of the button that goes to the selection."""


class SelectionControls(QWidget):
    """Buttons that select and steer points.

    Parameters
    ----------
    actions : mapping of str to callable
        The action of each button, by the keys of ``TIPS`` and "objects".  That of
        "neighbors" receives whether the button is down.
    """

    def __init__(self, workspace: Workspace, actions: Mapping[str, Callable]) -> None:
        super().__init__()
        self._session = session = workspace.session
        self._linked = workspace.linked_layers
        self._neighbors_message = ""

        def button(text: str, key: str) -> QPushButton:
            """Return a button with the tooltip and the action of a key of ``TIPS``."""
            return push_button(text, TIPS[key], actions[key])

        self.lasso_button = button("Lasso", "lasso")
        self.brush_button = button("Brush", "brush")
        self.embed_button = button("Map these", "embed")
        self.show_objects_button = push_button(*IN_IMAGE, actions["objects"])
        self.hold_button = button("Hold", "hold")
        self.release_button = button("Free", "free")
        self.neighbors_button = push_button("True neighbours", TIPS["neighbors"])
        self.neighbors_button.pressed.connect(partial(actions["neighbors"], True))
        self.neighbors_button.released.connect(partial(actions["neighbors"], False))
        self.message, self.tool_hint = TextLabel(), TextLabel()
        self.by_hand = TextLabel()
        look = session.look
        self.shown = ChoiceBox(SHOWN_TIP, partial(setattr, look, "show"), 10)
        self.shown.set_choices((name.capitalize(), name) for name in get_args(Shown))
        self.shown.setAccessibleName("Show")
        self.lasso_button.setCheckable(True)
        self.brush_button.setCheckable(True)
        self.tool_row = horizontal_box(
            self.lasso_button, self.brush_button, self.shown, stretched=()
        )
        """The buttons of the tools, to which the dock adds one."""
        self.tools = widget_with_layout(vertical_box(self.tool_hint, self.tool_row))
        """The tools that select points, where these points are shown, and a hint; for a
        corner of the map."""
        self.held_row = widget_with_layout(
            horizontal_box(self.by_hand, self.release_button)
        )
        """A summary of the held points, and the button to free them."""
        buttons = equal_width_box(
            self.embed_button, self.neighbors_button, self.hold_button
        )
        self.setLayout(vertical_box(buttons, self.show_objects_button, self.message))
        connect = Connections(self).connect
        connect(self.update_buttons, session.state_changed, self._linked.changed)
        connect(self._on_hand_changed, session.hand.changed, session.settings.changed)
        connect(self.update_buttons, session.dataset_changed, look.events.show)
        self._on_hand_changed()

    def update_buttons(self, *event: object) -> None:
        """Show the buttons that can be used with a selection in the present state.

        A message on the true neighbours is shown, else why the method cannot hold
        points.
        """
        snapshot, state = self._session.snapshot, self._session.state
        has_tissue, has_image = (
            self._session.view.has_tissue,
            bool(self._linked.current),
        )
        self.show_objects_button.setVisible(has_tissue or has_image)
        text, tip = IN_IMAGE if has_image else IN_TISSUE
        self.show_objects_button.setText(text)
        self.show_objects_button.setToolTip(tip)
        self.shown.setVisible(has_tissue)
        with QSignalBlocker(self.shown):
            self.shown.value = self._session.look.show
        self.hold_button.setVisible(self._is_game)
        has_neighbors = snapshot is not None and snapshot.neighbors is not None
        # A button that is hidden while down would never be released.
        if not self.neighbors_button.isDown():
            self.neighbors_button.setVisible(has_neighbors and state in RESTING_STATES)
        self.message.show_text(
            self._neighbors_message or ("" if self._is_game else NO_HAND)
        )

    def _on_hand_changed(self, *event: object) -> None:
        """Show the held points, or why points cannot be held; update the buttons."""
        hand = self._session.hand
        self._is_game = is_game(self._session.settings.value)
        self.by_hand.show_text(hand.describe_forces_or_refusal())
        self.release_button.setVisible(
            bool(hand.forces and hand.describe_forces_or_refusal())
        )
        self.update_buttons()

    def show_active_tool(self, tool: str) -> None:
        """Check the button of the mouse's tool and show the tool's tip; "" for none."""
        self.lasso_button.setChecked(tool == "lasso")
        self.brush_button.setChecked(tool == "brush")
        self.tool_hint.show_text(TIPS.get(tool, ""))

    def show_neighbors_message(self, text: str) -> None:
        """Show a message about the true neighbours; "" removes the message."""
        self._neighbors_message = text
        self.update_buttons()
