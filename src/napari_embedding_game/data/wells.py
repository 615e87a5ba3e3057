"""Wells of a plate: parse and format their names, and find the plate's format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import ascii_uppercase
from typing import TypeAlias

Well: TypeAlias = tuple[int, int]
"""Row and column of a well, both from 0."""

_SHAPES = (2, 3), (3, 4), (4, 6), (6, 8), (8, 12), (16, 24), (32, 48)
FORMATS = {rows * columns: (rows, columns) for rows, columns in _SHAPES}
"""Rows and columns of the usual plates, keyed by their number of wells."""
ROWS = (*ascii_uppercase, "AA", "AB", "AC", "AD", "AE", "AF")
"""Letters of the rows."""
_WELL = re.compile(r"\s*([A-Z]|A[A-F])[\s_-]*(\d+)\s*", re.IGNORECASE)


def parse_well(text: object) -> Well | None:
    """Parse a text such as "B03", "b3" or "B-3" to a well.

    Returns None for other texts, and for wells beyond a plate of 1,536.
    """
    match = _WELL.fullmatch(str(text))
    return parse_well_position(match[1], match[2]) if match else None


def parse_well_position(row: object, column: object) -> Well | None:
    """Parse the names of a row and of a column to a well; None if either is no name."""
    position = parse_row(row), _parse_index(str(column).strip(), FORMATS[1536][1])
    return None if None in position else position  # type: ignore[return-value]


def parse_row(text: object) -> int | None:
    """Parse a letter such as "B" or "AF", or a number from 1, to a row from 0.

    Returns None for another text, or a row beyond 32.
    """
    name = str(text).strip().upper()
    return ROWS.index(name) if name in ROWS else _parse_index(name, FORMATS[1536][0])


def _parse_index(text: str, n_most: int) -> int | None:
    """Parse a number from 1 to `n_most` to an index from 0; None for another text.

    Leading zeros, and ".0" at the end, are accepted.
    """
    match = re.fullmatch(r"0*([1-9]\d?)(\.0*)?", text)
    return int(match[1]) - 1 if match and int(match[1]) <= n_most else None


def well_name(well: Well) -> str:
    """Return a sortable name of a well such as "B03"."""
    return f"{ROWS[well[0]]}{well[1] + 1:02d}"


def find_smallest_plate_format(wells: Iterable[Well]) -> int:
    """Return the number of wells of the smallest usual plate that holds the wells.

    This is 6 without wells, and 1,536 if no plate holds them.
    """
    rows, columns = zip((0, 0), *wells, strict=True)
    fitting = (n for n, (a, b) in FORMATS.items() if max(rows) < a and max(columns) < b)
    return next(fitting, max(FORMATS))
