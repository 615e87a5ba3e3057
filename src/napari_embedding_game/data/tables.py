"""Tables: columns of numbers are embedded, the others tell what the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import columns
from .dataset import Dataset
from .errors import DataError
from .table_files import read_frame
from .validation import (
    Missing,
    as_float32,
    check_missing,
    check_shape,
    check_varies,
    column_range,
    usable_rows,
)

Numbers = dict[str, NDArray[np.float64]]


def read_table(
    path: Path, *, space: str | None = None, missing: Missing = "error"
) -> Dataset:
    """Read .csv, .tsv or .parquet, also with .gz behind it.

    `space` may name the columns to embed, with commas between them.
    """
    frame = read_frame(path)
    return _from_frame(
        frame, path.name, path.name, source=path, space=space, missing=missing
    )


def from_features(
    features: Mapping[str, Any] | pd.DataFrame,
    name: str,
    *,
    space: str | None = None,
    missing: Missing = "error",
) -> Dataset:
    """Dataset from the features table of a napari layer called `name`."""
    where = f"The features table of the layer '{name}'"
    frame = pd.DataFrame(features)
    if frame.shape[1] == 0:
        raise DataError(
            f"{where} is empty: measure its objects first, or choose another layer."
        )
    return _from_frame(frame, where, name, source=None, space=space, missing=missing)


def table_spaces(path: Path) -> list[str]:
    """Return the one space of a table: its columns of numbers."""
    return [_space_name(path.name)]


def _space_name(name: str) -> str:
    return f"columns of {name}"


def _from_frame(
    frame: pd.DataFrame,
    where: str,
    name: str,
    *,
    source: Path | None,
    space: str | None,
    missing: Missing,
) -> Dataset:
    check_missing(missing)
    check_shape(frame.shape, where)
    frame = _with_row_names(frame)
    wanted = None if space == _space_name(name) else space
    found, notes = _number_columns(frame, where, wanted)
    metadata = _metadata(frame, found)
    found, empty_notes = _without_empty(found, where)
    raw = np.column_stack(list(found.values()))
    kept, row_notes = usable_rows(
        raw, where, row_names=frame.index, var_names=list(found), missing=missing
    )
    check_varies(raw[kept], where)
    varying, constant_notes = _varying(raw[kept], list(found))
    raw = raw[:, varying]
    names = [column for column, used in zip(found, varying, strict=True) if used]
    return Dataset.from_rows(
        name=name,
        X=_standardised(raw, kept),
        obs=metadata,
        var_names=names,
        space=_space_name(name) if wanted is None else f"columns {wanted} of {name}",
        kept=kept,
        source=source,
        notes=[
            *notes,
            *empty_notes,
            *row_notes,
            *constant_notes,
            _scaling_note(names),
        ],
        texts=columns.texts(metadata),
        profile=as_float32(raw),
        profile_names=names,
    )


def _with_row_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with unique column headings and row names as its index."""
    frame = frame.set_axis(_unique(frame.columns), axis="columns")
    first = frame.iloc[:, 0]
    numbered = isinstance(frame.index, pd.RangeIndex)
    if numbered and frame.shape[1] > 1 and columns.is_row_name(first):
        frame = frame.iloc[:, 1:].set_axis(first, axis="index")
    elif numbered:
        frame = frame.set_axis(range(1, len(frame) + 1), axis="index")
    return frame.set_axis(frame.index.astype(str).rename(None), axis="index")


def _metadata(frame: pd.DataFrame, embedded: Numbers) -> pd.DataFrame:
    others = [column for column in frame.columns if column not in embedded]
    return pd.DataFrame(
        {column: columns.as_metadata(frame[column]) for column in others},
        index=frame.index,
    )


def _unique(headings: Sequence[object]) -> list[str]:
    """Headings as texts; the second "area" becomes "area.1"."""
    seen: dict[str, int] = {}
    unique = []
    for heading in map(str, headings):
        count = seen[heading] = seen.get(heading, -1) + 1
        unique.append(f"{heading}.{count}" if count else heading)
    return unique


def _number_columns(
    frame: pd.DataFrame, where: str, wanted: str | None
) -> tuple[Numbers, list[str]]:
    """Columns to embed, and a note if numbers were taken for names or groups."""
    if wanted is not None:
        return _wanted_columns(frame, where, wanted), []
    found = {}
    groups = []
    for column in frame.columns:
        values = columns.numbers(frame[column], where)
        if values is None:
            continue
        if columns.is_name_or_group(column, values):
            groups.append(column)
        else:
            found[column] = values
    if not found:
        raise DataError(
            f"{where} has no column of numbers to embed (its columns: "
            f"{_listed(list(frame.columns))}): add measurements, or choose another "
            "source."
        )
    note = (
        f"Not embedded, because the name says that it is a name or group: "
        f"{_listed(groups)}."
    )
    return found, [note] if groups else []


def _wanted_columns(frame: pd.DataFrame, where: str, wanted: str) -> Numbers:
    names = [wanted] if wanted in frame else [c.strip() for c in wanted.split(",")]
    found = {}
    for name in names:
        if name not in frame:
            raise DataError(
                f'{where} has no column "{name}": it has '
                f"{_listed(list(frame.columns))}."
            )
        values = columns.numbers(frame[name], where)
        if values is None:
            raise DataError(
                f"{where} has no numbers in column {name}: choose columns of numbers."
            )
        found[name] = values
    return found


def _without_empty(found: Numbers, where: str) -> tuple[Numbers, list[str]]:
    filled = {c: v for c, v in found.items() if np.isfinite(v).any()}
    empty = [column for column in found if column not in filled]
    if not filled:
        raise DataError(
            f"{where} has no value in any of its columns of numbers "
            f"({_listed(empty)}): fill them in, or choose another source."
        )
    return filled, [f"Left out because empty: {_listed(empty)}."] if empty else []


def _varying(
    raw: NDArray[np.float64], names: list[str]
) -> tuple[NDArray[np.bool_], list[str]]:
    lowest, highest = column_range(raw)
    varying = np.asarray(lowest < highest)
    constant = [n for n, used in zip(names, varying, strict=True) if not used]
    if not constant:
        return varying, []
    return varying, [f"Left out because constant: {_listed(constant)}."]


def _standardised(
    raw: NDArray[np.float64], kept: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Kept rows with mean 0 and standard deviation 1 of each column; others NaN."""
    usable = raw[kept]
    # Dividing by the largest number first keeps squares of tiny numbers from 0.
    usable = usable / np.abs(usable).max(axis=0)
    standardised = np.full(raw.shape, np.nan, dtype=np.float32)
    standardised[kept] = (usable - usable.mean(axis=0)) / usable.std(axis=0)
    return standardised


def _scaling_note(names: list[str]) -> str:
    if len(names) == 1:
        return f"Embedded: the column {names[0]}, standardised."
    return (
        f"Embedded: {len(names)} columns ({_listed(names)}), each with mean 0 and "
        "standard deviation 1, because units differ."
    )


def _listed(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
