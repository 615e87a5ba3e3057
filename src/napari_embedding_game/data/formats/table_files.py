"""Read .csv, .tsv and .parquet files as pandas frames."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd

from napari_embedding_game.data.columns import listed
from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.limits.memory import (
    check_fits,
    check_inflates,
    check_shape_fits,
)

_SNIFF_CHARACTERS = 65536
_MOST_COLUMNS = 1_000_000
# What a table of text takes in memory, at least, for each byte of the file; and
# for each row (which has a name), cell and column.
_PARSED, _ROW, _CELL, _COLUMN = 8, 120, 32, 2500
_SEPARATORS = (b",", b"\t", b";")
_CALLED = {",": "comma", "\t": "tab", ";": "semicolon"}
_LONGER_LINE = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPEN_QUOTE = re.compile(r"EOF inside string starting at row (\d+)")
_QUOTED = re.compile(r'"[^"]*"')
_END = re.compile(r"[\r\n]")
NOTES = "notes"
"""Key among the ``attrs`` of a frame."""


def read_frame(path: Path) -> pd.DataFrame:
    """Read .csv, .tsv or .parquet, also with .gz behind it, as it is.

    ``attrs[NOTES]`` of the frame tells, in sentences, what was read otherwise.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    with explain_damage(path, f"a {kind} table"):
        content = _content(path)
        if not content.strip():
            raise DataError(f"{path.name} is empty: there is nothing in the file.")
        if kind == ".parquet":
            return _parse_parquet(content, path.name)
        check_fits(_parsed_size(content), path.name, "its table")
        return _parse_text(_decoded(content, path.name), kind, path.name)


def _content(path: Path) -> bytes:
    if path.suffix.lower() == ".gz":
        check_inflates(path, _PARSED)
        with gzip.open(path) as file:
            return file.read()
    check_fits(path.stat().st_size, path.name, "its table")
    return path.read_bytes()


def _parsed_size(content: bytes) -> int:
    """Bytes that a table of text takes, about: short rows take more than long ones."""
    n_rows = content.count(b"\n")
    n_cells = n_rows + sum(map(content.count, _SEPARATORS))
    heading = content[: content.find(b"\n")]
    n_columns = max(map(heading.count, _SEPARATORS))
    parts = _ROW * n_rows + _CELL * n_cells + _COLUMN * n_columns
    return max(_PARSED * len(content), parts)


def _parse_parquet(content: bytes, where: str) -> pd.DataFrame:
    """Table of a .parquet file, whose few bytes may stand for any number of rows."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(content))
    shape = (file.metadata.num_rows, max(1, file.metadata.num_columns))
    check_shape_fits(shape, 2 * _PARSED, where, "its table")
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    unpacked = sum(column.total_uncompressed_size for column in columns)
    check_fits(unpacked, where, "its table")
    read = _plain_columns([file.schema.column(i) for i in range(len(file.schema))])
    frame = file.read(columns=read).to_pandas()
    left_out = [name for name in file.schema_arrow.names if name not in read]
    if left_out and frame.shape[1] == 0:
        raise DataError(
            f"{where} holds only lists or nested values ({listed(left_out)}): write "
            "each number into a column of its own."
        )
    if left_out:
        told = "Not read, because they hold lists or nested values"
        frame.attrs[NOTES] = [f"{told}: {listed(left_out)}."]
    return frame


def _plain_columns(columns: list[Any]) -> list[str]:
    """Names of the columns with one value a row, of all stored columns.

    The few bytes of a list may stand for any number of values in one row; and
    pyarrow reads ``a.b``, part of a nested ``a`` or not, where ``a`` is asked for.
    """
    plain = [c.path for c in columns if c.name == c.path and not c.max_repetition_level]
    nested = [c.path for c in columns if c.name != c.path or c.max_repetition_level]
    return [
        name
        for name in plain
        if not any(path == name or path.startswith(f"{name}.") for path in nested)
    ]


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "UTF-16"
        elif b"\0" not in content:
            encoding = "Latin-1 (Windows-1252)"
        else:  # no text at all
            raise
        raise DataError(
            f"{where} is written in {encoding}, not in UTF-8: save it as UTF-8 text, "
            'which Excel calls "CSV UTF-8".'
        ) from error


def _parse_text(text: str, kind: str, where: str) -> pd.DataFrame:
    """Parse comma-, tab- or semicolon-separated text; the latter with 3,14 for 3.14."""
    heading = _END.split(text.lstrip(), 1)[0]
    separator = "\t" if kind == ".tsv" else max(",;\t", key=heading.count)
    if heading.count(separator) >= _MOST_COLUMNS:
        raise DataError(
            f"{where} has more than {_MOST_COLUMNS:,} columns: put one cell, image or "
            "text in each row, and its measurements in columns."
        )
    comma = separator != "," and re.search(r"\d,\d", text[:_SNIFF_CHARACTERS])
    # In a single column an empty line is an empty value; elsewhere it is none.
    is_single = separator not in _QUOTED.sub("", heading)
    if is_single:
        text = text.lstrip().rstrip("\r\n")
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            decimal="," if comma else ".",
            low_memory=False,  # types from the whole column, not from parts of it
            skip_blank_lines=not is_single,
        )
    except pd.errors.ParserError as error:
        raise _uneven(str(error), separator, where) from error
    unnamed = _values_without_name(text, separator, is_single)
    if unnamed and isinstance(frame.index, pd.RangeIndex):
        # Or the names would be taken for no names.
        frame.index = pd.Index(frame.index.tolist(), dtype=object)
    frame.attrs[NOTES] = [
        *_row_name_notes(frame, unnamed, separator, where),
        *_joined_notes(frame, text, is_single),
    ]
    return frame


def _uneven(told: str, separator: str, where: str) -> ValueError:
    """Say why pandas could not tell the values of a line, if it told."""
    if longer := _LONGER_LINE.search(told):
        expected, line, cells = longer.groups()
        return DataError(
            f"{where} has {cells} values in line {line} and {expected} in those before "
            f"it: put what has a {_CALLED[separator]} in it into quotation marks, or "
            "remove what is too much."
        )
    if opened := _OPEN_QUOTE.search(told):
        return DataError(
            f"{where} has a quotation mark in row {opened[1]} that is never closed: "
            "remove it, or close it."
        )
    return ValueError(told)


def _values_without_name(text: str, separator: str, is_single: bool) -> int:
    """How many values more than the line of names the first line of values has.

    What pandas makes of them is no sign: names of rows that are numbers one after
    the other become the same index as no names.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    filled = (len(row) for row in rows if is_single or "".join(row).strip() or row[1:])
    try:
        names, values = next(filled), next(filled)
    except (StopIteration, csv.Error):  # no values, or a text of more than 131,072
        return 0
    return max(0, values - names)


def _row_name_notes(
    frame: pd.DataFrame, unnamed: int, separator: str, where: str
) -> list[str]:
    """Note on lines with one value more than the heading, which begin with a name.

    R writes them so.  A separator at each line's end looks the same and would shift
    all columns, and so do commas between columns and in numbers alike.
    """
    if not unnamed:
        return []
    n_names = frame.shape[1]
    if unnamed > 1:
        raise DataError(
            f"{where} has {n_names + unnamed} values in a line and {n_names} column "
            "names: give each column a name; where numbers have decimal commas (1,5), "
            "export the table with semicolons between columns."
        )
    if frame.iloc[:, -1].isna().all():
        raise DataError(
            f"{where} has a {_CALLED[separator]} at the end of each line, as if more "
            "values followed: remove it, or add one to the line of names too."
        )
    return ["Taken as row names: the first value of each line, which has no heading."]


def _joined_notes(frame: pd.DataFrame, text: str, is_single: bool) -> list[str]:
    """Note on lines that pandas took for the rest of a text in quotation marks."""
    if '"' not in text:
        return []
    lines = io.StringIO(text, newline=None)
    n_lines = sum(is_single or bool(line.strip(" \n")) for line in lines)
    n_joined = n_lines - 1 - len(frame)
    if n_joined < 1:
        return []
    return [
        f"Read as the rest of a text in quotation marks: {n_joined:,} of {n_lines:,} "
        "lines; if rows are missing, look for a mark too much."
    ]
