"""Join a table with the images beside it: by file name or by well, never by order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from napari_embedding_game.data.columns import (
    are_zero_padded_codes,
    coerce_to_numbers,
    count_text,
    list_text,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import read_frame
from napari_embedding_game.data.images.folder import ImagePair
from napari_embedding_game.data.roles import MAX_GROUPS_OF_NUMBERS
from napari_embedding_game.data.wells import ROWS, parse_well, well_name

PLATE_COLUMNS = ("plate", "well", "row", "column", "field")
_RESERVED = ("image", "label", "name", "labels", "objects")
"""Names of columns that identify the objects of an image, and its files."""


def build_image_table(
    pairs: Sequence[ImagePair], tables: Sequence[Path]
) -> tuple[pd.DataFrame, list[str]]:
    """Return plate, well, field and the columns of tables for each image, and notes.

    A table is joined by the column whose values are names of the image files, with or
    without ending; else by its wells (and plates). A table that cannot be read, names
    no image, or names one in several rows, is left out, and the notes say so. Wells
    also give the row and column of the plate; columns without any value are left out.
    """
    rows = [
        (x.plate or None, x.well or None, int(x.field) if x.field else None)
        for x in pairs
    ]
    columns = pd.DataFrame(rows, columns=["plate", "well", "field"], dtype=object)
    notes = list[str]()
    for path in tables:
        try:
            frame = read_frame(path).reset_index(drop=True)
            columns, note = _join_table(columns, frame, pairs, path.name)
        except DataError as error:  # a bad table does not stop the measurement
            note = str(error)
        notes.append(note)
    wells = columns["well"].map(parse_well, na_action="ignore").dropna()
    columns.loc[wells.index, "well"] = wells.map(well_name)
    columns.loc[wells.index, "row"] = wells.map(lambda well: ROWS[well[0]])
    columns.loc[wells.index, "column"] = wells.map(lambda well: well[1] + 1)
    return columns.loc[:, columns.notna().any()].apply(_to_groups), notes


def _join_table(
    columns: pd.DataFrame, frame: pd.DataFrame, pairs: Sequence[ImagePair], name: str
) -> tuple[pd.DataFrame, str]:
    """Return the columns of all images with those of one table added, and a note.

    ``columns``: one row for each pair. Entries of the table override plate, well and
    field of the file names; other columns of a taken name get the table's `name` in
    brackets. Raises DataError if the table names no image, or one in several rows.
    """
    links, used = _match_rows_to_images(
        frame, _make_image_keys(pairs, columns["well"]), columns["plate"]
    )
    if links.empty:
        raise DataError(
            f"{name} names none of the images, so it was not joined: one of its "
            "columns has to hold the names of the image files, or their wells."
        )
    rows = links.set_index("image")["row"].sort_index()
    if several := [pairs[i].name for i in rows.index[rows.index.duplicated()].unique()]:
        raise DataError(
            f"{name} has several rows for {list_text(several, 3)}, so it was not "
            "joined: one row for each image is needed."
        )

    def make_title(text: str) -> str:
        if text.lower() in PLATE_COLUMNS:
            return text.lower()
        is_taken = text.lower() in _RESERVED or text in columns
        return f"{text} ({name})" if is_taken else text

    added = frame.drop(columns=used).dropna(axis="columns", how="all").astype(object)
    added = added.iloc[rows].set_axis(rows.index).reindex(columns.index)
    added = added.rename(columns=make_title)
    added = added.loc[:, ~added.columns.duplicated()]
    # Entries of a person's table override the names of files.
    new = [one for one in added if one not in columns]
    columns = added.combine_first(columns).astype(object)[[*columns, *new]]
    how = "well" if links["is_well"].any() else "file name"
    note = f"Joined by {how}: {list_text(list(added)) or 'no column'} of {name}."
    missed = [pair.name for i, pair in enumerate(pairs) if i not in rows.index]
    if missed:
        note += f" It lacks {count_text(len(missed), 'image')}: {list_text(missed)}."
    others = frame.loc[~frame.index.isin(rows), used[-1]].astype(str).tolist()
    if others:
        note += f" Without an image: {list_text(others)}."
    return columns, note


def _make_image_keys(pairs: Sequence[ImagePair], wells: pd.Series) -> pd.DataFrame:
    """Return a table of keys by which tables may name the images.

    Columns are ``key``, ``image`` (its index) and ``is_well``. Keys are names of the
    image, with and without ending and folder, but none that several images share; and
    wells, which several images may share.
    """
    names = [
        (_normalise_key(name), i)
        for i, pair in enumerate(pairs)
        for path in (*pair.images, pair.labels)
        for name in (pair.name, path.name, path.stem, f"{path.parent.name}/{path.name}")
    ]
    keys = pd.DataFrame(names, columns=["key", "image"]).drop_duplicates()
    keys = keys[~keys["key"].duplicated(keep=False)].assign(is_well=False)
    of_wells = wells.dropna().map(_normalise_key).rename("key").rename_axis("image")
    return pd.concat([keys, of_wells.reset_index().assign(is_well=True)])


def _normalise_key(value: object) -> str:
    """Return a name such that equal images, or equal wells, have equal names.

    Wells are as "B03". Other names have lower case, at most one folder, "_" for spaces,
    points and dashes, and no leading zeros, as spreadsheets write 21 for 0021.
    """
    if well := parse_well(value):
        return well_name(well)
    text = str(value).strip().replace("\\", "/").lower()
    text = re.sub(r"[\s_\-.]+", "_", "/".join(text.rsplit("/", 2)[-2:]))
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


def _match_rows_to_images(
    frame: pd.DataFrame, keys: pd.DataFrame, plates: pd.Series
) -> tuple[pd.DataFrame, list[str]]:
    """Return pairs of ``row`` and ``image``, and the columns that were compared.

    ``keys``: see :func:`_make_image_keys`. ``plates``: plate of each image. Compared is
    the column that names the most images in one row each, of equal ones by file names
    rather than wells; for wells the plate, too, where both sides have a plate.
    """
    plate = next((name for name in frame if name.lower() == "plate"), None)
    best, used, most = keys[:0].assign(row=0), [""], (0, 0, True)
    for column in frame:
        rows = (
            frame[column].dropna().map(_normalise_key).rename("key").rename_axis("row")
        )
        links, columns = rows.reset_index().merge(keys, on="key"), [column]
        if plate is not None and plates.notna().any() and links["is_well"].any():
            theirs = frame[plate].iloc[links["row"]].map(_normalise_key).to_numpy()
            is_of_plate = (
                theirs == plates.iloc[links["image"]].map(_normalise_key).to_numpy()
            )
            links, columns = links[is_of_plate | ~links["is_well"]], [plate, column]
        links = links.drop_duplicates(["row", "image"])
        counts, is_well = links["image"].value_counts(), links["is_well"].any()
        if (n := (int((counts == 1).sum()), len(counts), not is_well)) > most:
            best, used, most = links, columns, n
    return best, used


def _to_groups(column: pd.Series) -> pd.Series:
    """Convert texts, and numbers of at most 30 values, to sorted levels.

    Other numbers stay numbers, but whole numbers above 2^53, such as barcodes, become
    levels. Texts that are all numbers count as numbers, but for codes such as 0012.
    """
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "string" and not are_zero_padded_codes(column):
        # Numbers may have become texts because rows without an image hold texts.
        numbers = coerce_to_numbers(column).astype(object)
        column = numbers if numbers.count() == column.count() else column
        kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind not in ("integer", "floating", "mixed-integer-float"):
        texts = column.map(lambda value: str(value).strip(), na_action="ignore")
        return pd.Series(pd.Categorical(texts))
    # Barcodes are names, not measures.
    are_ids = kind == "integer" and column.max() > 2**53
    if column.nunique() > MAX_GROUPS_OF_NUMBERS and not are_ids:
        return pd.to_numeric(column)
    texts = column.map(
        lambda x: f"{x:.15g}" if isinstance(x, float) else str(x), na_action="ignore"
    )
    levels = texts[column.dropna().sort_values().index].unique()
    return pd.Series(pd.Categorical(texts, levels))
