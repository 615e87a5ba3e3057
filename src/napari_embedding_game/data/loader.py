"""Load a dataset in stages, which a worker shows and can stop.

>>> stages = load("cells.h5ad")  # doctest: +SKIP
>>> for stage in stages:  # doctest: +SKIP
...     print(stage.text, stage.share)
"""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.data import harmony
from napari_embedding_game.data.columns import check_columns_exist
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.quality_control import compute_cell_quality
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult, can_mix_batches
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.recipe import RecipeResult, apply_recipe
from napari_embedding_game.data.stages import Stages


def load(path: str | Path, **options: Any) -> Stages[Dataset]:
    """Read and check a file, and apply the recipe to its counts, in stages.

    A generator of :class:`~.stages.Stage` that returns the :class:`~.dataset.Dataset`.
    Closing the generator cancels the reading and closes the file;
    :func:`~.stages.finish` runs it to the end.

    `options` are those of :class:`~.read_options.ReadOptions`; without a recipe,
    batches are mixed if there is a ``batch_key``. Raises DataError with one sentence
    that names the file and the remedy, also for a role of an unknown column.
    """
    chosen = ReadOptions(**options)
    result = yield from read_in_stages(path, chosen)
    if chosen.roles:
        names = [*result.dataset.roles, *result.columns]
        check_columns_exist(names, list(chosen.roles), Path(path).name)
    return (yield from apply_recipe_or_mixing(result, chosen)).dataset


def load_read_result(path: str | Path, options: ReadOptions) -> Stages[ReadResult]:
    """Load a file, and return its dataset with the choices that the file offers.

    Recipe and mixing are applied as in :func:`load`. While there is a window, the file
    is read in a separate process; the recipe is applied in this one.
    """
    result = yield from read_in_process(path, read_in_stages, options=options)
    return (yield from apply_recipe_or_mixing(result, options))


def apply_recipe_or_mixing(
    result: ReadResult, options: ReadOptions, stored: RecipeResult | None = None
) -> Stages[ReadResult]:
    """Apply the recipe if the options have one, else mix batches if they name a column.

    If the values read are raw counts, the quality of all cells is added to the result.
    Results of an earlier run (`stored`) are used instead of computing them again, if
    they are of the same rows.
    """
    dataset, quality = result.dataset, None
    if stored is not None and len(stored.kept) != dataset.n_source_rows:
        stored = None
    if looks_like_counts(dataset):
        quality = compute_cell_quality(dataset.X, dataset.var_names)
    if options.recipe is not None:
        dataset = yield from apply_recipe(dataset, options.recipe, stored)
    elif options.batch_key is not None:
        dataset = yield from mix_dataset_batches(dataset, options.batch_key, stored)
    return replace(result, dataset=dataset, quality=quality)


def mix_dataset_batches(
    dataset: Dataset, key: str, stored: RecipeResult | None = None
) -> Stages[Dataset]:
    """Return the dataset with the batches of column `key` mixed in its components.

    The file has the components; mixed components of an earlier run (`stored`) are used
    if they are of the same rows. Raises DataError if ``X`` are no components, the
    column cannot name batches, or harmonypy is missing.
    """
    if not can_mix_batches(dataset):
        raise DataError(
            f"Harmony mixes batches in components, such as obsm['X_pca'], and not in "
            f"{dataset.space} of {dataset.name}: choose another space."
        )
    harmony.check_batches(dataset, key)
    if stored is not None and np.array_equal(stored.kept, dataset.kept):
        mixed = stored.X
    else:
        mixed = yield from harmony.mix_batches(dataset.X, dataset.obs, key)
    facts = {
        "batch_key": key,
        "space": dataset.space,
        "random_state": harmony.SEED,
        "harmonypy": metadata.version("harmonypy"),
    }
    return dataset.with_matrices(
        X=mixed,
        space=f'{dataset.space}, "{key}" mixed by Harmony',
        read_options=replace(dataset.read_options or ReadOptions(), batch_key=key),
        notes=(*dataset.notes, harmony.describe_mixing(key)),
        provenance={**dataset.provenance, "harmony": facts},
    )
