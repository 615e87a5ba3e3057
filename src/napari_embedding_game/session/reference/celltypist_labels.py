"""Labels of the cells of an open map by CellTypist, where it is installed.

CellTypist is no dependency, and no model is fetched: a model is a file that a person
chooses.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.as_anndata import as_anndata
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.predicted import CELLTYPIST, PredictedLabels
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.reference.new_cells import NewCells, expression_of
from napari_embedding_game.session.reference.predicting import SURE

TARGET_SUM = 10_000.0
"""Counts per cell that the models of CellTypist are made with."""


def has_celltypist() -> bool:
    """Return whether the package is installed."""
    return find_spec(CELLTYPIST) is not None


def predict_by_celltypist(
    dataset: Dataset, path: Path
) -> Stages[tuple[PredictedLabels, tuple[str, ...]]]:
    """Predict a label of each cell by a model of CellTypist, in stages.

    Each cell gets the label of the highest probability, without majority voting.

    Parameters
    ----------
    dataset : Dataset
        With expression of genes.
    path : Path
        The model, a .pkl file.  It is unpickled, which can run any code.

    Returns
    -------
    PredictedLabels
        Their confidence is the probability of the label.
    tuple of str
        Sentences that a person has to know.

    Raises
    ------
    DataError
        The cells have neither counts nor logarithms, or CellTypist refuses the file.
    """
    from anndata import AnnData

    yield Stage("Preparing the expression")
    adata = as_anndata(dataset)
    values, names, _, origin = expression_of(NewCells(dataset.name, adata), TARGET_SUM)
    cells = AnnData(values, adata.obs[[]].copy(), pd.DataFrame(index=names))
    yield Stage("Predicting labels by CellTypist")
    told, probability, genes = _annotated(cells, path)
    n_there = int(np.isin(genes, names).sum())
    labels = pd.Categorical(told.astype(str))
    n = len(labels)
    found = PredictedLabels(
        reference=str(path),
        label=CELLTYPIST,
        correct_batch=False,
        names=tuple(map(str, labels.categories)),
        codes=np.asarray(labels.codes, np.int32),
        confidence=probability.astype(np.float32),
        likeness=np.full(n, np.nan, np.float32),
        distance=np.full(n, np.nan, np.float32),
        unlike=np.zeros(n, bool),
        by=CELLTYPIST,
    )
    return found, (
        f"From {origin}: {n_there:,} of the {len(genes):,} genes of the model are "
        "there.",
    )


def told_of_model(found: PredictedLabels) -> str:
    """Return a sentence on how far labels by CellTypist can be believed."""
    clear = float((found.confidence >= SURE).mean())
    return (
        f"Labels of {Path(found.reference).name} for {len(found.codes):,} cells: "
        f"{clear:.0%} with a probability of at least {SURE:.0%}. Each cell gets the "
        "likeliest label that the model has, also where it is of another kind."
    )


# Inside


def _annotated(cells: Any, path: Path) -> tuple[Any, Any, Any]:
    """Return label (n,) and probability (n,) of each cell, and the model's genes."""
    import celltypist

    try:
        # By its whole path: a mere name is looked up among models to be fetched.
        model = celltypist.models.Model.load(path.resolve().as_posix())
        result = celltypist.annotate(cells, model=model, majority_voting=False)
        labels = result.predicted_labels["predicted_labels"].to_numpy()
        probability = result.probability_matrix.max(axis=1).to_numpy()
        return labels, probability, np.asarray(model.features)
    except Exception as error:  # it raises Exception itself, whatever is wrong
        told = str(error).removeprefix("🛑 ")
        reason = " ".join(told.split())[:200].rstrip(".") or type(error).__name__
        raise DataError(
            f"CellTypist could not use {path.name} for these cells ({reason}): choose "
            "a model that CellTypist has saved (.pkl), for genes by these names."
        ) from error
