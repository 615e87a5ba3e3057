"""Pair the images of a folder with their label images, by name."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_embedding_game.data.columns import counted, listed
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.field_names import FieldName, read_name

IMAGE_ENDINGS = (".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp")
_TABLE_ENDINGS = (".csv", ".tsv")
_LABEL_FOLDERS = {"label", "labels", "mask", "masks", "seg", "segmentation",
                  "segmentations", "segmented"}  # fmt: skip
_IMAGE_FOLDERS = {"image", "images", "img", "raw"}
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

    folder: Path
    pairs: tuple[ImagePair, ...]
    tables: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on files without a counterpart."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    folder: tuple[str, ...]
    """From the opened folder to the file, without folders such as "labels"."""
    stem: str
    """Name without ending, and without what says that these are labels."""
    is_labels: bool

    @property
    def told(self) -> FieldName:
        return read_name(self.stem)

    def key(self, *, by_field: bool) -> tuple[str, ...]:
        stem = self.told.stem if by_field else self.stem
        return (*self.folder, stem.lower())


def has_pairs(folder: Path) -> bool:
    """Return whether a folder seems to hold images and labels, by names alone."""
    if not folder.is_dir():
        return False
    files = _files(folder, most=_FIRST)
    if sum(file.is_labels for file in files) in (0, len(files)):
        return False
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
    pairs, notes = _paired(files, folder)
    if not pairs:
        raise DataError(_nothing(folder, files))
    tables = sorted(
        path
        for place in {folder, *(file.path.parent for file in files)}
        for path in place.iterdir()
        if path.suffix.lower() in _TABLE_ENDINGS and not path.name.startswith(".")
    )
    return FolderPairs(folder, tuple(pairs), tuple(tables), tuple(notes))


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key by which "A2" comes before "A10"."""
    parts = _DIGITS.split(text.lower())
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)


def _files(folder: Path, most: int) -> list[_File]:
    """Images and labels in a folder, and in those inside of it."""
    found: list[_File] = []
    for place, inside, names in os.walk(folder):
        here = Path(place)
        parts = here.relative_to(folder).parts
        inside[:] = sorted(
            name for name in inside if not name.startswith(".") and _is_entered(name)
        )
        if len(parts) >= _DEEPEST:
            inside.clear()
        for name in sorted(names):
            if name.lower().endswith(IMAGE_ENDINGS) and not name.startswith("."):
                found.append(_file(here / name, (folder.name, *parts)))
            if len(found) >= most:
                return found
    return found


def _is_entered(name: str) -> bool:
    return not name.lower().endswith(".zarr")


def _file(path: Path, parts: tuple[str, ...]) -> _File:
    stem = path.stem.removesuffix(".ome").removesuffix(".OME")
    match = _LABEL_SUFFIX.search(stem)
    role = next((p.lower() for p in reversed(parts) if _is_role(p)), "")
    is_labels = match is not None or role in _LABEL_FOLDERS
    if match is not None:
        stem = stem[: match.start()]
    folder = tuple(p for p in parts[1:] if not _is_role(p))
    return _File(path, folder, stem, is_labels)


def _is_role(part: str) -> bool:
    return part.lower() in _LABEL_FOLDERS | _IMAGE_FOLDERS


def _paired(files: Sequence[_File], folder: Path) -> tuple[list[ImagePair], list[str]]:
    images = [file for file in files if not file.is_labels]
    labels = [file for file in files if file.is_labels]
    # Where each channel has labels of its own, a channel is no channel but an image.
    by_field = _is_unique(file.key(by_field=True) for file in labels)
    of_labels = _grouped(labels, by_field=by_field)
    of_images = _grouped(images, by_field=by_field)
    for group in of_labels.values():
        if len(group) > 1:
            names = listed([str(f.path.relative_to(folder)) for f in group])
            raise DataError(
                f"{len(group)} labels files belong to one image: {names}; leave one of "
                "them in the folder."
            )
    several = {key for key, group in of_images.items() if _clash(group)}
    shared = [key for key in of_images if key in of_labels and key not in several]
    pairs = [_pair(of_images[key], of_labels[key][0]) for key in shared]
    pairs.sort(key=lambda pair: natural_key(pair.name))
    no_labels = [of_images[k] for k in of_images if k not in of_labels]
    no_image = [of_labels[k] for k in of_labels if k not in of_images]
    twice = [of_images[k] for k in of_images if k in of_labels and k in several]
    notes = [
        *_alone(no_labels, folder, "image", "no labels file"),
        *_alone(no_image, folder, "labels file", "no image"),
        *_alone(twice, folder, "image", "another image of that name beside it"),
    ]
    return pairs, notes


def _clash(group: Sequence[_File]) -> bool:
    """Return whether files of one field do not each hold another channel."""
    return len({file.told.channel for file in group}) < len(group)


def _is_unique(keys: Iterable[tuple[str, ...]]) -> bool:
    listed_keys = list(keys)
    return len(set(listed_keys)) == len(listed_keys)


def _grouped(
    files: Sequence[_File], *, by_field: bool
) -> Mapping[tuple[str, ...], list[_File]]:
    groups: dict[tuple[str, ...], list[_File]] = defaultdict(list)
    for file in files:
        groups[file.key(by_field=by_field)].append(file)
    return groups


def _pair(images: list[_File], labels: _File) -> ImagePair:
    images = sorted(images, key=lambda file: natural_key(file.told.channel))
    first = images[0]
    stem = first.told.stem if len(images) > 1 else first.stem
    told = first.told
    if not told.plate and first.folder:
        told = FieldName("/".join(first.folder), told.well, told.field)
    return ImagePair(
        "/".join((*first.folder, stem)),
        tuple(file.path for file in images),
        labels.path,
        tuple(file.told.channel for file in images) if len(images) > 1 else (),
        told,
    )


def _alone(
    groups: Sequence[Sequence[_File]], folder: Path, what: str, lack: str
) -> list[str]:
    """Sentence on files that have no counterpart; none where all have one."""
    names = [str(file.path.relative_to(folder)) for group in groups for file in group]
    if not names:
        return []
    has, was = ("has", "was") if len(names) == 1 else ("have", "were")
    files = counted(len(names), what)
    return [f"{files} {has} {lack} and {was} left out: {listed(names)}."]


def _nothing(folder: Path, files: Sequence[_File]) -> str:
    n_labels = sum(file.is_labels for file in files)
    if not files:
        return (
            f"{folder.name} holds no images ({', '.join(IMAGE_ENDINGS)}): choose the "
            "folder with images and their labels."
        )
    n_images = len(files) - n_labels
    return (
        f"{folder.name} holds {counted(n_images, 'image')} and "
        f"{counted(n_labels, 'labels file')}, and no image has labels of its name. "
        f"{HOW}"
    )
