"""Method controls: method, repulsion, landmarks and all other parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magicgui.widgets import FloatSlider, FloatSpinBox, PushButton
from magicgui.widgets.bases import ValueWidget
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFormLayout, QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.core.energy.methods import Approximation, get_method
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import (
    NO_BOUND,
    approximation_of,
    repulsion_of,
    resolve,
)
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.settings import (
    ChosenSettings,
    has_lambda,
    paper_lambda,
    repulsion_range,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.method_choices import (
    LABELS,
    REPELLED_BY,
    make_controls,
)
from napari_embedding_game.ui.controls.preset_box import PresetBox
from napari_embedding_game.ui.controls.show_value import show_value
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    Fold,
    add_row,
    box_readout,
    finish_typing,
    form,
    show_row,
    show_text,
    text_label,
)

OF_THE_PLAYERS = (
    "learning_rate",
    "landmark_learning_rate",
    "momentum",
    "schedule",
)
"""Fields that say how the players of the game take their steps."""
OF_THE_POINTS = ("learning_rate",)
"""Those that say how the points do: with no say where something else moves them."""
OF_THE_END = ("schedule", "max_iter")
"""Those that say when it ends: with no say in another library."""
OF_THE_METHOD = ("method", "approximation", "optimizer", "affinity")
"""Those whose choices and values go with the method."""
AUTOMATICALLY = ("learning_rate", "landmark_learning_rate", "momentum", "max_iter")
"""Numbers that are left to the engine at their lowest value."""
MAIN = (
    "method",
    "approximation",
    "n_components",
    "n_landmarks",
    "n_neighbors",
    "perplexity",
)
MORE = [name for name in LABELS if name not in MAIN]
"""The fine print, from top to bottom."""
CHOOSERS: Mapping[str, Callable[[ChosenSettings, Any], None]] = {
    "method": ChosenSettings.choose_method,
    "optimizer": ChosenSettings.choose_optimizer,
    "affinity": ChosenSettings.choose_affinity,
}
"""Settings that others depend on."""
NUMBER_WIDTH = 104
"""Pixels of a number beside a slider: five digits."""
IN_SPACE = "Drag to turn it; Run again lays it out anew."
STALE = "The map was made with other settings: Run again makes one with these."
CONTINUE_TIP = (
    "Work the neighbours out as they are set now, and play on from the map that you "
    "see: groups stay where they are as far as they can. The map as it is stays in the "
    "timeline."
)


class MethodControls(ControlsSection):
    """Edits ``session.settings``; what can act on the running game acts at once."""

    dimensions_requested = Signal(int)
    """How many dimensions the map is to have from now on."""
    continue_requested = Signal()
    """A run with the settings as they are, from the map on show."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._settings = session.settings
        self._connections = Connections(self)
        self._make()
        self._build()
        self._connect()
        self.show_settings()
        self._show_staleness()

    def _make(self) -> None:
        self.presets = PresetBox(self._settings)
        self.controls = make_controls(self._settings)
        """A control for each setting, by the name of its field."""
        tip = (
            "Repulsion: low values draw the map together into lines and branches, "
            "high values open it up and show finer clusters. In the papers λ × N: "
            "lambda times the number of rows."
        )
        self.repulsion_slider = FloatSlider(step=0.01, readout=False, tooltip=tip)
        self.repulsion = FloatSpinBox(step=10, tooltip=tip)
        self.repulsion.native.setDecimals(0)
        self.paper_lambda = text_label(wraps=False)
        self.paper_lambda.setToolTip(
            "The repulsion that the chosen method has by default, and lambda as the "
            "papers give it: the repulsion divided by the number of rows."
        )

    def _build(self) -> None:
        main = self._main = form()
        add_row(main, "Preset", self.presets)
        self._add_rows(main, MAIN[:2])
        main.addRow("", self.paper_lambda)
        self.steering = QWidget()
        """The repulsion, and what it means that the map is of other settings."""
        steering = QVBoxLayout(self.steering)
        steering.setContentsMargins(0, 0, 0, 0)
        steering.setSpacing(4)
        row = form()
        add_row(row, "Repulsion", self._repulsion_row())
        steering.addLayout(row)
        self._add_rows(main, MAIN[2:3])
        self.in_space = text_label(IN_SPACE)
        main.addRow(self.in_space)
        self._add_rows(main, MAIN[3:])
        box_readout(self.controls["n_landmarks"].native, NUMBER_WIDTH)
        self.column.addLayout(main)
        inside = QWidget()
        rows = form()
        inside.setLayout(rows)
        self._add_rows(rows, MORE)
        self.more = Fold("More settings", inside)
        self.column.addWidget(self.more)
        self.stale = text_label(STALE)
        steering.addWidget(self.stale)
        self.continue_stale = PushButton(
            text="Continue with these settings", tooltip=CONTINUE_TIP
        )
        steering.addWidget(self.continue_stale.native)

    def _add_rows(self, rows: QFormLayout, names: Sequence[str]) -> None:
        for name in names:
            add_row(rows, self.controls[name].label, self.controls[name])

    def _repulsion_row(self) -> QWidget:
        row = QWidget()
        row.setToolTip(self.repulsion.tooltip)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.repulsion_slider.native, 1)
        self.repulsion.native.setFixedWidth(NUMBER_WIDTH)
        layout.addWidget(self.repulsion.native)
        return row

    def _connect(self) -> None:
        self.presets.applied.connect(self.show_settings)
        self.repulsion_slider.changed.connect(self._on_slider)
        self.repulsion.changed.connect(self._on_repulsion)
        for widget in self.controls:
            widget.changed.connect(
                lambda value, widget=widget: self._set(widget, value)
            )
        self.continue_stale.changed.connect(self._continue)
        for signal, slot in (
            (self._session.staleness_changed, self._show_staleness),
            (self._session.state_changed, self._show_staleness),
            (self._settings.changed, self._show_staleness),
            (self._session.dataset_changed, self._on_dataset),
            (self._session.restored, self.show_settings),
            (self._session.looked_back, self.show_settings),
        ):
            self._connections.connect(signal, slot)

    def show_settings(self) -> None:
        """Show the settings as they are, when something else has changed them."""
        self._show_dimensions()
        for widget in self.controls:
            if widget.name not in (*OF_THE_METHOD, "n_components"):
                value = getattr(self._settings, widget.name)
                show_value(widget, widget.min if value is None else value)
        self._show_method()

    def _show_method(self) -> None:
        """Show what goes with the method: its choices and its repulsion."""
        settings = self._settings
        for name in OF_THE_METHOD:
            widget = self.controls[name]
            with widget.changed.blocked():
                widget.reset_choices()
            is_repelled = name == "approximation"
            value = self._approximation if is_repelled else getattr(settings, name)
            show_value(widget, value)
        self._show_repulsion()
        self._enable()
        self._show_reach()
        self._tell_lambda()

    def _show_dimensions(self) -> None:
        """Show how many dimensions are chosen."""
        widget, chosen = self.controls["n_components"], self._settings.n_components
        if chosen not in widget.choices:  # a file may have a map on a line
            with widget.changed.blocked():
                widget.reset_choices()
        show_value(widget, chosen)
        self.in_space.setVisible(chosen == 3)

    def _show_repulsion(self) -> None:
        low, high = repulsion_range(self._settings.method)
        with self.repulsion.changed.blocked(), self.repulsion_slider.changed.blocked():
            self.repulsion.native.setDecimals(max(0, -math.floor(math.log10(low))))
            self.repulsion.range = low, high
            self.repulsion_slider.range = math.log10(low), math.log10(high)
        show_value(self.repulsion, self._repulsion)
        show_value(self.repulsion_slider, math.log10(self._repulsion))

    def _enable(self) -> None:
        """Let only what acts be changed."""
        spec = get_method(self._settings.method)
        is_steered = not spec.moved_by
        by_game = self._settings.optimizer == "game"
        # What moves by itself is not steered, and a minimiser needs all pairs.
        controls = self.controls
        for widget in (self.repulsion, self.repulsion_slider, controls["optimizer"]):
            widget.enabled = is_steered
        approximation = controls["approximation"]
        approximation.enabled = is_steered and (
            by_game or len(approximation.choices) > 1
        )
        idle = {
            *(() if by_game else OF_THE_PLAYERS),
            *(() if is_steered else OF_THE_POINTS),
        }
        for field in (*OF_THE_PLAYERS, *OF_THE_END):
            controls[field].enabled = field not in idle
        reason = NO_BOUND.get(spec.kernel)
        approximation.tooltip = (
            f"{REPELLED_BY} Not landmarks: {reason}." if reason else REPELLED_BY
        )

    def _show_reach(self) -> None:
        """Show what says how far the attraction of the edges reaches."""
        is_entropic = resolve(self._settings.value).affinity == "entropic"
        show_row(self._main, self.controls["n_neighbors"], not is_entropic)
        show_row(self._main, self.controls["perplexity"], is_entropic)

    @property
    def _approximation(self) -> Approximation | None:
        """What pushes the points apart, or what is asked for where that cannot."""
        try:
            return approximation_of(self._session.chosen())
        except InputError:
            return self._settings.approximation

    @property
    def _repulsion(self) -> float:
        return repulsion_of(self._settings.value)

    def _set(self, widget: ValueWidget, value: Any) -> None:
        settings, name = self._settings, widget.name
        if name == "n_components":
            self.dimensions_requested.emit(value)
            self._show_dimensions()  # as they are: it may have been refused
            return
        if name in CHOOSERS:
            CHOOSERS[name](settings, value)
            self._show_method()
            return
        # Between the lowest value and 0, where there is room, is nothing to choose.
        is_left = name in AUTOMATICALLY and (value <= widget.min or value < 0)
        chosen = int(value) if name == "max_iter" else value
        setattr(settings, name, None if is_left else chosen)

    def _on_slider(self, exponent: float) -> None:
        self._set_repulsion(round_to(10**exponent, 2))
        with self.repulsion.changed.blocked():
            self.repulsion.value = self._repulsion

    def _on_repulsion(self, repulsion: float) -> None:
        self._set_repulsion(repulsion)
        with self.repulsion_slider.changed.blocked():
            self.repulsion_slider.value = math.log10(repulsion)

    def _set_repulsion(self, repulsion: float) -> None:
        low, high = repulsion_range(self._settings.method)
        self._settings.repulsion = min(max(repulsion, low), high)
        self._tell_lambda()

    def _show_staleness(self, *event: object) -> None:
        """Tell that the map is of other settings, and offer to go on with these."""
        session = self._session
        show_text(self.stale, STALE if session.stale else "")
        self.continue_stale.native.setVisible(session.stale and session.can_continue)

    def _continue(self) -> None:
        finish_typing()
        self.continue_requested.emit()

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._show_method()  # of which some is left to the number of points
        self.controls["metric"].enabled = dataset is None or not dataset.is_distances

    def _tell_lambda(self) -> None:
        dataset, method = self._session.dataset, self._settings.method
        if get_method(method).moved_by:
            show_text(self.paper_lambda, "cannot be steered")
            return
        hint = f"default {get_method(method).repulsion:g}"
        if has_lambda(method) and dataset is not None:
            value = paper_lambda(self._settings.value, dataset.X.shape[0])
            hint += f"  ·  λ = {value:.3g}"
        show_text(self.paper_lambda, hint)


def round_to(value: float, digits: int) -> float:
    """Round to so many significant digits: 295.1 to 300 (2)."""
    return round(value, digits - 1 - math.floor(math.log10(value)))
