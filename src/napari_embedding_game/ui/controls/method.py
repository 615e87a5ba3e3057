"""Method controls: the method, the repulsion, the landmarks and all other settings."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from magicgui.widgets import FloatSlider, FloatSpinBox
from magicgui.widgets.bases import ValueWidget

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import (
    NO_BOUND,
    fill_affinity,
    resolve_approximation,
    resolve_repulsion,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.settings import find_repulsion_range
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.controls.settings_form import (
    AUTOMATICALLY,
    FIELDS,
    NAMES,
    make_setting_controls,
    show_value,
)
from napari_embedding_game.ui.style.form_widgets import (
    FoldingSection,
    TextLabel,
    form_layout,
    set_role,
)
from napari_embedding_game.ui.style.layouts import (
    horizontal_box,
    vertical_box,
    widget_with_layout,
)

STEP_FIELDS = ("learning_rate", "landmark_learning_rate", "momentum", "schedule")
"""Settings of the steps of the players."""
MAIN_FIELDS = (
    "method",
    "large_picture",
    "n_components",
    "n_landmarks",
    "n_neighbors",
    "perplexity",
)
"""Settings that are always shown; further settings are in a fold."""
STALE = "The map was made with other settings: {}."
AGAIN, GOES_ON = "Run again makes one with these", "Continue plays on from it"


class MethodControls(Listener):
    """Edits ``session.settings``, of which some act on the running game at once."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._settings = session.settings
        self.controls = make_setting_controls(self._settings)
        """A control for each setting, by the name of the setting."""
        for widget in self.controls:
            widget.changed.connect(
                lambda value, of=widget: self._apply_setting(of, value)
            )
        tip = FIELDS["repulsion"].metadata["words"]
        self.repulsion_slider = FloatSlider(step=0.01, readout=False, tooltip=tip)
        self.repulsion_slider.changed.connect(
            lambda exponent: self._set_repulsion(float(f"{10**exponent:.2g}"))
        )
        self.repulsion = FloatSpinBox(step=10, tooltip=tip)
        self.repulsion.changed.connect(self._set_repulsion)
        set_role(self.repulsion.native, "number")
        self.stale = TextLabel()
        rows = {control.name: (control.label, control) for control in self.controls}
        rows["method"] = (
            "",
            self.controls["method"],
        )  # the title of the fold names the method
        share = "Second space", rows.pop("second_share")[1]
        main = form_layout(*(rows.pop(name) for name in NAMES if name in MAIN_FIELDS))
        fine = form_layout(*rows.values())
        self._rows = {name: main if name in MAIN_FIELDS else fine for name in NAMES}
        share[1].native.setAccessibleName(share[0])
        self.controls["method"].native.setAccessibleName(self.controls["method"].label)
        self.more = FoldingSection("More settings", fine)
        self.setLayout(vertical_box(main, self.more, spacing=5))
        strength = widget_with_layout(
            horizontal_box(self.repulsion_slider, self.repulsion)
        )
        self._repulsion_form = form_layout(("Repulsion", strength, tip), share)
        self._rows["second_share"] = self._repulsion_form
        self.steering = widget_with_layout(
            vertical_box(self._repulsion_form, self.stale)
        )
        """The repulsion, the share of a second space if there is one, and a note where
        the map was made with other settings."""
        connect = self._connections.connect
        connect(self._on_setting_changed, self._settings.changed)
        self.connect_while_open(self.update_view, session.dataset_changed)
        connect(self._show_staleness, session.staleness_changed, session.state_changed)
        connect(self.update_view, session.restored, session.mark_shown)
        self.update_view()

    def update_view(self, *event: object) -> None:
        """Show the present settings; hide settings that the method does not use.

        Settings that are chosen automatically are shown at the minimum of their
        control.
        """
        session, settings, controls = self._session, self._settings, self.controls
        for control in controls:
            value = self._find_shown_value(control.name)
            show_value(control, control.min if value is None else value)
        spec = get_method(settings.method)
        is_entropic = fill_affinity(settings.value).affinity == "entropic"
        dataset = session.dataset
        has_rows = dataset is None or not dataset.is_distances
        for name, is_used in (
            *(
                (name, not spec.make_layouts)
                for name in ("approximation", *STEP_FIELDS)
            ),
            ("large_picture", not spec.make_layouts and has_rows),
            ("second_share", bool(settings.second_space)),
            ("metric", has_rows),
            ("n_neighbors", not is_entropic),
            ("perplexity", is_entropic),
        ):
            self._rows[name].setRowVisible(controls[name].native, is_used)
        self._repulsion_form.setRowVisible(0, spec.takes_repulsion)
        words, reason = controls["approximation"], NO_BOUND.get(spec.kernel)
        words.tooltip = FIELDS["approximation"].metadata["words"]
        words.tooltip += f" Not landmarks: {reason}." if reason else ""
        self._show_repulsion()
        self._show_staleness()

    # Inside

    def _apply_setting(self, widget: ValueWidget, value: Any) -> None:
        """Set the setting of a control; its lowest value may mean automatic.

        A change of dimensions is requested as a run, and may be refused.  A change of
        method also changes other settings, see ``choose_method``.
        """
        settings, name = self._settings, widget.name
        if name == "n_components":
            change = partial(self._session.change_dimensions, value)
            self._session.play_wanted.emit(change)
            self.update_view()  # the change may have been refused
        elif name == "method":
            settings.choose_method(value)
        else:
            # No value below 0 can be chosen, so that these also stand for automatic.
            is_automatic = name in AUTOMATICALLY and (value <= widget.min or value < 0)
            chosen = int(value) if name == "max_iter" else value
            setattr(settings, name, None if is_automatic else chosen)

    def _set_repulsion(self, repulsion: float) -> None:
        """Set the repulsion, clamped to the range of the method."""
        low, high = find_repulsion_range(self._settings.method)
        self._settings.repulsion = min(max(repulsion, low), high)

    # Views

    def _on_setting_changed(self, name: str) -> None:
        """Show a setting that was changed here or elsewhere.

        Repulsion updates only its own controls; other settings update the whole view.
        """
        if name == "repulsion":
            self._show_repulsion()
            self._show_staleness()
        else:
            self.update_view()

    def _find_shown_value(self, name: str) -> Any:
        """Return the value of a setting to show; None for automatic.

        For "approximation" that is what the next run would choose, or the setting
        itself where the settings cannot be resolved.
        """
        if name != "approximation":
            return getattr(self._settings, name)
        try:
            return resolve_approximation(self._session.resolve_settings())
        except InputError:  # a run reports the error
            return self._settings.approximation

    def _show_repulsion(self) -> None:
        """Show the repulsion and its range on slider and box, without a signal.

        The range is that of the method; the slider shows the decimal logarithm.
        """
        low, high = find_repulsion_range(self._settings.method)
        repulsion = resolve_repulsion(self._settings.value)
        with self.repulsion.changed.blocked(), self.repulsion_slider.changed.blocked():
            self.repulsion.native.setDecimals(max(0, -math.floor(math.log10(low))))
            self.repulsion.range = low, high
            self.repulsion_slider.range = math.log10(low), math.log10(high)
        show_value(self.repulsion, repulsion)
        show_value(self.repulsion_slider, math.log10(repulsion))

    def _show_staleness(self, *event: object) -> None:
        """Show whether the map was made with other settings, and how to proceed.

        While a run is going on, the note says that it has to be stopped first.
        """
        session = self._session
        is_over = session.state not in ("preparing", "running", "paused")
        choices = [AGAIN] * is_over + [GOES_ON] * session.can_continue
        text = STALE.format(", ".join(choices) or f"once it is stopped, {AGAIN}")
        self.stale.show_text(text if session.stale else "")
