"""Game: how strongly it is played, with how many landmarks, and the fine print."""

from __future__ import annotations

import math
from typing import Any

from magicgui.widgets import ComboBox, FloatSlider, FloatSpinBox, Slider, SpinBox
from magicgui.widgets.bases import ValueWidget
from qtpy.QtWidgets import QHBoxLayout, QWidget

from napari_embedding_game.core.compatibility import NO_BOUND, approximation_of
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import MEMBERS, is_installed, member, strength_of
from napari_embedding_game.core.names import Approximation
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.settings import (
    has_lambda,
    paper_lambda,
    strength_range,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.game_choices import (
    DEVICES,
    INITS,
    METRICS,
    SCHEDULES,
    UPDATES,
    affinities_of,
    approximations_of,
    automatic_float,
    optimizers_of,
)
from napari_embedding_game.ui.parts import (
    Fold,
    Part,
    add_row,
    form,
    show_row,
    show_text,
    text_label,
)
from napari_embedding_game.ui.showing import show_value

OF_THE_PLAYERS = (
    "learning_rate",
    "landmark_learning_rate",
    "momentum",
    "update",
    "landmark_update",
    "schedule",
)
"""Fields that say how the players of the game take their steps."""
OF_THE_POINTS = ("learning_rate", "update")
"""Those that say how the points do: with no say where something else moves them."""
OF_THE_END = ("schedule", "max_iter")
"""Those that say when it ends: with no say in another library."""
REPELLED_BY = (
    "What keeps points apart: landmarks that fit themselves to the map (the game, "
    "Eq. 3), pairs drawn at random (Eq. 8), points drawn at random (Eq. 9), or all "
    "pairs of points, for a few thousand at most."
)
STALE = "Restart to use these settings: they hold for a new run."


class GamePart(Part):
    """Edits ``session.settings``; what can act on the running game acts at once."""

    def __init__(self, session: Session) -> None:
        super().__init__("Game")
        self._session = session
        self._settings = session.settings
        self._connections = Connections()
        self._make_main()
        self._make_more()
        self._build()
        self._connect()
        self.show_settings()
        self._on_staleness(session.stale)

    def _make_main(self) -> None:
        self.method = ComboBox(
            choices=[(m.title, name) for name, m in MEMBERS.items() if is_installed(m)],
            tooltip="The forces between points: the embedding game is quick and "
            "suits most data, the others are known methods to compare it with.",
        )
        self.approximation = ComboBox(
            choices=lambda _: approximations_of(self._settings.method),
            tooltip=REPELLED_BY,
        )
        tip = (
            "Repulsion: low values draw the map together into lines and branches, "
            "high values open it up and show finer clusters. In the papers λ × N: "
            "lambda times the number of rows."
        )
        self.strength_slider = FloatSlider(step=0.01, readout=False, tooltip=tip)
        self.strength = FloatSpinBox(step=10, tooltip=tip)
        self.strength.native.setDecimals(0)
        self.landmarks = Slider(
            min=10,
            max=1000,
            step=10,
            tooltip="Number of landmarks, and so of clusters: more give finer clusters "
            "and a more exact repulsion (L in the paper).",
        )
        self.neighbors = SpinBox(
            min=2,
            max=200,
            tooltip="How many most similar rows attract each point: more keep the "
            "large picture together, fewer show fine detail (K in the paper).",
        )
        self.perplexity = FloatSpinBox(
            min=2,
            max=200,
            step=5,
            tooltip="How many similar rows attract each point, counting those further "
            "away for less; three times as many are looked at.",
        )
        self.perplexity.native.setDecimals(0)
        self.paper_lambda = text_label(wraps=False)
        self.paper_lambda.setToolTip(
            "The repulsion that the chosen method has by default, and lambda as the "
            "papers give it: the repulsion divided by the number of rows."
        )

    def _make_more(self) -> None:
        self.affinity = ComboBox(
            choices=lambda _: affinities_of(self._settings.method),
            tooltip="Whether nearer neighbours attract more strongly, or all of them "
            "the same, as in the paper.",
        )
        self.metric = ComboBox(
            choices=METRICS,
            tooltip="How the distance between two rows is measured.",
        )
        self.init = ComboBox(
            choices=INITS,
            tooltip="Where the points stand before the game begins; spectral keeps the "
            "large picture best.",
        )
        self.schedule = ComboBox(
            choices=SCHEDULES,
            tooltip="How step lengths go down during the game: 500 quick iterations, "
            "or the paper's 6,000.",
        )
        self.optimizer = ComboBox(
            choices=lambda _: optimizers_of(
                self._settings.method, self._settings.affinity
            ),
            tooltip="How the points find their places. The game's own steps are quick "
            "and suit all data; the others go downhill over all pairs of points, for "
            "some thousand rows at most: pressured points lets those under pressure "
            "out of the plane for a while, "
            "homotopy lets the repulsion grow from next to nothing.",
        )
        self.learning_rate = automatic_float(
            0.0, 10.0, 0.01, "Step length of the points in each iteration."
        )
        self.landmark_rate = automatic_float(
            0.0,
            10.0,
            0.01,
            "Step length of the landmarks; far too long a step makes the points "
            "collapse.",
        )
        self.momentum = automatic_float(
            -0.05, 0.99, 0.05, "How much of the last step is carried on into the next."
        )
        self.update = ComboBox(
            choices=UPDATES,
            tooltip="How the points turn the forces on them into steps. Acts at once.",
        )
        self.landmark_update = ComboBox(
            choices=UPDATES,
            tooltip="How the landmarks turn the forces on them into steps; looking "
            "ahead follows the points a little more closely. Acts at once.",
        )
        self.max_iter = automatic_float(
            0,
            20_000,
            100,
            "Iterations of the game, or the most that an optimiser takes.",
        )
        self.max_iter.native.setDecimals(0)
        self.seed = SpinBox(
            min=0,
            max=2**31 - 1,
            tooltip="Start number of all chance: the same seed gives the same map.",
        )
        self.device = ComboBox(
            choices=DEVICES,
            tooltip="What computes the game; automatic takes an NVIDIA card if there "
            "is one.",
        )

    def _build(self) -> None:
        main = form()
        add_row(main, "Method", self.method)
        add_row(main, "Repelled by", self.approximation)
        add_row(main, "Repulsion", self._strength_row())
        main.addRow("", self.paper_lambda)
        add_row(main, "Landmarks", self.landmarks)
        add_row(main, "Neighbours", self.neighbors)
        add_row(main, "Perplexity", self.perplexity)
        self._main = main
        self.column.addLayout(main)
        inside = QWidget()
        rows = form()
        inside.setLayout(rows)
        add_row(rows, "Optimiser", self.optimizer)
        add_row(rows, "Learning rate", self.learning_rate)
        add_row(rows, "Landmarks' rate", self.landmark_rate)
        add_row(rows, "Momentum", self.momentum)
        add_row(rows, "Points' steps", self.update)
        add_row(rows, "Landmarks' steps", self.landmark_update)
        add_row(rows, "Schedule", self.schedule)
        add_row(rows, "Iterations", self.max_iter)
        add_row(rows, "Attraction", self.affinity)
        add_row(rows, "Distance", self.metric)
        add_row(rows, "Start", self.init)
        add_row(rows, "Seed", self.seed)
        add_row(rows, "Computed by", self.device)
        self.more = Fold("More settings", inside)
        self.column.addWidget(self.more)
        self.stale = text_label(STALE)
        self.stale.hide()
        self.column.addWidget(self.stale)

    def _strength_row(self) -> QWidget:
        row = QWidget()
        row.setToolTip(self.strength.tooltip)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.strength_slider.native, 1)
        self.strength.native.setFixedWidth(104)  # for five digits
        layout.addWidget(self.strength.native)
        return row

    def _connect(self) -> None:
        self.method.changed.connect(self._on_method)
        self.optimizer.changed.connect(self._on_optimizer)
        self.strength_slider.changed.connect(self._on_slider)
        self.strength.changed.connect(self._on_strength)
        for field, widget in self._plain_fields().items():
            widget.changed.connect(lambda value, f=field: self._set(f, value))
        for field, widget in self._automatic_fields().items():
            widget.changed.connect(
                lambda value, f=field, w=widget: self._set_automatic(f, value, w.min)
            )
        for signal, slot in (
            (self._session.staleness_changed, self._on_staleness),
            (self._session.dataset_changed, self._on_dataset),
            (self._session.restored, self.show_settings),
        ):
            self._connections.connect(signal, slot)

    def close(self) -> None:
        """Undo the connections to the session."""
        self._connections.close()

    def show_settings(self) -> None:
        """Show the settings as they are, when something else has changed them."""
        for field, widget in self._plain_fields().items():
            if field not in ("approximation", "affinity"):
                show_value(widget, getattr(self._settings, field))
        for field, widget in self._automatic_fields().items():
            value = getattr(self._settings, field)
            show_value(widget, widget.min if value is None else value)
        self._show_method()

    def _show_method(self) -> None:
        """Show what goes with the method: its choices and its repulsion."""
        settings = self._settings
        chosen = {
            self.method: settings.method,
            self.approximation: self._approximation,
            self.optimizer: settings.optimizer,
            self.affinity: settings.affinity,
        }
        for widget, value in chosen.items():
            with widget.changed.blocked():
                widget.reset_choices()
            show_value(widget, value)
        self._show_strength()
        self._enable()
        self._show_reach()
        self._tell_lambda()

    def _show_strength(self) -> None:
        low, high = strength_range(self._settings.method)
        with self.strength.changed.blocked(), self.strength_slider.changed.blocked():
            self.strength.native.setDecimals(max(0, -math.floor(math.log10(low))))
            self.strength.range = low, high
            self.strength_slider.range = math.log10(low), math.log10(high)
        show_value(self.strength, self._strength)
        show_value(self.strength_slider, math.log10(self._strength))

    def _enable(self) -> None:
        """Let only what acts be changed."""
        found = member(self._settings.method)
        is_steered = not found.moved_by
        by_game = self._settings.optimizer == "game"
        # What moves by itself is not steered, and a minimiser goes through all pairs.
        for widget in (self.strength, self.strength_slider, self.optimizer):
            widget.enabled = is_steered
        self.approximation.enabled = by_game and is_steered
        idle = {
            *(() if by_game else OF_THE_PLAYERS),
            *(() if is_steered else OF_THE_POINTS),
            *(OF_THE_END if found.library else ()),
        }
        for field in (*OF_THE_PLAYERS, *OF_THE_END):
            self._fields()[field].enabled = field not in idle
        reason = NO_BOUND.get(found.kernel)
        self.approximation.tooltip = (
            f"{REPELLED_BY} Not landmarks: {reason}." if reason else REPELLED_BY
        )

    def _show_reach(self) -> None:
        """Show what says how far the attraction of the edges reaches."""
        is_entropic = self._settings.start().affinity == "entropic"
        show_row(self._main, self.neighbors, not is_entropic)
        show_row(self._main, self.perplexity, is_entropic)

    @property
    def _approximation(self) -> Approximation | None:
        """What pushes the points apart, or what is asked for where that cannot."""
        try:
            return approximation_of(self._settings.game())
        except InputError:
            return self._settings.approximation

    @property
    def _strength(self) -> float:
        return strength_of(self._settings.game())

    def _on_method(self, method: str) -> None:
        self._settings.choose_method(method)
        self._show_method()

    def _on_optimizer(self, optimizer: Any) -> None:
        self._settings.choose_optimizer(optimizer)
        self._show_method()

    def _fields(self) -> dict[str, ValueWidget]:
        return {**self._plain_fields(), **self._automatic_fields()}

    def _plain_fields(self) -> dict[str, ValueWidget]:
        return {
            "approximation": self.approximation,
            "n_landmarks": self.landmarks,
            "n_neighbors": self.neighbors,
            "perplexity": self.perplexity,
            "affinity": self.affinity,
            "metric": self.metric,
            "init": self.init,
            "schedule": self.schedule,
            "update": self.update,
            "landmark_update": self.landmark_update,
            "random_state": self.seed,
            "device": self.device,
        }

    def _automatic_fields(self) -> dict[str, ValueWidget]:
        return {
            "learning_rate": self.learning_rate,
            "landmark_learning_rate": self.landmark_rate,
            "momentum": self.momentum,
            "max_iter": self.max_iter,
        }

    def _set(self, field: str, value: Any) -> None:
        if field == "affinity":
            self._settings.choose_affinity(value)
            self._show_method()
        else:
            setattr(self._settings, field, value)

    def _set_automatic(self, field: str, value: float, lowest: float) -> None:
        chosen = int(value) if field == "max_iter" else value
        # Between the lowest value and 0, where there is room, is nothing to choose.
        self._set(field, None if value <= lowest or value < 0 else chosen)

    def _on_slider(self, exponent: float) -> None:
        self._set_strength(round_to(10**exponent, 2))
        with self.strength.changed.blocked():
            self.strength.value = self._strength

    def _on_strength(self, strength: float) -> None:
        self._set_strength(strength)
        with self.strength_slider.changed.blocked():
            self.strength_slider.value = math.log10(strength)

    def _set_strength(self, strength: float) -> None:
        low, high = strength_range(self._settings.method)
        self._settings.strength = min(max(strength, low), high)
        self._tell_lambda()

    def _on_staleness(self, stale: bool) -> None:
        self.stale.setVisible(stale)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._tell_lambda()

    def _tell_lambda(self) -> None:
        dataset, method = self._session.dataset, self._settings.method
        if member(method).moved_by:
            show_text(self.paper_lambda, "cannot be steered")
            return
        hint = f"default {member(method).strength:g}"
        if has_lambda(method) and dataset is not None:
            value = paper_lambda(self._settings.game(), dataset.X.shape[0])
            hint += f"  ·  λ = {value:.3g}"
        show_text(self.paper_lambda, hint)


def round_to(value: float, digits: int) -> float:
    """Round to so many significant digits: 295.1 to 300 (2)."""
    return round(value, digits - 1 - math.floor(math.log10(value)))
