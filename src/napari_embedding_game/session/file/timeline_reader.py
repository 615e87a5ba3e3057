"""Read the timeline of a map, and check that its parts fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.session.file.array_pool import PoolReader
from napari_embedding_game.session.file.json_schema import MarkText, TimelineText
from napari_embedding_game.session.file.moment_reader import MomentReader
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.timeline import Mark, TimelineState

WHAT = "its timeline"


def read_timeline(
    text: TimelineText,
    n_points: int,
    present: Snapshot | None,
    member: Callable[[str, str], NDArray[Any]],
    expect: Callable[[bool, str], None],
    where: str,
) -> TimelineState:
    """Return the timeline that a text describes.

    Parameters
    ----------
    text : TimelineText
    n_points : int
        Rows of the map.
    present : Snapshot, optional
        The layout of the map, which the newest mark may be of.
    member : callable
        Returns one of the arrays that hold all of a type.
    expect : callable
        Raises the error of a damaged file, which names the second argument, unless
        the first is True.
    where : str
        Name of the file.
    """

    def expect_so(is_so: bool) -> None:
        expect(is_so, WHAT)

    numbers = [mark.number for mark in text.marks]
    expect_so(numbers == sorted(set(numbers)))
    expect_so(all(1 <= number <= text.n_made for number in numbers))
    expect_so(text.branch >= 0 <= text.n_thinned)
    expect_so(
        all(place is None or place in numbers for place in (text.head, text.shown))
    )
    earlier: set[int | None] = {None}
    for mark in text.marks:
        expect_so(mark.parent in earlier and mark.shot is not None)
        earlier.add(mark.number)
    pool = PoolReader(text.pool, member, expect_so)

    def read(mark: MarkText) -> Mark:
        moment = MomentReader(mark, n_points, _Pooled(pool, mark.arrays), expect, where)
        snapshot = moment.snapshot()
        assert snapshot is not None
        return Mark(
            number=mark.number,
            label=mark.label,
            kind=mark.kind,
            snapshot=_sharing(snapshot, present),
            start=mark.start,
            game=mark.game,
            record=_branching(moment.record(), present),
            energies=moment.energies(),
            merging=moment.merging(len(snapshot.landmarks)),
            parent=mark.parent,
            branch=mark.branch,
            made_at=mark.made_at,
            name=mark.name,
            is_pinned=mark.is_pinned,
        )

    return TimelineState(
        marks=tuple(map(read, text.marks)),
        head=text.head,
        shown=text.shown,
        n_made=text.n_made,
        branch=text.branch,
        n_thinned=text.n_thinned,
    )


class _Pooled:
    """The arrays of one mark."""

    def __init__(self, pool: PoolReader, numbers: Mapping[str, int]) -> None:
        self._pool, self._numbers = pool, numbers

    def __call__(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        return self._pool.array(self._numbers.get(name, -1), dtype, shape)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers


LAYOUT = ("embedding", "landmarks")
SHOWN = ("labels", "pressure", "stretch", "neighbors", "isolation")


def _sharing(snapshot: Snapshot, present: Snapshot | None) -> Snapshot:
    """Return the snapshot with the arrays of the present one, where they are equal.

    So one knows again which mark the map on show is of.
    """
    return replace(snapshot, **_common((*LAYOUT, *SHOWN), snapshot, present))


def _branching(record: RunRecord | None, present: Snapshot | None) -> RunRecord | None:
    """Return the record; where it went on from the present layout, it shares that."""
    if record is None or record.warm_start is None:
        return record
    warm = record.warm_start
    return replace(record, warm_start=replace(warm, **_common(LAYOUT, warm, present)))


def _common(
    names: tuple[str, ...], one: Snapshot | WarmStart, present: Snapshot | None
) -> dict[str, Any]:
    """Return the arrays of the present layout that are equal to those of ``one``."""
    same: dict[str, Any] = {}
    for name in names if present is not None else ():
        ours, theirs = getattr(one, name), getattr(present, name)
        if ours is not None and theirs is not None:
            is_same = np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f")
            same |= {name: theirs} if is_same else {}
    return same
