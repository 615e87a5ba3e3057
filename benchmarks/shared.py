"""What the benchmarks share: data, repeats, the machine's facts, and tables.

``--data FOLDER`` is looked through for ``mnist_70k.npz``, ``mnist_2000.npz``,
``coil20_32.npz`` and ``newsgroups_5000.npz`` (arrays ``X`` and ``y``),
``glove_words_5000.npz`` (``X`` and ``category``), ``nuclei_dsb2018/nuclei.csv``
(measures from ``area`` to ``extent``, ``modality``), ``covid_balf_counts.h5ad`` and
``ifnb_pbmc_counts.h5ad`` (counts) and ``pbmc3k_lognorm.h5ad`` (``obsm["X_pca"]``), all
three with ``obs["cell_type"]``.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot

QUICK_ROWS = 3_000
GROWN_ROWS, GROWN_BETWEEN = 150_000, 15
"""Rows of a set that is made larger, drawn between so many neighbours."""
PACKAGES = ("numpy", "numba", "torch", "umap-learn", "napari")


@dataclass(frozen=True, slots=True)
class Input:
    """X (N, D) float32 and a label of each row."""

    name: str
    X: np.ndarray
    labels: np.ndarray

    def some(self, n_rows: int, seed: int = 0) -> Input:
        """Return ``n_rows`` rows drawn at random, or all if there are not so many."""
        if n_rows >= len(self.X):
            return self
        rows = np.random.default_rng(seed).choice(len(self.X), n_rows, replace=False)
        return replace(self, X=self.X[rows], labels=self.labels[rows])


# --- Data


def _arrays(path: Path, divisor: float = 255) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return file["X"].astype(np.float32) / divisor, file["y"]


def _mnist_50(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.decomposition import PCA

    X, y = _arrays(path)
    pca = PCA(50, svd_solver="randomized", random_state=0)
    return pca.fit_transform(X).astype(np.float32), y


def _from_counts(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Go scanpy's usual way from counts to 50 principal components."""
    import anndata
    import scanpy as sc

    cells = anndata.read_h5ad(path)
    sc.pp.filter_genes(cells, min_cells=3)
    sc.pp.normalize_total(cells, target_sum=1e4)
    sc.pp.log1p(cells)
    sc.pp.highly_variable_genes(cells, n_top_genes=2000)
    cells = cells[:, cells.var["highly_variable"]].copy()
    sc.pp.scale(cells, max_value=10)
    sc.pp.pca(cells, n_comps=50, random_state=0)
    return _components(cells)


def _pbmc(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import anndata

    return _components(anndata.read_h5ad(path))


def _components(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    X = np.ascontiguousarray(cells.obsm["X_pca"], dtype=np.float32)
    return X, cells.obs["cell_type"].astype(str).to_numpy()


def _as_they_are(path: Path) -> tuple[np.ndarray, np.ndarray]:
    return _arrays(path, 1)


def _words(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return file["X"].astype(np.float32), file["category"]


def _nuclei(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the measures of nuclei, standardised, and how they were stained."""
    import pandas as pd

    table = pd.read_csv(path)
    measures = table.loc[:, "area":"extent"].to_numpy(np.float32)
    scaled = (measures - measures.mean(axis=0)) / measures.std(axis=0)
    return scaled, table["modality"].to_numpy(str)


def _of_sklearn(name: str) -> Callable[[Path], tuple[np.ndarray, np.ndarray]]:
    """Return the reader of a set that scikit-learn brings; digits as they are."""

    def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
        from sklearn import datasets
        from sklearn.preprocessing import scale

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return (X if name == "digits" else scale(X)).astype(np.float32), y

    return read


def grown(data: Input, n_rows: int, seed: int = 0) -> Input:
    """Return rows of the data, or more of them, each between a row and a neighbour."""
    from napari_embedding_game.core.graph.neighbors import knn_graph

    if n_rows <= len(data.X):
        return data.some(n_rows, seed)
    rng = np.random.default_rng(seed)
    neighbors = knn_graph(data.X, GROWN_BETWEEN).indices
    rows = rng.integers(len(data.X), size=n_rows)
    others = neighbors[rows, rng.integers(GROWN_BETWEEN, size=n_rows)]
    share = rng.random((n_rows, 1), dtype=np.float32)
    X = data.X[rows]
    X += share * (data.X[others] - X)
    return Input(data.name, X, data.labels[rows])


def _mnist_grown(path: Path) -> tuple[np.ndarray, np.ndarray]:
    found = grown(Input("", *_mnist_50(path)), GROWN_ROWS)
    return found.X, found.labels


def _swiss_roll(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_swiss_roll

    X, t = make_swiss_roll(5_000, random_state=0)
    return X.astype(np.float32), np.digitize(t, np.quantile(t, np.arange(1, 10) / 10))


SOURCES: dict[str, tuple[str, Callable[[Path], tuple[np.ndarray, np.ndarray]]]] = {
    "mnist": ("mnist_70k.npz", _mnist_50),
    "mnist pixels": ("mnist_70k.npz", _arrays),
    "covid": ("covid_balf_counts.h5ad", _from_counts),
    "pbmc": ("pbmc3k_lognorm.h5ad", _pbmc),
    "coil20": ("coil20_32.npz", _arrays),
    "ifnb": ("ifnb_pbmc_counts.h5ad", _from_counts),
    "mnist 2000": ("mnist_2000.npz", _arrays),
    "newsgroups": ("newsgroups_5000.npz", _as_they_are),
    "words": ("glove_words_5000.npz", _words),
    "nuclei": ("nuclei_dsb2018/nuclei.csv", _nuclei),
    "digits": ("", _of_sklearn("digits")),
    "iris": ("", _of_sklearn("iris")),
    "wine": ("", _of_sklearn("wine")),
    "breast cancer": ("", _of_sklearn("breast_cancer")),
    "swiss roll": ("", _swiss_roll),
    "mnist grown": ("mnist_70k.npz", _mnist_grown),
}
"""File in the data folder, and how to read it; scikit-learn brings the digits."""


def load(name: str, args: argparse.Namespace) -> Input | None:
    """Return an input, fewer rows of it with ``--quick``; None if it is not there."""
    file, read = SOURCES[name]
    path = args.data / file
    if not path.exists():
        print(f"Skipped {name}: there is no {file} in {args.data}.", flush=True)
        return None
    found = Input(name, *read(path))
    return found.some(QUICK_ROWS) if args.quick else found


def load_all(names: Iterable[str], args: argparse.Namespace) -> Iterator[Input]:
    """Yield the inputs that are there."""
    for name in names:
        found = load(name, args)
        if found is not None:
            yield found


# --- Doing and timing


def finish(
    edges: Edges, layout: np.ndarray, settings: Settings | None = None, seed: int = 0
) -> Snapshot:
    """Play a game to the end of its schedule and return the last snapshot."""
    chosen = replace(settings or Settings(), random_state=seed)
    game = play(edges, layout, chosen, diagnose=False)
    return next(snapshot for snapshot in game if snapshot.finished)


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[Any, list[float]]:
    """Return the last result and the seconds of every repeat."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - begin)
    return result, seconds


def median(seconds: list[float]) -> str:
    """Return "median (least to most)", or the only figure."""
    middle = f"{statistics.median(seconds):.2f}"
    if len(seconds) == 1:
        return middle
    return f"{middle} ({min(seconds):.2f} to {max(seconds):.2f})"


# --- Saying it


def arguments(
    description: str | None, repeats: int = 3, **options: dict[str, Any]
) -> argparse.Namespace:
    """Read the command line: the common options and those of one script."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path(), help="folder that holds the data sets"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small size, to see that it works"
    )
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--json", type=Path, help="also write facts and rows here")
    for name, option in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **option)
    args = parser.parse_args()
    print(_sentence(facts()), flush=True)
    return args


def report(title: str, rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print a Markdown table; with ``--json`` also add it to that file."""
    print(f"\n**{title}**\n")
    if rows:
        print("| " + " | ".join(rows[0]) + " |")
        print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(map(_text, row.values())) + " |")
    print(flush=True)
    if args.json is not None:
        known = json.loads(args.json.read_text()) if args.json.exists() else []
        known.append({"title": title, "facts": facts(), "rows": rows})
        args.json.write_text(json.dumps(known, indent=1, default=str))


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def facts() -> dict[str, Any]:
    """Return what a figure depends on besides the code."""
    cores = os.cpu_count()
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{_processor()}, {cores} cores, {platform.system()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _sentence(found: dict[str, Any]) -> str:
    return "; ".join(f"{name} {value}" for name, value in found.items())
