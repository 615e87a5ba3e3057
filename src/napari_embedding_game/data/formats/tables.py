"""Build a Dataset from a table: numeric columns are embedded, others metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    as_metadata,
    is_name_or_group,
    is_of_a_map,
    is_place,
    is_row_name,
    listed,
    numbers,
    repeated_names,
    texts,
)
from napari_embedding_game.data.dataset import MISSING_VALUES, Dataset, Matrix
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.table_files import NOTES, read_frame
from napari_embedding_game.data.formats.transposed import has_genes_in_rows
from napari_embedding_game.data.formats.transposed import transposed as turn
from napari_embedding_game.data.raw_counts import counts_advice, looks_like_counts
from napari_embedding_game.data.read_options import AS_USUAL, Duplicates, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import (
    as_float32,
    as_rows,
    check_shape,
    check_values,
    check_varies,
    column_range,
    first_of_equals,
    usable_rows,
)

# With fewer other measurements, x and y are what the table is about.
_FEWEST_BESIDE_PLACES = 2

NO_OBJECT = "no object of the labels"
"""Why rows about the background are left out."""

GENES_IN_ROWS = (
    "The rows of {} look like genes and its columns like cells, and each row is a "
    "point of the map: transpose the table, if cells are to be the points."
)

Numbers = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class KnownRows:
    """The table of a file that was read already, and what is known of its rows."""

    frame: pd.DataFrame
    ids: str | None = None
    left_out: NDArray[np.bool_] | None = None
    """As for :func:`from_frame`, both."""


def table_stages(
    path: Path, options: ReadOptions, rows: KnownRows | None = None
) -> Stages[ReadResult]:
    """Read .csv, .tsv or .parquet, also with .gz behind it; `rows` are not read again.

    `options.columns` are those to embed; `options.space` may also name them, with
    commas between them.
    """
    yield Stage(f"Reading {path.name}")
    rows = rows or KnownRows(read_frame(path))
    frame = rows.frame
    yield Stage("Checking the numbers")
    has_genes = has_genes_in_rows(frame)
    if options.transposed:
        frame = turn(frame, path.name)
    dataset = from_frame(
        frame,
        path.name,
        path.name,
        options,
        source=path,
        ids=rows.ids,
        left_out=rows.left_out,
    )
    if has_genes and not options.transposed:
        told = GENES_IN_ROWS.format(path.name)
        dataset = replace(dataset, notes=(told, *dataset.notes))
    return ReadResult(
        dataset,
        [f"columns of {path.name}"],
        number_columns(frame, path.name),
        has_genes_in_rows=has_genes,
    )


def from_features(
    features: Mapping[str, Any] | pd.DataFrame,
    name: str,
    options: ReadOptions = AS_USUAL,
    *,
    ids: str | None = None,
    left_out: NDArray[np.bool_] | None = None,
) -> Dataset:
    """Dataset from the features table of a napari layer called `name`.

    `ids` and `left_out` are as for :func:`from_frame`.
    """
    where = f"The features table of the layer '{name}'"
    frame = pd.DataFrame(features)
    if frame.shape[1] == 0:
        raise DataError(
            f"{where} is empty: measure its objects first, or choose another layer."
        )
    return from_frame(frame, where, name, options, ids=ids, left_out=left_out)


def number_columns(frame: pd.DataFrame, where: str) -> list[str]:
    """Names of the columns of numbers, names and groups such as ``id`` included."""
    check_shape(frame.shape, where)
    frame, _, _ = _without_row_names(frame)
    return list(_numbers(frame, where))


def from_frame(
    frame: pd.DataFrame,
    where: str,
    name: str,
    options: ReadOptions,
    *,
    source: Path | None = None,
    ids: str | None = None,
    left_out: NDArray[np.bool_] | None = None,
) -> Dataset:
    """Dataset from a table; `where` is the subject of what is told about it.

    Embeds the chosen columns, or those that the space names, or all measurements:
    standardised, unless they are raw counts.  The column `ids` says which object a
    row is, and measures nothing; rows of `left_out` (n_rows,) are not embedded,
    whatever they hold.  All columns of a transposed table are measures, as genes are,
    whatever they are called.
    """
    check_shape(frame.shape, where)
    read_notes = frame.attrs.get(NOTES, [])
    frame, name_notes = _with_row_names(frame)
    space, chosen = f"columns of {name}", options.columns
    if chosen is None and options.space not in (None, space):
        names = (
            [options.space] if options.space in frame else str(options.space).split(",")
        )
        chosen = tuple(str(one).strip() for one in names)
    if chosen:
        space = f"columns {', '.join(chosen)} of {name}"
    wanted = list(frame.columns) if options.transposed and chosen is None else chosen
    numbers, column_notes = _number_columns(frame, where, wanted, ids)
    others = [column for column in frame.columns if column not in numbers]
    metadata = pd.DataFrame(
        {column: as_metadata(frame[column]) for column in others}, index=frame.index
    )
    columns, raw, empty_notes = _filled(numbers, where)
    if left_out is not None:
        raw[left_out] = 0  # what is left out lacks nothing
    kept, row_notes = usable_rows(
        raw, where, row_names=frame.index, var_names=columns, missing=options.missing
    )
    reasons = {MISSING_VALUES: ~kept}
    if left_out is not None:
        reasons[NO_OBJECT] = left_out
        kept &= ~left_out
        check_shape((int(kept.sum()), raw.shape[1]), where)
    check_varies(raw[kept], where)
    if looks_like_counts(raw[kept]):
        X, profile, names = as_rows(raw), None, columns
        check_values(X[kept], where)
        told = (
            "Not standardised, because they look like raw counts: "
            f"{len(names):,} columns ({listed(names)})."
        )
        scaling_notes = [told, *counts_advice(X[kept], space)]
    else:
        X, profile, names, scaling_notes = _measures(
            raw, columns, kept, options.duplicates
        )
    name_notes += repeated_names(frame.index)
    notes = [*read_notes, *name_notes, *column_notes, *empty_notes, *row_notes]
    return Dataset.from_rows(
        name=name,
        X=X,
        obs=metadata,
        var_names=names,
        space=space,
        kept=kept,
        source=source,
        notes=[*notes, *scaling_notes],
        texts=texts(metadata),
        profile=profile,
        profile_names=names,
        left_out=reasons,
    )


def _measures(
    raw: NDArray[np.float64],
    names: list[str],
    kept: NDArray[np.bool_],
    duplicates: Duplicates,
) -> tuple[Matrix, Matrix, list[str], list[str]]:
    """Columns that vary: standardised, in their own units, their names, and notes."""
    varying, constant_notes = _varying(raw[kept], names)
    raw, names = raw[:, varying], _where(names, varying)
    X = _standardised(raw, kept)
    first, duplicate_notes = first_of_equals(X[kept], names, duplicates)
    X, raw, names = X[:, first], raw[:, first], _where(names, first)
    notes = [*constant_notes, *duplicate_notes, _scaling_note(names)]
    return X, as_float32(raw), names, notes


def _where(names: list[str], used: NDArray[np.bool_]) -> list[str]:
    return [name for name, is_used in zip(names, used, strict=True) if is_used]


def _with_row_names(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Frame with unique column headings and its row names as index, and a note."""
    frame, names, taken = _without_row_names(frame)
    frame = frame.copy(deep=False)  # set_axis copies the numbers
    frame.index = names.astype(str).rename(None)
    named = [str(n) for n in taken if n and not str(n).startswith("Unnamed: 0")]
    return frame, [f"Taken as row names: {listed(named)}."] if named else []


def _without_row_names(
    frame: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.Index, list[object]]:
    """Frame with unique headings, the names of its rows, and where these stood."""
    frame = frame.copy(deep=False)
    frame.columns = pd.Index(_unique(frame.columns))
    names, first = frame.index, frame.iloc[:, 0]
    if isinstance(names, pd.MultiIndex):
        joined = [", ".join(map(str, levels)) for levels in names]
        return frame, pd.Index(joined), list(names.names)
    if not isinstance(names, pd.RangeIndex):
        return frame, names, []
    if frame.shape[1] > 1 and is_row_name(first):
        return frame.iloc[:, 1:], pd.Index(first), [first.name]
    return frame, pd.RangeIndex(1, len(frame) + 1), []


def _unique(headings: Sequence[object]) -> list[str]:
    """Headings as texts; the second "area" becomes "area.1"."""
    seen: dict[str, int] = {}
    unique = []
    for heading in map(str, headings):
        count = seen[heading] = seen.get(heading, -1) + 1
        unique.append(f"{heading}.{count}" if count else heading)
    return unique


def _numbers(frame: pd.DataFrame, where: str) -> Numbers:
    """Values of each column of numbers; of all plain ones at once, as they are many."""
    is_plain = np.array(
        [isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in frame.dtypes]
    )
    of_numbers = frame if is_plain.all() else frame.loc[:, is_plain]
    plain = iter(of_numbers.to_numpy(np.float64).T)
    found = {
        column: next(plain) if is_one else numbers(frame[column], where)
        for column, is_one in zip(frame.columns, is_plain, strict=True)
    }
    return {column: values for column, values in found.items() if values is not None}


def _number_columns(
    frame: pd.DataFrame,
    where: str,
    wanted: Sequence[str] | None,
    ids: str | None = None,
) -> tuple[Numbers, list[str]]:
    """Columns to embed, and a note if numbers were taken for names or groups."""
    if wanted is not None:
        return _wanted_columns(frame, where, wanted), []
    by_column = {}
    groups = []
    for column, values in _numbers(frame, where).items():
        if is_of_a_map(column):
            continue
        if column == ids or is_name_or_group(column, values):
            groups.append(column)
        else:
            by_column[column] = values
    if not by_column:
        raise DataError(
            f"{where} has no column of numbers to embed (its columns: "
            f"{listed(list(frame.columns))}): add measurements, or choose another "
            "source."
        )
    notes = []
    if groups:
        notes.append(
            "Not embedded, because the name says that it is a name or group: "
            f"{listed(groups)}."
        )
    places = [column for column in by_column if is_place(column)]
    if places and len(by_column) - len(places) >= _FEWEST_BESIDE_PLACES:
        by_column = {c: v for c, v in by_column.items() if c not in places}
        notes.append(
            "Not embedded unless chosen, because the name says where an object lies: "
            f"{listed(places)}."
        )
    return by_column, notes


def _wanted_columns(frame: pd.DataFrame, where: str, wanted: Sequence[str]) -> Numbers:
    if not wanted:
        raise DataError(f"No column of {where} is chosen: choose at least one.")
    by_column = {}
    for name in wanted:
        if name not in frame:
            raise DataError(
                f'{where} has no column "{name}": it has {listed(list(frame.columns))}.'
            )
        values = numbers(frame[name], where)
        if values is None:
            raise DataError(
                f"{where} has no numbers in column {name}: choose columns of numbers."
            )
        by_column[name] = values
    return by_column


def _filled(
    by_column: Numbers, where: str
) -> tuple[list[str], NDArray[np.float64], list[str]]:
    """Names of the columns with values, these side by side, and a note on others."""
    names, raw = list(by_column), np.column_stack(list(by_column.values()))
    filled = np.asarray(np.isfinite(raw).any(axis=0))
    empty = _where(names, ~filled)
    if not filled.any():
        raise DataError(
            f"{where} has no value in any of its columns of numbers "
            f"({listed(empty)}): fill them in, or choose another source."
        )
    if not empty:
        return names, raw, []
    too_large = _where(names, ~filled & np.asarray(np.isinf(raw).any(axis=0)))
    empty = [name for name in empty if name not in too_large]
    notes = [
        f"Left out because {why}: {listed(columns)}."
        for why, columns in (("empty", empty), ("all numbers are infinite", too_large))
        if columns
    ]
    return _where(names, filled), raw[:, filled], notes


def _varying(
    raw: NDArray[np.float64], names: list[str]
) -> tuple[NDArray[np.bool_], list[str]]:
    lowest, highest = column_range(raw)
    varying = np.asarray(lowest < highest)
    constant = _where(names, ~varying)
    if not constant:
        return varying, []
    return varying, [f"Left out because constant: {listed(constant)}."]


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
        f"Embedded: {len(names)} columns ({listed(names)}), each with mean 0 and "
        "standard deviation 1, because units differ."
    )
