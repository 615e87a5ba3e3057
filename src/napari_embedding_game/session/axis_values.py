"""Values of genes, scores and numeric columns for the axes of a scatter plot."""

from __future__ import annotations

import numpy as np
import pandas as pd

from napari_embedding_game.data.columns import replace_infinite_by_nan
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_names import find_names


def list_numeric_columns(dataset: Dataset) -> list[str]:
    """Return the numeric columns of the metadata, scores of gene sets first.

    Booleans, and columns without any value, are left out.
    """
    obs = dataset.obs
    numbers = [name for name, kind in obs.dtypes.items() if kind.kind in "iuf"]
    columns = [str(name) for name in numbers if obs[name].notna().any()]
    return sorted(columns, key=lambda name: name not in dataset.added_of_kind("score"))


def list_axis_names(dataset: Dataset) -> list[str]:
    """Return the names of all possible axes: numeric columns, then genes.

    A gene with the name of a numeric column is left out.
    """
    columns = list_numeric_columns(dataset)
    used = set(columns)
    return [*columns, *(name for name in dataset.profile_names if name not in used)]


def find_axis_values(dataset: Dataset, name: str) -> pd.Series:
    """Return the values (n,) of a numeric column, or the expression of a gene.

    Missing and infinite values are NaN.  ``name``: case is ignored where the name stays
    unique, and a gene may be given by its identifier.  Of a column and a gene of one
    name the column is taken.

    Raises DataError: there is no such column and no such gene.
    """
    columns, names = list_numeric_columns(dataset), list_axis_names(dataset)
    ids = [dataset.gene_ids.get(one, "") for one in names]
    ids[: len(columns)] = [""] * len(columns)
    matches = find_names([name.strip()], names, data_ids=ids).indices
    if not matches:
        raise DataError(
            f"There is no {dataset.column_noun}, score or column of numbers "
            f'"{name.strip()}": type a part of a name and choose one from the list.'
        )
    name = names[matches[0]]
    if name in columns:
        values = dataset.obs[name].to_numpy(dtype=float, na_value=np.nan)
    else:
        values = dataset.expression.make_dense_column(dataset.profile_names.index(name))
    return pd.Series(replace_infinite_by_nan(values), name=name)


def pearson_correlation(x: pd.Series, y: pd.Series) -> float:
    """Return Pearson's correlation over the points with a finite value in both.

    NaN where there is no such point, or where one of the variables is constant.
    """
    pair = pd.DataFrame({"x": x.array, "y": y.array}, dtype=float)
    pair = pair[np.isfinite(pair).all(axis=1)]
    is_constant = (pair.nunique() < 2).any()
    return float("nan") if is_constant else float(pair["x"].corr(pair["y"]))
