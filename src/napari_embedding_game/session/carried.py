"""The layout of one map, for the rows of another: the same cells in another space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import IntArray, Snapshot, WarmStart, undefined
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.timeline import warm_start
from napari_embedding_game.session.transfer_edits import places_in

LEAST_KNOWN = 0.5
"""Share of the rows that must have a place on the former map for it to tell enough."""


@dataclass(frozen=True, slots=True, eq=False)
class CarriedLayout:
    """Where the rows of a new map lie on a former one."""

    space: str
    """What the former map was made of, such as "X_pca"."""
    snapshot: Snapshot
    """The former map for the rows of the new one; nothing that was said of its
    neighbours in the data."""
    settings: Settings
    """Of the former map."""
    unplaced: IntArray
    """(m,) rows that are not on it: for the time being they lie in the middle."""

    @property
    def warm_start(self) -> WarmStart:
        """The layout as one that a run can go on from."""
        unplaced = self.unplaced if len(self.unplaced) else None
        # The former schedule has nothing to say of these data.
        return replace(warm_start(self.snapshot), iterations_left=0, unplaced=unplaced)


def carried_layout(
    former: Dataset,
    snapshot: Snapshot,
    settings: Settings,
    dataset: Dataset,
) -> CarriedLayout | None:
    """Return a map of some data for other rows or numbers of the same source.

    Rows are matched by the names that they have in the source.

    Parameters
    ----------
    former : Dataset
        What the map is of.
    snapshot : Snapshot
        The map.
    settings : Settings
        Its own.
    dataset : Dataset
        The same source, read in another way.

    Returns
    -------
    CarriedLayout or None
        None where most of the rows are not on the map.
    """
    rows = places_in(dataset, former)
    is_known = rows >= 0
    if not len(rows) or is_known.mean() < LEAST_KNOWN:
        return None
    middle = snapshot.embedding[rows[is_known]].mean(axis=0)
    embedding = np.where(is_known[:, None], snapshot.embedding[rows], middle)
    carried = replace(
        snapshot,
        embedding=embedding.astype(np.float32),
        labels=np.where(is_known, snapshot.labels[rows], 0).astype(np.int32),
        pressure=undefined(len(rows)),
        stretch=None,
        neighbors=None,
        isolation=None,
        warning="",
        remedy={},
    )
    space = former.space.removeprefix("obsm['").removesuffix("']")
    return CarriedLayout(space, carried, settings, np.flatnonzero(~is_known))
