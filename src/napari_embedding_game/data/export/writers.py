"""Write results to files: atomically, and never over the source."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export import atomic, plots
from napari_embedding_game.data.export.anndata_result import (
    check_foreign_entries_kept,
    make_result_frame,
    write_anndata,
)
from napari_embedding_game.data.export.result import EmbeddingResult


def check_output_path(source: Path | None, path: Path) -> None:
    """Raise DataError if `path` is the source, lies in it, or cannot take a file.

    A path cannot take a file if it is a folder, or its folder is absent or protected.
    """
    atomic.check_not_source(path, source)
    folder = atomic.resolve_target(path).parent
    trouble = ""
    if source is not None and source.resolve() in path.resolve().parents:
        trouble = f"it would lie inside the input {source.name}: choose a folder beside"
    elif os.path.isdir(path):
        trouble = "it is a folder: add the name of a file"
    elif not folder.is_dir():
        trouble = f"the folder {folder} does not exist: make it, or choose another"
    elif not os.access(folder, os.W_OK):
        trouble = f"nothing can be written into {folder}: choose another folder"
    if trouble:
        raise DataError(f"{path.name} cannot be written, as {trouble}.")


def write_result(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write a result in the format that the ending of `path` names.

    A table has position, cluster and pressure of every source row: ``embedding_game_x``
    and ``embedding_game_y`` are the position on the map; objects that were measured
    have ``centroid_y`` and ``centroid_x``, in pixels of their image, and their
    measures, too. For .h5ad see :func:`~.anndata_result.write_anndata`.

    Raises DataError if the ending is none of :data:`WRITERS`, `path` is the source or
    cannot be written, or with a session the former file has entries of other programs.
    """
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise DataError(
            f"{path.name} cannot be written: the name has to end in one of "
            f"{', '.join(WRITERS)}."
        )
    check_output_path(dataset.source, path)
    with atomic.atomic_write(path) as temporary:
        writer(dataset, result, temporary)
        if result.session is not None:  # the window replaces the file of a map
            check_foreign_entries_kept(path, temporary)


def write_map_figure(
    dataset: Dataset,
    result: EmbeddingResult,
    path: str | Path,
    *,
    colors: plots.PointColors,
    facing: NDArray[np.floating],
    names: Sequence[plots.NamedPosition] = (),
) -> None:
    """Write the map with its legend as .pdf, .svg or .png.

    ``colors``: colour of each of the n points. ``facing``: view of a map in space, see
    :func:`~.plots.project_to_plane`. ``names``: texts and their positions on the map.
    The title is the dataset's name.

    Raises DataError if `path` has another ending, is the source, or cannot be written.
    """
    path = Path(path)
    check_output_path(dataset.source, path)
    flat, rows = plots.project_to_plane(result.snapshot.embedding, facing)
    positions = [plots.project_to_plane(at[None], facing)[0][0] for _, at in names]
    plot = plots.MapPlot(
        embedding=flat[rows],
        colors=colors.take(rows),
        title=dataset.name,
        names=tuple(zip([name for name, _ in names], positions, strict=True)),
    )
    plots.write_plot(plot, path)


WRITERS: dict[str, Callable[[Dataset, EmbeddingResult, Path], None]] = {
    ".h5ad": write_anndata,
    ".csv": lambda data, result, path: make_result_frame(data, result).to_csv(path),
    ".parquet": lambda data, result, path: make_result_frame(data, result).to_parquet(
        path
    ),
}
"""Functions that write a result, keyed by the ending of the file's name."""
