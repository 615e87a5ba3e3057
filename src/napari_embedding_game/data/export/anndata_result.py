"""Write a result into an AnnData: obs columns, obsm positions, uns record."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    KEY,
    list_text,
    make_names_unique,
    to_text_levels,
)
from napari_embedding_game.data.dataset import UNASSIGNED, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.hdf5 import reserve_bytes, write_h5ad
from napari_embedding_game.data.export.result import (
    EmbeddingResult,
    find_installed_versions,
    get_last_path_part,
    to_storable,
)
from napari_embedding_game.data.formats.anndata import (
    has_array_tables,
    read_file_identity,
    read_whole_anndata,
)
from napari_embedding_game.data.formats.conversion import CONVERTERS, find_converter
from napari_embedding_game.data.formats.fcs import find_fcs_files
from napari_embedding_game.data.formats.matrices import build_anndata
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.data.identity import Identity, align_rows
from napari_embedding_game.data.palette import make_scanpy_color_arrays
from napari_embedding_game.data.tissue import POSITIONS

if TYPE_CHECKING:
    from anndata import AnnData

GREY = "#b0b0b0"
_CLUSTER, _ANNOTATION, _LEFT_OUT = (
    f"{KEY}_{word}" for word in ("cluster", "annotation", "left_out")
)
_COLORED = (_CLUSTER, _ANNOTATION)
_GAPS = {"b": "boolean", "i": "Int64", "u": "UInt64", "f": "float64"}
"""Types of numbers with gaps that anndata writes, keyed by numpy's kind."""
_SPARE = 1 << 22
"""Bytes for HDF5's metadata of arrays."""
_FIGURES = ("pressure", "stretch", "isolation")
NOT_WRITTEN = (
    "Nothing was saved, as the result is written beside what it holds: put the former "
    "file back, or save a table (.csv)."
)
MAP_COLUMNS = (*_FIGURES, "left_out", "landmark", "stability", "change")
"""Columns of a former map that a new map may lack."""


def make_result_columns(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Return the columns of a result for all source rows, keyed by name.

    - cluster: displayed names of the clusters
    - annotation: only names that a person gave; absent without any
    - pressure: absent where the method does not define it
    - stretch and isolation: absent where they are unknown
    - landmark: absent if the clusters are the landmarks
    - left_out: why rows were left out; absent if all rows are on the map
    - quality of cells, and all columns added since reading
    """
    added = [name for name in dataset.added_columns if name in dataset.obs]
    values = {name: dataset.obs[name].array for name in added}
    values[_CLUSTER] = names = result.groups.names_by_point
    if annotated := [one.name for one in result.groups.clusters if one.is_named]:
        values[_ANNOTATION] = names.set_categories(annotated)
    snapshot = result.snapshot
    for word in _FIGURES if snapshot.has_pressure else _FIGURES[1:]:
        if (figure := getattr(snapshot, word)) is not None:
            values[f"{KEY}_{word}"] = figure
    if result.clustering is not None:
        values[f"{KEY}_landmark"] = snapshot.labels
    columns = {name: dataset.expand_to_source_rows(one) for name, one in values.items()}
    if not dataset.kept.all():
        columns[_LEFT_OUT] = dataset.explain_left_out()
    return {**dataset.quality, **columns}


def make_result_frame(dataset: Dataset, result: EmbeddingResult) -> pd.DataFrame:
    """Return label, position and :func:`make_result_columns` of every source row.

    Positions of rows left out are NaN; the label is there for objects. Objects that
    were measured here have their time, centres and measures, too. The index holds the
    row names; it is called "row", or "row_name" if a column is called "row".
    """
    positions = dataset.expand_to_source_rows(result.snapshot.embedding)
    objects, obs, columns = dataset.source_objects, dataset.source_obs, dict[str, Any]()
    is_measured = "measured" in dataset.provenance
    if objects is not None:  # rows without an object have a missing label
        ids = pd.arrays.IntegerArray(objects.label_ids.copy(), ~objects.present)
        columns["label"] = objects.label_ids if objects.present.all() else ids
    if is_measured and obs is not None:
        columns |= {name: obs[name].to_numpy() for name in obs if name != "label"}
    columns |= zip([f"{KEY}_x", f"{KEY}_y", f"{KEY}_z"], positions.T, strict=False)
    columns |= make_result_columns(dataset, result)
    # The profile has the measures in their own units.
    if is_measured and dataset.has_own_profile:
        values = dataset.expand_to_source_rows(dataset.profile)
        columns |= zip(dataset.profile_names, values.T, strict=True)
    # "row" is taken by the row of a plate.
    heading = "row_name" if "row" in columns else "row"
    return pd.DataFrame(columns, index=dataset.source_obs_names).rename_axis(heading)


def write_anndata(dataset: Dataset, result: EmbeddingResult, target: Path) -> None:
    """Write a result as .h5ad, together with all that the dataset's source holds.

    A source that is AnnData or counts is copied; of another source, or none, the rows
    of the dataset are written. Adds ``obsm["X_embedding_game"]``, the columns of
    :func:`make_result_columns` and ``uns["embedding_game"]``; rows left out get NaN and
    "unassigned", and ``obs["embedding_game_left_out"]`` says why. Rows of the source
    that are in another order now are found by name.

    Raises DataError if the source is gone, or its rows differ from those that were
    read.
    """
    source = dataset.source
    if source is not None and not source.exists():
        raise DataError(
            f"{source} is no longer there, but the result is written beside what it "
            "held: put it back, or save the result as .csv."
        )
    if source is None or not does_h5ad_contain_source(source):
        write_h5ad(_dataset_to_anndata(dataset), target)
    elif source.name.lower().endswith(".h5ad") and not has_array_tables(source):
        shutil.copyfile(source, target)  # copying avoids loading the unchanged parts
    else:
        convert = find_converter(source)
        adata = convert(source)[0] if convert else read_whole_anndata(source)
        write_h5ad(adata, target)
    _add_result_to_file(dataset, result, target)


def does_h5ad_contain_source(source: Path) -> bool:
    """Return whether the .h5ad file of a map holds all that its source holds.

    This is so for AnnData, counts and folders but those of .fcs files. Of tables and
    arrays it holds the rows alone.
    """
    is_copied = source.name.lower().endswith((".h5ad", *CONVERTERS))
    return is_copied or (source.is_dir() and not find_fcs_files(source))


def build_result_anndata(dataset: Dataset, result: EmbeddingResult) -> AnnData:
    """Build an AnnData of a dataset's profile and metadata, with the result."""
    adata = _dataset_to_anndata(dataset)
    parts = _collect_result_parts(dataset, result)
    adata.obs = adata.obs.assign(**parts["obs"])
    adata.obsm.update(parts["obsm"])
    adata.uns.update(parts["uns"])
    return adata


# Building the AnnData that receives a result


def _dataset_to_anndata(dataset: Dataset) -> AnnData:
    """Return the profile, metadata and components of all source rows as an AnnData.

    Rows left out have no values in the profile. Components are included only if the
    space is an entry of ``obsm``, positions in tissue if there are any.
    """
    obs = dataset.source_obs
    if obs is None:
        # Nullable types keep whole numbers whole where left-out rows have no value.
        nullable = dataset.obs.select_dtypes(["bool", "integer"]).convert_dtypes()
        obs = dataset.obs.astype(nullable.dtypes.to_dict())
        obs = obs.set_axis(np.flatnonzero(dataset.kept), axis=0)
        obs = obs.reindex(range(dataset.n_source_rows))
    obs = to_storable_obs(obs).set_axis(dataset.source_obs_names.astype(str))
    values = dataset.expand_to_source_rows(dataset.profile)
    adata = build_anndata(values, obs, dataset.profile_names, dataset.gene_ids)
    adata.uns |= make_scanpy_color_arrays(obs, dataset.level_colors)
    element = split_space(dataset.space)
    if element is not None and element[0] == "obsm":
        adata.obsm[element[1]] = dataset.expand_to_source_rows(dataset.X)
    if dataset.source_tissue is not None:
        adata.obsm[POSITIONS] = dataset.source_tissue.positions
    return adata


def to_storable_obs(obs: pd.DataFrame) -> pd.DataFrame:
    """Return metadata in types and with unique names that an .h5ad file can hold."""
    names = obs.columns.astype(str).str.replace("/", "_")
    names = make_names_unique(names.str.replace(r"^_index$", "index", regex=True))
    columns = [_to_storable_column(column) for _, column in obs.items()]
    return pd.DataFrame(dict(zip(names, columns, strict=True)), index=obs.index)


def _to_storable_column(column: pd.Series) -> pd.Series:
    """Return a column in a type that an .h5ad file can hold.

    Numbers keep their kind; levels that are no numbers become texts. Other values
    become texts, which are a categorical if any is missing.
    """
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        is_number = dtype.categories.dtype.kind in "biuf"
        return column if is_number else to_text_levels(column)
    if isinstance(dtype, np.dtype) and dtype.kind in _GAPS:
        return column
    if dtype.kind in _GAPS:  # nullable types of pandas or Arrow
        return column.astype(_GAPS[dtype.kind])
    texts = column.astype(str).astype(object)  # dates are written without 00:00
    return (
        texts if column.notna().all() else to_text_levels(texts.where(column.notna()))
    )


def _add_result_to_file(
    dataset: Dataset, result: EmbeddingResult, target: Path
) -> None:
    """Write a result into an .h5ad file that is a copy of its source.

    Columns and colours of a former map are removed; the keys of the file are listed in
    ``uns``, to tell later which entries other programs added. Raises DataError if the
    source has changed, and OSError if the disk is full.
    """
    import h5py
    from anndata.io import read_elem, write_elem

    with h5py.File(target) as file:
        obs, used_keys = read_elem(file["obs"]), {*file.get("obsm", ())}
        # The components of a former map are replaced.
        if (components := f"uns/{KEY}/components") in file:
            used_keys.discard(read_elem(file[components]))
    indices = _find_source_row_of_file_rows(dataset, target)
    new = _collect_result_parts(dataset, result, indices, used_keys)
    old_columns = [f"{KEY}_{name}" for name in (*MAP_COLUMNS, "annotation")]
    obs = obs.drop(columns=old_columns, errors="ignore").assign(**new["obs"])
    parts = {group: new[group] for group in ("obsm", "uns")}
    n_bytes = obs.memory_usage(deep=True).sum() + len(pickle.dumps(parts))
    reserve_bytes(target, 2 * int(n_bytes) + _SPARE)
    with h5py.File(target, "r+") as file:
        write_elem(file, "obs", obs)
        for group, part in parts.items():
            if group not in file:
                write_elem(file, group, {})
            for key, value in part.items():
                write_elem(file[group], key, value)
        for key in {f"{name}_colors" for name in _COLORED} - new["uns"].keys():
            if key in file["uns"]:
                del file["uns"][key]
        write_elem(
            file[f"uns/{KEY}"], "contents", to_storable(sorted(_list_contents(file)))
        )


def _find_source_row_of_file_rows(dataset: Dataset, target: Path) -> NDArray[np.intp]:
    """Return for each row of a file the index of the source row of a dataset, (n,).

    If an .h5ad file holds all of the source, `target` is a copy of what the source
    holds now, and its rows are matched with those of the dataset by identity. Else
    `target` was written from the dataset, and its rows are in the same order.

    Raises DataError if the source has changed.
    """
    source = dataset.source
    # The file was written from the dataset.
    if source is None or not does_h5ad_contain_source(source):
        return np.arange(dataset.n_source_rows)
    known = Identity.from_dataset(dataset)
    order = align_rows(
        known, read_file_identity(target, known), dataset.name, NOT_WRITTEN
    )
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    return rows


def _list_contents(file: Any) -> set[str]:
    """Return the entries of an AnnData file, such as "obsm['X_umap']", but colours."""
    groups = ("obsm", "uns", "obsp", "varm", "varp", "layers", "raw")
    keys = {x: file.get(x, ()) for x in groups}
    keys |= {x: file[x].attrs["column-order"] for x in ("obs", "var")}
    items = {(group, key) for group, group_keys in keys.items() for key in group_keys}
    return {f"{x}['{key}']" for x, key in items if not key.endswith("_colors")}


def check_foreign_entries_kept(former_file: Path, new_file: Path) -> None:
    """Raise DataError if the new file lacks entries that other programs have added.

    Such an entry, a UMAP or a column, is in the former file of a map but not in the
    list of keys that the file got when the map was written. Colours are not compared. A
    former file that is missing, or has no such list, is not checked.
    """
    import h5py
    from anndata.io import read_elem

    path = f"uns/{KEY}/contents"
    if not h5py.is_hdf5(former_file):
        return
    with h5py.File(former_file) as old, h5py.File(new_file) as file:
        if path not in old:
            return
        lost = sorted(
            _list_contents(old) - _list_contents(file) - {*read_elem(old[path])}
        )
    if lost:
        raise DataError(
            f"{former_file.name} holds {list_text(lost, 3)}, which another program has "
            "added and this would take away: choose another name."
        )


# Building the parts of a result


def _collect_result_parts(
    dataset: Dataset,
    result: EmbeddingResult,
    source_rows: Any = slice(None),
    used_keys: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """Return what a result adds to ``obs``, ``obsm`` and ``uns``, by group and key.

    Components computed by the recipe are included, and colours if a person chose any.

    ``source_rows``: index into the source's rows, applied to every array of ``obs`` and
    ``obsm``; by default all rows in order. ``used_keys``: keys of ``obsm`` that the
    file keeps; if the key of the components is among them, it gets a suffix.
    """
    obs, key = make_result_columns(dataset, result), find_components_key(dataset)
    obsm = {f"X_{KEY}": dataset.expand_to_source_rows(result.snapshot.embedding)}
    if key is not None:
        key = f"{key}_{KEY}" if key in used_keys else key
        obsm[key] = dataset.expand_to_source_rows(dataset.X)
    uns: dict[str, Any] = {KEY: _build_record(dataset, result, key)}
    if colors := {x.name: x.color for x in result.groups.clusters if x.color}:
        levels = {name: {UNASSIGNED: GREY, **colors} for name in _COLORED}
        uns |= make_scanpy_color_arrays(pd.DataFrame(obs), levels)
    of_rows = [
        {name: x[source_rows] for name, x in part.items()} for part in (obs, obsm)
    ]
    return {"obs": of_rows[0], "obsm": of_rows[1], "uns": uns}


def _build_record(
    dataset: Dataset, result: EmbeddingResult, components_key: str | None
) -> dict[str, Any]:
    """Return the record for ``uns``, with all that is needed to repeat the map.

    `components_key` is the key of the components in ``obsm``, or None. The session file
    is included if the result has one; paths of folders are left out.
    """
    clusters, attributes = result.groups.clusters, ("name", "color", "note")
    snapshot = result.snapshot
    texts = {one: [getattr(cluster, one) for cluster in clusters] for one in attributes}
    numbers = np.array([cluster.id for cluster in clusters])
    record = {
        "parameters": to_storable(result.parameters),
        "landmarks": snapshot.landmarks,
        "clusters": {"number": numbers, **to_storable(texts)},
        "energy": float(snapshot.energy),
        "map_hash": snapshot.map_hash,
        "input": {
            "name": dataset.name,
            "space": dataset.space,
            "has_expression": dataset.has_expression,
            "rows": dataset.n_source_rows,
            "rows_embedded": int(np.count_nonzero(dataset.kept)),
            "notes": " ".join(dataset.notes),
        },
        "provenance": to_storable(_hide_folder_path(dataset.provenance)),
        "versions": find_installed_versions(),
    }
    if components_key is not None:
        record["components"] = components_key
    if dataset.projection is not None:
        space = dataset.space if components_key is None else f"obsm['{components_key}']"
        record["projection"] = {**dataset.projection.to_storable(), "space": space}
    if result.session is not None:
        record["session"] = np.frombuffer(result.session, np.uint8)
    return record


def _hide_folder_path(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a provenance, in which measured images have no path.

    Only the name of their folder is kept.
    """
    measured = provenance.get("measured")
    if not isinstance(measured, Mapping) or "folder" not in measured:
        return dict(provenance)
    folder = get_last_path_part(str(measured["folder"]))
    return {**provenance, "measured": {**measured, "folder": folder}}


def find_components_key(dataset: Dataset) -> str | None:
    """Return the usual obsm key of components computed here; None without any.

    These are "X_pca" or "X_pca_harmony" of a recipe; of batches mixed in components of
    the file, the key of these with "_harmony".
    """
    recipe = dataset.provenance.get("recipe")
    mixed = dataset.provenance.get("harmony")
    if not dataset.var_names or (recipe is None and mixed is None):
        return None
    if recipe is not None:
        is_mixed = recipe.get("batch_key") not in (None, "none")
        return "X_pca_harmony" if is_mixed else "X_pca"
    element = split_space(str((mixed or {})["space"]))
    return f"{element[1] if element else 'X'}_harmony"
