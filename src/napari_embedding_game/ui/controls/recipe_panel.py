"""Edit and apply the scanpy recipe for raw counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from magicgui.widgets import ComboBox, FloatSpinBox, PushButton, SpinBox
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.data.quality_control import CellQuality
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.ui.controls.cell_quality_panel import CellQualityPanel
from napari_embedding_game.ui.style.form_widgets import (
    Fold,
    add_row,
    form,
    set_role,
    show_row,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.theme import ThemeColors

OFFER = (
    "These are raw counts: how deeply a cell was sequenced would shape the map more "
    "than what the cell is. The usual preparation takes care of it."
)
APPLIED = "Prepared from raw counts"
NO_BATCHES = "none (Harmony off)"
BATCHES_TIP = (
    "Harmony moves cells of different samples, donors or days onto each other, by the "
    "column that names them. Kinds of cells then lie together whichever sample they "
    "come from; the genes stay as they are."
)
_ROWS = {
    "min_genes": (
        "Genes per cell, at least",
        "Cells with fewer genes found are left out as empty or broken.",
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
        "How many numbers per cell are left in the end, and embedded.",
    ),
}


class RecipePanel(QWidget):
    """Offers the recipe for raw counts; ``wanted`` brings it, or None for none."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.is_offered = False
        """Whether there are counts that are not prepared yet."""
        self.offer = text_label(OFFER, "warning")
        self.apply = PushButton(
            text="Prepare counts",
            tooltip="Filter, normalise, take logarithms, choose variable genes, scale, "
            "and compute principal components.",
        )
        self.undo = PushButton(
            text="Back to raw counts", tooltip="Embed the counts as they are."
        )
        self.numbers = {
            f.name: _number(f.name, f.default)
            for f in fields(Recipe)
            if f.name in _ROWS
        }
        self.quality = CellQualityPanel()
        self.batches = ComboBox(choices=[NO_BATCHES], tooltip=BATCHES_TIP)
        self.fold = Fold("Numbers of the recipe", self._rows())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        buttons = QHBoxLayout()
        buttons.addWidget(self.apply.native, 1)
        buttons.addWidget(self.undo.native, 1)
        column.addWidget(self.offer)
        column.addWidget(self.quality)
        column.addWidget(self.fold)
        self._batch_row = form()
        add_row(self._batch_row, "Mix batches of", self.batches)
        column.addLayout(self._batch_row)
        column.addLayout(buttons)
        self.apply.changed.connect(lambda: self.wanted.emit(self.recipe()))
        self.undo.changed.connect(lambda: self.wanted.emit(None))
        self.quality.changed.connect(self._on_quality)
        self.numbers["min_genes"].changed.connect(self._on_min_genes)
        self._on_min_genes(self.numbers["min_genes"].value)
        self.show_for(is_counts=False)

    def recipe(self) -> Recipe:
        """Return the recipe with the numbers and the batches as they stand."""
        numbers = {name: box.value for name, box in self.numbers.items()}
        key = self.batches.value
        limits = self.quality.limits()
        return Recipe(
            **numbers,
            batch_key=None if key == NO_BATCHES else key,
            max_genes=limits.max_genes,
            min_counts=limits.min_counts,
            max_counts=limits.max_counts,
            max_mito=limits.max_mito,
            doublets=self.quality.doublets.isChecked(),
        )

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.quality.set_theme(colors)

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
        self._offer_batches(batch_columns, applied)
        show_text(self.offer, "" if applied else OFFER)
        self.fold.set_title(APPLIED if applied else "Numbers of the recipe")
        self.apply.text = "Prepare again" if applied else "Prepare counts"
        set_role(self.apply.native, "" if applied else "main")
        self.undo.native.setVisible(applied is not None)

    def _on_quality(self) -> None:
        """Follow the lowest number of genes, as it was dragged."""
        with self.numbers["min_genes"].changed.blocked():
            self.numbers["min_genes"].value = self.quality.limits().min_genes

    def _on_min_genes(self, least: int) -> None:
        """Follow the lowest number of genes, as it was typed."""
        self.quality.set_limits(replace(self.quality.limits(), min_genes=least))

    def _offer_batches(self, columns: Sequence[str], applied: Recipe | None) -> None:
        """List the columns, and keep what was chosen, or what was applied."""
        mixed = None if applied is None else applied.batch_key
        if mixed is not None and mixed not in columns:
            columns = [*columns, mixed]
        chosen = self.batches.value if applied is None else mixed or NO_BATCHES
        self.batches.choices = [NO_BATCHES, *columns]
        self.batches.value = chosen if chosen in columns else NO_BATCHES
        show_row(self._batch_row, self.batches, bool(columns))

    def _rows(self) -> QWidget:
        inside = QWidget()
        rows = form()
        inside.setLayout(rows)
        for name, (label, _) in _ROWS.items():
            add_row(rows, label, self.numbers[name])
        return inside


def _number(name: str, default: float) -> SpinBox | FloatSpinBox:
    tip = _ROWS[name][1]
    if isinstance(default, int):
        least = 0 if name.startswith("min_") else 2
        return SpinBox(min=least, max=100_000, value=default, tooltip=tip)
    box = FloatSpinBox(min=1, max=1e7, step=default / 10, value=default, tooltip=tip)
    box.native.setDecimals(0)
    return box
