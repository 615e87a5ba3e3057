"""New rows on a finished map: transform, beside a fit of all rows and umap-learn.

A tenth of the rows is held out, drawn by the seed.  Accuracy: share of them whose label
is that of most of the 15 nearest fitted rows on the map.  Recall: share of their 15
nearest fitted rows in the data that are among the 15 nearest on the map.  "all rows"
is a fit of all rows, in which the held-out ones are judged in the same way.  Figures
are the mean over the seeds, and their standard deviation.

"ms/row" is of transform, the search's index included, in a process in which everything
is compiled; "fit s" of the fit before it.  "back" is how far rows land from their own
place, as a share of the map's span, median: "same" where fitted rows are given back,
"near" where noise is added to them, a tenth as far as their nearest neighbour is.

``--unlike`` prints instead how many rows are called unlike all fitted rows, as
``transform`` does: the share of rows whose ``score_samples`` is below 0.01, and in how
many calls ``transform`` warns.  Of at most ``MAX_ROWS`` rows a tenth is held out:

- of the same kinds: the tenth as it is
- a label left out: rows of one label, on a map without it, each label in turn
- all but one label's: the tenth beside it, without rows of this label
- permuted: the values of each row of the tenth in random order
- margins: each column drawn from that of the fitted rows, independent of the others
- x 2, x 1e6: the tenth multiplied
- one row x 1e6: the tenth with its first row multiplied; the share is of that row
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.new_rows.likeness import UNLIKE
from napari_embedding_game.core.new_rows.search import FittedSearch
from shared import Input, arguments, load_all, report

INPUTS = ("mnist", "pbmc", "covid", "ifnb", "digits")
UNLIKE_INPUTS = (*INPUTS, "coil20", "mnist 2000", "newsgroups", "words", "nuclei")
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "peer-seeds": {"type": int, "default": 1, "help": "0 leaves umap-learn out"},
    "inputs": {"nargs": "+", "choices": UNLIKE_INPUTS, "default": INPUTS},
    "methods": {"nargs": "+", "default": ["game"]},
    "unlike": {"action": "store_true", "help": "rows that are called unlike"},
}
MAX_ROWS = 5_000
MAX_LABELS = 20
"""Most labels that are left out, the most frequent ones."""
FEWEST = 10
"""Rows of a label that is left out."""
N_NEIGHBORS = 15
NEAR = 0.1


def held_out(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fitted rows and the tenth that is held out."""
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[n_rows // 10 :]), np.sort(order[: n_rows // 10])


def nearest(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the nearest ``others`` of each row, exactly."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=N_NEIGHBORS, algorithm="brute").fit(others)
    return search.kneighbors(rows, return_distance=False)


def judge(
    placed: np.ndarray,
    fitted: np.ndarray,
    exact: np.ndarray,
    labels: np.ndarray,
    fitted_labels: np.ndarray,
) -> tuple[float, float]:
    """Return accuracy and recall of new rows on a map of fitted ones."""
    near = nearest(placed, fitted)
    _, numbers = np.unique(fitted_labels, return_inverse=True)
    votes = numbers[near]
    n_labels = numbers.max() + 1
    counts = np.apply_along_axis(np.bincount, 1, votes, minlength=n_labels)
    winners = np.unique(fitted_labels)[counts.argmax(axis=1)]
    kept = (exact[:, :, None] == near[:, None, :]).any(axis=2)
    return float((winners == labels).mean()), float(kept.mean())


def umap_learn(seed: int) -> Any:
    """Return umap-learn with defaults; a seed would tie it to one core."""
    import umap

    np.random.seed(seed)  # noqa: NPY002  where umap-learn takes its numbers from
    return umap.UMAP()


def ours(method: str) -> Callable[[int], Any]:
    """Return what makes our estimator."""
    return lambda seed: EmbeddingGame(method=method, random_state=seed)


def run(data: Input, make: Callable[[int], Any], seed: int) -> dict[str, float]:
    """Fit nine tenths, place the tenth, and judge."""
    old, new = held_out(len(data.X), seed)
    fitted, rows = data.X[old], data.X[new]
    exact = nearest(rows, fitted)
    labels = data.labels[new], data.labels[old]
    model = make(seed)
    begin = time.perf_counter()
    model.fit(fitted)
    middle = time.perf_counter()
    placed = model.transform(rows)
    end = time.perf_counter()
    accuracy, recall = judge(placed, model.embedding_, exact, *labels)
    found = {
        "accuracy": accuracy,
        "recall": recall,
        "ms/row": 1e3 * (end - middle) / len(rows),
        "fit s": middle - begin,
    }
    if isinstance(model, EmbeddingGame):
        everything = make(seed).fit_transform(data.X)
        all_rows = judge(everything[new], everything[old], exact, *labels)
        found["accuracy, all rows"], found["recall, all rows"] = all_rows
        found |= back(model, fitted, seed)
    return found


def back(model: Any, fitted: np.ndarray, seed: int) -> dict[str, float]:
    """Return how far fitted rows land from their places, a share of the span."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(len(fitted), min(2_000, len(fitted)), replace=False))
    rows, places = fitted[some], model.embedding_[some]
    rho = FittedSearch(fitted, "euclidean")(rows, 2)[1][:, 1:]
    noise = rng.normal(size=rows.shape)
    noise *= NEAR * rho / np.linalg.norm(noise, axis=1, keepdims=True)
    span = np.ptp(model.embedding_, axis=0).max()
    moved = {
        "back, same": model.transform(rows) - places,
        "back, near": model.transform((rows + noise).astype(np.float32)) - places,
    }
    return {
        name: float(np.median(np.linalg.norm(by, axis=1)) / span)
        for name, by in moved.items()
    }


def summary(name: str, way: str, found: list[dict[str, float]]) -> dict[str, Any]:
    """Return a row of the table: mean and standard deviation over the seeds."""
    row: dict[str, Any] = {"data": name, "way": way, "seeds": len(found)}
    for key in (
        "accuracy", "accuracy, all rows", "recall", "recall, all rows", "ms/row",
        "fit s", "back, same", "back, near",
    ):  # fmt: skip
        values = [each[key] for each in found if key in each]
        spread = f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else ""
        row[key] = f"{statistics.mean(values):.4g}{spread}" if values else ""
    return row


# --- Rows that are called unlike


def called_unlike(model: EmbeddingGame, rows: np.ndarray) -> tuple[float, bool]:
    """Return the share of rows that are unlike, and whether transform warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(rows)
    is_told = any("unlike all fitted rows" in str(one.message) for one in caught)
    return float((model.score_samples(rows) < UNLIKE).mean()), is_told


def unlike(data: Input, seed: int) -> dict[str, list[tuple[float, bool]]]:
    """Return for each kind of rows what each call finds."""
    rng = np.random.default_rng(seed)
    old, new = held_out(len(data.X), seed)
    fitted, rows = data.X[old], data.X[new]
    model = fitted_quickly(fitted)
    one = rows.copy()
    one[0] *= 1e6
    found = {
        "of the same kinds": [called_unlike(model, rows)],
        "permuted": [called_unlike(model, rng.permuted(rows, axis=1))],
        "margins": [called_unlike(model, rng.permuted(fitted, axis=0)[: len(rows)])],
        "x 2": [called_unlike(model, rows * 2)],
        "x 1e6": [called_unlike(model, rows * 1e6)],
        "one row x 1e6": [
            (called_unlike(model, one[:1])[0], called_unlike(model, one)[1])
        ],
        "a label left out": [],
        "all but one label's": [],
    }
    names, counts = np.unique(data.labels, return_counts=True)
    for name in names[np.argsort(-counts, kind="stable")][:MAX_LABELS]:
        is_out = data.labels == name
        if FEWEST <= is_out.sum() < len(data.X) // 2:
            without = fitted_quickly(data.X[old[~is_out[old]]])
            found["a label left out"].append(called_unlike(without, data.X[is_out]))
            beside = data.X[new[~is_out[new]]]
            found["all but one label's"].append(called_unlike(without, beside))
    return found


def fitted_quickly(X: np.ndarray) -> EmbeddingGame:
    """Return a fit of one iteration: likeness depends on the rows, not on the map."""
    return EmbeddingGame(random_state=0, max_iter=1).fit(X)


def summary_of_unlike(data: Input, n_seeds: int) -> dict[str, Any]:
    """Return a row of the table: mean share of unlike rows, and calls that warn."""
    draws = [unlike(data, seed) for seed in range(n_seeds)]
    row: dict[str, Any] = {"data": f"{data.name}, {len(data.X):,}"}
    for kind in draws[0]:
        calls = [one for draw in draws for one in draw[kind]]
        shares, n_told = [share for share, _ in calls], sum(told for _, told in calls)
        mean = f"{np.mean(shares):.3f}" if calls else "–"
        row[kind] = f"{mean}; {n_told} of {len(calls)}"
    return row


def main() -> None:
    """Measure and print."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    warnings.simplefilter("ignore")
    if args.unlike:
        rows = []
        for data in load_all(args.inputs, args):
            rows.append(summary_of_unlike(data.some(MAX_ROWS), args.seeds))
            print(rows[-1], flush=True)
        report("Rows that are called unlike all fitted rows", rows, args)
        return
    ways: dict[str, tuple[Callable[[int], Any], int]] = {
        name: (ours(name), args.seeds) for name in args.methods
    }
    if args.peer_seeds:
        ways["umap-learn"] = umap_learn, args.peer_seeds
    noise = np.random.default_rng(0).normal(size=(5_000, 8)).astype(np.float32)
    for make, _ in ways.values():
        make(0).fit(noise).transform(noise[:100] + 1)  # compiles
    rows = []
    for data in load_all(args.inputs, args):
        for way, (make, n_seeds) in ways.items():
            found = [run(data, make, seed) for seed in range(n_seeds)]
            rows.append(summary(data.name, way, found))
            print(rows[-1], flush=True)
    report("New rows on a finished map", rows, args)


if __name__ == "__main__":
    main()
