"""Display controls: the colour variable, the split into panels and the legend."""

from __future__ import annotations

from functools import partial

from qtpy.QtCore import QSignalBlocker

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.snapshot import (
    MISPLACED_STRETCH,
    OUTLIER_ISOLATION,
)
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.controls.gene_sets import GeneSetsPanel
from napari_embedding_game.ui.style.coloring import (
    LONG_NAMES,
    MAX_COLORS,
    MOVEMENT,
    PRESSURE,
    list_color_choices,
)
from napari_embedding_game.ui.style.form_widgets import (
    ChoiceBox,
    check_box,
    form_layout,
)
from napari_embedding_game.ui.style.layouts import vertical_box, widget_with_layout
from napari_embedding_game.ui.style.legend import LegendView
from napari_embedding_game.ui.workspace import Workspace

COLOR_TIP = (
    "Grey is missing. For a gene, press / and type its name. Columns of over "
    f"{MAX_COLORS:,} names are not listed.\n\n"
    f"Misplaced (stretch, usually 1): from {MISPLACED_STRETCH:.0f} on far from similar "
    "points: doubt the position. True neighbours, under Selection, shows where they "
    f"are.\n\nOutliers (isolation, usually 1): above {OUTLIER_ISOLATION:g} unlike all "
    "others: debris, a rare cell, an error.\n\nCrowded: how far others would push it "
    "out."
)
SPLIT_TIP = "The groups of a column, such as samples, side by side."
NO_SPLIT = "Nothing: one map"
CHECKS = {
    "show_landmarks": (
        "Landmarks at rest",
        "Pale rings that push the points apart. With their layer selected, drag them "
        "in a running game.",
    ),
    "show_names": ("Show names", ""),
    "size_by_pressure": ("Size by pressure", "Larger points are more crowded."),
    "color_objects": (
        "Colour objects by the map",
        "Objects in the image have the colours of their points.",
    ),
}
"""Text and tooltip of each check box, by the field of ``session.look`` that it sets."""


class DisplayControls(Listener):
    """Edits ``session.look``; each change applies to the map at once."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(session := workspace.session)
        self._linked = workspace.linked_layers
        self._look = look = session.look
        self.color_by = ChoiceBox(COLOR_TIP, partial(setattr, look, "color_by"))
        self.split_by = ChoiceBox(SPLIT_TIP, partial(setattr, look, "split_by"))
        self.landmarks, self.names, self.pressure, self.objects = (
            check_box(*texts, partial(setattr, look, field))
            for field, texts in CHECKS.items()
        )
        ticks = self.landmarks, self.names, self.pressure, self.objects
        self._ticks = dict(zip(CHECKS, ticks, strict=True))
        self.legend = LegendView()
        self.legend.limits_changed.connect(partial(setattr, look, "limits"))
        self.gene_sets = GeneSetsPanel(session)
        self._rows = form_layout(("Split by", self.split_by))
        parts = form_layout(("Colour by", self.color_by)), self.legend, self.objects
        self.setLayout(vertical_box(*parts, spacing=5, margins=(0, 0, 0, 6)))
        map_ticks = self.landmarks, self.names, self.pressure
        self.more = widget_with_layout(
            vertical_box(self._rows, *map_ticks, self.gene_sets)
        )
        """Controls that are used rarely, which the dock places in a fold."""
        offers = session.dataset_changed, session.restored, session.columns_changed
        offers += (
            self._linked.changed,
            session.view.comparison_changed,
            session.state_changed,
        )
        self.connect_while_open(self.update_view, *offers)
        self.connect_while_open(self._show_look, look.events)
        self.update_view()

    def update_view(self) -> None:
        """Offer the choices of the present data, and show the look.

        A split column that no longer exists is removed from the look.
        """
        dataset, look = self._session.dataset, self._look
        splits = self._session.view.split_columns
        if look.split_by not in splits:  # the column no longer exists
            look.split_by = ""
        self.split_by.set_choices([(NO_SPLIT, ""), *((name, name) for name in splits)])
        self._rows.setRowVisible(self.split_by, bool(splits))
        self.objects.setVisible(self._linked.current is not None)
        has_genes = dataset is not None and dataset.has_expression
        self.gene_sets.setVisible(has_genes)
        self.pressure.setVisible(self._has_pressure)
        self._offer_colors()
        self._show_look()

    # Inside

    def _show_look(self) -> None:
        """Show the values of the look in the controls, without a signal.

        A colour variable that is not the shown one is offered and chosen.
        """
        look = self._look
        if look.color_by != self.color_by.value:
            self._offer_colors()
        for field, tick in self._ticks.items():
            with QSignalBlocker(tick):
                tick.setChecked(getattr(look, field))
        if look.split_by in self.split_by.choices:
            with QSignalBlocker(self.split_by):
                self.split_by.value = look.split_by

    def _offer_colors(self) -> None:
        """Offer the colour variables that data and method have; choose the look's one.

        The chosen variable is offered in any case.
        """
        names = list_color_choices(self._session.dataset)
        if not self._has_pressure:
            names.remove(PRESSURE)
        if self._session.view.comparison is None:
            names.remove(MOVEMENT)
        chosen = self._look.color_by
        names += [chosen] * (chosen not in names)
        self.color_by.set_choices([(LONG_NAMES.get(n, n), n) for n in names], chosen)

    @property
    def _has_pressure(self) -> bool:
        """Whether the method of the map, or of the next run, defines pressure."""
        return get_method(self._session.map_settings.method).has_pressure
