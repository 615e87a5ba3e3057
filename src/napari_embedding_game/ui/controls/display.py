"""Display controls: what points are coloured by; the legend."""

from __future__ import annotations

from magicgui.widgets import CheckBox, ComboBox
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.session import ALIVE, Session
from napari_embedding_game.session.splitting import split_columns
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.gene_sets import GeneSetsPanel
from napari_embedding_game.ui.controls.reference_panel import ReferencePanel
from napari_embedding_game.ui.style.coloring import PRESSURE, Legend, choices
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    add_row,
    form,
    show_row,
)
from napari_embedding_game.ui.style.legend import LegendView
from napari_embedding_game.ui.style.texts import (
    ISOLATION_CHOICE,
    ISOLATION_MEANS,
    PRESSURE_CHOICE,
    PRESSURE_MEANS,
    STRETCH_CHOICE,
    STRETCH_MEANS,
)

ONE_MAP = "Nothing: one map"
LONG_NAMES = {
    "Stretch": STRETCH_CHOICE,
    "Isolation": ISOLATION_CHOICE,
    "Pressure": PRESSURE_CHOICE,
}
"""What the built-in choices are called in the window."""


class DisplayControls(ControlsSection):
    """Edits ``session.look``; everything applies at once.

    Parameters
    ----------
    session : Session
    """

    answered = Signal()
    """A colouring that was chosen elsewhere, as a gene, has got its legend."""
    placed = Signal(object)
    """Cells that were placed on the map of a reference."""
    level_picked = Signal(int, bool)
    """The place of a level of the legend, and whether it is added to the selection."""

    hiding_requested = Signal(str, int)
    """What is to be done to the level of a place of the legend: hide it, ..."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._look = session.look
        self.color_by = ComboBox(
            choices=self._choices,
            value=self._look.color_by,
            tooltip="What the colour of a point tells: its cluster, what is known of "
            "it, or how far it moves to a map that this one is compared with. For a "
            "gene, press / and type its name.\n\n"
            f"Misplaced: {STRETCH_MEANS}\n\nOutliers: {ISOLATION_MEANS}\n\n"
            f"Crowded: {PRESSURE_MEANS}",
        )
        self.split_by = ComboBox(
            choices=self._splits,
            value=self._look.split_by,
            tooltip="Show the groups of a column side by side, as samples or "
            "conditions: each in the places that its points have on the map. While "
            "points move, and in space, the map is whole.",
        )
        self.landmarks = CheckBox(
            text="Landmarks at rest",
            value=self._look.show_landmarks,
            tooltip="Show the landmarks, of which the clusters are made, as pale "
            "rings, not only while the game runs. With their layer selected in "
            "napari's list they can be dragged while it runs, and the points give way; "
            "A adds one under the mouse, Delete takes it away.",
        )
        self.names = CheckBox(
            text="Show names",
            value=self._look.show_names,
            tooltip="Write the clusters' names on the map; nearer, there is room for "
            "more of them.",
        )
        self.far = CheckBox(
            text="Lines to neighbours",
            value=self._look.show_far,
            tooltip="From selected points to those of their nearest neighbours in the "
            "data that lie elsewhere on the map. A few are usual; where many lines go "
            "the same way, the map has torn a group apart.",
        )
        self.objects = CheckBox(
            text="Colour objects by the map",
            value=self._look.color_objects,
            tooltip="Give the objects in the image the colours of their points.",
        )
        self.legend = LegendView()
        colors, rows = form(), form()
        add_row(colors, "Colour by", self.color_by)
        add_row(rows, "Split by", self.split_by)
        self._rows = rows
        show_row(rows, self.split_by, False)
        self.column.addLayout(colors)
        self.column.addWidget(self.legend)
        self.column.addWidget(self.objects.native)
        self.gene_sets = GeneSetsPanel(session)
        self.reference = ReferencePanel(session)
        self.reference.placed.connect(self.placed)
        self.more = QWidget()
        """What is used now and then."""
        more = QVBoxLayout(self.more)
        more.setContentsMargins(0, 0, 0, 0)
        more.addLayout(rows)
        shown = QHBoxLayout()
        shown.addWidget(self.landmarks.native)
        shown.addWidget(self.names.native)
        shown.addStretch(1)
        more.addLayout(shown)
        for part in (self.far.native, self.gene_sets, self.reference):
            more.addWidget(part)
        self.color_by.changed.connect(self._set_color)
        self.split_by.changed.connect(self._set_split)
        self.landmarks.changed.connect(self._set_landmarks)
        self.names.changed.connect(self._set_names)
        self.objects.changed.connect(self._set_objects)
        self.far.changed.connect(self._set_far)
        self._connections = Connections(self)
        for signal, slot in (
            (self._session.dataset_changed, self._on_dataset),
            (self._session.state_changed, self._on_state),
            (self._session.restored, self._on_restored),
            (self._session.columns_changed, self._offer),
            (self._look.events.color_by, self._on_color),
        ):
            self._connections.connect(signal, slot)
        self.legend.limits_changed.connect(self._set_limits)
        self.legend.picked.connect(self.level_picked)
        self.legend.hiding_requested.connect(self.hiding_requested)

    def set_legend(self, legend: Legend) -> None:
        """Show how to read the colours."""
        self.legend.set_legend(legend)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._offer()

    def _on_restored(self, saved: object = None) -> None:
        """Show the look as it is, when a session file has changed it."""
        self._offer()
        for widget, value in (
            (self.landmarks, self._look.show_landmarks),
            (self.names, self._look.show_names),
            (self.objects, self._look.color_objects),
            (self.far, self._look.show_far),
        ):
            with widget.changed.blocked():
                widget.value = value

    def _on_color(self, choice: str) -> None:
        """Follow a choice made elsewhere; a gene is offered while it is chosen."""
        if choice != self.color_by.value:
            self._offer()
            QTimer.singleShot(0, self.answered.emit)  # once the legend is drawn

    def _on_state(self, state: str) -> None:
        """Offer pressure while the method that is played defines it."""
        if state != "running":  # which begins as it was prepared
            self._offer()

    def _choices(self, widget: object) -> list[tuple[str, str]]:
        names, choice = choices(self._session.dataset), self._look.color_by
        if not self._has_pressure:
            names = [name for name in names if name != PRESSURE]
        if choice not in names:
            names = [*names, choice]
        return [(LONG_NAMES.get(name, name), name) for name in names]

    def _splits(self, widget: object) -> list[tuple[str, str]]:
        names = split_columns(self._session.dataset)
        return [(ONE_MAP, ""), *((name, name) for name in names)]

    @property
    def _has_pressure(self) -> bool:
        """Whether pressure is defined: by the map, or the method of the next one."""
        played = self._session.run if self._session.state in ALIVE else None
        game = self._session.played.settings if self._session.played else None
        if played is not None:
            game = played.settings
        method = self._session.settings.method if game is None else game.method
        return get_method(method).has_pressure

    def _offer(self) -> None:
        with self.color_by.changed.blocked():
            self.color_by.reset_choices()
            self.color_by.value = self._look.color_by
        dataset = self._session.dataset
        self.objects.native.setVisible(
            dataset is not None and dataset.objects is not None
        )
        self._offer_splits()

    def _offer_splits(self) -> None:
        """List the columns; one that is gone splits nothing any more."""
        names = split_columns(self._session.dataset)
        if self._look.split_by not in names:
            self._look.split_by = ""
        with self.split_by.changed.blocked():
            self.split_by.reset_choices()
            self.split_by.value = self._look.split_by
        show_row(self._rows, self.split_by, bool(names))

    def _set_split(self, column: str) -> None:
        self._look.split_by = column

    def _set_limits(self, limits: tuple[float, float]) -> None:
        self._look.limits = limits

    def _set_color(self, choice: str) -> None:
        self._look.color_by = choice

    def _set_landmarks(self, shown: bool) -> None:
        self._look.show_landmarks = shown

    def _set_objects(self, are_colored: bool) -> None:
        self._look.color_objects = are_colored

    def _set_names(self, shown: bool) -> None:
        self._look.show_names = shown

    def _set_far(self, shown: bool) -> None:
        self._look.show_far = shown
