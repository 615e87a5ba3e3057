"""Plates and wells from which the points of a map come."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text, list_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.wells import (
    Well,
    parse_well,
    parse_well_position,
    well_name,
)

_WELL = re.compile(r"(^|_)well(_?(id|name|position))?$", re.IGNORECASE)
_PLATE = re.compile(r"(^|_)plate(_?(id|name|barcode))?$", re.IGNORECASE)
_ROW_AND_COLUMN = ["row", "column"]
_OF_PLACE = re.compile(
    rf"^row$|^column$|{_WELL.pattern}|{_PLATE.pattern}", re.IGNORECASE
)
_WITH_PLACES = 0.5
"""Share of points with a readable well from which a column counts as one of wells."""
MAX_LISTED = 6
"""Most columns shown for a well."""


@dataclass(frozen=True, eq=False)
class Plate:
    """The wells of one plate."""

    name: str
    """"" where there is only one plate."""
    wells: dict[Well, NDArray[np.intp]]
    """Rows of the dataset in each well; empty for a well without objects."""
    image_rows: Mapping[Well, Mapping[str, str]] = field(default_factory=dict)
    """Metadata, by column, of the images of wells without rows."""

    def count_points(self) -> NDArray[np.float64]:
        """Return the number of points in each well, (W,)."""
        return np.array([len(rows) for rows in self.wells.values()], dtype=float)

    def compute_selected_shares(self, points: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the share of each well's points that are in a mask (n,): (W,).

        NaN for an empty well.
        """
        inside = (points[rows] for rows in self.wells.values())
        return np.array([one.mean() if len(one) else np.nan for one in inside])


def find_plates(dataset: Dataset) -> tuple[Plate, ...]:
    """Return the plates of a dataset's points; () where no column names wells.

    Wells are parsed from a column ``well`` with values such as "B03", or from the
    columns ``row`` and ``column``; a column ``plate`` distinguishes several plates.
    Points without a well are left out.  Wells of measured images without a point are
    added, empty.
    """
    wells = _find_wells(dataset)
    if wells is None:
        return ()
    column = next(_iter_matching_columns(dataset.obs, _PLATE), None)
    table = pd.DataFrame({"plate": "", "well": wells.to_numpy()})
    if column is not None:
        table["plate"] = dataset.obs[column].astype(object).fillna("").map(str).array
    measured = dataset.provenance.get("measured")
    images = measured.get("images", ()) if isinstance(measured, Mapping) else ()
    plates = []
    for name, part in table.dropna().groupby("plate"):
        groups = part.groupby("well").groups
        rows = {well: np.asarray(indices, np.intp) for well, indices in groups.items()}
        image_rows: dict[Well, Mapping[str, str]] = {}
        for image in images:
            well = parse_well(image.get("well"))
            of_plate = column is None or image.get("plate", "") == name
            if of_plate and well is not None and well not in rows:
                image_rows[well] = {str(k): str(value) for k, value in image.items()}
        rows |= dict.fromkeys(image_rows, np.zeros(0, np.intp))
        plates.append(Plate(str(name), dict(sorted(rows.items())), image_rows))
    return tuple(plates)


def list_well_columns(dataset: Dataset, plates: Sequence[Plate]) -> list[str]:
    """Return the columns of ``obs`` that are constant in each well, such as a dose.

    Columns that name the wells and plates, and columns of one value in all wells, are
    left out.  [] where no well has two points.
    """
    well = np.full(len(dataset.obs), -1)
    groups = [rows for plate in plates for rows in plate.wells.values()]
    for number, rows in enumerate(groups):
        well[rows] = number
    if not any(len(rows) > 1 for rows in groups):
        return []
    obs = dataset.obs.loc[:, ~dataset.obs.columns.duplicated()]
    names = [name for name in map(str, obs) if not _OF_PLACE.search(name)]
    levels = obs.loc[well >= 0, names].groupby(well[well >= 0]).nunique()
    return [one for one in names if levels[one].max() == 1 < obs[one].nunique()]


def describe_well(
    dataset: Dataset, plate: Plate, well: Well, columns: Sequence[str]
) -> str:
    """Return lines on a well: its name, number of points, and values of columns.

    At most ``MAX_LISTED`` of the columns, each with up to three values.  A well without
    points has the values of its image; a column without a value has no line.
    """
    rows = plate.wells[well]
    lines = [f"{well_name(well)}: {count_text(len(rows), 'point')}"]
    for column in columns[:MAX_LISTED]:
        values = dataset.obs[column].iloc[rows].dropna().unique()
        levels = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in values]
        if not len(rows) and column in plate.image_rows.get(well, {}):
            levels = [plate.image_rows[well][column]]
        if levels:
            lines.append(f"{column}: {list_text(levels, 3)}")
    return "\n".join(lines)


def _iter_matching_columns(
    obs: pd.DataFrame, pattern: re.Pattern[str]
) -> Iterator[str]:
    """Yield the column names that match a pattern, in the order of the table."""
    return (x for x in obs.columns if isinstance(x, str) and pattern.search(x))


def _find_wells(dataset: Dataset) -> pd.Series | None:
    """Return the well of each point, (n,), None where unknown.

    The first column ``well`` is taken of which at least half of the values are wells,
    else the columns ``row`` and ``column`` by the same rule.  Returns None where
    neither is.
    """
    obs, source = dataset.obs, dataset.source_obs
    for column in _iter_matching_columns(obs, _WELL):
        texts = obs[column].astype(object)
        wells = texts.map({text: parse_well(text) for text in texts.dropna().unique()})
        if wells.notna().mean() >= _WITH_PLACES:
            return wells
    if not set(_ROW_AND_COLUMN) <= set(obs.columns):
        return None
    # A child map may have no point in row 0, so counting from 0 shows in the source.
    whole = obs if source is None else source
    columns = (_to_one_based(obs[x], whole.get(x, obs[x])) for x in _ROW_AND_COLUMN)
    positions = pd.Series(list(zip(*columns, strict=True)))
    wells = positions.map(
        {pair: parse_well_position(*pair) for pair in positions.unique()}
    )
    return wells if wells.notna().mean() >= _WITH_PLACES else None


def _to_one_based(column: pd.Series, whole: pd.Series) -> pd.Series:
    """Return a column as numbers plus 1 if the column of all source rows has a 0.

    Otherwise the column is returned as it is.
    """
    numbers, every = (
        pd.to_numeric(one.astype(object), errors="coerce") for one in (column, whole)
    )
    return numbers + 1 if (every == 0).any() else column
