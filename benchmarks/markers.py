"""Seconds to find a cluster's markers, beside scanpy's on the same data.

One group of 10 % of the rows against the rest; counts after log1p, one value of
ten not 0.  scanpy works out every figure of the table as well (``pts=True``).

Two more tables are of genes that do not differ.  *Rare genes*: the share of p < 0.05 of
genes that 2 to 50 % of 600 cells have, 300 in each group, and how far p is from that of
``scipy.stats.mannwhitneyu``.  *Clusters of one group*: of 2,000 genes, those with an
adjusted p below 0.05 between the two clusters of 1,000 cells of one group, and between
halves that are drawn.  ``--tables`` names those that are printed.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from napari_embedding_game.core.inspect.markers import (
    MARKER_METHODS,
    MarkerTable,
    markers,
)
from shared import arguments, median, report, timed

TABLES = ("seconds", "rare genes", "clusters")
TESTS: dict[str, dict[str, Any]] = {
    "Wilcoxon": {"method": "wilcoxon"},
    "Wilcoxon, with ties": {"method": "wilcoxon", "tie_correct": True},
    "t-test": {"method": "t-test"},
}
FIGURES = ("scores", "logfoldchanges", "pvals", "pvals_adj")


def expression(n_rows: int, n_columns: int) -> sparse.csr_matrix:
    """Return log1p values, one of ten not 0."""
    rng = np.random.default_rng(0)

    def values(n: int) -> np.ndarray:
        return np.log1p(rng.geometric(0.4, n) * rng.uniform(0.5, 2, n))

    return sparse.random(
        n_rows, n_columns, 0.1, "csr", np.float32, rng, data_rvs=values
    )


def of_scanpy(X: object, inside: np.ndarray, names: list[str], method: str) -> object:
    """Return scanpy's table, a row a gene."""
    import anndata
    import pandas as pd
    import scanpy as sc

    group = pd.Categorical(np.where(inside, "in", "out"))
    cells = anndata.AnnData(
        X,
        obs=pd.DataFrame({"group": group}, index=np.arange(len(inside)).astype(str)),
        var=pd.DataFrame(index=names),
    )
    sc.tl.rank_genes_groups(
        cells, "group", groups=["in"], method=method, pts=True, use_raw=False
    )
    return sc.get.rank_genes_groups_df(cells, "in").set_index("names")


def difference(table: MarkerTable, expected: object) -> float:
    """Return the largest difference of a figure, relative to scanpy's."""
    rows = expected.loc[table.names]
    return max(
        float(
            np.max(
                np.abs(getattr(table, figure) - rows[figure])
                / np.maximum(np.abs(rows[figure]), 1e-300)
            )
        )
        for figure in FIGURES
    )


def rare_genes() -> list[dict[str, object]]:
    """Return the share of p < 0.05 of genes that do not differ, and scipy's p."""
    from scipy.stats import mannwhitneyu

    rng, inside, rows = np.random.default_rng(0), np.arange(600) < 300, []
    for share in (0.02, 0.05, 0.2, 0.5):
        X = (rng.random((600, 500)) < share) * rng.poisson(1.5, (600, 500)) + 0.0
        row: dict[str, object] = {"cells that have the gene": f"{share:.0%}"}
        for name, test in TESTS.items():
            table = markers(X, inside, n_top=None, log1p=False, **test)
            row[f"{name}, p < 0.05"] = f"{(table.pvals < 0.05).mean():.1%}"
            if "tie_correct" in test:
                p = mannwhitneyu(X[inside], X[~inside], use_continuity=False).pvalue
                apart = np.abs(table.pvals - p[table.columns]).max()
                row["ties corrected, largest difference to scipy"] = f"{apart:.1g}"
        rows.append(row)
    return rows


def clusters_of_one_group(n_draws: int) -> list[dict[str, object]]:
    """Return how many genes differ between clusters of cells that are one group."""
    from clusters import components, counts, game
    from napari_embedding_game.core.graph.edges import build_edges
    from napari_embedding_game.core.graph.neighbors import knn_graph
    from napari_embedding_game.core.inspect.separation import measure_separation

    found: dict[tuple[str, str], list[int]] = {}
    answers = []
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        cells = counts([1_000], {}, rng)
        X = components(cells)
        tree, _, labels = game(X, build_edges(knn_graph(X), "mixed"), draw)
        is_first = (tree.cut(2) == 0)[labels]
        answers.append(
            measure_separation(X, np.flatnonzero(is_first), np.flatnonzero(~is_first))
        )
        groups = {"its two clusters": is_first, "drawn halves": rng.random(1_000) < 0.5}
        logs = np.log1p(1e4 * cells / cells.sum(axis=1, keepdims=True))
        for of, inside in groups.items():
            for name, test in TESTS.items():
                table = markers(logs, inside, n_top=None, **test)
                n_found = int((table.pvals_adj < 0.05).sum())
                found.setdefault((of, name), []).append(n_found)
    told = f"{sum(each.is_firm for each in answers)} of {n_draws}"
    heading = "genes with p adj. < 0.05"
    rows: list[dict[str, object]] = [
        {"cells of one group": of, "test": name, heading: str(n)}
        for (of, name), n in found.items()
    ]
    return [*rows, {"cells of one group": "called two groups", heading: told}]


def main() -> None:
    """Print the tables."""
    args = arguments(
        __doc__, tables={"nargs": "*", "default": TABLES, "choices": TABLES}
    )
    warnings.simplefilter("ignore")  # scanpy's own
    if "rare genes" in args.tables:
        report("Genes that do not differ, 600 cells", rare_genes(), args)
    if "clusters" in args.tables:
        n_draws = 2 if args.quick else 5
        report("Genes between clusters", clusters_of_one_group(n_draws), args)
    if "seconds" in args.tables:
        measure_seconds(args)


def measure_seconds(args: argparse.Namespace) -> None:
    """Print seconds and how far the figures are from scanpy's."""
    n_rows, n_columns = (5_000, 500) if args.quick else (100_000, 2_000)
    X = expression(n_rows, n_columns)
    inside = np.random.default_rng(1).random(n_rows) < 0.1
    names = [f"gene {column}" for column in range(n_columns)]
    rows = []
    for form, data in (("sparse", X), ("dense", X.toarray())):
        for method in MARKER_METHODS:
            markers(data[:100], inside[:100], method=method)  # compiles

            def ours(data=data, method=method):
                return markers(data, inside, names=names, method=method)

            def theirs(data=data, method=method):
                return of_scanpy(data, inside, names, method)

            table, seconds = timed(ours, args.repeats)
            expected, scanpy_seconds = timed(theirs)
            ratio = statistics.median(scanpy_seconds) / statistics.median(seconds)
            rows.append(
                {
                    "data": form,
                    "method": method,
                    "seconds": median(seconds),
                    "scanpy": median(scanpy_seconds),
                    "times faster": round(ratio, 1),
                    "largest relative difference": difference(table, expected),
                }
            )
    report(f"Markers of one cluster, {n_rows} x {n_columns}", rows, args)


if __name__ == "__main__":
    main()
