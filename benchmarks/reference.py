"""New cells mapped onto a reference: labels beside sc.tl.ingest, and unseen kinds.

Raw counts of half of the cells are mapped by the recipe and the game with all defaults;
the other half is projected, placed and labelled by ``tl.map_onto_reference``.  "control
to stimulated": the reference is the control sample, the new cells were stimulated,
which changes them.  ``sc.tl.ingest`` gets the same reference, its own neighbours (15,
of the same components) and the new cells in the same genes.

Accuracy: share of cells with the right label.  Balanced: the mean of that over labels.
"sure": share of cells with a confidence of 0.9 or more, and how many of these are
right.  "told unlike": share of all new cells.  Mean over the seeds, and standard
deviation.

Unseen kinds: one kind after the other is left out of the reference (first seed).  AUC:
area under the ROC curve of the likeness, unseen cells against the others.  "told":
share of the unseen, and of the other new cells, that are called unlike the reference.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from anndata import AnnData, read_h5ad
from sklearn.metrics import roc_auc_score

from napari_embedding_game import tl
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.data.export.anndata_result import new_anndata
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.recipe import Recipe, apply_recipe
from napari_embedding_game.data.stages import finish
from shared import QUICK_ROWS, arguments, report

LABEL = "cell_type"
FILES = {
    "pbmc3k": "pbmc3k_lognorm.h5ad",
    "covid": "covid_balf_counts.h5ad",
    "ifnb": "ifnb_pbmc_counts.h5ad",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "inputs": {"nargs": "+", "choices": FILES, "default": list(FILES)},
    "unseen": {"nargs": "*", "choices": FILES, "default": ["pbmc3k", "covid"]},
    "cells": {"type": int, "default": 0, "help": "of a file, drawn at random; 0: all"},
}
FEWEST = 20
"""Cells of a kind that is left out, among the new ones."""


def load(name: str, args: argparse.Namespace) -> AnnData | None:
    """Return counts with labels, or None where there is no such file."""
    path = args.data / FILES[name]
    if not path.is_file():
        print(f"Skipped {name}: there is no {path.name} in {args.data}.", flush=True)
        return None
    adata = read_h5ad(path)
    if name == "pbmc3k":  # its logarithms are of whole numbers: back to these
        linear = adata.X.expm1()
        depth = adata.obs["n_counts"].to_numpy() / np.asarray(linear.sum(1)).ravel()
        linear = linear.multiply(depth[:, None]).tocsr()
        linear.data = np.round(linear.data)
        linear.eliminate_zeros()
        adata = AnnData(linear, obs=adata.obs, var=adata.var)
    adata.obs[LABEL] = adata.obs[LABEL].astype(str)
    adata = adata[adata.obs[LABEL] != "nan"].copy()
    most = QUICK_ROWS if args.quick else args.cells
    if not 0 < most < adata.n_obs:
        return adata
    drawn = np.random.default_rng(0).choice(adata.n_obs, most, replace=False)
    return adata[np.sort(drawn)].copy()


def reference(adata: AnnData, seed: int) -> AnnData:
    """Return the map of raw counts, as ``fit --recipe`` writes it."""
    dataset = finish(apply_recipe(from_anndata(adata, "reference"), Recipe()))
    game = EmbeddingGame(random_state=seed).fit(dataset.X)
    result = EmbeddingResult(
        game.embedding_, game.landmarks_, game.labels_, game.pressure_, game.energy_,
        stretch=game.stretch_,
        parameters={**game.get_params(), "space": dataset.space},
    )  # fmt: skip
    return new_anndata(dataset, result)


def splits(adata: AnnData, name: str, seeds: int) -> Iterator[tuple[str, int, Any]]:
    """Yield a title, a seed, and which cells the reference has."""
    for seed in range(seeds):
        half = np.random.default_rng(seed).random(adata.n_obs) < 0.5
        yield f"{name}, half to half", seed, half
    if "stim" in adata.obs:
        for seed in range(seeds):
            yield f"{name}, control to stimulated", seed, adata.obs["stim"] == "CTRL"


def ingested(known: AnnData, new: AnnData, counts: AnnData) -> tuple[Any, float]:
    """Return the labels by sc.tl.ingest, and its seconds with its neighbours."""
    import scanpy as sc

    genes = [str(g) for g in known.uns["embedding_game"]["projection"]["genes"]]
    ours = [prepared(counts, genes), prepared(new, genes)]
    begun = time.perf_counter()
    sc.pp.pca(ours[0], n_comps=50, random_state=0)
    sc.pp.neighbors(ours[0], n_neighbors=15, random_state=0)
    sc.tl.umap(ours[0], random_state=0)
    ours[0].obs[LABEL] = counts.obs[LABEL].astype("category").to_numpy()
    del ours[1].obs[LABEL]
    with _search_trees():
        sc.tl.ingest(ours[1], ours[0], obs=LABEL)
    return ours[1].obs[LABEL].astype(str).to_numpy(), time.perf_counter() - begun


@contextmanager
def _search_trees() -> Iterator[None]:
    """Say how many trees: pynndescent 0.7 leaves it open, scanpy 1.11 hands it on."""
    from pynndescent import rp_trees

    make = rp_trees.make_forest

    def with_trees(data: Any, n_neighbors: Any, n_trees: Any, *rest: Any) -> Any:
        return make(data, n_neighbors, n_trees or 8, *rest)

    rp_trees.make_forest = with_trees
    try:
        yield
    finally:
        rp_trees.make_forest = make


def prepared(counts: AnnData, genes: list[str]) -> AnnData:
    """Return logarithms of normalised counts in some genes, as scanpy's tutorial."""
    import scanpy as sc

    adata = counts.copy()
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    adata = adata[:, genes].copy()
    adata.X = adata.X.toarray()
    return adata


def balanced(right: Any, truth: Any) -> float:
    """Return the mean over labels of the share that is right."""
    return float(np.mean([right[truth == label].mean() for label in np.unique(truth)]))


def mapped(adata: AnnData, known: AnnData, **options: Any) -> tuple[AnnData, float]:
    """Return new cells on the map, and the seconds that it took."""
    new = adata.copy()
    begun = time.perf_counter()
    tl.map_onto_reference(new, known, LABEL, **options)
    return new, time.perf_counter() - begun


def labels(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of the table of labels."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in args.inputs:
        adata = load(name, args)
        if adata is None:
            continue
        for title, seed, is_known in splits(adata, name, args.seeds):
            one = labels_once(adata, np.asarray(is_known), seed)
            found.setdefault(title, []).append(one)
            print(title, seed, {k: f"{v:.3f}" for k, v in one.items()}, flush=True)
    return [{"cells": title, **_mean(rows)} for title, rows in found.items()]


def labels_once(adata: AnnData, is_known: Any, seed: int) -> dict[str, float]:
    """Return the figures of one reference and its new cells."""
    counts, rest = adata[is_known].copy(), adata[~is_known].copy()
    known = reference(counts, seed)
    new, seconds = mapped(rest, known)
    moved, _ = mapped(rest, known, correct_batch=True)
    truth = rest.obs[LABEL].to_numpy()
    right = new.obs[f"{LABEL}_predicted"].astype(str).to_numpy() == truth
    sure = new.obs[f"{LABEL}_confidence"].to_numpy() >= 0.9
    theirs, peer_seconds = ingested(known, rest, counts)
    return {
        "accuracy": right.mean(),
        "balanced": balanced(right, truth),
        "batch corrected": (moved.obs[f"{LABEL}_predicted"] == truth).mean(),
        "ingest": (theirs == truth).mean(),
        "ingest balanced": balanced(theirs == truth, truth),
        "sure": sure.mean(),
        "right of these": right[sure].mean(),
        "told unlike": new.obs["unlike_reference"].mean(),
        "s": seconds,
        "ingest s": peer_seconds,
    }


def _mean(rows: list[dict[str, float]]) -> dict[str, str]:
    told = {}
    for key in rows[0]:
        values = [float(row[key]) for row in rows]
        digits = 0 if key in ("s", "ingest s") else 3
        spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
        told[key] = f"{statistics.mean(values):.{digits}f}{spread}"
    return told


def unseen(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of the table of kinds that the reference does not have."""
    rows = []
    for name in args.unseen:
        adata = load(name, args)
        if adata is None:
            continue
        is_known = np.random.default_rng(0).random(adata.n_obs) < 0.5
        kinds, counts = np.unique(adata.obs[LABEL][~is_known], return_counts=True)
        for kind in kinds[counts >= FEWEST][: 1 if args.quick else None]:
            is_it = (adata.obs[LABEL] == kind).to_numpy()
            known = reference(adata[is_known & ~is_it].copy(), 0)
            new, _ = mapped(adata[~is_known].copy(), known)
            of_kind = is_it[~is_known]
            told = new.obs["unlike_reference"].to_numpy()
            likeness = new.obs["reference_likeness"].to_numpy()
            rows.append(
                {
                    "cells": name,
                    "kind left out": kind,
                    "new cells of it": int(of_kind.sum()),
                    "AUC": f"{roc_auc_score(of_kind, -likeness):.2f}",
                    "told": f"{told[of_kind].mean():.2f}",
                    "others told": f"{told[~of_kind].mean():.3f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    args = arguments(__doc__, **OPTIONS)
    warnings.simplefilter("ignore")
    report("Labels", labels(args), args)
    report("Kinds that the reference does not have", unseen(args), args)


if __name__ == "__main__":
    main()
