"""Results to files: always whole or not at all, and never over the input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from .annotation import copy_with_result, new_anndata, result_columns
from .dataset import Dataset
from .errors import DataError
from .result import EmbeddingResult


def check_output(source: Path | None, path: Path) -> None:
    """Raise DataError if `path` is the input or its folder cannot take a file."""
    if source is not None and path.exists() and path.samefile(source):
        raise DataError(
            f"{path.name} is the input itself and stays as it is: "
            "choose another name for the result."
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder: add the name of a file.")
    if not path.parent.is_dir():
        raise DataError(
            f"The folder {path.parent} does not exist: make it, or choose another."
        )
    if not os.access(path.parent, os.W_OK):
        raise DataError(
            f"Nothing can be written into the folder {path.parent}: choose another."
        )


def write_h5ad(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write the result as .h5ad, beside everything the .h5ad input held.

    Adds ``obsm["X_embedding_game"]``, ``obs["embedding_game_cluster"]``,
    ``obs["embedding_game_pressure"]`` and ``uns["embedding_game"]``; rows left out
    get NaN and "unassigned".  An existing file is replaced in one step.

    Raises
    ------
    DataError
        If `path` is the input, or cannot be written.
    """
    path = Path(path)
    check_output(dataset.source, path)
    _check_present(dataset)
    with _whole_or_nothing(path) as temporary:
        if dataset.source and dataset.source.suffix.lower() == ".h5ad":
            copy_with_result(dataset, result, temporary)
        else:
            new_anndata(dataset, result).write_h5ad(temporary, compression="gzip")


def write_csv(dataset: Dataset, result: EmbeddingResult, path: str | Path) -> None:
    """Write position, cluster and pressure of every row of the source as .csv."""
    path = Path(path)
    check_output(dataset.source, path)
    positions = dataset.expand(result.embedding, np.nan)
    axes = "xyz"[: positions.shape[1]]
    table = pd.DataFrame(
        dict(zip(axes, positions.T, strict=True)), index=dataset.source_obs_names
    )
    table = table.assign(**result_columns(dataset, result)).rename_axis("row")
    with _whole_or_nothing(path) as temporary:
        table.to_csv(temporary)


@contextmanager
def _whole_or_nothing(path: Path) -> Iterator[Path]:
    """Give a temporary file that takes the place of `path` when all went well."""
    try:
        temporary = path.with_name(f".{os.getpid()}-{path.name}")
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path} could not be written ({error.strerror or error}): make room or "
            "choose another folder."
        ) from error


def _check_present(dataset: Dataset) -> None:
    if dataset.source is not None and not dataset.source.exists():
        raise DataError(
            f"{dataset.source} is no longer there, but the result is written beside "
            "what it held: put it back, or save the result as .csv."
        )
