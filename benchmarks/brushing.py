"""A scripted person brushes classes: the plain brush beside the one that corrects.

The person sees a map coloured by its labels and wants each class in turn, as one wants
a kind of cell.  The brush begins where the class is densest and goes, ring by ring,
over every square as wide as its radius in which most points are of the class and which
hangs together with the first one.  The same way is gone with

- the plain brush, which takes all points under it,
- the brush that corrects: strangers step out, true neighbours are drawn in,
- and that brush, and then once over the points that were drawn in to its rim.

Told are precision, recall and F1 of what is brushed against the class, as means over
the classes with 1 % of the points or more.  Neither brush knows the labels.  Maps:

- game: played with all defaults; few points lie in a wrong place,
- moved: the same, with one point in ten exchanged for others of them,
- PCA: the first two components, on which much lies among strangers,
- space: played in three dimensions and seen from one side, chosen at random,
- space, moved: the same, with one point in ten exchanged for others of them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.ndimage import label as islands
from sklearn.decomposition import PCA

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.brushing import Brushing, ListedBy
from shared import Input, arguments, load_all, report

INPUTS = ("mnist 2000", "coil20", "pbmc", "covid", "ifnb")
MOST_ROWS = 10_000
SIDE = 800.0
"""Pixels that a map takes on the canvas."""
RADIUS = 20.0
FEWEST = 0.01
MOVED, EVEN = 0.1, 0.005
"""Share of points that are moved; gain of F1 that counts as none."""
SIZES, N_GROUPS = (10_000, 70_000, 1_000_000), 20
OPTIONS: dict[str, dict[str, Any]] = {
    "inputs": {"nargs": "+", "default": list(INPUTS)},
    "seeds": {"type": int, "default": 1},
}


def way_over(places: np.ndarray, is_class: np.ndarray) -> np.ndarray:
    """Return the way (s, 2) of the brush over a class."""
    n = int(SIDE / RADIUS) + 2
    cells = np.floor(places / RADIUS).astype(int)
    of_all, of_class = np.zeros((n, n)), np.zeros((n, n))
    np.add.at(of_all, tuple(cells.T), 1)
    np.add.at(of_class, tuple(cells[is_class].T), 1)
    wanted = of_class > of_all / 2
    parts = islands(wanted, np.ones((3, 3)))[0]
    if not wanted.any():
        return np.zeros((0, 2))
    densest = np.unravel_index((of_class * wanted).argmax(), wanted.shape)
    cells = np.argwhere(parts == parts[densest])
    away = np.abs(cells - densest).max(axis=1)
    around = np.arctan2(*(cells - densest).T)
    # Ring by ring, one clockwise and the next one back.
    order = np.lexsort((np.where(away % 2, -around, around), away))
    return (cells[order] + 0.5) * RADIUS


def go(brush: Brushing, way: np.ndarray) -> None:
    """Paint along a way; between rows that are far apart the button is let go."""
    for before, place in zip([way[0], *way], way, strict=False):
        if np.linalg.norm(place - before) > 3 * RADIUS:
            brush.lift()
        brush.paint(place)


def over_what_came(brush: Brushing) -> None:
    """Go once over the points that were drawn in."""
    left = np.flatnonzero(brush.drawn_in & ~brush.chosen)
    while len(left):
        brush.lift()
        brush.paint(brush.places[left[0]])
        left = left[~brush.passed[left] & brush.drawn_in[left]]


def scores(chosen: np.ndarray, is_class: np.ndarray) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    both = (chosen & is_class).sum()
    precision = both / max(chosen.sum(), 1)
    recall = both / is_class.sum()
    return precision, recall, 2 * both / max(chosen.sum() + is_class.sum(), 1)


def maps_of(data: Input, seed: int) -> dict[str, np.ndarray]:
    """Return the maps, each (N, 2) in pixels."""
    game = EmbeddingGame(random_state=seed).fit_transform(data.X)
    rng = np.random.default_rng(seed)
    moved = _moved(game, rng)
    space = EmbeddingGame(n_components=3, random_state=seed).fit_transform(data.X)
    right_and_down = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    maps = {
        "game": game,
        "moved": moved,
        "PCA": PCA(2, random_state=seed).fit_transform(data.X),
        "space": space @ right_and_down,
        "space, moved": _moved(space, rng) @ right_and_down,
    }
    return {name: _in_pixels(found) for name, found in maps.items()}


def _moved(embedding: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rows = np.flatnonzero(rng.random(len(embedding)) < MOVED)
    moved = embedding.copy()
    moved[rows] = embedding[rng.permutation(rows)]
    return moved


def _in_pixels(embedding: np.ndarray) -> np.ndarray:
    low, high = np.quantile(embedding, [0.002, 0.998], axis=0)
    places = (embedding - low) / (high - low).max() * SIDE
    return np.clip(places, 0, SIDE - 1).astype(np.float32)


def brushed(
    places: np.ndarray,
    neighbors: np.ndarray,
    listed_by: ListedBy,
    is_class: np.ndarray,
) -> dict[str, tuple[float, float, float]]:
    """Return the scores of each brush for one class; none where it is not seen."""
    way = way_over(places, is_class)
    if not len(way):
        return {}
    plain = Brushing(places, None, RADIUS)
    go(plain, way)
    brush = Brushing(places, neighbors, RADIUS, listed_by)
    go(brush, way)
    found = {
        "plain": scores(plain.chosen, is_class),
        "correcting": scores(brush.chosen, is_class),
    }
    over_what_came(brush)
    return found | {"and its rim": scores(brush.chosen, is_class)}


def rows_of(data: Input, seed: int) -> list[dict[str, Any]]:
    """Let the person brush each class of one input, on each map."""
    neighbors = knn_graph(data.X, 15).indices
    listed_by = ListedBy(neighbors)
    classes, counts = np.unique(data.labels, return_counts=True)
    rows = []
    for name, places in maps_of(data, seed).items():
        every = [
            brushed(places, neighbors, listed_by, data.labels == one)
            for one in classes[counts >= FEWEST * len(data.labels)]
        ]
        found = [one for one in every if one]
        for brush in found[0]:
            values = np.array([one[brush] for one in found])
            gain = values[:, 2] - np.array([one["plain"][2] for one in found])
            precision, recall, f1 = values.mean(axis=0).round(3).tolist()
            rows.append(
                {
                    "input": f"{data.name}, {len(data.X):,}",
                    "map": name,
                    "brush": brush,
                    "classes": len(found),
                    "precision": precision,
                    "recall": recall,
                    "F1": f1,
                    "better": int((gain > EVEN).sum()),
                    "worse": int((gain < -EVEN).sum()),
                    "least gain": round(float(gain.min()), 3),
                    "most": round(float(gain.max()), 3),
                }
            )
            print(rows[-1], flush=True)
    return rows


def move_rows(n_points: int) -> dict[str, Any]:
    """Return what a move costs on a synthetic map, one point in twenty moved.

    And where another one lies beside it.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, N_GROUPS, n_points)
    middles = rng.random((N_GROUPS, 2)) * SIDE
    places = middles[labels] + rng.normal(size=(n_points, 2)) * SIDE / N_GROUPS
    rows = np.flatnonzero(rng.random(n_points) < MOVED / 2)
    places[rows] = places[rng.permutation(rows)]
    order = np.argsort(labels, kind="stable").astype(np.int32)
    neighbors = np.empty((n_points, 15), np.int32)
    for step in range(15):
        neighbors[order, step] = np.roll(order, step - 15)
    begun = time.process_time()
    listed_by = ListedBy(neighbors)
    lists = time.process_time() - begun
    brush = Brushing(places, neighbors, RADIUS, listed_by)
    spent = _moves(brush, middles[0])
    both = np.concatenate([places, places[::-1]])
    both[n_points:, 0] += 2 * SIDE
    two_maps = Brushing(both, neighbors, RADIUS, listed_by, n_maps=2)
    spent_on_two = _moves(two_maps, middles[0])
    return {
        "points": f"{n_points:,}",
        "brushed": int(brush.chosen.sum()),
        "moved": len(brush.moved),
        "lists, once, ms": round(1e3 * lists),
        "a move, ms": round(float(np.median(spent)), 1),
        "longest": round(max(spent), 1),
        "of two maps, ms": round(float(np.median(spent_on_two)), 1),
        "longest of two": round(max(spent_on_two), 1),
    }


def _moves(brush: Brushing, middle: np.ndarray) -> list[float]:
    """Go 60 moves outwards in a spiral; return the milliseconds of each."""
    spent = []
    for turn in range(60):
        away = turn * np.array([np.cos(turn / 2), np.sin(turn / 2)])
        begun = time.process_time()
        brush.paint(middle + away)
        spent.append(1e3 * (time.process_time() - begun))
    return spent


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    sizes = SIZES[:1] if args.quick else SIZES
    report("Processor time of a move", [move_rows(n) for n in sizes], args)
    rows = []
    for data in load_all(args.inputs, args):
        some = data.some(MOST_ROWS)
        for seed in range(args.seeds):
            rows += rows_of(some, seed)
    report("Brushing classes", rows, args)


if __name__ == "__main__":
    main()
