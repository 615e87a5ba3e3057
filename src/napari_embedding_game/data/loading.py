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
from napari_embedding_game.data.columns import check_chosen
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.quality_control import cell_quality
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult, can_mix
from napari_embedding_game.data.readers import read_stages
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.recipe import Prepared, apply_recipe
from napari_embedding_game.data.stages import Stages


def load(path: str | Path, **options: Any) -> Stages[Dataset]:
    """Read and check a file, and apply the recipe to its counts, in stages.

    A generator of :class:`~.stages.Stage` that returns the
    :class:`~.dataset.Dataset`.  Closing it cancels and closes the file; nothing is
    left behind.  :func:`~.stages.finish` does it all at once.

    Takes all options of :class:`~.read_options.ReadOptions`.  Raises DataError with one
    sentence that names the file and the way out.
    """
    chosen = ReadOptions(**options)
    result = yield from read_stages(path, chosen)
    if chosen.roles:
        names = [*result.dataset.roles, *result.columns]
        check_chosen(names, list(chosen.roles), Path(path).name)
    return (yield from prepared(result, chosen)).dataset


def load_with_choices(path: str | Path, options: ReadOptions) -> Stages[ReadResult]:
    """Do what :func:`load` does, and return what else a window needs to know.

    The file is read in a separate process, the rest is done here.
    """
    result = yield from read_apart(path, read_stages, options=options)
    return (yield from prepared(result, options))


def prepared(
    result: ReadResult, options: ReadOptions, stored: Prepared | None = None
) -> Stages[ReadResult]:
    """Apply the recipe, or mix batches, and tell of the quality of raw counts.

    What the recipe has `stored` another time is not made again.
    """
    dataset, quality = result.dataset, None
    if stored is not None and len(stored.kept) != dataset.n_source_rows:
        stored = None
    if looks_like_counts(dataset):
        quality = cell_quality(dataset.X, dataset.var_names)
    if options.recipe is not None:
        dataset = yield from apply_recipe(dataset, options.recipe, stored)
    elif options.batch_key is not None:
        dataset = yield from with_batches_mixed(dataset, options.batch_key, stored)
    return replace(result, dataset=dataset, quality=quality)


def with_batches_mixed(
    dataset: Dataset, key: str, stored: Prepared | None = None
) -> Stages[Dataset]:
    """Return a dataset whose components have the batches of a column mixed.

    Its components come with the file; `stored` is what came of the same
    another time.  Raises DataError if these are no components, the column names no
    batches, or there is no harmonypy.
    """
    if not can_mix(dataset):
        raise DataError(
            f"Harmony mixes batches in components, such as obsm['X_pca'], and not in "
            f"{dataset.space} of {dataset.name}: choose another space."
        )
    harmony.check_batches(dataset, key)
    if stored is not None and np.array_equal(stored.kept, dataset.kept):
        mixed = stored.X
    else:
        mixed = yield from harmony.mixed_by_harmony(dataset.X, dataset.obs, key)
    facts = {
        "batch_key": key,
        "space": dataset.space,
        "random_state": harmony.SEED,
        "harmonypy": metadata.version("harmonypy"),
    }
    return replace(
        dataset,
        X=mixed,
        space=f'{dataset.space}, "{key}" mixed by Harmony',
        read_options=replace(dataset.read_options or ReadOptions(), batch_key=key),
        notes=(*dataset.notes, harmony.mixing_note(key)),
        provenance={**dataset.provenance, "harmony": facts},
    )
