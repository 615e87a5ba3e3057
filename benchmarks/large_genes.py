"""Memory and seconds to look at genes of a file that is larger than the memory.

A file with counts of N cells x G genes is written in parts (log-normal rates of genes,
four kinds of cells with genes of their own), as CSR or CSC.  Then a process of its own,
which may be allowed some gigabytes only (``--limit``), reads it as the window does and
colours by a gene, compares a cluster with all other cells and fills a dot plot.

    python benchmarks/large_genes.py --rows 1000000 --columns 20000 --per-row 300
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

GB = 1e9
KINDS = 4
_WRITTEN = 20_000
"""Rows that are made at a time."""


def main() -> None:
    """Write the file, and measure in another process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--per-row", type=int, default=300, help="genes found a cell")
    parser.add_argument("--form", choices=("csr", "csc"), default="csr")
    parser.add_argument("--gzip", action="store_true", help="pack the file")
    parser.add_argument("--limit", type=float, help="GiB of address space allowed")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--quick", action="store_true", help="a file of 20 MB")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure is not None:
        measure(args.measure)
        return
    if args.quick:
        args.rows, args.columns = 20_000, 2_000
    folder = Path(tempfile.mkdtemp(prefix="large-genes-", dir=args.folder))
    try:
        path = folder / f"cells_{args.form}.h5ad"
        write(path, args)
        print(f"{path.name}: {path.stat().st_size / GB:.2f} GB", flush=True)
        for turn in ("first", "again"):
            print(f"-- {turn} --", flush=True)
            run(path, folder, args)
        cache = sum(f.stat().st_size for f in (folder / "cache").rglob("*.*"))
        print(f"cache: {cache / GB:.2f} GB")
    finally:
        shutil.rmtree(folder)


def run(path: Path, folder: Path, args: argparse.Namespace) -> None:
    """Measure in a process that knows nothing yet."""

    def bound() -> None:
        if args.limit:
            n_bytes = int(args.limit * 2**30)
            resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))

    environment = {
        **os.environ,
        "NAPARI_EMBEDDING_GAME_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
    }
    subprocess.run(
        [sys.executable, __file__, "--measure", str(path)],
        check=True,
        env=environment,
        preexec_fn=bound,
    )


def rows(n: int, n_columns: int, per_row: int, rng: np.random.Generator) -> Any:
    """Return counts of n cells, CSR float32, and the kind of each."""
    rates = np.random.default_rng(0).lognormal(0, 1.5, n_columns)
    kinds = rng.integers(0, KINDS, n)
    # Genes are drawn by their rates; one in ten is found more in one kind of cell.
    drawn = np.searchsorted(
        np.cumsum(rates) / rates.sum(), rng.random((n, per_row)), side="right"
    ).astype(np.int32)
    drawn = np.minimum(drawn, n_columns - 1)
    is_own = (drawn % 10 == 0) & (drawn // 10 % KINDS != kinds[:, None])
    drawn[is_own & (rng.random(drawn.shape) < 0.5)] = 0
    data = 1 + rng.geometric(0.7, drawn.shape).astype(np.float32)
    indptr = np.arange(0, n * per_row + 1, per_row)
    matrix = sp.csr_matrix((data.ravel(), drawn.ravel(), indptr), (n, n_columns))
    matrix.sum_duplicates()
    return matrix, kinds


def write(path: Path, args: argparse.Namespace) -> None:
    """Write the file part by part; as CSC, from CSR by way of columns in parts."""
    import h5py
    import pandas as pd
    from anndata import AnnData

    rng = np.random.default_rng(1)
    obs = pd.DataFrame(index=pd.RangeIndex(args.rows).astype(str))
    var = pd.DataFrame(index=[f"gene{i}" for i in range(args.columns)])
    adata = AnnData(obs=obs, var=var)
    kinds = []
    packed = {"compression": "gzip", "compression_opts": 1} if args.gzip else {}
    options: dict[str, Any] = {"maxshape": (None,), "chunks": (1 << 17,), **packed}
    adata.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        if "X" in file:
            del file["X"]
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        X.attrs["shape"] = np.array([args.rows, args.columns])
        data = X.create_dataset("data", (0,), "f4", **options)
        indices = X.create_dataset("indices", (0,), "i4", **options)
        indptr, parts = [np.zeros(1, np.int64)], []
        for begin in range(0, args.rows, _WRITTEN):
            n = min(_WRITTEN, args.rows - begin)
            part, of_part = rows(n, args.columns, args.per_row, rng)
            kinds.append(of_part)
            at = len(data)
            if args.form == "csr":
                for array, values in ((data, part.data), (indices, part.indices)):
                    array.resize((at + part.nnz,))
                    array[at:] = values
                indptr.append(part.indptr[1:].astype(np.int64) + indptr[-1][-1])
            else:
                parts.append(_small(part.tocsc()))
        if args.form == "csc":
            X.attrs["encoding-type"] = "csc_matrix"
            indptr += _write_columns(data, indices, parts, args.columns)
        X["indptr"] = np.concatenate(indptr)
        of_all = np.concatenate(kinds)
        centers = np.random.default_rng(2).normal(size=(KINDS, 50)) * 3
        noise = rng.normal(size=(args.rows, 50)).astype(np.float32)
        components = file["obsm"].create_dataset(
            "X_pca", data=noise + centers[of_all].astype(np.float32)
        )
        components.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        kind = file["obs"].create_dataset("kind", data=of_all)
        kind.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        file["obs"].attrs["column-order"] = np.array(["kind"], dtype=object)


def _small(part: Any) -> tuple[Any, ...]:
    return part.data.astype(np.uint8), part.indices.astype(np.uint16), part.indptr


def _write_columns(
    data: Any, indices: Any, parts: list[tuple[Any, ...]], n_columns: int
) -> list[Any]:
    """Write CSC from parts of rows, 500 columns at a time; return its indptr."""
    ends, total = [], 0
    for first in range(0, n_columns, 500):
        last = min(first + 500, n_columns)
        blocks = []
        for values, places, pointers in parts:
            part = slice(pointers[first], pointers[last])
            size = _WRITTEN if len(blocks) < len(parts) - 1 else None
            own = pointers[first : last + 1] - pointers[first]
            shape = (size or int(places.max(initial=0)) + 1, last - first)
            blocks.append(
                sp.csc_matrix(
                    (values[part].astype("f4"), places[part].astype("i4"), own), shape
                )
            )
        block = sp.vstack(blocks, "csc")
        for array, values in ((data, block.data), (indices, block.indices)):
            array.resize((total + block.nnz,))
            array[total:] = values
        ends.append(block.indptr[1:].astype(np.int64) + total)
        total += block.nnz
    return ends


def measure(path: Path) -> None:
    """Read the file as the window does, and print what each look costs."""
    from napari_embedding_game.core.inspect.markers import finished, iter_markers
    from napari_embedding_game.data.gene_sets import GeneSet, score_genes
    from napari_embedding_game.session.cluster_expression import (
        iter_cluster_expression,
    )
    from napari_embedding_game.session.cluster_report import Reporter
    from napari_embedding_game.session.sources import FileSource, ReadOptions

    stages = FileSource(path).read(ReadOptions())
    loaded = timed("read, genes at hand", lambda: _last(stages))
    dataset = loaded.dataset
    kinds = dataset.obs["kind"].to_numpy()
    expression = dataset.expression
    timed("colour by a gene", lambda: expression.column(1234 % len(kinds)))
    timed("colour by another", lambda: expression.column(777))
    timed("the same gene again", lambda: expression.column(777))

    def compared(method: str) -> Callable[[], Any]:
        return lambda: finished(
            iter_markers(
                expression.values,
                kinds == 1,
                None,
                dataset.profile_names,
                method=method,
                n_top=None,
                log1p=expression.is_log1p,
            )
        )

    table = timed("markers, Wilcoxon", compared("wilcoxon"))
    timed("markers, t-test", compared("t-test"))
    genes = [str(name) for name in table.names[:10]]
    timed(
        "dot plot of 10 genes",
        lambda: _last(iter_cluster_expression(dataset, kinds, range(KINDS), genes)),
    )
    timed("differences of a cluster", lambda: Reporter(dataset).contrasts(kinds == 1))
    timed("score of 10 genes", lambda: score_genes(dataset, GeneSet("ten", genes)))
    print(json.dumps({"leading": genes[:4]}))
    meanwhile(expression, compared("wilcoxon"))


def meanwhile(expression: Any, compare: Callable[[], Any]) -> None:
    """Print how long the window waits for a gene while a worker compares."""
    worker = threading.Thread(target=compare)
    worker.start()
    waits, gene = [], 100
    while worker.is_alive():
        begin = time.perf_counter()
        expression.column(gene)
        waits.append(time.perf_counter() - begin)
        gene += 1
        time.sleep(0.2)
    worker.join()
    print(
        f"a gene while markers are compared: {np.median(waits):.3f} s, the longest of "
        f"{len(waits)} {max(waits):.3f} s"
    )


def _last(stages: Any) -> Any:
    while True:
        try:
            next(stages)
        except StopIteration as end:
            return end.value


def timed(what: str, job: Callable[[], Any]) -> Any:
    """Do a job; print its seconds, and the most memory of the process until then."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = job()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:25} {wall:8.2f} s {cpu:8.2f} s of processor {peak:6.2f} GiB peak")
    sys.stdout.flush()
    return found


if __name__ == "__main__":
    main()
