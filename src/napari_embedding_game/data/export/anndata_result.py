"""Write a result into an AnnData: obs columns, obsm positions, uns record."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Matrix
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.result import EmbeddingResult, storable, versions
from napari_embedding_game.data.formats.anndata import read_whole
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.data.formats.store import is_zarr
from napari_embedding_game.data.formats.tenx import tenx_parts

if TYPE_CHECKING:
    from anndata import AnnData

UNASSIGNED = "unassigned"
GREY = "#b0b0b0"
_CLUSTER, _ANNOTATION = f"{KEY}_cluster", f"{KEY}_annotation"
_COLORED = {f"{name}_colors": name for name in (_CLUSTER, _ANNOTATION)}
_PRESSURE, _STRETCH = f"{KEY}_pressure", f"{KEY}_stretch"
_ISOLATION, _LEFT_OUT = f"{KEY}_isolation", f"{KEY}_left_out"
_NOT_ALWAYS = [_PRESSURE, _STRETCH, _ISOLATION, _LEFT_OUT, _ANNOTATION]
"""Columns of a former map, that another one may not have."""


class _Parts(NamedTuple):
    """What a result adds to an AnnData."""

    obs: dict[str, Any]
    obsm: dict[str, Any]
    uns: dict[str, Any]


def result_columns(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Cluster, pressure, stretch and isolation of all rows of the source, by column.

    Clusters have the names on show; an annotation has those that a person gave.  So are
    the quality of cells, why rows were left out, the scores of gene sets, what was
    worked out of the map, and classes that were taught or predicted.  Pressure is left
    out where the method does not define it, stretch and isolation where they are not
    known.
    """
    made = [*dataset.scores, *sorted(dataset.worked_out)]
    made += [name + end for name in dataset.taught for end in ("", CONFIDENCE)]
    for name, predicted in dataset.predicted.items():
        made += [name + end for end in predicted.columns]
    columns: dict[str, Any] = dict(dataset.quality)
    for name in made:
        if name in dataset.obs:
            columns[name] = _of_all_rows(dataset, dataset.obs[name])
    names = pd.Categorical(result.point_names(), categories=list(result.groups()))
    columns[_CLUSTER] = _of_all_rows(dataset, pd.Series(names))
    if result.annotated:
        said = [n for n in names.categories if n in result.annotated]
        columns[_ANNOTATION] = _of_all_rows(
            dataset, pd.Series(names.set_categories(said))
        )
    if result.has_pressure:
        columns[_PRESSURE] = dataset.expand(result.pressure, np.nan)
    for name, values in ((_STRETCH, result.stretch), (_ISOLATION, result.isolation)):
        if values is not None:
            columns[name] = dataset.expand(values, np.nan)
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

    Of objects that were measured here also their time, centres and measures.
    """
    positions, columns = dataset.expand(result.embedding, np.nan), dict[str, Any]()
    objects, obs = dataset.source_objects, dataset.source_obs
    is_measured = "measured" in dataset.provenance
    if objects is not None:  # missing where a row is no object
        ids = pd.arrays.IntegerArray(objects.label_ids.copy(), ~objects.present)
        columns["label"] = objects.label_ids if objects.present.all() else ids
    if is_measured and obs is not None:
        columns |= {name: obs[name].to_numpy() for name in obs if name != "label"}
    columns |= zip([f"{KEY}_x", f"{KEY}_y", f"{KEY}_z"], positions.T, strict=False)
    columns |= result_columns(dataset, result)
    if is_measured and dataset.profile is not dataset.X:  # in their own units
        values = dataset.expand(dataset.profile, np.nan)
        columns |= zip(dataset.profile_names, values.T, strict=True)
    return pd.DataFrame(columns, index=dataset.source_obs_names).rename_axis("row")


def write_anndata(dataset: Dataset, result: EmbeddingResult, target: Path) -> None:
    """Write a result as .h5ad, beside all that the source of a dataset holds."""
    source = dataset.source
    if source is None or not is_kept_in_h5ad(source):
        adata = _of_dataset(dataset)
    elif source.name.lower().endswith(".h5ad"):
        _write_into_copy(dataset, result, source, target)
        return
    elif is_zarr(source):
        adata = read_whole(source)
    else:
        adata = _of_counts(tenx_parts(source))
    _put(adata, _parts(dataset, result, _rows_in(dataset, adata.obs_names)))
    adata.write_h5ad(target, compression="gzip")


def is_kept_in_h5ad(source: Path) -> bool:
    """Return whether the .h5ad file of a map holds its source as it was.

    So it does of AnnData and of counts; of tables and arrays it has the rows.
    """
    counts = source.name.lower().endswith((".h5ad", ".h5", ".mtx", ".mtx.gz"))
    return counts or source.is_dir()


def add_to_rows(
    adata: AnnData, rows: NDArray[np.intp], dataset: Dataset, result: EmbeddingResult
) -> None:
    """Write the result into some rows of an AnnData in memory, and into no file.

    `rows` (n_source_rows,) tells which row of the AnnData each row of the dataset's
    source is.  Others get NaN and "unassigned", as rows that were left out do.
    Raises DataError if the AnnData has other rows than when it was read.
    """
    names = adata.obs_names.astype(str)
    if rows.max() >= len(names) or not dataset.source_obs_names.equals(names[rows]):
        raise DataError(
            f"The AnnData of '{dataset.name}' has other rows than when it was taken: "
            "take it again, or save the map as .h5ad."
        )
    places = np.full(adata.n_obs, -1)
    places[rows] = np.arange(len(rows))
    parts = _parts(dataset, result, places)
    # Components that the recipe made do not take the place of a person's own.
    of_map = {f"X_{KEY}": parts.obsm[f"X_{KEY}"]}
    _put(adata, parts._replace(obsm=of_map))


def new_anndata(dataset: Dataset, result: EmbeddingResult) -> AnnData:
    """AnnData with what the dataset compares clusters by, its metadata, the result."""
    adata = _of_dataset(dataset)
    _put(adata, _parts(dataset, result, np.arange(dataset.n_source_rows)))
    return adata


def _of_dataset(dataset: Dataset) -> AnnData:
    from anndata import AnnData

    obs = dataset.source_obs
    if obs is None:
        # Whole numbers stay what they are beside rows that have none.
        whole = dataset.obs.select_dtypes(["bool", "integer"]).convert_dtypes()
        obs = dataset.obs.astype(whole.dtypes.to_dict())
        obs = obs.set_axis(np.flatnonzero(dataset.kept), axis=0)
        obs = obs.reindex(range(dataset.n_source_rows))
    with warnings.catch_warnings():
        # Names of rows belong to the user, and may occur twice.
        warnings.filterwarnings("ignore", message=".*names are not unique")
        adata = AnnData(
            X=_all_rows(dataset, dataset.profile),
            obs=storable_obs(obs).set_axis(dataset.source_obs_names.astype(str)),
            var=pd.DataFrame(index=list(dataset.profile_names)),
        )
    place = split_space(dataset.space)
    if place is not None and place[0] == "obsm":
        adata.obsm[place[1]] = _all_rows(dataset, dataset.X)
    return adata


def _write_into_copy(
    dataset: Dataset, result: EmbeddingResult, source: Path, target: Path
) -> None:
    """Copy a file and add the result, without loading what is only copied."""
    import h5py
    from anndata.io import read_elem, write_elem

    shutil.copyfile(source, target)
    with h5py.File(target, "r+") as file:
        obs = read_elem(file["obs"])
        parts = _parts(dataset, result, _rows_in(dataset, obs.index))
        obs = obs.drop(columns=_NOT_ALWAYS, errors="ignore")
        write_elem(file, "obs", obs.assign(**parts.obs))
        for group, elements in (("obsm", parts.obsm), ("uns", parts.uns)):
            if group not in file:
                write_elem(file, group, {})
            for key, value in elements.items():
                write_elem(file[group], key, value)
        for key in _COLORED.keys() - parts.uns.keys():
            if key in file["uns"]:
                del file["uns"][key]


def _of_counts(parts: dict[str, Any]) -> AnnData:
    from anndata import AnnData

    return AnnData(parts["X"], parts["obs"], parts["var"])


def _rows_in(dataset: Dataset, names: pd.Index) -> NDArray[np.intp]:
    """Return which row of the dataset's source each row of a file is now, by name.

    Raises DataError if the file has other rows than when it was read.
    """
    names, known = names.astype(str), dataset.source_obs_names.astype(str)
    if names.equals(known):
        return np.arange(len(names))
    why = "its rows stand in another order, and some have the same name"
    if len(names) != len(known):
        why = f"it now has {len(names)} rows instead of {len(known)}"
    elif names.is_unique and known.is_unique:
        places: NDArray[np.intp] = known.get_indexer(names)
        if (places >= 0).all():
            return places
        why = f'it had no row "{names[int(places.argmin())]}"'
    raise DataError(
        f"{dataset.name} has changed since it was read: {why}; open it again."
    )


def _parts(
    dataset: Dataset, result: EmbeddingResult, places: NDArray[np.intp]
) -> _Parts:
    """Return what a result adds to rows of the source at places; see _laid_out."""
    obs = {
        name: _laid_out(column, places)
        for name, column in result_columns(dataset, result).items()
    }
    positions = dataset.expand(result.embedding, np.nan)
    obsm = {f"X_{KEY}": positions, **made_components(dataset)}
    uns: dict[str, Any] = {KEY: _record(dataset, result)}
    known = result.groups() if result.cluster_colors else {}
    for key, name in _COLORED.items():
        if known and name in obs:
            colors = [known.get(n) or GREY for n in obs[name].categories]
            uns[key] = np.array(colors, dtype=object)
    return _Parts(obs, {k: _laid_out(v, places) for k, v in obsm.items()}, uns)


def _put(adata: AnnData, parts: _Parts) -> None:
    with warnings.catch_warnings():
        # A view of another AnnData becomes one of its own, as anndata has it.
        warnings.filterwarnings("ignore", message=".*view")
        former = adata.obs.drop(columns=_NOT_ALWAYS, errors="ignore")
        adata.obs = former.assign(**parts.obs)
    adata.obsm.update(parts.obsm)
    for key in _COLORED:
        adata.uns.pop(key, None)
    adata.uns.update(parts.uns)


def _record(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Everything that is needed to do the same again."""
    clusters = np.unique(result.shown_clusters).tolist()
    texts = {
        "name": [result.name_of(one) for one in clusters],
        "color": [result.cluster_colors.get(one, "") for one in clusters],
        "note": [result.cluster_notes.get(one, "") for one in clusters],
    }
    made = made_components(dataset)
    record = {
        "parameters": storable(result.parameters),
        "landmarks": result.landmarks,
        "clusters": {
            "number": np.array(clusters),
            **{key: np.array(one, dtype=object) for key, one in texts.items()},
        },
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
        "versions": versions(),
    }
    if dataset.projection is not None:
        space = next((f"obsm['{key}']" for key in made), dataset.space)
        record["projection"] = {**dataset.projection.stored(), "space": space}
    references = {
        name: {
            "reference": one.reference,
            "label": one.label,
            "correct_batch": one.correct_batch,
        }
        for name, one in dataset.predicted.items()
    }
    more = {
        "gene_sets": dataset.scores,
        "taught": dataset.taught,
        "predicted": references,
    }
    if result.session is not None:
        record["session"] = np.frombuffer(result.session, np.uint8)
    return {**record, **{key: storable(one) for key, one in more.items() if one}}


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
        place = split_space(str(mixed["space"]))
        key = f"{place[1] if place else 'X'}_harmony"
    else:
        return {}
    return {key: dataset.expand(dataset.X, np.nan)}


def storable_obs(obs: pd.DataFrame) -> pd.DataFrame:
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
    ones = np.ones(dataset.n_source_rows, np.float32)
    return sp.diags_array(ones, format="csr")[:, dataset.kept] @ matrix
