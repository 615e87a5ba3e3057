"""How many genes fit into a web page, its size, and the seconds to write it.

Counts of --data FOLDER (``covid_balf_counts.h5ad``, ``ifnb_pbmc_counts.h5ad``), and
100,000 cells drawn from those of ifnb, each count thinned to 90 %, so that no two cells
are the same.  Positions are random, barcodes too.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from napari_embedding_game.session.web_page import write_web_page
from shared import arguments, median, report, timed

FILES = {"COVID": "covid_balf_counts.h5ad", "ifnb": "ifnb_pbmc_counts.h5ad"}
N_DRAWN, KEPT, QUICK_ROWS = 100_000, 0.9, 500


def draw_cells(cells: Any, n_cells: int) -> Any:
    """Return so many cells, drawn with replacement and with thinned counts."""
    import anndata

    rng = np.random.default_rng(0)
    rows = rng.integers(0, cells.n_obs, n_cells)
    counts = sparse.csr_matrix(cells.X[rows])
    counts.data = rng.binomial(counts.data.astype(int), KEPT).astype(np.float32)
    counts.eliminate_zeros()
    letters = rng.choice([*"ACGT"], (n_cells, 16))
    names = pd.Index(["".join(row) for row in letters])
    return anndata.AnnData(counts, cells.obs.iloc[rows].set_axis(names), cells.var)


def measure_page(name: str, cells: Any, folder: Path, repeats: int) -> dict[str, Any]:
    """Write the page of some cells, and return what it holds as a row of a table."""
    cells.obsm["X_map"] = np.random.default_rng(1).normal(size=(cells.n_obs, 2))
    path = folder / "map.html"
    columns = [x for x in ("cell_type", "sample", "stim") if x in cells.obs]
    _, seconds = timed(
        lambda: write_web_page(cells, path, basis="X_map", columns=columns), repeats
    )
    found = re.search(r'id="payload"[^>]*>([^<]*)<', path.read_text("utf-8"))
    assert found is not None
    content = gzip.decompress(base64.b64decode(found[1]))
    length = int.from_bytes(content[:4], "little")
    genes = json.loads(content[4 : 4 + length])["genes"]
    return {
        "data": name,
        "cells": cells.n_obs,
        "genes of the data": genes["n_all"],
        "genes on the page": len(genes["names"]),
        "cells with values": genes["n_rows"],
        "steps": genes["n_steps"],
        "MB": path.stat().st_size / 1e6,
        "seconds": median(seconds),
    }


def load_cells(folder: Path, is_quick: bool) -> Iterator[tuple[str, Any]]:
    """Yield the cells of each file that is there, and those that are drawn."""
    import anndata

    for name, file in FILES.items():
        if not (folder / file).exists():
            print(f"{file} is not there.")
            continue
        cells = anndata.read_h5ad(folder / file)
        yield name, cells[:QUICK_ROWS].copy() if is_quick else cells
        if name == "ifnb":
            yield "ifnb, drawn", draw_cells(cells, QUICK_ROWS if is_quick else N_DRAWN)


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, 1)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        rows = [
            measure_page(name, cells, Path(folder), args.repeats)
            for name, cells in load_cells(args.data, args.quick)
        ]
    report("Web pages", rows, args)


if __name__ == "__main__":
    main()
