"""Read positions in tissue, sections and pictures from the parts of an AnnData.

scanpy and squidpy keep the pictures of Visium in ``uns["spatial"]``, by library, with
the factors by which positions become pixels. SpatialData names the column of the
element that each row is about, and keeps the shapes of rows outside the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats import spaces, store
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.positions import find_tissue
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.spatial_table import ATTRIBUTES
from napari_embedding_game.data.tissue import Tissue, TissueImage

_KEY = "spatial"
"""Key of ``uns`` under which scanpy keeps the pictures."""
_PICTURES = ("hires", "lowres")
"""Names of a library's pictures, the best first."""
_MAX_PIXELS = 1 << 26
"""Number of pixels above which a picture is left out."""


def read_tissue(
    root: Any, obs: pd.DataFrame, where: str, options: ReadOptions, path: Path | None
) -> tuple[Tissue | None, list[str]]:
    """Read the positions of the rows of a root, and notes on pictures left out.

    ``root``: parts of an AnnData, see :mod:`~.spaces`. ``obs`` (N rows): its metadata,
    with the axes of ``obsm``. ``where``: subject of messages. ``path``: file of the
    root, in which the shapes of SpatialData are looked for; None for none.
    """
    libraries = spaces.find_uns_item(root, _KEY)
    libraries = libraries if hasattr(libraries, "keys") else {}
    attributes = {
        key: _read_text(spaces.find_uns_item(root, ATTRIBUTES, key), where)
        for key in ("region_key", "instance_key")
    }
    region, instance = (x if x in obs else "" for x in attributes.values())
    column = region if region and obs[region].nunique() > 1 else ""
    scales = (f"tissue_{kind}_scalef" for kind in _PICTURES)
    places = ((_KEY, x, "scalefactors", scale) for scale in scales for x in libraries)
    has_scale = any(spaces.find_uns_item(root, *one) is not None for one in places)
    tissue = find_tissue(
        obs,
        options.roles,
        obsm_keys=spaces.find_position_keys(root),
        section_column=column or _find_library_column(obs, list(libraries)),
        unit="pixel" if has_scale else "",
    )
    if tissue is None and path is not None and path.is_dir() and region and instance:
        tissue = _read_shapes(path, obs, region, instance, column)
    if tissue is None or not len(libraries):
        return tissue, []
    return _with_pictures(tissue, libraries, obs, where)


def _read_text(item: Any, where: str) -> str:
    """Return a stored text; "" for None or anything else."""
    value = None if item is None else store.read_element(item, where, "its attributes")
    return value if isinstance(value, str) else ""


def _find_library_column(obs: pd.DataFrame, libraries: Sequence[str]) -> str:
    """Return the column of ``obs`` whose values are names of several libraries."""
    for name in obs.columns if len(libraries) > 1 else ():
        column = obs[name]
        if column.dtype.kind in "biufcmM":
            continue
        values = column.dropna().unique()
        if len(values) > 1 and {*map(str, values)} <= {*libraries}:
            return str(name)
    return ""


# Pictures


def _with_pictures(
    tissue: Tissue, libraries: Any, obs: pd.DataFrame, where: str
) -> tuple[Tissue, list[str]]:
    """Return the tissue with the pictures of its sections, and notes on others.

    ``libraries``: content of ``uns["spatial"]``. Without a column of sections the only
    library is that of all rows.
    """
    column, names = tissue.section_column, sorted(libraries)
    if column:
        sections = {*map(str, obs[column].dropna().unique())}
        keys = {name: name for name in names if name in sections}
    else:
        keys = {name: "" for name in names if len(names) == 1}
    images, notes = dict[str, TissueImage](), list[str]()
    if others := [name for name in names if name not in keys]:
        notes = [
            f"Pictures left out: {list_text(others)}, as no column of obs tells the "
            "rows of each."
        ]
    for name, section in keys.items():
        try:
            images[section] = _read_picture(libraries[name], where, name)
        except (DataError, LookupError, TypeError, ValueError) as error:
            notes.append(f"The picture of {name} was left out: {error}")
    return replace(tissue, images=images), notes


def _read_picture(library: Any, where: str, name: str) -> TissueImage:
    """Read the largest picture of a library of scanpy, and where it lies.

    Raises DataError if it is too large or no picture, and LookupError, TypeError or
    ValueError if a part is missing or damaged.
    """
    kind = next((x for x in _PICTURES if x in library["images"]), None)
    if kind is None:
        raise DataError(f"it is neither {' nor '.join(_PICTURES)}.")
    item = library["images"][kind]
    check_picture_size(np.shape(item))
    pixels = store.read_element(item, where, f"the picture of {name}")
    factor = library["scalefactors"][f"tissue_{kind}_scalef"]
    return make_scaled_image(pixels, store.read_element(factor, where, "its scale"))


def check_picture_size(shape: Sequence[int]) -> None:
    """Raise DataError if a picture of this shape has too many pixels to be shown."""
    if np.prod(shape[:2], dtype=float) > _MAX_PIXELS:
        size = " x ".join(f"{n:,}" for n in shape[:2])
        raise DataError(f"{size} pixels are more than {_MAX_PIXELS:,}; scale it down.")


def make_scaled_image(pixels: Any, factor: Any) -> TissueImage:
    """Return a picture whose pixels are positions times `factor`.

    ``pixels``: (h, w) or (h, w, 3 or 4) whole numbers up to 255 or 65,535, or numbers
    from 0 to 1. The first pixel of the picture and that of the full picture, which is
    at (0, 0), have the same corner. Raises ValueError if it is no picture.
    """
    values, scale = np.asarray(pixels), float(np.asarray(factor).item())
    if not 0 < scale < np.inf:
        raise ValueError(f"its scale is {scale:g}.")
    if values.dtype == np.uint16:
        values = (values >> 8).astype(np.uint8)
    if values.dtype.kind == "f":
        values = np.nan_to_num(values.astype(np.float32))
        if values.max(initial=0) > 1:
            values = np.clip(values, 0, 255).astype(np.uint8)
    if values.dtype != np.uint8 and values.dtype != np.float32:
        raise ValueError(f"its pixels are {values.dtype} values.")
    step = np.full(2, 1 / scale)
    return TissueImage(values, step, (step - 1) / 2)


# Shapes of SpatialData


def _read_shapes(
    path: Path, obs: pd.DataFrame, region: str, instance: str, section_column: str
) -> Tissue | None:
    """Return the centres of the shapes that rows of SpatialData are about.

    ``path``: the .zarr folder. ``region`` and ``instance``: columns of ``obs`` with the
    element of each row and the shape in it. None if no row has a circle or polygon.
    Raises DataError if a file of shapes is damaged or too large.
    """
    import pyarrow.parquet as pq

    positions = np.full((len(obs), 2), np.nan, np.float32)
    folders = {one.name: one for one in (path / "shapes").glob("*")}
    regions = [x for x in map(str, obs[region].dropna().unique()) if x in folders]
    for name in regions:
        file = folders[name] / "shapes.parquet"
        if not file.is_file():
            continue
        memory.check_fits(20 * file.stat().st_size, path.name, f"its shapes {name}")
        with wrap_read_errors(file, "shapes of SpatialData"):
            shapes = pq.read_table(file).to_pandas()
            centres = np.array([_find_wkb_center(one) for one in shapes["geometry"]])
        rows = np.flatnonzero(obs[region].astype(str) == name)
        ids = pd.Index(shapes.index.astype(str))
        if ids.is_unique:
            found = ids.get_indexer(obs[instance].iloc[rows].astype(str))
            positions[rows[found >= 0]] = centres[found[found >= 0]]
    if not np.isfinite(positions).any():
        return None
    return Tissue(positions, "", f"shapes {list_text(regions)}", section_column)


def _find_wkb_center(shape: bytes) -> NDArray[np.float64]:
    """Return the x and y of a point, or the centre of a polygon's box, in WKB.

    NaN for another kind of shape. Raises ValueError if the bytes are cut short.
    """
    order = "<" if shape[:1] == b"\1" else ">"
    kind = int(np.frombuffer(shape, f"{order}u4", 1, 1)[0])
    if kind == 1:
        return np.array(np.frombuffer(shape, f"{order}f8", 2, 5), np.float64)
    if kind != 3:
        return np.full(2, np.nan)
    n_corners = int(np.frombuffer(shape, f"{order}u4", 1, 9)[0])
    corners = np.frombuffer(shape, f"{order}f8", 2 * n_corners, 13).reshape(-1, 2)
    return np.asarray((corners.min(axis=0) + corners.max(axis=0)) / 2)
