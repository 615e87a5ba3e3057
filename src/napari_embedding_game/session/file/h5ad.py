"""A session file inside the .h5ad file of its map, so that the map opens as saved.

The session file is stored as bytes in ``uns["embedding_game"]["session"]``.  Its
numbers are read from the .h5ad file where this holds them as the source did; otherwise
they are among the bytes.  The window calls the functions that open the file in the
process that reads files.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import wrap_read_errors
from napari_embedding_game.data.export.anndata_result import to_storable_obs
from napari_embedding_game.data.formats.anndata import (
    read_root_identity,
    to_readable_root,
)
from napari_embedding_game.data.formats.store import open_store, read_element
from napari_embedding_game.data.identity import Identity, Part, hash_rows
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.file.saved_map import SavedMap

ENDING = ".h5ad"
_PLACE = f"uns/{KEY}/session"


def has_session(path: Path) -> bool:
    """Return whether a file is an .h5ad file with a session of the window.

    False also for a file that cannot be read.
    """
    import h5py

    if path.suffix.lower() != ENDING or not path.is_file():
        return False
    try:
        with h5py.File(path) as file:
            part = file
            for name in _PLACE.split("/"):  # a link of another kind is not followed
                if not isinstance(part.get(name, getlink=True), h5py.HardLink):
                    return False
                part = part[name]
            return isinstance(part, h5py.Dataset)
    except Exception:
        return False  # the reader reports the error


def read_session_bytes(path: Path) -> bytes | None:
    """Return the bytes of the session in an .h5ad file; None for any other file."""
    if not has_session(path):
        return None
    with wrap_read_errors(path, "an .h5ad file"), open_store(path) as file:
        content: NDArray[np.uint8] = read_element(file[_PLACE], path.name, "its map")
        return content.tobytes()


def read_obs_and_identity(path: Path, known: Identity) -> tuple[pd.DataFrame, Identity]:
    """Return the metadata of the rows of an .h5ad file, and the rows' identity.

    ``known``: as for :func:`~.formats.anndata.read_root_identity`.
    """
    with wrap_read_errors(path, "an .h5ad file"), open_store(path) as file:
        obs: pd.DataFrame = read_element(file["obs"], path.name, "its table obs")
        found = read_root_identity(to_readable_root(file, path), path.name, known)
        return obs.set_axis(obs.index.astype(str)), found


def make_identity_of_map(saved: SavedMap) -> Identity:
    """Return the identity of a map's rows in the .h5ad file that holds the map.

    The rows are identified by their names, their features and, with a layout, their
    positions.
    """
    dataset, snapshot = saved.dataset, saved.snapshot
    parts = {"X": dataset.profile}
    if snapshot is not None:
        parts[f"obsm['X_{KEY}']"] = snapshot.embedding
    expanded = {
        part: dataset.expand_to_source_rows(values) for part, values in parts.items()
    }
    hashes: dict[Part, Any] = {part: hash_rows(x) for part, x in expanded.items()}
    return Identity(dataset.source_obs_names, hashes)


def add_changed_columns(
    dataset: Dataset, obs: pd.DataFrame, order: NDArray[np.intp]
) -> Dataset:
    """Return a dataset with the new and changed metadata columns of a file.

    Columns of a map, and columns that were added in the program, are not taken.

    ``obs``: metadata of the file. ``order`` (n_source_rows,): row of ``obs`` of each
    source row.
    """
    new = drop_result_columns(obs.iloc[order], dataset.added_columns)
    rows, old = new[dataset.kept], to_storable_obs(dataset.obs)
    same = [n for n in new if n in old and _has_same_values(old[n], rows[n])]
    new, whole = new.drop(columns=same), dataset.source_obs
    if whole is not None:
        whole = whole.assign(**new.set_axis(whole.index))
    new = new[dataset.kept].set_axis(dataset.obs.index)
    return replace(dataset, obs=dataset.obs.assign(**new), source_obs=whole)


def drop_result_columns(
    obs: pd.DataFrame, results: Collection[str] = ()
) -> pd.DataFrame:
    """Return metadata without the columns "embedding_game_..." of a map.

    ``results``: names of further columns to leave out.
    """
    names = obs.columns
    return obs.loc[:, ~(names.isin(results) | names.str.startswith(f"{KEY}_"))]


def read_h5ad_rows(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read a file of any kind in stages, without the columns of a saved map.

    Columns are left out only of an .h5ad file that holds a session.
    """
    result = yield from read_in_stages(path, options)
    if not has_session(path):
        return result
    dataset = result.dataset
    tables = {part: getattr(dataset, part) for part in ("obs", "source_obs")}
    tables = {k: x if x is None else drop_result_columns(x) for k, x in tables.items()}
    return replace(result, dataset=replace(dataset, **tables))


def _has_same_values(old: pd.Series, column: pd.Series) -> bool:
    """Return whether two columns have the same values; "" counts as missing."""
    # What is missing was once stored as "".
    one, other = (x.astype(object).where(x.notna(), "") for x in (old, column))
    return bool(one.tolist() == other.tolist())
