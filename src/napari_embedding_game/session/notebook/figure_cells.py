"""Cells that draw genes in groups, as they were looked at in the Inspector."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pandas as pd

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.expression_figure import PlotKind
from napari_embedding_game.session.cluster_expression import N_CELLS
from napari_embedding_game.session.cluster_report import MISSING
from napari_embedding_game.session.notebook.draft import (
    NUMPY,
    PANDAS,
    SCANPY,
    Draft,
    call,
    code_of,
)
from napari_embedding_game.session.notebook.expression_code import ExpressionCode
from napari_embedding_game.session.shown_figures import ShownFigure

FUNCTIONS: dict[PlotKind, str] = {
    "dots": "sc.pl.dotplot",
    "matrix": "sc.pl.matrixplot",
    "cells": "sc.pl.heatmap",
}


def drawable(
    figures: Iterable[ShownFigure], dataset: Dataset, columns: Collection[str]
) -> list[ShownFigure]:
    """Return the figures whose genes and columns the code has.

    Parameters
    ----------
    columns : collection of str
        Those of ``adata.obs``.
    """
    known = set(dataset.profile_names)
    return [
        one
        for one in figures
        if known.issuperset(one.genes) and (not one.column or one.column in columns)
    ]


class FigureCells:
    """Adds the cells of each figure.

    Parameters
    ----------
    draft : Draft
    dataset : Dataset
    expression : ExpressionCode
        What is drawn.
    clusters : str
        Column of ``obs`` with the names of the clusters.
    """

    def __init__(
        self, draft: Draft, dataset: Dataset, expression: ExpressionCode, clusters: str
    ) -> None:
        self._draft, self._dataset = draft, dataset
        self._expression, self._clusters = expression, clusters
        self._made: dict[tuple[str, bool], str] = {}
        """Columns that were made for rows, by what these are."""

    def add(self, figures: Iterable[ShownFigure]) -> None:
        """Add all."""
        figures = list(figures)
        what = "Genes" if self._dataset.has_expression else "Columns"
        self._draft.text(
            f"## {what} in groups",
            "Dot plots, matrix plots and heat maps that were looked at in the window.",
        )
        for one in figures:
            self._draw(one)

    def _draw(self, one: ShownFigure) -> None:
        genes = self._expression.adata
        column = self._rows(one)
        lines = []
        if one.kind == "cells":
            lines = [
                f"# Up to {N_CELLS} cells of each group, drawn at random:",
                "rng = np.random.default_rng(0)",
                "some = []",
                f"groups = {genes}.obs[{code_of(column)}]",
                "for group in groups.cat.categories:",
                "    rows = np.flatnonzero(groups == group)",
                f"    if len(rows) > {N_CELLS}:",
                f"        rows = rng.choice(rows, {N_CELLS}, replace=False)",
                "    some.extend(rows)",
            ]
            genes = f"{genes}[some].copy()"
        scaled = {"standard_scale": "var"} if one.is_scaled else {}
        options: dict[str, Any] = {**scaled, **self._expression.options}
        if one.kind == "cells":
            options["show_gene_labels"] = True
        drawn = call(
            FUNCTIONS[one.kind],
            genes,
            var_names=list(one.genes),
            groupby=column,
            **options,
        )
        imports = [SCANPY, NUMPY] if one.kind == "cells" else [SCANPY]
        self._draft.code(*lines, drawn, imports=imports)

    def _rows(self, one: ShownFigure) -> str:
        """Return the column of ``obs`` that says which row of a figure a cell is in."""
        if not one.column:
            return self._clusters
        levels = self._once((one.column, False), lambda: self._levels(one.column))
        if not one.splits_clusters:
            return levels
        return self._once((one.column, True), lambda: self._parted(one.column, levels))

    def _once(self, what: tuple[str, bool], make: Callable[[], str]) -> str:
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    def _levels(self, column: str) -> str:
        """Return a column with the levels as names, which scanpy takes for groups."""
        values = self._dataset.obs[column]
        is_named = isinstance(values.dtype, pd.CategoricalDtype) and all(
            isinstance(name, str) for name in values.cat.categories
        )
        if is_named and not values.hasnans:
            return column
        obs, name = f"{self._expression.adata}.obs", f"{column} (groups)"
        lines = [
            f'levels = {obs}[{code_of(column)}].astype("category")',
            "levels = levels.cat.rename_categories(str)",
        ]
        if values.hasnans:
            missing = code_of(MISSING)
            lines.append(
                f"levels = levels.cat.add_categories({missing}).fillna({missing})"
            )
        self._draft.code(*lines, f"{obs}[{code_of(name)}] = levels")
        return name

    def _parted(self, column: str, levels: str) -> str:
        obs, name = f"{self._expression.adata}.obs", f"clusters by {column}"
        self._draft.code(
            f"clusters = {obs}[{code_of(self._clusters)}]",
            f"levels = {obs}[{code_of(levels)}]",
            'names = clusters.astype(str) + " · " + levels.astype(str)',
            "order = [",
            '    f"{cluster} · {level}"',
            "    for cluster in clusters.cat.categories",
            "    for level in levels.cat.categories",
            "]",
            f"{obs}[{code_of(name)}] = pd.Categorical(",
            "    names, [name for name in order if name in set(names)]",
            ")",
            imports=[PANDAS],
        )
        return name
