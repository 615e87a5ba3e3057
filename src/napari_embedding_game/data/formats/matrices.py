"""Build a Dataset, or an AnnData, from a matrix of numbers with row metadata."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import validation
from napari_embedding_game.data.columns import check_columns_exist, list_text
from napari_embedding_game.data.dataset import (
    MISSING_VALUES,
    Dataset,
    is_pairwise_space,
)
from napari_embedding_game.data.expression import check_gene_kind
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.roles import convert_columns_by_role
from napari_embedding_game.data.row_matrices import Matrix

if TYPE_CHECKING:
    from anndata import AnnData


def make_dataset_from_matrix(
    X: Matrix,
    obs: pd.DataFrame,
    names: Sequence[str],
    space: str,
    where: str,
    options: ReadOptions,
    *,
    left_out: Mapping[str, NDArray[np.bool_]] | None = None,
    standardise: bool = False,
    notes: Sequence[str] = (),
    **parts: Any,
) -> Dataset:
    """Check a matrix, and return the dataset of its usable rows.

    The columns that the options choose are embedded, else all. The choice is ignored
    with ``standardise``, where `X` has the chosen columns alone, and in a pairwise
    space. Rows of an ``obsm`` space without any value are left out.

    ``X`` (N, D): dense array or CSR matrix. ``obs`` (N rows): metadata. ``names`` (D,):
    names of the columns. ``space``: name of what is embedded. ``where``: subject of
    messages. ``left_out``: (N,) masks of rows that are not embedded, keyed by the
    reason. ``standardise``: whether each column is scaled to mean 0 and standard
    deviation 1, and constant columns are dropped, unless these are raw counts;
    :attr:`Dataset.profile` keeps the units. ``**parts``: as for
    :meth:`Dataset.from_rows`.

    Raises DataError if values are missing and the options do not drop their rows,
    numbers are too large, all rows are the same, or a chosen column does not exist.
    """
    notes = list(notes)
    if options.columns is not None and not is_pairwise_space(space) and not standardise:
        check_columns_exist(names, options.columns, where)
        n_all, is_chosen = len(names), np.isin(names, options.columns)
        indices = np.flatnonzero(is_chosen).tolist()
        X, names = X[:, indices], [names[i] for i in indices]
        note = f"{len(indices)} of {n_all} columns of {space} ({list_text(names)})"
        notes.append(f"Embedded: {note}.")
    are_empty = _find_all_nan_rows_of_obsm(X, space)
    if are_empty.any():
        n = np.count_nonzero(are_empty)
        note = f"{n:,} of {len(obs):,} rows left out, of which {space} has no values."
        notes.append(note)
    reasons = {f"no values in {space}": are_empty, **(left_out or {})}
    is_excluded = np.any([*reasons.values()], axis=0)
    filled = np.where(is_excluded[:, None], 0, X) if is_excluded.any() else X
    checked = filled, where, obs.index, names, options.missing
    finite, row_notes = validation.find_finite_rows(*checked)
    reasons[MISSING_VALUES] = ~finite
    is_kept, notes = finite & ~is_excluded, [*notes, *row_notes]
    if standardise and looks_like_counts(X[is_kept]):
        X, columns = (
            validation.to_sufficient_precision(X),
            f"{len(names):,} columns ({list_text(names)})",
        )
        notes.append(f"Not standardised, because they look like raw counts: {columns}.")
    elif standardise:
        validation.check_rows_differ(X[is_kept], where)
        X, parts["profile"], names, more_notes = _standardise_columns(X, names, is_kept)
        parts["profile_names"], notes = names, [*notes, *more_notes]
    obs, roles = convert_columns_by_role(obs, options.roles, where)
    if parts.get("has_expression"):
        check_gene_kind(parts["profile"], options.gene_kind, where)
    dataset = Dataset.from_rows(
        X=X,
        obs=obs,
        roles=roles,
        gene_kind=options.gene_kind,
        var_names=names,
        space=space,
        kept=is_kept,
        notes=tuple(notes),
        left_out=reasons,
        **parts,
    )
    validation.check_magnitude_and_variation(
        dataset.X, where if standardise else f"{where} ({space})"
    )
    return dataset


def build_anndata(
    X: Matrix, obs: pd.DataFrame, names: Sequence[str], ids: Mapping[str, str] = {}
) -> AnnData:
    """Build an AnnData of `X` and `obs`, without the warning on repeated names.

    ``names``: names of the genes; ``ids``: Ensembl identifiers keyed by these names. If
    there are any, ``var["gene_ids"]`` has them, "" for other genes.
    """
    from anndata import AnnData

    var = pd.DataFrame(index=list(names))
    if ids:
        var["gene_ids"] = [ids.get(name, "") for name in names]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*names are not unique")
        return AnnData(X, obs, var)


def _find_all_nan_rows_of_obsm(X: Matrix, space: str) -> NDArray[np.bool_]:
    """Return a mask (N,) of the rows without any value in a dense ``obsm`` space.

    The mask is all False for another space, or if fewer than two rows have values.
    """
    none = np.zeros(X.shape[0], bool)
    if not space.startswith("obsm") or sp.issparse(X):
        return none
    are_empty = np.isnan(X).all(axis=1)
    return are_empty if np.count_nonzero(are_empty) <= X.shape[0] - 2 else none


def _standardise_columns(
    raw: NDArray[np.float64], names: Sequence[str], is_kept: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, Sequence[str], list[str]]:
    """Standardise the columns that vary; leave out constant ones.

    ``raw``: (N, D) numbers. ``is_kept``: (N,) rows that determine mean and deviation.

    Returns
    -------
    X, units, names, notes
        (N, d) float32 columns, in which kept rows have mean 0 and standard deviation 1
        and other rows are NaN; the same columns in their own units, float32; their
        names; and notes.
    """
    lowest, highest = validation.find_column_extremes(raw[is_kept])
    varying = np.asarray(lowest < highest)
    constant = np.asarray(names, object)[~varying].tolist()
    names = np.asarray(names, object)[varying].tolist()
    notes = [f"Left out because constant: {list_text(constant)}."] if constant else []
    # Dividing by the largest number first keeps squares of tiny numbers above 0.
    usable = raw[is_kept][:, varying]
    usable = usable / np.abs(usable).max(axis=0)
    X = np.full((len(raw), len(names)), np.nan, dtype=np.float32)
    X[is_kept] = (usable - usable.mean(axis=0)) / usable.std(axis=0)
    note = f"Embedded: the column {names[0]}, standardised."
    if len(names) > 1:
        note = (
            f"Embedded: {len(names)} columns ({list_text(names)}), each with mean 0 "
            "and standard deviation 1, because units differ."
        )
    return X, validation.to_float32(raw[:, varying]), names, [*notes, note]
