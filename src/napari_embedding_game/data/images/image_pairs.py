"""Pair the images of a folder with their label images, by name."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_embedding_game.data.columns import counted, listed
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.field_names import FieldName, read_name

IMAGE_ENDINGS = (".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp")
_TABLE_ENDINGS = (".csv", ".tsv")
_LABEL_FOLDERS = {"label", "labels", "mask", "masks", "seg", "segmentation",
                  "segmentations", "segmented"}  # fmt: skip
_ROLES = _LABEL_FOLDERS | {"image", "images", "img", "raw"}
_LABEL_SUFFIX = re.compile(
    r"[_\-. ](cp_masks?|labels?|masks?|seg|segmentation|segmented)$", re.IGNORECASE
)
_DIGITS = re.compile(r"(\d+)")
_DEEPEST = 3
"""Folders in folders that are looked into."""
_MOST_FILES = 200_000
_FIRST = 2_000
"""Files that are looked at to tell whether a folder holds pairs at all."""
HOW = (
    "A labels file has the name of its image and _labels, _label, _masks, _mask, _seg "
    "or _cp_masks behind it, or lies in a folder labels or masks."
)

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImagePair:
    """One field of view: an image, in one file or in one for each channel."""

    name: str
    """Tells it from the others, such as the name of its file without the ending."""
    images: tuple[Path, ...]
    labels: Path
    channels: tuple[str, ...] = ()
    """What the names of several files tell of the channel that each holds."""
    told: FieldName = field(default_factory=FieldName)
    """What the name of the file says."""


@dataclass(frozen=True, slots=True)
class FolderPairs:
    """What was found in a folder."""

    pairs: tuple[ImagePair, ...]
    tables: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on files without a counterpart."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    folder: _Key
    """From the opened folder to the file, without folders such as "labels"."""
    stem: str
    """Name without ending, and without what says that these are labels."""
    is_labels: bool
    told: FieldName

    def key(self, *, by_field: bool) -> _Key:
        return (*self.folder, (self.told.stem if by_field else self.stem).lower())


def has_pairs(folder: Path) -> bool:
    """Return whether a folder seems to hold images and labels, by names alone."""
    if not folder.is_dir():
        return False
    files = _files(folder, most=_FIRST)
    try:
        return bool(_paired(files, folder)[0])
    except DataError:
        return True  # what is wrong is told when the folder is opened


def find_pairs(folder: Path) -> FolderPairs:
    """Pair images and labels of a folder and of those in it.

    Raises
    ------
    DataError
        If there are none, or one image has several labels files.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: choose one with images and labels.")
    files = _files(folder, most=_MOST_FILES)
    if not files:
        raise DataError(
            f"{folder.name} holds no images ({', '.join(IMAGE_ENDINGS)}): choose the "
            "folder with images and their labels."
        )
    pairs, notes = _paired(files, folder)
    if not pairs:
        n_labels = sum(file.is_labels for file in files)
        raise DataError(
            f"{folder.name} holds {counted(len(files) - n_labels, 'image')} and "
            f"{counted(n_labels, 'labels file')}, and no image has labels of its name. "
            f"{HOW}"
        )
    tables = sorted(
        path
        for place in {folder, *(file.path.parent for file in files)}
        for path in place.iterdir()
        if path.suffix.lower() in _TABLE_ENDINGS and not path.name.startswith(".")
    )
    return FolderPairs(tuple(pairs), tuple(tables), tuple(notes))


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key by which "A2" comes before "A10"."""
    parts = _DIGITS.split(text.lower())
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)


def _files(folder: Path, most: int) -> list[_File]:
    """Images and labels in a folder, and in those inside of it."""
    found: list[_File] = []
    for place, inside, names in os.walk(folder):
        parts = Path(place).relative_to(folder).parts
        inside[:] = sorted(
            name
            for name in inside
            if not name.startswith(".") and not name.lower().endswith(".zarr")
        )
        if len(parts) >= _DEEPEST:
            inside.clear()
        for name in sorted(names):
            if name.lower().endswith(IMAGE_ENDINGS) and not name.startswith("."):
                found.append(_file(Path(place, name), (folder.name, *parts)))
            if len(found) >= most:
                return found
    return found


def _file(path: Path, parts: _Key) -> _File:
    stem = path.stem.removesuffix(".ome").removesuffix(".OME")
    match = _LABEL_SUFFIX.search(stem)
    roles = [part.lower() for part in parts if part.lower() in _ROLES]
    is_labels = match is not None or bool(roles and roles[-1] in _LABEL_FOLDERS)
    stem = stem if match is None else stem[: match.start()]
    folder = tuple(part for part in parts[1:] if part.lower() not in _ROLES)
    return _File(path, folder, stem, is_labels, read_name(stem))


def _paired(files: Sequence[_File], folder: Path) -> tuple[list[ImagePair], list[str]]:
    labels = [file for file in files if file.is_labels]
    # Where each channel has labels of its own, a channel is no channel but an image.
    counts = Counter(file.key(by_field=True) for file in labels)
    by_field = max(counts.values(), default=1) == 1
    of_labels: dict[_Key, list[_File]] = {}
    of_images: dict[_Key, list[_File]] = {}
    for file in files:
        groups = of_labels if file.is_labels else of_images
        groups.setdefault(file.key(by_field=by_field), []).append(file)

    def names(groups: Sequence[Sequence[_File]]) -> list[str]:
        return [str(f.path.relative_to(folder)) for group in groups for f in group]

    for group in of_labels.values():
        if len(group) > 1:
            raise DataError(
                f"{len(group)} labels files belong to one image: "
                f"{listed(names([group]))}; leave one of them in the folder."
            )
    pairs, no_labels, twice = [], [], []
    for key, group in of_images.items():
        if key not in of_labels:
            no_labels.append(group)
        elif len({file.told.channel for file in group}) < len(group):
            twice.append(group)
        else:
            pairs.append(_pair(group, of_labels[key][0]))
    no_image = [group for key, group in of_labels.items() if key not in of_images]
    notes = []
    for lost, what, lack in (
        (no_labels, "image", "no labels file"),
        (no_image, "labels file", "no image"),
        (twice, "image", "another image of that name beside it"),
    ):
        if alone := names(lost):
            has, was = ("has", "was") if len(alone) == 1 else ("have", "were")
            notes.append(
                f"{counted(len(alone), what)} {has} {lack} and {was} left out: "
                f"{listed(alone)}."
            )
    return sorted(pairs, key=lambda pair: natural_key(pair.name)), notes


def _pair(images: list[_File], labels: _File) -> ImagePair:
    images = sorted(images, key=lambda file: natural_key(file.told.channel))
    first, several = images[0], len(images) > 1
    told = first.told
    if not told.plate and first.folder:
        told = FieldName("/".join(first.folder), told.well, told.field)
    return ImagePair(
        "/".join((*first.folder, first.told.stem if several else first.stem)),
        tuple(file.path for file in images),
        labels.path,
        tuple(file.told.channel for file in images) if several else (),
        told,
    )
