"""Match the rows of a table to the objects of a label image.

Rows are joined with objects by an id alone, never by their order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import is_of_a_map, listed
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import (
    Objects,
    find_objects,
    find_objects_in_time,
)

FirstAxis = Literal["z", "time"]

# Names of columns of labels, without case and without what parts words.
_KNOWN = (
    "label",
    "labels",
    "labelid",
    "labelindex",
    "objectlabel",
    "objectnumber",  # CellProfiler
    "numberobjectnumber",  # CellProfiler, too
    "objectid",
    "objectindex",
    "instanceid",
    "instancelabel",
    "instance",
    "cellid",
    "cellnumber",
    "cellindex",
    "celllabel",
    "nucleusid",
    "nucleusnumber",
    "nucleuslabel",
    "nucleiid",
    "segmentid",
    "segmentationid",
    "maskid",
    "roiid",
    "roilabel",
    "index",  # napari
    "id",
    "ids",
)
_ENDINGS = ("objectnumber", "labelid", "objectid", "label")
_TIMES = ("time", "frame", "t", "timepoint", "timeindex")
_IMAGES = (
    "imagenumber",  # CellProfiler
    "image",  # QuPath
    "imageid",
    "imagename",
    "filename",
    "file",
    "field",
    "position",
    "site",
)
_SEPARATORS = re.compile(r"[^a-z0-9]")
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
    return match_objects(
        table,
        objects,
        column,
        where=where,
        labels_name=labels_name,
        in_time=in_time,
    )


def objects_of(labels: Any, first_axis: FirstAxis = "z") -> tuple[Objects, bool]:
    """Return the objects of a label image, and whether they are a time series'.

    Raises
    ------
    DataError
        As :func:`~napari_embedding_game.data.label_objects.find_objects`.
    """
    pixels = np.asarray(labels)
    in_time = first_axis == "time" and pixels.ndim == 3
    return (find_objects_in_time if in_time else find_objects)(pixels), in_time


def match_objects(
    table: pd.DataFrame,
    objects: Objects,
    column: str | None = None,
    *,
    where: str = "the table",
    labels_name: str = "the labels",
    in_time: bool = False,
) -> Match:
    """Do what :func:`match_rows` does with objects that are known already."""
    times = _times(table, where) if in_time else None
    called = _quoted(labels_name)
    if column is not None:
        ids = None if column not in table else numbers_of(table[column])
        if ids is None:
            raise DataError(
                f'{_begun(where)} has no column "{column}" of whole numbers: choose '
                "the column that says which object a row is."
            )
        return _match(table, objects, ids, times, column, where, called)
    tried = [
        (name, ids)
        for name in id_columns(table)
        if (ids := numbers_of(table[name])) is not None
    ]
    sure = [one for one in tried if _is_sure(one[1], objects, times)]
    if not sure and not tried:
        return _by_place(table, objects, times, where, called)
    rows = [(name, ids) for name, ids in tried if _counts_rows(ids, objects)]
    if not sure and rows:
        raise DataError(_may_count_rows(rows[0][0], rows[0][1], objects, where, called))
    name, ids = (
        sure[0] if sure else max(tried, key=lambda one: _n_own(one[1], objects, times))
    )
    match = _match(table, objects, ids, times, name, where, called)
    others = [other for other, theirs in sure[1:] if not _equal(ids, theirs)]
    if not others:
        return match
    also = (
        f"{listed([_column(other) for other in others])} would match other rows: "
        f"choose it under Rows by if {_column(name)} is not the label."
    )
    return replace(match, sentences=(*match.sentences, also))


def link(dataset: Dataset, labels: Any, column: str | None = None) -> Dataset:
    """Return the dataset with the label and bounding box of each row.

    Parameters
    ----------
    dataset : Dataset
    labels : array of integers
        The label image that was measured.
    column : str, optional
        Column of ``obs`` with the label of each row; as for :func:`match_rows`.

    Raises
    ------
    DataError
        As :func:`match_rows`.
    """
    obs = dataset.source_obs
    table = pd.DataFrame(index=range(dataset.n_source_rows)) if obs is None else obs
    return linked(dataset, match_rows(table, labels, column, where=dataset.name))


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
    ranked = [(_rank(name), str(name)) for name in table.columns]
    known = sorted((rank, name) for rank, name in ranked if rank is not None)
    return [name for _, name in known if numbers_of(table[name]) is not None]


def possible_id_columns(table: pd.DataFrame) -> list[str]:
    """Names of all columns that may hold labels: known names, then whole numbers."""
    known = id_columns(table)
    return known + [
        str(name)
        for name in table.columns
        if str(name) not in known
        and not is_of_a_map(name)
        and (ids := numbers_of(table[name])) is not None
        and len(np.unique(ids)) == len(ids)
    ]


def picture_columns(table: pd.DataFrame) -> list[str]:
    """Names of the columns that say which picture a row is of."""
    return [str(name) for name in table.columns if _plain(name) in _IMAGES]


def label_column(obs: pd.DataFrame) -> str | None:
    """Name of the column that holds labels, if there is one."""
    return next(iter(id_columns(obs)), None)


def label_ids(table: pd.DataFrame, column: str | None = None) -> NDArray[np.int64]:
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
    """Return the share of objects that a label image has, by ids and boxes.

    Looked at are the shape and, of some of the objects, all sides of the box; for all
    that differ see :func:`~.changed_objects.changes_of`.
    """
    objects = objects.take(objects.present)
    if labels.ndim != objects.ndim or not len(objects):
        return 0.0
    if (objects.boxes[:, objects.ndim :] > np.array(labels.shape)).any():
        return 0.0
    rows = np.linspace(0, len(objects) - 1, min(n_checked, len(objects))).astype(int)
    return float(np.mean([_fills_box(labels, objects, int(row)) for row in rows]))


def _fills_box(labels: Any, objects: Objects, row: int) -> bool:
    mask = np.asarray(labels[objects.slices(row)]) == objects.label_ids[row]
    sides = [(axis, end) for axis in range(mask.ndim) for end in (0, -1)]
    return bool(mask.size) and all(mask.take(end, axis=a).any() for a, end in sides)


# Columns


def _plain(name: object) -> str:
    return _SEPARATORS.sub("", str(name).lower())


def _rank(name: object) -> int | None:
    """How likely a column of this name holds labels, 0 most; None if it does not."""
    plain = _plain(name)
    if is_of_a_map(name):
        return None
    if plain in _KNOWN:
        return _KNOWN.index(plain)
    return len(_KNOWN) if plain.endswith(_ENDINGS) else None


def numbers_of(column: pd.Series) -> NDArray[np.int64] | None:
    """(n_rows,) whole numbers of a column, -1 where there is none; None for others.

    Numbers written as text or as 1.0 count.
    """
    if pd.api.types.is_bool_dtype(column):
        return None
    if not _are_whole(_floats(column.head(_FIRST)), column.head(_FIRST)):
        return None  # most columns are measures: the first rows tell it
    values = _floats(column)
    if not _are_whole(values, column) or column.isna().all():
        return None
    return np.where(column.isna(), -1, np.nan_to_num(values)).astype(np.int64)


def _floats(column: pd.Series) -> NDArray[np.float64]:
    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _are_whole(values: NDArray[np.float64], column: pd.Series) -> bool:
    told = values[column.notna().to_numpy()]
    return bool(np.isfinite(told).all() and (told % 1 == 0).all())


def _times(table: pd.DataFrame, where: str) -> NDArray[np.int64]:
    """(n_rows,) picture of a time series that each row is about."""
    for name in table.columns:
        numbers = numbers_of(table[name]) if _plain(name) in _TIMES else None
        if numbers is not None:
            return numbers
    raise DataError(
        f'{_begun(where)} has no column "frame" or "time" of whole numbers, which say '
        "in which picture of the time series a row is: add one, counted from 0."
    )


# Rows


def _keys(ids: NDArray[np.int64], times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """(n, 2) time and label; in a single picture or stack all times are 0."""
    return np.column_stack([np.zeros_like(ids) if times is None else times, ids])


def _places(
    ids: NDArray[np.int64], times: NDArray[np.int64] | None, objects: Objects
) -> NDArray[np.intp]:
    """(n_rows,) place of each row's object in `found`; -1 where there is none."""
    there = _keys(objects.label_ids, None if times is None else objects.boxes[:, 0])
    rows = pd.MultiIndex.from_arrays(_keys(ids, times).T)
    return np.asarray(pd.MultiIndex.from_arrays(there.T).get_indexer(rows))


def _repeated(
    ids: NDArray[np.int64], times: NDArray[np.int64] | None
) -> NDArray[np.bool_]:
    """(n_rows,) whether another row has the same label (and time)."""
    keys = pd.DataFrame(_keys(ids, times))
    return np.asarray(keys.duplicated(keep=False)) & (ids > 0)


def _is_sure(
    ids: NDArray[np.int64], objects: Objects, times: NDArray[np.int64] | None
) -> bool:
    """Whether most rows have a unique label that the image has."""
    n_own = _n_own(ids, objects, times)
    return 2 * n_own >= len(ids) and not _counts_rows(ids, objects)


def _n_own(
    ids: NDArray[np.int64], objects: Objects, times: NDArray[np.int64] | None
) -> int:
    """Return how many rows have a unique label that the image has."""
    matches = (_places(ids, times, objects) >= 0) & ~_repeated(ids, times)
    return int(matches.sum())


def _counts_rows(ids: NDArray[np.int64], objects: Objects) -> bool:
    """Whether these may be the rows counted from 0, of objects numbered from 1."""
    n = len(ids)
    return n == len(objects) and np.array_equal(np.sort(ids), np.arange(n))


def _is_empty(table: pd.DataFrame) -> NDArray[np.bool_]:
    """(n_rows,) whether a row holds nothing: all is missing, or 0."""
    told = [c for c in table.columns if _rank(c) is None and not is_of_a_map(c)]
    measures = table[told]
    if not measures.shape[1]:
        return np.zeros(len(table), dtype=bool)
    nothing = measures.isna() | (measures == 0) | (measures.astype(str) == "")
    return np.asarray(nothing.all(axis=1))


def _equal(ids: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    return np.array_equal(ids, others)


def _match(
    table: pd.DataFrame,
    objects: Objects,
    ids: NDArray[np.int64],
    times: NDArray[np.int64] | None,
    column: str | None,
    where: str,
    called: str,
) -> Match:
    places, repeated = _places(ids, times, objects), _repeated(ids, times)
    is_linked = (places >= 0) & ~repeated
    is_background = ids == 0
    if is_background.sum() > 1 and times is None:
        is_background &= _is_empty(table)
    if column is None:
        is_background |= ~is_linked & _is_empty(table)
    by = NAPARI_RULE if column is None else f"column {_column(column)}"
    if not is_linked.any():
        raise DataError(_none_matches(table, objects, ids, repeated, column, where))
    n_rows = int((~is_background).sum())
    sentences = [
        f"{int(is_linked.sum()):,} of {n_rows:,} rows match a label of {called} by "
        f"{by}."
    ]
    if is_background.any():
        row = int(np.flatnonzero(is_background)[0])
        sentences.append(
            f"Left out: {_rows(is_background)} about the background (row {row + 1})."
        )
    unknown = ids[(places < 0) & (ids > 0) & ~is_background]
    if len(unknown):
        sentences.append(
            f"{_labels(unknown)} not in {called}: on the map, but in no image."
        )
    if (ids < 0).any():
        sentences.append(f"{_rows(ids < 0)} without a label, on the map only.")
    if repeated.any():
        sentences.append(_told_repeated(table, ids, repeated, column))
    missing = np.setdiff1d(objects.label_ids, ids)
    if len(missing):
        sentences.append(_without_row(missing, called))
    sentences += objects.notes
    linked = objects.take(places[is_linked]).spread(is_linked)
    return Match(column, linked, is_background, tuple(sentences))


def _by_place(
    table: pd.DataFrame,
    objects: Objects,
    times: NDArray[np.int64] | None,
    where: str,
    called: str,
) -> Match:
    """Match a table without ids that napari itself would read by place."""
    if times is None and is_napari_table(table, int(objects.label_ids.max())):
        return _match(table, objects, np.arange(len(table)), None, None, where, called)
    raise DataError(
        f"Not linked with {called}: {where} has {len(table):,} rows and no column of "
        f"labels, and the image has {len(objects):,} objects.{_texts_as_ids(table)} "
        'Add a column called "label" that says which object a row is, or choose one '
        "under Rows by."
    )


def _texts_as_ids(table: pd.DataFrame) -> str:
    """Return a sentence on a column of ids that are no numbers, as QuPath has one."""
    texts = [
        str(name)
        for name in table.columns
        if _rank(name) is not None and not pd.api.types.is_numeric_dtype(table[name])
    ]
    if not texts:
        return ""
    return f" Column {_column(texts[0])} holds names, not the numbers of a label image."


# Sentences


def _may_count_rows(
    column: str, ids: NDArray[np.int64], objects: Objects, where: str, called: str
) -> str:
    return (
        f"Not linked with {called}: column {_column(column)} of {where} runs from 0 "
        f"to {ids.max():,}, and the labels from {objects.label_ids.min():,} to "
        f"{objects.label_ids.max():,}, so it may only count the rows. If it is the "
        'label, choose it under Rows by; else add a column called "label".'
    )


def _none_matches(
    table: pd.DataFrame,
    objects: Objects,
    ids: NDArray[np.int64],
    repeated: NDArray[np.bool_],
    column: str | None,
    where: str,
) -> str:
    if repeated.any():
        told = _told_repeated(table, ids, repeated, column)
        return f"Not linked with the labels: {told}"
    unknown = ids[ids > 0]
    first = f", the first {unknown[0]}" if len(unknown) else ""
    return (
        f"{_begun(where)} has {len(unknown):,} rows whose label the image does not "
        f"have{first}: choose the labels that were measured."
    )


def _told_repeated(
    table: pd.DataFrame,
    ids: NDArray[np.int64],
    repeated: NDArray[np.bool_],
    column: str | None,
) -> str:
    several = [
        str(name)
        for name in table.columns
        if _plain(name) in (*_IMAGES, *_TIMES) and table[name].nunique() > 1
    ]
    remedy = (
        f"keep the rows of one image (column {_column(several[0])} tells several)"
        if several
        else "keep one row for each object"
    )
    return (
        f"{_rows(repeated)} share their label with another row (label "
        f"{ids[repeated][0]}), so they are linked with no object: {remedy}."
    )


def _begun(where: str) -> str:
    """Return the subject of a sentence with a capital letter."""
    return where[:1].upper() + where[1:] if where.startswith("the ") else where


def _rows(rows: NDArray[np.bool_]) -> str:
    n = int(rows.sum())
    return "1 row" if n == 1 else f"{n:,} rows"


def _labels(ids: NDArray[np.int64]) -> str:
    shown = listed([str(i) for i in ids.tolist()])
    return (
        f"Label {shown} is" if len(ids) == 1 else f"{len(ids):,} labels ({shown}) are"
    )


def _without_row(missing: NDArray[np.int64], called: str) -> str:
    shown = listed([str(i) for i in missing.tolist()])
    if len(missing) == 1:
        return f"1 label of {called} has no row ({shown}): it is on no map."
    return f"{len(missing):,} labels of {called} have no row ({shown}): on no map."


def _column(name: str) -> str:
    return f"'{name}'"


def _quoted(name: str) -> str:
    return name if name == "the labels" else f"'{name}'"
