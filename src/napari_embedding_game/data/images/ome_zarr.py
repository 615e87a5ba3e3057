"""Find the images and labels of an OME-Zarr plate, and read their pixels.

The metadata are those of OME-NGFF 0.4 (``.zattrs``) and 0.5 (``zarr.json``): a plate
lists wells, a well its images, and an image its resolutions, of which the finest is
read. Labels are in the group ``labels`` of each image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text, list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.store import read_attributes, resolve_inside
from napari_embedding_game.data.images.channels import load_pixels
from napari_embedding_game.data.images.folder import ImagePair
from napari_embedding_game.data.wells import parse_well, well_name


def is_plate(folder: Path) -> bool:
    """Return whether a folder is an OME-Zarr plate; False if it cannot be read."""
    try:
        return isinstance(read_attributes(folder).get("plate"), dict)
    except (OSError, ValueError):
        return False


def find_plate_pairs(plate: Path) -> tuple[list[ImagePair], list[str]]:
    """Return the images of a plate with their labels, and notes on images without any.

    The images are in the order of the plate's list of wells. Of several labels of an
    image the first in its list is taken. Raises DataError if no image has labels, if
    metadata are damaged, or if a path in them is none inside the plate.
    """
    pairs, without, others = list[ImagePair](), list[str](), set[str]()
    root = plate.resolve()
    for well_path in _read_listed_folders(plate, "plate", "wells"):
        well = parse_well(well_path.relative_to(root).as_posix().replace("/", ""))
        for image in _read_listed_folders(well_path, "well", "images"):
            name = image.relative_to(root).as_posix()
            with wrap_read_errors(image / "labels", f"the labels of {name}"):
                found = read_attributes(image / "labels").get("labels")
                names = [str(x) for x in found] if isinstance(found, list) else []
                folders = [resolve_inside(image / "labels", x) for x in names[:1]]
            if not names:
                without.append(name)
                continue
            others.update(names[1:])
            pairs.append(
                ImagePair(
                    name=name,
                    images=(image,),
                    labels=folders[0],
                    plate=plate.name.removesuffix(".zarr").removesuffix(".ome"),
                    well=well_name(well) if well else "",
                    field=image.name,
                )
            )
    if not pairs:
        raise DataError(
            f"{plate.name} is a plate without labels: segment its images first, and "
            "write the labels into the plate."
        )
    notes = []
    if without:
        of_all = count_text(len(without), "image")
        notes.append(f"Left out, without labels: {of_all} ({list_text(without)}).")
    if others:
        notes.append(f"Other labels are not measured: {list_text(sorted(others))}.")
    return pairs, notes


def read_finest_pixels(image: Path) -> NDArray[Any]:
    """Return the finest resolution of an image or labels, with the channels first.

    Axes of length 1 are kept. Raises DataError for a time series, pixels that exceed
    the memory, and metadata that name no array.
    """
    import zarr

    scales = read_attributes(image).get("multiscales")
    scale = scales[0] if isinstance(scales, list) and scales else {}
    listed = scale.get("datasets") or [{}]
    array = zarr.open_array(
        resolve_inside(image, str(listed[0].get("path", ""))), mode="r"
    )
    axes = [x.get("name") if isinstance(x, dict) else x for x in scale.get("axes", [])]
    axes = axes if len(axes) == array.ndim else [*"tczyx"[5 - min(array.ndim, 5) :]]
    pixels: NDArray[Any] = load_pixels(array, image.name)
    if "t" in axes and pixels.shape[axes.index("t")] > 1:
        raise DataError(
            f"{image.name} is a time series: open it and its labels in napari, and "
            "measure them with Time as First axis."
        )
    return np.moveaxis(pixels, axes.index("c"), 0) if "c" in axes else pixels


def read_channel_names(image: Path) -> list[str]:
    """Return the names of an image's channels, in their order; [] if some have none."""
    content = read_attributes(image).get("omero")
    channels = content.get("channels") if isinstance(content, dict) else None
    names = [
        str(x.get("label") or "") if isinstance(x, dict) else ""
        for x in (channels if isinstance(channels, list) else [])
    ]
    return names if all(names) and len({*names}) == len(names) else []


def _read_listed_folders(group: Path, kind: str, listed: str) -> list[Path]:
    """Return the folders that the metadata of a plate or well list, inside the group.

    Raises DataError if the list is no list of paths.
    """
    with wrap_read_errors(group, "a part of a plate"):
        content = read_attributes(group).get(kind)
        entries = content.get(listed) if isinstance(content, dict) else None
        if not isinstance(entries, list):
            raise DataError(f"{group.name} lists no {listed}: write the plate anew.")
        return [resolve_inside(group, str(x.get("path") or "")) for x in entries]
