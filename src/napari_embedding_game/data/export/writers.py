"""Write results to files: atomically, and never over the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from colorsys import hsv_to_rgb
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, shortened
from napari_embedding_game.data.export.anndata_result import (
    UNASSIGNED,
    result_frame,
    write_anndata,
)
from napari_embedding_game.data.export.atomic import (
    is_same_file,
    target_of,
    whole_or_nothing,
)
from napari_embedding_game.data.export.plots import (
    FACING,
    Levels,
    MapPlot,
    Name,
    PointColors,
    draw,
    flat_map,
    save,
)
from napari_embedding_game.data.export.result import EmbeddingResult

_GOLDEN_ANGLE = 0.618034


def check_output(source: Path | None, path: Path) -> None:
    """Raise DataError if `path` is the input or its folder cannot take a file."""
    if source is not None and is_same_file(path, source):
        raise DataError(
            f"{path.name} is the input itself and stays as it is: "
            "choose another name for the result."
        )
    if source is not None and source.resolve() in path.resolve().parents:
        raise DataError(
            f"{path.name} would lie inside the input {source.name}, which stays as it "
            "is: choose a folder beside it."
        )
    try:
        is_folder = path.is_dir()
    except OSError as error:
        raise DataError(
            f"{shortened(path.name)} cannot be written ({error.strerror}): choose a "
            "shorter name."
        ) from error
    if is_folder:
        raise DataError(f"{path} is a folder: add the name of a file.")
    folder = target_of(path).parent
    if not folder.is_dir():
        raise DataError(
            f"The folder {folder} does not exist: make it, or choose another."
        )
    if not os.access(folder, os.W_OK):
        raise DataError(
            f"Nothing can be written into the folder {folder}: choose another."
        )


def write_h5ad(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write the result as .h5ad, beside everything the .h5ad input held.

    Adds ``obsm["X_embedding_game"]``, ``obs["embedding_game_cluster"]``,
    ``obs["embedding_game_pressure"]`` and ``uns["embedding_game"]``; rows left out
    get NaN and "unassigned", and ``obs["embedding_game_left_out"]`` says why.  Rows of
    the input that stand in another order by now are found by their names.

    Raises
    ------
    DataError
        If `path` is the input, or cannot be written.
    """
    path = Path(path)
    check_output(dataset.source, path)
    if dataset.source is not None and not dataset.source.exists():
        raise DataError(
            f"{dataset.source} is no longer there, but the result is written beside "
            "what it held: put it back, or save the result as .csv."
        )
    with whole_or_nothing(path) as temporary:
        write_anndata(dataset, result, temporary)


def write_csv(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write position, cluster and pressure of every row of the source as .csv.

    ``embedding_game_x`` and ``embedding_game_y`` are the place on the map; objects
    that were measured have ``centroid_y`` and ``centroid_x``, in pixels of their
    image, and their measures, too.
    """
    path = Path(path)
    check_output(dataset.source, path)
    with whole_or_nothing(path) as temporary:
        result_frame(dataset, result).to_csv(temporary)


def write_parquet(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write the same columns as :func:`write_csv` as .parquet."""
    path = Path(path)
    check_output(dataset.source, path)
    with whole_or_nothing(path) as temporary:
        result_frame(dataset, result).to_parquet(temporary)


def write_figure(
    dataset: Dataset,
    result: EmbeddingResult,
    path: str | Path,
    *,
    colors: PointColors | None = None,
    title: str | None = None,
    facing: NDArray[np.floating] | None = None,
    names: Sequence[Name] = (),
) -> None:
    """Draw the map with its legend as .pdf, .svg or .png.

    Parameters
    ----------
    dataset, result
    path : path
    colors : PointColors, optional
        Those of the clusters by default.
    title : str, optional
        The name of the dataset by default.
    facing : (2, 3) array, optional
        Steps of length 1 that go right and up where a map in space is to be seen as on
        the canvas; by default it is seen at an angle.
    names : sequence of (str, (d,) array)
        Written on the map, each at its place.

    Raises
    ------
    DataError
        If `path` is the input, or cannot be written, or matplotlib is missing.
    """
    path = Path(path)
    check_output(dataset.source, path)
    colors = _by_cluster(result) if colors is None else colors
    seen = FACING if facing is None else facing
    shown = None if colors.shown is None else np.flatnonzero(colors.shown)
    flat, rows = flat_map(result.embedding, seen, shown)
    plot = MapPlot(
        embedding=flat[rows],
        colors=colors.of(rows),
        title=dataset.name if title is None else title,
        names=tuple((text, flat_map(at[None], seen)[0][0]) for text, at in names),
        is_counted=True,
    )
    save(draw(plot), path)


def _by_cluster(result: EmbeddingResult) -> PointColors:
    """Return colours that are known of the clusters, else hues far from each other."""
    groups = result.groups()
    table = np.ones((len(groups), 4))
    for place, color in enumerate(groups.values()):
        hue, value = place * _GOLDEN_ANGLE % 1, (0.85, 0.6)[place % 2]
        table[place, :3] = hsv_to_rgb(hue, 0.7, value)
        if color:
            table[place, :3] = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    codes = pd.Categorical(result.point_names(), categories=list(groups)).codes
    return PointColors(table[codes], "Cluster", Levels(tuple(groups), codes))


def write(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write the result in the format that the ending of `path` says.

    Raises
    ------
    DataError
        If it is none of :data:`WRITERS`, or cannot be written.
    """
    writer = WRITERS.get(Path(path).suffix.lower())
    if writer is None:
        raise DataError(
            f"{Path(path).name} cannot be written: the name has to end in one of "
            f"{', '.join(WRITERS)}."
        )
    writer(dataset, result, path)


WRITERS: dict[str, Callable[[Dataset, EmbeddingResult, str | Path], None]] = {
    ".h5ad": write_h5ad,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".png": write_figure,
    ".svg": write_figure,
    ".pdf": write_figure,
}
"""What can be written, by the ending of the file's name."""


def features(
    dataset: Dataset, result: EmbeddingResult, label_ids: ArrayLike | None = None
) -> pd.DataFrame:
    """Columns for the features table of a napari layer.

    Parameters
    ----------
    dataset, result
    label_ids : (M,) integers, optional
        Labels of a Labels layer in the order of the table; the column ``index``
        then says which label a row is of, and a label without a row gets NaN and
        "unassigned".  By default there is a row for each row of the source.

    Raises
    ------
    DataError
        If rows are no objects, or one label is several rows (a time series).
    """
    table = result_frame(dataset, result).reset_index(drop=True)
    if label_ids is None:
        return table.drop(columns="label", errors="ignore")
    if dataset.source_objects is not None:
        table = table[dataset.source_objects.present]
    if dataset.source_objects is None or table["label"].duplicated().any():
        raise DataError(
            f"The rows of {dataset.name} are not one label each, so that they have no "
            "place in a table of labels: save them as .csv."
        )
    wanted = np.asarray(label_ids, dtype=np.int64)
    table = table.set_index("label").reindex(wanted)
    cluster = table[f"{KEY}_cluster"]
    if cluster.isna().any():
        if UNASSIGNED not in cluster.cat.categories:
            cluster = cluster.cat.add_categories(UNASSIGNED)
        table[f"{KEY}_cluster"] = cluster.fillna(UNASSIGNED)
    table.insert(0, "index", wanted)
    return table.reset_index(drop=True)
