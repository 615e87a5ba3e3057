"""The choices of "Colour by", and the colours and legend for each choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
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
from napari_embedding_game.data.column_names import is_cell_type_name
from napari_embedding_game.data.columns import (
    NO_LEVEL,
    count_levels,
    replace_infinite_by_nan,
)
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import PointColors
from napari_embedding_game.data.images.join import find_id_columns
from napari_embedding_game.data.palette import Colors, level_colors, make_point_colors
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
"""The names of built-in choices in the window."""
TITLES = {
    STRETCH: f"Red: misplaced, {MISPLACED_STRETCH:.0f} or more. Doubt their place.",
    ISOLATION: f"Red: outliers, above {OUTLIER_ISOLATION:g}. Doubt their place.",
    MOVEMENT: "Movement to the other map, in radii of this one.",
}
"""Titles of legends that say more than the choice's name."""
ALARMS = {STRETCH: MISPLACED_STRETCH, ISOLATION: OUTLIER_ISOLATION}
"""Values from which on a point is painted red."""
RED = np.array([1.0, 0.31, 0.21, 1.0], dtype=np.float32)
OF_FILE = " (file)"
COLUMN = "column"
"""The word for a metadata column, and for a feature that is no gene or measure."""
POSITION_COLUMNS = frozenset({"time", "centroid_z", "centroid_y", "centroid_x"})
"""Columns with an object's place in the image, which says nothing of the map."""
MAX_LEVELS, MAX_COLORS = 60, 1_000
"""A column with more levels has no legend; with more than the second, no colours."""
TOO_MANY = "{}: {:,} names, too many to list; some have colours alike."
MAX_VALUES = 60
"""More measures than this are not listed, but found by name, as genes are."""
SHADES, BINS, MAX_COUNTED = 256, 64, 50_000
"""Colours of a colour bar, bins of its histogram, and about the number of points that
the histogram counts."""
STEPS = 1_024
"""Colours in the table of a scale: each is at most 0.3 of 255 off."""
MISSING = np.array([0.55, 0.55, 0.55, 0.55], dtype=np.float32)
CHANGE_COLORS = (
    (0.72, 0.30, 0.08),
    (0.95, 0.62, 0.36),
    (0.85,) * 3,
    (0.45, 0.68, 0.92),
    (0.13, 0.40, 0.72),
)
"""Red, green and blue from the lowest change by none to the highest."""
CHANGE_TITLE = "Blue: more. Orange: less. Grey: no change that holds."
DARKEST = 0.2
"""Where the scale begins in viridis: darker colours vanish on a black canvas."""


@dataclass(frozen=True, eq=False)
class Coloring:
    """The colour of each point with its legend: levels, or a scale."""

    rgba: Colors
    """Colours of the points (N, 4); not to be changed in place."""
    title: str = ""
    levels: tuple[tuple[str, int], ...] = ()
    """Name and number of points for each level; empty for clusters, which have a table.
    """
    colors: Colors | None = None
    """Colours of the levels (n_levels, 4)."""
    limits: tuple[float, float] | None = None
    """Values with the first and the last colour of a scale."""
    extent: tuple[float, float] | None = None
    """Lowest and highest value of a scale, between which the limits can be moved."""
    bar: tuple[Colors, NDArray[np.integer]] | None = None
    """Colours (SHADES, 4) and numbers of points (BINS,) over the extent of a scale."""
    shades: Colors | None = None
    """Colours (SHADES, 4) between the limits of a scale; None without a scale."""
    find_levels: Callable[[], pd.Categorical | None] = lambda: None
    """Returns the level of each point (N,); None for a scale."""

    def to_figure_colors(self, title: str) -> PointColors:
        """Return the colours, with levels or scale, as a figure takes them.

        A scale whose last colours are red is taken from the bar, with the extent as its
        limits; another one has its own colours between the limits.
        """
        limits, bar = self.limits, self.bar
        if limits is None:
            return PointColors(self.rgba, title, self.find_levels())
        scale = self.shades
        if bar is not None and (bar[0][-1] == RED).all():  # the scale has alarms
            scale, limits = bar[0], self.extent
        return PointColors(self.rgba, title, scale=scale, limits=limits)


UNCOLORED = Coloring(np.empty((0, 4), np.float32))


def color_points(
    choice: str,
    session: Session,
    snapshot: Snapshot,
    limits: tuple[float, float] | None = None,
) -> Coloring:
    """Return the coloring of a snapshot's points for one choice of "Colour by".

    A choice whose values are not known for this snapshot colours all points grey.

    Parameters
    ----------
    choice : str
        A built-in choice, or one of a metadata column or a feature.
    limits : (float, float), optional
        Values with the first and the last colour; by default the choice's usual limits,
        or percentiles of the values.

    Raises
    ------
    DataError
        The feature is in a file that cannot be read any more.
    """
    if choice == CLUSTER:
        clustering = session.clusters.clustering
        return Coloring(
            make_point_colors(clustering), find_levels=lambda: clustering.names_by_point
        )
    if choice not in BUILT_IN:
        return color_by_column_or_feature(choice, session.dataset, limits)
    values, usual = _find_built_in_values_and_limits(choice, session, snapshot)
    if values is None or len(values) != len(snapshot.embedding):
        rgba = np.tile(MISSING, (len(snapshot.embedding), 1))
        title = LONG_NAMES.get(choice, choice)
        return Coloring(rgba, f"{title}: not known of this map.")
    extent = compute_value_extent(values)
    if usual is not None:
        extent = 0.0, float(np.clip(extent[1], usual[1], 2 * usual[1]))
    limits, alarm = (
        limits or usual or compute_percentile_limits(values),
        ALARMS.get(choice, np.inf),
    )
    values = np.minimum(values, extent[1])  # isolation may be infinite
    return _color_on_scale(TITLES.get(choice, ""), values, limits, extent, alarm)


def _find_built_in_values_and_limits(
    choice: str, session: Session, snapshot: Snapshot
) -> tuple[NDArray[np.floating] | None, tuple[float, float] | None]:
    """Return the values (N,) and usual limits of a built-in choice except clusters.

    Values are None, or empty, where they are not known, as is movement without a
    comparison.  Limits are None for movement.
    """
    if choice == STRETCH:
        return snapshot.stretch, (0.0, MISPLACED_STRETCH)
    if choice == ISOLATION:
        return snapshot.isolation, (1.0, OUTLIER_ISOLATION)
    if choice == PRESSURE:
        values = snapshot.pressure if snapshot.has_pressure else np.empty(0)
        return values, (0.0, compute_percentile_limits(values)[1])
    compared = session.view.comparison
    return None if compared is None else compared.maps.movement, None


def color_by_column_or_feature(
    choice: str, dataset: Dataset, limits: tuple[float, float] | None = None
) -> Coloring:
    """Return the coloring for a choice that stands for a metadata column or a feature.

    Numbers are coloured on a scale with ``limits``, by default percentiles of them;
    changes of shares have a scale with 0 in its middle; levels have the file's colours,
    or others where the file has none.  Raises a DataError where the feature's file
    cannot be read any more, and a KeyError for a choice that the dataset does not have.
    """
    colorable = _find_colorable_columns(dataset)
    if choice not in colorable.columns:
        index = dataset.profile_names.index(colorable.values[choice])
        log_values = dataset.expression.make_dense_column(index)
        return color_by_values(log_values, limits)
    column = colorable.columns[choice]
    values = dataset.obs[column]
    if column in dataset.added_of_kind("change"):
        return color_by_changes(values.to_numpy(dtype=float), limits)
    if is_continuous(values):
        return color_by_values(values.to_numpy(dtype=float, na_value=np.nan), limits)
    source = None if column in dataset.added_columns else dataset.source_obs
    if source is not None and column in source and values.dtype != "category":
        values = values.astype(source[column].astype("category").dtype)
    return _color_by_levels(choice, values, dataset.level_colors.get(column, {}))


def color_by_values(
    numbers: NDArray[np.floating], limits: tuple[float, float] | None = None
) -> Coloring:
    """Return the coloring of points by numbers (N,) on a scale.

    ``limits`` are by default percentiles.  NaN and infinite numbers are grey, and the
    title then says so.
    """
    numbers = replace_infinite_by_nan(numbers)
    limits = limits or compute_percentile_limits(numbers)
    title = "" if np.isfinite(numbers).all() else "Grey: missing."
    return _color_on_scale(title, numbers, limits, compute_value_extent(numbers))


def color_by_changes(
    changes: NDArray[np.floating], limits: tuple[float, float] | None = None
) -> Coloring:
    """Return the coloring of points by changes (N,): orange below 0, blue above.

    ``limits`` are by default the largest change and its negative.  NaN is grey.
    """
    largest = float(np.nanmax(np.abs(changes), initial=0.0)) or 1.0
    extent = -largest, largest
    return _color_on_scale(
        CHANGE_TITLE, changes, limits or extent, extent, color_values=make_change_colors
    )


def _color_on_scale(
    title: str,
    numbers: NDArray[np.floating],
    limits: tuple[float, float],
    extent: tuple[float, float],
    alarm: float = np.inf,
    color_values: Callable[..., Colors] | None = None,
) -> Coloring:
    """Return the coloring of points by numbers (N,); from ``alarm`` on they are red.

    ``color_values``: function of values (n,) and limits that returns colours (n, 4), by
    default :func:`make_value_colors`.  The bar shows colours, and counts of about
    ``MAX_COUNTED`` numbers, over ``extent``.
    """
    color = color_values or make_value_colors

    def paint(values: NDArray[np.floating]) -> Colors:
        """Return colours (n, 4) of values (n,) with the limits and the alarm."""
        rgba = color(values, limits)
        rgba[values >= alarm] = RED
        return rgba

    counted = numbers[:: 1 + len(numbers) // MAX_COUNTED]
    low, high = extent
    # Of shares each bin has a width, even where the extent is tiny.
    shares = (counted[np.isfinite(counted)] - low) / (high - low)
    counts = np.histogram(shares, BINS, (0.0, 1.0))[0]
    bar = paint(np.linspace(*extent, SHADES)), counts
    shades = color(np.linspace(0, 1, SHADES), (0.0, 1.0))
    scale = {"limits": limits, "extent": extent, "bar": bar, "shades": shades}
    return Coloring(paint(numbers), title, **scale)


def _color_by_levels(
    title: str, values: pd.Series, file_colors: Mapping[str, str]
) -> Coloring:
    """Return the coloring of points by the levels of a column (N,).

    ``file_colors`` has the colours of some levels, as the file has them.  Rows without
    a level are grey, and the last level of the legend.  With more than ``MAX_LEVELS``
    used levels there is no legend, and the title says so.
    """
    categorical = values.astype("category").cat
    coded = categorical.remove_unused_categories().cat
    names, codes = coded.categories, coded.codes.to_numpy()
    # Colours are chosen among all categories, so that a child map keeps its colours.
    is_used = categorical.categories.isin(names)
    palette = level_colors(categorical.categories, file_colors)[is_used]
    table = np.concatenate([palette, MISSING[None]])  # code -1 takes the last colour
    levels = pd.Categorical.from_codes(codes, names)
    options = {"title": TOO_MANY.format(title, len(names))}
    if len(names) <= MAX_LEVELS:
        n_missing, *counts = np.bincount(codes + 1, minlength=len(names) + 1).tolist()
        rows = [*zip(map(str, names), counts, strict=True)]
        rows += [(NO_LEVEL, n_missing)] if n_missing else []
        options |= {"title": title, "levels": tuple(rows), "colors": table[: len(rows)]}
    return Coloring(table.take(codes, axis=0), find_levels=lambda: levels, **options)


def list_color_choices(dataset: Dataset | None) -> list[str]:
    """Return the choices of "Colour by": built-in ones, columns, then few features.

    A column with the name of a built-in choice ends with " (file)".  Features are named
    measures, up to ``MAX_VALUES``; genes, components and features of pictures are left
    out, and so are features that are columns as well.  Without a dataset only the
    built-in choices are returned.
    """
    if dataset is None:
        return list(BUILT_IN)
    _, columns, values = _find_colorable_columns(dataset)
    # A few measures are listed as well, in their own units.  Genes are too many, and
    # components or pixels only have numbers for names.
    stems = {name.rstrip("0123456789") for name in dataset.profile_names}
    is_named = dataset.has_own_profile or len(stems) > 1
    is_measured = dataset.images is None and not dataset.has_expression
    if not (is_named and is_measured) or len(values) > MAX_VALUES:
        values = {}
    added = [choice for choice, name in values.items() if name not in columns.values()]
    return [*BUILT_IN, *columns, *added]


class _ColorableColumns(NamedTuple):
    """The columns and features of a dataset that can colour the map."""

    usable: list[str]
    """Metadata columns that are informative for a single row."""
    columns: dict[str, str]
    """All metadata columns that can colour the map, by choice."""
    values: dict[str, str]
    """All features of the profile, by choice."""


_cache: WeakKeyDictionary[Dataset, _ColorableColumns] = WeakKeyDictionary()


def _find_colorable_columns(dataset: Dataset) -> _ColorableColumns:
    """Return the columns and features that can colour the map, cached by dataset.

    Columns are in the order of :func:`_rank_column`.  A choice is the name of its
    column or feature, with a suffix where a built-in choice or a column has that name.
    """
    obs, colorable = dataset.obs, _cache.get(dataset)
    if colorable is None:
        ranks = {c: _rank_column(obs[c]) for c in obs.columns}
        ranked = sorted((c for c in ranks if ranks[c]), key=ranks.__getitem__)
        labels = [] if dataset.objects is None else find_id_columns(obs)[:1]
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
        colorable = _ColorableColumns(list(map(str, usable)), columns, values)
        _cache[dataset] = colorable
    return colorable


_NAMES, _CROWDED, _NUMBERS = 1, 2, 3


def _rank_column(values: pd.Series) -> int:
    """Return the rank by which a metadata column is listed; 0 hides the column.

    Columns of up to ``MAX_LEVELS`` levels come first, then columns of more levels, then
    numbers.  A column is hidden if it has no values, more than ``MAX_COLORS`` levels,
    or more than ``MAX_LEVELS`` levels of which each has fewer than two rows on average,
    such as barcodes.
    """
    if not values.notna().any():
        return 0
    if is_continuous(values):
        return _NUMBERS
    n = count_levels(values, MAX_COLORS)
    if n <= MAX_LEVELS:
        return _NAMES
    return _CROWDED if n <= min(MAX_COLORS, len(values) // 2) else 0


def find_informative_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that are informative for one row, levels first.

    Numbers come last.  Labels of objects, and columns with more than ``MAX_LEVELS``
    levels, are left out.
    """
    return list(_find_colorable_columns(dataset).usable)


def composition_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns to show a cluster's composition by.

    Columns of levels whose name stands for kinds of cells come first.  Ids, tracks,
    times and positions of objects are left out, and so are columns that are not
    informative for one row (:func:`find_informative_columns`).
    """
    positions = POSITION_COLUMNS if dataset.objects is not None else frozenset()
    named = [
        name for name in find_informative_columns(dataset) if name not in positions
    ]
    of_rows = "ids", "tracks", "times"
    columns = [name for name in named if dataset.roles[name] not in of_rows]

    def is_no_kind(name: str) -> bool:
        """Return whether a column's name or values do not stand for kinds of cells."""
        return not is_cell_type_name(name) or is_continuous(dataset.obs[name])

    return sorted(columns, key=is_no_kind)


def choice_name_in_file(choice: str, dataset: Dataset) -> str | None:
    """Return the name of the column, else of the feature, that a choice stands for.

    None for a built-in or unknown choice.
    """
    colorable = _find_colorable_columns(dataset)
    return colorable.columns.get(choice) or colorable.values.get(choice)


def choice_of_column(name: str, dataset: Dataset) -> str:
    """Return the choice that stands for a metadata column.

    Raises StopIteration for a column that cannot colour the map.
    """
    return _find_choice_with_name(name, _find_colorable_columns(dataset).columns)


def color_by_column(session: Session, name: str) -> None:
    """Colour the map by a metadata column of the session's data.

    The colours stay if the column cannot colour the map, as one of too many levels.
    """
    assert session.dataset is not None
    with suppress(StopIteration):
        session.look.color_by = choice_of_column(name, session.dataset)


def choice_of_feature(name: str, dataset: Dataset) -> str:
    """Return the choice that stands for a feature of the profile.

    Raises StopIteration for another name.
    """
    return _find_choice_with_name(name, _find_colorable_columns(dataset).values)


def _find_choice_with_name(name: str, names: Mapping[str, str]) -> str:
    """Return the first choice for which ``names`` has this name.

    Raises StopIteration where there is none.
    """
    return next(choice for choice, other in names.items() if other == name)


def replace_gene_word(text: str, dataset: Dataset | None) -> str:
    """Return a text with "gene" replaced by the dataset's word for its features.

    "Gene" is replaced by the capitalized word.  Without a dataset the text stays.
    """
    word = "gene" if dataset is None else dataset.column_noun
    return text.replace("gene", word).replace("Gene", word.capitalize())


def compute_percentile_limits(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the 1st and the 99th percentile of the finite values.

    Where both are equal the extent (:func:`compute_value_extent`) is returned.
    Elsewhere the extent would leave the map in one colour for a few outliers.
    """
    valid = values[np.isfinite(values)]
    low, high = np.percentile(valid, [1, 99]) if len(valid) else (0.0, 0.0)
    # Most values may be equal, such as the zeros of a rare gene.
    return (float(low), float(high)) if low < high else compute_value_extent(valid)


def compute_value_extent(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the lowest and the highest finite value, the highest always above.

    Where all values are equal the highest is raised by at least 1.  Without finite
    values the extent is (0, 1).
    """
    valid = values[np.isfinite(values)]
    low, high = (float(valid.min()), float(valid.max())) if len(valid) else (0.0, 1.0)
    return low, high if high > low else low + max(1.0, abs(low))


def make_viridis_shades() -> Colors:
    """Return the colours of a scale in viridis, from first to last, (SHADES, 4)."""
    return make_value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0))


def make_value_colors(
    values: NDArray[np.floating], limits: tuple[float, float]
) -> Colors:
    """Return viridis colours (N, 4) for values (N,), clipped to the limits.

    Values that are not finite are grey.
    """
    return _map_to_colors(
        values, limits, ensure_colormap("viridis").map(np.linspace(DARKEST, 1, STEPS))
    )


def make_change_colors(
    values: NDArray[np.floating], limits: tuple[float, float]
) -> Colors:
    """Return colours (N, 4) from orange by light grey to blue, clipped to the limits.

    Values that are not finite are grey.
    """
    ends = np.linspace(-1, 1, len(CHANGE_COLORS))
    steps = np.linspace(-1, 1, STEPS)
    channels = [np.interp(steps, ends, one) for one in np.transpose(CHANGE_COLORS)]
    return _map_to_colors(values, limits, np.column_stack([*channels, np.ones(STEPS)]))


def _map_to_colors(
    values: NDArray[np.floating], limits: tuple[float, float], colors: NDArray[Any]
) -> Colors:
    """Return the colours (N, 4) of values, by a table (STEPS, 4) between the limits."""
    low, high = limits
    shade = np.clip((values - low) / (high - low), 0, 1) * (STEPS - 1)
    steps = np.where(np.isfinite(values), shade + 0.5, STEPS).astype(np.intp)
    table = np.concatenate([colors, MISSING[None]]).astype(np.float32)
    return table.take(steps, axis=0)
