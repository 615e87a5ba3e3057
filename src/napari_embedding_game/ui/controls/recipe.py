"""Edit and apply the scanpy recipe for raw counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from magicgui.widgets import ComboBox, FloatSpinBox, SpinBox
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from napari_embedding_game.data.quality_control import CellQuality
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.ui.controls.cell_quality import CellQualityPanel
from napari_embedding_game.ui.style.form_widgets import (
    Fold,
    add_row,
    form,
    show_row,
    show_text,
    text_label,
)

OFFER = (
    "These are raw counts: how deeply a cell was sequenced would shape the map more "
    "than what the cell is. The usual preparation takes care of it."
)
NO_BATCHES = "none (Harmony off)"
BATCHES_TIP = (
    "Harmony moves cells of different samples, donors or days onto each other, by the "
    "column that names them; the genes stay as they are."
)
PREPARE_TIP = (
    "Filter, normalise, take logarithms, choose variable genes, scale, and compute "
    "principal components."
)
PARAMETERS = {
    "min_genes": (
        "Genes per cell, at least",
        "Cells with fewer genes are left out as empty or broken.",
    ),
    "min_cells": (
        "Cells per gene, at least",
        "Genes found in fewer cells are left out as noise.",
    ),
    "target_sum": (
        "Counts per cell",
        "Every cell is brought to this number of counts, so that cells compare.",
    ),
    "n_top_genes": (
        "Most variable genes",
        "Only so many genes, those that differ most between cells, make the map.",
    ),
    "max_value": (
        "Cap of a gene",
        "Scaled expression beyond this, in standard deviations, is cut off.",
    ),
    "n_comps": (
        "Principal components",
        "How many numbers per cell are embedded in the end.",
    ),
}
"""Title and meaning of fields of :class:`Recipe`."""


class RecipePanel(QWidget):
    """Offers the recipe for raw counts; ``wanted`` brings it, or None for none."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.is_offered = False
        """Whether there are counts that are not prepared yet."""
        self.offer = text_label(OFFER, "warning")
        self.apply = QPushButton("Prepare counts")
        self.apply.setToolTip(PREPARE_TIP)
        self.undo = QPushButton("Back to raw counts")
        self.undo.setToolTip("Embed the counts as they are.")
        self.quality = CellQualityPanel()
        self.batches = ComboBox(choices=[NO_BATCHES], tooltip=BATCHES_TIP)
        inside, rows = QWidget(), form()
        inside.setLayout(rows)
        defaults = {f.name: f.default for f in fields(Recipe)}
        self.numbers = {name: _number(name, defaults[name]) for name in PARAMETERS}
        for name, box in self.numbers.items():
            add_row(rows, PARAMETERS[name][0], box)
        self.fold = Fold("Preparation", inside)
        self._batch_row = form()
        add_row(self._batch_row, "Mix batches of", self.batches)
        buttons = QHBoxLayout()
        buttons.addWidget(self.apply, 1)
        buttons.addWidget(self.undo, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for widget in (self.offer, self.quality, self.fold):
            column.addWidget(widget)
        column.addLayout(self._batch_row)
        column.addLayout(buttons)
        self.apply.clicked.connect(lambda: self.wanted.emit(self.recipe()))
        self.undo.clicked.connect(lambda: self.wanted.emit(None))
        self.quality.changed.connect(self._on_quality)
        self.numbers["min_genes"].changed.connect(self._on_min_genes)
        self._on_min_genes(self.numbers["min_genes"].value)
        self.show_for(is_counts=False)

    def recipe(self) -> Recipe:
        """Return the recipe with the numbers and the batches as they stand."""
        numbers = {name: box.value for name, box in self.numbers.items()}
        limits, key = self.quality.limits(), self.batches.value
        return Recipe(
            **numbers,
            batch_key=None if key == NO_BATCHES else key,
            max_genes=limits.max_genes,
            min_counts=limits.min_counts,
            max_counts=limits.max_counts,
            max_mito=limits.max_mito,
            doublets=self.quality.doublets.isChecked(),
        )

    def show_for(
        self,
        *,
        is_counts: bool,
        applied: Recipe | None = None,
        batch_columns: Sequence[str] = (),
        quality: CellQuality | None = None,
        n_doublets: int = 0,
    ) -> None:
        """Offer the recipe for counts, or what it was once it was applied.

        Parameters
        ----------
        batch_columns : sequence of str
            Columns whose levels can be mixed; without any, nothing is asked.
        quality : CellQuality, optional
            Of every cell of the source, to choose limits by.
        n_doublets : int
            How many cells were left out as such.
        """
        self.quality.set_quality(quality)
        if applied is not None:
            found = n_doublets if applied.doublets else None
            self.quality.set_applied(applied.limits, found)
        self.setVisible(is_counts)
        self.is_offered = is_counts and applied is None
        mixed = None if applied is None else applied.batch_key
        columns = list(dict.fromkeys([*batch_columns, *([mixed] if mixed else [])]))
        chosen = self.batches.value if applied is None else mixed or NO_BATCHES
        self.batches.choices = [NO_BATCHES, *columns]
        self.batches.value = chosen if chosen in columns else NO_BATCHES
        show_row(self._batch_row, self.batches, bool(columns))
        show_text(self.offer, "" if applied else OFFER)
        self.apply.setText("Prepare again" if applied else "Prepare counts")
        self.undo.setVisible(applied is not None)

    # Inside: the lowest number of genes is in both folds

    def _on_quality(self) -> None:
        with self.numbers["min_genes"].changed.blocked():
            self.numbers["min_genes"].value = self.quality.limits().min_genes

    def _on_min_genes(self, least: int) -> None:
        self.quality.set_limits(replace(self.quality.limits(), min_genes=least))


def _number(name: str, default: float) -> SpinBox | FloatSpinBox:
    tip = PARAMETERS[name][1]
    if isinstance(default, int):
        least = 0 if name.startswith("min_") else 2
        return SpinBox(min=least, max=100_000, value=default, tooltip=tip)
    box = FloatSpinBox(min=1, max=1e7, step=default / 10, value=default, tooltip=tip)
    box.native.setDecimals(0)
    return box
