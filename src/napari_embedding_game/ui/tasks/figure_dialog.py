"""A dialog that asks which panels a figure is to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.export.page import WIDTHS, PageSettings
from napari_embedding_game.data.export.plots import ExpressionPlot, VolcanoPlot
from napari_embedding_game.data.gene_names import find_names, split_names
from napari_embedding_game.session.splitting import split_columns
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.figure_panels import FigureChoice

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

TITLE = "Figure of several panels"
NO_GROUPS = "None"
NO_DOTS = "Open the dot plot under Plots first: what it shows becomes a panel."
NO_VOLCANO = (
    "Select points and open Markers under Selection first: its comparison "
    "becomes a panel."
)
NOTHING = "Tick at least one panel."
MOST_GENES = 12


class FigureDialog(QDialog):
    """Asks for panels, size and caption; ``choice`` tells them once it is accepted.

    Parameters
    ----------
    workspace : Workspace
        With a map on show.
    parent : QWidget, optional
    """

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.setWindowTitle(TITLE)
        self.choice = FigureChoice()
        self.clusters = QCheckBox("Clusters with their names")
        self.colors = QCheckBox()
        self.split_by = QComboBox()
        self.genes = QLineEdit()
        self.volcano = QCheckBox("Volcano plot on show")
        self.expression = QCheckBox("Dot plot on show")
        self.width_of_page = QComboBox()
        self.has_caption = QCheckBox("Caption")
        self.caption = QPlainTextEdit()
        self.trouble = text_label("", "warning")
        ways = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(ways.Save | ways.Cancel)
        self._offer()
        self._build()
        self.buttons.accepted.connect(self._accept)
        self.buttons.rejected.connect(self.reject)

    def _offer(self) -> None:
        """Show what there is to be drawn."""
        session, plots = self._workspace.session, self._workspace.plots
        dataset = session.dataset
        assert dataset is not None
        self.clusters.setChecked(True)
        by = session.look.color_by
        self.colors.setText(f"The map in the colours on show: {by}")
        self.colors.setChecked(by != CLUSTER)
        self.split_by.addItem(NO_GROUPS, "")
        for column in split_columns(dataset):
            self.split_by.addItem(column, column)
        place = self.split_by.findData(session.look.split_by)
        self.split_by.setCurrentIndex(max(place, 0))
        self.genes.setPlaceholderText(", ".join(dataset.profile_names[:3]))
        for box, kind, why in (
            (self.volcano, VolcanoPlot, NO_VOLCANO),
            (self.expression, ExpressionPlot, NO_DOTS),
        ):
            is_there = plots.on_show(kind) is not None
            box.setEnabled(is_there)
            box.setChecked(is_there)
            box.setToolTip("As it is in its tab." if is_there else why)
        for words, millimetres in WIDTHS.items():
            self.width_of_page.addItem(words, millimetres)
        self.width_of_page.setCurrentIndex(len(WIDTHS) - 1)
        self.has_caption.setChecked(True)
        self.caption.setPlaceholderText("Empty: what each panel shows, and of how many")
        self.caption.setFixedHeight(54)
        self.caption.setEnabled(True)
        self.has_caption.toggled.connect(self.caption.setEnabled)

    def _build(self) -> None:
        dataset = self._workspace.session.dataset
        assert dataset is not None
        word = dataset.word
        for widget, tip in (
            (self.clusters, "The map in the colours of the clusters, named on it."),
            (self.colors, "The map as it is coloured now, with its legend."),
            (
                self.split_by,
                "A map for each group of this column, in the colours on show.",
            ),
            (
                self.genes,
                f"A map for each {word} typed here, separated by commas; up to "
                f"{MOST_GENES}.",
            ),
            (self.width_of_page, "How wide journals print a figure."),
            (self.has_caption, "Writes a text under the panels."),
            (self.caption, "The text under the panels."),
        ):
            widget.setToolTip(tip)
        rows = QFormLayout()
        rows.addRow(_heading("Panels"))
        rows.addRow(self.clusters)
        rows.addRow(self.colors)
        rows.addRow("Groups of", self.split_by)
        rows.addRow(f"{word.capitalize()}s", self.genes)
        rows.addRow(self.volcano)
        rows.addRow(self.expression)
        rows.addRow(_heading("Page"))
        rows.addRow("Width", self.width_of_page)
        rows.addRow(self.has_caption, self.caption)
        layout = QVBoxLayout(self)
        layout.addLayout(rows)
        layout.addWidget(self.trouble)
        layout.addWidget(self.buttons)
        show_text(self.trouble, "")
        self.setMinimumWidth(440)

    def _accept(self) -> None:
        """Take up what was chosen, or say what cannot be drawn."""
        dataset = self._workspace.session.dataset
        assert dataset is not None
        wanted = split_names(self.genes.text())
        found = find_names(wanted, dataset.profile_names)
        if found.missing:
            word = dataset.word
            names = ", ".join(found.missing[:5])
            show_text(self.trouble, f"These data have no {word} {names}.")
            return
        if len(found.places) > MOST_GENES:
            show_text(self.trouble, f"At most {MOST_GENES} have room on a page.")
            return
        caption = self.caption.toPlainText().strip()
        is_told = self.has_caption.isChecked()
        self.choice = FigureChoice(
            has_clusters=self.clusters.isChecked(),
            has_colors=self.colors.isChecked(),
            genes=tuple(dataset.profile_names[place] for place in found.places),
            split_by=self.split_by.currentData(),
            has_volcano=self.volcano.isChecked(),
            has_expression=self.expression.isChecked(),
            page=PageSettings(
                width=self.width_of_page.currentData(),
                caption=caption if is_told else "",
            ),
            tells_panels=is_told and not caption,
        )
        if not _has_panels(self.choice):
            show_text(self.trouble, NOTHING)
            return
        self.accept()


def _has_panels(choice: FigureChoice) -> bool:
    return any(
        (
            choice.has_clusters,
            choice.has_colors,
            choice.genes,
            choice.split_by,
            choice.has_volcano,
            choice.has_expression,
        )
    )


def _heading(text: str) -> QLabel:
    return text_label(text, "heading", wraps=False)
