"""Measure the objects of many images: a folder of images with their labels.

Every image is read twice, first to learn which fit together and how bright they are,
then to be measured; only the last few are held in memory.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import counted, listed
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.images.field_stack import (
    FieldStack,
    FileCache,
    LabelStack,
    Stamp,
)
from napari_embedding_game.data.images.image_pairs import ImagePair, find_pairs
from napari_embedding_game.data.images.image_table import PLATE_COLUMNS, join_tables
from napari_embedding_game.data.images.measure import (
    measured_dataset,
    measured_table,
    split_channels,
    value_span,
)
from napari_embedding_game.data.label_objects import (
    Objects,
    check_labels,
    find_objects,
    joined,
)
from napari_embedding_game.data.read_options import Duplicates, Missing
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages, finish

GREY, COLORS = ("intensity",), ("red", "green", "blue")
_DARK, _BRIGHT = 0.5, 99.8
"""Percentiles of the pixels that are shown black and in full colour."""
_SAMPLED = 1 << 16
"""Pixels of an image that are looked at for them."""
_MOST_REASONS = 6
_EMPTY = Objects(
    np.empty(0, np.int64), np.empty((0, 4), np.int64), np.empty(0, np.int64)
)

_Span = tuple[float, float]


def experiment_stages(
    path: Path,
    *,
    space: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "keep",
) -> Stages[ReadResult]:
    """Measure the objects of a folder of images, in stages.

    Raises
    ------
    DataError
        As :meth:`Experiment.measure`, or if `space` is another than the measures.
    """
    if space is not None and space not in experiment_spaces(path):
        raise DataError(
            f"{path.name} is a folder of images, of which only "
            f"'{experiment_spaces(path)[0]}' can be embedded, not '{space}'."
        )
    experiment = Experiment(path)
    dataset = yield from experiment.measure(
        columns=columns, missing=missing, duplicates=duplicates
    )
    return ReadResult(dataset, experiment_spaces(path), dataset.profile_names)


def experiment_spaces(path: Path) -> list[str]:
    """Return the one space of a folder of images: the measures of its objects."""
    return [f"measures of {path.name}"]


def experiment_columns(path: Path, space: str | None = None) -> list[str]:
    """Names of the measures, which takes measuring."""
    result = finish(experiment_stages(path, space=space))
    return list(result.columns)


@dataclass(frozen=True, slots=True)
class _Look:
    """What was learnt of one image at the first look."""

    size: tuple[int, ...]
    """(y, x) or (z, y, x)"""
    channels: tuple[str, ...]
    spans: tuple[_Span, ...]
    """Lowest and highest value of each channel."""
    shown: tuple[_Span, ...]
    """Values of each channel that are shown black and in full colour."""
    dtypes: tuple[Any, Any]
    """Of the image and of its labels."""
    is_grey: bool
    """Whether red, green and blue are the same."""


@dataclass(frozen=True, slots=True)
class _MeasuredField:
    """What came of measuring one image, and of what."""

    state: tuple[Stamp, int]
    spans: tuple[tuple[str, _Span], ...]
    table: pd.DataFrame
    objects: Objects


@dataclass(frozen=True, eq=False)
class ExperimentImages:
    """The images of an experiment as stacks; place i of the first axis is image i."""

    folder: Path
    names: tuple[str, ...]
    """(n,)"""
    labels: LabelStack
    channels: dict[str, FieldStack]
    """By name; a coloured picture is one stack with red, green and blue."""
    limits: dict[str, _Span]
    """Values of each that are shown black and in full colour."""
    is_rgb: bool = False
    n_measured: int = 0
    """Images whose objects are measured: the first ones, where it was stopped."""


@dataclass(eq=False)
class Experiment:
    """A folder of images with labels that is measured, and can be measured again.

    What was measured before is taken again where neither files nor labels changed.

    Parameters
    ----------
    folder : Path
    """

    folder: Path
    images: ExperimentImages | None = None
    """What was measured last."""
    _cache: FileCache = field(default_factory=FileCache)
    _known: dict[Path, _MeasuredField] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """Return what a person calls it."""
        return self.folder.name

    def stop(self) -> None:
        """Measure no further image: what is measured is kept.  From any thread."""
        self._stopping.set()

    def look(self) -> Stages[ExperimentImages]:
        """Look at all images, without measuring any, in stages.

        Raises
        ------
        DataError
            As :meth:`measure`.
        """
        self._stopping.clear()
        yield Stage(f"Looking for images in {self.name}")
        pairs, looks, _ = yield from self._look(find_pairs(self.folder).pairs)
        images = self._images(pairs, looks)
        self.images = images = replace(images, n_measured=len(pairs))
        return images

    def measure(
        self,
        *,
        columns: Sequence[str] | None = None,
        missing: Missing = "error",
        duplicates: Duplicates = "keep",
    ) -> Stages[Dataset]:
        """Measure the objects of all images, in stages.

        Parameters
        ----------
        columns, missing, duplicates
            As for :func:`~.readers.read`.

        Returns
        -------
        Dataset
            Each measure with mean 0 and standard deviation 1 over all images in
            ``X``; in ``obs`` the image, label and centre of each object, and what
            names of files or a table tell of its image; in ``objects`` its place in
            the stacks of ``images``.

        Raises
        ------
        DataError
            If no image has labels, none can be read, or it was stopped before any
            was measured.
        """
        self._stopping.clear()
        yield Stage(f"Looking for images in {self.name}")
        found = find_pairs(self.folder)
        pairs, looks, notes = yield from self._look(found.pairs)
        known = join_tables(pairs, found.tables)
        images = self._images(pairs, looks)
        spans = _common_spans(looks)
        tables: list[pd.DataFrame] = []
        parts: list[Objects] = []
        n_objects: list[int] = []
        for i, pair in enumerate(pairs):
            if self._stopping.is_set():
                break
            measured = yield from self._field(i, len(pairs), pair, images, spans)
            n_objects.append(len(measured.objects))
            if len(measured.objects):
                tables.append(measured.table)
                missing_axes = images.labels.ndim - 1 - measured.objects.ndim
                place = (i, *[0] * missing_axes)
                parts.append(measured.objects.within(place))
        if not tables:
            raise DataError(_nothing(self.name, len(n_objects)))
        self.images = images = replace(images, n_measured=len(n_objects))
        yield Stage("Checking the numbers")
        table = pd.concat(tables)
        metadata = _metadata(pairs, n_objects, known.columns)
        metadata["image"] = pd.Categorical(metadata["image"], images.names)
        dataset = measured_dataset(
            table,
            joined(parts),
            self.name,
            {
                "channels": list(spans),
                "scale": [1.0] * (images.labels.ndim - 1),
                "first_axis": "image",
                "folder": str(self.folder.absolute()),
                "images": _listed_images(pairs, n_objects, known.columns),
            },
            metadata,
            columns=columns,
            missing=missing,
            duplicates=duplicates,
        )
        told = _told(pairs, n_objects, tuple(spans))
        before = (*told, *notes, *found.notes, *known.notes)
        return replace(dataset, notes=(*before, *dataset.notes))

    # Inside

    def _look(
        self, pairs: Sequence[ImagePair]
    ) -> Stages[tuple[list[ImagePair], list[_Look], list[str]]]:
        """Read every image once; leave out those that do not fit, with the reason."""
        looks: list[tuple[ImagePair, _Look]] = []
        reasons: list[str] = []
        for i, pair in enumerate(pairs):
            if self._stopping.is_set():
                raise DataError(
                    "Stopped before any image was measured: what was loaded stays."
                )
            share = i / len(pairs)
            yield Stage(f"Looking at image {i + 1:,} of {len(pairs):,}", share)
            try:
                looks.append((pair, self._look_at(pair)))
            except DataError as error:
                reasons.append(f"{pair.name} was left out: {error}")
        if not looks:
            raise DataError(reasons[0])
        usual = Counter(_kind(look) for _, look in looks).most_common(1)[0][0]
        fitting = [(pair, look) for pair, look in looks if _kind(look) == usual]
        others = [(pair, look) for pair, look in looks if _kind(look) != usual]
        if others:
            was = "was" if len(others) == 1 else "were"
            reasons.append(
                f"{counted(len(others), 'image')} with other channels or axes than the "
                f"other {len(fitting):,} ({', '.join(usual[0])}) {was} left out, to be "
                f"measured apart: {listed([pair.name for pair, _ in others])}."
            )
        if len(reasons) > _MOST_REASONS:
            more = len(reasons) - _MOST_REASONS
            reasons = [*reasons[:_MOST_REASONS], f"So were {more:,} others."]
        return [p for p, _ in fitting], [look for _, look in fitting], reasons

    def _look_at(self, pair: ImagePair) -> _Look:
        labels = self._labels(pair)
        channels = self._channels(pair, labels.shape)
        arrays = list(channels.values())
        is_grey = tuple(channels) == COLORS and all(
            np.array_equal(arrays[0], other) for other in arrays[1:]
        )
        return _Look(
            labels.shape,
            tuple(channels),
            tuple(value_span(channel) for channel in arrays),
            tuple(_shown(channel) for channel in arrays),
            (np.result_type(*(one.dtype for one in arrays)), labels.dtype),
            is_grey,
        )

    def _labels(self, pair: ImagePair) -> NDArray[Any]:
        """Labels of an image as its file has them, in two or three axes."""
        labels = self._cache.read(pair.labels)
        if labels.ndim == 3 and labels.shape[-1] in (3, 4) and labels.dtype == np.uint8:
            raise DataError(
                f"{pair.labels.name} is a coloured picture, and labels are whole "
                "numbers: save them as 16-bit TIFF or PNG."
            )
        if labels.ndim not in (2, 3):
            raise DataError(
                f"{pair.labels.name} has {labels.ndim} axes, and labels have 2 (y, x) "
                "or 3 (z, y, x)."
            )
        if labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels)):
            labels = labels.astype(np.int32)  # as some programs save them
        try:
            return check_labels(labels)
        except DataError as error:
            raise DataError(f"{pair.labels.name}: {error}") from error

    def _channels(
        self, pair: ImagePair, shape: tuple[int, ...], *, is_grey: bool = False
    ) -> dict[str, NDArray[Any]]:
        """Channels of an image by name; red, green and blue also where all are grey."""
        files = [self._cache.read(path) for path in pair.images]
        if len(files) > 1:
            return split_channels(dict(zip(pair.channels, files, strict=True)), shape)
        (image,) = files
        is_colored = image.shape[:-1] == shape and image.shape[-1] in (3, 4)
        if is_colored and not is_grey:
            return dict(zip(COLORS, np.moveaxis(image[..., :3], -1, 0), strict=True))
        return {GREY[0]: image[..., 0]} if is_colored else split_channels(image, shape)

    def _images(
        self, pairs: Sequence[ImagePair], looks: Sequence[_Look]
    ) -> ExperimentImages:
        """Stacks of the images; labels that were edited stay edited."""
        size = np.max([(1, *look.size)[-3:] for look in looks], axis=0).tolist()
        is_grey = all(look.is_grey for look in looks)
        pixels = np.result_type(*(look.dtypes[0] for look in looks))
        numbers = np.result_type(*(look.dtypes[1] for look in looks))
        names = tuple(pair.name for pair in pairs)
        folder = self.folder.absolute()
        former = None if self.images is None else self.images.labels
        if former is not None and former.is_of([pair.labels for pair in pairs], size):
            labels = former
        else:
            labels = LabelStack(
                [pair.labels for pair in pairs],
                lambda i: self._labels(pairs[i]),
                size,
                numbers,
            )
        kinds = GREY if is_grey else looks[0].channels
        limits = {
            kind: (
                min(look.shown[place][0] for look in looks),
                max(look.shown[place][1] for look in looks),
            )
            for place, kind in enumerate(kinds)
        }
        n = len(pairs)
        if kinds == COLORS:
            stack = FieldStack(
                lambda i: self._cache.read(pairs[i].images[0])[..., :3],
                n,
                size,
                pixels,
                is_rgb=True,
            )
            whole = (0.0, 255.0) if pixels == np.uint8 else (0.0, 1.0)
            return ExperimentImages(
                folder, names, labels, {"": stack}, {"": whole}, True
            )

        def channel(kind: str) -> FieldStack:
            def read(i: int) -> NDArray[Any]:
                return self._channels(pairs[i], looks[i].size, is_grey=is_grey)[kind]

            return FieldStack(read, n, size, pixels)

        stacks = {kind: channel(kind) for kind in kinds}
        return ExperimentImages(folder, names, labels, stacks, limits)

    def _field(
        self,
        i: int,
        n: int,
        pair: ImagePair,
        images: ExperimentImages,
        spans: dict[str, _Span],
    ) -> Stages[_MeasuredField]:
        """Measure one image, unless that was done before."""
        text = f"Measuring image {i + 1:,} of {n:,}: {pair.name}"
        yield Stage(text, i / n)
        state = images.labels.state(i)
        known = self._known.get(pair.labels)
        wanted = tuple(spans.items())
        if known is None or known.state != state or known.spans != wanted:
            labels = images.labels.field(i)
            channels = self._channels(pair, labels.shape, is_grey=tuple(spans) == GREY)
            table, objects = pd.DataFrame(), _EMPTY
            if labels.max(initial=0) > 0:
                objects = find_objects(labels)
                stages = measured_table(
                    objects, labels, channels, (1.0,) * labels.ndim, spans
                )
                table = yield from _within(stages, text, i, n)
                table.index = [f"{pair.name} label {label}" for label in table["label"]]
            known = _MeasuredField(state, wanted, table, objects)
            self._known[pair.labels] = known
        images.labels.note_measured(i, state)
        return known


def _kind(look: _Look) -> tuple[tuple[str, ...], int]:
    """What all images of an experiment have in common."""
    return look.channels, len(look.size)


def _shown(channel: NDArray[Any]) -> _Span:
    step = max(1, channel.size // _SAMPLED)
    values = channel.ravel()[::step]
    values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not values.size:
        return 0.0, 1.0
    low, high = np.percentile(values, (_DARK, _BRIGHT)).tolist()
    return low, max(high, low + 1e-9)


def _common_spans(looks: Sequence[_Look]) -> dict[str, _Span]:
    """Lowest and highest value of each channel in all images."""
    is_grey = all(look.is_grey for look in looks)
    names = GREY if is_grey else looks[0].channels
    return {
        name: (
            min(look.spans[place][0] for look in looks),
            max(look.spans[place][1] for look in looks),
        )
        for place, name in enumerate(names)
    }


def _within(stages: Stages[Any], text: str, i: int, n: int) -> Stages[Any]:
    """Stages of measuring one image as stages of all."""
    while True:
        try:
            stage = next(stages)
        except StopIteration as end:
            return end.value
        yield Stage(text, (i + (stage.share or 0.0)) / n)


def _metadata(
    pairs: Sequence[ImagePair], n_objects: Sequence[int], known: pd.DataFrame
) -> pd.DataFrame:
    """What is known of the image of each object: first what was done to it."""
    rows = np.repeat(np.arange(len(n_objects)), n_objects).tolist()
    told = known.iloc[rows].reset_index(drop=True)
    where = [column for column in PLATE_COLUMNS if column in told]
    done = [column for column in told if column not in where]
    image = pd.DataFrame({"image": [pairs[i].name for i in rows]})
    wells = [column for column in where if column == "well"]
    others = [column for column in where if column != "well"]
    return pd.concat([told[done], told[wells], image, told[others]], axis=1)


def _listed_images(
    pairs: Sequence[ImagePair], n_objects: Sequence[int], known: pd.DataFrame
) -> list[dict[str, Any]]:
    """All images that were measured, those without objects too."""
    images = []
    for i, n in enumerate(n_objects):
        told = known.iloc[i].dropna()
        images.append(
            {
                "name": pairs[i].name,
                "labels": str(pairs[i].labels),
                "objects": n,
                **{str(key): str(value) for key, value in told.items()},
            }
        )
    return images


def _told(
    pairs: Sequence[ImagePair], n_objects: Sequence[int], channels: Sequence[str]
) -> list[str]:
    n = len(n_objects)
    of = f" of {len(pairs):,}" if n < len(pairs) else ""
    kinds = counted(len(channels), "channel")
    images = "images" if of else counted(n, "image").split(" ")[1]
    objects = counted(sum(n_objects), "object")
    told = [f"Measured {objects} of {n:,}{of} {images} in {kinds}."]
    if of:
        told[0] = f"Stopped: {told[0][0].lower()}{told[0][1:]}"
    empty = [pair.name for pair, k in zip(pairs, n_objects, strict=False) if not k]
    if empty:
        hold = "holds" if len(empty) == 1 else "hold"
        told.append(
            f"{counted(len(empty), 'image')} {hold} no object: {listed(empty)}."
        )
    return told


def _nothing(name: str, n_measured: int) -> str:
    if not n_measured:
        return "Stopped before any image was measured: what was loaded stays."
    return (
        f"The labels of {name} hold no object in {n_measured:,} images, only "
        "background: segment first."
    )
