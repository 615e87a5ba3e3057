"""A panel to choose the embedded columns and the roles of the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import QListWidget, QListWidgetItem
from superqt import QSearchableListWidget

from napari_embedding_game.data.column_names import Role
from napari_embedding_game.data.expression import GeneKind
from napari_embedding_game.data.roles import ROLES
from napari_embedding_game.ui.style.form_widgets import (
    ChoiceBox,
    FoldingSection,
    form_layout,
)
from napari_embedding_game.ui.style.layouts import equal_width_box, push_button

MAX_COLUMNS = 2_000
"""Columns up to which each is listed; genes are usually more."""
CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked
NAME, ROLE = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
GENE_KINDS = {
    "Raw counts": "counts",
    "Logarithms of counts": "logarithms",
    "Other values": "values",
}
GENES_TIP = (
    "What the numbers of the genes are. Raw counts are normalised and taken as "
    "logarithms where cells are coloured or compared by genes."
)
ROLE_TIP = (
    "What the selected columns are taken for. Colour by, Split by, Mix batches and the "
    "comparison of samples follow from it."
)
SEVERAL = "several"


class ColumnsPanel(FoldingSection):
    """A folded list of columns, with tick boxes for the columns that can be embedded.

    Parameters
    ----------
    reload : callable
        Receives as keywords the options to change before the data are read again:
        ``columns``, names of the columns to embed, ``roles``, by column, and
        ``gene_kind``.
    """

    def __init__(self, reload: Callable[..., Any]) -> None:
        self._reload = reload
        self._embedded_columns: tuple[str, ...] = ()
        self._roles: dict[str, Role] = {}
        """The roles of the columns as they were read."""
        self._gene_kind: GeneKind | None = None
        """What the values of the genes were taken for; None without genes."""
        search = QSearchableListWidget()
        search.setFixedHeight(170)
        search.layout().setContentsMargins(0, 0, 0, 0)
        self.filter, self.list = search.filter_widget, search.list_widget
        self.filter.setPlaceholderText("Find a column")
        self.filter.setAccessibleName("Find")
        self.list.setAccessibleName("Columns")
        self.list.setToolTip(
            "Columns with a tick make the map; each counts the same. Select columns to "
            "say what they are taken for."
        )
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.role = ChoiceBox(ROLE_TIP, self._set_selected_roles)
        self.all = push_button("All", "", lambda: self._tick_visible_items(CHECKED))
        self.none = push_button("None", "", lambda: self._tick_visible_items(UNCHECKED))
        self.apply_button = push_button(
            "Read again",
            "Read the data again in this way.",
            self._on_read_again_clicked,
        )
        self.gene_kind = ChoiceBox(GENES_TIP)
        self.gene_kind.set_choices(GENE_KINDS.items())
        self._form = form_layout(
            ("Take for", self.role), ("Genes hold", self.gene_kind)
        )
        buttons = equal_width_box(self.all, self.none, self.apply_button)
        super().__init__("Columns", search, self._form, buttons)
        self.list.itemChanged.connect(self._update_choices)
        self.list.itemSelectionChanged.connect(self._update_choices)
        self.set_columns((), ())

    def set_columns(
        self,
        columns: Sequence[str],
        embedded: Sequence[str],
        roles: Mapping[str, Role] = {},
        gene_kind: GeneKind | None = None,
    ) -> None:
        """List other columns and show their roles; tick the embedded columns.

        Columns have tick boxes only if there are 3 to ``MAX_COLUMNS`` that can be
        embedded. More than ``MAX_COLUMNS`` other columns are not listed.  The panel is
        hidden if it has neither columns nor genes.

        Parameters
        ----------
        columns : sequence of str
            Columns that can be embedded.
        embedded : sequence of str
            Columns that are embedded now.
        roles : mapping of str to Role
            The present roles of all columns whose role can be changed.
        gene_kind : GeneKind, optional
            What the values of the genes are taken for; None without genes.
        """
        self._gene_kind = gene_kind
        self.gene_kind.set_choices(GENE_KINDS.items(), gene_kind)
        self._form.setRowVisible(self.gene_kind, gene_kind is not None)
        can_embed, chosen = set(columns), set(embedded)
        others = {x: role for x, role in roles.items() if x not in can_embed}
        is_choice = 2 < len(columns) <= MAX_COLUMNS
        columns = columns if is_choice else ()
        self._roles = dict(roles) if is_choice else others
        self._embedded_columns = tuple(name for name in columns if name in chosen)
        names = [*others, *columns] if len(others) <= MAX_COLUMNS else columns
        self.setVisible(bool(names) or gene_kind is not None)
        self.filter.clear()
        with QSignalBlocker(self.list):
            self.list.clear()
            for name in names:
                item = QListWidgetItem(self.list)
                item.setData(NAME, name)
                self._set_item_role(item, self._roles.get(name))
                if name not in others:
                    item.setCheckState(CHECKED if name in chosen else UNCHECKED)
        for button in (self.all, self.none):
            button.setVisible(bool(columns))
        self._update_choices()

    def list_ticked_columns(self) -> tuple[str, ...]:
        """Return the names of the ticked columns, from top to bottom."""
        ticked = (item for item in self._list_items() if _is_ticked(item))
        return tuple(item.data(NAME) for item in ticked)

    def collect_chosen_roles(self) -> dict[str, Role]:
        """Return the chosen role of each listed column that has a role."""
        found = {item.data(NAME): item.data(ROLE) for item in self._list_items()}
        return {name: role for name, role in found.items() if role is not None}

    # Inside

    def _on_read_again_clicked(self) -> None:
        """Have the data read again with changed columns, roles and gene kind.

        What has not changed is not passed on.
        """
        changes, roles = dict[str, Any](), self.collect_chosen_roles()
        if self.list_ticked_columns() != self._embedded_columns:
            changes["columns"] = self.list_ticked_columns()
        changed = {x: role for x, role in roles.items() if role != self._roles[x]}
        if changed:
            changes["roles"] = changed
        if self._gene_kind is not None and self.gene_kind.value != self._gene_kind:
            changes["gene_kind"] = self.gene_kind.value
        self._reload(**changes)

    def _list_items(self) -> Iterator[QListWidgetItem]:
        """Return an iterator over all listed columns, also those filtered out."""
        return map(self.list.item, range(self.list.count()))

    def _set_item_role(self, item: QListWidgetItem, role: Role | None) -> None:
        """Store the role of a listed column and show it beside the name."""
        name = item.data(NAME)
        item.setData(ROLE, role)
        item.setText(name if role is None else f"{name}  ·  {role}")

    def _set_selected_roles(self, role: Role | None) -> None:
        """Set the role of the selected columns that have one, and untick them.

        For the role "numbers" they keep their ticks.  Columns without a role are left
        alone, and so are those that have this role.  None for ``role`` changes nothing.
        """
        with QSignalBlocker(self.list):
            for item in self.list.selectedItems() if role else ():
                if item.data(ROLE) not in (None, role):
                    self._set_item_role(item, role)
                    if role != "numbers" and _is_ticked(item):
                        item.setCheckState(UNCHECKED)
        self._update_choices()

    def _tick_visible_items(self, state: Qt.CheckState) -> None:
        """Set the tick of all columns with a tick box that the filter shows."""
        with QSignalBlocker(self.list):  # else each tick would update all choices
            for item in self._list_items():
                if _can_be_ticked(item) and not item.isHidden():
                    item.setCheckState(state)
        self._update_choices()

    def _update_choices(self) -> None:
        """Show the selected columns' role, the number of ticks and the button.

        Several different roles are shown as "several".  The button to read again is
        hidden where no column is ticked, though columns have tick boxes.
        """
        selected = {item.data(ROLE) for item in self.list.selectedItems()} - {None}
        self._form.setRowVisible(self.role, bool(selected))
        common_role = next(iter(selected)) if len(selected) == 1 else None
        several = [(SEVERAL, None)] if len(selected) > 1 else []
        self.role.set_choices(
            [*several, *((role, role) for role in ROLES)], common_role
        )
        n_chosen = len(self.list_ticked_columns())
        n_all = sum(map(_can_be_ticked, self._list_items()))
        count = f"{n_chosen} of {n_all}" if n_all else self.list.count()
        self.set_title(f"Columns  ·  {count}")
        self.apply_button.setVisible(n_chosen > 0 or not n_all)


def _can_be_ticked(item: QListWidgetItem) -> bool:
    """Return whether a listed column has a tick box: it can be embedded."""
    return item.data(Qt.ItemDataRole.CheckStateRole) is not None


def _is_ticked(item: QListWidgetItem) -> bool:
    return item.checkState() == CHECKED
