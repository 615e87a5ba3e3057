"""Functions that return new :class:`Edits` for each action: merge, split, ...

Nothing here changes anything; :class:`~.cluster_book.ClusterBook` takes the edits up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.clustering import (
    AUTOMATIC,
    Cluster,
    ClusterAnnotation,
    Clustering,
    Edits,
    end_of,
)

if TYPE_CHECKING:
    from napari_embedding_game.session.clusters.automatic import Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Named:
    """A cluster of a child map, as its parent takes it over."""

    key: str
    """Lasting name for it inside the child."""
    rows: NDArray[np.intp]
    """Its points, as rows of the parent."""
    given: ClusterAnnotation

    def is_as(self, other: Named) -> bool:
        """Return whether nothing has changed since ``other`` was taken over."""
        is_same = (self.key, self.given) == (other.key, other.given)
        return is_same and np.array_equal(self.rows, other.rows)


def annotated(clustering: Clustering, cluster: int, **what: str) -> Edits:
    """Give the points of a cluster a name, colour or note; "" takes it away.

    They keep what they are given until all of it is taken away.  Points that come to
    the cluster later do not get it, and are of another one.
    """
    former = clustering.edits
    known = former.given.get(cluster, ClusterAnnotation())
    after = replace(known, **what)  # type: ignore[arg-type]
    if after == known:
        return former
    all_given = {**former.given, cluster: after}
    if bool(after) == bool(known):
        return replace(former, given=all_given)
    by_hand = former.by_hand.copy()
    if after:
        holds = cluster not in clustering.fixed
        all_given[cluster] = replace(after, holds=holds)
        by_hand[clustering.labels == cluster] = cluster
    else:
        del all_given[cluster]
        if known.holds:
            by_hand[by_hand == cluster] = AUTOMATIC
    joined = _joined_to_others(former, cluster)
    return replace(former, given=all_given, by_hand=by_hand, joined=joined)


def _joined_to_others(former: Edits, cluster: int) -> dict[int, int]:
    """Return which clusters were merged into which, without those of this one."""
    joined = former.joined
    return {a: b for a, b in joined.items() if end_of(joined, a) != cluster}


def merged(clustering: Clustering, parts: Sequence[Cluster]) -> Edits:
    """Merge clusters into the first; the first name there is holds, and all notes.

    Points that reach a part later follow, unless it has a name: that is of the points
    that are there.
    """
    former, target = clustering.edits, parts[0].id
    by_hand = former.by_hand.copy()
    by_hand[np.isin(clustering.labels, [part.id for part in parts])] = target
    ids = {part.id for part in parts}
    all_given = {c: g for c, g in former.given.items() if c not in ids}
    given = ClusterAnnotation(
        name=next((part.name for part in parts if part.is_named), ""),
        color=next((part.color for part in parts if part.color), ""),
        note="\n".join(part.note for part in parts if part.note),
    )
    if given:
        all_given[target] = given
    joined = {**former.joined, **{part.id: target for part in parts[1:]}}
    after = replace(former, by_hand=by_hand, given=all_given, joined=joined)
    if given:
        return replace(after, joined=_joined_to_others(after, target))
    return after


def split(clustering: Clustering, parts: Mapping[int, NDArray[np.intp]]) -> Edits:
    """Split a cluster into parts by their ids; the first keeps what is in none."""
    by_hand = clustering.edits.by_hand.copy()
    cluster = next(iter(parts))
    by_hand[clustering.labels == cluster] = cluster
    for part, rows in parts.items():
        by_hand[rows] = part
    return replace(clustering.edits, by_hand=by_hand)


def reclustered(clustering: Clustering, parts: Mapping[int, NDArray[np.intp]]) -> Edits:
    """Make parts of any points clusters by their ids; other points stay."""
    by_hand = clustering.edits.by_hand.copy()
    for part, rows in parts.items():
        by_hand[rows] = part
    return replace(clustering.edits, by_hand=by_hand)


def made(
    clustering: Clustering, cluster: int, rows: NDArray[np.intp], name: str
) -> Edits:
    """Make points a cluster of their own."""
    former = clustering.edits
    by_hand = former.by_hand.copy()
    by_hand[rows] = cluster
    all_given = (
        {**former.given, cluster: ClusterAnnotation(name=name)}
        if name
        else former.given
    )
    return replace(former, by_hand=by_hand, given=all_given)


def released(clustering: Clustering, cluster: int) -> Edits:
    """Give the points that were fixed by hand back to game and slider, nameless."""
    former = clustering.edits
    by_hand = former.by_hand.copy()
    by_hand[by_hand == cluster] = AUTOMATIC
    joined = {a: b for a, b in former.joined.items() if b != cluster}
    all_given = {c: one for c, one in former.given.items() if c != cluster}
    return replace(former, by_hand=by_hand, joined=joined, given=all_given)


def adopted(
    clustering: Clustering,
    child: str,
    named: Sequence[Named],
    numbers: Numbers,
    known: Collection[str] = (),
) -> Edits:
    """Put the named clusters of a child map in the place of its former ones.

    Points that are in none of them any more are again what they were before, if that
    still has a name.
    Those whose keys are ``known`` are as they were when they last were adopted: what
    has been done with them here since then holds.
    """
    former = clustering.edits
    mine = {
        given.origin: cluster
        for cluster, given in former.given.items()
        if given.origin.startswith(f"{child}/")
    }
    kept = {f"{child}/{key}" for key in known}
    ids = {cluster for origin, cluster in mine.items() if origin not in kept}
    by_hand = former.by_hand.copy()
    below = np.full_like(by_hand, AUTOMATIC)
    if former.below is not None:
        below = former.below.copy()
    all_given = {c: g for c, g in former.given.items() if c not in ids}
    out = np.isin(by_hand, list(ids))
    is_known = np.isin(below[out], [c for c, g in all_given.items() if g.name])
    by_hand[out] = np.where(is_known, below[out], AUTOMATIC)
    below[out] = AUTOMATIC
    for one in named:
        origin = f"{child}/{one.key}"
        if origin in kept:
            continue
        cluster = mine[origin] if origin in mine else int(numbers.take(1)[0])
        below[one.rows] = by_hand[one.rows]
        by_hand[one.rows] = cluster
        all_given[cluster] = replace(one.given, origin=origin)
    is_over = bool((below != AUTOMATIC).any())
    return replace(
        former, by_hand=by_hand, given=all_given, below=below if is_over else None
    )
