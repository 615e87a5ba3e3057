"""What finds points in a wrong place: stretch, isolation, scDEED, pressure.

Of each labelled data set a map is made, and of it with planted errors, four kinds:

- wrong place: nothing planted.  Most of the 15 neighbours on the map have another
  label although most of the 15 neighbours in the data have the point's own.
- moved: 2 % of the points are put beside points drawn at random, on the finished map.
- stray rows: 2 % of the rows are of another data set, cut or filled with zeros to as
  many columns, centred and scaled to the same root mean square length.
- doublets: 2 % of the rows are means of two rows with different labels.

Planted rows are judged where most of their neighbours on the map are not planted: a
group of their own is right.  Figures are areas under the ROC curve (AUC) of each
measure: 1 finds them all first, 0.5 is chance.  Labels serve to judge only: no measure
knows them.

- stretch, isolation: of the package; 1 - recall: neighbours in the data that are none
  on the map; pressure: of the package (paper 004)
- scDEED: minus its reliability score, the correlation of the distances on the map to
  the nearest half of all points there with those to the nearest half in the data, each
  in order.  Its null of permuted columns sets a threshold and changes no order, so it
  is left out.

``--unlike`` prints how many rows of each data set, as it is and with stray rows, the
window calls outliers.  ``--makers`` embeds the data by other programs and opens their
maps as the window does, ``EmbeddingGame(method="given", init=map)``, to see how well
stretch finds points in a wrong place of those.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.inspect.isolation import compute_isolation
from napari_embedding_game.core.inspect.stretch import compute_stretch
from napari_embedding_game.core.snapshot import OUTLIER_ISOLATION
from shared import Input, arguments, load, load_all, report

INPUTS = (
    "digits", "mnist 2000", "coil20", "pbmc", "covid", "ifnb", "nuclei", "newsgroups",
)  # fmt: skip
GUESTS = {"digits": "newsgroups", "mnist 2000": "coil20", "coil20": "mnist 2000",
          "pbmc": "covid", "covid": "pbmc", "ifnb": "covid", "nuclei": "digits",
          "newsgroups": "mnist 2000"}  # fmt: skip
"""Where stray rows are from."""
N_NEIGHBORS = 15
MAX_ROWS = 3_000
PLANTED = 0.02
FEWEST = 10
"""Points in a wrong place, from which an AUC means something."""
OPTIONS: dict[str, dict[str, Any]] = {
    "inputs": {"nargs": "+", "default": list(INPUTS)},
    "unlike": {"action": "store_true", "help": "rows that are told to be unlike"},
    "seeds": {"type": int, "default": 1},
    "makers": {"nargs": "*", "default": [], "help": "programs whose maps are opened"},
}


# --- Measures


def scdeed(X: np.ndarray, embedding: np.ndarray) -> np.ndarray:
    """Return minus the correlation of distances on the map, in the order of both."""
    from scipy.spatial.distance import cdist

    half = len(X) // 2
    found = np.empty(len(X))
    for i in range(len(X)):
        on_map = cdist(embedding[i : i + 1], embedding)[0]
        in_data = np.argsort(cdist(X[i : i + 1], X)[0])[1 : half + 1]
        found[i] = -np.corrcoef(on_map[in_data], np.sort(on_map)[1 : half + 1])[0, 1]
    return found


def lost(neighbors: np.ndarray, embedding: np.ndarray) -> np.ndarray:
    """Return the share of neighbours in the data that are none on the map."""
    shown = knn_graph(embedding, N_NEIGHBORS).indices
    return 1 - (neighbors[:, :, None] == shown[:, None]).any(axis=2).mean(axis=1)


# --- Planted errors


def as_guests(guests: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return rows of other data with the columns, middle and length of these."""
    n = X.shape[1]
    cut = np.pad(guests[:, :n], ((0, 0), (0, max(0, n - guests.shape[1]))))
    cut = cut - cut.mean(axis=0)
    middle = X.mean(axis=0)
    length = np.sqrt(((X - middle) ** 2).sum(axis=1).mean())
    return middle + cut * length / np.sqrt((cut**2).sum(axis=1).mean())


def with_strays(
    data: Input, guest: Input, rng: np.random.Generator
) -> tuple[Input, np.ndarray]:
    """Return the data with rows of other data in place of some, and which these are."""
    rows = rng.choice(len(data.X), int(PLANTED * len(data.X)), replace=False)
    X = data.X.copy()
    drawn = rng.choice(len(guest.X), len(rows), replace=False)
    X[rows] = as_guests(guest.X[drawn], data.X)
    return replace(data, X=X), np.isin(np.arange(len(X)), rows)


def with_doublets(data: Input, rng: np.random.Generator) -> tuple[Input, np.ndarray]:
    """Return the data with means of two labels in place of some rows, and which."""
    rows = rng.choice(len(data.X), int(PLANTED * len(data.X)), replace=False)
    X = data.X.copy()
    others = np.setdiff1d(np.arange(len(X)), rows)
    for row in rows:
        one = rng.choice(others)
        other = rng.choice(others[data.labels[others] != data.labels[one]])
        X[row] = (data.X[one] + data.X[other]) / 2
    return replace(data, X=X), np.isin(np.arange(len(X)), rows)


def moved_points(embedding: np.ndarray, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a map with some points beside others, and which these are."""
    n = len(embedding)
    rows = rng.choice(n, int(PLANTED * n), replace=False)
    beside = embedding[rng.choice(n, len(rows))]
    changed = embedding.copy()
    changed[rows] = beside + rng.normal(0, 0.01, beside.shape)
    return changed, np.isin(np.arange(n), rows)


# --- Judging


def auc(is_wrong: np.ndarray, measured: np.ndarray) -> float:
    """Return the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return round(float(roc_auc_score(is_wrong, measured)), 3)


class Map:
    """A map of some rows, and what each measure says of its points."""

    def __init__(self, X: np.ndarray, seed: int) -> None:
        self.X = np.ascontiguousarray(X, np.float32)
        self.graph = knn_graph(self.X, N_NEIGHBORS, search="exact")
        self.model = EmbeddingGame(random_state=seed).fit(self.X)
        self.embedding = self.model.embedding_
        self.shown = knn_graph(self.embedding, N_NEIGHBORS).indices

    def on(self, embedding: np.ndarray) -> dict[str, np.ndarray]:
        """Return the measures that need nothing but a map and the data."""
        neighbors, distances = self.graph.indices, self.graph.distances
        return {
            "stretch": compute_stretch(neighbors, embedding),
            "isolation": compute_isolation(neighbors, distances),
            "1 - recall": lost(neighbors, embedding),
            "scDEED": scdeed(self.X, embedding),
        }

    def all(self) -> dict[str, np.ndarray]:
        """Return all measures; pressure needs the fitted map."""
        return {**self.on(self.embedding), "pressure": self.model.pressure_}


def misplaced(
    data: Input, near: np.ndarray, shown: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return who has its own label around it in the data, and who then not on the map.

    ``near``, ``shown`` (N, k): neighbours in the data, and on the map.
    """
    labels = np.unique(data.labels, return_inverse=True)[1]
    own = (labels[near] == labels[:, None]).mean(axis=1) > 0.5
    return own, own & ((labels[shown] == labels[:, None]).mean(axis=1) < 0.5)


def judged(
    found: dict[str, np.ndarray], is_bad: np.ndarray, among: np.ndarray
) -> dict[str, Any] | None:
    """Return the AUC of each measure among some points; None for too few."""
    if is_bad[among].sum() < FEWEST:
        return None
    return {
        "points": f"{is_bad[among].sum():,}",
        **{name: auc(is_bad[among], values[among]) for name, values in found.items()},
    }


def judgements(
    data: Input, guest: Input | None, seed: int
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each kind of error, and how well it is found."""
    rng = np.random.default_rng(seed)
    plain = Map(data.X, seed)
    own, wrong = misplaced(data, plain.graph.indices, plain.shown)
    yield "wrong place", judged(plain.all(), wrong, own)
    changed, is_moved = moved_points(plain.embedding, rng)
    yield "moved", judged(plain.on(changed), is_moved, np.ones(len(own), bool))
    planted = [("doublets", with_doublets(data, rng))]
    if guest is not None:
        planted.append(("stray rows", with_strays(data, guest, rng)))
    for kind, (changed_data, is_bad) in planted:
        one = Map(changed_data.X, seed)
        yield kind, judged(one.all(), is_bad, is_bad[one.shown].mean(axis=1) < 0.5)


def means(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the mean over the inputs for each kind of error."""
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return [
        {
            "kind": kind,
            "maps": len(of := [row for row in rows if row["kind"] == kind]),
            **{
                name: round(float(np.mean([row[name] for row in of])), 3)
                if name in of[0]
                else "–"
                for name in names
            },
        }
        for kind in kinds
    ]


# --- Rows that are called outliers


def unlike(args: Any) -> list[dict[str, Any]]:
    """Return for each data set how many rows are above the limit of isolation.

    Stray rows are planted anew with each seed, and all are counted.
    """
    told = []
    for data in load_all(args.inputs, args):
        some, guest = data.some(MAX_ROWS), load(GUESTS[data.name], args)
        row = {"input": f"{data.name}, {len(some.X):,}"}
        row["told"] = int((_isolated(_graph(some.X)) > OUTLIER_ISOLATION).sum())
        if guest is not None:
            counts = [_planted(some, guest, seed) for seed in range(args.seeds)]
            row |= {name: sum(one[name] for one in counts) for name in counts[0]}
        told.append(row)
    return told


def _planted(data: Input, guest: Input, seed: int) -> dict[str, int]:
    """Return how many planted rows are told, and how many others."""
    strays, is_stray = with_strays(data, guest, np.random.default_rng(seed))
    graph = _graph(strays.X)
    is_told = _isolated(graph) > OUTLIER_ISOLATION
    return {
        "planted": int(is_stray.sum()),
        "of them told": int((is_told & is_stray).sum()),
        "others told": int((is_told & ~is_stray).sum()),
    }


def _graph(X: np.ndarray) -> NeighborGraph:
    return knn_graph(np.ascontiguousarray(X, np.float32), N_NEIGHBORS)


def _isolated(graph: NeighborGraph) -> np.ndarray:
    return compute_isolation(graph.indices, graph.distances)


# --- Maps by other programs

MAKERS: dict[str, Callable[[np.ndarray], Any]] = {
    "umap-learn": lambda X: (
        import_module("umap").UMAP(random_state=0, n_jobs=1).fit_transform(X)
    ),
    "openTSNE": lambda X: import_module("openTSNE").TSNE(random_state=0).fit(X),
    "PaCMAP": lambda X: import_module("pacmap").PaCMAP(random_state=0).fit_transform(X),
    "game": lambda X: EmbeddingGame(random_state=0).fit_transform(X),
}


def opened(data: Input, maker: str) -> dict[str, Any]:
    """Return what is found on the map of one maker."""
    X = np.ascontiguousarray(data.X, np.float32)
    embedding = np.asarray(MAKERS[maker](X), np.float32)
    begin = time.perf_counter()
    model = EmbeddingGame(method="given", init=embedding, random_state=0).fit(X)
    seconds = time.perf_counter() - begin
    near = model.knn_indices_[:, :N_NEIGHBORS]
    own, wrong = misplaced(data, near, knn_graph(embedding, N_NEIGHBORS).indices)
    found = judged({"AUC of stretch": model.stretch_}, wrong, own)
    return {
        "input": f"{data.name}, {len(X):,}",
        "map by": maker,
        **(found or {"points": int(wrong.sum()), "AUC of stretch": "–"}),
        "neighbours kept": round(1 - float(lost(near, embedding).mean()), 3),
        "opened and doubted, s": round(seconds, 2),
    }


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    if args.makers:
        data = list(load_all(args.inputs, args))
        rows = [opened(each, maker) for each in data for maker in args.makers]
        report("Maps by other programs", rows, args)
        return
    if args.unlike:
        rows = unlike(args)
        names = dict.fromkeys(name for row in rows for name in row)
        whole = [dict.fromkeys(names, "–") | row for row in rows]
        report("Rows that are told to be unlike anything in the data", whole, args)
        return
    rows = []
    for data in load_all(args.inputs, args):
        some = data.some(MAX_ROWS)
        guest = load(GUESTS[data.name], args)
        for seed in range(args.seeds):
            for kind, found in judgements(some, guest, seed):
                if found is not None:
                    start = {"input": f"{data.name}, {len(some.X):,}", "kind": kind}
                    rows.append(start | found)
                    print(rows[-1], flush=True)
    names = dict.fromkeys(name for row in rows for name in row)
    whole = [dict.fromkeys(names, "–") | row for row in rows]
    report("AUC of what finds doubtful points", whole, args)
    report("Means over the inputs", means(rows, list(names)[3:]), args)


if __name__ == "__main__":
    main()
