"""Write a result into an AnnData: obs columns, obsm positions, uns record."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Matrix
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.result import EmbeddingResult, storable, versions
from napari_embedding_game.data.formats.anndata import open_store, read_legacy, table_of
from napari_embedding_game.data.formats.anndata_contents import is_legacy
from napari_embedding_game.data.formats.anndata_store import check_part
from napari_embedding_game.data.formats.anndata_zarr import split_table
from napari_embedding_game.data.formats.tenx import tenx_parts
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.stages import finish

if TYPE_CHECKING:
    from anndata import AnnData

UNASSIGNED = "unassigned"
_COLORS = f"{KEY}_cluster_colors"
_PRESSURE, _STRETCH = f"{KEY}_pressure", f"{KEY}_stretch"
_OBSM = "obsm['", "']"
"""Around the key, in the name of a space."""
_ISOLATION = f"{KEY}_isolation"
_LEFT_OUT = f"{KEY}_left_out"
_NOT_ALWAYS = [_PRESSURE, _STRETCH, _ISOLATION, _LEFT_OUT]
"""Columns of a former map, that another one may not have."""
GREY = "#b0b0b0"


def result_columns(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Cluster, pressure, stretch and isolation of all rows of the source, by column.

    So are the quality of cells, why rows were left out, the scores of gene sets, what
    was worked out of the map, and classes that were taught or predicted.  Pressure is
    left out where the method does not define it, stretch and isolation where they are
    not known.
    """
    made = [*dataset.scores, *sorted(dataset.worked_out)]
    for name in dataset.taught:
        made += [name, name + CONFIDENCE]
    for name, predicted in dataset.predicted.items():
        made += [name + end for end in predicted.columns]
    columns: dict[str, Any] = dict(dataset.quality)
    for name in made:
        if name in dataset.obs:
            columns[name] = _of_all_rows(dataset, dataset.obs[name])
    names = pd.Categorical(result.point_names(), categories=list(result.groups()))
    columns[f"{KEY}_cluster"] = _of_all_rows(dataset, pd.Series(names))
    if result.has_pressure:
        columns[_PRESSURE] = dataset.expand(result.pressure, np.nan)
    if result.stretch is not None:
        columns[_STRETCH] = dataset.expand(result.stretch, np.nan)
    if result.isolation is not None:
        columns[_ISOLATION] = dataset.expand(result.isolation, np.nan)
    if result.clusters is not None:
        columns[f"{KEY}_landmark"] = dataset.expand(result.labels, -1)
    if not dataset.kept.all():
        columns[_LEFT_OUT] = dataset.why_left_out()
    return columns


def _of_all_rows(dataset: Dataset, column: pd.Series) -> Any:
    """Return the values of all rows of the source, NaN or "unassigned" if left out."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return dataset.expand(column, np.nan)
    places = np.full(dataset.n_source_rows, -1)
    places[dataset.kept] = np.arange(len(column))
    return _laid_out(column.array, places)


def result_frame(dataset: Dataset, result: EmbeddingResult) -> pd.DataFrame:
    """Label, position, cluster and pressure of every row of the source.

    Of objects that were measured also their centres and measures.
    """
    positions = dataset.expand(result.embedding, np.nan)
    axes = [f"{KEY}_{axis}" for axis in "xyz"[: positions.shape[1]]]
    columns: dict[str, Any] = {}
    if dataset.source_objects is not None:
        columns["label"] = _label_column(dataset.source_objects)
    columns.update(_centres(dataset))
    columns.update(zip(axes, positions.T, strict=True))
    columns.update(result_columns(dataset, result))
    columns.update(measure_columns(dataset))
    return pd.DataFrame(columns, index=dataset.source_obs_names).rename_axis("row")


def _label_column(objects: Objects) -> Any:
    """Label of each row, missing where a row is no object."""
    if objects.present.all():
        return objects.label_ids
    return pd.arrays.IntegerArray(objects.label_ids.copy(), ~objects.present)


def measure_columns(dataset: Dataset) -> dict[str, NDArray[np.float32]]:
    """(n_source_rows,) values of each measure of objects that were measured here.

    Those of a table that was read are in that table.  Of a map that was restored
    without its image, the measures in their own units are not at hand.
    """
    if "measured" not in dataset.provenance or dataset.profile is dataset.X:
        return {}
    values = dataset.expand(dataset.profile, np.nan)
    return dict(zip(dataset.profile_names, values.T, strict=True))


def _centres(dataset: Dataset) -> dict[str, Any]:
    """Time and centre, in pixels, of each object that was measured here."""
    obs = dataset.source_obs
    if "measured" not in dataset.provenance or obs is None:
        return {}
    return {name: obs[name].to_numpy() for name in obs if name != "label"}


def _record(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Everything that is needed to do the same again."""
    references = {
        name: {
            "reference": one.reference,
            "label": one.label,
            "correct_batch": one.correct_batch,
        }
        for name, one in dataset.predicted.items()
    }
    return {
        "parameters": storable(result.parameters),
        "landmarks": result.landmarks,
        "clusters": _cluster_record(result),
        "energy": float(result.energy),
        "map_hash": result.map_hash,
        "input": {
            "name": dataset.name,
            "space": dataset.space,
            "sha256": dataset.sha256(),
            "rows": dataset.n_source_rows,
            "rows_embedded": int(np.count_nonzero(dataset.kept)),
            "notes": " ".join(dataset.notes),
        },
        "provenance": storable(dataset.provenance),
        **({"gene_sets": storable(dataset.scores)} if dataset.scores else {}),
        **({"taught": storable(dataset.taught)} if dataset.taught else {}),
        **({"predicted": storable(references)} if references else {}),
        **_projection_record(dataset),
        "versions": versions(),
    }


def made_components(dataset: Dataset) -> dict[str, NDArray[np.float32]]:
    """Principal components that the recipe made here, by their key of obsm.

    (n_source_rows, C), NaN in rows left out.  What was read, the file has already.
    """
    recipe = dataset.provenance.get("recipe")
    mixed = dataset.provenance.get("harmony")
    if not dataset.X.shape[1]:
        return {}
    if recipe is not None:
        is_mixed = recipe.get("batch_key") not in (None, "none")
        key = "X_pca_harmony" if is_mixed else "X_pca"
    elif mixed is not None:
        read = str(mixed["space"])
        key = f"{read.removeprefix(_OBSM[0]).removesuffix(_OBSM[1])}_harmony"
    else:
        return {}
    return {key: dataset.expand(dataset.X, np.nan)}


def _projection_record(dataset: Dataset) -> dict[str, Any]:
    if dataset.projection is None:
        return {}
    space = next((f"obsm['{key}']" for key in made_components(dataset)), dataset.space)
    return {"projection": {**dataset.projection.stored(), "space": space}}


def _cluster_record(result: EmbeddingResult) -> dict[str, Any]:
    """Number, name, colour and note of each cluster, each an array."""
    clusters = np.unique(result.shown_clusters)
    colors = [result.cluster_colors.get(int(c), "") for c in clusters]
    notes = [result.cluster_notes.get(int(c), "") for c in clusters]
    return {
        "number": clusters,
        "name": np.array([result.name_of(c) for c in clusters], dtype=object),
        "color": np.array(colors, dtype=object),
        "note": np.array(notes, dtype=object),
    }


def write_anndata(dataset: Dataset, result: EmbeddingResult, target: Path) -> None:
    """Write a result as .h5ad, beside all that the source of a dataset holds."""
    source = dataset.source
    if source is not None and source.suffix.lower() == ".h5ad":
        with open_store(source) as file:
            is_old = is_legacy(file, source.name)
        if not is_old:
            _write_into_copy(dataset, result, source, target)
            return
        adata = read_legacy(source)
        _add_result(adata, dataset, result)
    elif source is not None and _is_counts_or_zarr(source):
        adata = _read_whole(dataset, source)
        _add_result(adata, dataset, result)
    else:
        adata = new_anndata(dataset, result)
    adata.write_h5ad(target, compression="gzip")


def _is_counts_or_zarr(path: Path) -> bool:
    return path.is_dir() or path.name.lower().endswith((".h5", ".mtx", ".mtx.gz"))


def _write_into_copy(
    dataset: Dataset, result: EmbeddingResult, source: Path, target: Path
) -> None:
    """Copy a file and add the result, without loading what is only copied."""
    import h5py
    from anndata.io import read_elem, write_elem

    shutil.copyfile(source, target)
    with h5py.File(target, "r+") as file:
        obs = read_elem(file["obs"])
        columns, obsm, uns = _parts(dataset, result, _rows_in(dataset, obs.index))
        obs = obs.drop(columns=_NOT_ALWAYS, errors="ignore")
        write_elem(file, "obs", obs.assign(**columns))
        for group, elements in (("obsm", obsm), ("uns", uns)):
            if group not in file:
                write_elem(file, group, {})
            for key, value in elements.items():
                write_elem(file[group], key, value)
        if _COLORS not in uns and _COLORS in file["uns"]:
            del file["uns"][_COLORS]


def _read_whole(dataset: Dataset, path: Path) -> AnnData:
    """Return everything that a .zarr folder or 10x counts hold."""
    from anndata import AnnData
    from anndata.io import read_elem

    if path.suffix.lower() != ".zarr":
        parts = finish(tenx_parts(path))
        return AnnData(parts["X"], parts["obs"], parts["var"])
    with open_store(path) as root:
        group = table_of(root, split_table(dataset.space)[0], path.name)
        adata = read_elem(check_part(group, path.name, "its content"))
    adata.obs_names = adata.obs_names.astype(str)
    return adata


def _rows_in(dataset: Dataset, names: pd.Index) -> NDArray[np.intp]:
    """Return which row of the dataset's source each row of a file is now, by name.

    Raises
    ------
    DataError
        The file has other rows than when it was read.
    """
    _check_unchanged(dataset, len(names))
    names, known = names.astype(str), dataset.source_obs_names.astype(str)
    if names.equals(known):
        return np.arange(len(names))
    why = "its rows stand in another order, and some have the same name"
    if names.is_unique and known.is_unique:
        places: NDArray[np.intp] = known.get_indexer(names)
        if (places >= 0).all():
            return places
        why = f'it had no row "{names[int(places.argmin())]}"'
    raise DataError(
        f"{dataset.name} has changed since it was read: {why}; open it again."
    )


def _check_unchanged(dataset: Dataset, n_rows: int) -> None:
    if n_rows != dataset.n_source_rows:
        raise DataError(
            f"{dataset.name} has changed since it was read: it now has {n_rows} rows "
            f"instead of {dataset.n_source_rows}; open it again."
        )


def new_anndata(dataset: Dataset, result: EmbeddingResult) -> AnnData:
    """AnnData with what the dataset compares clusters by, its metadata, the result."""
    from anndata import AnnData

    obs = dataset.source_obs
    if obs is None:
        obs = dataset.obs.set_axis(dataset.source_obs_names[dataset.kept], axis=0)
        obs = obs.reset_index(drop=True)
        obs.index = np.flatnonzero(dataset.kept)
        obs = obs.reindex(range(dataset.n_source_rows))
    with warnings.catch_warnings():
        # Names of rows belong to the user, and may occur twice.
        warnings.filterwarnings("ignore", message=".*names are not unique")
        adata = AnnData(
            X=_all_rows(dataset, dataset.profile),
            obs=_storable_obs(obs).set_axis(dataset.source_obs_names.astype(str)),
            var=pd.DataFrame(index=list(dataset.profile_names)),
        )
    if dataset.space.startswith("obsm["):
        key = dataset.space.split("'")[1]
        adata.obsm[key] = _all_rows(dataset, dataset.X)
    _add_result(adata, dataset, result)
    return adata


def _storable_obs(obs: pd.DataFrame) -> pd.DataFrame:
    """Metadata in the types and under the names that an .h5ad file can hold."""
    columns = {}
    for name in obs.columns:
        key = str(name).replace("/", "_")
        columns["index" if key == "_index" else key] = _storable_column(obs[name])
    return pd.DataFrame(columns, index=obs.index)


def _storable_column(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        if column.cat.categories.dtype.kind in "biuf":
            return column
        return column.cat.rename_categories([str(c) for c in column.cat.categories])
    if column.dtype.kind in "biuf":
        return column
    return column.astype(object).where(column.notna(), "").astype(str)


def _add_result(adata: AnnData, dataset: Dataset, result: EmbeddingResult) -> None:
    _put(adata, *_parts(dataset, result, _rows_in(dataset, adata.obs_names)))


def _parts(
    dataset: Dataset, result: EmbeddingResult, places: NDArray[np.intp]
) -> tuple[dict[str, Any], ...]:
    """Return what a result adds to obs, obsm and uns; see :func:`_laid_out`."""
    obs = {
        name: _laid_out(column, places)
        for name, column in result_columns(dataset, result).items()
    }
    positions = dataset.expand(result.embedding, np.nan)
    obsm = {f"X_{KEY}": positions, **made_components(dataset)}
    uns: dict[str, Any] = {KEY: _record(dataset, result)}
    if result.cluster_colors:
        known, names = result.groups(), obs[f"{KEY}_cluster"].categories
        uns[_COLORS] = np.array([known.get(n) or GREY for n in names], dtype=object)
    return obs, {key: _laid_out(value, places) for key, value in obsm.items()}, uns


def _put(
    adata: AnnData, obs: dict[str, Any], obsm: dict[str, Any], uns: dict[str, Any]
) -> None:
    with warnings.catch_warnings():
        # A view of another AnnData becomes one of its own, as anndata has it.
        warnings.filterwarnings("ignore", message=".*view")
        former = adata.obs.drop(columns=_NOT_ALWAYS, errors="ignore")
        adata.obs = former.assign(**obs)
    adata.obsm.update(obsm)
    adata.uns.pop(_COLORS, None)
    adata.uns.update(uns)


def add_to_rows(
    adata: AnnData, rows: NDArray[np.intp], dataset: Dataset, result: EmbeddingResult
) -> None:
    """Write the result into some rows of an AnnData in memory, and into no file.

    Other rows get NaN and "unassigned", as rows that were left out do.

    Parameters
    ----------
    rows : (n_source_rows,) int
        Row of the AnnData that each row of the dataset's source is.

    Raises
    ------
    DataError
        If the AnnData has other rows than when it was read.
    """
    _check_unchanged(dataset, len(rows))
    names = adata.obs_names.astype(str)
    if rows.max() >= len(names) or not dataset.source_obs_names.equals(names[rows]):
        raise DataError(
            f"The AnnData of '{dataset.name}' has other rows than when it was taken: "
            "take it again, or save the map as .h5ad."
        )
    places = np.full(adata.n_obs, -1)
    places[rows] = np.arange(len(rows))
    obs, obsm, uns = _parts(dataset, result, places)
    # Components that the recipe made do not take the place of a person's own.
    _put(adata, obs, {f"X_{KEY}": obsm[f"X_{KEY}"]}, uns)


def _laid_out(values: Any, places: NDArray[np.intp]) -> Any:
    """Return values at places, and NaN, -1 or "unassigned" where a place is -1."""
    if isinstance(values, pd.Categorical):
        names = list(values.categories)
        if (places < 0).any() and UNASSIGNED not in names:
            names.append(UNASSIGNED)
        codes = values.set_categories(names).codes[places]
        if UNASSIGNED in names:
            codes = np.where(places < 0, names.index(UNASSIGNED), codes)
        return pd.Categorical.from_codes(codes, names)
    values = np.asarray(values)
    laid_out = values[places].copy()
    laid_out[places < 0] = -1 if values.dtype.kind in "iu" else np.nan
    return laid_out


def _all_rows(dataset: Dataset, matrix: Matrix) -> Matrix:
    """Rows of the source from usable rows: NaN, or nothing if sparse, elsewhere."""
    if dataset.kept.all():
        return matrix
    if not sp.issparse(matrix):
        return dataset.expand(matrix, np.nan)
    places = np.flatnonzero(dataset.kept)
    ones = np.ones(len(places), dtype=np.float32)
    shape = (dataset.n_source_rows, len(places))
    return sp.csr_matrix((ones, (places, range(len(places)))), shape) @ matrix
