"""Five gestures of a scripted person: agreement of the clusters with known types.

On each data set a game is played in a session without a window, with all defaults.  The
person then does five things, one after another, each chosen by a rule from what can be
seen, and the adjusted Rand index (ARI) of the clusters against the known types and the
share of 15 neighbours kept (recall) are taken before and after.

What each person sees, and does:

- merger: the map and its clusters.  Merges the two clusters with the longest common
  border: most map neighbours in one another, as a share of the smaller one.
- lasso: the same.  Draws around the largest island of the map that holds more than one
  cluster and less than half of the points, and makes it one cluster.
- divider: the map coloured by stretch, and the share of far points in the cluster
  table.  Splits the cluster with the highest mean stretch among those of 2 % and more.
- dragger: the map.  Takes the cluster with the longest border to others by its name,
  drags it one radius of the map away from the middle, and lets go; the game plays on.
- linker: the lines to far neighbours.  Links the two clusters with most of these lines
  between them; the game plays on.
- holder: the map coloured by stretch.  Draws around the points of the largest cluster,
  holds them, and shakes those that are stretched; the game plays on.
- annotator: the map coloured by the *known types*, as after a look at marker genes or
  with a column of the file.  Draws around the region where most neighbours on the map
  have one colour, that region which is furthest from being one cluster, and makes it
  a cluster.  As the types are seen, this is no discovery: it tells how far five
  lassos bring the clusters to what a person knows.

All but the last see nothing of the types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.types import FAR
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.run import UNPACED, Run
from napari_embedding_game.session.session import Session
from shared import Input, arguments, load_all, report

INPUTS = (
    "digits", "mnist 2000", "coil20", "pbmc", "covid", "ifnb", "nuclei", "newsgroups",
)  # fmt: skip
MOST_ROWS = 3_000
N_GESTURES = 5
N_NEIGHBORS = 15
DRAG_FRAMES = 20
FEWEST = 0.02
"""Share of the points that a cluster needs to be looked at."""
OPTIONS: dict[str, dict[str, Any]] = {
    "inputs": {"nargs": "+", "default": list(INPUTS)},
    "seeds": {"type": int, "default": 1},
}


class Person:
    """Somebody with a session; the known types are there for the annotator alone.

    Parameters
    ----------
    data : Input
    seed : int
        Of the game.
    """

    def __init__(self, data: Input, seed: int) -> None:
        n, n_columns = data.X.shape
        self.types = np.unique(data.labels, return_inverse=True)[1]
        self.neighbors = knn_graph(data.X, N_NEIGHBORS, search="exact").indices
        self.session = Session(pace=UNPACED)
        names = pd.Index([f"row {i}" for i in range(n)])
        self.session.load(
            Dataset(
                name=data.name,
                X=np.ascontiguousarray(data.X, np.float32),
                obs=pd.DataFrame(index=names),
                var_names=tuple(f"column {i}" for i in range(n_columns)),
                space="X",
                source=None,
                n_source_rows=n,
                kept=np.ones(n, bool),
                source_obs_names=names,
            )
        )
        self.session.settings.random_state = seed
        self.play(self.session.begin())

    def play(self, run: Run | None, meanwhile: Callable[[int], None] = bool) -> None:
        """Play a run to its end; what is done meanwhile is told the frame."""
        if run is None:
            return
        for frame, progress in enumerate(run.frames()):
            self.session.receive(run, progress)
            if progress.snapshot is not None:
                meanwhile(frame)
            if self.session.state == "finished":
                break
        self.session.stop()

    # --- What is seen

    @property
    def map(self) -> np.ndarray:
        """(N, 2) the map."""
        assert self.session.snapshot is not None
        return self.session.snapshot.embedding

    @property
    def shown(self) -> np.ndarray:
        """(N, 15) neighbours on the map."""
        return knn_graph(self.map, N_NEIGHBORS).indices

    @property
    def stretch(self) -> np.ndarray:
        """(N,) stretch."""
        assert self.session.snapshot is not None
        assert self.session.snapshot.stretch is not None
        return self.session.snapshot.stretch

    @property
    def labels(self) -> np.ndarray:
        """(N,) id of the cluster of each point."""
        return self.session.clusters.labels

    def looked_at(self) -> list[int]:
        """Return the clusters that are large enough to be looked at."""
        ids, counts = np.unique(self.labels, return_counts=True)
        return [
            int(i)
            for i, c in zip(ids, counts, strict=True)
            if c >= FEWEST * len(self.labels)
        ]

    def pairs(
        self, neighbors: np.ndarray, counted: np.ndarray
    ) -> list[tuple[float, int, int]]:
        """Return how many neighbours clusters have in one another, most first."""
        ids = self.looked_at()
        place = {one: i for i, one in enumerate(ids)}
        codes = np.array([place.get(int(one), -1) for one in self.labels])
        rows = np.repeat(codes, neighbors.shape[1])
        columns, counted = codes[neighbors].ravel(), counted.ravel()
        is_known = (rows >= 0) & (columns >= 0) & counted
        table = np.zeros((len(ids), len(ids)))
        np.add.at(table, (rows[is_known], columns[is_known]), 1)
        table += table.T
        sizes = np.bincount(codes[codes >= 0], minlength=len(ids))
        found = [
            (table[i, j] / min(sizes[i], sizes[j]), ids[i], ids[j])
            for i in range(len(ids))
            for j in range(i)
        ]
        return sorted(found, reverse=True)

    def islands(self) -> np.ndarray:
        """Return the island of each point: no gap of three usual distances within."""
        graph = knn_graph(self.map, N_NEIGHBORS)
        near = graph.distances <= 3 * np.median(graph.distances)
        n = len(near)
        ends = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
        links = sp.csr_array(
            (np.ones(ends[-1]), graph.indices[near], ends), shape=(n, n)
        )
        return connected_components(links, directed=False)[1]

    # --- What comes out

    def figures(self) -> tuple[float, float]:
        """Return ARI and recall."""
        kept = (self.neighbors[:, :, None] == self.shown[:, None]).any(axis=2)
        return float(adjusted_rand_score(self.types, self.labels)), float(kept.mean())


# --- Gestures: each returns whether there was something to do


def merge(person: Person) -> bool:
    """Merge the two clusters with the longest border."""
    shown = person.shown
    border = person.pairs(shown, np.ones(shown.shape, bool))
    if not border or border[0][0] <= 0:
        return False
    person.session.clusters.merge(border[0][1:])
    return True


def lasso(person: Person) -> bool:
    """Make the largest island of several clusters one."""
    islands, labels = person.islands(), person.labels
    numbers, counts = np.unique(islands, return_counts=True)
    for number in numbers[np.argsort(-counts)]:
        inside = islands == number
        if inside.mean() < 0.5 and len(np.unique(labels[inside])) > 1:
            person.session.clusters.make_cluster(inside)
            return True
    return False


def divide(person: Person) -> bool:
    """Split the most stretched cluster."""
    ids = person.looked_at()
    means = [person.stretch[person.labels == one].mean() for one in ids]
    for at in np.argsort(means)[::-1]:
        try:
            person.session.split(ids[at])
        except (DataError, InputError):
            continue  # it has one landmark
        return True
    return False


def drag(person: Person) -> bool:
    """Drag the cluster with the longest border one radius outwards."""
    shown = person.shown
    border = person.pairs(shown, np.ones(shown.shape, bool))
    if not border:
        return False
    cluster = border[0][1]
    y = person.map
    middle = y.mean(axis=0)
    radius = np.sqrt(((y - middle) ** 2).sum(axis=1).mean())
    away = y[person.labels == cluster].mean(axis=0) - middle
    by = away / max(np.linalg.norm(away), 1e-6) * radius
    hand = person.session.hand
    begun: list[int] = []

    def meanwhile(frame: int) -> None:
        if not begun:
            hand.begin_drag(cluster)
            hand.drag_by(by)
            begun.append(frame)
        elif frame == begun[0] + DRAG_FRAMES:
            hand.end_drag()

    person.play(person.session.play_on(), meanwhile)
    return True


def link(person: Person) -> bool:
    """Link the two clusters with most lines to far neighbours between them."""
    squared = ((person.map[person.neighbors] - person.map[:, None]) ** 2).sum(axis=2)
    lines = person.pairs(person.neighbors, squared > FAR**2 * np.median(squared))
    if not lines or lines[0][0] <= 0:
        return False
    rows = [np.flatnonzero(person.labels == one) for one in lines[0][1:]]
    person.play(person.session.hand.link(*rows))
    return True


def hold(person: Person) -> bool:
    """Hold the largest cluster that is not held, and shake what is stretched."""
    hand = person.session.hand
    for cluster in sorted(
        person.looked_at(), key=lambda c: -(person.labels == c).sum()
    ):
        rows = np.flatnonzero(person.labels == cluster)
        if hand.acts_on(rows):
            continue
        is_far = person.stretch > FAR
        person.play(hand.hold(rows[~is_far[rows]]))
        if is_far.any():
            person.play(hand.shake(np.flatnonzero(is_far)))
        return True
    return False


def annotate(person: Person) -> bool:
    """Make the region of one colour a cluster."""
    colours = person.types[person.shown]
    best, region = 0, None
    for one in np.unique(person.types):
        inside = (colours == one).mean(axis=1) > 0.5
        if not inside.any():
            continue
        ids, counts = np.unique(person.labels[inside], return_counts=True)
        main = ids[counts.argmax()]
        off = (inside != (person.labels == main)).sum()
        if off > best:
            best, region = off, inside
    if region is None:
        return False
    person.session.clusters.make_cluster(region)
    return True


PERSONS: dict[str, Callable[[Person], bool]] = {
    "merger": merge, "lasso": lasso, "divider": divide, "dragger": drag,
    "linker": link, "holder": hold, "annotator": annotate,
}  # fmt: skip


def rows_of(data: Input, seed: int) -> list[dict[str, Any]]:
    """Let each person begin with the same map."""
    rows = []
    for name, gesture in PERSONS.items():
        person = Person(data, seed)
        before = person.figures()
        n_before = len(np.unique(person.labels))
        done = 0
        while done < N_GESTURES and gesture(person):
            done += 1
        after = person.figures()
        rows.append(
            {
                "input": f"{data.name}, {len(data.X):,}",
                "person": name,
                "gestures": done,
                "clusters": f"{n_before} to {len(np.unique(person.labels))}",
                "ARI before": round(before[0], 3),
                "ARI after": round(after[0], 3),
                "recall before": round(before[1], 3),
                "recall after": round(after[1], 3),
            }
        )
        print(rows[-1], flush=True)
    return rows


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean changes of each person."""
    told = []
    for name in PERSONS:
        of = [row for row in rows if row["person"] == name]
        gained = [row["ARI after"] - row["ARI before"] for row in of]
        lost = [1 - row["recall after"] / row["recall before"] for row in of]
        told.append(
            {
                "person": name,
                "ARI gained": round(float(np.mean(gained)), 3),
                "least": round(min(gained), 3),
                "most": round(max(gained), 3),
                "recall lost": f"{np.mean(lost):.1%}",
                "at most": f"{max(lost):.1%}",
            }
        )
    return told


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    rows = []
    for data in load_all(args.inputs, args):
        some = data.some(MOST_ROWS)
        for seed in range(args.seeds):
            rows += rows_of(some, seed)
    report("Five gestures", rows, args)
    report("Means over the inputs", means(rows), args)


if __name__ == "__main__":
    main()
