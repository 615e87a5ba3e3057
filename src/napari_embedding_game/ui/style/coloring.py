"""The choices of "Colour by", and the colours and legend of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from napari.utils.colormaps import ensure_colormap
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import (
    MISPLACED_STRETCH,
    OUTLIER_ISOLATION,
    Snapshot,
)
from napari_embedding_game.data.column_names import names_kinds
from napari_embedding_game.data.columns import NO_LEVEL, drawable, n_levels
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import PointColors
from napari_embedding_game.data.images.join import id_columns
from napari_embedding_game.data.palette import Colors, level_colors, point_colors
from napari_embedding_game.session.cluster_report import is_continuous
from napari_embedding_game.session.session import Session

CLUSTER, STRETCH, PRESSURE = "Cluster", "Stretch", "Pressure"
ISOLATION, MOVEMENT = "Isolation", "Movement"
BUILT_IN = (CLUSTER, STRETCH, ISOLATION, PRESSURE, MOVEMENT)
LONG_NAMES = {
    STRETCH: "Misplaced (stretch)",
    ISOLATION: "Outliers (isolation)",
    PRESSURE: "Crowded (pressure)",
}
"""What the built-in choices are called in the window."""
TITLES = {
    STRETCH: f"Red: misplaced, {MISPLACED_STRETCH:.0f} or more: doubt these.",
    ISOLATION: f"Red: outliers, above {OUTLIER_ISOLATION:g}: doubt these.",
    MOVEMENT: "Movement to the other map, in radii of this one.",
}
"""What legends say of a choice, where that is more than its name."""
ALARMS = {STRETCH: MISPLACED_STRETCH, ISOLATION: OUTLIER_ISOLATION}
"""Values from which on a point is drawn in red."""
RED = np.array([1.0, 0.31, 0.21, 1.0], dtype=np.float32)
OF_FILE = " (file)"
COLUMN = "column"
"""What a column of the metadata is called, and of a profile of neither genes nor
measures."""
POSITION_COLUMNS = frozenset({"time", "centroid_z", "centroid_y", "centroid_x"})
"""Columns that say where an object lies, which the map does not."""
MAX_LEVELS, MAX_COLORS = 60, 1_000
"""A column with more different names than these has no legend; is no colour."""
TOO_MANY = "{}: {:,} names, too many to list; some have colours alike."
MAX_VALUES = 60
"""More measures than this are found by name, as genes are."""
SHADES, BINS, MAX_COUNTED = 256, 64, 50_000
"""Steps of a colour bar and of its histogram; points that this is of, about."""
STEPS = 1_024
"""Colours of a scale: each is at most 0.3 of 255 off."""
MISSING = np.array([0.55, 0.55, 0.55, 0.55], dtype=np.float32)
DARKEST = 0.2
"""Where viridis begins: what is below cannot be seen on a black canvas."""


@dataclass(frozen=True, eq=False)
class Coloring:
    """The colour of each point, and how to read it: by levels, or on a scale."""

    rgba: Colors
    """(N, 4), not to be changed."""
    title: str = ""
    levels: tuple[tuple[str, int], ...] = ()
    """Name, and the points that have it; none of clusters, whose list says it."""
    colors: Colors | None = None
    """Of the levels."""
    limits: tuple[float, float] | None = None
    """Values of the first and the last colour."""
    extent: tuple[float, float] | None = None
    """Lowest and highest value: how far the limits can be moved."""
    bar: tuple[Colors, NDArray[np.integer]] | None = None
    """Colours (SHADES, 4), and of how many points (BINS,), from end to end of these."""
    find_levels: Callable[[], pd.Categorical | None] = lambda: None
    """Returns the group that each point is in; None of a scale."""

    def for_figure(self, title: str) -> PointColors:
        """Return the colours as a figure takes them."""
        limits, bar = self.limits, self.bar
        if limits is None:
            return PointColors(self.rgba, title, self.find_levels())
        scale = viridis_shades()
        if bar is not None and (bar[0][-1] == RED).all():  # whatever the limits
            scale, limits = bar[0], self.extent
        return PointColors(self.rgba, title, scale=scale, limits=limits)


UNCOLORED = Coloring(np.empty((0, 4), np.float32))


def color_points(
    choice: str,
    session: Session,
    snapshot: Snapshot,
    limits: tuple[float, float] | None = None,
) -> Coloring:
    """Return the points of a snapshot coloured by one of the choices, or by a gene.

    Parameters
    ----------
    limits : (float, float), optional
        Values of the first and the last colour; by default those that suit them.

    Raises
    ------
    DataError
        The gene is in a file that cannot be read any more.
    """
    if choice == CLUSTER:
        clustering = session.clusters.clustering
        return Coloring(point_colors(clustering), find_levels=lambda: clustering.names)
    if choice not in BUILT_IN:
        return color_by_column(choice, session.dataset, limits)
    values, usual = _built_in_values_and_limits(choice, session, snapshot)
    if values is None or len(values) != len(snapshot.embedding):
        rgba = np.tile(MISSING, (len(snapshot.embedding), 1))
        title = LONG_NAMES.get(choice, choice)
        return Coloring(rgba, f"{title}: not known of this map.")
    extent = value_extent(values)
    if usual is not None:
        extent = 0.0, float(np.clip(extent[1], usual[1], 2 * usual[1]))
    limits, alarm = (
        limits or usual or percentile_limits(values),
        ALARMS.get(choice, np.inf),
    )
    values = np.minimum(values, extent[1])  # also what has no bound
    return _color_on_scale(TITLES.get(choice, ""), values, limits, extent, alarm)


def _built_in_values_and_limits(
    choice: str, session: Session, snapshot: Snapshot
) -> tuple[NDArray[np.floating] | None, tuple[float, float] | None]:
    """Return values of a built-in choice, if they are known, and their usual limits."""
    if choice == STRETCH:
        return snapshot.stretch, (0.0, MISPLACED_STRETCH)
    if choice == ISOLATION:
        return snapshot.isolation, (1.0, OUTLIER_ISOLATION)
    if choice == PRESSURE:
        values = snapshot.pressure if snapshot.has_pressure else np.empty(0)
        return values, (0.0, percentile_limits(values)[1])
    compared = session.view.compared
    return None if compared is None else compared.maps.moved, None


def color_by_column(
    choice: str, dataset: Dataset, limits: tuple[float, float] | None = None
) -> Coloring:
    """Return points coloured by a metadata column or a gene, as :func:`colored`."""
    choices = _find_colorable_columns(dataset)
    if choice not in choices.columns:
        index = dataset.profile_names.index(choices.values[choice])
        return color_by_values(
            dataset.expression.column(index), limits
        )  # as logarithms
    column = choices.columns[choice]
    values = dataset.obs[column]
    if is_continuous(values):
        return color_by_values(values.to_numpy(dtype=float, na_value=np.nan), limits)
    whole = None if column in dataset.added_columns else dataset.source_obs
    if whole is not None and column in whole and values.dtype != "category":
        values = values.astype(whole[column].astype("category").dtype)
    return _color_by_levels(choice, values, dataset.level_colors.get(column, {}))


def color_by_values(
    numbers: NDArray[np.floating], limits: tuple[float, float] | None = None
) -> Coloring:
    """Return points coloured by numbers (N,), NaN where one is missing."""
    numbers = drawable(numbers)
    limits = limits or percentile_limits(numbers)
    title = "" if np.isfinite(numbers).all() else "Grey: missing."
    return _color_on_scale(title, numbers, limits, value_extent(numbers))


def _color_on_scale(
    title: str,
    numbers: NDArray[np.floating],
    limits: tuple[float, float],
    extent: tuple[float, float],
    alarm: float = np.inf,
) -> Coloring:
    """Return points coloured by numbers (N,), from those of an alarm on in red."""

    def paint(values: NDArray[np.floating]) -> Colors:
        rgba = value_colors(values, limits)
        rgba[values >= alarm] = RED
        return rgba

    some = numbers[:: 1 + len(numbers) // MAX_COUNTED]
    low, high = extent
    shares = (some[np.isfinite(some)] - low) / (high - low)  # bins have a width
    counts = np.histogram(shares, BINS, (0.0, 1.0))[0]
    bar = paint(np.linspace(*extent, SHADES)), counts
    return Coloring(paint(numbers), title, limits=limits, extent=extent, bar=bar)


def _color_by_levels(
    name: str, values: pd.Series, color_of: Mapping[str, str]
) -> Coloring:
    """Return points coloured by names, some in colours that the file has for them."""
    whole = values.astype("category").cat
    coded = whole.remove_unused_categories().cat
    names, codes = coded.categories, coded.codes.to_numpy()
    is_there = whole.categories.isin(names)  # a part of a map keeps its colours
    palette = level_colors(whole.categories, color_of)[is_there]
    table = np.concatenate([palette, MISSING[None]])  # whose code is -1: the last
    levels = pd.Categorical.from_codes(codes, names)
    options = {"title": TOO_MANY.format(name, len(names))}
    if len(names) <= MAX_LEVELS:
        n_missing, *counts = np.bincount(codes + 1, minlength=len(names) + 1).tolist()
        rows = [*zip(map(str, names), counts, strict=True)]
        rows += [(NO_LEVEL, n_missing)] if n_missing else []
        options |= {"title": name, "levels": tuple(rows), "colors": table[: len(rows)]}
    return Coloring(table.take(codes, axis=0), find_levels=lambda: levels, **options)


def list_color_choices(dataset: Dataset | None) -> list[str]:
    """Return what the points of a dataset can be coloured by, best known first.

    A column that is called as one of the built-in ones is "(file)".
    """
    if dataset is None:
        return list(BUILT_IN)
    _, columns, values = _find_colorable_columns(dataset)
    # Few measures are listed as well, in their own units.  Genes are too many, and
    # the names of components or pixels only number them.
    named = {name.rstrip("0123456789") for name in dataset.profile_names}
    is_named = dataset.profile is not dataset.X or len(named) > 1
    is_measured = dataset.images is None and not dataset.has_expression
    if not (is_named and is_measured) or len(values) > MAX_VALUES:
        values = {}
    others = [one for one, name in values.items() if name not in columns.values()]
    return [*BUILT_IN, *columns, *others]


class _ColorableColumns(NamedTuple):
    """The columns of a dataset that can be coloured by; slow to find."""

    usable: list[str]
    """Informative columns for one row."""
    columns: dict[str, str]
    """All informative columns, by choice."""
    values: dict[str, str]
    """Genes, or other columns of the profile, by choice."""


_cache: WeakKeyDictionary[Dataset, _ColorableColumns] = WeakKeyDictionary()


def _find_colorable_columns(dataset: Dataset) -> _ColorableColumns:
    """Return what the points of a dataset can be coloured by."""
    obs, named = dataset.obs, _cache.get(dataset)
    if named is None:
        ranks = {c: _column_rank(obs[c]) for c in obs.columns}
        ranked = sorted((c for c in ranks if ranks[c]), key=ranks.__getitem__)
        labels = [] if dataset.objects is None else id_columns(obs)[:1]
        usable = [c for c in ranked if ranks[c] != _CROWDED and str(c) not in labels]
        columns: dict[str, str] = {}
        for column in map(str, ranked):
            choice = column
            while choice in BUILT_IN or choice in columns:
                choice += OF_FILE
            columns[choice] = column
        values: dict[str, str] = {}
        for name in dataset.profile_names:
            choice = name + OF_FILE if name in BUILT_IN else name
            values[name + dataset.value_suffix if choice in columns else choice] = name
        named = _cache[dataset] = _ColorableColumns(
            list(map(str, usable)), columns, values
        )
    return named


_NAMES, _CROWDED, _NUMBERS = 1, 2, 3


def _column_rank(values: pd.Series) -> int:
    """Return where a column is listed: names, very many names, numbers; 0 nowhere.

    Names that hardly two rows share, as barcodes, are nowhere if they are many.
    """
    if not values.notna().any():
        return 0
    if is_continuous(values):
        return _NUMBERS
    n = n_levels(values, MAX_COLORS)
    if n <= MAX_LEVELS:
        return _NAMES
    return _CROWDED if n <= min(MAX_COLORS, len(values) // 2) else 0


def informative_metadata_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that are informative for one row.

    Categories come first; the label of an object, which no two rows share, is none.
    """
    return list(_find_colorable_columns(dataset).usable)


def composition_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns for the composition of a cluster.

    Columns that name kinds of cells come first; ids, and positions of objects, are left
    out.
    """
    positions = POSITION_COLUMNS if dataset.objects is not None else frozenset()
    named = [
        name for name in informative_metadata_columns(dataset) if name not in positions
    ]
    columns = [name for name in named if dataset.roles[name] != "ids"]

    def is_no_kind(name: str) -> bool:
        return not names_kinds(name) or is_continuous(dataset.obs[name].head(1000))

    return sorted(columns, key=is_no_kind)


def name_in_file(choice: str, dataset: Dataset) -> str | None:
    """Return what a choice is called in the file; None if it is not of the file."""
    choices = _find_colorable_columns(dataset)
    return choices.columns.get(choice) or choices.values.get(choice)


def choice_of_column(name: str, dataset: Dataset) -> str:
    """Return the choice of an informative metadata column."""
    return _choice_with_name(name, _find_colorable_columns(dataset).columns)


def choice_of_feature(name: str, dataset: Dataset) -> str:
    """Return the choice that means a gene, or another column of the profile."""
    return _choice_with_name(name, _find_colorable_columns(dataset).values)


def _choice_with_name(name: str, names: Mapping[str, str]) -> str:
    return next(choice for choice, one in names.items() if one == name)


def replace_gene_word(text: str, dataset: Dataset | None) -> str:
    """Return a text about genes as one about what the columns of these data are."""
    word = "gene" if dataset is None else dataset.word
    return text.replace("gene", word).replace("Gene", word.capitalize())


def percentile_limits(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the 1st and 99th percentile: a few outliers must not grey the map."""
    valid = values[np.isfinite(values)]
    low, high = np.percentile(valid, [1, 99]) if len(valid) else (0.0, 0.0)
    # Most values may be the same, as the zeros of a rare gene.
    return (float(low), float(high)) if low < high else value_extent(valid)


def value_extent(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the lowest and the highest value, which are never the same."""
    valid = values[np.isfinite(values)]
    low, high = (float(valid.min()), float(valid.max())) if len(valid) else (0.0, 1.0)
    return low, high if high > low else low + max(1.0, abs(low))


def viridis_shades() -> Colors:
    """Return viridis from the first to the last colour: (SHADES, 4)."""
    return value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0))


def value_colors(values: NDArray[np.floating], limits: tuple[float, float]) -> Colors:
    """Return viridis colours between the limits; grey where a value is missing."""
    low, high = limits
    shade = np.clip((values - low) / (high - low), 0, 1) * (STEPS - 1)
    steps = np.where(np.isfinite(values), shade + 0.5, STEPS).astype(np.intp)
    colors = ensure_colormap("viridis").map(np.linspace(DARKEST, 1, STEPS))
    table = np.concatenate([colors, MISSING[None]]).astype(np.float32)
    return table.take(steps, axis=0)
