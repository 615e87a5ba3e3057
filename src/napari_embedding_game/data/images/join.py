"""Join the rows of a table with the objects of a label image, by an id alone.

A table (CellProfiler, scikit-image, QuPath) says in a column which object a row is, and
may have the rows of several pictures, among which a person chooses the picture of the
image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    N_FIRST_ROWS,
    count_text,
    is_own_map_column,
    is_position_name,
    list_text,
    parse_integers,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import (
    FirstAxis,
    Objects,
    find_objects,
)

IntArray = NDArray[np.int64]
Picture = tuple[str, str]
"""A column, and its value in the rows of one picture."""

# Names of columns of labels, the likeliest first, without case and separators.
_LABEL_COLUMNS = [
    re.compile(pattern)
    for pattern in (
        r"labels?|label(id|index)",
        r"(number)?object(label|number|id|index)?",  # CellProfiler: number
        r"instance(id|label)?",
        r"(cell|nucleus|nuclei|segment|segmentation|mask|roi)(id|number|index|label)",
        r"index",  # napari
        r"ids?",
        r".*(objectnumber|objectid|label|labelid)",
    )
]
_TIME = re.compile(r"t|time|frame|timepoint|timeindex")
_PICTURE = re.compile(
    r"(metadata)?(image|img|file|fov|field|position|site|scene|slide|region|library"
    r"|sample|roi|tile|core|section)(number|id|name)?"
)
_MIN_COMPARED = 20
"""Number of rows from which on positions are compared."""
MIN_SHARE = 0.5
"""Share of rows that must match: with fewer, rows are joined only at a person's
request."""
MAX_REPEATED = 0.1
"""Share of rows with the label of another row above which they are of several
pictures."""

OTHER_LABELS_REMEDY = (
    "Choose the labels that were measured, or these if they belong together all the "
    "same."
)


@dataclass(frozen=True, eq=False)
class JoinRequest:
    """A label image that rows may be about, and the choices of a person."""

    name: str
    """Name of the labels for messages."""
    pixels: Any
    first_axis: FirstAxis = "z"
    """Meaning of the first of three axes; each picture of a series has its labels."""
    column: str | None = None
    """Column that says which object a row is; None: a column of a known name."""
    picture: Picture | None = None
    """Picture of the image, of several in the table; None where all labels differ
    anyway."""
    is_guess: bool = False
    """Whether the join is automatic: then only clear matches are joined."""


@dataclass(frozen=True, eq=False)
class Join:
    """Result of joining a table with a label image."""

    request: JoinRequest
    columns: Sequence[str]
    """Columns that may hold the labels."""
    pictures: Sequence[Picture]
    """Pictures that the table has rows of, if several."""
    column: str | None = None
    """Column that rows were joined by."""
    objects: Objects | None = None
    """(n_rows,) object of each row, label 0 for a row without one; None if not
    joined."""
    left_out: NDArray[np.bool_] | None = None
    """(n_rows,) mask of rows about the background, which are not mapped."""
    sentences: tuple[str, ...] = ()
    """How many rows match by which column, and why other rows do not."""
    refusal: str = ""
    """Why the table is not joined, and the remedy; "" if it is joined."""


def join_with_labels(
    table: pd.DataFrame, request: JoinRequest, where: str = "the table"
) -> Join:
    """Join the rows of a table, called `where` in messages, with labelled objects.

    The result always lists the columns and pictures to choose from. If the table does
    not fit, ``refusal`` says why; no DataError is raised. An automatic join is not
    tried for a table without a column of a known name, and says nothing then.
    """
    link = Join(
        request, find_id_columns(table, include_any_name=True), _find_pictures(table)
    )
    if request.is_guess and not find_id_columns(table):
        return link
    try:
        return _match_rows_to_objects(table, link, where)
    except DataError as error:
        return replace(link, refusal=f"Not linked with '{request.name}': {error}")


def _match_rows_to_objects(table: pd.DataFrame, join: Join, where: str) -> Join:
    """Match each row with an object by label and frame; return the completed join.

    1. Rows of other pictures than the requested one get no object.
    2. Rows match by their frame, too, if the request says that the first axis is a
       series, or the table has each label once in each of several frames.
    3. Rows that share a label get no object; rows of label 0 are to be left out.
    4. Positions are compared, where the table has any.

    The join then says how many rows match, and why others do not. Raises DataError if
    no row matches, a picture is to be chosen first, or in an automatic join if fewer
    than half of the rows match, too many share a label, or positions differ.
    """
    request, name = join.request, join.request.name
    pixels, picture = np.asarray(request.pixels), request.picture
    in_series = request.first_axis != "z" and pixels.ndim == 3
    objects = find_objects(pixels, int(in_series))
    column, ids = _find_label_column(table, request.column, objects, where)
    is_in_picture = np.ones(len(table), bool)
    if picture is not None:
        is_in_picture = (table[picture[0]].astype(str) == picture[1]).to_numpy()
    in_picture = table[is_in_picture], ids[is_in_picture]
    if (
        not in_series
        and pixels.ndim == 3
        and _is_table_of_series(*in_picture, len(pixels))
    ):
        in_series, objects = True, find_objects(pixels, 1)
    join = replace(join, pictures=() if in_series else join.pictures)
    keys = pd.DataFrame({"label": objects.label_ids, "frame": 0})
    rows = pd.DataFrame({"label": ids, "frame": 0})
    if in_series:
        keys["frame"], rows["frame"] = objects.boxes[:, 0], -1
        rows.loc[is_in_picture, "frame"] = _read_frame_numbers(
            table[is_in_picture], where
        )
        rows = _shift_frames_to_0(rows, keys)
    is_label = is_in_picture & (ids > 0)
    repeated = is_label & rows.assign(of=is_label).duplicated(keep=False).to_numpy()
    if repeated.any() and join.pictures and picture is None:
        raise DataError(
            f"{where} has rows of {len(join.pictures):,} pictures (column "
            f"'{join.pictures[0][0]}'), and several have the same labels: choose the "
            "picture of this image."
        )
    indices = rows.merge(keys.reset_index(), how="left", on=["label", "frame"])["index"]
    with_row = indices[is_in_picture].dropna().unique()
    indices = indices.where(is_in_picture & ~repeated).fillna(-1).to_numpy(np.intp)
    matched, background = indices >= 0, is_in_picture & (ids == 0)
    n, n_rows = int(matched.sum()), int((is_in_picture & ~background).sum())
    is_doubtful = n < MIN_SHARE * n_rows or repeated.mean() > MAX_REPEATED
    if not n or (request.is_guess and is_doubtful):
        raise DataError(
            f"{f'only {n:,}' if n else 'none'} of {n_rows:,} rows of {where} have a "
            f"label of it that no other row has. {OTHER_LABELS_REMEDY}"
        )
    row_objects = objects.take_or_empty(indices)
    frames, matched_objects = rows["frame"][matched], row_objects.take(matched)
    are_elsewhere = _do_positions_disagree(table[matched], matched_objects, frames)
    if request.is_guess and are_elsewhere:
        raise DataError(
            f"{where} has other positions than its objects. {OTHER_LABELS_REMEDY}"
        )
    missing = np.delete(objects.label_ids, with_row.astype(int))
    unknown = is_label & ~matched & ~repeated
    reasons = (
        (background, "about the background, left out"),
        (unknown, f"of labels that '{name}' has not: {_format_ids(ids[unknown])}"),
        (is_in_picture & (ids < 0), "without a label"),
        (repeated, f"with the label of another row: {_format_ids(ids[repeated])}"),
        (~is_in_picture, "of other pictures"),
        (matched & are_elsewhere, "with another position than the object"),
    )
    sentences = [
        f"{n:,} of {n_rows:,} rows match a label of '{name}' by column '{column}'.",
        *(f"{count_text(int(x.sum()), 'row')} {why}." for x, why in reasons if x.any()),
    ]
    if len(missing):
        of_labels = count_text(len(missing), "label")
        sentences.append(
            f"Without a row, on no map: {of_labels} ({_format_ids(missing)})."
        )
    return replace(
        join,
        column=column,
        objects=row_objects,
        left_out=background,
        sentences=tuple(sentences),
    )


def _find_label_column(
    table: pd.DataFrame, chosen_column: str | None, objects: Objects, where: str
) -> tuple[str, IntArray]:
    """Return the name and values of the label column: the chosen, or likeliest one.

    The likeliest is the first column of a known name by which half of the rows are
    objects, else the one with most. Columns that may only count the rows are passed
    over. Raises DataError if the chosen column has no whole numbers, no column is left,
    or by the one left fewer than half are objects while another may only count rows.
    """
    columns = find_id_columns(table) if chosen_column is None else [chosen_column]
    numbers = ((one, parse_integers(table[one])) for one in columns if one in table)
    integers = {one: ids for one, ids in numbers if ids is not None}
    if chosen_column in integers:
        return chosen_column, integers[chosen_column]
    if chosen_column is not None:
        raise DataError(
            f'column "{chosen_column}" of {where} holds no whole numbers: choose the '
            "column that says which object a row is."
        )
    labels = objects.label_ids
    counting = [
        one for one, ids in integers.items() if _may_be_row_numbers(ids, labels)
    ]
    shares = {
        one: min(0.5, np.isin(ids, labels).mean())
        for one, ids in integers.items()
        if one not in counting
    }
    best = max(shares, key=shares.__getitem__, default="")
    if best and (shares[best] == 0.5 or not counting):
        return best, integers[best]
    why = f"{where} has no column of labels"
    if counting:
        why = f"column '{counting[0]}' of {where} may only count the rows"
    raise DataError(
        f"{why}. Choose under Rows by which column says which object a row is, or add "
        'one called "label".'
    )


def _may_be_row_numbers(ids: IntArray, labels: IntArray) -> bool:
    """Return whether ids may be row numbers from 0, or from 1, instead of labels.

    That is, they are consecutive and do not end at the last label; and begin at 0, or
    at 1 with as many rows as labels.
    """
    n, first, last = len(ids), ids.min(), ids.max()
    is_count = len(np.unique(ids)) == n == last - first + 1 and last != labels.max()
    return bool(is_count and (first == 0 or (first == 1 and n == len(labels))))


def _do_positions_disagree(
    table: pd.DataFrame, objects: Objects, frames: pd.Series
) -> bool:
    """Return whether the table's positions are not those of the objects of its rows.

    ``table`` and ``objects``: matched rows and their objects. ``frames``: picture of
    each.

    - The centres (y, x) are fitted linearly by all position columns, in any units and
      orientation and with an origin for each picture.
    - Positions disagree if most of the variance of one axis is left. One axis is
      enough: labels are mostly numbered along the other axis, so that this one fits
      labels of another image, too.
    - False with fewer than 20 rows, or fewer than two position columns that vary.
    """
    axes = table[[name for name in table if is_position_name(name)]].astype(object)
    # Levels that are numbers count, too.
    axes = axes.convert_dtypes().select_dtypes("number")
    there = axes.to_numpy(float, na_value=np.nan)
    every = pd.DataFrame(np.hstack([objects.centers[:, -2:], there]), frames)
    # Some programs write 1.8e308 for a missing value.
    every = every.where(every.abs() < 1e30).dropna(axis=1, how="all").dropna()
    parts = (every - every.groupby(level=0).transform("mean")).to_numpy()
    here, spread = parts[:, :2], parts[:, 2:].std(axis=0)
    varies = spread > 1e-6 * every.iloc[:, 2:].abs().max().to_numpy()
    n, p = len(parts), int(varies.sum())
    if n < _MIN_COMPARED or p < 2:
        return False
    there = parts[:, 2:][:, varies] / spread[varies]
    rest = here - there @ np.linalg.lstsq(there, here, rcond=None)[0]
    return bool((rest.var(axis=0) / (n - p) > 0.75 * here.var(axis=0) / n).any())


def find_id_columns(
    table: pd.DataFrame, *, include_any_name: bool = False
) -> list[str]:
    """Return the names of the columns that can hold labels, the likeliest first.

    These are columns of whole numbers under a known name; with ``include_any_name``
    other columns of distinct whole numbers follow. Columns of this program's maps are
    left out.
    """
    names = [str(name) for name in table if not is_own_map_column(name)]
    called = sorted(names)
    named = [
        n
        for one in _LABEL_COLUMNS
        for n in called
        if one.fullmatch(_keep_letters_and_digits(n))
    ]
    candidates = dict.fromkeys([*named, *(names if include_any_name else [])])
    # The first rows exclude most of the many columns of gene counts quickly.
    maybe = (
        n for n in candidates if n in named or table[n].head(N_FIRST_ROWS).is_unique
    )
    integers = [n for n in maybe if parse_integers(table[n]) is not None]
    return [n for n in integers if n in named or table[n].is_unique]


def _find_pictures(table: pd.DataFrame) -> list[Picture]:
    """Return the pictures that a table has rows of, by its first column of pictures.

    The list is empty unless there are several.
    """
    for column in table.columns:
        if _PICTURE.fullmatch(_keep_letters_and_digits(column)):
            values = table[column].dropna().astype(str).unique()
            if len(values) > 1:
                return [(str(column), value) for value in values]
    return []


def _read_frame_numbers(table: pd.DataFrame, where: str) -> IntArray:
    """Return the number of the picture in a series that each row is about, (n_rows,).

    Columns of times are tried first, then columns of images. Raises DataError if no
    column has such names and whole numbers.
    """
    for pattern in (_TIME, _PICTURE):
        for name in filter(
            lambda one: pattern.fullmatch(_keep_letters_and_digits(one)), table
        ):
            if (numbers := parse_integers(table[name])) is not None:
                return numbers
    raise DataError(
        f'{where} has no column "frame", "time" or "image" of whole numbers, which say '
        "in which picture of the series a row is: add one, counted from 0."
    )


def _shift_frames_to_0(rows: pd.DataFrame, keys: pd.DataFrame) -> pd.DataFrame:
    """Return rows with frames counted from 0; they are shifted by 1 if none is 0.

    ``rows`` and ``keys`` have columns ``label`` and ``frame``. Rows are shifted only if
    more of them then match a key, or as many in frames with fewer keys.
    """

    def count_matches(some: pd.DataFrame) -> tuple[int, int]:
        n_keys = keys["frame"].isin(some["frame"]).sum()
        return len(some.merge(keys)), -int(n_keys)

    shifted = rows.assign(frame=rows["frame"] - 1)
    return rows if (rows["frame"] == 0).any() else max(rows, shifted, key=count_matches)


def _is_table_of_series(table: pd.DataFrame, ids: IntArray, n_pictures: int) -> bool:
    """Return whether each label has one row for each of several pictures.

    ``ids``: (n_rows,) labels. ``n_pictures``: length of the first axis, at which frames
    have to end, counted from 0 or 1. False without frame numbers.
    """
    try:
        rows = pd.DataFrame({"id": ids, "frame": _read_frame_numbers(table, "")})[
            ids > 0
        ]
    except DataError:
        return False
    are_several = rows["id"].duplicated().any() and not rows.duplicated().any()
    last = rows["frame"].max() + int(rows["frame"].min() == 0)
    return bool(are_several and last in (n_pictures - 1, n_pictures))


def _format_ids(ids: IntArray) -> str:
    return list_text(list(map(str, np.unique(ids).tolist())))


def _keep_letters_and_digits(name: object) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())
