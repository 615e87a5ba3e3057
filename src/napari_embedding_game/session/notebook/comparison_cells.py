"""Cells that compare groups of points, as was kept in the Inspector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import MISSING
from napari_embedding_game.session.notebook.cluster_cells import (
    Clusters,
    row_names,
)
from napari_embedding_game.session.notebook.draft import (
    NUMPY,
    PANDAS,
    PYPLOT,
    SCANPY,
    Draft,
    call,
    code_of,
)
from napari_embedding_game.session.notebook.expression_code import ExpressionCode
from napari_embedding_game.session.notebook.run_cells import TL
from napari_embedding_game.session.shown_comparisons import ShownComparison

N_SHOWN = 20
"""Genes of a figure."""
VOLCANO = (
    "def volcano(table, title):",
    '    """Draw the change of each gene across, its certainty upwards."""',
    '    change = table["logfoldchanges"].clip(-10, 10)',
    '    certainty = -np.log10(table["pvals_adj"].clip(lower=1e-300))',
    "    stands_out = (change.abs() > 1) & (certainty > -np.log10(0.05))",
    "    _, axes = plt.subplots()",
    '    colors = np.where(stands_out, "tab:red", "lightgrey")',
    "    axes.scatter(change, certainty, s=6, c=colors)",
    "    leading = table.index[stands_out]",
    "    for row in {*leading[:6], *leading[-6:]}:",
    "        place = change[row], certainty[row]",
    '        axes.annotate(table["names"][row], place, fontsize=8, rotation=30)',
    '    axes.set(xlabel="log2 fold change", ylabel="-log10 of adjusted p")',
    "    axes.set_title(title)",
    "    plt.show()",
)
"""A function of the code, called for each comparison."""


@dataclass(frozen=True)
class _Group:
    """A group of points, what it is called, and the code that finds it."""

    name: str
    code: str
    cluster: str = ""
    """Where it is one cluster: its name."""


class ComparisonCells:
    """Adds the cells of each comparison.

    Parameters
    ----------
    draft : Draft
    dataset : Dataset
    expression : ExpressionCode
        What is compared.
    clusters : Clusters
    """

    def __init__(
        self,
        draft: Draft,
        dataset: Dataset,
        expression: ExpressionCode,
        clusters: Clusters,
    ) -> None:
        self._draft, self._dataset = draft, dataset
        self._expression, self._clusters = expression, clusters
        self._points: dict[str, NDArray[np.bool_]] = {}

    def add(self, comparisons: Iterable[ShownComparison]) -> None:
        """Add all: clusters against the rest together, every other one by itself."""
        comparisons = list(comparisons)
        if not comparisons:
            return
        self._draft.text(
            "## What sets groups apart",
            "The comparisons that were kept or saved in the window.",
        )
        self._draft.code(*VOLCANO, imports=[NUMPY, PYPLOT])
        against_rest: dict[str, list[str]] = {}
        others = []
        for one in comparisons:
            cluster = "" if one.column else self._points_of(one.inside).cluster
            is_of_rows = self._expression.is_log1p and not one.samples
            if is_of_rows and cluster and one.outside is None:
                against_rest.setdefault(one.method, []).append(cluster)
            else:
                others.append(one)
        for method, names in against_rest.items():
            self._against_rest(names, method)
        for one in others:
            self._compare(one)

    def _against_rest(self, names: list[str], method: str) -> None:
        column = self._clusters.column
        groups = list(dict.fromkeys(names))
        self._rank(column, groups, "rest", method)

    def _rank(
        self,
        column: str,
        groups: list[str],
        reference: str,
        method: str,
        within: str = "",
    ) -> None:
        options = {} if reference == "rest" else {"reference": reference}
        genes = self._expression.adata
        self._draft.code(
            call(
                "sc.tl.rank_genes_groups",
                genes,
                code_of(column),
                groups=groups,
                **options,
                method=method,
                **self._expression.options,
            ),
            f"sc.pl.rank_genes_groups({genes}, n_genes={N_SHOWN}, sharey=False)",
            imports=[SCANPY],
        )
        against = "the rest" if reference == "rest" else reference
        if len(groups) > 1:
            self._draft.code(
                f"for group in {code_of(groups)}:",
                f"    table = sc.get.rank_genes_groups_df({genes}, group=group)",
                '    volcano(table, f"{group} against the rest")',
            )
        else:
            table = f"sc.get.rank_genes_groups_df({genes}, group={code_of(groups[0])})"
            title = code_of(f"{groups[0]} against {against}{within}")
            self._draft.code(f"table = {table}", f"volcano(table, {title})")
        shown = code_of(groups if len(groups) > 1 else groups[0])
        self._draft.code(f"sc.get.rank_genes_groups_df({genes}, group={shown})")

    def _compare(self, one: ShownComparison) -> None:
        inside = self._group(one, is_inside=True)
        outside = self._group(one, is_inside=False)
        name = inside.name if inside.name != outside.name else f"{inside.name} (1)"
        within = ""
        if one.column and one.selected is not None:
            within = f" in {self._points_of(one.selected).name}"
        self._draft.text(f"**{name}** against **{outside.name}**{within}")
        code = [f"inside = {inside.code}"]
        code.append(f"outside = {outside.code}")
        if not self._expression.is_log1p or one.samples:
            method: dict[str, Any] = {}
            if one.samples:
                method["samples"] = one.samples
            elif one.method != "wilcoxon":
                method["method"] = one.method
            if self._dataset.expression.is_log1p:
                method["log1p"] = True
            values, title = (
                self._expression.values,
                f"{name} against {outside.name}{within}",
            )
            self._draft.code(
                *code,
                call(
                    "found = tl.compare",
                    values,
                    "inside",
                    "outside",
                    **method,
                    n_top=None,
                ),
                f"top = found.head({N_SHOWN})",
                'top.plot.barh(x="names", y="scores", legend=False).invert_yaxis()',
                f"volcano(found, {code_of(title)})",
                "top",
                imports=[TL],
            )
            return
        genes = self._expression.adata
        picked: tuple[str, ...]
        if one.outside is None and not one.column:
            picked = "np.where", "inside", code_of(name), code_of(outside.name)
            code, reference = code[:1], "rest"
        else:
            names = code_of([name, outside.name])
            picked = "np.select", "[inside, outside]", names, '"neither"'
            reference = outside.name
        code.append(call(f'{genes}.obs["group"] = {picked[0]}', *picked[1:]))
        self._draft.code(*code, imports=[NUMPY])
        self._rank("group", [name], reference, one.method, within)

    def _group(self, one: ShownComparison, *, is_inside: bool) -> _Group:
        if one.column and one.selected is not None:
            return self._level(one, is_inside)
        if is_inside:
            return self._points_of(one.inside)
        if one.outside is None:
            return _Group("the rest", "~inside")
        return self._points_of(one.outside)

    def _level(self, one: ShownComparison, is_inside: bool) -> _Group:
        """Return one level of a column inside a selection."""
        assert one.selected is not None
        selected = self._points_of(one.selected)
        level, other = one.levels
        if is_inside:
            return _Group(level, f"({selected.code}) & {_has(one.column, level)}")
        if other:
            return _Group(other, f"({selected.code}) & {_has(one.column, other)}")
        return _Group("the others", f"({selected.code}) & ~{_has(one.column, level)}")

    def _points_of(self, points: NDArray[np.bool_]) -> _Group:
        """Return clusters, where the points are all of theirs, or single points."""
        clustering, column = self._clusters.clustering, self._clusters.column
        inside = set(clustering.labels[points].tolist())
        names = [c.name for c in clustering.clusters if c.id in inside]
        if np.array_equal(np.isin(clustering.labels, list(inside)), points):
            if len(names) == 1:
                code = f"adata.obs[{code_of(column)}] == {code_of(names[0])}"
                return _Group(names[0], code, names[0])
            return _Group(
                " + ".join(names),
                f"adata.obs[{code_of(column)}].isin({code_of(names)})",
            )
        return self._by_name(points)

    def _by_name(self, points: NDArray[np.bool_]) -> _Group:
        known = (k for k, p in self._points.items() if np.array_equal(p, points))
        group = next(known, "")
        if not group:
            group = f"selection {len(self._points) + 1}"
            self._points[group] = points
            name = self._draft.beside("selections.csv", self._write)
            if len(self._points) == 1:
                self._draft.text(
                    f"Points that were selected on the map are listed in `{name}`."
                )
                self._draft.code(
                    f'selections = pd.read_csv({code_of(name)}, dtype={{"name": str}})',
                    'selections = selections.groupby("selection")["name"]',
                    imports=[PANDAS],
                )
        return _Group(
            group, f"adata.obs_names.isin(selections.get_group({code_of(group)}))"
        )

    def _write(self, path: Path) -> None:
        names = row_names(self._dataset)
        parts = [
            pd.DataFrame({"name": names[points], "selection": group})
            for group, points in self._points.items()
        ]
        pd.concat(parts).to_csv(path, index=False)


def _has(column: str, level: str) -> str:
    """Return the code that tells which rows have a level of a column."""
    values = f"adata.obs[{code_of(column)}]"
    if level == MISSING:
        return f"{values}.isna()"
    return f"({values}.astype(str) == {code_of(level)})"
