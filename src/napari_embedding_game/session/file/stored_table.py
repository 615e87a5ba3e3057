"""The metadata of rows that no file holds, such as the wells of measured objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.session.file.json_schema import ColumnText

NUMBERS, CODES = "table_numbers", "table_codes"
_CODED = ("text", "category")


class _Arrays(Protocol):
    def __call__(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        """Return an array of this type and shape."""


def write_table(
    obs: pd.DataFrame, left_out: Collection[str]
) -> tuple[tuple[ColumnText, ...], dict[str, NDArray[Any]]]:
    """Return metadata as texts and arrays.

    Parameters
    ----------
    obs : (n rows) DataFrame
    left_out : collection of str
        Columns that are made again when the map is opened.

    Returns
    -------
    tuple of ColumnText
    dict
        ``table_numbers`` (columns of numbers, n) and ``table_codes`` (columns of names,
        n), where there are any.
    """
    texts: list[ColumnText] = []
    numbers: list[NDArray[Any]] = []
    codes: list[NDArray[Any]] = []
    for place, name in enumerate(obs.columns):
        if name in left_out or name in obs.columns[:place]:
            continue
        column = obs.iloc[:, place]
        text, values = _written(str(name), column)
        texts.append(text)
        (codes if text.kind in _CODED else numbers).append(values)
    arrays: dict[str, NDArray[Any]] = {}
    if numbers:
        arrays[NUMBERS] = np.stack(numbers).astype("<f8")
    if codes:
        arrays[CODES] = np.stack(codes).astype("<i4")
    return tuple(texts), arrays


def read_table(
    texts: Sequence[ColumnText],
    names: Sequence[str],
    arrays: _Arrays,
    expect: Callable[[bool, str], None],
) -> pd.DataFrame:
    """Return the metadata that were written.

    Parameters
    ----------
    texts : sequence of ColumnText
    names : (n,) names of the rows
    arrays : callable
        Returns the array of a name, a type and a shape.
    expect : callable
        Raises the error of a damaged file unless its first argument is True.
    """
    n_coded = sum(text.kind in _CODED for text in texts)
    n_numbers, n = len(texts) - n_coded, len(names)
    numbers = iter(arrays(NUMBERS, "<f8", n_numbers, n) if n_numbers else ())
    codes = iter(arrays(CODES, "<i4", n_coded, n) if n_coded else ())
    columns = {}
    for text in texts:
        if text.kind in _CODED:
            columns[text.name] = _named(text, next(codes), expect)
        else:
            columns[text.name] = _numbered(text, next(numbers), expect)
    expect(len(columns) == len(texts), "its metadata")
    return pd.DataFrame(columns, index=pd.Index(names))


# Inside


def _written(name: str, column: pd.Series) -> tuple[ColumnText, NDArray[Any]]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = tuple(map(str, column.cat.categories))
        if len(set(levels)) == len(levels):
            ordered = bool(column.cat.ordered)
            text = ColumnText(
                name=name, kind="category", levels=levels, ordered=ordered
            )
            return text, column.cat.codes.to_numpy()
    if pd.api.types.is_bool_dtype(column):
        if not column.isna().any():
            return ColumnText(name=name, kind="bool"), column.to_numpy(dtype=float)
    elif pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        is_whole = pd.api.types.is_integer_dtype(column) and not np.isnan(values).any()
        is_exact = is_whole and bool(np.abs(values).max(initial=0) < 2**53)
        return ColumnText(name=name, kind="integer" if is_exact else "number"), values
    codes, found = pd.factorize(column.astype(object).map(_said))
    return ColumnText(name=name, kind="text", levels=tuple(map(str, found))), codes


def _said(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _named(
    text: ColumnText, codes: NDArray[Any], expect: Callable[[bool, str], None]
) -> Any:
    is_known = not len(codes) or (codes.min() >= -1 and codes.max() < len(text.levels))
    expect(bool(is_known), "its metadata")
    expect(len(set(text.levels)) == len(text.levels), "its metadata")
    found = pd.Categorical.from_codes(codes, list(text.levels), ordered=text.ordered)
    if text.kind == "category":
        return found
    return np.asarray(found.astype(object))


def _numbered(
    text: ColumnText, values: NDArray[Any], expect: Callable[[bool, str], None]
) -> Any:
    if text.kind == "number":
        return values
    expect(bool((np.isfinite(values) & (values % 1 == 0)).all()), "its metadata")
    if text.kind == "bool":
        expect(bool(np.isin(values, (0, 1)).all()), "its metadata")
        return values.astype(bool)
    expect(bool((np.abs(values) < 2**53).all()), "its metadata")
    return values.astype(np.int64)
