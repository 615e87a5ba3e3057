"""A panel for the scanpy recipe for raw counts: limits of cells and its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import pandas as pd
from magicgui.widgets import FloatSpinBox
from qtpy.QtWidgets import QFormLayout, QWidget

from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.quality_control import LIMITS, find_cells_left_out
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.ui.controls.cell_quality import CellQualityView, Limits
from napari_embedding_game.ui.style.form_widgets import (
    ChoiceBox,
    FoldingSection,
    TextLabel,
    check_box,
    commit_typed_number,
    form_layout,
)
from napari_embedding_game.ui.style.layouts import push_button, vertical_box

OFFER = "These are raw counts, which need normalising before a map means anything."
PREPARE_TIP = "Filter, normalise, logarithm, variable genes, scale, components."
DOUBLETS = "Leave out doublets (scrublet)"
DOUBLETS_TIP = "Leave out cells that are two in one droplet."
NO_MITOCHONDRIA = "No mitochondrial genes: no name begins with MT- or mt-."
CELL_LIMITS = {
    "min_counts": ("Counts, at least", "Cells with fewer are left out as empty."),
    "max_counts": ("Counts, at most", "Cells with more are left out as doublets."),
    "min_genes": ("Genes, at least", "Cells with fewer are left out as broken."),
    "max_genes": ("Genes, at most", "Cells with more are left out as doublets."),
    "max_mito": ("Mitochondrial %", "Cells with more are left out as dying."),
}
PREPARATION = {
    "min_cells": (
        "Cells of a gene",
        "Genes found in fewer cells are left out as noise.",
    ),
    "n_top_genes": ("Most variable genes", "Number of genes that the map is made of."),
    "n_comps": ("Principal components", "Number of components that are embedded."),
}
"""Title and tooltip of fields of :class:`Recipe`."""
DEFAULTS = {f.name: f.default for f in fields(Recipe)}


class RecipePanel(QWidget):
    """Offers the recipe for raw counts and shows how many cells it leaves out.

    Parameters
    ----------
    batches : ChoiceBox
        Chooses the column whose samples are mixed, or None.
    prepare : callable
        Receives the recipe when a person applies it.
    """

    def __init__(self, batches: ChoiceBox, prepare: Callable[[Recipe], object]) -> None:
        super().__init__()
        self._batches, self._prepare = batches, prepare
        self.is_offered = False
        """Whether there are raw counts that are not prepared yet."""
        self._quality: pd.DataFrame | None = None
        self._doublet_count: tuple[Recipe, int] | None = None
        """The applied recipe and how many doublets it found."""
        self.offer = TextLabel(OFFER, "warning")
        self.numbers: dict[str, FloatSpinBox] = {}
        self._limits = self._make_number_form(CELL_LIMITS)
        self.cells = CellQualityView(self._show_limits)
        self.doublets = check_box(DOUBLETS, DOUBLETS_TIP, self._update_left_out_counts)
        self.no_mito, self.state = TextLabel(NO_MITOCHONDRIA), TextLabel()
        parts = self.cells, self._limits, self.no_mito, self.doublets, self.state
        self.fold = FoldingSection("Quality control", *parts)
        preparation = FoldingSection("Preparation", self._make_number_form(PREPARATION))
        self.apply_button = push_button(
            "Prepare again", PREPARE_TIP, self._on_apply_clicked
        )
        self.setLayout(
            vertical_box(self.offer, self.fold, preparation, self.apply_button)
        )
        for name in LIMITS:
            self.numbers[name].changed.connect(self._update_left_out_counts)
        batches.changed.connect(self._update_left_out_counts)
        self.hide()

    def make_recipe(self) -> Recipe:
        """Return a recipe with the shown numbers, batches and tick for doublets."""
        return Recipe(
            **{n: type(DEFAULTS[n])(box.value) for n, box in self.numbers.items()},
            batch_key=self._batches.value,
            doublets=self.doublets.isChecked(),
        )

    def show_recipe(
        self, quality: pd.DataFrame | None, dataset: Dataset, applied: Recipe | None
    ) -> None:
        """Offer the recipe for raw counts, or show the recipe that was applied.

        If the limits are shown for this very table already, typed numbers stay.

        Parameters
        ----------
        quality : DataFrame, optional
            A row of metrics for each cell of the source, to choose limits; without
            metrics the quality control is hidden.
        dataset : Dataset
            The counts or the prepared data.
        applied : Recipe, optional
            The applied recipe; None before the preparation.
        """
        self.show()
        self.is_offered = applied is None
        self.offer.show_text(OFFER if self.is_offered else "")
        self.apply_button.setVisible(not self.is_offered)
        if self.shows_limits_of(quality):
            return  # the same cells: typed numbers stay
        self.fold.setVisible(quality is not None)
        previous, self._quality = self._quality, quality
        if quality is not None:
            self._show_cell_quality(quality, dataset, previous)
        if applied is not None:
            self._show_applied_recipe(applied, dataset)
        self._update_left_out_counts()

    def shows_limits_of(self, quality: pd.DataFrame | None) -> bool:
        """Return whether the limits are shown for this very table of metrics."""
        return quality is not None and quality is self._quality

    def withdraw_offer(self) -> None:
        """Hide the panel: the data are no raw counts, or other data are being read."""
        self.hide()
        self.is_offered = False

    # Inside

    def _on_apply_clicked(self) -> None:
        """Take over a number that is being typed, and have the recipe applied."""
        commit_typed_number()
        self._prepare(self.make_recipe())

    def _make_number_form(self, parameters: dict[str, tuple[str, str]]) -> QFormLayout:
        """Return a form with a number box for each field of ``parameters``.

        ``parameters``: (title, tooltip) by field of :class:`Recipe`.  The boxes are
        added to ``numbers``.
        """
        boxes = {
            name: _make_number_box(name, tip) for name, (_, tip) in parameters.items()
        }
        self.numbers |= boxes
        return form_layout(*((parameters[name][0], box) for name, box in boxes.items()))

    def _show_cell_quality(
        self, quality: pd.DataFrame, dataset: Dataset, previous: pd.DataFrame | None
    ) -> None:
        """Show the metrics of the cells, and hide the mitochondrial limit if unknown.

        If ``quality`` differs from ``previous``, the former table or None, limits and
        doublets are reset to no limit, except for the default of ``min_genes``.
        """
        has_mito = "pct_counts_mt" in quality
        self._limits.setRowVisible(self.numbers["max_mito"].native, has_mito)
        self.no_mito.setVisible(not has_mito)
        if previous is None or not quality.equals(previous):
            self._doublet_count = None
            self.doublets.setChecked(False)
            none = dict.fromkeys(LIMITS, 0)
            self._show_limits({**none, "min_genes": DEFAULTS["min_genes"]})
        self.cells.show_cells(quality, dataset)

    def _show_applied_recipe(self, applied: Recipe, dataset: Dataset) -> None:
        """Show the numbers of an applied recipe; keep its number of doublets."""
        self.doublets.setChecked(applied.doublets)
        self._show_limits({name: getattr(applied, name) for name in self.numbers})
        recipe = dataset.provenance.get("recipe", {})
        n_doublets = int(recipe.get("left_out", {}).get("doublets", 0))
        self._doublet_count = (
            (self.make_recipe(), n_doublets) if applied.doublets else None
        )

    def _show_limits(self, numbers: Limits) -> None:
        """Show numbers by field of :class:`Recipe`, and update the counts once."""
        for name, value in numbers.items():
            with self.numbers[name].changed.blocked():
                self.numbers[name].value = value
        self._update_left_out_counts()

    def _update_left_out_counts(self, *event: object) -> None:
        """Show how many cells are within the limits, and why cells are left out.

        The plot shows the limits, and the samples of the batch column, else of the
        first column on offer.  Doublets are counted only for the very recipe that was
        applied.
        """
        if self._quality is None:
            return
        recipe, (_, *columns) = self.make_recipe(), self._batches.choices
        batch, limits = recipe.batch_key, {x: getattr(recipe, x) for x in LIMITS}
        self.cells.show_limits(limits, batch or next(iter(columns), ""), batch)
        reasons = find_cells_left_out(recipe, self._quality).values()
        n, n_out = len(self._quality), sum(int(r.sum()) for r, _ in reasons)
        texts = [
            f"{int(rows.sum()):,} with {why}" for rows, why in reasons if rows.any()
        ]
        count, then = self._doublet_count, ""
        if count is not None and count[0] == recipe:
            n_out += count[1]
            texts.append(count_text(count[1], "doublet"))
        elif recipe.doublets:
            then = " Doublets are found among those that stay."
        text = f"{n - n_out:,} of {n:,} cells stay."
        text += f" Left out are {', '.join(texts)}." if texts else ""
        self.state.show_text(text + then)
        self.fold.set_title(f"Quality control  ·  {n_out:,} left out")


def _make_number_box(name: str, tip: str) -> FloatSpinBox:
    """Return a box for a field of the recipe, set to the field's default.

    Only the mitochondrial limit has a decimal.  The lowest value of a limit, 0, is
    shown as "No limit".
    """
    least = 0 if name in (*LIMITS, "min_cells") else 2
    # For integers too: magicgui's box for integers cannot show "No limit".
    box = FloatSpinBox(min=least, max=1e8, step=1, value=DEFAULTS[name], tooltip=tip)
    box.native.setDecimals(int(name == "max_mito"))
    if name in LIMITS:
        box.native.setSpecialValueText("No limit")
    return box
