"""Seconds to find a cluster's markers, beside scanpy's on the same data.

One group of 10 % of the rows against the rest; counts after log1p, one value of
ten not 0.  scanpy works out every figure of the table as well (``pts=True``).
"""

from __future__ import annotations

import statistics
import warnings

import numpy as np
from scipy import sparse

from napari_embedding_game.core.inspect.markers import (
    MARKER_METHODS,
    MarkerTable,
    markers,
)
from shared import arguments, median, report, timed

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


def main() -> None:
    """Print seconds and how far the figures are from scanpy's."""
    args = arguments(__doc__)
    warnings.simplefilter("ignore")  # scanpy's own
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
