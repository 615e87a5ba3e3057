"""How often the suggested name of a cluster is right, beside scanpy's overlap.

Clusters are the groups of the file's labels, and clusters of the game.  A suggestion is
right for a cell if it is one of the types that stand for the cell's label in ``RIGHT``:
the type itself, its parent, and kinds of it that the label does not tell apart.  A
cluster has the label of most of its cells.  scanpy's ``marker_gene_overlap`` is given
the same table and the first 100 genes of ``rank_genes_groups`` (t-test); its name is
the type with the highest overlap.

``--chance`` makes other tables: how many clusters get a name if the genes' names are
exchanged among genes of like expression, and what is suggested for a cluster whose own
types, with their parent and its kinds, are taken out of the table.

The table of types was written before it was tried.  The rule was chosen on PBMC, and
changed after a first look at ifnb and COVID: docs/believing.md says how.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.inspect.group_sums import run_to_result
from napari_embedding_game.data.cell_types import CellType, read_cell_types
from napari_embedding_game.data.expression import Expression
from napari_embedding_game.session.name_suggestions import iter_suggestions
from shared import QUICK_ROWS, SOURCES, arguments, load, report, timed

FAMILY_OF = {one.name: one.parent or one.name for one in read_cell_types()}
CD4 = ("T cell", "Naive CD4 T cell", "Memory CD4 T cell", "Regulatory T cell")
CD4 += ("Follicular helper T cell",)
CD8 = ("T cell", "Naive CD8 T cell", "Cytotoxic CD8 T cell", "Exhausted T cell")
CD8 += ("MAIT cell", "Gamma-delta T cell")
B = ("B cell", "Naive B cell", "Memory B cell", "Germinal centre B cell")
CD14, CD16 = ("Monocyte", "CD14 monocyte"), ("Monocyte", "CD16 monocyte")
DENDRITIC = ("Dendritic cell", "Dendritic cell type 1", "Dendritic cell type 2")
DENDRITIC += ("Mature dendritic cell",)
PDC, PLATELET = ("Plasmacytoid dendritic cell",), ("Platelet or megakaryocyte",)
EPITHELIAL = tuple(name for name, of in FAMILY_OF.items() if of == "Epithelial cell")
RIGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "pbmc": {
        "CD4 T cells": CD4,
        "CD8 T cells": CD8,
        "CD14+ Monocytes": CD14,
        "FCGR3A+ Monocytes": CD16,
        "B cells": B,
        "NK cells": ("NK cell",),
        "Dendritic cells": DENDRITIC + PDC,
        "Megakaryocytes": PLATELET,
    },
    "ifnb": {
        "CD4 Naive T": ("T cell", "Naive CD4 T cell"),
        "CD4 Memory T": tuple(name for name in CD4 if "Naive" not in name),
        "T activated": CD4 + CD8,
        "CD8 T": CD8,
        "CD14 Mono": CD14,
        "CD16 Mono": CD16,
        "B": B,
        "B Activated": B,
        "NK": ("NK cell",),
        "DC": DENDRITIC,
        "pDC": PDC,
        "Mk": PLATELET,
        "Eryth": ("Erythroid cell",),
    },
    "covid": {
        "T": CD4 + CD8,
        "Macrophages": ("Macrophage", "Alveolar macrophage", *CD14, "CD16 monocyte"),
        "Epithelial": EPITHELIAL,
        "Neutrophil": ("Neutrophil",),
        "NK": ("NK cell",),
        "mDC": DENDRITIC,
        "B": B,
        "Mast": ("Mast cell",),
        "Plasma": ("Plasma cell",),
        "pDC": PDC,
    },
}
"""The types that are right for each label of each data set."""
N_CLUSTERS, TOP = (8, 16, 24), 100
"""Numbers of the game's clusters, and genes of a cluster that scanpy compares."""


@dataclass
class Cells:
    """Labelled cells with counts or logarithms, and their principal components."""

    name: str
    expression: Expression
    genes: list[str]
    labels: np.ndarray
    components: np.ndarray

    @property
    def types(self) -> dict[str, tuple[str, ...]]:
        """The types that are right for each label."""
        return RIGHT[self.name]

    def clusterings(self, numbers: tuple[int, ...]) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the name and the codes (N,) of each clustering, the labels first."""
        yield "labels", np.unique(self.labels, return_inverse=True)[1]
        for number in numbers:
            game = EmbeddingGame(n_clusters=number, random_state=0)
            found = game.fit(self.components).labels_
            yield f"game, {number}", np.unique(found, return_inverse=True)[1]


def read(name: str, args: argparse.Namespace) -> Cells | None:
    """Return the cells of a set, fewer of them with ``--quick``; None without it."""
    import anndata

    found = load(name, argparse.Namespace(data=args.data, quick=False))
    if found is None:
        return None
    adata = anndata.read_h5ad(args.data / SOURCES[name][0])
    rows = np.arange(len(found.X))
    if args.quick and len(rows) > QUICK_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, QUICK_ROWS, replace=False))
    X = sparse.csr_matrix(adata.X)[rows].astype(np.float32)
    genes = adata.var_names.tolist()
    return Cells(name, Expression(X, True), genes, found.labels[rows], found.X[rows])


def ours(
    cells: Cells, codes: np.ndarray, types: list[CellType], genes: list[str]
) -> list[tuple[str, str]]:
    """Return the suggestion and the second type of each cluster, "" for none."""
    found, _ = run_to_result(
        iter_suggestions(
            *(cells.expression, genes, [], codes, int(codes.max()) + 1),
            types=types,
            table_name="the table",
        )
    )
    return [
        (one.best.name if one.best else "", one.second.name if one.second else "")
        for one in found
    ]


def of_scanpy(
    cells: Cells, codes: np.ndarray, types: list[CellType], method: str
) -> list[tuple[str, str]]:
    """Return the type of the highest overlap of each cluster, and the next."""
    import anndata
    import scanpy as sc

    obs = pd.DataFrame({"cluster": pd.Categorical(codes.astype(str))})
    obs.index = obs.index.astype(str)
    adata = anndata.AnnData(cells.expression.values, obs)
    adata.var_names = cells.genes
    adata.uns["log1p"] = {"base": None}
    sc.tl.rank_genes_groups(adata, "cluster", method="t-test", n_genes=TOP)
    reference = {one.name: set(one.genes) for one in types}
    found = sc.tl.marker_gene_overlap(
        adata, reference, method=method, top_n_markers=TOP
    )
    names = found.index.to_numpy()
    ranked = [
        names[np.argsort(-found[str(code)].to_numpy(), kind="stable")[:2]]
        for code in range(int(codes.max()) + 1)
    ]
    return [(str(first), str(second)) for first, second in ranked]


def judge(
    cells: Cells, codes: np.ndarray, named: list[tuple[str, str]]
) -> dict[str, Any]:
    """Return the figures of the names of the clusters."""
    most = [
        pd.Series(cells.labels[codes == code]).mode()[0] for code in range(len(named))
    ]
    pairs = list(zip(named, most, strict=True))
    is_right = [first in cells.types[label] for (first, _), label in pairs]
    is_wrong = [
        bool(name) and not right
        for (name, _), right in zip(named, is_right, strict=True)
    ]
    second = sum(
        wrong and other in cells.types[label]
        for ((_, other), label), wrong in zip(pairs, is_wrong, strict=True)
    )
    right_cells = [
        named[code][0] in cells.types[label]
        for code, label in zip(codes, cells.labels, strict=True)
    ]
    at_most = np.array(most, dtype=object)[codes] == cells.labels
    return {
        "clusters right": f"{sum(is_right)} of {len(named)}",
        "wrong": sum(is_wrong),
        "of these second right": second,
        "none fits": sum(not name for name, _ in named),
        "cells right": f"{np.mean(right_cells):.3f}",
        "cells of most": f"{np.mean(at_most):.3f}",
    }


def compare_ways(cells: Cells, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each clustering and each way to name clusters."""
    types, rows = read_cell_types(), []
    for clustering, codes in cells.clusterings(() if args.quick else N_CLUSTERS):
        named, seconds = timed(lambda c=codes: ours(cells, c, types, cells.genes))
        ways = {"this program": named}
        for method in ("overlap_count", "overlap_coef", "jaccard"):
            ways[f"scanpy, {method}"] = of_scanpy(cells, codes, types, method)
        for way, of_way in ways.items():
            s = round(seconds[0], 1) if way == "this program" else ""
            of = {"data": cells.name, "clusters": clustering, "way": way}
            rows.append({**of, **judge(cells, codes, of_way), "s": s})
    return rows


def exchange_names(cells: Cells, seed: int) -> list[str]:
    """Return the genes' names, exchanged among 25 bins of mean expression."""
    level = np.asarray(cells.expression.values.mean(axis=0)).ravel()
    order, names = np.argsort(level, kind="stable"), np.array(cells.genes, object)
    rng = np.random.default_rng(seed)
    for part in np.array_split(order, 25):
        names[part] = names[rng.permutation(part)]
    return names.tolist()


def chance(cells: Cells, n_draws: int) -> list[dict[str, Any]]:
    """Return the share of clusters named by exchanged genes."""
    types, rows = read_cell_types(), []
    for clustering, codes in cells.clusterings(N_CLUSTERS[1:2]):
        named = [
            bool(first)
            for seed in range(n_draws)
            for first, _ in ours(cells, codes, types, exchange_names(cells, seed))
        ]
        of = {"data": cells.name, "clusters": clustering}
        rows.append({**of, "named": sum(named), "of": len(named)})
    return rows


def left_out(cells: Cells) -> list[dict[str, Any]]:
    """Return what is suggested for each label without its own family of types."""
    types, rows = read_cell_types(), []
    labels, codes = np.unique(cells.labels, return_inverse=True)
    for code, label in enumerate(labels):
        families = {FAMILY_OF[name] for name in cells.types[label]}
        others = [one for one in types if FAMILY_OF[one.name] not in families]
        first, _ = ours(cells, codes, others, cells.genes)[code]
        of = {"data": cells.name, "label": label}
        rows.append(
            {**of, "without": ", ".join(sorted(families)), "suggested": first or "none"}
        )
    return rows


def main() -> None:
    """Print how often names are right, or with --chance how often they are chance."""
    args = arguments(
        __doc__,
        chance={"action": "store_true", "help": "exchanged and left-out types"},
        inputs={"nargs": "+", "default": list(RIGHT), "help": "data sets"},
    )
    warnings.simplefilter("ignore")  # scanpy's own
    named: list[dict[str, Any]] = []
    by_chance: list[dict[str, Any]] = []
    relatives: list[dict[str, Any]] = []
    for name in args.inputs:
        if (cells := read(name, args)) is None:
            continue
        if args.chance:
            by_chance += chance(cells, 1 if args.quick else 10)
            relatives += left_out(cells)
        else:
            named += compare_ways(cells, args)
    if args.chance:
        report("Clusters named by genes whose names are exchanged", by_chance, args)
        report("Suggested where a cluster's own types are not listed", relatives, args)
    else:
        report("Suggested names", named, args)


if __name__ == "__main__":
    main()
