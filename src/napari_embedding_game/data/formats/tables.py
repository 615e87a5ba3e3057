"""Read tables: numeric columns are embedded, other columns are metadata."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data import columns
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.matrices import make_dataset_from_matrix
from napari_embedding_game.data.gene_names import (
    ENSEMBL,
    choose_gene_display_names,
    find_ensembl_ids,
)
from napari_embedding_game.data.identity import Part, RowHashes, hash_table_rows
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.positions import find_tissue
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.roles import find_track_roles
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import check_shape

TABLES = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz")
"""Endings of the names of tables."""
NO_OBJECT = "no object of the labels"
"""Reason why rows about the background are left out."""
GENES_IN_ROWS = (
    "The rows of {} look like genes and its columns like cells, and each row is a "
    "point of the map: transpose the table, if cells are to be the points."
)
NUMBERS_AS_NAMES = (
    "The numbers in the first line were taken as names of the columns: if they are a "
    "row, write a line of names above them."
)
_NOTES = "notes"
_IDS = "gene_ids"
"""Keys of the ``attrs`` of a frame: notes on how it was read, and ids as in a
Dataset."""
# Least memory that a table of text takes for each byte of the file.
_BYTES_PER_CHARACTER = 8
# Number of characters that are scanned at a time.
_CHUNK_CHARACTERS = 1 << 24
# With fewer other measurements, x and y are embedded as measurements.
_MIN_BESIDE_POSITIONS = 2
# A number with a point or a comma; the second group is the mark.
_NUMBER = (
    r"^[+-]?(\d{1,3}(?:,\d{3})+(?=\.)|\d{1,3}(?:\.\d{3})+(?=,)|\d*)"
    r"([.,])(\d+)(?:[eE][+-]?\d+)? *$"
)
_THOUSANDS = r"[+-]?([1-9]\d{{0,2}}(\{0}\d{{3}})+|0|[1-9]\d*)(\{1}\d+)?"
MISSING = [
    *("NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
]
"""Texts that stand for a missing value; "None" is kept, as it may be a treatment."""
_MARKS = ((",", "."), (".", ","))
"""Marks of decimals and of thousands."""
_SEPARATOR_NAMES = {",": "comma", "\t": "tab", ";": "semicolon"}
# Headings of a column of gene names; below, names of cells of 10x.
_GENES = re.compile(
    r"(hgnc|mgi|ensembl)?[_\- .]?(genes?|symbols?|gene[_\- .]?(ids?|names?|symbols?))"
    r"|ensembl([_\- .]?ids?)?",
    re.IGNORECASE,
)
_TRACKMATE = re.compile(
    r"\A([^\n]*\bTRACK_ID\b[^\n]*\n)(?:[^\n]*\n){2}(\([^,\n]*\))?(,(\([^,\n]*\))?)+\r?\n"
)
"""The headings of TrackMate's tables, before two lines of titles and one of units."""
_BARCODE = re.compile(r"(.*[_\-.:#])?[ACGT]{10,}([_\-.:].*)?")

Numbers = dict[str, NDArray[np.float64]]


def read_table_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read .csv, .tsv or .parquet, also packed as .gz, in stages.

    `options.columns` are the columns to embed; `options.space` may also name them, with
    commas between them. Raises DataError if the file is damaged or too large, or has no
    such columns of numbers.
    """
    yield Stage(f"Reading {path.name}")
    frame = read_frame(path)
    yield Stage("Checking the numbers")
    return result_from_file_frame(frame, path, options)


def result_from_file_frame(
    frame: pd.DataFrame, path: Path, options: ReadOptions
) -> ReadResult:
    """Read a frame that came from a file, transposed if the options say so.

    If rows look like genes, the result says so, and a note asks whether to transpose.
    """
    has_genes, name = has_genes_in_rows(frame), path.name
    if options.transposed:
        frame = transpose_frame(frame, name)
    elif has_genes:
        frame_notes = frame.attrs.get(_NOTES, [])
        frame.attrs[_NOTES] = [GENES_IN_ROWS.format(name), *frame_notes]
    result = result_from_frame(frame, name, name, options, source=path)
    return replace(result, has_genes_in_rows=has_genes)


def result_from_features(
    features: Mapping[str, Any] | pd.DataFrame,
    name: str,
    options: ReadOptions = DEFAULT_OPTIONS,
) -> ReadResult:
    """Read the features table of a napari layer called `name`.

    Raises DataError if the table has no columns, or as :func:`result_from_frame`.
    """
    where = f"The features table of the layer '{name}'"
    frame = pd.DataFrame(features)
    if frame.shape[1] == 0:
        raise DataError(
            f"{where} is empty: measure its objects first, or choose another layer."
        )
    return result_from_frame(frame, where, name, options)


def result_from_frame(
    frame: pd.DataFrame,
    where: str,
    name: str,
    options: ReadOptions,
    source: Path | None = None,
) -> ReadResult:
    """Read a table as a dataset; `where` is the subject of messages about the table.

    - The columns of the options are embedded, else those that the space names, else all
      measures; of a transposed table all columns, as these are genes.
    - They are standardised, unless they are raw counts; empty columns are left out.
    - Other columns become metadata. The column of ids is not embedded unless chosen,
      and rows of id 0, the background, are left out.

    ``name``: short name of the dataset. ``source``: file of the table, if any.

    Raises DataError if a chosen column does not exist or has texts, or no column has
    numbers.
    """
    notes = list(frame.attrs.get(_NOTES, []))
    frame, name_notes = split_off_row_names(frame, where)
    usual = space = f"columns of {name}"
    chosen = options.columns
    if chosen is None and options.space not in (None, usual):
        requested = str(options.space)
        names = [requested] if requested in frame else requested.split(",")
        chosen = tuple(one.strip() for one in names)
    if chosen is not None:
        columns.check_columns_exist(frame.columns, chosen, where)
        space = f"columns {', '.join(chosen)} of {name}"
    elif options.transposed:
        chosen = tuple(frame.columns)
    numbers = _parse_number_columns(frame, where, chosen)
    if chosen is None:
        by_column, column_notes = _select_measures(frame, numbers, where, options)
    elif texts := [one for one in chosen if one not in numbers]:
        raise DataError(
            f"{where} has no numbers in column {texts[0]}: choose columns of numbers."
        )
    else:
        by_column, column_notes = {one: numbers[one] for one in chosen}, []
    empty = [one for one, values in by_column.items() if not np.isfinite(values).any()]
    names = [one for one in by_column if one not in empty]
    if not names:
        raise DataError(
            f"{where} has no value in any of its columns of numbers "
            f"({columns.list_text(empty)}): fill them in, or choose another source."
        )
    notes += [*name_notes, *column_notes, *columns.note_repeated_row_names(frame.index)]
    notes += [f"Left out because empty: {columns.list_text(empty)}."] if empty else []
    reasons = dict[str, NDArray[np.bool_]]()
    if options.id_column in frame:
        ids = columns.parse_integers(frame[options.id_column])
        if ids is not None:
            reasons = {NO_OBJECT: ids == 0}
            check_shape((int(np.count_nonzero(ids)), len(names)), where)
    dataset = make_dataset_from_matrix(
        np.column_stack([by_column[one] for one in names]),
        frame[[one for one in frame if one not in by_column]],
        names,
        space,
        where,
        options,
        left_out=reasons,
        standardise=True,
        notes=notes,
        name=name,
        source=source,
        gene_ids=frame.attrs.get(_IDS, {}),
        row_hashes=hash_table_rows(_select_columns_to_hash(frame, numbers)),
        source_tissue=find_tissue(frame, options.roles, without=by_column),
    )
    return ReadResult(dataset, [usual], list(numbers), is_of_table=True)


def read_row_hashes(path: Path, part: Part, options: ReadOptions) -> RowHashes:
    """Read the columns of `part` from a table again, and return their row hashes.

    Columns that are gone are left out; the result is empty if none is left.
    """
    frame = read_frame(path)
    if options.transposed:
        frame = transpose_frame(frame, path.name)
    frame, _ = split_off_row_names(frame, path.name)
    frame = frame.loc[:, frame.columns.isin(part)]
    return hash_table_rows(
        _select_columns_to_hash(frame, _parse_number_columns(frame, path.name, ()))
    )


# Numbers of a frame


def split_off_row_names(
    frame: pd.DataFrame, where: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return a copy of a frame with its row names as index, and a note in a list.

    Row names come from an index that is no plain count, or from a first column of
    unique texts; else rows are numbered from 1. Repeated headings get a number. The
    note names the columns that became row names; the list is empty if there are none.
    Raises DataError if the frame has no columns, or less than two rows.
    """
    check_shape(frame.shape, where)
    frame = frame.copy(deep=False)
    frame.columns = pd.Index(columns.make_names_unique(frame.columns))
    names, first, taken = frame.index, frame.iloc[:, 0], []
    if isinstance(names, pd.MultiIndex):
        taken = names.names
        names = names.map(lambda levels: ", ".join(map(str, levels)))
    elif isinstance(names, pd.RangeIndex):
        names = pd.RangeIndex(1, len(frame) + 1)
        if frame.shape[1] > 1 and columns.holds_row_names(first):
            frame, names, taken = frame.iloc[:, 1:], pd.Index(first), [first.name]
    frame.index = names.astype(str).rename(None)
    note = [str(n or "").strip() for n in taken]
    titles = [n for n in note if n and not n.startswith("Unnamed: 0")]
    return frame, [
        f"Taken as row names: {columns.list_text(titles)}."
    ] if titles else []


def _parse_number_columns(
    frame: pd.DataFrame, where: str, chosen: Sequence[str] | None = None
) -> Numbers:
    """Return the values of all numeric columns, (N,) float64, keyed by the column.

    A text among numbers raises DataError, if its column is one of `chosen`; None means
    all columns. Another column with a text is left out.
    """
    is_plain = [isinstance(k, np.dtype) and k.kind in "iuf" for k in frame.dtypes]
    plain = iter(frame.loc[:, is_plain].to_numpy(np.float64).T)
    numbers = {
        column: next(plain)
        if is_one
        else columns.parse_numbers(frame[column], where, chosen)
        for column, is_one in zip(frame.columns, is_plain, strict=True)
    }
    return {column: values for column, values in numbers.items() if values is not None}


def _select_columns_to_hash(frame: pd.DataFrame, numbers: Numbers) -> Numbers:
    """Return the `numbers` that were numeric when the frame was read, else all.

    Which columns of texts are parsed as numbers depends on the columns chosen.
    """
    plain = {c: v for c, v in numbers.items() if isinstance(frame[c].dtype, np.dtype)}
    plain = {c: v for c, v in plain.items() if frame[c].dtype.kind in "iuf"}
    return plain or numbers


def _select_measures(
    frame: pd.DataFrame, numbers: Numbers, where: str, options: ReadOptions
) -> tuple[Numbers, list[str]]:
    """Return the columns that measure rows, and a note on other numeric columns.

    Left out are ids, groups, tracks with their times, and columns with another role
    than numbers; columns of this program's maps, without a note; and, unless a role is
    given,

    - positions, if at least two other measures are left,
    - axes of external maps, if other measures are left.

    Raises DataError if there are only ids and groups.
    """
    ids, roles = options.id_column, options.roles
    numbers = {c: v for c, v in numbers.items() if not columns.is_own_map_column(c)}
    # pandas calls a second column "id" id.1.
    alone = {c: re.sub(r"[.-]\d+$", "", c) for c in numbers}
    names = {c: one if one in numbers else c for c, one in alone.items()}
    is_group = columns.is_id_or_group_column
    groups = [c for c, v in numbers.items() if c == ids or is_group(names[c], v)]
    groups = [c for c in groups if roles.get(c) != "numbers"]
    groups += [c for c in numbers if roles.get(c, "numbers") != "numbers"]
    groups += find_track_roles(frame[[*numbers]], roles)
    measures = [c for c in numbers if c not in groups]
    if not measures:
        raise DataError(
            f"{where} has no column of numbers to embed (its columns: "
            f"{columns.list_text(list(frame.columns))}): add measurements, or choose "
            "another source."
        )
    unsaid = [column for column in measures if column not in roles]
    positions = [column for column in unsaid if columns.is_position_name(column)]
    if len(measures) - len(positions) < _MIN_BESIDE_POSITIONS:
        positions = []
    of_maps = [
        axis
        for axes in columns.find_axes_by_external_map(unsaid).values()
        for axis in axes
    ]
    if len(of_maps) == len(measures):
        of_maps = []
    left_out = [*dict.fromkeys(groups), *positions, *of_maps]
    note = "Not embedded unless chosen, as the name says that it is no measure"
    notes = [f"{note}: {columns.list_text(left_out)}."] if left_out else []
    return {c: v for c, v in numbers.items() if c not in left_out}, notes


# Genes in rows


def has_genes_in_rows(frame: pd.DataFrame) -> bool:
    """Return whether the rows of a table look like genes, or its columns like cells.

    That is, the row names stand under a heading such as "gene", or half of the first
    1,000 are Ensembl identifiers, or half of the headings are barcodes. False for
    tables of fewer than three columns.
    """
    if frame.shape[1] < 3:
        return False
    first = _find_row_names(frame)
    rows, names = (pd.Series(part[:1000], dtype=str) for part in (first, frame.columns))
    return bool(
        (_GENES.fullmatch(str(first.name)) and _is_text_column(first))
        or rows.str.fullmatch(ENSEMBL).mean() >= 0.5
        or names.str.fullmatch(_BARCODE).mean() >= 0.5
    )


def transpose_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a table whose rows are the numeric columns of another table.

    Its columns are named as the other table's rows, by symbols if there are any;
    repeated names are numbered. Columns of texts are dropped. ``attrs`` gets notes, and
    the Ensembl identifiers of the columns. Raises DataError if there are no numbers.
    """
    first = _find_row_names(frame)
    values = _parse_number_columns(
        frame.drop(columns=[first.name], errors="ignore"), where
    )
    if not values:
        raise DataError(
            f"{where} has no column of numbers to be turned into a row: leave it as it "
            "is, or choose another source."
        )
    described = [str(c) for c in frame.columns if c != first.name and c not in values]
    var = frame[described].set_axis(first.astype(str))
    described = [
        c for c in described if not choose_gene_display_names(var).isin(frame[c]).any()
    ]
    names, notes = columns.make_gene_names_unique(choose_gene_display_names(var))
    turned = pd.DataFrame(values, index=names).T
    without = f", without {columns.list_text(described)}" if described else ""
    note = f"{len(names):,} rows became columns, {len(values):,} columns rows{without}"
    frame_notes = frame.attrs.get(_NOTES, [])
    turned.attrs[_NOTES] = [*frame_notes, f"Transposed: {note}.", *notes]
    if (ids := find_ensembl_ids(var)) is not None:
        turned.attrs[_IDS] = dict(zip(names, ids, strict=True))
    return turned


def _find_row_names(frame: pd.DataFrame) -> pd.Series:
    """Return the names of the rows: the index, else the first column, else numbers.

    The index is taken unless it is a plain count, and the first column if it has texts,
    or a heading such as "gene". Numbers count from 1.
    """
    if not isinstance(frame.index, pd.RangeIndex):
        return pd.Series(frame.index)
    first = frame.iloc[:, 0]
    if _is_text_column(first) or _GENES.fullmatch(str(first.name)):
        return first
    return pd.Series(range(1, len(frame) + 1))


def _is_text_column(column: pd.Series) -> bool:
    """Return whether all values of a column, but for missing ones, are texts."""
    return bool(pd.api.types.infer_dtype(column, skipna=True) == "string")


# Files


def read_frame(path: Path) -> pd.DataFrame:
    """Read .csv, .tsv or .parquet, also packed as .gz, as a frame.

    Columns get no roles yet. ``attrs`` of the frame has notes on what was left out or
    read otherwise. Raises DataError if the file is damaged, or too large.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    with wrap_read_errors(path, f"a {kind} table"):
        content = memory.read_unpacked(
            path, 1 if kind == ".parquet" else _BYTES_PER_CHARACTER
        )
        if kind == ".parquet":
            return _parse_parquet(content, path.name)
        return _parse_text(decode_utf8(content, path.name), kind, path.name)


def decode_utf8(content: bytes, where: str) -> str:
    """Decode UTF-8, without its byte order mark.

    Raises DataError for another encoding, such as that of Excel's usual CSV.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is not written in UTF-8: save it as UTF-8 text, which Excel "
            'calls "CSV UTF-8".'
        ) from error


def open_parquet(content: bytes, where: str) -> Any:
    """Return the pyarrow.parquet.ParquetFile of the content of a .parquet file.

    Raises DataError if its table is too large for the memory.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
    n_values = file.metadata.num_rows * max(1, file.metadata.num_columns)
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    # Long texts take more than this.
    n_bytes = sum(one.total_byte_size for one in groups)
    memory.check_fits(
        max(n_bytes, 2 * _BYTES_PER_CHARACTER * n_values), where, "its table"
    )
    return file


def _parse_parquet(content: bytes, where: str) -> pd.DataFrame:
    """Parse a .parquet file, after checking how many bytes its table takes.

    Lists and nested values are left out, and noted in ``attrs``. Whole numbers beside
    gaps stay exact, and an index called "label" or similar becomes a column.

    Raises DataError if the table is too large, or has only nested values.
    """
    import pyarrow as pa

    table = open_parquet(content, where).read()
    names = columns.make_names_unique(pd.Index(table.column_names))
    known = table.schema.metadata  # notes of pandas on the columns that were row names
    table = table.rename_columns(names).replace_schema_metadata(known)
    nested = [one.name for one in table.schema if pa.types.is_nested(one.type)]
    table = table.drop_columns(nested)
    table.validate(full=True)  # raises if a text is not UTF-8
    frame = table.to_pandas()
    for name in _find_rounded_integers(frame):
        if pa.types.is_integer(kind := table[name].type):
            exact = "UInt64" if pa.types.is_unsigned_integer(kind) else "Int64"
            frame[name] = pd.array(table[name].to_pylist(), exact)
    if nested and frame.shape[1] == 0:
        raise DataError(
            f"{where} holds only lists or nested values ({columns.list_text(nested)}): "
            "write each number into a column of its own."
        )
    levels = map(frame.index.get_level_values, range(frame.index.nlevels))
    ids = [one.name for one in levels if pd.api.types.is_integer_dtype(one)]
    if any(columns.is_id_or_group_column(name, np.empty(0)) for name in ids):
        # an index called "label" is a column of ids.
        frame = frame.reset_index(allow_duplicates=True)
    note = "Not read, because they hold lists or nested values"
    frame.attrs[_NOTES] = [f"{note}: {columns.list_text(nested)}."] if nested else []
    return frame


def _parse_text(text: str, kind: str, where: str) -> pd.DataFrame:
    """Parse text separated by commas, tabs or semicolons to a frame.

    1. The separator is a tab for `kind` ".tsv", else the most frequent in the headings.
    2. The comma is a decimal mark between semicolons, or between tabs if no point is.
    3. Codes such as 0012 stay texts; whole numbers above 2^53 beside gaps stay exact.
    4. Columns of texts such as 1,234.5 become numbers.
    5. Values before the first heading become row names, as R writes them.
    6. The three lines of titles and units in a table of TrackMate are left out.

    Repeated headings are numbered; ``attrs`` notes headings that are all numbers.
    Raises DataError if lines or quotation marks do not match.
    """
    # Excel writes its separator into a first line.
    text = _TRACKMATE.sub(r"\1", re.sub(r"^sep=(.)\r?\n", "", text))
    heading = re.sub(r'"[^"]*"', "", text[:65_536]).lstrip().split("\n", 1)[0]
    separator = "\t" if kind == ".tsv" else max(",;\t", key=heading.count)
    read = partial(
        pd.read_csv,
        sep=separator,
        low_memory=False,  # infers types from the complete column
        skipinitialspace=True,
        keep_default_na=False,
        na_values=["", *MISSING],
    )
    try:
        n_rows = max(1, text[:65_536].count("\n"))
        head = read(io.StringIO(text), dtype=str, nrows=n_rows)
        marks = _find_decimal_marks(head)
        is_comma = separator == ";" or (separator == "\t" and "." not in marks)
        # An empty line is an empty value of a single column, and no row of a table.
        is_single = head.shape[1] == 1
        text = text.lstrip().rstrip("\r\n") if is_single else text
        texts = zip(head, head.to_numpy(object).T, strict=True)
        codes = [name for name, some in texts if columns.are_zero_padded_codes(some)]
        # pandas' number parser ends the program at exponents beyond 32 bits.
        has_huge = columns.has_huge_exponent(text)
        kinds: Any = str if has_huge else dict.fromkeys(codes, "str")
        how: Any = {"decimal": "," if is_comma and "," in marks else "."}
        how["skip_blank_lines"] = not is_single
        frame = read(io.StringIO(text), dtype=kinds, **how)
        if late := _find_late_codes(frame, text, separator, partial(read, **how)):
            codes += late
            kinds = kinds if kinds is str else kinds | dict.fromkeys(late, "str")
            frame = read(io.StringIO(text), dtype=kinds, **how)
        if large := [
            one
            for one in _find_rounded_integers(frame)
            if abs(frame[one]).max() < 2**63
        ]:
            kinds |= dict.fromkeys(large, "Int64")
            frame = read(io.StringIO(text), dtype=kinds, **how)
    except pd.errors.ParserError as error:
        note = " ".join(str(error).split()).removesuffix(".")
        raise DataError(
            f"{where} is no table that can be read ({note}): put what has a "
            f"{_SEPARATOR_NAMES[separator]} in it into quotation marks, and close all "
            "of them."
        ) from error
    others = frame.select_dtypes(exclude="number").drop(columns=codes)
    for name in filter(lambda name: _is_text_column(others[name]), others):
        frame[name] = _convert_number_texts(
            others[name], marks - {separator}, separator
        )
    # pandas renames a second heading 5.1 to 5.1.1.
    heading_once = frame.columns.str.replace(r"(?<=\d)\.\d+$", "", regex=True)
    are_numbers = columns.coerce_to_numbers(heading_once.to_series()).notna().all()
    frame.columns = columns.make_names_unique(frame.columns.str.strip())
    if not isinstance(head.index, pd.RangeIndex):
        frame = _accept_unnamed_row_names(frame, separator, where)
    if are_numbers:
        frame.attrs[_NOTES] = [*frame.attrs.get(_NOTES, []), NUMBERS_AS_NAMES]
    return frame


def _find_late_codes(
    frame: pd.DataFrame, text: str, separator: str, read: Callable[..., pd.DataFrame]
) -> list[str]:
    """Return columns read as whole numbers that hold a code, such as 0012.

    The first rows need not show it, as in ids from 1000 to 9999 and then 0001.
    ``read``: function that parses a text buffer, with a ``dtype``.
    """
    numbers = frame.select_dtypes("number")
    integer_names = [
        name for name in numbers if columns.parse_integers(numbers[name]) is not None
    ]
    if not integer_names or not _has_padded_number(text, separator):
        return []
    texts = read(io.StringIO(text), dtype=str)[integer_names]
    return [
        name for name in integer_names if columns.are_zero_padded_codes(texts[name])
    ]


def _has_padded_number(text: str, separator: str) -> bool:
    """Return whether any value in the text begins with a 0 and another digit.

    A value begins after the separator, a line end, a quotation mark or a space.
    """
    starts = [ord(one) for one in (separator, "\n", "\r", '"', " ")]
    for first in range(0, len(text), _CHUNK_CHARACTERS):
        part = text[max(0, first - 1) : first + _CHUNK_CHARACTERS + 1]
        codes = np.frombuffer(part.encode("ascii", "replace"), np.uint8)
        before, zero, after = codes[:-2], codes[1:-1], codes[2:]
        is_padded = (zero == ord("0")) & (after >= ord("0")) & (after <= ord("9"))
        if is_padded.any() and np.isin(before[is_padded], starts).any():
            return True
    return False


def _find_rounded_integers(frame: pd.DataFrame) -> list[str]:
    """Return the float columns that are whole numbers of 2^53 and more beside gaps.

    Such a column was read as floats because of the gaps, which rounds its numbers.
    """
    floats = (frame[name] for name, kind in frame.dtypes.items() if kind == np.float64)
    large = (x.dropna() for x in floats if x.hasnans and (abs(x) >= 2**53).any())
    return [str(x.name) for x in large if (x % 1 == 0).all()]


def _find_decimal_marks(head: pd.DataFrame) -> set[str]:
    """Return the decimal marks, "," and ".", in the texts of a frame.

    The marks of 12,5 and 0,234 are sure, that of 1,234 is a guess, as it may be a
    thousands mark. Guesses are returned only where no mark is sure.
    """
    texts = "\n".join(head.to_numpy().ravel().astype(str))
    numbers = re.findall(_NUMBER, texts, re.MULTILINE)
    sure = {
        mark
        for integer_part, mark, decimals in numbers
        if len(decimals) != 3 or not re.fullmatch(r"[1-9]\d{0,2}", integer_part)
    }
    return sure or {mark for _, mark, _ in numbers}


def _convert_number_texts(
    column: pd.Series, decimals: Collection[str], separator: str
) -> pd.Series:
    """Convert a column of texts to numbers; return it unchanged if any is no number.

    Texts such as 1.234,5, or 1,234.5, lose the thousands mark if `decimals` has their
    decimal mark, or if any text has both marks; 1.234 and 987 are then numbers, too.
    Where all texts are like 1,234 between semicolons, the comma is the decimal mark, as
    is usual there. "None" counts as missing.
    """
    texts = column.mask(column == "None")
    filled = texts.dropna()
    for point, mark in _MARKS:
        number, both_marks = _THOUSANDS.format(mark, point), rf"\{mark}.*\{point}"
        if not filled[:1].astype(str).str.fullmatch(number).any():
            continue  # most columns of texts end here
        is_sure = point in decimals or filled.str.contains(both_marks).any()
        if is_sure and filled.str.fullmatch(number).all():
            are_alike = filled.str.fullmatch(r"[+-]?\d{1,3},\d{3}").all()
            if not (are_alike and separator == ";"):
                texts = texts.str.replace(mark, "")
            texts = texts.str.replace(r"[.,]", ".", regex=True)
            break
    numbers = columns.coerce_to_numbers(texts)
    if not numbers.count() == len(filled) > 0:
        return column
    has_room = numbers.dtype.kind == "f" or not numbers.hasnans
    return numbers.astype(numbers.dtype.numpy_dtype) if has_room else numbers


def _accept_unnamed_row_names(
    frame: pd.DataFrame, separator: str, where: str
) -> pd.DataFrame:
    """Turn the first value of each line, which has no heading, into the row's name.

    R writes tables so. The frame is changed in place and returned, and a note is put in
    its ``attrs``.

    ``where``: the file in a message. Raises DataError if the extra value comes from a
    separator at each line's end, which leaves the last column empty, or if lines have
    more than one extra value, as with decimal commas between commas: all columns would
    be shifted.
    """
    n_names, unnamed = frame.shape[1], frame.index.nlevels
    if unnamed > 1:
        raise DataError(
            f"{where} has {n_names + unnamed} values in a line and {n_names} column "
            "names: give each column a name; where numbers have decimal commas (1,5), "
            "export the table with semicolons between columns."
        )
    if frame.iloc[:, -1].isna().all():
        raise DataError(
            f"{where} has a {_SEPARATOR_NAMES[separator]} at the end of each line, as "
            "if more values followed: remove it, or add one to the line of names too."
        )
    # A RangeIndex would mean that there are no names.
    frame.index = pd.Index(frame.index.tolist(), dtype=object)
    note = "Taken as row names: the first value of each line, which has no heading."
    frame.attrs[_NOTES] = [note]
    return frame
