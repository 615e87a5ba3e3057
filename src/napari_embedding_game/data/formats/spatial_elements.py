"""Read positions of the shapes and points that a table of SpatialData annotates.

A folder of SpatialData has its elements beside its tables: ``shapes/NAME`` is a group
of zarr with a GeoParquet file, ``points/NAME`` one with a folder of parquet files. Each
row of a table is about one instance of one element. The attributes of an element say
how its coordinates become those of the coordinate systems that elements share. The
table itself is read by :mod:`anndata`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats import store
from napari_embedding_game.data.formats.tables import open_parquet
from napari_embedding_game.data.formats.wkb import find_centroids
from napari_embedding_game.data.limits.memory import read_unpacked
from napari_embedding_game.data.positions import UNITS
from napari_embedding_game.data.tissue import Unit

_TABLES = "tables"
_KINDS = ("shapes", "points")
_AXES = ("x", "y", "z")
_SHARED_SYSTEM = "global"
"""Name that SpatialData gives to the coordinate system of all elements."""

_Coordinates = dict[str, NDArray[np.float64]]
"""Coordinates (n,) of n instances, keyed by their axis."""


@dataclass(frozen=True, eq=False)
class AnnotatedPositions:
    """Positions of the instances that N rows of a table are about."""

    positions: NDArray[np.float64]
    """(N, 2) x and y, or (N, 3) x, y and z; NaN where unknown."""
    unit: Unit
    origin: str
    """Where the positions come from: "centroids of cells, nuclei"."""
    notes: Sequence[str]
    """Sentences on elements and rows without positions."""


@dataclass(frozen=True, eq=False)
class _Element:
    """Positions of the instances of one element."""

    positions: pd.DataFrame
    """x, y and perhaps z of each instance, with its unique identifier as a text."""
    unit: Unit
    system: str
    """Name of the coordinate system of the positions."""


def find_elements_folder(path: Path | None) -> Path | None:
    """Return the folder of SpatialData that a path is, or that holds it as a table.

    None for any other path.
    """
    if path is None or not path.is_dir():
        return None
    if (path / _TABLES).is_dir():
        return path
    return path.parent.parent if path.parent.name == _TABLES else None


def read_annotated_positions(
    folder: Path, regions: pd.Series, instances: pd.Series
) -> AnnotatedPositions:
    """Read the positions of the instances that N rows of a table are about.

    ``folder``: that of SpatialData. ``regions`` and ``instances`` (N,): name of the
    element, and identifier in the element, of each row. An element that is damaged,
    missing or neither shapes nor points is left out with a note.
    """
    names, ids = regions.astype(str).to_numpy(), instances.astype(str).to_numpy()
    positions, notes = np.full((len(names), 3), np.nan), list[str]()
    found, refused, missing = dict[str, _Element](), list[str](), list[str]()
    n_lost = 0
    for name in sorted({*names[regions.notna().to_numpy()]}):
        try:
            element = _read_element(folder, name)
        except DataError as error:
            refused, reason = [*refused, name], error
            continue
        if element is None:
            missing.append(name)
            continue
        found[name], rows = element, np.flatnonzero(names == name)
        places = element.positions.reindex(ids[rows])
        positions[rows, : places.shape[1]] = places
        n_lost += int(places.isna().any(axis=1).sum())
    if refused:
        notes.append(f"Positions of {list_text(refused)} were left out: {reason}")
    if missing:
        notes.append(
            f"No positions of {list_text(missing)}: positions are read from shapes "
            'and points alone, or from obsm["spatial"] of the table.'
        )
    if n_lost:
        notes.append(
            f"{n_lost:,} of {len(names):,} rows have no position: "
            f"{list_text([*found])} do not have their {instances.name}, or have it "
            "more than once."
        )
    others = [x for x, one in found.items() if one.system != _SHARED_SYSTEM]
    if others:
        systems = list_text([found[x].system for x in others])
        notes.append(
            f"Positions of {list_text(others)} are those of the coordinate system "
            f"{systems}, because none is called {_SHARED_SYSTEM}."
        )
    units = {one.unit for one in found.values()}
    is_flat = any(one.positions.shape[1] == 2 for one in found.values())
    return AnnotatedPositions(
        positions[:, :2] if is_flat else positions,
        units.pop() if len(units) == 1 else "",
        f"centroids of {list_text([*found])}",
        notes,
    )


def _read_element(folder: Path, name: str) -> _Element | None:
    """Read the positions of an element; None if it is neither shapes nor points.

    Raises DataError if it is damaged or too large, or its name leads out of the folder.
    """
    for kind in _KINDS:
        with wrap_read_errors(folder / kind, f"{kind} of SpatialData"):
            group = store.resolve_inside(folder / kind, name)
            is_here = group.is_dir()
        if is_here:
            with wrap_read_errors(group, f"{kind} of SpatialData"):
                return _read_group(group, kind)
    return None


def _read_group(group: Path, kind: str) -> _Element:
    """Read the positions of shapes or points from their group of zarr.

    Raises DataError if it has links, or is of a former version of the format, and an
    exception of any of several types if it is damaged.
    """
    store.check_zarr_folder(group)
    file = group / f"{kind}.parquet"
    if not file.exists():
        raise DataError(
            f"{group.name} has no {file.name}: read the folder with a newer version of "
            "spatialdata, and write it again."
        )
    table = _READERS[kind](file)
    # Points are in several files, in each of which numbers may start from 0.
    table = table[~table.index.duplicated(keep=False)]
    to_system = _choose_transformation(store.read_attributes(group))
    axes = _transform_coordinates(
        {x: table[x].to_numpy(np.float64) for x in table}, to_system
    )
    unit, factor = _find_unit(to_system)
    by_axis = {x: axes[x] * factor for x in _AXES if x in axes}
    system = str(to_system["output"]["name"])
    return _Element(pd.DataFrame(by_axis, table.index), unit, system)


# Coordinates of the instances of an element


def _read_shapes(file: Path) -> pd.DataFrame:
    """Return the centroids of shapes: x, y, z by the text of their identifiers.

    Raises DataError if the shapes are not in well-known binary.
    """
    import pyarrow as pa

    table = _read_columns(file, ["geometry"])
    if pa.types.is_nested(table.schema.field("geometry").type):
        raise DataError(
            "its geometry is written as GeoArrow: write it as WKB, with "
            'spatialdata.settings.shapes_geometry_encoding = "WKB".'
        )
    centroids = find_centroids(table["geometry"].to_pylist())
    return pd.DataFrame(centroids, _read_ids(table, ["geometry"]), [*_AXES])


def _read_points(file: Path) -> pd.DataFrame:
    """Return points: x, y and perhaps z by the text of their identifiers."""
    parts = sorted(file.glob("*.parquet")) if file.is_dir() else [file]
    frames = []
    for part in parts:
        table = _read_columns(part, _AXES)
        axes = [x for x in _AXES if x in table.column_names]
        values = {x: table[x].to_numpy() for x in axes}
        frames.append(pd.DataFrame(values, _read_ids(table, axes)))
    return pd.concat(frames)


_READERS = {"shapes": _read_shapes, "points": _read_points}


def _read_columns(file: Path, names: Sequence[str]) -> Any:
    """Read columns of a .parquet file, as many as it has, with the index of pandas."""
    opened = open_parquet(read_unpacked(file), file.name)
    here = [x for x in names if x in opened.schema_arrow.names]
    return opened.read(columns=here, use_pandas_metadata=True)


def _read_ids(table: Any, names: Sequence[str]) -> pd.Index:
    """Return the index that pandas noted in a table of these columns, as texts."""
    return table.drop_columns([*names]).to_pandas().index.astype(str)


# Transformations of coordinates


def _choose_transformation(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the transformation to the shared system, or the first without such."""
    listed = attributes["coordinateTransformations"]
    shared = (x for x in listed if x["output"]["name"] == _SHARED_SYSTEM)
    chosen: Mapping[str, Any] = next(shared, listed[0])
    return chosen


def _transform_coordinates(
    coordinates: _Coordinates, transformation: Mapping[str, Any]
) -> _Coordinates:
    """Return the coordinates after a transformation of the element's attributes.

    Raises DataError for an unknown kind of transformation, and an exception of any of
    several types for a damaged one.
    """
    kind = transformation["type"]
    if kind == "sequence":
        for one in transformation["transformations"]:
            coordinates = _transform_coordinates(coordinates, one)
        return coordinates
    if kind == "mapAxis":
        return {new: coordinates[old] for new, old in transformation["mapAxis"].items()}
    before, after = (
        [x["name"] for x in transformation[x]["axes"]] for x in ("input", "output")
    )
    values = np.stack([coordinates[x] for x in before], axis=1)
    numbers = np.asarray(transformation.get(kind, ()), np.float64)
    with np.errstate(all="ignore"):
        if kind == "affine":
            _check_shape(numbers, (len(after), len(before) + 1))
            values = values @ numbers[:, :-1].T + numbers[:, -1]
        elif kind in ("scale", "translation"):
            _check_shape(numbers, (len(before),))
            values = values * numbers if kind == "scale" else values + numbers
        elif kind != "identity":
            raise DataError(
                f'its coordinates are transformed by "{kind}", which is not known: use '
                "scale, translation or affine."
            )
    return dict(zip(after, values.T, strict=True))


def _check_shape(numbers: NDArray[np.float64], shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the numbers of a transformation have this shape."""
    if numbers.shape != shape:
        raise ValueError(f"numbers of shape {numbers.shape} for {shape}")


def _find_unit(transformation: Mapping[str, Any]) -> tuple[Unit, float]:
    """Return the unit of positions after a transformation, and the factor to get it."""
    axes = transformation["output"]["axes"]
    units = {str(x.get("unit")).lower() for x in axes if x["name"] in _AXES}
    return UNITS.get(units.pop(), ("", 1.0)) if len(units) == 1 else ("", 1.0)
