"""Read .h5mu files: each modality is an AnnData, whose spaces are those of the file.

The rows are those of the modality. A space is written "obsm['X_pca'] of rna".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.expression import to_dense
from napari_embedding_game.data.formats import spaces, store
from napari_embedding_game.data.formats.anndata import (
    read_root_identity,
    read_root_in_stages,
    to_numeric_matrix,
)
from napari_embedding_game.data.identity import Identity, RowHashes
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.row_matrices import Matrix
from napari_embedding_game.data.stages import Stage, Stages

ENDING = ".h5mu"
_FIRST = ("rna", "gex")
"""Names of the modality that is read by default, where it is there."""


def read_mudata_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read one space of one modality of an .h5mu file, in stages.

    By default it is the default space of the modality "rna", else of the first.
    Columns of ``obs`` and entries of ``obsm`` of the file are added to those of the
    modality. A second space may be of another modality: its rows are found by their
    names. Raises DataError if the file is damaged or too large, or lacks a space.
    """
    yield Stage(f"Opening {path.name}")
    with _open_modalities(path) as roots:
        listed = {
            f"{space}{spaces.OF}{name}": (name, space)
            for name, root in roots.items()
            for space in spaces.list_spaces_default_first(root, f"{path.name}, {name}")
        }
        chosen = options.choose_space(list(listed), path.name)
        name, space = listed[chosen]
        how = replace(options, space=space, second_space=None)
        result = yield from read_root_in_stages(roots[name], path, how)
        dataset = result.dataset
        if second := options.second_space:
            second = replace(options, space=second).choose_space([*listed], path.name)
            yield Stage(f"Reading {second}")
            other, space = listed[second]
            names = roots[name]["obs"].index
            second_X = _read_for_rows(names, roots[other], space, path.name)
            second_X = second_X[dataset.kept]
            dataset = dataset.with_matrices(second_space=second, second_X=second_X)
    hashes = _add_modality_to_names(name, dataset.row_hashes)
    dataset = replace(dataset, space=chosen, row_hashes=hashes)
    others = [space for space in listed if space != chosen]
    return replace(result, dataset=dataset, spaces=[chosen, *others])


def _read_for_rows(names: pd.Index, root: Any, space: str, where: str) -> Matrix:
    """Return a space of a modality, a row for each name; NaN where there is none.

    ``names`` (N,) of rows. ``root``: of the modality. Raises DataError if its rows have
    repeated names that are not those in the same order.
    """
    item, own = spaces.get_space_item(root, space), root["obs"].index
    values = to_numeric_matrix(store.read_element(item, where, space), space, where)
    if own.equals(names):
        return values
    if not own.is_unique:
        raise DataError(
            f"{where} has repeated names of cells, so that {space} can't be joined to "
            "the cells of another modality: give each cell a name of its own (scanpy: "
            "obs_names_make_unique)."
        )
    none = np.full((1, values.shape[1]), np.nan, np.float32)
    is_sparse = sp.issparse(values)
    parts = [values, none]
    rows = sp.vstack(parts, format="csr") if is_sparse else np.vstack(parts)
    return rows[own.get_indexer(names)]  # -1, for no row, is the last row


def read_modality_hashes(path: Path, known: Identity) -> RowHashes:
    """Return row hashes of the spaces by which rows of a modality were `known`."""
    name = str(next(iter(known.row_hashes))).rpartition(spaces.OF)[2]
    plain: RowHashes = {
        str(x).rpartition(spaces.OF)[0]: one for x, one in known.row_hashes.items()
    }
    with _open_modalities(path) as roots:
        if name not in roots:
            return {}
        found = read_root_identity(
            roots[name], path.name, replace(known, row_hashes=plain)
        )
    return _add_modality_to_names(name, found.row_hashes)


def _add_modality_to_names(name: str, hashes: RowHashes) -> RowHashes:
    """Return row hashes keyed by the names of spaces with their modality."""
    return {f"{part}{spaces.OF}{name}": one for part, one in hashes.items()}


@contextmanager
def _open_modalities(path: Path) -> Iterator[dict[str, Any]]:
    """Open an .h5mu file and yield the root of each modality, the default first.

    Raises DataError for damage, or if there is no modality; any exception in the block
    becomes a DataError, too.
    """
    with wrap_read_errors(path, f"an {ENDING} file"), store.open_store(path) as file:
        names = [x for x in file.get("mod", ()) if {"obs", "var"} <= {*file["mod"][x]}]
        if not names:
            raise DataError(
                f"{path.name} holds no modality: write it again with mudata's "
                "write_h5mu."
            )
        ordered = [str(x) for x in np.ravel(file["mod"].attrs.get("mod-order", names))]
        names = [*(x for x in ordered if x in names), *names]
        names.sort(key=lambda name: name not in _FIRST)
        obs = store.read_element(file["obs"], path.name, "its table obs")
        obs = obs.set_axis(obs.index.astype(str), axis="index")
        yield {
            name: _join_modality(file, name, obs, path.name)
            for name in dict.fromkeys(names)
        }


def _join_modality(
    file: Any, name: str, obs: pd.DataFrame, where: str
) -> dict[str, Any]:
    """Return the root of a modality with the columns and ``obsm`` of the file.

    ``obs``: metadata of all cells of the file. Where its row names are repeated nothing
    is added.
    """
    group = file["mod"][name]
    own = store.read_element(group["obs"], where, f"the table obs of {name}")
    own = own.set_axis(own.index.astype(str), axis="index")
    root = {**group, "obs": own}
    if not obs.index.is_unique:
        return root
    rows = obs.index.get_indexer(own.index)
    new = [x for x in obs if x not in own and str(x).partition(":")[0] != name]
    root["obs"] = pd.concat([own, obs[new].reindex(own.index)], axis="columns")
    joint = dict(group.get("obsm", {}))
    for key, item in file.get("obsm", {}).items():
        # Under the names of modalities are masks of their cells.
        if key not in joint and key not in file["mod"] and len(np.shape(item)) == 2:
            values = to_dense(store.read_element(item, where, f"its {key}"))
            found = np.where(rows[:, None] < 0, np.nan, values[rows].astype(float))
            joint[key] = found
    return {**root, "obsm": joint}
