"""Join a table beside the images to them: by file name or by well, never by order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from napari_embedding_game.data.columns import counted, listed
from napari_embedding_game.data.errors import explain_damage
from napari_embedding_game.data.images.image_pairs import ImagePair
from napari_embedding_game.data.wells import (
    parse_column,
    parse_row,
    parse_well,
    well_name,
)

PLATE_COLUMNS = ("plate", "well", "row", "column", "field")
RESERVED = ("image", "label")
_SEPARATORS = re.compile(r"[\s_\-.]+")
_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_MOST_GROUPS = 30
"""With more different numbers than these, a column is measured on each image."""
_Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class JoinedTable:
    """What is known of each image besides its pixels."""

    columns: pd.DataFrame
    """(n_images rows)"""
    notes: tuple[str, ...] = ()


def join_tables(pairs: Sequence[ImagePair], tables: Sequence[Path]) -> JoinedTable:
    """Return plate, well, field and the columns of tables for each image.

    A table is joined by the column whose values are names of the images' files, with
    or without folder and ending; else by its wells (and plates).  One that names none
    of the images, or names one in several rows, is left out, and the notes say so.
    """
    columns = _told(pairs)
    notes: list[str] = []
    for path in tables:
        with explain_damage(path, "a table"):
            frame = pd.read_csv(
                path, dtype=str, sep="\t" if path.suffix.lower() == ".tsv" else ","
            )
        frame = frame.rename(columns=lambda name: str(name).strip())
        frame = frame.loc[:, ~frame.columns.duplicated()]
        notes += _join(columns, frame, pairs, path.name)
    _spell_wells(columns)
    columns = columns.loc[:, columns.notna().any()]
    columns = columns.apply(_as_group)
    return JoinedTable(columns, tuple(notes))


def _told(pairs: Sequence[ImagePair]) -> pd.DataFrame:
    """What the names of the files say, as texts."""
    wells = [pair.told.well for pair in pairs]
    told: dict[str, list[str | None]] = {
        "plate": [pair.told.plate or None for pair in pairs],
        "well": [None if well is None else well_name(well) for well in wells],
        "row": [None] * len(pairs),
        "column": [None] * len(pairs),
        "field": [pair.told.field or None for pair in pairs],
    }
    return pd.DataFrame(told, dtype=object)


def _join(
    columns: pd.DataFrame, frame: pd.DataFrame, pairs: Sequence[ImagePair], name: str
) -> list[str]:
    """Write the columns of a table into `columns`, and return what is to be told."""
    found = _by_name(frame, pairs)
    how = "file name"
    if found is None:
        found, how = _by_well(frame, columns), "well"
    if found is None:
        return [
            f"{name} names none of the images, so it was not joined: one of its "
            "columns has to hold the names of the image files, or their wells."
        ]
    used, rows = found
    n_named = {place: len(of_image) for place, of_image in rows.items()}
    again = [pairs[place].name for place, n in n_named.items() if n > 1]
    if again:
        return [
            f"{name} has several rows for {listed(again, 3)}, so it was not joined: "
            "one row for each image is needed."
        ]
    added = _write(columns, frame, {i: of[0] for i, of in rows.items()}, used, name)
    told = [f"Joined by {how}: {listed(added) or 'no column'} of {name}."]
    missed = [pair.name for i, pair in enumerate(pairs) if i not in rows]
    if missed:
        told.append(
            f"{name} says nothing of {len(missed):,} of "
            f"{counted(len(pairs), 'image')}, whose values are missing: "
            f"{listed(missed)}."
        )
    named = {row for of_image in rows.values() for row in of_image}
    others = [str(frame[used[-1]].iloc[r]) for r in range(len(frame)) if r not in named]
    if others:
        kind = "image" if how == "file name" else "well"
        lack = "not in the folder" if how == "file name" else "without an image"
        told.append(
            f"{name} names {counted(len(others), kind)} {lack}: {listed(others)}."
        )
    return told


def _by_name(
    frame: pd.DataFrame, pairs: Sequence[ImagePair]
) -> tuple[list[str], dict[int, list[int]]] | None:
    """Return the column of file names and the rows of each image, or None."""
    for plain in (_plain, _without_zeros):
        by_name: dict[str, int] = {}
        ambiguous: set[str] = set()
        for i, pair in enumerate(pairs):
            for name in {plain(one) for one in _names(pair)}:
                if by_name.setdefault(name, i) != i:
                    ambiguous.add(name)
        for name in ambiguous:
            del by_name[name]
        best: tuple[str, dict[int, list[int]]] | None = None
        for column in frame:
            rows = _rows(frame[column].map(plain, na_action="ignore"), by_name)
            if rows and (best is None or len(rows) > len(best[1])):
                best = str(column), rows
        if best is not None:
            return [best[0]], best[1]
    return None


def _names(pair: ImagePair) -> Iterable[str]:
    """All that a table may call an image."""
    yield pair.name
    yield pair.name.rsplit("/", 1)[-1]
    for path in (*pair.images, pair.labels):
        yield path.name
        yield path.stem
        yield f"{path.parent.name}/{path.name}"


def _plain(value: object) -> str:
    return str(value).strip().replace("\\", "/").lower().rsplit("/", 2)[-1]


def _without_zeros(value: object) -> str:
    """Names as spreadsheets leave them: 21 for 0021, with any separators."""
    plain = _SEPARATORS.sub("_", _plain(value))
    return _LEADING_ZEROS.sub("", plain)


def _rows(values: pd.Series, known: dict[Any, int]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        if value in known:
            rows.setdefault(known[value], []).append(row)
    return rows


def _by_well(
    frame: pd.DataFrame, columns: pd.DataFrame
) -> tuple[list[str], dict[int, list[int]]] | None:
    """Return the column of wells and the row of each image, or None."""
    names = {str(column).lower(): str(column) for column in frame}
    wells = _wells_of(frame, names)
    if wells is None:
        return None
    used, of_rows = wells
    plates: pd.Series | None = None
    if "plate" in names and columns["plate"].notna().any():
        plates = frame[names["plate"]].map(_without_zeros, na_action="ignore")
        used = [names["plate"], *used]
    rows: dict[int, list[int]] = {}
    for i in range(len(columns)):
        plate = columns["plate"].iloc[i]
        for row, well in enumerate(of_rows):
            is_plate = plates is None or plates.iloc[row] == _without_zeros(plate)
            if well is not None and well == columns["well"].iloc[i] and is_plate:
                rows.setdefault(i, []).append(row)
    return (used, rows) if rows else None


def _wells_of(
    frame: pd.DataFrame, names: dict[str, str]
) -> tuple[list[str], list[str | None]] | None:
    """Return the name of the well in each row of a table, and the columns that say."""
    if "row" in names and "column" in names and "well" not in names:
        used = [names["row"], names["column"]]
        pairs = zip(frame[used[0]], frame[used[1]], strict=True)
        places = [(parse_row(row), parse_column(column)) for row, column in pairs]
        return used, [
            None if row is None or column is None else well_name((row, column))
            for row, column in places
        ]
    for column in frame:
        parsed = [parse_well(value) for value in frame[column]]
        if parsed and sum(well is not None for well in parsed) > len(parsed) // 2:
            return [str(column)], [None if w is None else well_name(w) for w in parsed]
    return None


def _write(
    columns: pd.DataFrame,
    frame: pd.DataFrame,
    row_of: dict[int, int],
    used: Sequence[str],
    table: str,
) -> list[str]:
    """Write columns of a table, and return their names."""
    added: list[str] = []
    for column in frame:
        if column in used or frame[column].isna().all():
            continue
        name = str(column)
        if name.lower() in PLATE_COLUMNS:
            name = name.lower()
        elif name.lower() in RESERVED or name in columns:
            name = f"{name} ({table})"
        values = [frame[column].iloc[row_of[i]] if i in row_of else None
                  for i in range(len(columns))]  # fmt: skip
        if name in PLATE_COLUMNS:  # what a person wrote down goes before names of files
            former = columns[name].tolist()
            values = [
                value if not pd.isna(value) else known
                for value, known in zip(values, former, strict=True)
            ]
        columns[name] = pd.Series(values, dtype=object)
        added.append(name)
    return added


def _spell_wells(columns: pd.DataFrame) -> None:
    """Bring wells, rows and columns into one spelling, each from the others."""
    for i in range(len(columns)):
        well = parse_well(columns.at[i, "well"])
        if well is None:
            row, column = (
                parse_row(columns.at[i, "row"]),
                parse_column(columns.at[i, "column"]),
            )
            well = None if row is None or column is None else (row, column)
        if well is not None:
            name = well_name(well)
            columns.at[i, "well"] = name
            columns.at[i, "row"] = name.rstrip("0123456789")
            columns.at[i, "column"] = str(well[1] + 1)


def _as_group(column: pd.Series) -> pd.Series:
    """Return numbers of few values, and texts, as groups in their order."""
    parsed = pd.to_numeric(column, errors="coerce")
    if (parsed.notna() == column.notna()).all():
        if parsed.nunique() > _MOST_GROUPS:
            return parsed
        levels = sorted(parsed.dropna().unique())
        texts = [None if pd.isna(value) else f"{value:.15g}" for value in parsed]
        return pd.Series(pd.Categorical(texts, [f"{level:.15g}" for level in levels]))
    texts = [None if pd.isna(value) else str(value).strip() for value in column]
    return pd.Series(pd.Categorical(texts, sorted(set(filter(None, texts)))))
