"""Find the positions of rows in tissue, and their sections, by the names of columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.column_names import Role, is_sample_name
from napari_embedding_game.data.columns import is_position_name, split_camel_case
from napari_embedding_game.data.roles import LEVELS, MAX_GROUPS, find_track_roles
from napari_embedding_game.data.tissue import Tissue, Unit, to_tissue_positions

_AXES: tuple[tuple[str, str, Unit], ...] = (
    ("(?-i:@_centroid)", "x y z", "µm"),  # Xenium; X_centroid of MCMICRO is in pixels
    ("center@_global", "x y z", "pixel"),  # CosMx
    ("@_global", "x y z", "pixel"),
    ("@_slide", "x y z", "µm"),  # CosMx, in mm as the name says
    ("(?-i:center_@)", "x y z", "µm"),  # MERSCOPE
    ("(location|areashape)_center_@", "x y z", "pixel"),  # CellProfiler
    ("pxl_@_in_fullres", "col row", "pixel"),  # Visium
    ("centroid-@", "2 1 0", "pixel"),  # scikit-image, whose axes are z, y, x
    ("centroid-@", "1 0", "pixel"),
    ("@_centroid", "x y z", "pixel"),
    ("(centroid|center|position|pos)[_ ]?@", "x y z", ""),  # QuPath: Centroid X µm
    ("@[_ ](center|position|pos)", "x y z", ""),
    ("sdim@", "x y z", ""),  # Giotto
    ("center@_local", "x y z", "pixel"),  # CosMx, each field from 0
    ("spatial[_ ]?@", "1 2 3", ""),
    (r"(?<![_\- .:])@m?", "x y z", ""),  # ImageJ's X and XM, but not max_x
    ("array_@", "col row", ""),  # numbers of the spots of Visium
)
"""Names of columns of positions, the best first: a pattern in which @ is the axis, the
axes x, y (and z), and the unit where the name does not say it."""
UNITS: dict[str, tuple[Unit, float]] = {
    **dict.fromkeys(("um", "µm", "μm", "micron", "microns"), ("µm", 1.0)),
    **dict.fromkeys(("micrometer", "micrometre"), ("µm", 1.0)),
    **dict.fromkeys(("px", "pixel", "pixels"), ("pixel", 1.0)),
    **dict.fromkeys(("mm", "millimeter", "millimetre"), ("µm", 1_000.0)),
    **dict.fromkeys(("nanometer", "nanometre"), ("µm", 0.001)),
}
"""Unit, and factor, by the ending of the name of a column, or by an axis of OME-Zarr.
"""
_PREFIX = r"(?P<prefix>.*[_\- .:])?"
_ENDING = r"([_\- .]?\W?(?P<unit>[uµμ]m|microns?|px|pixels?|mm)\W?)?"
_SECTIONS = (
    *("library", "section", "slice", "puck", "core", "roi", "image", "slide"),
    *("sample", "fov", "field", "site", "region"),
)
"""Words in the names of columns of sections, the first that is there counts."""
_ENDING_OF_SECTIONS = re.compile(r"[_\- .]?(id|name|no|number|index|key)?s?$", re.I)
_MAX_COMPARED = 50_000
"""Number of rows whose nearest neighbours show whether sections lie on each other."""
_LEAST_MIXED = 0.25
"""Share of the rows of a section whose nearest neighbour is of another section, from
which on sections lie on each other: of sections side by side only the rows at the
border have such neighbours."""


@dataclass(frozen=True)
class _Axes:
    """Columns with the positions of rows."""

    columns: tuple[str, ...]
    """Names of the columns of x, y (and z)."""
    unit: Unit
    origin: str
    factor: float = 1.0
    """Number by which the values become positions in the unit."""


def find_tissue(
    table: pd.DataFrame,
    chosen_roles: Mapping[str, Role],
    *,
    obsm_keys: Sequence[str] = (),
    section_column: str | None = None,
    unit: Unit = "",
    without: Collection[str] = (),
) -> Tissue | None:
    """Return the positions of the rows of a table in tissue; None without any.

    The first of these with two different positions counts:

    1. the two or three columns to which a person gave the role of positions, or those
       of them that come first below;
    2. entries of ``obsm``, those with the shortest key first;
    3. columns by their names, in the order of :data:`_AXES`.

    Columns to which a person gave another role do not count. A third axis does if its
    values differ.

    ``table`` (N rows): metadata; the axes of ``obsm["spatial"]`` are its columns
    "spatial 1", "spatial 2" and so on. ``obsm_keys``: keys of ``obsm`` with positions.
    ``section_column``: column of the sections if the source says so, "" if it says that
    there is a single section; None to look for it by :func:`find_section_column`.
    ``unit``: unit of the entries of ``obsm``. ``without``: columns that are measures.
    """
    names = [str(name) for name in table.columns]
    usable = [x for x in names if x not in without]
    usable = [x for x in usable if chosen_roles.get(x, "positions") == "positions"]
    found = [*_find_obsm_axes(names, obsm_keys, unit), *_find_named_axes(usable)]
    found = [axes for axes in found if {*axes.columns} <= {*usable}]
    chosen = [x for x in usable if chosen_roles.get(x) == "positions"]
    first = [axes for axes in found if {*axes.columns} <= {*chosen}]
    if not first and len(chosen) in (2, 3):
        first = [_Axes(tuple(chosen), "", ", ".join(chosen))]
    for axes in (*first, *found):
        positions = _read_positions(table, axes)
        if positions is None:
            continue
        # Columns beside obsm may tell the unit of its numbers.
        equal = (x for x in found if _are_equal(_read_positions(table, x), positions))
        unit = axes.unit or next((x.unit for x in equal if x.unit), "")
        column = section_column
        if column is None:
            column = find_section_column(table, positions, chosen_roles)
        return Tissue(positions, unit, axes.origin, column)
    return None


def order_axes(names: Sequence[str]) -> list[str]:
    """Return names of axes as x, y (and z) if they say so, else as given."""
    for axes in _find_named_axes(names):
        if len(axes.columns) == len(names):
            return [*axes.columns]
    return [*names]


def _find_obsm_axes(
    names: Sequence[str], keys: Sequence[str], unit: Unit
) -> Iterator[_Axes]:
    """Yield the columns of entries of ``obsm``, those with the shortest key first."""
    for key in sorted(keys, key=lambda key: (len(key), key)):
        columns = (f"{key} {i + 1}" for i in range(3))
        yield _Axes(tuple(x for x in columns if x in names), unit, f"obsm['{key}']")


def _find_named_axes(names: Sequence[str]) -> Iterator[_Axes]:
    """Yield columns of positions by their names, the best first.

    Columns with the same prefix belong together, as "Nuclei_Location_Center_X" and
    "Nuclei_Location_Center_Y".
    """
    names = [name for name in names if is_position_name(name)]
    for pattern, words, usual in _AXES:
        found: dict[tuple[str, str], dict[int, str]] = {}
        for axis, word in enumerate(words.split()):
            one = re.compile(_PREFIX + pattern.replace("@", word) + _ENDING, re.I)
            for match in filter(None, map(one.fullmatch, names)):
                key = match["prefix"] or "", (match["unit"] or "").lower()
                found.setdefault(key, {}).setdefault(axis, match[0])
        for (_, ending), by_axis in found.items():
            if {0, 1} <= by_axis.keys():
                columns = tuple(by_axis[axis] for axis in sorted(by_axis))
                unit, factor = UNITS.get(ending, (usual, 1.0))
                yield _Axes(columns, unit, ", ".join(columns), factor)


def _read_positions(table: pd.DataFrame, axes: _Axes) -> NDArray[np.float32] | None:
    """Return the positions (N, 2 or 3) in columns of a table, float32.

    A row without a finite value on every axis is NaN. None if the columns hold no
    numbers, or fewer than two different positions.
    """
    values = table[[*axes.columns]].apply(pd.to_numeric, errors="coerce")
    positions = values.to_numpy(np.float64, na_value=np.nan) * axes.factor
    if positions.shape[1] == 3 and not _has_different_values(positions[:, 2]):
        positions = positions[:, :2]
    found = to_tissue_positions(positions)
    return found if _has_different_values(found) else None


def _are_equal(one: NDArray[np.float32] | None, other: NDArray[np.float32]) -> bool:
    """Return whether two sets of positions have the same x and y."""
    if one is None:
        return False
    return np.allclose(one[:, :2], other[:, :2], rtol=1e-4, equal_nan=True)


def _has_different_values(values: NDArray[np.floating]) -> bool:
    """Return whether two finite values along the first axis are different."""
    finite = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(all="ignore"):
        span = np.fmax.reduce(finite) - np.fmin.reduce(finite)
    return bool(np.any(span > 0))


# Sections


def find_section_column(
    table: pd.DataFrame,
    positions: NDArray[np.float32],
    chosen_roles: Mapping[str, Role],
) -> str:
    """Return the first column whose groups lie on each other; "" if there is none.

    Looked for by name in the order of :data:`_SECTIONS`, then among other columns of
    samples. Columns to which a person gave a role other than samples or groups do not
    count, and neither do times and tracks of objects that move. Sections that lie side
    by side need no column.
    """
    names = [str(name) for name in table.columns[~table.columns.duplicated(keep=False)]]
    roles = {**find_track_roles(table, chosen_roles), **chosen_roles}
    names = [x for x in names if roles.get(x, "groups") in LEVELS]
    order = {word: rank for rank, word in enumerate((*_SECTIONS, ""))}
    words = {name: _find_section_word(name) for name in names if is_section_name(name)}
    for name in sorted(words, key=lambda name: order[words[name]]):
        if are_on_each_other(positions, pd.factorize(table[name])[0]):
            return name
    return ""


def is_section_name(name: str) -> bool:
    """Return whether a column's name is one of sections, or of samples."""
    return bool(_find_section_word(name)) or is_sample_name(name)


def _find_section_word(name: str) -> str:
    """Return the word of :data:`_SECTIONS` that a name ends with; "" for none."""
    plain = _ENDING_OF_SECTIONS.sub("", split_camel_case(name)).lower()
    last = re.split(r"[_\- .]", plain)[-1]
    return last if last in _SECTIONS else ""


def are_on_each_other(
    positions: NDArray[np.float32], codes: NDArray[np.integer]
) -> bool:
    """Return whether the positions of any group lie among those of other groups.

    ``positions`` (N, 2 or 3), NaN where unknown. ``codes`` (N,): group of each row, -1
    for none. True if the nearest neighbour is of another group for a quarter of a
    group's rows, two standard deviations of this number more than by chance. False with
    fewer than 2 or more than 500 groups.
    """
    from scipy.spatial import cKDTree

    is_known = np.isfinite(positions).all(axis=1) & (codes >= 0)
    positions, codes = positions[is_known], codes[is_known]
    sizes = np.bincount(codes) if len(codes) else np.zeros(0, int)
    if not 2 <= np.count_nonzero(sizes) <= MAX_GROUPS:
        return False
    rows = np.arange(len(codes))
    if len(rows) > _MAX_COMPARED:
        rows = np.random.default_rng(0).choice(rows, _MAX_COMPARED, replace=False)
    _, nearest = cKDTree(positions).query(positions[rows], k=2)
    other = np.where(nearest[:, 0] == rows, nearest[:, 1], nearest[:, 0])
    n_mixed = np.bincount(codes[rows[codes[other] != codes[rows]]], None, len(sizes))
    n_rows = np.bincount(codes[rows], None, len(sizes))
    return bool((n_mixed - 2 * np.sqrt(n_mixed) > _LEAST_MIXED * n_rows).any())
