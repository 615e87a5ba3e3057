"""The wells of a plate that the points of a map come from, and a figure of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import counted, listed
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.wells import (
    Well,
    parse_column,
    parse_row,
    parse_well,
    well_name,
)
from napari_embedding_game.session.cluster_report import is_continuous

_WELL = re.compile(r"(^|_)well(_?(id|name|position))?$", re.IGNORECASE)
_PLATE = re.compile(r"(^|_)plate(_?(id|name|barcode))?$", re.IGNORECASE)
_WITH_PLACES = 0.5
"""Share of the points whose well can be read, from which a column names wells."""
MOST_TOLD = 6
"""Columns that are told of a well."""


@dataclass(frozen=True, eq=False)
class Plate:
    """The wells of one plate."""

    name: str
    """"" where there is only one."""
    wells: dict[Well, NDArray[np.intp]]
    """Rows of the dataset in each well; none in one whose images hold no object."""
    told: Mapping[Well, Mapping[str, str]] = field(default_factory=dict)
    """What is known of wells without any rows, by column."""

    def counts(self) -> NDArray[np.float64]:
        """Points in each well, (W,)."""
        return np.array([len(rows) for rows in self.wells.values()], dtype=float)

    def shares(self, points: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Share of each well's points that are among some, (W,); NaN without points.

        Parameters
        ----------
        points : (n,) bool
        """
        inside = np.array([points[rows].sum() for rows in self.wells.values()])
        counts = self.counts()
        shares = np.full(len(counts), np.nan)
        np.divide(inside, counts, out=shares, where=counts > 0)
        return shares

    def means(self, values: pd.Series) -> NDArray[np.float64]:
        """Mean of a column of numbers in each well, (W,); NaN without any."""
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        means = np.full(len(self.wells), np.nan)
        for place, rows in enumerate(self.wells.values()):
            known = numbers[rows][np.isfinite(numbers[rows])]
            if len(known):
                means[place] = known.mean()
        return means

    def levels(self, values: pd.Series) -> list[tuple[str, ...]]:
        """Values of a column of names in each well, the most frequent first."""
        levels = []
        for well, rows in self.wells.items():
            counts = values.iloc[rows].value_counts()
            of_well = tuple(map(str, counts.index[counts > 0]))
            known = self.told.get(well, {}).get(str(values.name))
            levels.append(of_well or ((known,) if known else ()))
        return levels


def plates_of(dataset: Dataset) -> tuple[Plate, ...]:
    """Return the plates that the points come from; none where no column tells wells.

    A well is read off a column ``well`` with values such as "B03", or off the columns
    ``row`` and ``column``; ``plate`` tells several plates apart.
    """
    wells = _wells(dataset.obs)
    if wells is None:
        return ()
    plate_column = _named(dataset.obs, _PLATE)
    names = (
        np.full(len(wells), "", dtype=object)
        if plate_column is None
        else dataset.obs[plate_column].astype(object).fillna("").astype(str).to_numpy()
    )
    rows_of: dict[str, dict[Well, list[int]]] = {}
    for row, (plate, well) in enumerate(zip(names, wells, strict=True)):
        if well is not None:
            rows_of.setdefault(plate, {}).setdefault(well, []).append(row)
    told: dict[str, dict[Well, Mapping[str, str]]] = {name: {} for name in rows_of}
    for image in _measured(dataset):
        plate = "" if plate_column is None else image.get("plate", "")
        well = parse_well(image.get("well"))
        if plate in rows_of and well is not None and well not in rows_of[plate]:
            rows_of[plate][well] = []
            told[plate][well] = image
    return tuple(
        Plate(
            name,
            {well: np.array(rows, np.intp) for well, rows in sorted(of_plate.items())},
            told[name],
        )
        for name, of_plate in sorted(rows_of.items())
    )


def plate_columns(dataset: Dataset, plates: Sequence[Plate]) -> list[str]:
    """Return the columns of ``obs`` that tell something of a whole well.

    Numbers and names that are the same in nearly all points of a well, such as a dose.
    """
    groups = [
        rows for plate in plates for rows in plate.wells.values() if len(rows) > 1
    ]
    found = []
    for column in dataset.obs:
        values = dataset.obs[column]
        is_told = values.nunique() > 1 and groups and not _is_of_place(str(column))
        if is_told and all(values.iloc[rows].nunique() <= 1 for rows in groups):
            found.append(str(column))
    return found


def well_text(
    dataset: Dataset, plate: Plate, well: Well, columns: Sequence[str]
) -> str:
    """Return what is known of a well: how many points it has, and its columns."""
    rows = plate.wells[well]
    lines = [f"{well_name(well)}: {counted(len(rows), 'point')}"]
    for column in columns[:MOST_TOLD]:
        levels = [
            _said(one) for one in dataset.obs[column].iloc[rows].dropna().unique()
        ]
        if not len(rows) and column in plate.told.get(well, {}):
            levels = [plate.told[well][column]]
        if levels:
            lines.append(f"{column}: {listed(levels, 3)}")
    return "\n".join(lines)


def is_number(values: pd.Series) -> bool:
    """Return whether a column is one of measurements, which have a mean."""
    return is_continuous(values)


def _said(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _named(obs: pd.DataFrame, pattern: re.Pattern[str]) -> str | None:
    names = (name for name in obs.columns if isinstance(name, str))
    return next((name for name in names if pattern.search(name)), None)


def _is_of_place(name: str) -> bool:
    """Return whether a column only says which well it is."""
    is_row = name.lower() in ("row", "column")
    return bool(_WELL.search(name) or _PLATE.search(name) or is_row)


def _wells(obs: pd.DataFrame) -> list[Well | None] | None:
    """Return the well of each point, None where it is not known; None without any."""
    column = _named(obs, _WELL)
    if column is not None:
        by_text = {text: parse_well(text) for text in obs[column].dropna().unique()}
        wells = [by_text.get(text) for text in obs[column]]
    elif {"row", "column"} <= set(obs.columns):
        known: dict[tuple[Any, Any], Well | None] = {}
        wells = []
        for place in zip(obs["row"], obs["column"], strict=True):
            if place not in known:
                row, number = parse_row(place[0]), parse_column(place[1])
                is_known = row is not None and number is not None
                known[place] = (row or 0, number or 0) if is_known else None
            wells.append(known[place])
    else:
        return None
    n_known = sum(well is not None for well in wells)
    return wells if n_known and n_known >= _WITH_PLACES * len(wells) else None


def _measured(dataset: Dataset) -> list[dict[str, str]]:
    """Return what is known of each image that was measured, empty ones too."""
    measured = dataset.provenance.get("measured")
    images = measured.get("images") if isinstance(measured, Mapping) else None
    return [
        {str(key): str(value) for key, value in image.items()}
        for image in (images if isinstance(images, list | tuple) else ())
        if isinstance(image, Mapping)
    ]
