"""Read positions in tissue, sections and pictures from the parts of an AnnData.

scanpy and squidpy keep the pictures of Visium in ``uns["spatial"]``, by library, with
the factors by which positions become pixels. SpatialData names the column of the
element that each row is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import spaces, store
from napari_embedding_game.data.formats.spatial_elements import (
    AnnotatedPositions,
    read_annotated_positions,
)
from napari_embedding_game.data.positions import find_tissue, is_section_name
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.spatial_table import ATTRIBUTES, KEYS_OF_COLUMNS
from napari_embedding_game.data.tissue import POSITIONS, Tissue, TissueImage

PICTURES = ("hires", "lowres")
"""Names of a library's pictures, the best first."""
_MAX_PIXELS = 1 << 26
"""Number of pixels above which a picture is left out."""


def read_tissue(
    root: Any,
    obs: pd.DataFrame,
    where: str,
    options: ReadOptions,
    elements: Path | None = None,
) -> tuple[Tissue | None, list[str]]:
    """Read the positions of the rows of a root, and notes on what was left out.

    ``root``: parts of an AnnData, see :mod:`~.spaces`. ``obs`` (N rows): its metadata,
    with the axes of ``obsm``. ``where``: subject of messages. ``elements``: folder of
    the SpatialData whose shapes and points give the positions if ``root`` has none.
    """
    found = spaces.find_uns_item(root, POSITIONS)
    names = sorted(found) if hasattr(found, "keys") else []
    libraries = {name: found[name] for name in names if hasattr(found[name], "keys")}
    column, present = _find_library_column(obs, list(libraries))
    libraries = {name: libraries[name] for name in present}
    region, instance = (
        _find_annotating_column(root, obs, where, x) for x in KEYS_OF_COLUMNS
    )
    column = region if region and obs[region].nunique() > 1 else column
    scales = {key for one in libraries.values() for key in one.get("scalefactors", ())}
    has_scale = not scales.isdisjoint(f"tissue_{kind}_scalef" for kind in PICTURES)
    tissue = find_tissue(
        obs,
        options.roles,
        obsm_keys=spaces.find_position_keys(root),
        section_column=column,
        unit="pixel" if has_scale else "",
    )
    if tissue is None and elements is not None and region and instance:
        annotated = read_annotated_positions(elements, obs[region], obs[instance])
        tissue = _find_annotated_tissue(annotated, obs, options, column)
        return tissue, [*annotated.notes]
    if tissue is None or not libraries:
        return tissue, []
    return _with_pictures(tissue, libraries, obs, where)


def _find_annotating_column(
    root: Any, obs: pd.DataFrame, where: str, key: str
) -> str | None:
    """Return the column of ``obs`` that SpatialData names under a key; None without."""
    item = spaces.find_uns_item(root, ATTRIBUTES, key)
    if item is None:
        return None
    name = store.read_element(item, where, "its attributes")
    return name if isinstance(name, str) and name in obs else None


def _find_annotated_tissue(
    annotated: AnnotatedPositions,
    obs: pd.DataFrame,
    options: ReadOptions,
    column: str | None,
) -> Tissue | None:
    """Return the tissue of rows by what they annotate; None without positions.

    ``column``: column of the sections, None to look for it.
    """
    key = annotated.origin
    names = [f"{key} {i + 1}" for i in range(annotated.positions.shape[1])]
    axes = pd.DataFrame(annotated.positions, index=obs.index, columns=names)
    tissue = find_tissue(
        pd.concat([obs, axes], axis="columns"),
        options.roles,
        obsm_keys=[key],
        section_column=column,
        unit=annotated.unit,
    )
    return None if tissue is None else replace(tissue, origin=key)


def _find_library_column(
    obs: pd.DataFrame, libraries: Sequence[str]
) -> tuple[str | None, Sequence[str]]:
    """Return the column of ``obs`` that names libraries, and those that have rows.

    The column is "" if all rows are of a single library, and None if there is no such
    column. Where a column of sections has further names, those sections have no
    library.
    """
    for name in obs.columns if libraries else ():
        column = obs[name]
        if column.dtype.kind in "biufcmM":
            continue
        values = {*map(str, column.dropna().unique())}
        found = [library for library in libraries if library in values]
        if found and (values <= {*libraries} or is_section_name(str(name))):
            return str(name) if len(values) > 1 else "", found
    return "" if len(libraries) == 1 else None, libraries


# Pictures


def _with_pictures(
    tissue: Tissue, libraries: Mapping[str, Any], obs: pd.DataFrame, where: str
) -> tuple[Tissue, list[str]]:
    """Return the tissue with the pictures of its sections, and notes on others.

    ``libraries``: content of ``uns["spatial"]``. Without a column of sections the only
    library is that of all rows.
    """
    column, names = tissue.section_column, list(libraries)
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
    kind = next((x for x in PICTURES if x in library["images"]), None)
    if kind is None:
        raise DataError(f"it is neither {' nor '.join(PICTURES)}.")
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
