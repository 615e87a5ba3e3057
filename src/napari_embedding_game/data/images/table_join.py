"""Join a table from elsewhere with the label image whose objects its rows are.

A table (CellProfiler, scikit-image, QuPath) may be about one of several label images:
the one that fits best is taken, and a person can choose otherwise.  Where it has the
rows of several pictures, a person says which picture this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """Of several in the table; None where all labels differ anyway."""
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
    found = Join(columns=possible_id_columns(table), pictures=pictures_in(table))
    if request.is_guess and not id_columns(table):
        return found
    best_fit = -1.0
    for image in request.images:
        try:
            match, fit = _joined(table, image, request, found.pictures, where)
        except DataError as error:
            if found.match is None and not found.refusal:
                found = replace(found, image=image, refusal=str(error))
            continue
        if fit > best_fit:
            best_fit = fit
            found = replace(
                found, image=image, match=match, picture=request.picture, refusal=""
            )
    return found


def pictures_in(table: pd.DataFrame) -> list[Picture]:
    """Return the pictures that a table has rows of, where they are several."""
    for column in picture_columns(table):
        values = table[column].dropna().astype(str).unique()
        if len(values) > 1:
            return [Picture(column, value) for value in values]
    return []


def _joined(
    table: pd.DataFrame,
    image: LabelImage,
    request: JoinRequest,
    pictures: Sequence[Picture],
    where: str,
) -> tuple[Match, float]:
    """Join with one image; return also how well it fits, 0 to 1."""
    objects, in_time = objects_of(image.pixels, image.first_axis)
    picture = request.picture
    if picture is None and pictures and not in_time:
        _check_unique(table, request.column, pictures, where)
    rows = np.ones(len(table), bool) if picture is None else picture.rows(table)
    match = match_objects(
        table[rows], objects, request.column, where, image.name, in_time
    )
    n_rows = int(rows.sum() - match.left_out.sum())
    if request.is_guess and match.n_linked < LEAST_SHARE * n_rows:
        raise DataError(
            f"Not linked with '{image.name}': only {match.n_linked:,} of {n_rows:,} "
            f"rows of {where} have a label of it. If they belong together all the "
            "same, choose the labels here."
        )
    fit = match.n_linked / max(1, n_rows + len(objects) - match.n_linked)
    if picture is None:
        return match, fit
    left_out = np.zeros(len(rows), dtype=bool)
    left_out[rows] = match.left_out
    sentences = (
        f"Joined: the rows of {picture.told}.",
        *match.sentences,
        f"{int((~rows).sum()):,} rows of other pictures are on the map, but in no "
        "image.",
    )
    return Match(match.column, match.objects.spread(rows), left_out, sentences), fit


def _check_unique(
    table: pd.DataFrame, column: str | None, pictures: Sequence[Picture], where: str
) -> None:
    """Raise DataError where several pictures have the same labels."""
    for name in [column] if column in table else id_columns(table):
        ids = numbers_of(table[name])
        if ids is not None and pd.Index(ids[ids > 0]).is_unique:
            return
    raise DataError(
        f"{where} has rows of {len(pictures):,} pictures (column "
        f"'{pictures[0].column}'), and several have the same labels: choose the "
        "picture of this image."
    )
