"""Wells of a plate: their names, and the plates that they fit on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import ascii_uppercase as letters
from typing import TypeAlias

Well: TypeAlias = tuple[int, int]
"""Row and column, both from 0."""

_WELL = re.compile(
    r"\s*([A-P]|A[A-F])[\s_-]?0*([1-9]|[1-3]\d|4[0-8])\s*", re.IGNORECASE
)
_ROWS: list[str] = [*letters, *(one + other for one in letters for other in letters)]
"""A, B, to Z, AA, AB: what rows are called."""
FORMATS: dict[int, tuple[int, int]] = {
    6: (2, 3),
    12: (3, 4),
    24: (4, 6),
    48: (6, 8),
    96: (8, 12),
    384: (16, 24),
    1536: (32, 48),
}
"""Rows and columns of the usual plates, by their number of wells."""


def parse_well(text: object) -> Well | None:
    """Return the well that a text such as "B03", "b3" or "B-3" names, or None."""
    match = _WELL.fullmatch(str(text))
    return (_ROWS.index(match[1].upper()), int(match[2]) - 1) if match else None


def parse_row(text: object) -> int | None:
    """Return the row, from 0, that a letter or a number from 1 names, or None."""
    name, known = str(text).strip().upper(), _ROWS[: FORMATS[1536][0]]
    return known.index(name) if name in known else _counted(text, len(known))


def parse_column(text: object) -> int | None:
    """Return the column, from 0, that a number from 1 names, or None."""
    return _counted(text, FORMATS[1536][1])


def _counted(text: object, most: int) -> int | None:
    match = re.fullmatch(r"\s*0*([1-9]\d?)(\.0*)?\s*", str(text))
    return int(match[1]) - 1 if match and int(match[1]) <= most else None


def row_letters(row: int) -> str:
    """Return "A" for row 0, "AA" for row 26."""
    return _ROWS[row]


def well_name(well: Well) -> str:
    """Return a name such as "B03", by which wells sort."""
    return f"{row_letters(well[0])}{well[1] + 1:02d}"


def smallest_format(wells: Iterable[Well]) -> int:
    """Return the number of wells of the smallest usual plate that holds these."""
    rows, columns = zip((0, 0), *wells, strict=True)
    fitting = (n for n, (a, b) in FORMATS.items() if max(rows) < a and max(columns) < b)
    return next(fitting, max(FORMATS))
