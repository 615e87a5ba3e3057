"""Join a table beside the images to them: by file name or by well, never by order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, eq=False)
class JoinedTable:
    """What is known of each image besides its pixels."""

    columns: pd.DataFrame
    """(n_images rows)"""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Links:
    """Which row of a table is about which image."""

    pairs: pd.DataFrame
    """``row`` and ``image``, a line for each pair that belongs together."""
    used: list[str]
    """Columns that told it."""
    how: str


def join_tables(pairs: Sequence[ImagePair], tables: Sequence[Path]) -> JoinedTable:
    """Return plate, well, field and the columns of tables for each image.

    A table is joined by the column whose values are names of the images' files, with
    or without folder and ending; else by its wells (and plates).  One that names none
    of the images, or names one in several rows, is left out, and the notes say so.
    """
    told = [pair.told for pair in pairs]
    columns = pd.DataFrame(
        {
            "plate": [one.plate or None for one in told],
            "well": [None if w.well is None else well_name(w.well) for w in told],
            "row": None,
            "column": None,
            "field": [one.field or None for one in told],
        },
        dtype=object,
    )
    notes: list[str] = []
    for path in tables:
        with explain_damage(path, "a table"):
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            frame = pd.read_csv(path, dtype=str, sep=separator)
        frame = frame.rename(columns=lambda name: str(name).strip())
        frame = frame.loc[:, ~frame.columns.duplicated()]
        links = _by_name(frame, pairs) or _by_well(frame, columns)
        columns, new = _joined(columns, frame, links, pairs, path.name)
        notes += new
    _spell_wells(columns)
    columns = columns.loc[:, columns.notna().any()].apply(_as_group)
    return JoinedTable(columns, tuple(notes))


def _joined(
    columns: pd.DataFrame,
    frame: pd.DataFrame,
    links: _Links | None,
    pairs: Sequence[ImagePair],
    name: str,
) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns with those of a table, and what is to be told."""
    if links is None:
        return columns, [
            f"{name} names none of the images, so it was not joined: one of its "
            "columns has to hold the names of the image files, or their wells."
        ]
    rows = links.pairs.drop_duplicates().set_index("image")["row"]
    again = rows.index[rows.index.duplicated()].unique().sort_values()
    if len(again):
        names = listed([pairs[i].name for i in again], 3)
        return columns, [
            f"{name} has several rows for {names}, so it was not joined: one row for "
            "each image is needed."
        ]
    added = frame.drop(columns=links.used).dropna(axis="columns", how="all")
    added = added.iloc[rows].set_axis(rows.index).reindex(columns.index)
    added = added.rename(columns=lambda title: _title(title, columns, name))
    # What a person wrote down goes before names of files.
    columns = (
        added.astype(object)
        .combine_first(columns)
        .astype(object)[[*columns, *(title for title in added if title not in columns)]]
    )
    told = [f"Joined by {links.how}: {listed(list(added)) or 'no column'} of {name}."]
    missed = [pair.name for i, pair in enumerate(pairs) if i not in rows.index]
    if missed:
        told.append(
            f"{name} says nothing of {len(missed):,} of "
            f"{counted(len(pairs), 'image')}, whose values are missing: "
            f"{listed(missed)}."
        )
    others = frame.loc[~frame.index.isin(rows), links.used[-1]].astype(str).tolist()
    if others:
        kind, lack = ("image", "not in the folder")
        if links.how == "well":
            kind, lack = "well", "without an image"
        told.append(
            f"{name} names {counted(len(others), kind)} {lack}: {listed(others)}."
        )
    return columns, told


def _title(title: str, columns: pd.DataFrame, table: str) -> str:
    """Return the name under which a column of a table is added."""
    if title.lower() in PLATE_COLUMNS:
        return title.lower()
    is_taken = title.lower() in RESERVED or title in columns
    return f"{title} ({table})" if is_taken else title


def _by_name(frame: pd.DataFrame, pairs: Sequence[ImagePair]) -> _Links | None:
    """Join by the column with the most names of image files."""
    spelled: tuple[Callable[[object], str], ...] = (_plain, _without_zeros)
    for plain in spelled:
        known = [
            (plain(name), i)
            for i, pair in enumerate(pairs)
            for path in (*pair.images, pair.labels)
            for name in (
                pair.name, pair.name.rsplit("/", 1)[-1],
                path.name, path.stem, f"{path.parent.name}/{path.name}",
            )
        ]  # fmt: skip
        images = pd.DataFrame(known, columns=["key", "image"]).drop_duplicates()
        images = images[~images["key"].duplicated(keep=False)]  # of several images
        best: _Links | None = None
        for column in frame:
            keys = frame[column].map(plain, na_action="ignore")
            rows = pd.DataFrame({"key": keys, "row": range(len(frame))})
            links = rows.dropna().merge(images, on="key")[["row", "image"]]
            n_images = links["image"].nunique()
            if n_images and (best is None or n_images > best.pairs["image"].nunique()):
                best = _Links(links, [str(column)], "file name")
        if best is not None:
            return best
    return None


def _plain(value: object) -> str:
    return str(value).strip().replace("\\", "/").lower().rsplit("/", 2)[-1]


def _without_zeros(value: object) -> str:
    """Names as spreadsheets leave them: 21 for 0021, with any separators."""
    return _LEADING_ZEROS.sub("", _SEPARATORS.sub("_", _plain(value)))


def _by_well(frame: pd.DataFrame, columns: pd.DataFrame) -> _Links | None:
    """Join by wells, and by plates where both sides name them."""
    names = {str(column).lower(): str(column) for column in frame}
    found = _wells_of(frame, names)
    if found is None:
        return None
    used, wells = found
    keys = ["well"]
    rows = pd.DataFrame({"well": wells, "row": range(len(frame))})
    images = columns[["well"]].assign(image=range(len(columns)))
    if "plate" in names and columns["plate"].notna().any():
        keys, used = ["plate", "well"], [names["plate"], *used]
        rows["plate"] = frame[names["plate"]].map(_without_zeros, na_action="ignore")
        images["plate"] = columns["plate"].map(_without_zeros, na_action="ignore")
    links = rows.dropna().merge(images.dropna(), on=keys)
    return None if links.empty else _Links(links[["row", "image"]], used, "well")


def _wells_of(
    frame: pd.DataFrame, names: dict[str, str]
) -> tuple[list[str], list[str | None]] | None:
    """Return the columns that name wells, and the well of each row."""
    if "row" in names and "column" in names and "well" not in names:
        used = [names["row"], names["column"]]
        places = zip(frame[used[0]], frame[used[1]], strict=True)
        return used, [_well(row, column) for row, column in places]
    for column in frame:
        wells = [parse_well(value) for value in frame[column]]
        if sum(well is not None for well in wells) > len(wells) // 2:
            return [str(column)], [None if w is None else well_name(w) for w in wells]
    return None


def _well(row: object, column: object) -> str | None:
    at_row, at_column = parse_row(row), parse_column(column)
    if at_row is None or at_column is None:
        return None
    return well_name((at_row, at_column))


def _spell_wells(columns: pd.DataFrame) -> None:
    """Bring wells, rows and columns into one spelling, each from the others."""
    for i, told in columns.iterrows():
        well = parse_well(told["well"])
        name = _well(told["row"], told["column"]) if well is None else well_name(well)
        if name is not None:
            letters = name.rstrip("0123456789")
            number = str(int(name.removeprefix(letters)))
            columns.loc[i, ["well", "row", "column"]] = [name, letters, number]


def _as_group(column: pd.Series) -> pd.Series:
    """Return numbers of few values, and texts, as groups in their order."""
    parsed = pd.to_numeric(column, errors="coerce")
    if (parsed.notna() == column.notna()).all():
        if parsed.nunique() > _MOST_GROUPS:
            return parsed
        levels = [f"{level:.15g}" for level in sorted(parsed.dropna().unique())]
        texts = parsed.map("{:.15g}".format, na_action="ignore")
        return pd.Series(pd.Categorical(texts, levels))
    return pd.Series(pd.Categorical(column.map(lambda v: str(v).strip(), "ignore")))
