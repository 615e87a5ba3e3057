"""Selection controls: what is selected, and actions on it."""

from __future__ import annotations

from magicgui.widgets import PushButton
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import LoadResult, Source
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.child_space import ChildSpace
from napari_embedding_game.ui.controls.hand_buttons import HandButtons
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    show_text,
    text_label,
)


class BrushSize(QWidget):
    """A slider for the size of the brush, and a line that tells what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip("Radius of the brush on the canvas, in pixels.")
        caption = QLabel("Size")
        caption.setToolTip(self.slider.toolTip())
        self.told = text_label()
        row = QHBoxLayout()
        row.addWidget(caption)
        row.addWidget(self.slider, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.told)
        self.setVisible(False)


class SelectionControls(ControlsSection):
    """Tells what is selected, and offers the tools for it.

    Parameters
    ----------
    session : Session
    maps : MapTree
    linked : LinkedLayers
    """

    lasso_toggled = Signal(bool)
    """Whether every drag on the canvas is to draw around points."""
    brush_toggled = Signal(bool)
    """Whether every drag on the canvas is to paint."""
    brush_resized = Signal(int)
    """Radius in pixels."""
    embed_requested = Signal(object, object)
    """Source and :class:`ReadOptions` of a map of the selected points alone.

    The data are read again where there are options, and are as here without.
    """
    show_objects_requested = Signal()
    correction_toggled = Signal(bool)
    """Whether true neighbours are to be shown beside the selection."""
    hand_requested = Signal(str)
    """What is to be done to the selected points: a :data:`HandAction`."""

    def __init__(self, session: Session, maps: MapTree, linked: LinkedLayers) -> None:
        super().__init__()
        self._session = session
        self._linked = linked
        self._connections = Connections(self)
        self.text = text_label()
        self.lasso = PushButton(
            text="Lasso",
            tooltip="Draw around points with the mouse; holding Shift does the same "
            "without this button, holding Ctrl too adds to what is selected.",
        )
        self.lasso.native.setCheckable(True)
        self.brush = PushButton(
            text="Brush",
            tooltip="Paint over points to select them (B).",
        )
        self.brush.native.setCheckable(True)
        self.brush_size = BrushSize()
        self.embed = PushButton(
            text="Map of its own",
            tooltip="Lay out the selected points anew, without the others.",
        )
        self.show_objects = PushButton(
            text="Show in image",
            tooltip="Move to the selected objects in the image.",
        )
        self.tools = QWidget()
        """What selects points on the map."""
        tools = QVBoxLayout(self.tools)
        tools.setContentsMargins(0, 0, 0, 0)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.lasso.native, 1)
        row.addWidget(self.brush.native, 1)
        tools.addLayout(row)
        tools.addWidget(self.brush_size)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.addWidget(self.text)
        self._add_row(self.embed, self.show_objects)
        self.space = ChildSpace(session, maps)
        self.column.addWidget(self.space)
        self.hand = HandButtons(session)
        self.column.addWidget(self.hand)
        self._connect()
        self.refresh()

    def refresh(self) -> None:
        """Follow the selection."""
        selection = self._session.selection
        has_map = self._session.snapshot is not None
        is_some = has_map and not selection.is_empty
        self.setVisible(has_map)
        n_hidden = self._session.hiding.n_selected
        show_text(self.text, f"{n_hidden:,} of them hidden" if n_hidden else "")
        self.embed.enabled = is_some
        self.show_objects.native.setVisible(self._linked.current is not None)
        self.show_objects.enabled = is_some

    def note_asked(self, source: Source | None) -> None:
        """Follow what is going to be read; None: a session file was taken up."""
        self.space.note_asked(source)

    def tell_correction(self, text: str) -> None:
        """Tell which true neighbours are shown; "": none are."""
        self.hand.tell(text)

    def show_brush(self, is_on: bool) -> None:
        """Show whether the brush is on, which takes the place of the lasso."""
        self.brush.native.setChecked(is_on)
        self.brush_size.setVisible(is_on)
        if is_on:
            self.lasso.native.setChecked(False)

    def set_brush_sizes(self, smallest: int, largest: int, radius: int) -> None:
        """Offer radii of the brush, and show its own."""
        self.brush_size.slider.setRange(smallest, largest)
        self.show_brush_size(radius)

    def show_brush_size(self, radius: int) -> None:
        """Show the radius of the brush in pixels."""
        self.brush_size.slider.setValue(radius)

    def tell_brush(self, text: str) -> None:
        """Tell how one paints, or what is painted."""
        show_text(self.brush_size.told, text)

    def note_loaded(self, source: Source, loaded: LoadResult) -> None:
        """Offer the spaces of the source that was taken up."""
        self.space.note_loaded(source, loaded)

    def _connect(self) -> None:
        session = self._session
        changes = (
            session.selection.changed,
            session.hiding.changed,
            session.state_changed,
            self._linked.changed,
        )
        self._connections.connect_all(changes, self.refresh)
        self.hand.requested.connect(self.hand_requested)
        self.hand.correction_toggled.connect(self.correction_toggled)
        self.lasso.native.toggled.connect(self.lasso_toggled)
        self.lasso.native.toggled.connect(self._on_lasso)
        self.brush.native.toggled.connect(self.brush_toggled)
        self.brush_size.slider.valueChanged.connect(self.brush_resized)
        self.embed.changed.connect(self._embed)
        self.show_objects.changed.connect(lambda: self.show_objects_requested.emit())

    def _add_row(self, *buttons: PushButton) -> None:
        row = QHBoxLayout()  # one that is hidden leaves its room to the others
        row.setSpacing(4)
        for button in buttons:
            row.addWidget(button.native, 1)
        self.column.addLayout(row)

    def _on_lasso(self, is_on: bool) -> None:
        if is_on:
            self.brush.native.setChecked(False)

    def _embed(self) -> None:
        goes_on, options = self.space.ask()
        if goes_on:
            self.embed_requested.emit(self.space.source, options)
