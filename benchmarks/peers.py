"""Whole fits beside other libraries: time and quality from 1,000 rows to 1,300,000.

    python benchmarks/peers.py --data FOLDER --write docs

MNIST, 50 principal components: rows drawn from its 70,000; above that, rows between
a row and one of its neighbours.  Each fit is a process of its own.  ``start, s`` has
the imports and a first fit of 5,000 rows, in which loops are compiled or read from a
cache; ``s`` is the whole fit that follows, neighbour search included, on all cores;
memory is the most that the process held.  Recall: share of the 15 exact input
neighbours that are among the 15 on the map, of 1,000 rows drawn at random; accuracy:
share of these rows whose label most of the 15 on the map have.  Every library has its
defaults; those that are not installed are left out, and said so, and no larger size is
tried after one that failed or took longer than ``--limit``.  ``slope`` is that of log s
over log rows, between the size above and this one.  A page that is there already keeps
its rows of other sizes, and how they were made.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shared import Input, arguments, facts, grown, load, median, report

SIZES = (1_000, 3_000, 10_000, 30_000, 70_000, 300_000, 1_300_000)
N_JUDGED = 1_000
N_NEIGHBORS = 15
N_FIRST = 5_000
"""From 4,096 rows on umap-learn has another search, which is compiled as well."""


def game(X: np.ndarray, **options: Any) -> np.ndarray:
    """Fit our default, or what the options say."""
    from napari_embedding_game.core.estimator import EmbeddingGame, to_parameters

    model = EmbeddingGame(**to_parameters({"random_state": 0, **options}))
    return np.asarray(model.fit_transform(X))


def our_tsne(X: np.ndarray) -> np.ndarray:
    """Fit our t-SNE."""
    return game(X, method="tsne")


def our_umap(X: np.ndarray) -> np.ndarray:
    """Fit our UMAP."""
    return game(X, method="umap")


def umap_learn(X: np.ndarray) -> np.ndarray:
    """Fit umap-learn; without a seed, for with one it uses one core."""
    from umap import UMAP

    return np.asarray(UMAP().fit_transform(X))


def opentsne(X: np.ndarray) -> np.ndarray:
    """Fit openTSNE."""
    from openTSNE import TSNE

    return np.asarray(TSNE(n_jobs=-1, random_state=0).fit(X))


def pacmap(X: np.ndarray) -> np.ndarray:
    """Fit PaCMAP; without a seed, as umap-learn."""
    from pacmap import PaCMAP

    return np.asarray(PaCMAP().fit_transform(X))


def pymde(X: np.ndarray) -> np.ndarray:
    """Fit PyMDE, its problem that preserves neighbours."""
    import pymde as library

    return np.asarray(library.preserve_neighbors(X, verbose=False).embed())


def torchdr_umap(X: np.ndarray) -> np.ndarray:
    """Fit the UMAP of TorchDR, on the GPU where torch has one."""
    from torchdr import UMAP

    return np.asarray(UMAP(random_state=0).fit_transform(X))


def write_table(X: np.ndarray) -> Path:
    """Write rows as a table of text into a new folder, and return its path."""
    table = Path(tempfile.mkdtemp()) / "X.csv"
    heading = ",".join(f"x{i}" for i in range(X.shape[1]))  # annembed takes one away
    np.savetxt(table, X, fmt="%.5g", delimiter=",", header=heading, comments="")
    return table


def annembed(table: Path) -> np.ndarray:
    """Fit annembed, which reads and writes tables of text."""
    from annembed import embed

    out = table.with_name("Y.csv")
    embed(str(table), outfile=str(out))
    found = np.loadtxt(out, delimiter=",")
    shutil.rmtree(table.parent)
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """A library's fit, and the module that has to be there."""

    fit: Callable[[Any], np.ndarray]
    module: str = "napari_embedding_game"
    most: int = SIZES[-1]
    """Rows above which it is not tried: hours, or more memory than 16 GiB."""
    prepare: Callable[[np.ndarray], Any] = np.asarray
    """Makes what ``fit`` takes of the rows, outside of its seconds."""


WAYS = {
    "game": Way(game),
    "t-SNE, ours": Way(our_tsne),
    "UMAP, ours": Way(our_umap),
    "umap-learn": Way(umap_learn, "umap"),
    "openTSNE": Way(opentsne, "openTSNE", 300_000),
    "PaCMAP": Way(pacmap, "pacmap"),
    "PyMDE": Way(pymde, "pymde", 300_000),
    "TorchDR, UMAP": Way(torchdr_umap, "torchdr", 300_000),
    "annembed": Way(annembed, "annembed", 300_000, write_table),
}
PEER = "umap-learn"

OPTIONS: dict[str, dict[str, Any]] = {
    "sizes": {"nargs": "+", "type": int, "default": list(SIZES)},
    "ways": {"nargs": "+", "choices": list(WAYS), "default": list(WAYS)},
    "limit": {"type": float, "default": 1800, "help": "seconds a fit may take"},
    "write": {"type": Path, "help": "folder for benchmarks.md and its picture"},
    "one": {"nargs": 3, "metavar": ("WAY", "ROWS", "MAP"), "help": "a single fit"},
}


# --- One fit, in a process of its own


def fit_one(name: str, rows: Path, target: Path) -> None:
    """Fit the rows, write the map, print the seconds and the memory."""
    X = np.load(rows)
    way, rng = WAYS[name], np.random.default_rng(0)
    first = rng.normal(size=(N_FIRST, X.shape[1])).astype(np.float32)
    begin = time.perf_counter()
    way.fit(way.prepare(first))
    given, ready = way.prepare(X), time.perf_counter()
    embedding = way.fit(given)
    end = time.perf_counter()
    np.save(target, np.asarray(embedding, dtype=np.float32))
    told = {"start": ready - begin, "s": end - ready, "GiB": peak_memory()}
    print(json.dumps(told))


def peak_memory() -> float:
    """Return the most memory that this process held, GiB; NaN where Linux is not."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def fit_apart(
    name: str, rows: Path, target: Path, limit: float
) -> dict[str, float] | str:
    """Return what a process of its own prints, or why there is nothing."""
    command = [sys.executable, "-W", "ignore", __file__, "--one", name, rows, target]
    try:
        ran = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"above {limit:,.0f} s"
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["ended"])[-1]
        return f"failed: {last[:80]}"
    told: dict[str, float] = json.loads(ran.stdout.strip().splitlines()[-1])
    return told


# --- Data and quality


def nearest(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the 15 exact neighbours of some rows, (n, 15)."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1, n_jobs=-1).fit(X)
    found = search.kneighbors(X[rows], return_distance=False)
    # The row itself is left out, wherever among its equals it stands.
    is_self = found == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return found[~is_self].reshape(len(rows), N_NEIGHBORS)


def judged(
    data: Input, embedding: np.ndarray, rows: np.ndarray, exact: np.ndarray
) -> dict[str, float]:
    """Return accuracy and recall of a map, on some of its rows."""
    on_map = nearest(embedding, rows)
    kept = (on_map[:, :, None] == exact[:, None]).sum(axis=(1, 2))
    labels, codes = np.unique(data.labels, return_inverse=True)
    votes = np.zeros((len(rows), len(labels)), int)
    np.add.at(votes, (np.arange(len(rows))[:, None], codes[on_map]), 1)
    return {
        "accuracy": float((votes.argmax(axis=1) == codes[rows]).mean()),
        "recall": float(kept.mean()) / N_NEIGHBORS,
    }


# --- The table


def measure(data: Input, args: Any, folder: Path) -> list[dict[str, Any]]:
    """Fit each way to each size."""
    table: list[dict[str, Any]] = []
    given_up: set[str] = set()
    for size in args.sizes:
        part = grown(data, size)
        rows = np.random.default_rng(1).choice(size, min(N_JUDGED, size), replace=False)
        exact = nearest(part.X, rows)
        source = folder / "rows.npy"
        np.save(source, part.X)
        of_size: list[dict[str, Any]] = []
        for name in args.ways:
            way = WAYS[name]
            is_there = importlib.util.find_spec(way.module) is not None
            if not is_there or size > way.most or name in given_up:
                continue
            fits = []
            for _ in range(args.repeats):
                target = folder / "map.npy"
                told = fit_apart(name, source, target, args.limit)
                if isinstance(told, str):
                    print(f"{name}, {size:,} rows: {told}", flush=True)
                    given_up.add(name)
                    break
                fits.append(told | judged(part, np.load(target), rows, exact))
            if fits:
                of_size.append(row_of(size, name, fits))
                print(of_size[-1], flush=True)
        peer = next((row["fits"] for row in of_size if row["way"] == PEER), None)
        for row in of_size:
            taken = row.pop("fits")
            row[f"to {PEER}"] = (
                _ratio([s / statistics.median(peer) for s in taken]) if peer else "–"
            )
        table += of_size
    return with_slopes(table)


def _ratio(ratios: list[float]) -> str:
    """Return "median (least to most)", or the only figure."""
    middle = f"{statistics.median(ratios):.3g}"
    if len(ratios) == 1:
        return middle
    return f"{middle} ({min(ratios):.3g} to {max(ratios):.3g})"


def with_slopes(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a table in the order of sizes, with the slope of each way between them."""
    table = sorted(table, key=_rows_of)  # which leaves ways of one size in order
    last: dict[str, tuple[int, float]] = {}
    for row in table:
        size, seconds = _rows_of(row), _seconds_of(row)
        slope: float | str = "–"
        if row["way"] in last:
            before, then = last[row["way"]]
            slope = round(float(np.log(seconds / then) / np.log(size / before)), 2)
        last[row["way"]] = size, seconds
        row["slope"] = slope
    return table


def _rows_of(row: dict[str, Any]) -> int:
    return int(row["rows"].replace(",", ""))


def _seconds_of(row: dict[str, Any]) -> float:
    return float(row["s"].split()[0])


def row_of(size: int, name: str, fits: list[dict[str, float]]) -> dict[str, Any]:
    """Return a row of the table; ``fits`` has the seconds of each."""

    def middle(key: str) -> float:
        return statistics.median(fit[key] for fit in fits)

    return {
        "rows": f"{size:,}",
        "way": name,
        "start, s": f"{middle('start'):.1f}",
        "s": median([fit["s"] for fit in fits]),
        "slope": "–",
        "GiB": round(middle("GiB"), 2),
        "accuracy": round(middle("accuracy"), 3),
        "recall": round(middle("recall"), 3),
        "fits": [fit["s"] for fit in fits],
    }


def write(table: list[dict[str, Any]], folder: Path, command: str) -> None:
    """Write ``benchmarks.md`` and its picture into a folder."""
    page, picture = folder / "benchmarks.md", folder / "images" / "benchmarks.png"
    before = page.read_text() if page.exists() else ""
    new = {row["rows"] for row in table}
    kept = [row for row in rows_on(before) if row["rows"] not in new]
    table = with_slopes([*kept, *table])
    draw(table, picture)
    known = facts()
    told = "; ".join(f"{key} {value}" for key, value in known.items())
    head = list(table[0])
    made = [line for line in before.split("\n\n") if line.startswith("Made by")]
    sizes = ", ".join(sorted(new, key=len))
    lines = [
        "# Beside other libraries",
        "",
        *(paragraph + "\n" for paragraph in made if kept),
        f"Made by `{command}`, {sizes} rows ({told}).",
        "",
        "The script's head and [measuring](measuring.md) tell how to read it.",
        "",
        "![seconds over rows, and recall over seconds](images/benchmarks.png)",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *(
            "| "
            + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in values)
            + " |"
            for values in (list(row.values()) for row in table)
        ),
        "",
    ]
    page.write_text("\n".join(lines))


def rows_on(page: str) -> list[dict[str, Any]]:
    """Return the rows of the table on a page that was written before."""
    lines = [line[2:-2] for line in page.splitlines() if line.startswith("| ")]
    if not lines:
        return []
    head, *cells = (line.split(" | ") for line in lines)
    rows = [dict(zip(head, values, strict=True)) for values in cells]
    figures = ("GiB", "accuracy", "recall")
    return [row | {key: float(row[key]) for key in figures} for row in rows]


def draw(table: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds over rows, and recall over seconds at the largest common size."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    names = list(dict.fromkeys(row["way"] for row in table))
    sizes = list(dict.fromkeys(row["rows"] for row in table))
    counts = {size: sum(row["rows"] == size for row in table) for size in sizes}
    common = [size for size in sizes if counts[size] == len(names)] or sizes
    for name in names:
        rows = [row for row in table if row["way"] == name]
        x, y = [_rows_of(row) for row in rows], [_seconds_of(row) for row in rows]
        own = WAYS[name].module == "napari_embedding_game"
        style = "-o" if own else "--s"
        left.loglog(x, y, style, label=name, markersize=4)
        at = [row for row in rows if row["rows"] == common[-1]]
        if at:
            place = _seconds_of(at[0]), at[0]["recall"]
            right.semilogx(*place, style[-1])
            right.annotate(name, place, textcoords="offset points", xytext=(5, 4))
    left.set(xlabel="rows", ylabel="seconds of the whole fit")
    left.legend(fontsize="small")
    right.set(
        xlabel="seconds of the whole fit",
        ylabel="recall of 15 neighbours",
        title=f"{common[-1]} rows",
    )
    right.margins(x=0.35)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Fit, print the table, write the page."""
    if "--one" in sys.argv:
        name, rows, target = sys.argv[sys.argv.index("--one") + 1 :]
        fit_one(name, Path(rows), Path(target))
        return
    args = arguments(__doc__, repeats=1, **OPTIONS)
    if args.quick:
        args.sizes = [size for size in args.sizes if size <= 3_000]
    for name in args.ways:
        if importlib.util.find_spec(WAYS[name].module) is None:
            print(f"Left out {name}: {WAYS[name].module} is not installed.", flush=True)
    data = load("mnist", args)
    if data is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        table = measure(data, args, Path(folder))
    report("Whole fits", table, args)
    if args.write is not None and table:
        given = ["FOLDER" if part == str(args.data) else part for part in sys.argv[1:]]
        write(
            table,
            args.write,
            shlex.join(["python", "benchmarks/peers.py", *given]),
        )


if __name__ == "__main__":
    main()
