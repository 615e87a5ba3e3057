"""Find the images of a folder and their labels, and parse their names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pandas as pd

from napari_embedding_game.data.columns import count_text, list_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.wells import parse_well, parse_well_position, well_name

IMAGE_ENDINGS = (".tif", ".tiff", ".png", ".jpg", ".jpeg", ".bmp")
_LABEL_FOLDERS = {"label", "labels", "mask", "masks", "seg", "segmentation",
                  "segmentations", "segmented"}  # fmt: skip
_ROLES = _LABEL_FOLDERS | {"image", "images", "img", "raw"}
_LABEL_SUFFIX = re.compile(
    r"[_\-. ](cp_masks?|labels?|masks?|seg|segmentation|segmented)$", re.IGNORECASE
)
_IS_SHOWN = re.compile(r"(?!\.).*(?<!\.zarr)", re.IGNORECASE).fullmatch
_DEEPEST = 3
"""Depth of folders in the folder that are searched."""
_MAX_FILES = 200_000
_FIRST = 2_000
"""Number of files of each folder that are inspected to decide whether there are
pairs."""
PAIRING_HINT = (
    "A labels file has the name of its image and _labels, _label, _masks, _mask, _seg "
    "or _cp_masks behind it, or lies in a folder labels or masks."
)

_BEGIN, _END = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
_PATTERNS = tuple(
    re.compile(_BEGIN + pattern)
    for pattern in (
        # Harmony and Operetta: r02c03f01p01-ch1sk1fk1fl1; others write Row2_Col3_F1.
        r"(?i:r(?:ow[_ ]?)?(?P<row>\d{1,2})(?:c|[_ ]?col[_ ]?)(?P<column>\d{1,2})"
        r"([_ ]?f(?P<field>\d+))?(p\d+)?"
        rf"(-?(?P<channel>ch\d+)\w*)?{_END})",
        # CellVoyager: B03_T0001F002L01A01Z01C02
        r"((?P<well>[A-P]\d{2})_)?T\d{4}F(?P<field>\d{3})L\d{2}A\d{2}Z\d{2}"
        rf"(?P<channel>C\d{{2}}){_END}",
        # Other programs write the following parts in any order.
        # IN Cell: B - 03(fld 1 wv DAPI - DAPI).  D0 is a day, and no well.
        r"(?i:well[_\-. ]?)?(?P<well>([A-P]|A[A-F])( - (?=\d+\())?(?!00?\D)\d{1,2}"
        r"|[a-p]\d{2})(?=[fs]\d|[^A-Za-z0-9]|$)",
        r"(?i:(s|site|f|fld|field|fov|pos|position|xy)[_\-. ]?(?P<field>\d+))" + _END,
        # ImageXpress appends a long identifier to the wavelength.
        r"(?P<channel>(?i:w|wv|ch|channel|c)[_\-. ]?\d+)"
        rf"([0-9A-F]{{8}}-[0-9A-F-]{{27}})?{_END}",
        r"(?i:(?P<plate>plate[_\-. ]?([a-z]*\d+|[a-z])))" + _END,
    )
)  # fmt: skip
"""Patterns for the names of files, the likeliest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePair:
    """One field of view: its image, in one file or one per channel, and its labels."""

    name: str
    """Identity of the image, such as the name of its file without the ending."""
    images: tuple[Path, ...]
    labels: Path
    channels: tuple[str, ...] = ()
    """Channel of each of several files, from their names."""
    plate: str = ""
    well: str = ""
    field: str = ""
    """Parsed from the names of folder and file; "" where absent."""


def parse_file_name(stem: str) -> dict[str, str]:
    """Parse plate, well, field and channel from a file's name without its ending.

    Recognises names such as ``A01_s1_w1``, ``plate1_B03_field2``, ``r01c02f03`` and
    ``Assay_B03_T0001F002L01A01Z01C02``. Returns texts by ``plate``, ``well`` (as
    "B03"), ``field`` (without leading zeros) and ``channel``, "" where absent, and
    ``stem``: the name without its channel, which all channels of one field share.
    """
    fields: dict[str, str] = {}
    rest, shared = stem, stem
    for pattern in _PATTERNS:
        match = pattern.search(rest)
        if match is None or set(match.groupdict()) <= set(fields):
            continue
        parts = {key: text for key, text in match.groupdict().items() if text}
        if "row" in parts:
            well = parse_well_position(parts.pop("row"), parts.pop("column"))
            parts["well"] = well_name(well) if well else ""
        elif "well" in parts:
            well = parse_well(parts["well"])
            if well is None:
                continue
            parts["well"] = well_name(well)
        if "channel" in parts and "channel" not in fields:
            is_alone = match.start("channel") == match.start()
            text = match[0] if is_alone else match["channel"]
            before, _, after = shared.rpartition(text)
            shared = before.rstrip("_-. ") + after
        if "field" in parts:
            parts["field"] = str(int(parts["field"]))
        fields = parts | fields
        # A space replaces the match, so that the following text still begins a word.
        rest = rest[: match.start()] + " " + rest[match.end() :]
    none = dict.fromkeys(("plate", "well", "field", "channel"), "")
    return {**none, **fields, "stem": shared.strip("_-. ")}


def has_image_pairs(folder: Path) -> bool:
    """Return whether a folder holds an image and a labels file of the same name.

    The first 2,000 images of each folder are inspected. True, too, if one image has
    several labels files, which raises an error when the folder is opened; False if it
    cannot be listed.
    """
    try:
        files = _list_images_and_labels(folder, max_per_folder=_FIRST)
        return bool(len(files) and _pair_files(files, folder)[0])
    except OSError:
        return False
    except DataError:
        return True  # errors are reported when the folder is opened


def find_image_pairs(folder: Path) -> tuple[list[ImagePair], list[str]]:
    """Pair the images and labels of a folder and its subfolders, by their names.

    Returns the pairs, sorted by name, and sentences on files left out, as they have no
    counterpart or the name of another image. Raises DataError if there are no images or
    no pairs, or one image has several labels files.
    """
    files = _list_images_and_labels(folder)
    if files.empty:
        raise DataError(
            f"{folder.name} holds no images ({', '.join(IMAGE_ENDINGS)}): choose the "
            "folder with images and their labels."
        )
    pairs, notes = _pair_files(files, folder)
    if not pairs:
        n_labels = int(files["is_labels"].sum())
        raise DataError(
            f"{folder.name} holds {count_text(len(files) - n_labels, 'image')} and "
            f"{count_text(n_labels, 'labels file')}, and no image has labels of its "
            f"name. {PAIRING_HINT}"
        )
    return pairs, notes


def find_tables(folder: Path, pairs: Sequence[ImagePair]) -> list[Path]:
    """Return the .csv and .tsv files in a folder or beside its images, sorted."""
    folders = {folder, *(path.parent for one in pairs for path in one.images)}
    paths = (f.glob(f"[!.]*.{end}") for f in folders for end in ("csv", "tsv"))
    return sorted(chain.from_iterable(paths))


def _list_images_and_labels(
    folder: Path, max_per_folder: int | None = None
) -> pd.DataFrame:
    """Return a table of the images and labels in a folder and its subfolders.

    Columns are those of :func:`_parse_file_path`. ``max_per_folder``: largest number of
    files from each folder; None for all. Hidden files, .zarr folders, folders more than
    three deep, and files after the first 200,000 are left out.
    """
    files: list[dict[str, object]] = []
    for subfolder, inside, names in os.walk(folder):
        parts = Path(subfolder).relative_to(folder).parts
        inside[:] = sorted(filter(_IS_SHOWN, inside)) if len(parts) < _DEEPEST else []
        pictures = [x for x in names if x.lower().endswith(IMAGE_ENDINGS)]
        for name in sorted(filter(_IS_SHOWN, pictures))[:max_per_folder]:
            files.append(_parse_file_path(Path(subfolder, name), (folder.name, *parts)))
        if len(files) >= _MAX_FILES:
            break
    return pd.DataFrame(files[:_MAX_FILES])


def _parse_file_path(path: Path, parts: tuple[str, ...]) -> dict[str, object]:
    """Parse name and folders of an image or labels file into fields, by their names.

    ``parts``: names of the folders, from the opened one down. Besides the fields of the
    name and the path:

    - ``folder``: folders below the opened one, but for such as "images" and "labels";
      also the plate, if the name has none,
    - ``is_labels``: whether the name ends as of labels, or the innermost folder of
      these is one of labels,
    - ``by_file`` and ``by_field``: keys by which images and labels are paired, by the
      name and by the name without its channel.
    """
    stem = path.stem.removesuffix(".ome").removesuffix(".OME")
    roles = [part.lower() for part in parts if part.lower() in _ROLES]
    is_labels = bool(roles and roles[-1] in _LABEL_FOLDERS)
    if match := _LABEL_SUFFIX.search(stem):
        is_labels, stem = True, stem[: match.start()]
    above = "/".join(part for part in parts[1:] if part.lower() not in _ROLES)
    fields = parse_file_name(stem)
    shared = fields.pop("stem")
    fields["plate"] = fields["plate"] or above
    return {
        **fields, "path": path, "folder": above, "stem": stem, "shared": shared,
        "is_labels": is_labels, "by_file": f"{above}/{stem}".lower(),
        "by_field": f"{above}/{shared}".lower(),
    }  # fmt: skip


def _pair_files(files: pd.DataFrame, folder: Path) -> tuple[list[ImagePair], list[str]]:
    """Return image pairs, sorted by name, and sentences on files left out.

    ``files``: table of :func:`_parse_file_path`. Left out are images without labels,
    labels without image, and images of equal names. Images of one field are channels of
    one pair, unless a field has several labels files: then each channel is an image of
    its own. Raises DataError if one image has several labels files.
    """
    labels, images = files[files["is_labels"]], files[~files["is_labels"]]
    # If each channel has its own labels, each channel is an image of its own.
    key = "by_file" if labels["by_field"].duplicated().any() else "by_field"

    def list_names(some: pd.DataFrame) -> list[str]:
        return [str(path.relative_to(folder)) for path in some["path"]]

    for _, group in labels[labels[key].duplicated(keep=False)].groupby(key, sort=False):
        raise DataError(
            f"{len(group)} labels files belong to one image: "
            f"{list_text(list_names(group))}; leave one of them in the folder."
        )
    label_paths = dict(zip(labels[key], labels["path"], strict=True))
    has_labels = images[key].isin(label_paths)
    is_twice = has_labels & images.duplicated([key, "channel"], keep=False)
    is_twice = images[key].isin(images[key][is_twice])
    notes = []
    for lost, what, lack in (
        (images[~has_labels], "image", "no labels file"),
        (labels[~labels[key].isin(images[key])], "labels file", "no image"),
        (images[is_twice], "image", "another image of that name beside it"),
    ):
        if alone := list_names(lost):
            of_all = count_text(len(alone), what)
            notes.append(f"Left out, with {lack}: {of_all} ({list_text(alone)}).")
    groups = images[has_labels & ~is_twice].groupby(key, sort=False)
    pairs = [_to_image_pair(group, label_paths[name]) for name, group in groups]
    return sorted(pairs, key=lambda pair: _natural_sort_key(pair.name)), notes


def _to_image_pair(images: pd.DataFrame, labels: Path) -> ImagePair:
    """Build the pair of the images of one field, sorted by channel, and their labels.

    Its name has the folder in front; of several images it is without the channel.
    """
    images = images.sort_values(
        "channel", key=lambda names: names.map(_natural_sort_key)
    )
    first, several = images.iloc[0], len(images) > 1
    name = first["shared"] if several else first["stem"]
    return ImagePair(
        name=f"{first['folder']}/{name}" if first["folder"] else name,
        images=tuple(images["path"]),
        labels=labels,
        channels=tuple(images["channel"]) if several else (),
        **{key: first[key] for key in ("plate", "well", "field")},
    )


def _natural_sort_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key by which "A2" comes before "A10"."""
    parts = re.split(r"(\d+)", text.lower())
    return tuple((int(p), "") if p.isdecimal() else (-1, p) for p in parts)
