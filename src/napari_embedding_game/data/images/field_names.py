"""Read plate, well, field and channel off the name of an image file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from napari_embedding_game.data.wells import Well, parse_well

_BEGIN, _END = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
# Harmony and Operetta: r02c03f01p01-ch1sk1fk1fl1
_ROW_AND_COLUMN = re.compile(
    _BEGIN + r"r(\d{1,2})c(\d{1,2})(?:f(\d+))?(?:p\d+)?(?:-?(ch\d+)\w*)?" + _END,
    re.IGNORECASE,
)
# CellVoyager: T0001F002L01A01Z01C02
_CELLVOYAGER = re.compile(_BEGIN + r"T\d{4}F(\d{3})L\d{2}A\d{2}Z\d{2}(C\d{2})" + _END)
_WELL = re.compile(
    _BEGIN + r"(?:well[_\-. ]?)?(([A-P]|A[A-F])\d{1,2})(?=[fs]\d|[^A-Za-z0-9]|$)"
)
_SMALL_WELL = re.compile(_BEGIN + r"(?:well[_\-. ]?)?([a-p]\d{2})" + _END)
_FIELD = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=[A-Za-z]\d{2}))"
    r"(?:s|site|f|fld|field|fov|pos|position|xy)[_\-. ]?0*(\d+)" + _END,
    re.IGNORECASE,
)
_PLATE = re.compile(
    _BEGIN + r"(plate[_\-. ]?(?:[A-Za-z]*\d+|[A-Z]))" + _END, re.IGNORECASE
)
# ImageXpress writes a long identifier behind the wavelength.
_CHANNEL = re.compile(
    _BEGIN + r"((?:w|wv|ch|channel|c)[_\-. ]?\d+)(?:[0-9A-F]{8}-[0-9A-F-]{27})?" + _END,
    re.IGNORECASE,
)
_SEPARATORS = "_-. "


@dataclass(frozen=True, slots=True)
class FieldName:
    """What the name of a file tells; "" or None for what it does not."""

    plate: str = ""
    well: Well | None = None
    field: str = ""
    channel: str = ""
    stem: str = ""
    """The name without its channel, which all channels of one field share."""


def read_name(stem: str) -> FieldName:
    """Return what a file's name, without its ending, tells of plate and channel.

    Understood are names such as ``A01_s1_w1``, ``plate1_B03_field2``, ``r01c02f03``
    and ``Assay_B03_T0001F002L01A01Z01C02``.
    """
    if match := _ROW_AND_COLUMN.search(stem):
        well = int(match[1]) - 1, int(match[2]) - 1
        rest = _without(stem, match.span())
        channel = match[4] or ""
        shared = _without(stem, match.span(4)) if channel else stem
        is_well = min(well) >= 0
        return FieldName(
            _plate(rest), well if is_well else None, _number(match[3]), channel, shared
        )
    match = _WELL.search(stem) or _SMALL_WELL.search(stem)
    found = None if match is None else parse_well(match[1])
    rest = stem
    if match is not None and found is not None:
        rest = _without(stem, match.span(1))
    if voyager := _CELLVOYAGER.search(rest):
        shared = stem.replace(voyager[2], "").strip(_SEPARATORS)
        return FieldName(_plate(rest), found, _number(voyager[1]), voyager[2], shared)
    field = _FIELD.search(rest)
    channel = _CHANNEL.search(_without(rest, field.span()) if field else rest)
    shared = stem
    if channel is not None:
        place = stem.rfind(channel[0])
        shared = (
            _without(stem, (place, place + len(channel[0]))) if place >= 0 else stem
        )
    return FieldName(
        _plate(rest),
        found,
        _number(field[1]) if field else "",
        channel[1] if channel else "",
        shared.strip(_SEPARATORS),
    )


def _plate(text: str) -> str:
    match = _PLATE.search(text)
    return match[1] if match else ""


def _number(digits: str | None) -> str:
    return str(int(digits)) if digits else ""


def _without(text: str, span: tuple[int, int]) -> str:
    """Text without a part, and without the separator that was before it."""
    before, after = text[: span[0]].rstrip(_SEPARATORS), text[span[1] :]
    return before + after
