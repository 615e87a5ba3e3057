"""A pane that compares two conditions inside the selected points."""

from __future__ import annotations

from qtpy.QtWidgets import QLabel

from napari_embedding_game.session.groups import (
    OTHERS,
    REST,
    Against,
    count_selected_by_level,
    list_comparable_columns,
)
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.style.form_widgets import ChoiceBox
from napari_embedding_game.ui.style.layouts import horizontal_box
from napari_embedding_game.ui.workspace import Workspace

HINT = (
    "No column has two groups of three or more selected points: select more points, "
    "such as a cluster with cells of both conditions."
)
COLUMN_TIP = "The column of the conditions, such as treated and control."
LEVELS_TIP = "Positive changes are higher in the first group."


class ConditionsPane(MarkersPane):
    """Compares two levels of a column inside the selection, and lists what differs."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.first, self.second = (
            ChoiceBox(LEVELS_TIP, self.update_view, n_letters=6) for _ in range(2)
        )
        self._offered_column = ""
        """The column whose levels are offered."""
        self.against.setToolTip(COLUMN_TIP)
        self.against.setAccessibleName("Column of the conditions")
        self.first.setAccessibleName("First condition")
        self.second.setAccessibleName("Second condition")
        pair = self.first, QLabel("vs"), self.second
        levels = horizontal_box(*pair, stretched=(self.first, self.second))
        self.layout().insertLayout(1, levels)

    def _offer_groups(self) -> None:
        """Offer columns with two or more selected levels, and the levels of one."""
        columns = list_comparable_columns(self._session)
        self.against.set_choices((name, name) for name in columns)
        column = self.against.value or ""
        levels = count_selected_by_level(self._session, column)
        texts = {f"{name} ({n:,})": name for name, n in levels.items()}
        # A level of another column may have the same name.
        is_new, self._offered_column = column != self._offered_column, column
        largest = sorted(levels, key=lambda level: -levels[level])
        self.first.set_choices(texts.items(), *largest[:is_new])
        texts.pop(self.first.currentText(), None)
        choices = [(OTHERS, None)] if len(texts) > 1 else []
        choices += texts.items()
        values = [value for _, value in choices]
        self.second.set_choices(choices, *values[:is_new])

    @property
    def _chosen_comparison(self) -> Against:
        """The chosen levels of the chosen column."""
        if self.against.value is None:
            return REST
        levels = self.first.value, self.second.value
        return Against(column=self.against.value, levels=levels)

    def _find_hint(self) -> str:
        """Return a sentence on what to select if nothing can be compared, else ""."""
        return HINT if self.against.value is None else ""
