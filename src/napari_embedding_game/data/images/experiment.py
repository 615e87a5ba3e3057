"""Measure the objects of many images: a folder of images with their labels.

Every image is read twice, first to learn which fit together and how bright they are,
then to be measured; only the last few are held in memory.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
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
    LabelStack,
    Stamp,
    read_pixels,
    stamp_of,
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
from napari_embedding_game.data.read_options import AS_USUAL, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages

GREY, COLORS = ("intensity",), ("red", "green", "blue")
_SHOWN = (0.5, 99.8)
"""Percentiles of the pixels that are shown black and in full colour."""
_SAMPLED = 1 << 16
"""Pixels of an image that are looked at for them."""
_MOST_REASONS = 6
_MOST_HELD = 6
"""Files whose pixels are held at a time."""
_STOPPED = "Stopped before any image was measured: what was loaded stays."

_Span = tuple[float, float]


def experiment_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Measure the objects of a folder of images, in stages.

    Raises
    ------
    DataError
        As :meth:`Experiment.measure`, or if another space than the measures is asked.
    """
    spaces = [f"measures of {path.name}"]
    if options.space not in (None, *spaces):
        raise DataError(
            f"{path.name} is a folder of images, of which only '{spaces[0]}' can be "
            f"embedded, not '{options.space}'."
        )
    dataset = yield from Experiment(path).measure(options)
    return ReadResult(dataset, spaces, dataset.profile_names)


@dataclass(frozen=True, slots=True)
class _Look:
    """What was learnt of one image at the first look."""

    size: tuple[int, ...]
    """(y, x) or (z, y, x)"""
    spans: dict[str, _Span]
    """Lowest and highest value of each channel."""
    shown: dict[str, _Span]
    """Values of each channel that are shown black and in full colour."""
    dtypes: tuple[Any, Any]
    """Of the image and of its labels."""
    is_grey: bool
    """Whether red, green and blue are the same."""

    @property
    def kind(self) -> tuple[tuple[str, ...], int]:
        """What all images of an experiment have in common."""
        return tuple(self.spans), len(self.size)


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
    _pixels: Any = field(default_factory=lambda: lru_cache(_MOST_HELD)(_read_pixels))
    _known: dict[Path, tuple[Any, pd.DataFrame, Objects | None]] = field(
        default_factory=dict
    )
    """Of each labels file: of what it was measured, and what came of it."""
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
        self.images = replace(self._images(pairs, looks), n_measured=len(pairs))
        return self.images

    def measure(self, options: ReadOptions = AS_USUAL) -> Stages[Dataset]:
        """Measure the objects of all images, in stages.

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
        spans = _common([look.spans for look in looks], _channels_of(looks))
        tables: list[pd.DataFrame] = []
        parts: list[Objects] = []
        n_objects: list[int] = []
        for i, pair in enumerate(pairs):
            if self._stopping.is_set():
                break
            table, objects = yield from self._field(i, len(pairs), pair, images, spans)
            n_objects.append(len(table))
            if objects is not None:
                tables.append(table)
                missing_axes = images.labels.ndim - 1 - objects.ndim
                parts.append(objects.within((i, *[0] * missing_axes)))
        if not n_objects:
            raise DataError(_STOPPED)
        if not tables:
            raise DataError(
                f"The labels of {self.name} hold no object in {len(n_objects):,} "
                "images, only background: segment first."
            )
        self.images = images = replace(images, n_measured=len(n_objects))
        yield Stage("Checking the numbers")
        how = {
            "channels": list(spans),
            "scale": [1.0] * (images.labels.ndim - 1),
            "first_axis": "image",
            "folder": str(self.folder.absolute()),
            "images": _listed_images(pairs, n_objects, known.columns),
        }
        dataset = measured_dataset(
            pd.concat(tables),
            joined(parts),
            self.name,
            how,
            _metadata(images.names, n_objects, known.columns),
            options=options,
        )
        told = _told(pairs, n_objects, len(spans))
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
                raise DataError(_STOPPED)
            yield Stage(f"Looking at image {i + 1:,} of {len(pairs):,}", i / len(pairs))
            try:
                looks.append((pair, self._look_at(pair)))
            except DataError as error:
                reasons.append(f"{pair.name} was left out: {error}")
        if not looks:
            raise DataError(reasons[0])
        usual = Counter(look.kind for _, look in looks).most_common(1)[0][0]
        fitting = [(pair, look) for pair, look in looks if look.kind == usual]
        others = [pair.name for pair, look in looks if look.kind != usual]
        if others:
            was = "was" if len(others) == 1 else "were"
            reasons.append(
                f"{counted(len(others), 'image')} with other channels or axes than the "
                f"other {len(fitting):,} ({', '.join(usual[0])}) {was} left out, to be "
                f"measured apart: {listed(others)}."
            )
        if len(reasons) > _MOST_REASONS:
            more = len(reasons) - _MOST_REASONS
            reasons = [*reasons[:_MOST_REASONS], f"So were {more:,} others."]
        return [p for p, _ in fitting], [look for _, look in fitting], reasons

    def _look_at(self, pair: ImagePair) -> _Look:
        labels = self._labels(pair)
        channels = self._channels(pair, labels.shape)
        first, *others = channels.values()
        return _Look(
            labels.shape,
            {name: value_span(channel) for name, channel in channels.items()},
            {name: _shown(channel) for name, channel in channels.items()},
            (np.result_type(*(one.dtype for one in channels.values())), labels.dtype),
            tuple(channels) == COLORS and all(np.array_equal(first, x) for x in others),
        )

    def _read(self, path: Path) -> NDArray[Any]:
        """Pixels of a file as it is now; they must not be written to."""
        pixels: NDArray[Any] = self._pixels(path, stamp_of(path))
        return pixels

    def _labels(self, pair: ImagePair) -> NDArray[Any]:
        """Labels of an image as its file has them, in two or three axes."""
        labels = self._read(pair.labels)
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
        files = [self._read(path) for path in pair.images]
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
        kinds = _channels_of(looks)
        pixels = np.result_type(*(look.dtypes[0] for look in looks))
        numbers = np.result_type(*(look.dtypes[1] for look in looks))
        names = tuple(pair.name for pair in pairs)
        folder, n = self.folder.absolute(), len(pairs)
        paths = [pair.labels for pair in pairs]
        labels = None if self.images is None else self.images.labels
        if labels is None or not labels.is_of(paths, size):
            labels = LabelStack(paths, lambda i: self._labels(pairs[i]), size, numbers)
        if kinds == COLORS:
            stack = FieldStack(
                lambda i: self._read(pairs[i].images[0])[..., :3],
                n,
                size,
                pixels,
                is_rgb=True,
            )
            limits = {"": (0.0, 255.0 if pixels == np.uint8 else 1.0)}
            return ExperimentImages(folder, names, labels, {"": stack}, limits, True)

        def channel(kind: str) -> FieldStack:
            def read(i: int) -> NDArray[Any]:
                is_grey = kinds == GREY
                return self._channels(pairs[i], looks[i].size, is_grey=is_grey)[kind]

            return FieldStack(read, n, size, pixels)

        limits = _common([look.shown for look in looks], kinds)
        stacks = {kind: channel(kind) for kind in kinds}
        return ExperimentImages(folder, names, labels, stacks, limits)

    def _field(
        self,
        i: int,
        n: int,
        pair: ImagePair,
        images: ExperimentImages,
        spans: dict[str, _Span],
    ) -> Stages[tuple[pd.DataFrame, Objects | None]]:
        """Measure one image, unless that was done before; None without an object."""
        text = f"Measuring image {i + 1:,} of {n:,}: {pair.name}"
        yield Stage(text, i / n)
        state: tuple[Stamp, int] = images.labels.state(i)
        of, table, objects = self._known.get(pair.labels, (None, pd.DataFrame(), None))
        if of != (state, spans):
            labels = images.labels.field(i)
            table, objects = pd.DataFrame(), None
            if labels.max(initial=0) > 0:
                channels = self._channels(
                    pair, labels.shape, is_grey=tuple(spans) == GREY
                )
                objects = find_objects(labels)
                stages = measured_table(
                    objects, labels, channels, (1.0,) * labels.ndim, spans
                )
                table = yield from _within(stages, text, i, n)
                table.index = [f"{pair.name} label {label}" for label in table["label"]]
            self._known[pair.labels] = (state, spans), table, objects
        images.labels.note_measured(i, state)
        return table, objects


def _read_pixels(path: Path, stamp: Stamp) -> NDArray[Any]:
    return read_pixels(path)


def _channels_of(looks: Sequence[_Look]) -> tuple[str, ...]:
    return GREY if all(look.is_grey for look in looks) else tuple(looks[0].spans)


def _common(
    spans: Sequence[dict[str, _Span]], kinds: Sequence[str]
) -> dict[str, _Span]:
    """Lowest and highest value of each channel in all images."""
    of_each = [list(one.values()) for one in spans]
    return {
        kind: (min(s[place][0] for s in of_each), max(s[place][1] for s in of_each))
        for place, kind in enumerate(kinds)
    }


def _shown(channel: NDArray[Any]) -> _Span:
    values = channel.ravel()[:: max(1, channel.size // _SAMPLED)]
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = np.percentile(values, _SHOWN).tolist()
    return low, max(high, low + 1e-9)


def _within(stages: Stages[Any], text: str, i: int, n: int) -> Stages[Any]:
    """Stages of measuring one image as stages of all."""
    while True:
        try:
            stage = next(stages)
        except StopIteration as end:
            return end.value
        yield Stage(text, (i + (stage.share or 0.0)) / n)


def _metadata(
    names: Sequence[str], n_objects: Sequence[int], known: pd.DataFrame
) -> pd.DataFrame:
    """What is known of the image of each object: first what was done to it."""
    rows = np.repeat(np.arange(len(n_objects)), n_objects)
    image = pd.DataFrame({"image": pd.Categorical(names, names)})
    told = pd.concat([known, image], axis="columns").iloc[rows]
    done = [column for column in known if column not in PLATE_COLUMNS]
    where = [column for column in PLATE_COLUMNS if column in known]
    first = [column for column in where if column == "well"]
    return told[[*done, *first, "image", *(c for c in where if c != "well")]]


def _listed_images(
    pairs: Sequence[ImagePair], n_objects: Sequence[int], known: pd.DataFrame
) -> list[dict[str, Any]]:
    """All images that were measured, those without objects too."""
    return [
        {
            "name": pairs[i].name,
            "labels": str(pairs[i].labels),
            "objects": n,
            **{str(key): str(value) for key, value in known.iloc[i].dropna().items()},
        }
        for i, n in enumerate(n_objects)
    ]


def _told(
    pairs: Sequence[ImagePair], n_objects: Sequence[int], n_channels: int
) -> list[str]:
    n, is_whole = len(n_objects), len(n_objects) == len(pairs)
    images = counted(n, "image") if is_whole else f"{n:,} of {len(pairs):,} images"
    objects = counted(sum(n_objects), "object")
    begun = "Measured" if is_whole else "Stopped: measured"
    told = [f"{begun} {objects} of {images} in {counted(n_channels, 'channel')}."]
    empty = [pair.name for pair, k in zip(pairs, n_objects, strict=False) if not k]
    if empty:
        hold = "holds" if len(empty) == 1 else "hold"
        told.append(
            f"{counted(len(empty), 'image')} {hold} no object: {listed(empty)}."
        )
    return told
