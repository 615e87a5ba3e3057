"""Choose the label image, the column and the picture by which a table is joined.

A table from elsewhere (CellProfiler, scikit-image, QuPath) may be about one of several
label images, and hold the rows of several pictures: what fits best is taken, and a
person can choose otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.label_column import (
    FirstAxis,
    Match,
    id_columns,
    match_objects,
    numbers_of,
    objects_of,
    picture_columns,
    possible_id_columns,
)
from napari_embedding_game.data.label_objects import Objects

LEAST_SHARE = 0.5
"""Of rows that match: with fewer, nobody links a table unless told to."""


@dataclass(frozen=True, eq=False)
class LabelImage:
    """A label image that rows may be about."""

    name: str
    """What the person calls it."""
    pixels: Any
    first_axis: FirstAxis = "z"
    """What the first of three axes is."""


@dataclass(frozen=True)
class Picture:
    """The rows of one picture among several: those with a value in a column."""

    column: str
    value: str

    def rows(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """(n_rows,) whether each row is of this picture."""
        return np.asarray(table[self.column].astype(str) == self.value)

    @property
    def told(self) -> str:
        """The picture in words, as in a list."""
        return f"{self.column} {self.value}"


@dataclass(frozen=True, eq=False)
class JoinRequest:
    """The label images to choose from, and what a person chose."""

    images: tuple[LabelImage, ...]
    """The likeliest first."""
    column: str | None = None
    """Says which object a row is; None: the one that fits best."""
    picture: Picture | None = None
    """Of several in the table; None: the one that fits best."""
    is_guess: bool = False
    """Whether nobody asked: then only what clearly fits is linked."""


@dataclass(frozen=True, eq=False)
class Join:
    """What came of joining a table with label images."""

    image: LabelImage | None = None
    match: Match | None = None
    """The object of each row; None where the table is linked with none."""
    picture: Picture | None = None
    columns: Sequence[str] = ()
    """Which may hold the labels."""
    pictures: Sequence[Picture] = ()
    """Of which the table has rows, where they are several."""
    refusal: str = ""
    """Why it is not linked, and the way out."""


@dataclass(frozen=True, eq=False)
class _Table:
    """A table with what can be told without any image."""

    frame: pd.DataFrame
    where: str
    columns: Sequence[str] = field(default_factory=list)
    pictures: Sequence[Picture] = field(default_factory=list)


def join(table: pd.DataFrame, request: JoinRequest, where: str = "the table") -> Join:
    """Join the rows of a table with the objects of the label image that fits best.

    Parameters
    ----------
    table : DataFrame
    request : JoinRequest
    where : str
        What the person calls the table.

    Returns
    -------
    Join
        Nothing is raised: where no image fits, ``refusal`` tells why.
    """
    columns = possible_id_columns(table)
    known = _Table(table, where, columns, pictures_in(table))
    if request.is_guess and not id_columns(table):
        return Join(columns=columns, pictures=known.pictures)
    best, best_fit = None, -1.0
    refused = Join(columns=columns, pictures=known.pictures)
    for image in request.images:
        try:
            found, fit = _joined(known, image, request)
        except DataError as error:
            if not refused.refusal:
                refused = Join(
                    image=image,
                    columns=columns,
                    pictures=known.pictures,
                    refusal=str(error),
                )
            continue
        if fit > best_fit:
            best, best_fit = found, fit
    return best or refused


def pictures_in(table: pd.DataFrame) -> list[Picture]:
    """Return the pictures that a table has rows of, where they are several."""
    for column in picture_columns(table):
        values = table[column].dropna().astype(str).unique()
        if len(values) > 1:
            return [Picture(column, value) for value in values]
    return []


def _joined(
    table: _Table, image: LabelImage, request: JoinRequest
) -> tuple[Join, float]:
    """Join with one image; return also how well it fits, 0 to 1."""
    objects, in_time = objects_of(image.pixels, image.first_axis)
    column, picture = request.column, request.picture
    if picture is None and table.pictures and not in_time:
        column, picture = _fitting(table, objects, column)
    whole = np.ones(len(table.frame), dtype=bool)
    rows = whole if picture is None else picture.rows(table.frame)
    match = match_objects(
        table.frame[rows],
        objects,
        column,
        where=table.where,
        labels_name=image.name,
        in_time=in_time,
    )
    n_rows = int(rows.sum() - match.left_out.sum())
    if request.is_guess and match.n_linked < LEAST_SHARE * n_rows:
        raise DataError(
            f"Not linked with '{image.name}': only {match.n_linked:,} of {n_rows:,} "
            f"rows of {table.where} have a label of it. If they belong together all "
            "the same, choose the labels here."
        )
    fit = match.n_linked / max(1, n_rows + len(objects) - match.n_linked)
    spread = match if picture is None else _spread(match, rows, picture)
    return Join(image, spread, picture, table.columns, table.pictures), fit


def _fitting(
    table: _Table, objects: Objects, column: str | None
) -> tuple[str | None, Picture | None]:
    """Return the column and the picture whose labels are most like an image's.

    None for the picture where the labels of all rows are different anyway.
    """
    candidates = [column] if column in table.frame else id_columns(table.frame)
    for name in candidates:
        ids = numbers_of(table.frame[name])
        if ids is None:
            continue
        if not pd.Series(ids[ids > 0]).duplicated().any():
            return name, None
        shares = [_alike(ids[p.rows(table.frame)], objects) for p in table.pictures]
        order = np.argsort(shares)[::-1]
        first, second = shares[order[0]], shares[order[1]]
        if first > second and first >= LEAST_SHARE:
            return name, table.pictures[order[0]]
    raise DataError(
        f"{table.where} has rows of {len(table.pictures):,} pictures (column "
        f"'{table.pictures[0].column}'), and several have the same labels: choose "
        "the picture of this image."
    )


def _alike(ids: NDArray[np.int64], objects: Objects) -> float:
    """Return the share of labels that rows and image have in common, 0 to 1."""
    ids, counts = np.unique(ids[ids > 0], return_counts=True)
    if (counts > 1).any() or not len(ids):
        return 0.0
    n_common = len(np.intersect1d(ids, objects.label_ids))
    return n_common / (len(ids) + len(objects) - n_common)


def _spread(match: Match, rows: NDArray[np.bool_], picture: Picture) -> Match:
    """Lay a match of some rows out over all; the others are no object."""
    left_out = np.zeros(len(rows), dtype=bool)
    left_out[rows] = match.left_out
    n_others = int((~rows).sum())
    others = f"{n_others:,} rows of other pictures are on the map, but in no image."
    told = f"Joined: the rows of {picture.told}."
    return Match(
        match.column,
        match.objects.spread(rows),
        left_out,
        (told, *match.sentences, others),
    )
