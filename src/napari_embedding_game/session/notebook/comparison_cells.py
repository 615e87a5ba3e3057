"""Cells that compare groups of points, as was looked at in the Inspector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.expression import TARGET_SUM
from napari_embedding_game.session.notebook.cluster_cells import (
    Clusters,
    row_names,
)
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import (
    NUMPY,
    PANDAS,
    SCANPY,
    Draft,
    call,
    code_of,
)
from napari_embedding_game.session.shown_comparisons import ShownComparison

N_SHOWN = 20
"""Genes of a figure."""


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
    loaded : Loaded
    clusters : Clusters
    """

    def __init__(
        self, draft: Draft, dataset: Dataset, loaded: Loaded, clusters: Clusters
    ) -> None:
        self._draft, self._dataset = draft, dataset
        self._loaded, self._clusters = loaded, clusters
        self._points: dict[str, NDArray[np.bool_]] = {}

    def add(self, comparisons: Iterable[ShownComparison]) -> None:
        """Add all: clusters against the rest together, every other one by itself."""
        comparisons = list(comparisons)
        if not comparisons or not self._dataset.profile.shape[1]:
            return
        self._draft.text(
            "## What sets groups apart",
            "The comparisons that were looked at in the window.",
        )
        self._prepare()
        against_rest: dict[str, list[str]] = {}
        others = []
        for one in comparisons:
            cluster = "" if one.column else self._points_of(one.inside).cluster
            is_of_rows = self._by_scanpy and not one.samples
            if is_of_rows and cluster and one.outside is None:
                against_rest.setdefault(one.method, []).append(cluster)
            else:
                others.append(one)
        for method, names in against_rest.items():
            self._against_rest(names, method)
        for one in others:
            self._compare(one)

    @property
    def _by_scanpy(self) -> bool:
        """Whether these are genes: scanpy's fold change asks for logarithms."""
        return self._loaded.has_genes and self._dataset.expression.is_log1p

    @property
    def _genes(self) -> str:
        return "genes" if self._loaded.is_counts else "adata"

    @property
    def _values(self) -> str:
        """The code of the AnnData whose ``X`` is compared."""
        is_of_raw = self._loaded.has_genes and self._loaded.use_raw
        if is_of_raw and not self._loaded.is_counts:
            return "adata.raw.to_adata()"
        return self._genes

    def _prepare(self) -> None:
        if self._loaded.is_counts:
            use = "adata.raw.to_adata()" if self._loaded.use_raw else "adata.copy()"
            self._draft.code(
                f"genes = {use}",
                f"sc.pp.normalize_total(genes, target_sum={TARGET_SUM:g})",
                "sc.pp.log1p(genes)",
                imports=[SCANPY],
            )

    def _raw(self) -> dict[str, bool]:
        use_raw = self._loaded.use_raw
        if self._loaded.is_counts:
            return {"use_raw": False}
        return {} if use_raw is None else {"use_raw": use_raw}

    def _against_rest(self, names: list[str], method: str) -> None:
        column = self._clusters.column
        groups = list(dict.fromkeys(names))
        self._rank(column, groups, "rest", method)

    def _rank(
        self, column: str, groups: list[str], reference: str, method: str
    ) -> None:
        options = {} if reference == "rest" else {"reference": reference}
        genes = self._genes
        self._draft.code(
            call(
                "sc.tl.rank_genes_groups",
                genes,
                code_of(column),
                groups=groups,
                **options,
                method=method,
                **self._raw(),
            ),
            f"sc.pl.rank_genes_groups({genes}, n_genes={N_SHOWN}, sharey=False)",
            imports=[SCANPY],
        )
        shown = code_of(groups if len(groups) > 1 else groups[0])
        self._draft.code(f"sc.get.rank_genes_groups_df({genes}, group={shown})")

    def _compare(self, one: ShownComparison) -> None:
        inside = self._group(one, is_inside=True)
        outside = self._group(one, is_inside=False)
        name = inside.name if inside.name != outside.name else f"{inside.name} (1)"
        self._draft.text(f"**{name}** against **{outside.name}**")
        code = [f"inside = {inside.code}"]
        code.append(f"outside = {outside.code}")
        if not self._by_scanpy or one.samples:
            method: dict[str, Any] = {}
            if one.samples:
                method["samples"] = one.samples
            elif one.method != "wilcoxon":
                method["method"] = one.method
            if self._dataset.expression.is_log1p:
                method["log1p"] = True
            values = self._values
            self._draft.code(
                *code,
                call("found = tl.compare", values, "inside", "outside", **method),
                'found.plot.barh(x="names", y="scores", legend=False).invert_yaxis()',
                "found",
            )
            return
        genes = self._genes
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
        self._rank("group", [name], reference, one.method)

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
        column = f"adata.obs[{code_of(one.column)}].astype(str)"
        if is_inside:
            return _Group(level, f"({selected.code}) & ({column} == {code_of(level)})")
        if other:
            return _Group(other, f"({selected.code}) & ({column} == {code_of(other)})")
        return _Group(
            "the others", f"({selected.code}) & ({column} != {code_of(level)})"
        )

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
