"""The choices of "Colour by", and the colours and legend of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import FAR, UNLIKE, Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import Levels, PointColors
from napari_embedding_game.data.images.label_column import label_column
from napari_embedding_game.session.cluster_report import is_continuous
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.similarity import similarity
from napari_embedding_game.ui.style.cluster_colors import ClusterColors, places
from napari_embedding_game.ui.style.colors import (
    MISSING,
    Colors,
    category_colors,
    from_text,
    value_colors,
    value_extent,
    value_limits,
)
from napari_embedding_game.ui.style.isolation_texts import NO_ISOLATION
from napari_embedding_game.ui.style.pressure_texts import NO_PRESSURE
from napari_embedding_game.ui.style.stretch_texts import NO_STRETCH

CLUSTER, STRETCH, PRESSURE = "Cluster", "Stretch", "Pressure"
ISOLATION, SIMILARITY, MOVEMENT = "Isolation", "Similarity", "Movement"
BUILT_IN = (CLUSTER, STRETCH, ISOLATION, PRESSURE, SIMILARITY, MOVEMENT)
NOTHING_SIMILAR = (
    "Select points: the colours then tell how similar all others are to them in the "
    "data, wherever they lie on the map."
)
NOTHING_COMPARED = (
    "Compare two maps in the timeline: the colours then tell how far each point lies "
    "from its place on the other one."
)
OF_FILE = " (file)"
COLUMN = "column"
"""What a column of the metadata is called, and of a profile of neither genes nor
measures."""
PLACES = frozenset({"time", "centroid_z", "centroid_y", "centroid_x"})
"""Columns that say where an object lies, which the map does not."""
MAX_LEVELS, MOST_COLORS = 60, 1_000
"""A column with more different names than these has no legend; is no colour."""
TOO_MANY = "{}: one colour for each of {:,} names, too many to list."
LISTED = "One colour for each cluster: the inspector lists them."
MAX_VALUES = 60
"""More measures than this are found by name, as genes are."""
MAX_LEGEND = 40
"""More clusters than this are not listed: the table has them all."""
SHADES = 256
"""Steps of the colour bar of a figure."""


@dataclass(frozen=True, slots=True)
class Legend:
    """How to read the colours: named levels, or a scale from low to high."""

    title: str
    levels: tuple[tuple[str, str], ...] = ()
    """Name, and what else is known of it."""
    colors: Colors | None = field(default=None, compare=False)
    limits: tuple[float, float] | None = None
    extent: tuple[float, float] | None = None
    """Lowest and highest value: how far the limits can be moved."""
    hidden: frozenset[int] = frozenset()
    """Places of the levels whose points are not drawn."""
    note: str = ""
    """What is hidden, of these levels or of others; "" where nothing is."""
    caption: str = ""
    """What else has to be known of the picture, such as that it shows no points."""

    def is_as(self, other: Legend | None) -> bool:
        """Whether it looks the same."""
        return self == other and np.array_equal(_rgba(self), _rgba(other))


def _rgba(legend: Legend) -> Colors:
    return np.empty((0, 4)) if legend.colors is None else legend.colors


class Coloring(Protocol):
    """One choice of "Colour by"."""

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point: (N, 4), fresh or not to be changed."""
        ...

    def legend(self) -> Legend:
        """Return how to read the colours."""
        ...

    def levels(self) -> Levels | None:
        """Return the group that each point is in; None of a scale."""
        ...


class ByCluster:
    """The colour of the cluster that a point is in.

    Parameters
    ----------
    book : ClusterBook
    palette : ClusterColors
    """

    def __init__(self, book: ClusterBook, palette: ClusterColors) -> None:
        self._book = book
        self._palette = palette

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        self._palette.follow(snapshot)
        return self._palette.of_points()

    def legend(self) -> Legend:
        """Return how to read the colours; the levels only when they can be read."""
        clusters = self._book.clusters
        if not 0 < len(clusters) <= MAX_LEGEND or self._book.n_landmarks == 0:
            return Legend(LISTED)
        levels = tuple((cluster.name, cluster.note) for cluster in clusters)
        return Legend(CLUSTER, levels, self._palette.of(clusters))

    def levels(self) -> Levels:
        """Return the cluster that each point is in, in the order of the legend."""
        clusters = self._book.clusters
        ids = np.array([cluster.id for cluster in clusters])
        order = np.argsort(ids)
        codes = order[places(ids[order].tolist(), self._book.labels)]
        return Levels(tuple(cluster.name for cluster in clusters), codes)


class ByCategory:
    """One colour for each level of a metadata column.

    Parameters
    ----------
    name : str
    values : Series of length N
    known : mapping, optional
        Colours of levels, as the file has them.
    """

    def __init__(
        self, name: str, values: pd.Series, known: Mapping[str, str] | None = None
    ) -> None:
        coded = values.astype("category")
        counts = coded.value_counts()
        levels = [c for c in coded.cat.categories if counts[c] > 0]
        codes = coded.cat.set_categories(levels).cat.codes.to_numpy()
        palette = category_colors(len(levels)).copy()
        for place, level in enumerate(levels):
            of_file = from_text((known or {}).get(str(level), ""))
            if of_file is not None:
                palette[place] = of_file
        self._levels = Levels(tuple(map(str, levels)), codes)
        table = np.concatenate([palette, MISSING[None]])  # whose code is -1: the last
        self._colors = table.take(codes, axis=0)
        if len(levels) > MAX_LEVELS:
            self._legend = Legend(TOO_MANY.format(name, len(levels)))
            return
        self._legend = Legend(
            name, tuple((str(c), f"{counts[c]:,} points") for c in levels), palette
        )

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        return self._colors

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return self._legend

    def levels(self) -> Levels:
        """Return the level of each point."""
        return self._levels


class ByValue:
    """Viridis from the low to the high values of a column, or between limits.

    Parameters
    ----------
    name : str
    numbers : array, shape (N,)
        NaN where a value is missing.
    limits : (float, float), optional
        By default those that few values lie beyond.
    """

    def __init__(
        self,
        name: str,
        numbers: NDArray[np.floating],
        limits: tuple[float, float] | None = None,
    ) -> None:
        limits = limits or value_limits(numbers)
        self._colors = value_colors(numbers, limits)
        self._legend = Legend(name, limits=limits, extent=value_extent(numbers))

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        return self._colors

    def legend(self) -> Legend:
        """Return how to read the colours."""
        return self._legend

    def levels(self) -> None:
        """Return None: these are numbers."""

    def for_figure(self, title: str) -> PointColors:
        """Return the colours as a figure takes them, which need no snapshot."""
        assert self._legend.limits is not None
        return _scaled(self._colors, title, self._legend.limits)


class ByPressure:
    """Viridis by the pressure of each point as it is now."""

    def __init__(self, limits: tuple[float, float] | None = None) -> None:
        self._chosen = limits
        self._limits = self._extent = (0.0, 1.0)
        self._is_defined = True

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        self._is_defined = snapshot.has_pressure
        if not self._is_defined:
            return np.tile(MISSING, (len(snapshot.pressure), 1))
        self._limits = self._chosen or (0.0, value_limits(snapshot.pressure)[1])
        self._extent = (0.0, value_extent(snapshot.pressure)[1])
        return value_colors(snapshot.pressure, self._limits)

    def legend(self) -> Legend:
        """Return how to read the colours."""
        if not self._is_defined:
            return Legend(NO_PRESSURE)
        return Legend(PRESSURE, limits=self._limits, extent=self._extent)

    def levels(self) -> None:
        """Return None: these are numbers."""


class ByStretch:
    """Viridis by the stretch of each point as it is now; yellow ones lie far."""

    def __init__(self, limits: tuple[float, float] | None = None) -> None:
        self._limits = limits or (0.0, FAR)
        self._extent = (0.0, FAR)
        self._is_known = True

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        self._is_known = snapshot.stretch is not None
        if snapshot.stretch is None:
            return np.tile(MISSING, (len(snapshot.embedding), 1))
        self._extent = (0.0, max(FAR, value_extent(snapshot.stretch)[1]))
        return value_colors(snapshot.stretch, self._limits)

    def legend(self) -> Legend:
        """Return how to read the colours."""
        if not self._is_known:
            return Legend(NO_STRETCH)
        return Legend(STRETCH, limits=self._limits, extent=self._extent)

    def levels(self) -> None:
        """Return None: these are numbers."""


class ByIsolation:
    """Viridis by how unlike others each row is; yellow ones are unlike anything."""

    def __init__(self, limits: tuple[float, float] | None = None) -> None:
        self._limits = limits or (1.0, UNLIKE)
        self._extent = (0.0, UNLIKE)
        self._is_known = True

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        isolation = snapshot.isolation
        self._is_known = isolation is not None
        if isolation is None:
            return np.tile(MISSING, (len(snapshot.embedding), 1))
        finite = isolation[np.isfinite(isolation)]
        self._extent = (0.0, max(UNLIKE, float(finite.max(initial=0.0))))
        return value_colors(np.minimum(isolation, self._extent[1]), self._limits)

    def legend(self) -> Legend:
        """Return how to read the colours."""
        if not self._is_known:
            return Legend(NO_ISOLATION)
        return Legend(ISOLATION, limits=self._limits, extent=self._extent)

    def levels(self) -> None:
        """Return None: these are numbers."""


class _BySession(ABC):
    """Viridis by a number that the session knows of each point; grey where it does not.

    Parameters
    ----------
    session : Session
    limits : (float, float), optional
    """

    nothing: ClassVar[str]
    """What the legend says where there are no numbers."""

    def __init__(
        self, session: Session, limits: tuple[float, float] | None = None
    ) -> None:
        self._session = session
        self._limits = limits

    @abstractmethod
    def values(self) -> NDArray[np.floating] | None:
        """Return the number of each point, (N,); None where there are none."""

    @abstractmethod
    def title(self) -> str:
        """Return what the numbers are."""

    def limits_of(self, values: NDArray[np.floating]) -> tuple[float, float]:
        """Return the values of the darkest and the brightest colour."""
        return self._limits or value_limits(values)

    def extent_of(self, values: NDArray[np.floating]) -> tuple[float, float]:
        """Return how far these can be moved."""
        return value_extent(values)

    def colors(self, snapshot: Snapshot) -> Colors:
        """Return the colour of each point."""
        values = self.values()
        if values is None or len(values) != len(snapshot.embedding):
            return np.tile(MISSING, (len(snapshot.embedding), 1))
        return value_colors(values, self.limits_of(values))

    def legend(self) -> Legend:
        """Return how to read the colours."""
        values = self.values()
        if values is None:
            return Legend(self.nothing)
        limits, extent = self.limits_of(values), self.extent_of(values)
        return Legend(self.title(), limits=limits, extent=extent)

    def levels(self) -> Levels | None:
        """Return None: these are numbers."""
        return None


class BySimilarity(_BySession):
    """By how similar each point is to the selected ones in the data."""

    nothing = NOTHING_SIMILAR
    _of: tuple[object, str] | None = None
    _rows: NDArray[np.integer] | None = None
    _found: NDArray[np.float32] | None = None

    def values(self) -> NDArray[np.floating] | None:
        """Return the similarities, worked out once for a selection and a distance."""
        session, rows = self._session, self._session.selection.rows
        played = session.played
        of = None if played is None else (session.dataset, played.settings.metric)
        if of != self._of or not np.array_equal(rows, self._rows):
            self._of, self._rows, self._found = of, rows, similarity(session)
        return self._found

    def limits_of(self, values: NDArray[np.floating]) -> tuple[float, float]:
        """Return those that leave the less similar half dark."""
        return self._limits or (0.5, 1.0)

    def extent_of(self, values: NDArray[np.floating]) -> tuple[float, float]:
        """Return all that a share can be."""
        return 0.0, 1.0

    def title(self) -> str:
        """Return what the numbers are."""
        return "Similarity to the selection: share of all points that are less similar"


class ByMovement(_BySession):
    """By how far each point lies from its place on the map compared with."""

    nothing = NOTHING_COMPARED

    def values(self) -> NDArray[np.floating] | None:
        """Return the distances; None where no maps are compared."""
        current = self._session.comparing.current
        return None if current is None else current.maps.moved

    def title(self) -> str:
        """Return what the numbers are."""
        return "Movement to the other map, in radii of this one"


def choices(dataset: Dataset | None) -> list[str]:
    """Return what the points of a dataset can be coloured by, best known first.

    A column that is called as one of the built-in ones is "(file)".
    """
    if dataset is None:
        return list(BUILT_IN)
    by_choice = _looked_at(dataset).by_choice
    return [*BUILT_IN, *by_choice, *_listed_values(dataset, by_choice)]


def _listed_values(dataset: Dataset, columns: Mapping[str, str]) -> list[str]:
    """Return the measures that are listed as well: few, and in their own units.

    Genes are too many, and components or pixels tell nothing by their names.
    """
    names = dataset.profile_names
    is_measured = dataset.profile is not dataset.X and dataset.images is None
    if not is_measured or dataset.has_expression or len(names) > MAX_VALUES:
        return []
    known = set(columns.values())
    return [choice_of_value(name, dataset) for name in names if name not in known]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What takes long to find out of the metadata of many rows."""

    obs: pd.DataFrame
    """The metadata, of which each change makes another frame."""
    usable: Sequence[str]
    """Those that tell something of one row, names before numbers."""
    by_choice: Mapping[str, str]
    label: str | None


_known: WeakKeyDictionary[Dataset, _Columns] = WeakKeyDictionary()


def _looked_at(dataset: Dataset) -> _Columns:
    obs, known = dataset.obs, _known.get(dataset)
    if known is None or known.obs is not obs:
        ranks = {c: _rank(obs[c]) for c in obs.columns}
        ranked = sorted((c for c in ranks if ranks[c]), key=ranks.__getitem__)
        usable = [str(c) for c in ranked if ranks[c] != _CROWDED]
        label = label_column(obs) if dataset.objects is not None else None
        known = _Columns(obs, usable, _told_apart(map(str, ranked)), label)
        _known[dataset] = known
    return known


def _told_apart(columns: Iterable[str]) -> dict[str, str]:
    """Return each column by a choice that means nothing else."""
    by_choice: dict[str, str] = {}
    for column in columns:
        choice = column
        while choice in BUILT_IN or choice in by_choice:
            choice += OF_FILE
        by_choice[choice] = column
    return by_choice


_NAMES, _CROWDED, _NUMBERS = 1, 2, 3


def _rank(values: pd.Series) -> int:
    """Return where a column is listed: names, very many names, numbers; 0 nowhere.

    Names that hardly two rows share, as barcodes, are nowhere if they are many.
    """
    if not values.notna().any():
        return 0
    if is_continuous(values):
        return _NUMBERS
    n_levels = values.nunique()
    if n_levels <= MAX_LEVELS:
        return _NAMES
    return _CROWDED if n_levels <= min(MOST_COLORS, len(values) // 2) else 0


def metadata_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that tell something of one row.

    Categories come first; the label of an object, which no two rows share, is none.
    """
    known = _looked_at(dataset)
    return [column for column in known.usable if column != known.label]


def composition_columns(dataset: Dataset) -> list[str]:
    """Return the metadata columns that a cluster's composition can be told by.

    Where an object lies in its image tells nothing of what it is.
    """
    places = PLACES if dataset.objects is not None else frozenset()
    return [column for column in metadata_columns(dataset) if column not in places]


def is_choice(choice: str, dataset: Dataset) -> bool:
    """Return whether points can be coloured by it: a gene is one too."""
    return choice in BUILT_IN or name_of(choice, dataset) is not None


def name_of(choice: str, dataset: Dataset) -> str | None:
    """Return what a choice is called in the file; None if it is not of the file."""
    by_choice = _looked_at(dataset).by_choice
    return by_choice.get(choice) or _value_of(choice, dataset)


def choice_of_column(name: str, dataset: Dataset) -> str:
    """Return the choice that means a metadata column that tells something."""
    by_choice = _looked_at(dataset).by_choice
    return next(choice for choice, column in by_choice.items() if column == name)


def choice_of_value(name: str, dataset: Dataset) -> str:
    """Return the choice that means a gene, or another column of the profile."""
    choice = name + OF_FILE if name in BUILT_IN else name
    if choice in _looked_at(dataset).by_choice:
        return f"{name} ({dataset.word})"
    return choice


def worded(text: str, dataset: Dataset | None) -> str:
    """Return a text about genes as one about what the columns of these data are."""
    word = "gene" if dataset is None else dataset.word
    return text.replace("gene", word).replace("Gene", word.capitalize())


def _value_of(choice: str, dataset: Dataset) -> str | None:
    for ending in ("", OF_FILE, f" ({dataset.word})"):
        name = choice.removesuffix(ending)
        is_known = name in dataset.profile_names
        if is_known and choice_of_value(name, dataset) == choice:
            return name
    return None


def coloring(
    choice: str,
    dataset: Dataset,
    by_cluster: ByCluster,
    limits: tuple[float, float] | None = None,
    session: Session | None = None,
) -> Coloring:
    """Return the colouring for one of the ``choices``, or for a gene.

    Those by similarity and movement need the session, whose selection and whose
    comparison they are of.
    """
    if choice == CLUSTER:
        return by_cluster
    if choice == STRETCH:
        return ByStretch(limits)
    if choice == ISOLATION:
        return ByIsolation(limits)
    if choice == PRESSURE:
        return ByPressure(limits)
    if choice == SIMILARITY:
        assert session is not None
        return BySimilarity(session, limits)
    if choice == MOVEMENT:
        assert session is not None
        return ByMovement(session, limits)
    column = _looked_at(dataset).by_choice.get(choice)
    if column is None:
        gene = _value_of(choice, dataset)
        assert gene is not None, choice
        return ByValue(choice, gene_values(dataset, gene), limits)
    values = dataset.obs[column]
    if not is_continuous(values):
        return ByCategory(choice, values, dataset.level_colors.get(column))
    return ByValue(choice, values.to_numpy(dtype=float, na_value=np.nan), limits)


def for_figure(choice: str, coloring: Coloring, snapshot: Snapshot) -> PointColors:
    """Return the colours of a map as a figure of it takes them."""
    rgba, limits = coloring.colors(snapshot), coloring.legend().limits
    if limits is None:
        return PointColors(rgba, choice, coloring.levels())
    return _scaled(rgba, choice, limits)


def _scaled(rgba: Colors, title: str, limits: tuple[float, float]) -> PointColors:
    scale = value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0))
    return PointColors(rgba, title, scale=scale, limits=limits)


def gene_values(dataset: Dataset, name: str) -> NDArray[np.floating]:
    """Return one column of what is compared: (N,); counts of a gene as logarithms."""
    return dataset.expression.column(dataset.profile_names.index(name))
