"""From cell types to domains of a simulated tissue, and neighbourhoods of types.

Types have overlapping profiles; domains differ in their shares of types.  *Easy*: few
types in a domain and little noise; *hard*: many types and much noise.  Two sections.
"type" and "domain" are the shares of cells that 15 neighbours on the map tell rightly,
ARI is of as many merged landmarks as there are types or domains.  Peers, in a few lines
of their own on the same map: BANKSY's concatenation sqrt(1 - l) z, sqrt(l) mean of the
neighbours' z; Seurat's weighted nearest neighbours, with the distance of the farthest
neighbour as bandwidth; and the two graphs' edges added.  Seconds to rest are those of
the processor from a change of the share in a finished game to its end.

``--squidpy`` also asks squidpy for the z of neighbourhoods (``pip install squidpy``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import make_start_layout
from napari_embedding_game.core.graph.tissue import (
    average_surroundings,
    find_tissue_neighbors,
)
from napari_embedding_game.core.inspect.clusters import build_merge_tree, landmark_graph
from napari_embedding_game.core.inspect.neighborhoods import compare_neighborhoods
from napari_embedding_game.core.settings import Settings, fill_affinity
from shared import arguments, report

ROWS, QUICK_ROWS, TYPES, DOMAINS, GENES = 4_000, 400, 8, 5, 30
SETS = {"easy": (0.3, 1.0), "hard": (1.0, 1.6)}
"""Concentration of the shares of types in a domain, and noise of profiles."""
SHARES = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
ADDED = (0.25, 0.4, 0.5, 0.75)
LAMBDAS = (0.2, 0.8)


@dataclass(frozen=True)
class Tissue:
    """Simulated cells of two sections."""

    X: NDArray[np.float32]
    positions: NDArray[np.float32]
    sections: NDArray[np.int64]
    types: NDArray[np.int64]
    domains: NDArray[np.int64]


def simulate(n: int, concentration: float, noise: float, seed: int = 0) -> Tissue:
    """Return a tissue: a domain is where one of five smooth fields is largest."""
    rng = np.random.default_rng(seed)
    positions = rng.uniform(0, 1000, (n, 2)).astype(np.float32)
    sections, domains = rng.integers(2, size=n), np.empty(n, np.int64)
    for section in range(2):
        waves = rng.normal(scale=1 / 180, size=(DOMAINS, 6, 2))
        phases = rng.uniform(0, 2 * np.pi, (DOMAINS, 6))
        rows = sections == section
        along = np.einsum("nd,kfd->nkf", positions[rows], waves)
        domains[rows] = np.cos(along + phases).sum(axis=2).argmax(axis=1)
    shares = rng.dirichlet(np.full(TYPES, concentration), DOMAINS)
    types = np.array([rng.choice(TYPES, p=shares[d]) for d in domains])
    X = rng.normal(size=(TYPES, GENES))[types] + noise * rng.normal(size=(n, GENES))
    return Tissue(X.astype(np.float32), positions, sections, types, domains)


def add_edges(X: Any, around: Any, share: float) -> tuple[Edges, Any]:
    """Return the added edges of both graphs, and the map that they make."""
    one, other = (
        build_edges(knn_graph(x, 15), "mixed").to_csr_matrix() for x in (X, around)
    )
    edges = Edges.from_symmetric_matrix(
        ((1 - share) * one + share * other).astype(np.float32)
    )
    layout = make_start_layout(edges, X, 2, "spectral", 0, 15)
    *_, last = play(edges, layout, fill_affinity(Settings()), diagnose=False)
    return edges, last


def weigh_neighbors(X: Any, around: Any, k: int = 20) -> tuple[Any, Any]:
    """Return neighbours and distances by Seurat's weighted nearest neighbours."""
    spaces = X, around
    graphs = [knn_graph(x, 100) for x in spaces]

    def likeness(space: int, rows: Any) -> Any:
        """Return the likeness of each row to ``rows`` (N, D) in a space, 0 to 1."""
        near = graphs[space].distances
        far = np.linalg.norm(spaces[space] - rows, axis=1) - near[:, 0]
        return np.exp(-far.clip(0) / (near[:, k - 1] - near[:, 0]))

    ratios = []
    for space in (0, 1):
        own, cross = (
            likeness(space, spaces[space][graphs[g].indices[:, :k]].mean(axis=1))
            for g in (space, 1 - space)
        )
        ratios.append((own / (cross + 1e-4)).clip(0, 200))
    first = 1 / (1 + np.exp(ratios[1] - ratios[0]))
    found = np.hstack([graph.indices for graph in graphs])
    alike = np.column_stack(
        [
            first * likeness(0, X[j]) + (1 - first) * likeness(1, around[j])
            for j in found.T
        ]
    )
    order = np.argsort(found, axis=1, kind="stable")
    ranked = np.take_along_axis(found, order, axis=1)
    repeated = np.zeros_like(ranked, bool)
    repeated[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    twice = np.zeros_like(repeated)
    np.put_along_axis(twice, order, repeated, axis=1)
    alike[twice] = -1
    best = np.argsort(-alike, axis=1, kind="stable")[:, :k]
    return (
        np.take_along_axis(found, best, axis=1),
        1 - np.take_along_axis(alike, best, axis=1),
    )


def iter_maps(tissue: Tissue) -> Iterator[tuple[str, Edges, Any, Any, Any]]:
    """Yield name, edges, positions, nearest landmarks and seconds to rest of maps."""
    X, around = (
        tissue.X,
        average_surroundings(tissue.X, tissue.positions, tissue.sections),
    )
    run = EmbeddingGame(random_state=0).play(X, second_X=around)
    for _ in run:
        pass
    for share in SHARES:
        begun = time.process_time()
        run.set(second_share=share)
        for _ in run:
            pass
        seconds = time.process_time() - begun
        model = EmbeddingGame(random_state=0, method_params={"second_share": share})
        model.fit(X, second_X=around)
        edges = Edges.from_symmetric_matrix(model.affinity_matrix_)
        yield f"share {share:g}", edges, model.embedding_, model.labels_, "–"
        assert run.snapshot is not None
        last = run.snapshot
        yield f"share {share:g}, slid", edges, last.embedding, last.labels, seconds
    for share in ADDED:
        edges, last = add_edges(X, around, share)
        yield f"edges added, {share:g}", edges, last.embedding, last.labels, "–"
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    mean = average_surroundings(z, tissue.positions, tissue.sections)
    mean = (mean - mean.mean(axis=0)) / mean.std(axis=0)
    for lam in LAMBDAS:
        rows = np.hstack([np.sqrt(1 - lam) * z, np.sqrt(lam) * mean])
        model = EmbeddingGame(random_state=0).fit(rows.astype(np.float32))
        edges = Edges.from_symmetric_matrix(model.affinity_matrix_)
        yield f"BANKSY {lam:g}", edges, model.embedding_, model.labels_, "–"
    model = EmbeddingGame(random_state=0).fit(X, neighbors=weigh_neighbors(X, around))
    edges = Edges.from_symmetric_matrix(model.affinity_matrix_)
    yield "weighted neighbours", edges, model.embedding_, model.labels_, "–"


def measure_maps(tissue: Tissue) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each map."""
    for name, edges, positions, nearest, seconds in iter_maps(tissue):
        row: dict[str, Any] = {"map": name}
        n = int(nearest.max()) + 1
        tree = build_merge_tree(
            landmark_graph(edges, nearest, n), np.bincount(nearest, minlength=n)
        )
        for title, truth in (("type", tissue.types), ("domain", tissue.domains)):
            told = KNeighborsClassifier(15).fit(positions[::2], truth[::2])
            row[title] = float(told.score(positions[1::2], truth[1::2]))
            merged = tree.cut(len(np.unique(truth)))[nearest]
            row[f"ARI {title}"] = adjusted_rand_score(truth, merged)
        yield {**row, "processor s to rest": seconds}


def measure_neighborhoods(n: int, with_squidpy: bool) -> dict[str, Any]:
    """Return seconds for the neighbourhoods of types, and how squidpy agrees."""
    tissue = simulate(n, *SETS["hard"])
    # squidpy permutes over all sections, so that there is a single one here.
    near = find_tissue_neighbors(tissue.positions, None, 6)
    few = find_tissue_neighbors(tissue.positions[:300], None, 6)
    compare_neighborhoods(few, tissue.types[:300])  # compiles the loops
    begun = time.perf_counter()
    near = find_tissue_neighbors(tissue.positions, None, 6)
    ours = compare_neighborhoods(near, tissue.types)
    row: dict[str, Any] = {"cells": n, "s": time.perf_counter() - begun}
    again = compare_neighborhoods(near, tissue.types, random_state=1)
    row["|z| at most"] = float(np.abs(ours.z).max())
    row["other seed: z differs"] = float(np.abs(again.z - ours.z).max())
    if with_squidpy:
        import pandas as pd
        import squidpy
        from anndata import AnnData
        from scipy import sparse

        adata = AnnData(tissue.X, obs=pd.DataFrame({"type": tissue.types.astype(str)}))
        adata.obs["type"] = adata.obs["type"].astype("category")
        entries = np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, 6)
        graph = sparse.csr_matrix(entries, shape=(n, n))
        adata.obsp["spatial_connectivities"] = graph
        begun = time.perf_counter()
        z, counts = squidpy.gr.nhood_enrichment(
            adata, "type", copy=True, seed=0, show_progress_bar=False
        )[:2]
        row["squidpy s"] = time.perf_counter() - begun
        row["same counts"] = bool((counts == ours.counts).all())
        row["squidpy: z differs"] = float(np.abs(z - ours.z).max())
    return row


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, squidpy={"action": "store_true"})
    n = QUICK_ROWS if args.quick else ROWS
    for name, how in SETS.items():
        rows = list(measure_maps(simulate(n, *how)))
        report(f"{name} tissue, {n:,} cells", rows, args)
    row = measure_neighborhoods(5 * n, args.squidpy)
    report("Neighbourhoods, 1,000 permutations", [row], args)


if __name__ == "__main__":
    main()
