"""Match the rows of a table to the objects of a label image.

Rows are joined with objects by an id alone, never by their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import counted, is_of_a_map, listed
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import (
    Objects,
    find_objects,
    find_objects_in_time,
)

FirstAxis = Literal["z", "time"]
IntArray = NDArray[np.int64]

# Names of columns of labels, the likeliest first, without case and separators.
_KNOWN = [
    re.compile(pattern)
    for pattern in (
        r"labels?|label(id|index)",
        r"(number)?object(label|number|id|index)",  # CellProfiler: number
        r"instance(id|label)?",
        r"(cell|nucleus|nuclei|segment|segmentation|mask|roi)(id|number|index|label)",
        r"index",  # napari
        r"ids?",
        r".*(objectnumber|objectid|label|labelid)",
    )
]
_TIME = re.compile(r"t|time|frame|timepoint|timeindex")
_PICTURE = re.compile(r"image(number|id|name)?|file(name)?|field|position|site")
_FIRST = 100
NAPARI_RULE = "napari's rule (row i is label i, and row 0 the background)"


@dataclass(frozen=True, eq=False)
class Match:
    """The object of each row of a table."""

    column: str | None
    """Which column told it; None where the table is as napari makes one itself."""
    objects: Objects
    """(n_rows,) object of each row; label 0 where a row is none."""
    left_out: NDArray[np.bool_]
    """(n_rows,) rows about the background, which belong on no map."""
    sentences: tuple[str, ...]
    """How many rows match by which column, and why others do not."""

    @property
    def n_linked(self) -> int:
        """Rows that are objects."""
        return int(self.objects.present.sum())


@dataclass(frozen=True, eq=False)
class _Ids:
    """A column of labels, compared with the objects."""

    column: str | None
    ids: IntArray
    """(n_rows,) -1 where there is none."""
    places: NDArray[np.intp]
    """(n_rows,) place of the object of each row; -1 for none."""
    repeated: NDArray[np.bool_]
    """(n_rows,) whether another row has the same label."""
    counts_rows: bool
    """Whether these may be the rows counted from 0, of objects numbered from 1."""

    @property
    def are_linked(self) -> NDArray[np.bool_]:
        return (self.places >= 0) & ~self.repeated

    @property
    def is_sure(self) -> bool:
        """Whether most rows have a unique label that the image has."""
        n_own = np.count_nonzero(self.are_linked)
        return bool(2 * n_own >= len(self.ids)) and not self.counts_rows


def match_rows(
    table: pd.DataFrame,
    labels: Any,
    column: str | None = None,
    *,
    where: str = "the table",
    labels_name: str = "the labels",
    first_axis: FirstAxis = "z",
) -> Match:
    """Find the object of each row of a table by a column of labels.

    Parameters
    ----------
    table : DataFrame
    labels : array of integers
        The label image that was measured.
    column : str, optional
        Column with the label of each row; by default the first of the known names
        under which rows are told apart.
    where, labels_name : str
        What the person calls the table and the labels.
    first_axis : {"z", "time"}
        What the first of three axes of `labels` is.  Along time a label is another
        object in each picture, and a column such as "frame" says in which.

    Raises
    ------
    DataError
        If no column tells the object, or none of the rows matches one.
    """
    objects, in_time = objects_of(labels, first_axis)
    return match_objects(table, objects, column, where, labels_name, in_time)


def objects_of(labels: Any, first_axis: FirstAxis = "z") -> tuple[Objects, bool]:
    """Return the objects of a label image, and whether they are a time series'."""
    pixels = np.asarray(labels)
    in_time = first_axis == "time" and pixels.ndim == 3
    return (find_objects_in_time if in_time else find_objects)(pixels), in_time


def match_objects(
    table: pd.DataFrame,
    objects: Objects,
    column: str | None = None,
    where: str = "the table",
    labels_name: str = "the labels",
    in_time: bool = False,
) -> Match:
    """Do what :func:`match_rows` does with objects that are known already."""
    called = labels_name if labels_name == "the labels" else f"'{labels_name}'"
    begun = where[0].upper() + where[1:] if where.startswith("the ") else where
    times = _times(table, begun) if in_time else np.zeros(len(table), np.int64)

    def compared(name: str | None, ids: IntArray) -> _Ids:
        pictures = objects.boxes[:, 0] if in_time else np.zeros_like(objects.label_ids)
        there = pd.MultiIndex.from_arrays([pictures, objects.label_ids])
        rows = pd.MultiIndex.from_arrays([times, ids])
        n = len(ids)
        counts_rows = n == len(objects) and np.array_equal(np.sort(ids), np.arange(n))
        repeated = rows.duplicated(keep=False) & (ids > 0)
        return _Ids(name, ids, there.get_indexer(rows), repeated, counts_rows)

    if column is not None:
        ids = None if column not in table else numbers_of(table[column])
        if ids is None:
            raise DataError(
                f'{begun} has no column "{column}" of whole numbers: choose the column '
                "that says which object a row is."
            )
        return _matched(table, objects, compared(column, ids), begun, called, in_time)
    found = ((name, numbers_of(table[name])) for name in id_columns(table))
    tried = [compared(name, ids) for name, ids in found if ids is not None]
    if not tried:
        if in_time or not is_napari_table(table, int(objects.label_ids.max())):
            raise DataError(
                f"Not linked with {called}: {where} has {len(table):,} rows and no "
                f"column of labels, and the image has {len(objects):,} objects. Add a "
                'column of numbers called "label" that says which object a row is, or '
                "choose one under Rows by."
            )
        rule = compared(None, np.arange(len(table)))
        return _matched(table, objects, rule, begun, called, in_time)
    sure = [one for one in tried if one.is_sure]
    for one in tried:
        if one.counts_rows and not sure:
            raise DataError(
                f"Not linked with {called}: column '{one.column}' of {where} runs from "
                f"0 to {one.ids.max():,}, and the labels from "
                f"{objects.label_ids.min():,} to {objects.label_ids.max():,}, so it "
                "may only count the rows. If it is the label, choose it under Rows by; "
                'else add a column called "label".'
            )
    best = sure[0] if sure else max(tried, key=lambda one: one.are_linked.sum())
    match = _matched(table, objects, best, begun, called, in_time)
    others = [str(o.column) for o in sure[1:] if not np.array_equal(o.ids, best.ids)]
    if not others:
        return match
    also = (
        f"'{listed(others)}' would match other rows: choose it under Rows by if "
        f"'{best.column}' is not the label."
    )
    return replace(match, sentences=(*match.sentences, also))


def _matched(
    table: pd.DataFrame,
    objects: Objects,
    one: _Ids,
    where: str,
    called: str,
    in_time: bool,
) -> Match:
    """Link the rows by one column, and say what became of all of them."""
    ids, linked = one.ids, one.are_linked
    background = ids == 0
    if background.sum() > 1 and not in_time:
        background &= _is_empty(table)
    if one.column is None:
        background |= ~linked & _is_empty(table)
    shared = (
        f"{counted(int(one.repeated.sum()), 'row')} with the label of another one "
        f"({_texts(np.unique(ids[one.repeated]))}), so they are linked with no object: "
        "keep one row for each object, of one image."
    )
    unknown = ids[(one.places < 0) & (ids > 0) & ~background]
    if not linked.any():
        if one.repeated.any():
            raise DataError(f"Not linked with the labels: {shared}")
        raise DataError(
            f"{where} has {len(unknown):,} rows whose label the image does not have "
            f"({_texts(unknown)}): choose the labels that were measured."
        )
    rule = NAPARI_RULE if one.column is None else f"column '{one.column}'"
    missing = np.setdiff1d(objects.label_ids, ids)
    told = {
        f"Left out: {counted(int(background.sum()), 'row')} about the background.": (
            background
        ),
        f"Of labels that {called} has not: {counted(len(unknown), 'row')} "
        f"({_texts(unknown)}), on the map, but in no image.": unknown,
        f"{counted(int((ids < 0).sum()), 'row')} without a label, on the map only.": (
            ids < 0
        ),
        shared: one.repeated,
        f"Of {called}, {counted(len(missing), 'label')} without a row "
        f"({_texts(missing)}), on no map.": missing,
    }
    n_rows = int((~background).sum())
    sentences = [
        f"{int(linked.sum()):,} of {n_rows:,} rows match a label of {called} by "
        f"{rule}.",
        *(sentence for sentence, rows in told.items() if rows.any()),
        *objects.notes,
    ]
    found = objects.take(one.places[linked]).spread(linked)
    return Match(one.column, found, background, tuple(sentences))


def _texts(ids: IntArray) -> str:
    return listed(list(map(str, ids.tolist())))


def linked(dataset: Dataset, match: Match) -> Dataset:
    """Return a dataset whose source's rows are those of a match, with their objects."""
    return replace(
        dataset,
        source_objects=match.objects,
        notes=(*match.sentences, *dataset.notes),
        provenance={**dataset.provenance, "linked": {"column": match.column or ""}},
    )


def id_columns(table: pd.DataFrame) -> list[str]:
    """Names of the columns that are called as labels are, the likeliest first."""
    ranks = {str(name): _rank(name) for name in table.columns}
    known = sorted((rank, name) for name, rank in ranks.items() if rank is not None)
    return [name for _, name in known if numbers_of(table[name]) is not None]


def possible_id_columns(table: pd.DataFrame) -> list[str]:
    """Names of all columns that may hold labels: known names, then whole numbers."""
    known = id_columns(table)
    others = [str(c) for c in table.columns if str(c) not in known]
    return known + [
        name
        for name in others
        if not is_of_a_map(name)
        and (ids := numbers_of(table[name])) is not None
        and pd.Index(ids).is_unique
    ]


def picture_columns(table: pd.DataFrame) -> list[str]:
    """Names of the columns that say which picture a row is of."""
    return [str(name) for name in table.columns if _PICTURE.fullmatch(_plain(name))]


def label_column(obs: pd.DataFrame) -> str | None:
    """Name of the column that holds labels, if there is one."""
    return next(iter(id_columns(obs)), None)


def label_ids(table: pd.DataFrame, column: str | None = None) -> IntArray:
    """(n_rows,) label that each row of a napari layer's table is about; 0 for none.

    Parameters
    ----------
    column : str, optional
        Column of labels; by default one of a known name, and without such a column
        napari's own rule: row i is about label i.
    """
    name = column if column in table else label_column(table)
    ids = None if name is None else numbers_of(table[name])
    return np.arange(len(table)) if ids is None else np.maximum(ids, 0)


def is_napari_table(table: pd.DataFrame, largest: int) -> bool:
    """Tell whether row i is about label i: an empty row 0, then one for each label.

    Parameters
    ----------
    largest : int
        Largest label of the image.
    """
    return len(table) == largest + 1 and bool(_is_empty(table)[0])


def share_shown(labels: Any, objects: Objects, n_checked: int = 30) -> float:
    """Return the share of objects that a label image has, by ids, boxes and pixels.

    Only so many of the objects are looked at, evenly spread.
    """
    objects = objects.take(objects.present)
    if labels.ndim != objects.ndim or not len(objects):
        return 0.0
    if (objects.boxes[:, objects.ndim :] > np.array(labels.shape)).any():
        return 0.0
    rows = np.linspace(0, len(objects) - 1, min(n_checked, len(objects))).astype(int)
    return float(np.mean([_is_there(labels, objects, int(row)) for row in rows]))


def _is_there(labels: Any, objects: Objects, row: int) -> bool:
    mask = np.asarray(labels[objects.slices(row)]) == objects.label_ids[row]
    sides = [(axis, end) for axis in range(mask.ndim) for end in (0, -1)]
    areas = objects.areas
    is_alike = areas is None or np.count_nonzero(mask) == areas[row]
    reaches = all(mask.take(end, axis=axis).any() for axis, end in sides)
    return bool(mask.size) and is_alike and reaches


def _plain(name: object) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def _rank(name: object) -> int | None:
    """How likely a column of this name holds labels, 0 most; None if it does not."""
    if is_of_a_map(name):
        return None
    found = (i for i, known in enumerate(_KNOWN) if known.fullmatch(_plain(name)))
    return next(found, None)


def numbers_of(column: pd.Series) -> IntArray | None:
    """(n_rows,) whole numbers of a column, -1 where there is none; None for others.

    Numbers written as text or as 1.0 count.
    """
    if pd.api.types.is_bool_dtype(column):
        return None
    # Most columns are measures: the first rows tell it.
    for part in (column.head(_FIRST), column):
        if not pd.api.types.is_numeric_dtype(part):
            known, part = part.notna(), pd.to_numeric(part.astype(object), "coerce")
        else:
            known = part.notna()
        values = part.to_numpy(dtype=np.float64, na_value=np.nan)
        told = values[known.to_numpy()]
        if not (np.isfinite(told).all() and (told % 1 == 0).all()):
            return None
    if not len(told):
        return None
    return np.where(np.isnan(values), -1, values).astype(np.int64)


def _times(table: pd.DataFrame, where: str) -> IntArray:
    """(n_rows,) picture of a time series that each row is about."""
    for name in table.columns:
        if _TIME.fullmatch(_plain(name)):
            numbers = numbers_of(table[name])
            if numbers is not None:
                return numbers
    raise DataError(
        f'{where} has no column "frame" or "time" of whole numbers, which say in which '
        "picture of the time series a row is: add one, counted from 0."
    )


def _is_empty(table: pd.DataFrame) -> NDArray[np.bool_]:
    """(n_rows,) whether a row holds nothing: all is missing, or 0."""
    told: Sequence[object] = [
        c for c in table.columns if _rank(c) is None and not is_of_a_map(c)
    ]
    if not told:
        return np.zeros(len(table), dtype=bool)
    measures = table[list(told)]
    nothing = measures.isna() | (measures == 0) | (measures.astype(str) == "")
    return np.asarray(nothing.all(axis=1))
