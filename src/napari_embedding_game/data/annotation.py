"""A result as parts of an AnnData: columns of obs, positions in obsm, the record."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .anndata import read_legacy
from .contents import is_legacy
from .dataset import Dataset, Matrix
from .errors import DataError
from .result import EmbeddingResult, storable, versions

if TYPE_CHECKING:
    from anndata import AnnData

KEY = "embedding_game"
UNASSIGNED = "unassigned"


def result_columns(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Cluster and pressure of all rows of the source, by the name of the column."""
    clusters = dataset.expand(result.labels.astype(str), UNASSIGNED)
    found = [str(label) for label in np.unique(result.labels)]
    groups = found if dataset.kept.all() else [*found, UNASSIGNED]
    return {
        f"{KEY}_cluster": pd.Categorical(clusters, categories=groups),
        f"{KEY}_pressure": dataset.expand(result.pressure, np.nan),
    }


def _record(dataset: Dataset, result: EmbeddingResult) -> dict[str, Any]:
    """Everything that is needed to do the same again."""
    return {
        "parameters": storable(result.parameters),
        "landmarks": result.landmarks,
        "energy": float(result.energy),
        "input": {
            "name": dataset.name,
            "space": dataset.space,
            "sha256": dataset.sha256(),
            "rows": dataset.n_source_rows,
            "rows_embedded": int(np.count_nonzero(dataset.kept)),
            "notes": " ".join(dataset.notes),
        },
        "versions": versions(),
    }


def copy_with_result(dataset: Dataset, result: EmbeddingResult, target: Path) -> None:
    """Copy the input and add the result, without loading what is only copied."""
    import h5py
    from anndata.io import read_elem, write_elem

    assert dataset.source is not None
    with h5py.File(dataset.source) as file:
        legacy = is_legacy(file, dataset.source.name)
    if legacy:
        adata = read_legacy(dataset.source)
        _add_result(adata, dataset, result)
        adata.write_h5ad(target)
        return
    shutil.copyfile(dataset.source, target)
    with h5py.File(target, "r+") as file:
        obs = read_elem(file["obs"])
        _check_unchanged(dataset, len(obs))
        write_elem(file, "obs", obs.assign(**result_columns(dataset, result)))
        for group in ("obsm", "uns"):
            if group not in file:
                write_elem(file, group, {})
        positions = dataset.expand(result.embedding, np.nan)
        write_elem(file["obsm"], f"X_{KEY}", positions)
        write_elem(file["uns"], KEY, _record(dataset, result))


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
    _check_unchanged(dataset, adata.n_obs)
    for name, column in result_columns(dataset, result).items():
        adata.obs[name] = column
    adata.obsm[f"X_{KEY}"] = dataset.expand(result.embedding, np.nan)
    adata.uns[KEY] = _record(dataset, result)


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
