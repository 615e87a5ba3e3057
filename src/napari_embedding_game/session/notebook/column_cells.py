"""Cells that make the columns again which were made of the data in the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Examples
from napari_embedding_game.data.expression import TARGET_SUM
from napari_embedding_game.data.gene_names import find_names
from napari_embedding_game.data.gene_sets import SEED
from napari_embedding_game.data.predicted import (
    LIKE,
    OR_UNLIKE,
    UNLIKE,
    PredictedLabels,
)
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import (
    NUMPY,
    PANDAS,
    SCANPY,
    Draft,
    call,
    code_of,
)
from napari_embedding_game.session.taught_classes import has_unit, rows_of

TL = "from napari_embedding_game import tl"
LEARN = "from napari_embedding_game.core.inspect.teaching import learn"
FINISH = "from napari_embedding_game.data.stages import finish"


def column_cells(draft: Draft, dataset: Dataset, loaded: Loaded) -> None:
    """Add cells for scores of gene sets, predicted labels and taught classes.

    What was worked out of the map itself, such as how far points wander, is left out.
    """
    if dataset.scores and loaded.has_genes:
        _scores(draft, dataset, loaded)
    for column, predicted in dataset.predicted.items():
        _predicted(draft, column, predicted)
    for column, examples in dataset.taught.items():
        if column in dataset.obs and "use_rep" in loaded.where:
            _taught(draft, dataset, loaded, column, examples)


def known_columns(dataset: Dataset, loaded: Loaded) -> set[str]:
    """Return the columns of the metadata that the code has."""
    unknown = set(dataset.worked_out)
    if not loaded.has_genes:
        unknown |= set(dataset.scores)
    if "use_rep" not in loaded.where:
        unknown |= {name + end for name in dataset.taught for end in ("", CONFIDENCE)}
    return set(map(str, dataset.obs.columns)) - unknown


def _scores(draft: Draft, dataset: Dataset, loaded: Loaded) -> None:
    draft.text(
        "## Scores of gene sets",
        "The mean of the genes of a set less that of other genes of like expression.",
    )
    scored, lines, use_raw = "adata", [], loaded.use_raw
    if loaded.is_counts:
        source = "adata.raw.to_adata()" if use_raw else "adata.copy()"
        scored, use_raw = "scored", None
        lines = [
            f"scored = {source}",
            f"sc.pp.normalize_total(scored, target_sum={TARGET_SUM:g})",
            "sc.pp.log1p(scored)",
        ]
    options = {} if use_raw is None else {"use_raw": use_raw}
    for name, genes in dataset.scores.items():
        places = find_names(genes, dataset.profile_names).places
        known = [dataset.profile_names[place] for place in places]
        lines.append(
            call(
                "sc.tl.score_genes",
                scored,
                code_of(known),
                score_name=name,
                random_state=SEED,
                **options,
            )
        )
        if scored != "adata":
            column = code_of(name)
            lines.append(f"adata.obs[{column}] = scored.obs[{column}]")
    draft.code(*lines, imports=[SCANPY])


def _predicted(draft: Draft, column: str, predicted: PredictedLabels) -> None:
    path = Path(predicted.reference)
    draft.text(
        f"## Labels from {path.name}",
        f"`{predicted.label}` of each cell by the votes of the reference's cells that "
        "are nearest to it on the reference's map; and whether it is like any of them.",
    )
    options = {"copy": True}
    if predicted.correct_batch:
        options = {"correct_batch": True, "copy": True}
    mapped = call(
        "mapped = tl.map_onto_reference", "adata", code_of(draft.path_to(path)),
        code_of(predicted.label), **options,
    )  # fmt: skip
    given = {
        "": f"{predicted.label}_predicted",
        "_confidence": f"{predicted.label}_confidence",
        "_likeness": "reference_likeness",
        "_distance": "reference_distance",
    }
    lines = [
        f"adata.obs[{code_of(column + ending)}] = mapped.obs[{code_of(name)}]"
        for ending, name in given.items()
    ]
    draft.code(
        mapped,
        *lines,
        f"adata.obs[{code_of(column + '_reference')}] = pd.Categorical(",
        '    np.where(mapped.obs["unlike_reference"], '
        f"{code_of(UNLIKE)}, {code_of(LIKE)})",
        ")",
        f"adata.obs[{code_of(column + OR_UNLIKE)}] = pd.Categorical(",
        '    np.where(mapped.obs["unlike_reference"], '
        f"{code_of(UNLIKE)}, mapped.obs[{code_of(given[''])}])",
        ")",
        imports=[TL, NUMPY, PANDAS],
    )


def _taught(
    draft: Draft, dataset: Dataset, loaded: Loaded, column: str, examples: Examples
) -> None:
    points = {name: rows_of(dataset, rows) for name, rows in examples.items()}
    points = {name: mask for name, mask in points.items() if mask.any()}
    table = pd.DataFrame(
        [(row, name) for name, mask in points.items() for row in np.flatnonzero(mask)],
        columns=["row", "class"],
    )
    file = draft.beside(
        f"{column.replace('/', '_')}.csv", lambda path: table.to_csv(path, index=False)
    )
    rep = loaded.where["use_rep"]
    X = "adata.X" if rep == "X" else f"adata.obsm[{code_of(rep)}]"
    draft.text(
        f"## Classes taught by example: {column}",
        f"The {len(table):,} examples, rows of the map, are in `{file}`; all other "
        "cells get the class that logistic regression on them gives.",
    )
    draft.code(
        f'examples = pd.read_csv({code_of(file)}, dtype={{"class": str}})',
        f"classes = {code_of(list(points))}",
        'codes = pd.Categorical(examples["class"], classes).codes',
        f'learned = finish(learn({X}, examples["row"], codes, '
        f"is_scaled={has_unit(dataset)}))",
        f"adata.obs[{code_of(column)}] = "
        "pd.Categorical.from_codes(learned.codes, classes)",
        f"adata.obs[{code_of(column + CONFIDENCE)}] = learned.confidence",
        'print(f"Balanced accuracy of examples left out: {learned.score}")',
        imports=[PANDAS, LEARN, FINISH],
    )
