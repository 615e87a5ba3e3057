"""A window that suggests names for the clusters, and a line with one suggestion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QKeySequence, QShortcut
from qtpy.QtWidgets import (
    QFileDialog,
    QHeaderView,
    QTableWidgetItem,
    QWidget,
)

from napari_embedding_game.data.cell_types import OWN_TABLE
from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.data.palette import cluster_colors, to_hex_colors
from napari_embedding_game.session.clusters.annotation import make_unique_name
from napari_embedding_game.session.name_suggestions import (
    NameSuggestions,
    Suggestion,
    make_names_job,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import (
    Connections,
    throttle_while_running,
)
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, TextLabel
from napari_embedding_game.ui.style.layouts import (
    escape_tooltip,
    horizontal_box,
    push_button,
    vertical_box,
)
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

TITLE = "Suggested names"
WIDTH, HEIGHT = 860, 460
"""First size of the window in pixels."""
FILES = "Tables of cell types (*.csv *.tsv *.gmt *.csv.gz *.tsv.gz);;All files (*)"
OWN = "Human blood, immune and tissue types"
TABLE_TIP = "The table of types and their marker genes."
OPEN_TIP = (
    "A .csv with the columns type and gene, a .gmt file, or the tables of PanglaoDB or "
    "CellTypist."
)
AGAIN_TIP = "Suggest names for the present clusters, by the chosen table."
USE_TIP = "Name the cluster so. Ctrl+Z takes it back."
NONE_FITS = "None fits"
NO_EVIDENCE = "No type of the table has enough genes that are high here."
CHANGED = "The clusters have changed: press Suggest again."
ADVICE = (
    "A suggestion is no proof: the next relative of a type that the table lacks may "
    "fit as well. Look at the genes before you use it."
)
CLUSTER, NAME, EVIDENCE, SECOND, USE = range(5)
COLUMNS = (
    TableColumn("Cluster", "The cluster, with its colour on the map."),
    TableColumn("Suggested", "The type whose genes stand out most."),
    TableColumn(
        "Evidence",
        "Its high genes: how many times higher the mean is than in the half of the "
        "clusters that have least, and the share of the cells above 0.",
    ),
    TableColumn("Second", "The next type that fits."),
    TableColumn("", USE_TIP),
)


class NamesTable(Table):
    """Lists a suggestion for each cluster, with a button that uses the suggestion."""

    use_pressed = Signal(int)
    """Carries the id of the cluster whose suggestion is to be used."""

    def __init__(self) -> None:
        self._buttons: dict[int, QWidget] = {}
        super().__init__(*COLUMNS, wraps_text=True)
        head, modes = self.horizontalHeader(), QHeaderView.ResizeMode
        for section in (CLUSTER, NAME, SECOND, USE):
            head.setSectionResizeMode(section, modes.ResizeToContents)
        head.setSectionResizeMode(EVIDENCE, modes.Stretch)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for section in range(len(COLUMNS)):
            self.horizontalHeaderItem(section).setTextAlignment(left)

    def _make_item(
        self, section: int, key: Any, value: Any, highest: float
    ) -> QTableWidgetItem:
        """Return the item for a value; all texts stand left."""
        item = super()._make_item(section, key, value, highest)
        item.setTextAlignment(
            Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        )
        if section == USE:
            item.setText("")
        return item

    def _refill_rows(self) -> None:
        """Write all rows, and put a button into each row whose name can be used."""
        super()._refill_rows()
        for row, key in enumerate(self.keys):
            if self.frame.loc[key, "use"]:
                self.setCellWidget(row, USE, self._make_use_button(key))
            else:
                self.removeCellWidget(row, USE)

    def _make_use_button(self, cluster: int) -> QWidget:
        """Return a button that emits ``use_pressed`` with the id of a cluster."""
        return push_button(
            "Use", USE_TIP, lambda: self.use_pressed.emit(cluster), "link"
        )


class NamesWindow(QWidget):
    """A window of its own with a suggested name for each cluster.

    Nothing is named before a person presses *Use*.

    Parameters
    ----------
    session : Session
    parent : QWidget
        The window closes with it.
    rename : callable
        Receives the id of a cluster, its new name, and the present clustering.
    """

    suggestions_changed = Signal()
    """Emitted when names have been suggested, or are out of date."""

    def __init__(
        self, session: Session, parent: QWidget, rename: Callable[..., Any]
    ) -> None:
        super().__init__(parent, Qt.WindowType.Dialog)
        self._session, self._rename = session, rename
        self.suggestions: NameSuggestions | None = None
        """What was suggested last; None before, and after other data have come."""
        self.setWindowTitle(TITLE)
        self.table_choice = ChoiceBox(
            TABLE_TIP, lambda _: self.suggest_names(), n_letters=24
        )
        self.table_choice.set_choices([(OWN, OWN_TABLE)])
        self.open_button = push_button("Open a table…", OPEN_TIP, self._ask_for_table)
        self.again_button = push_button("Suggest again", AGAIN_TIP, self.suggest_names)
        self.state, self.table = TextLabel(), NamesTable()
        self.advice = TextLabel(ADVICE)
        head = horizontal_box(self.table_choice, self.open_button, self.again_button)
        parts = head, self.state, self.table, self.advice
        self.setLayout(vertical_box(*parts, margins=(8, 8, 8, 8)))
        self.layout().setStretchFactor(self.table, 1)
        self.resize(WIDTH, HEIGHT)
        self._jobs = PaneJobRunner(
            self,
            "Looking at the marker genes …",
            self._on_names_suggested,
            self.state.show_text,
            self._show_error,
        )
        self.table.use_pressed.connect(self.use_suggestion)
        connections = Connections(self)
        connections.connect(self._on_dataset_changed, session.dataset_changed)
        on_changed = throttle_while_running(self, session, self._on_clusters_changed)
        connections.connect(on_changed, session.clusters.changed)
        QShortcut(QKeySequence("Escape"), self, self.close)

    def open_and_suggest(self) -> None:
        """Show the window, and suggest names unless the shown ones are up to date."""
        self.show()
        self.raise_()
        if not self._are_current():
            self.suggest_names()
        self._list_rows()

    def suggest_names(self) -> None:
        """Suggest names in the background, by the chosen table.

        Where nothing can be suggested, a sentence says why.
        """
        self._jobs.stop()
        self.suggestions = None
        job = call_or_show_error(
            self._show_error, make_names_job, self._session, self.table_choice.value
        )
        if job is not None:
            self._jobs.submit(job)
        self._on_clusters_changed()

    def find_suggestion(self, cluster: Cluster | None) -> Suggestion | None:
        """Return what is suggested for a cluster and can be used; None for nothing.

        A suggestion cannot be used where none fits, where the cluster has that name, or
        where its points have changed since.
        """
        found = None if cluster is None else self._find_current(cluster)
        if found is None or found.best is None or cluster is None:
            return None
        return None if cluster.name == found.best.name else found

    def use_suggestion(self, cluster_id: int) -> None:
        """Name a cluster as suggested; a second one of a type becomes "T cell (2)"."""
        clusters = self._session.clusters
        cluster = clusters.clustering.by_id.get(cluster_id)
        found = self.find_suggestion(cluster)
        if found is not None and found.best is not None:
            taken = {one.name for one in clusters.clusters if one.id != cluster_id}
            name = make_unique_name(found.best.name, taken)
            self._rename(cluster_id, name, clusters.clustering)

    # Inside

    def _find_current(self, cluster: Cluster) -> Suggestion | None:
        """Return a cluster's suggestion; None if its points have changed since then."""
        if self.suggestions is None:
            return None
        return self.suggestions.find_suggestion(
            cluster.id, self._session.clusters.labels
        )

    def _are_current(self) -> bool:
        """Return whether each present cluster has a suggestion."""
        return self.suggestions is not None and all(
            self._find_current(cluster) is not None
            for cluster in self._session.clusters.clusters
        )

    def _ask_for_table(self) -> None:
        """Ask for a file of types, choose it, and suggest names by it."""
        name, _ = QFileDialog.getOpenFileName(self, "Open cell types", "", FILES)
        if name:
            path = Path(name)
            listed = dict.fromkeys([*self.table_choice.choices, path])
            texts = {one: OWN if one == OWN_TABLE else one.name for one in listed}
            self.table_choice.set_choices(((texts[x], x) for x in listed), path)
            self.suggest_names()

    def _on_names_suggested(self, suggestions: NameSuggestions) -> None:
        """Show suggestions, and a sentence on their table."""
        self.suggestions = suggestions
        self.state.show_text(suggestions.note)
        self._on_clusters_changed()

    def _show_error(self, text: str) -> None:
        """Show why nothing is suggested."""
        self.state.show_text(text, "warning")

    def _on_dataset_changed(self, *event: object) -> None:
        """Stop suggesting, and forget what was suggested for the former data."""
        self._jobs.stop()
        self.suggestions = None
        self.state.show_text()
        self._on_clusters_changed()

    def _on_clusters_changed(self) -> None:
        """List the present clusters, if this is open, and tell the line."""
        if self.isVisible():
            self._list_rows()
        self.suggestions_changed.emit()

    def _list_rows(self) -> None:
        """List a row for each cluster; ask to suggest again where points changed."""
        session = self._session
        clusters = session.clusters.clusters if session.snapshot is not None else ()
        rows, has_changed = [], False
        for cluster in clusters:
            found = self._find_current(cluster)
            has_changed |= found is None
            best = None if found is None else found.best
            fits = best is not None
            rows.append(
                {
                    "cluster": cluster.name,
                    "name": best.name if fits else NONE_FITS if found else "",
                    "evidence": best.evidence if fits else NO_EVIDENCE if found else "",
                    "second": found.second_text if found else "",
                    "use": self.find_suggestion(cluster) is not None,
                }
            )
        ids = pd.Index([cluster.id for cluster in clusters], dtype=object)
        colors = to_hex_colors(cluster_colors(clusters))
        self.table.show_frame(
            pd.DataFrame(rows, ids, ["cluster", "name", "evidence", "second", "use"]),
            colors=dict(zip(ids, colors, strict=True)),
            tips=self._make_tips(clusters),
        )
        if has_changed and self.suggestions is not None:
            self.state.show_text(CHANGED, "warning")
        self.again_button.setVisible(has_changed and not self._jobs.is_busy)

    def _make_tips(self, clusters: tuple[Cluster, ...]) -> dict[int, str]:
        """Return a tooltip for each row: the source, and the second type's evidence."""
        tips = {}
        for cluster in clusters:
            found, lines = self._find_current(cluster), []
            if found is not None and found.best is not None and found.best.source:
                lines.append(f"Genes of {found.best.name}: {found.best.source}")
            if found is not None and found.second is not None:
                lines.append(f"{found.second.name}: {found.second.evidence}")
            tips[cluster.id] = "\n".join(lines)
        return tips


class SuggestedName(QWidget):
    """A line with the suggestion for the selected cluster, and a button to use it."""

    def __init__(self, session: Session, window: NamesWindow) -> None:
        super().__init__()
        self._session, self._window = session, window
        self.text = TextLabel()
        self.use_button = push_button("Use", USE_TIP, self._use_suggestion, "link")
        self.setLayout(horizontal_box(self.text, self.use_button))
        window.suggestions_changed.connect(self.update_to_selection)
        connections = Connections(self)
        connections.connect(self.update_to_selection, session.selection.changed)
        self.update_to_selection()

    def update_to_selection(self, *event: object) -> None:
        """Show the suggestion for the single selected cluster; hide without one."""
        cluster = self._find_selected_cluster()
        found = self._window.find_suggestion(cluster)
        best = None if found is None else found.best
        self.setVisible(best is not None)
        if found is not None and best is not None:
            genes = f"{best.n_high} of {best.n_genes} genes high"
            self.text.show_text(f"Suggested: {best.name} ({genes})")
            lines = [best.evidence]
            if found.second is not None:
                lines.append(f"Second: {found.second_text}: {found.second.evidence}")
            self.text.setToolTip(escape_tooltip("\n".join(lines)))

    def _find_selected_cluster(self) -> Cluster | None:
        """Return the selected cluster; None where none, several or points are."""
        selection = self._session.selection
        chosen = self._session.clusters.find_clusters(selection.clusters)
        is_one = len(chosen) == 1 and not selection.is_of_points
        return chosen[0] if is_one else None

    def _use_suggestion(self) -> None:
        """Name the selected cluster as suggested."""
        cluster = self._find_selected_cluster()
        if cluster is not None:
            self._window.use_suggestion(cluster.id)
