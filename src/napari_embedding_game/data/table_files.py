"""Table files as pandas frames, before anything is known of their columns."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pandas as pd

from .errors import DataError, explain_damage

_SNIFF_CHARACTERS = 65536


def read_frame(path: Path) -> pd.DataFrame:
    """Read .csv, .tsv or .parquet, also with .gz behind it, as it is."""
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    with explain_damage(path, f"a {kind} table"):
        content = _content(path)
        if not content.strip():
            raise DataError(f"{path.name} is empty: there is nothing in the file.")
        if kind == ".parquet":
            return pd.read_parquet(io.BytesIO(content))
        return _parse_text(content.decode("utf-8-sig"), kind)


def _content(path: Path) -> bytes:
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as file:
            return file.read()
    return path.read_bytes()


def _parse_text(text: str, kind: str) -> pd.DataFrame:
    """Parse comma-, tab- or semicolon-separated text; the latter with 3,14 for 3.14."""
    heading = text.lstrip().splitlines()[0]
    separator = "\t" if kind == ".tsv" else max(",;\t", key=heading.count)
    comma = separator != "," and re.search(r"\d,\d", text[:_SNIFF_CHARACTERS])
    frame = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        decimal="," if comma else ".",
        low_memory=False,  # types from the whole column, not from parts of it
    )
    # With one heading too few, pandas reads row names (as R writes them); a
    # separator at each line's end looks the same and would shift all columns.
    if not isinstance(frame.index, pd.RangeIndex) and frame.iloc[:, -1].isna().all():
        raise ValueError("a separator at the end of each line")
    return frame
