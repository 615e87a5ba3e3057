"""What Harmony does to a map: are kinds of cells kept, and are batches mixed.

Counts of two conditions, ``ifnb_pbmc_counts.h5ad`` (``obs["stim"]`` and
``obs["cell_type"]``), are prepared by the recipe, with and without
``batch_key="stim"``: scanpy's steps and harmonypy.  They are mapped by this program and
by umap-learn, as ``sc.tl.umap`` sets it.  Each map, and the components, are judged by

- the accuracy of ``cell_type`` by the vote of 15 neighbours, fivefold cross-validated;
- iLISI of ``stim`` and cLISI of ``cell_type``: median over cells of the inverse Simpson
  index of the label among 90 neighbours, weighted by a Gaussian of perplexity 30
  (Korsunsky et al. 2019; harmonypy's ``compute_lisi``).  iLISI is 1 where no cell has
  another condition around it, and 2 where both are as many; cLISI is at best 1.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.data.formats.anndata import read_anndata
from napari_embedding_game.data.recipe import Recipe, apply_recipe
from napari_embedding_game.data.stages import finish

FILE = "ifnb_pbmc_counts.h5ad"
BATCH, KIND = "stim", "cell_type"


def scores(places: np.ndarray, obs: Any) -> tuple[float, float, float]:
    """Return accuracy of the kind, iLISI of the batch and cLISI of the kind."""
    from harmonypy import compute_lisi

    vote = KNeighborsClassifier(15)
    accuracy = cross_val_score(vote, places, obs[KIND].to_numpy(), cv=5).mean()
    lisi = compute_lisi(np.asarray(places, dtype=np.float64), obs, [BATCH, KIND], 30)
    batch, kind = np.median(lisi, axis=0)
    return float(accuracy), float(batch), float(kind)


def umap(components: np.ndarray, seed: int) -> np.ndarray:
    """Return umap-learn's map of components, (n, 2), with scanpy's min_dist of 0.5."""
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed takes one thread
        model = UMAP(n_neighbors=15, min_dist=0.5, random_state=seed)
        return np.asarray(model.fit_transform(components))


def game(components: np.ndarray, seed: int) -> np.ndarray:
    """Return this program's map of components, (n, 2)."""
    return EmbeddingGame(random_state=seed).fit_transform(components)


def of_seeds(layout: Any, components: np.ndarray, obs: Any, n: int) -> list[float]:
    """Return the medians of the scores of `n` seeds."""
    rows = [scores(layout(components, seed), obs) for seed in range(n)]
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    dataset = read_anndata(given.data / FILE)
    print("| batches | of | accuracy | iLISI | cLISI |")
    print("|---|---|---|---|---|")
    recipes = {"as they are": Recipe(), "Harmony": Recipe(batch_key=BATCH)}
    for title, recipe in recipes.items():
        made = finish(apply_recipe(dataset, recipe))
        found = {"50 components": scores(made.X, made.obs)}
        for name, layout in (("this program", game), ("umap-learn", umap)):
            found[name] = of_seeds(layout, made.X, made.obs, given.seeds)
        for name, (accuracy, batch, kind) in found.items():
            cells = f"{accuracy:.3f} | {batch:.2f} | {kind:.2f}"
            print(f"| {title} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
