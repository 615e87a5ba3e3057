"""A saved map as text and arrays, and back: its fields as they are, but the data.

The data are in their own file and read again from there.  What a session keeps of them
is :class:`Rows`: what is shown while that file is not at hand, and their numbers where
no file has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.as_anndata import SAMPLES
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset, Examples
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.data.recipe import Prepared
from napari_embedding_game.session.file.codec import (
    ArrayPool,
    DamageError,
    decode_fields,
    encode_fields,
)
from napari_embedding_game.session.file.origin import (
    PREPARED,
    Origin,
    origin_of,
)
from napari_embedding_game.session.file.prepared import prepared_of
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.timeline import thinned

LARGEST_X = 64_000_000
"""Bytes of numbers that are stored where there is no file to read them from again."""
MOST_BYTES = 64 * 2**20
"""Of the arrays of marks that are stored: what is saved each minute stays small."""
MOST_NEIGHBORS = 200_000
"""Rows up to which their neighbours are stored, 60 bytes each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The n rows of a map, which has some of the rows of its source."""

    names: tuple[str, ...]
    kept: NDArray[np.bool_]
    """(n_source_rows,) which of them are on the map."""
    X: NDArray[np.floating] | None
    """(n, D) their numbers, where no file has them."""
    profile: NDArray[np.floating] | None
    """(n, G) their numbers in their own units, where these are others."""
    profile_names: tuple[str, ...]
    """(G,)"""
    obs: pd.DataFrame | None
    """(n rows) metadata, where no file has them."""
    objects: Objects | None
    """(n_source_rows,) labels and boxes of all rows of the source."""
    scores: dict[str, tuple[str, ...]]
    """Gene sets that were scored, to be scored again when the source is read."""
    taught: dict[str, Examples]
    """Examples of taught classes, to be learned from again."""
    predicted: tuple[PredictedLabels, ...]
    prepared: Prepared | None
    """What the recipe came to."""


def encode_map(one: SavedMap, pool: ArrayPool, *, reads_source: bool = True) -> bytes:
    """Return a map as text; its arrays go into the pool.

    The first time its source is read.
    """
    timeline = one.timeline
    if timeline is not None:
        timeline = thinned(timeline, MOST_BYTES)
        marks = tuple(
            replace(mark, snapshot=_stored(mark.snapshot), quality=None)
            for mark in timeline.marks
        )
        timeline = replace(timeline, marks=marks)
    return encode_fields(
        one,
        pool,
        dataset=_rows(one.dataset),
        reading=None,
        origin=one.origin or origin_of(one.dataset, reads_source=reads_source),
        snapshot=None if one.snapshot is None else _stored(one.snapshot),
        timeline=timeline,
        look={part.name: getattr(one.look, part.name) for part in fields(one.look)},
    )


def decode_map(text: bytes, arrays: Sequence[NDArray[Any]]) -> SavedMap:
    """Return the map that a text and the arrays of the file describe.

    Raises
    ------
    DamageError
    """
    values = decode_fields(
        SavedMap, text, arrays, dataset=Rows, reading=None, origin=Origin
    )
    try:
        values["dataset"] = _dataset(values["dataset"], values["origin"])
    except (ValueError, TypeError, IndexError) as error:
        raise DamageError(f"its rows: {error}") from error
    return SavedMap(**values)


def _stored(snapshot: Snapshot) -> Snapshot:
    """Return what is stored of a snapshot: not the neighbours of very many rows."""
    known = snapshot.neighbors
    if known is None or len(known) <= MOST_NEIGHBORS:
        return snapshot
    return replace(snapshot, neighbors=None)


def _rows(dataset: Dataset) -> Rows:
    X, profile = dataset.X, dataset.profile
    stores_x = (
        dataset.source is None
        and dataset.name.lower() not in SAMPLES
        and not sp.issparse(X)
        and 0 < X.size * 4 <= LARGEST_X
    )
    is_other = stores_x and profile is not X and not sp.issparse(profile)
    stores_profile = is_other and 0 < profile.size * 4 <= LARGEST_X
    return Rows(
        names=tuple(map(str, dataset.obs.index)),
        kept=dataset.kept,
        X=X if stores_x else None,
        profile=profile if stores_profile else None,
        profile_names=dataset.profile_names if stores_profile else (),
        obs=_metadata(dataset) if stores_x else None,
        objects=dataset.source_objects,
        scores=dataset.scores,
        taught=dict(dataset.taught),
        predicted=tuple(dataset.predicted.values()),
        prepared=prepared_of(dataset),
    )


def _metadata(dataset: Dataset) -> pd.DataFrame:
    """Return the metadata without what is made again when the map is opened."""
    taught = {name + end for name in dataset.taught for end in ("", CONFIDENCE)}
    predicted = {
        name + end for name, one in dataset.predicted.items() for end in one.columns
    }
    made = {*dataset.worked_out, *taught, *predicted}
    return dataset.obs.loc[:, ~dataset.obs.columns.isin(made)]


def _dataset(rows: Rows, origin: Origin) -> Dataset:
    """Return rows that a map can be shown with while their source is not at hand."""
    n = len(rows.names)
    reason = (
        ""
        if rows.X is not None
        else (
            f"The data of {origin.name} are not loaded: open the session again when "
            "the file is in its place, or load the data anew."
        )
    )
    X = np.zeros((n, 0), np.float32) if rows.X is None else rows.X
    generic = tuple(f"column {i + 1}" for i in range(X.shape[-1]))
    names = pd.Index(rows.names, dtype=object)
    all_names = np.full(len(rows.kept), "", dtype=object)
    all_names[rows.kept] = names
    obs = pd.DataFrame(index=names)
    if rows.obs is not None and rows.obs.shape[1]:
        obs = rows.obs.set_index(names)
    dataset = Dataset(
        name=origin.name,
        X=X,
        obs=obs,
        profile=rows.profile,
        profile_names=rows.profile_names,
        var_names=origin.columns if len(origin.columns) == len(generic) else generic,
        space=origin.space,
        source=None,
        n_source_rows=len(rows.kept),
        kept=rows.kept,
        source_obs_names=pd.Index(all_names),
        notes=(reason,) if reason else (),
        missing_reason=reason,
        provenance=origin.provenance,
        source_objects=rows.objects,
        scores=rows.scores,
        taught=rows.taught,
    )
    for one in rows.predicted:
        dataset.add_predicted(one)
    if rows.prepared is not None:
        dataset.known[PREPARED] = rows.prepared
    return dataset
