"""Parse and classify table columns, and format names, numbers and shares as text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.column_names import TEXT
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.validation import format_row_name

KEY = "embedding_game"
"""Prefix of the name of each column that a map is written into."""
NO_LEVEL = "(missing)"
"""Name of the group of rows without a level: a level of a file may be "missing"."""
_NAME_OR_GROUP = re.compile(
    r"""
    # Names of which all is one of these words:
    ^(metadata_)?(row|column|col|field|plane|fov|slice|timestep|week|passage)$
    |
    # Names that end in one of these words, after a separator:
    (^|[_\- .])(
        id|ids|index|label|labels|class|target|cluster
        # clusters, but not a number of them, as n_clusters
        |(?<!\bn.)(?<!\bnum.)(?<!\bof.)(?<!\bnumber.)(?<!\bcount.)clusters
        # clusterings with their resolution, as leiden_0.5 and RNA_snn_res.1
        |(leiden|louvain|snn_res)[_\- .res\d]*
        |image|slide|well|plate|instance|code|barcode|batch|sample|donor|patient
        |subject|animal|mouse|replicate|library|lane|cohort|condition|treatment
        |experiment|day|date|timepoint
        # numbers of things, as ObjectNumber after its words are split
        |(object|image|cell|nucleus|nuclei|instance|roi|site|field)[_\- .]?(number|no)
    )$
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Names of numbers that identify or group rows, and are no measurements."""
_NEVER_ROW_NAMES = re.compile(
    rf"{TEXT.pattern}|(.*[_ ])?well([_ ]?(id|name|position))?$", re.I
)
"""Names of a first column that is never taken as row names, since its texts are
data."""
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Numbers under these names tell where an object lies, not what it is like: bbox_x0,
# Centroid X µm, centroid_weighted-0-1, X_centroid, Object Center_0, Location_Center_X,
# and XM and BX of ImageJ, CenterX_global_px and min_x of transcripts in space.
_UNIT = r"([_\- .]?\W?([uµμm]m|microns?|px|pixels?)\W?)?"
_POSITION = re.compile(
    r"(.*[_\- .:])?(bbox|centroid|center|pos(ition)?|bounding ?box ?(min|max)imum)"
    r"( of the object)?([_\- .](weighted|local|min|max))*[_\- .]?"
    r"([xyz]([_\- .]?(min|max|start|end|local|global|\d))?|\d(-\d)*|m(in|ax)[rc]"
    rf"|(?<=[_\- .])t|row|col(umn)?|top|left|bottom|right){_UNIT}"
    rf"|[xyz]([_\- .](global|local|slide))?{_UNIT}|sdim[xyz]"
    r"|[xyz][_\- .](bbox|centroid|center|pos(ition)?)"
    r"|pxl_(row|col)_in_fullres|array_(row|col)"
    r"|[xyz]m|b[xyz]|(min|max)_[xyz]|(x_)?spatial[_\- .]?\d"
    r"|t|time|frame|pos(ition)?|centroid|(.*[_\- .])?location[_\- .].*",
    re.IGNORECASE,
)
# Coordinates of another program's map: umap_1 of a table, X_tsne 2 of an AnnData.
_EXTERNAL_MAP_AXIS = re.compile(
    r"(?P<map>X_(?!spatial).+(?= )|.*(?:umap|tsne|t-sne|phate|pacmap|trimap).*?)"
    r"[_\- .]?\d\d?",
    re.IGNORECASE,
)
# From this share of numbers on, the texts of a column are mistakes.
_MOSTLY_NUMBERS = 0.8
_MAY_BE_NUMBERS = {
    *("string", "integer", "floating", "decimal"),
    *("mixed", "mixed-integer", "mixed-integer-float"),
}
CODE = re.compile(r"0\d+")
"""Digits with a leading 0, such as 0012, which are a code and no count."""
_HUGE_EXPONENT = re.compile(r"[eE][+-]?\d{10}")
_NUMBER_BEFORE_EXPONENT = re.compile(r"(^|[^\w.+-])[+-]?[\d.]+$")
"""Start of a number before its exponent; an id such as
f47ac10b-58cc-4372-a567-0e0212345678 has no such start."""
N_FIRST_ROWS = 100
"""Number of first rows by which most columns are recognised as not whole numbers."""


def parse_numbers(
    column: pd.Series, where: str, chosen_columns: Collection[str] | None = None
) -> NDArray[np.float64] | None:
    """Return the values of a numeric column as (N,) float64, NaN for missing values.

    Numbers written as text are parsed. Returns None for any other column: truth values,
    complex numbers, dates, no value at all, texts of which more than a fifth are no
    numbers, and codes such as 0012, unless chosen.

    If up to a fifth are no numbers, raises DataError that quotes the first text. Where
    `chosen_columns` are given, another column returns None instead.
    """
    types = pd.api.types
    if types.is_bool_dtype(column) or types.is_complex_dtype(column):
        return None
    if not types.is_numeric_dtype(column):
        filled = column.notna()
        kind = types.infer_dtype(column, skipna=True)
        if kind not in _MAY_BE_NUMBERS or not filled.any():
            return None
        parsed = coerce_to_numbers(column)
        texts = column.astype(str).str.strip()
        is_chosen = chosen_columns is not None and column.name in chosen_columns
        if not is_chosen and texts.str.fullmatch(CODE).any():
            return None
        is_value = filled & ~texts.str.lower().isin(["nan", "none"])
        wrong = (is_value & parsed.isna()).to_numpy()
        n, is_needed = wrong.sum(), chosen_columns is None or is_chosen
        is_text = n > (1 - _MOSTLY_NUMBERS) * is_value.sum() or not is_value.any()
        if is_text or (n and not is_needed):
            return None
        if n:
            raise DataError(_describe_text_among_numbers(column, wrong, where))
        column = parsed
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def parse_integers(column: pd.Series) -> NDArray[np.int64] | None:
    """Return the whole numbers of a column, (N,) int64 with -1 for missing values.

    Numbers written as text or as 1.0 are parsed, and ids beyond 2^53 stay exact.
    Returns None if any value is not a whole number of 64 bits, or all are missing.
    """
    types = pd.api.types
    # The first rows exclude most columns, as these hold fractions.
    for part in (column.head(N_FIRST_ROWS), column):
        values = part if types.is_numeric_dtype(part) else coerce_to_numbers(part)
        if types.is_bool_dtype(values) or types.is_complex_dtype(values):
            return None
        # to_numpy also converts Arrow types.
        known = pd.Series(values.dropna().to_numpy())
        is_integer = (known.abs() < 2**63) & (known % 1 == 0)
        if len(known) < part.count() or not is_integer.all():
            return None
    integers = np.full(len(column), -1)
    integers[values.notna()] = known  # an unsigned type would have no -1
    return integers if len(known) else None


def coerce_to_numbers(column: pd.Series) -> pd.Series:
    """Convert a column to nullable numbers; a text that is no number becomes missing.

    Whole numbers stay exact also beside missing values. A number whose exponent exceeds
    32 bits becomes missing, too.
    """
    # For Arrow texts to_numeric would return NaN as a value.
    column = column.astype(object)
    if has_huge_exponent("\n".join(map(str, column))):
        column = column.mask(column.map(str).map(has_huge_exponent))
    return pd.to_numeric(column, errors="coerce", dtype_backend="numpy_nullable")


def has_huge_exponent(text: str) -> bool:
    """Return whether a text has a number whose exponent exceeds 32 bits.

    pandas 3.0 ends the program at such a number.
    """
    starts = (one.start() for one in _HUGE_EXPONENT.finditer(text))
    return any(
        _NUMBER_BEFORE_EXPONENT.search(text[max(0, at - 400) : at]) for at in starts
    )


def are_zero_padded_codes(texts: Iterable[object]) -> bool:
    """Return whether all texts are digits and any of them begins with a 0, as 0012.

    "None", and values that are no text, are ignored.
    """
    filled = [text.strip() for text in texts if isinstance(text, str)]
    all_digits = all(text.isdecimal() or text == "None" for text in filled)
    return all_digits and any(map(CODE.fullmatch, filled))


def _describe_text_among_numbers(
    column: pd.Series, wrong: NDArray[np.bool_], where: str
) -> str:
    """Return a sentence that quotes the first `wrong` text of a column and its row.

    ``wrong``: (N,) mask of the texts, at least one. ``where``: subject of the sentence.
    """
    first, n = int(wrong.argmax()), int(wrong.sum())
    more = "" if n == 1 else f" and {n - 1} more such {'row' if n == 2 else 'rows'}"
    return (
        f'{where} has the text "{column.iloc[first]}" in '
        f"{format_row_name(first, column.index)} of column {column.name}{more}, where "
        "all other values are numbers: correct it, or leave the cell empty."
    )


def is_id_or_group_column(name: object, values: NDArray[np.float64]) -> bool:
    """Return whether a column is named as ``cell_id`` is and has whole numbers only.

    Missing and infinite values are ignored.
    """
    if not is_id_or_group_name(name):
        return False
    finite = values[np.isfinite(values)]
    return bool(np.all(finite == np.round(finite)))


def is_id_or_group_name(name: object) -> bool:
    """Return whether a column name says that its numbers identify or group rows."""
    return bool(_NAME_OR_GROUP.search(split_camel_case(str(name))))


def split_camel_case(name: str) -> str:
    """Return a name with "_" between its words, as "Image_Number" of "ImageNumber"."""
    return _CAMEL_CASE.sub("_", name)


def is_own_map_column(name: object) -> bool:
    """Return whether this program wrote a column with an earlier map, by its name."""
    return str(name).startswith(f"{KEY}_")


def is_position_name(name: object) -> bool:
    """Return whether a column name as ``centroid-0`` is a coordinate of an object."""
    return bool(_POSITION.fullmatch(str(name)))


def is_external_map_name(name: object) -> bool:
    """Return whether a column name such as ``UMAP_1`` is an axis of an external map."""
    return bool(_EXTERNAL_MAP_AXIS.fullmatch(str(name)))


def holds_integers(column: pd.Series) -> bool:
    """Return whether all values of a column are whole numbers."""
    return pd.api.types.is_integer_dtype(column) or parse_integers(column) is not None


def find_axes_by_external_map(columns: Iterable[object]) -> dict[str, list[str]]:
    """Return the sorted axis columns of each external map, keyed by the map's name.

    Recognised are maps of two or three axes: UMAP_1 and UMAP_2, ``tsne1`` to ``tsne3``.
    """
    maps: dict[str, list[str]] = {}
    for column in sorted(map(str, columns)):
        match = _EXTERNAL_MAP_AXIS.fullmatch(column)
        if match is not None:
            maps.setdefault(match["map"], []).append(column)
    return {name: axes for name, axes in maps.items() if len(axes) in (2, 3)}


def holds_row_names(column: pd.Series) -> bool:
    """Return whether a first column holds row names, all present and unique.

    These are values without a heading, or texts, most of them no numbers, under a
    heading that does not promise data, as "text" or "well" would.
    """
    if column.isna().any() or not column.is_unique:
        return False
    heading = str(column.name)
    if heading.strip() == "" or heading.startswith("Unnamed: 0"):
        return True
    if pd.api.types.infer_dtype(column) != "string" or _NEVER_ROW_NAMES.match(heading):
        return False
    # A column of numbers with a few texts is a measurement, and its texts are reported.
    return bool(coerce_to_numbers(column).notna().mean() < _MOSTLY_NUMBERS)


def count_levels(values: pd.Series, stop_above: int) -> int:
    """Return the number of distinct values, or any number above `stop_above` if more.

    The first rows mostly suffice: counting a million barcodes takes a second.
    """
    first = values.iloc[: 4 * stop_above].nunique()
    return int(first if first > stop_above else values.nunique())


def replace_infinite_by_nan(numbers: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the numbers with NaN for infinite values and for magnitudes from 1e300.

    Some programs write 1.8e308 for a missing value.
    """
    return np.where(np.abs(numbers) < np.float64(1e300), numbers, np.nan)


def to_text_levels(values: pd.Series) -> pd.Series:
    """Convert a column to a categorical with text levels; 1 and "1" are one level."""
    levels = values.astype("category").cat
    codes, names = pd.factorize(levels.categories.map(str))
    codes = np.append(codes, -1)[levels.codes]
    categories = pd.Categorical.from_codes(codes, names, ordered=levels.ordered)
    return pd.Series(categories, index=values.index, name=values.name)


def check_columns_exist(
    names: Sequence[str], chosen_columns: Sequence[str], where: str
) -> None:
    """Raise DataError if no column is chosen, or a chosen column is not in `names`."""
    if not chosen_columns:
        raise DataError(f"No column of {where} is chosen: choose at least one.")
    missing = set(chosen_columns) - set(names)
    for name in (name for name in chosen_columns if name in missing):
        raise DataError(
            f'{where} has no column "{name}": it has {list_text(list(names))}.'
        )


def make_names_unique(names: pd.Index) -> list[str]:
    """Return the names as texts, with "-1" appended to the second "A", as AnnData does.

    If "A-1" exists already, the next free number is taken.
    """
    from anndata.utils import make_index_unique

    with warnings.catch_warnings():
        # anndata warns if "A-1" exists already, and takes the next number.
        warnings.filterwarnings("ignore", message="Suffix used")
        return list(map(str, make_index_unique(pd.Index(names.astype(str)))))


def make_gene_names_unique(names: pd.Index) -> tuple[list[str], list[str]]:
    """Return unique gene names as :func:`make_names_unique`, and notes.

    The notes are one sentence if any name was repeated, else an empty list.
    """
    unique, repeated = make_names_unique(names), np.flatnonzero(names.duplicated())
    if not len(repeated):
        return unique, []
    return unique, [
        "Genes of the same name are numbered: the second "
        f'"{names[repeated[0]]}" is "{unique[repeated[0]]}".'
    ]


def note_repeated_row_names(names: pd.Index) -> list[str]:
    """Return a list with a note on rows of the same name; empty if names are unique.

    The note says how many rows share their name, and quotes the first.
    """
    repeated = names.duplicated(keep=False)
    if not repeated.any():
        return []
    return [
        f"{np.count_nonzero(repeated):,} of {len(names):,} rows share their name with "
        f'another one, the first is "{names[int(repeated.argmax())]}": what is looked '
        "up by name may be of the other (scanpy: adata.obs_names_make_unique)."
    ]


def list_text(names: Sequence[str], n_shown: int = 6) -> str:
    """Join the first `n_shown` names by commas, and add the number of further names."""
    text = ", ".join(names[:n_shown])
    return (
        text if len(names) <= n_shown else f"{text} and {len(names) - n_shown:,} more"
    )


def number_text(number: float) -> str:
    """Format a number with thousands separators, or with three significant digits.

    Whole numbers, and numbers from 999.5, have no decimals.
    """
    is_integer = float(number).is_integer() or abs(number) >= 999.5
    return f"{number:,.0f}" if is_integer else f"{number:.3g}"


def share_text(share: float) -> str:
    """Format a share as percent: only 0 as 0%, only 1 as 100%; "" for NaN.

    Shares near 0 and 1 get a decimal.
    """
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0 < share < 0.0995 or 0.995 <= share < 1:
        return f"{min(share, 0.999):.1%}"
    return f"{share:.0%}" if share == share else ""


def count_text(n: int, noun: str) -> str:
    """Return a count and its noun in singular or plural: "1 image", "12 images"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
