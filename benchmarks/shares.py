"""Shares of cell types compared between two conditions, by samples and on the map.

Samples do not differ but for chance (*the same*), or the share of one type is 2 or 5
times as large in one condition, at the cost of the largest type; all other shares stay.
Donors differ: their shares are Dirichlet draws, or each type has a spread of its own.

*Types*: counts of each type in 4, 6 or 12 samples.  *On the map*: 5,000 cells on a map
of 200 landmarks, each cell drawn for one of the samples; power is of the landmarks that
are mostly of the changed type, and false ones are those with less than 2 % of the cells
of a changed type.  With "states" donors also differ inside of types, smoothly over the
data.  The maps are of simulated cells, and of ifnb, where the file is.

``--milo`` also asks pertpy's Milo (``pip install pertpy pydeseq2``), with neighbours
and settings as its documentation has them, in the first draws without states.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import ndtr, stdtr

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.clusters import landmark_graph
from napari_embedding_game.core.inspect.sample_comparison import (
    adjust_p_values,
)
from napari_embedding_game.core.inspect.shares import (
    MAX_FDR,
    compare_shares,
    find_landmark_changes,
)
from shared import arguments, load, report

PRECISION = 40
"""Of the Dirichlet distribution: a type of 20 % is between 8 and 32 % in most donors.
"""
N_TYPES, LARGEST = 10, 0
FOLDS, CHANGED_TYPE = (2.0, 5.0), 5
SAMPLES = (4, 6, 12)
STATES, WAVELENGTH = 0.5, 4.0
"""Spread of the logarithm of a donor's density inside types, and its scale in the data.
"""
N_WAVES = 16
LEVELS = "treated", "control"
QUICK_ROWS = 600
MILO = "Milo (pertpy)"


def type_shares(n_types: int, ratio: float = 0.72) -> np.ndarray:
    """Return shares of types, each a part of the one before."""
    shares = ratio ** np.arange(n_types)
    return shares / shares.sum()


def draw_shares(
    rng: np.random.Generator,
    shares: np.ndarray,
    is_treated: np.ndarray,
    fold: float,
    changed: int,
    noise: str = "Dirichlet",
) -> np.ndarray:
    """Return the share of each type in each donor, (S, K)."""
    n_donors, n_types = len(is_treated), len(shares)
    if noise == "Dirichlet":
        drawn = rng.dirichlet(PRECISION * shares, n_donors)
    else:
        spreads = 0.1 * np.exp(rng.normal(0.8, 0.7, n_types))
        drawn = shares * np.exp(rng.normal(size=(n_donors, n_types)) * spreads)
        drawn /= drawn.sum(axis=1, keepdims=True)
    more = (fold - 1) * drawn[is_treated, changed]
    more = np.minimum(more, 0.98 * drawn[is_treated, LARGEST])
    drawn[is_treated, changed] += more
    drawn[is_treated, LARGEST] -= more
    return drawn


# --- Types

Found = tuple[np.ndarray, np.ndarray]
"""p-values and adjusted p-values, (K,) each."""


def test_shares(counts: np.ndarray, is_treated: np.ndarray) -> Found:
    """Compare as the window does."""
    n_donors, n_types = counts.shape
    codes = np.repeat(np.tile(np.arange(n_types), n_donors), counts.ravel())
    donors = np.repeat(np.arange(n_donors), counts.sum(axis=1))
    sides = np.where(is_treated, 0, 1)[donors]
    found = compare_shares(codes, n_types, sides, donors, LEVELS)
    return found.pvals, found.pvals_adj


def test_each(counts: np.ndarray, is_treated: np.ndarray) -> Found:
    """Compare logits by a t-test of each type, variances not moderated."""
    logits = np.log((counts + 0.5) / (counts.sum(axis=1)[:, None] - counts + 0.5))
    sides = logits[is_treated], logits[~is_treated]
    df = len(logits) - 2
    squares = sum(((side - side.mean(axis=0)) ** 2).sum(axis=0) for side in sides)
    error = np.sqrt(squares / df * sum(1 / len(side) for side in sides))
    t = (sides[0].mean(axis=0) - sides[1].mean(axis=0)) / error
    p = 2 * stdtr(df, -np.abs(t))
    return p, adjust_p_values(p)


def test_cells(counts: np.ndarray, is_treated: np.ndarray) -> Found:
    """Compare cells, as if they were independent: z-test of two shares."""
    sums = np.array([counts[is_treated].sum(axis=0), counts[~is_treated].sum(axis=0)])
    totals, both = sums.sum(axis=1, keepdims=True), sums.sum(axis=0)
    share = both / both.sum()
    spread = np.sqrt(share * (1 - share) * (1 / totals).sum())
    z = np.diff(sums / totals, axis=0)[0] / np.maximum(spread, 1e-12)
    p = 2 * ndtr(-np.abs(z))
    return p, adjust_p_values(p)


TESTS: dict[str, Callable[[np.ndarray, np.ndarray], Found]] = {
    "this program": test_shares,
    "t-test of each": test_each,
    "cells (z-test)": test_cells,
}


def measure_types(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of counts of types."""
    n_draws, rows = 5 if args.quick else 3 * args.draws, []
    for noise in ("Dirichlet", "a spread of each"):
        for n_donors in SAMPLES:
            is_treated = np.arange(n_donors) % 2 == 0
            found: dict[tuple[str, float], list[Found]] = {}
            for draw in range(n_draws):
                for fold in (1.0, *FOLDS):
                    rng = np.random.default_rng(args.seed + draw)
                    shares = draw_shares(
                        *(rng, type_shares(N_TYPES), is_treated, fold),
                        *(CHANGED_TYPE, noise),
                    )
                    sizes = rng.integers(300, 1_500, n_donors)
                    counts = rng.multinomial(sizes, shares)
                    for name, test in TESTS.items():
                        figures = test(counts, is_treated)
                        found.setdefault((name, fold), []).append(figures)
            for name in TESTS:
                p, adjusted = np.moveaxis(np.array(found[name, 1.0]), 1, 0)
                row: dict[str, Any] = {
                    "donors": noise,
                    "samples": n_donors,
                    "test": name,
                    "draws": n_draws,
                    "the same: p < 0.05": f"{(p < 0.05).mean():.1%}",
                    "any type at FDR 0.1": percent((adjusted < MAX_FDR).any(axis=1)),
                }
                for fold in FOLDS:
                    adjusted = np.array(found[name, fold])[:, 1, CHANGED_TYPE]
                    row[f"found, {fold:g} times"] = f"{(adjusted < MAX_FDR).mean():.0%}"
                rows.append(row)
    return rows


def percent(values: np.ndarray) -> str:
    """Return a share of draws, with its 95 % error."""
    share = np.mean(values)
    return f"{share:.1%} (± {1.96 * np.sqrt(share * (1 - share) / len(values)):.1%})"


# --- On the map


@dataclass(frozen=True, eq=False)
class Map:
    """Cells in the space of their neighbours, their types and landmarks."""

    name: str
    X: np.ndarray
    types: np.ndarray
    """(N,) numbers of types, the largest first."""
    changed: int
    """The type whose share is changed."""
    labels: np.ndarray
    graph: sparse.csr_matrix

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks."""
        return int(self.graph.shape[0])

    def share_of_types(self, members: Any, types: tuple[int, ...]) -> np.ndarray:
        """Return the share of the cells of types in groups, ``members`` (G, N)."""
        sizes = np.asarray(members.sum(axis=1)).ravel()
        return (members @ np.isin(self.types, types)) / np.maximum(sizes, 1)


def make_map(name: str, X: np.ndarray, types: np.ndarray, changed: int) -> Map:
    """Play the game and assign cells to landmarks."""
    model = EmbeddingGame(n_landmarks=min(200, len(X) // 10), random_state=0).fit(X)
    distances = ((model.embedding_[:, None] - model.landmarks_) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1).astype(np.int32)
    edges = build_edges(knn_graph(X), "mixed")
    graph = landmark_graph(edges, labels, len(model.landmarks_))
    return Map(name, X, types, changed, labels, graph)


def simulate_map(n_cells: int) -> Map:
    """Return a map of ten types, each longer in one direction than in others."""
    rng = np.random.default_rng(0)
    types = rng.choice(N_TYPES, n_cells, p=type_shares(N_TYPES))
    means, axes = rng.normal(size=(2, N_TYPES, 10))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    along = 2.5 * rng.normal(size=(n_cells, 1))
    X = 3 * means[types] + axes[types] * along + rng.normal(size=(n_cells, 10))
    return make_map("simulated", X.astype(np.float32), types, CHANGED_TYPE)


def iter_maps(args: argparse.Namespace) -> Iterator[Map]:
    """Yield the map of simulated cells, and one of ifnb where it is."""
    yield simulate_map(QUICK_ROWS if args.quick else 5_000)
    if (cells := load("ifnb", args)) is not None:
        cells = cells.some(5_000)
        counts = pd.Series(cells.labels).value_counts()
        names = list(counts.index)
        types = np.array([names.index(label) for label in cells.labels])
        # The type nearest to the share of the changed one of the simulated cells.
        wanted = type_shares(N_TYPES)[CHANGED_TYPE]
        changed = 1 + int(np.abs(counts.to_numpy()[1:] / len(types) - wanted).argmin())
        yield make_map(f"ifnb ({names[changed]})", cells.X, types, changed)


def draw_samples(
    rng: np.random.Generator,
    of: Map,
    is_treated: np.ndarray,
    fold: float,
    states: float,
) -> np.ndarray:
    """Return the sample of each cell: types by Dirichlet shares, and states."""
    n_donors = len(is_treated)
    shares = np.bincount(of.types) / len(of.types)
    drawn = draw_shares(rng, shares, is_treated, fold, of.changed)
    weights = (drawn * rng.uniform(0.5, 1.5, (n_donors, 1)))[:, of.types].T
    weights /= shares[of.types][:, None]
    if states:
        # Cosines of random waves, whose sum is smooth and has a variance of one.
        n_columns = of.X.shape[1]
        scale = WAVELENGTH * of.X.std() / 3 * np.sqrt(n_columns / 10)
        waves = rng.normal(size=(n_columns, N_WAVES)) / scale
        phases = rng.uniform(0, 2 * np.pi, N_WAVES)
        heights = np.cos(of.X @ waves.astype("f4") + phases.astype("f4"))
        heights *= np.sqrt(2 / N_WAVES)
        weights *= np.exp(states * heights @ rng.normal(size=(N_WAVES, n_donors)))
    sums = np.cumsum(weights, axis=1)
    chosen = (rng.random((len(sums), 1)) * sums[:, -1:] > sums).sum(axis=1)
    return np.asarray(chosen)


class OnLandmarks:
    """Compares landmarks as the window does, or each without its neighbours."""

    def __init__(self, of: Map, *, is_pooled: bool) -> None:
        self.labels, self.graph = of.labels, of.graph
        if not is_pooled:
            self.graph = sparse.identity(of.n_landmarks, format="csr")
        numbers = self.labels, np.arange(len(self.labels))
        self.members = sparse.csr_matrix((np.ones(len(self.labels)), numbers))

    def find_changed(self, samples: np.ndarray, is_treated: np.ndarray) -> np.ndarray:
        """Return which groups of cells have changed, (G,)."""
        sides = np.where(is_treated, 0, 1)[samples]
        given = self.labels, self.graph, sides, samples, LEVELS
        return np.isfinite(find_landmark_changes(*given)[0])


class OnMilo:
    """Compares neighbourhoods by pertpy's Milo, whose solver is pydeseq2."""

    def __init__(self, of: Map) -> None:
        import anndata
        import scanpy as sc
        from pertpy.tools import Milo

        cells = anndata.AnnData(of.X)
        cells.obsm["X_pca"] = of.X
        sc.pp.neighbors(cells, n_neighbors=30, use_rep="X_pca")
        self.milo = Milo()
        self.data = self.milo.load(cells)
        self.milo.make_nhoods(self.data["rna"], prop=0.1, seed=0)
        self.members = self.data["rna"].obsm["nhoods"].T.tocsr()

    def find_changed(self, samples: np.ndarray, is_treated: np.ndarray) -> np.ndarray:
        """Return which neighbourhoods have a spatial FDR below ``MAX_FDR``, (G,)."""
        obs = self.data["rna"].obs
        obs["sample"] = pd.Categorical([f"s{one}" for one in samples])
        obs["condition"] = np.where(is_treated, "b", "a")[samples]
        data = self.milo.count_nhoods(self.data, sample_col="sample")
        self.milo.da_nhoods(data, design="~condition", solver="pydeseq2")
        fdr = data["milo"].var["SpatialFDR"].to_numpy(float)
        return np.nan_to_num(fdr, nan=1.0) < MAX_FDR


def measure_map(of: Map, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the table of a map."""
    ways: dict[str, Any] = {
        "this program": OnLandmarks(of, is_pooled=True),
        "landmarks by themselves": OnLandmarks(of, is_pooled=False),
    }
    if args.milo:
        ways[MILO] = OnMilo(of)
    n_draws, rows = 3 if args.quick else args.draws, []
    tried = {name: args.milo if name == MILO else n_draws for name in ways}
    for states in (0.0, STATES):
        for n_donors in SAMPLES:
            is_treated = np.arange(n_donors) % 2 == 0
            found: dict[tuple[str, float], list[np.ndarray]] = {}
            for draw in range(n_draws):
                for fold in (1.0, *FOLDS):
                    rng = np.random.default_rng(args.seed + draw)
                    samples = draw_samples(rng, of, is_treated, fold, states)
                    for name, way in ways.items():
                        if draw < tried[name] and not (name == MILO and states):
                            changed = way.find_changed(samples, is_treated)
                            found.setdefault((name, fold), []).append(changed)
            for name, way in ways.items():
                if (name, 1.0) in found:
                    row = describe_found(of, way.members, found, name)
                    donors = "states, too" if states else "types"
                    rows.append({"donors": donors, "samples": n_donors, **row})
    return rows


def describe_found(
    of: Map,
    members: Any,
    found: dict[tuple[str, float], list[np.ndarray]],
    name: str,
) -> dict[str, Any]:
    """Return a row of the table: what a test has found in the draws."""
    is_changed = of.share_of_types(members, (of.changed,)) > 0.5
    is_false = of.share_of_types(members, (of.changed, LARGEST)) < 0.02
    none = np.array(found[name, 1.0])
    row: dict[str, Any] = {
        "test": name,
        "draws": len(none),
        "groups": none.shape[1],
        "the same: any at FDR 0.1": percent(none.any(axis=1)),
    }
    for fold in FOLDS:
        at = np.array(found[name, fold])
        false = at[:, is_false].sum(axis=1) / np.maximum(at.sum(axis=1), 1)
        row[f"found, {fold:g} times"] = f"{at[:, is_changed].mean():.0%}"
        row[f"false of these, {fold:g} times"] = f"{false.mean():.1%}"
    return row


def main() -> None:
    """Print the tables."""
    args = arguments(
        __doc__,
        draws={"type": int, "default": 200, "help": "on the map; 3 times so many else"},
        seed={"type": int, "default": 0, "help": "of the first draw"},
        only={"choices": ("types", "map"), "help": "the tables of one kind"},
        milo={"type": int, "default": 0, "help": "draws in which Milo is asked, too"},
    )
    warnings.simplefilter("ignore")  # of the peers
    if args.only != "map":
        report("Types", measure_types(args), args)
    for of in iter_maps(args) if args.only != "types" else ():
        report(f"On the map, {of.name}", measure_map(of, args), args)


if __name__ == "__main__":
    main()
