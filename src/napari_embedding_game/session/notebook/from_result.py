"""The map of an .h5ad file that the window saved, as a session to write code of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.types import Snapshot, undefined
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.formats.anndata import open_store
from napari_embedding_game.data.formats.anndata_store import read_element
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.clusters.automatic import FIRST_ID, BookState
from napari_embedding_game.session.clusters.clustering import (
    AUTOMATIC,
    ClusterAnnotation,
    Edits,
)
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.check_settings import check_record
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.json_codec import loads
from napari_embedding_game.session.maps import PART
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import check, prepared

_WHOLE = (".h5ad", ".zarr", ".h5", ".mtx", ".mtx.gz")
"""Kinds of input that a saved result has in it, with everything."""


@dataclass(frozen=True, eq=False)
class _Noted:
    """What a result tells of its map; arrays are of all rows of the input."""

    uns: Mapping[str, Any]
    obs: pd.DataFrame
    embedding: NDArray[np.float32]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which rows are on the map."""
        return np.asarray(~np.isnan(self.embedding).any(axis=1))


def session_of_result(path: Path) -> SavedSession:
    """Return the map of a result, with its data, which are read again.

    The graph of neighbours is made anew, to know how the landmarks were merged.

    Raises
    ------
    DataError
        The file is no result of the window, its run was steered by hand, or the data
        are not there.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    noted = _read(path)
    record = _record(noted.uns, path.name)
    dataset = _dataset(noted, path)
    n_read = len(dataset.obs)
    kept = noted.kept[dataset.kept]
    is_part = not kept.all()
    if is_part:
        dataset = dataset.subset(kept)
    if len(dataset.obs) != np.count_nonzero(noted.kept):
        raise DataError(
            f"{path.name} has {np.count_nonzero(noted.kept):,} points, but "
            f"{n_read:,} rows of {dataset.name} can be used: it is not what the map "
            "was made of."
        )
    snapshot = _snapshot(noted, record)
    edges, _ = prepared(dataset.X, record)
    merging = Merging.of(edges, snapshot.labels, len(snapshot.landmarks))
    names = noted.obs[f"{KEY}_cluster"][noted.kept].astype(str).to_numpy()
    key = f"{PART}1" if is_part else ""
    saved = SavedMap(
        key=key,
        title=str(noted.uns["input"]["name"]),
        parent="" if is_part else None,
        dataset=dataset,
        start=record.start,
        game=record.game,
        record=record,
        snapshot=snapshot,
        merging=merging,
        book=_book(names, snapshot, merging),
    )
    return SavedSession(maps=(saved,), current=key)


def _read(path: Path) -> _Noted:
    parts = f"obs/{KEY}_cluster", f"obs/{KEY}_landmark", f"uns/{KEY}", f"obsm/X_{KEY}"
    with explain_damage(path, "an .h5ad file"), open_store(path) as root:
        if not all(part in root for part in parts):
            raise DataError(
                f"{path.name} holds no map that the window saved: give such a file "
                "(Save > AnnData), or a session file."
            )
        return _Noted(
            read_element(root["uns"][KEY], path.name, "its map"),
            read_element(root["obs"], path.name, "its table obs"),
            read_element(root["obsm"][f"X_{KEY}"], path.name, "its map"),
        )


def _record(uns: Mapping[str, Any], where: str) -> RunRecord:
    text = uns.get("parameters", {}).get("record")
    if not isinstance(text, str):
        raise DataError(
            f"{where} does not tell how its run was played: give a file that the "
            "window saved, or a session file."
        )
    record = loads(RunRecord, text.encode(), where)
    check_record(record, where)
    check(record)
    if record.is_branch or uns["parameters"].get("steered_by_hand", False):
        raise DataError(
            f"The run of {where} was steered by hand, or went on from another map, "
            "which only a session file keeps: save the session, and give that file."
        )
    return record


def _dataset(noted: _Noted, path: Path) -> Dataset:
    """Read the input that lies beside the result, or what the result has of it."""
    told = noted.uns["input"]
    source = path.parent / str(told["name"])
    if not source.exists():
        if not str(told["name"]).lower().endswith(_WHOLE):
            raise DataError(f"{told['name']} is missing: put it beside {path.name}.")
        source = path
    steps = noted.uns.get("provenance", {})
    recipe, mixed = steps.get("recipe"), steps.get("harmony")
    space = str((recipe or mixed or told)["space"])
    reading = load(
        source,
        space=_asked(space),
        missing="drop",
        recipe=None if recipe is None else _recipe(recipe),
        batch_key=None if mixed is None else str(mixed["batch_key"]),
    )
    return finish(reading)


def _asked(space: str) -> str | None:
    """Return a space as it can be asked for; of a table there is one alone."""
    is_known = space in ("X", "obs") or space.endswith("]")
    return space if is_known else None


def _recipe(noted: Mapping[str, Any]) -> Recipe:
    numbers = {f.name: noted[f.name] for f in fields(Recipe) if f.name in noted}
    key = numbers.pop("batch_key", "none")
    plain = {name: getattr(n, "item", lambda n=n: n)() for name, n in numbers.items()}
    return Recipe(**plain, batch_key=None if key == "none" else str(key))


def _snapshot(noted: _Noted, record: RunRecord) -> Snapshot:
    kept = noted.kept
    pressure = noted.obs.get(f"{KEY}_pressure")
    return Snapshot(
        iteration=record.n_iter,
        n_iter=record.n_iter,
        embedding=np.ascontiguousarray(noted.embedding[kept], np.float32),
        landmarks=np.ascontiguousarray(noted.uns["landmarks"], np.float32),
        energy=float(noted.uns["energy"]),
        labels=noted.obs[f"{KEY}_landmark"].to_numpy()[kept].astype(np.int32),
        pressure=undefined(int(kept.sum()))
        if pressure is None
        else pressure.to_numpy()[kept].astype(np.float32),
        finished=not noted.uns["parameters"]["interrupted"],
    )


def _book(names: NDArray[Any], snapshot: Snapshot, merging: Merging) -> BookState:
    """Return clusters of these names, as merges of automatic ones where they are."""
    order, places = np.unique(names, return_inverse=True)
    n_landmarks = len(snapshot.landmarks)
    for n_clusters in range(len(order), n_landmarks + 1):
        cut = merging(n_clusters, "merge")[snapshot.labels]
        pairs = np.unique(np.column_stack([cut, places]), axis=0)
        if len(np.unique(pairs[:, 0])) == len(pairs):
            break
    else:  # points were put into clusters one by one
        ids = (FIRST_ID + places).astype(np.int32)
        edits = Edits(
            by_hand=ids, n_clusters=None, given=_given(order, range(len(order)))
        )
        return _state(ids, edits, order, range(len(order)), n_landmarks)
    automatic = (FIRST_ID + cut).astype(np.int32)
    first = [int(pairs[pairs[:, 1] == place, 0].min()) for place in range(len(order))]
    is_merged = np.bincount(pairs[:, 1]) > 1
    ids = (FIRST_ID + np.array(first)[places]).astype(np.int32)
    by_hand = np.where(is_merged[places], ids, AUTOMATIC).astype(np.int32)
    edits = Edits(by_hand=by_hand, n_clusters=n_clusters, given=_given(order, first))
    return _state(automatic, edits, order, first, n_landmarks)


def _given(order: NDArray[Any], numbers: Any) -> dict[int, ClusterAnnotation]:
    named = ((FIRST_ID + n, str(name)) for n, name in zip(numbers, order, strict=True))
    return {i: ClusterAnnotation(name=name) for i, name in named if not name.isdigit()}


def _state(
    automatic: NDArray[np.int32],
    edits: Edits,
    order: NDArray[Any],
    numbers: Any,
    n_landmarks: int,
) -> BookState:
    known = ((FIRST_ID + n, str(name)) for n, name in zip(numbers, order, strict=True))
    return BookState(
        edits=edits,
        automatic=automatic,
        of_landmarks=np.zeros(n_landmarks, np.int32),
        numbers={i: int(name) for i, name in known if name.isdigit()},
        next_id=2 * FIRST_ID,
    )
