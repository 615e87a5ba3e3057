"""Save and load the session file: a .zip of JSON and plain arrays.

``session.json`` says what there is; each map is a text, and its arrays are those of all
maps, equal ones once.  Whatever is read is checked before it is used: see
:mod:`zip_container` for the file, :mod:`codec` for types, :mod:`checks` for how the
parts fit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import is_same_file
from napari_embedding_game.data.export.result import versions
from napari_embedding_game.data.gene_sets import score_again
from napari_embedding_game.data.stages import Stages, finish
from napari_embedding_game.session.file import zip_container
from napari_embedding_game.session.file.checks import check_session
from napari_embedding_game.session.file.codec import (
    ArrayPool,
    DamageError,
    decode,
    encode,
)
from napari_embedding_game.session.file.map_text import decode_map, encode_map
from napari_embedding_game.session.file.origin import reload
from napari_embedding_game.session.file.prepared import prepared_for
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.file.zip_container import ARRAY, Container
from napari_embedding_game.session.reference.predicting import add_again
from napari_embedding_game.session.taught_classes import teach_again

FORMAT: Literal["napari-embedding-game session"] = "napari-embedding-game session"
VERSION = 2
"""Raised when files are written that an older program would read wrongly."""
MAP = "maps/{}.json"
"""Name of the text of a map by its number."""
ENDING = ".zip"


def save(
    session: SavedSession,
    path: str | Path,
    *,
    reads_sources: bool = True,
    is_private: bool = False,
) -> None:
    """Write a session file; an existing one is replaced in one step.

    Parameters
    ----------
    reads_sources : bool
        Whether data files may be read for their SHA-256, where that is not known.
    is_private : bool
        Whether only the owner may read a file that was not there before.

    Raises
    ------
    DataError
        The file cannot be written, or it is one of the data files.
    """
    path = Path(path)
    for one in session.maps:
        source = one.dataset.source
        if source is not None and is_same_file(path, source):
            raise DataError(
                f"{path.name} is the data file itself and stays as it is: "
                "choose another name for the session."
            )
    pool = ArrayPool()
    maps = [encode_map(one, pool, reads_source=reads_sources) for one in session.maps]
    head = _Head(
        format=FORMAT,
        version=VERSION,
        saved_at=session.saved_at or now(),
        current=session.current,
        versions=versions(),
        maps=[_summary(one) for one in session.maps],
    )
    members: dict[str, bytes | NDArray[Any]] = {"session.json": encode(head, pool)}
    members |= {MAP.format(number): text for number, text in enumerate(maps)}
    members |= {ARRAY.format(n): array for n, array in enumerate(pool.arrays)}
    zip_container.write(path, members, is_private=is_private)


def load(path: str | Path) -> SavedSession:
    """Read a session file; the data it refers to are not read yet.

    Raises
    ------
    DataError
        It is no session file, is damaged, or was written by another version.
    """
    file = Container(Path(path))
    head, arrays = _head(file), file.arrays()
    try:
        maps = tuple(
            decode_map(file.text(MAP.format(number)), arrays)
            for number in range(len(head.maps))
        )
        session = SavedSession(maps=maps, current=head.current, saved_at=head.saved_at)
        check_session(session)
    except DamageError as error:
        raise DataError(
            f"{file.name} is damaged ({error}): open another copy of it, or the data "
            "anew."
        ) from error
    return session


class Summary(msgspec.Struct, frozen=True):
    """What a list of session files tells of each."""

    title: str
    n_points: int
    n_names: int
    map_hash: str = ""
    """For who reads the file; the map itself tells it anew."""


class _Head(msgspec.Struct, frozen=True):
    """What ``session.json`` holds."""

    format: Literal["napari-embedding-game session"]
    version: int
    saved_at: str
    current: str
    versions: dict[str, str]
    maps: list[Summary]


def _summary(one: SavedMap) -> Summary:
    names = {given.name for given in one.book.edits.given.values()} - {""}
    shown = one.snapshot
    told = "" if shown is None else shown.map_hash
    return Summary(one.title, len(one.dataset.obs), len(names), told)


def _head(file: Container) -> _Head:
    text = file.text("session.json")
    try:
        version = decode(_Version, text).version
        if version == VERSION:
            head = decode(_Head, text)
            if head.maps:
                return head
            raise DamageError("it holds no map")
    except DamageError as error:
        raise DataError(f"{file.name} is damaged ({error}).") from error
    raise DataError(
        f"{file.name} was written by a later version of this program: update "
        "napari-embedding-game to open it."
        if version > VERSION
        else f"{file.name} was written by a version before 0.4: open it with that."
    )


class _Version(msgspec.Struct):
    format: Literal["napari-embedding-game session"]
    version: int


def summary(path: str | Path) -> Summary:
    """Return what a session file holds, without reading its maps.

    Raises
    ------
    DataError
        It is no session file, or damaged.
    """
    return _head(Container(Path(path))).maps[0]


def with_data(
    saved: SavedMap, beside: str | Path, others: Sequence[SavedMap] = ()
) -> Stages[SavedMap]:
    """Return the map with its data, read again in stages.

    Parameters
    ----------
    beside : str or Path
        Folder of the session file; the data may lie there, too.
    others : sequence of SavedMap
        Maps of the same file, of one of which this may be a part.

    Raises
    ------
    DataError
        The data are missing or have changed; the map can be shown without them.
    """
    assert saved.origin is not None
    if saved.dataset.X.shape[1]:
        teach_again(saved.dataset, saved.dataset.taught)
        return saved  # they were stored with the map
    made = prepared_for(saved, others)
    result = yield from reload(saved.origin, saved.dataset.kept, Path(beside), made)
    dataset = result.dataset
    is_joined = saved.dataset.source_objects is not None
    if is_joined:
        linked = {"linked": saved.origin.provenance.get("linked", {})}
        dataset = replace(
            dataset,
            source_objects=saved.dataset.source_objects,
            provenance={**dataset.provenance, **linked},
        )
    teach_again(dataset, saved.dataset.taught)
    add_again(dataset, saved.dataset.predicted)
    troubles = score_again(dataset, saved.dataset.scores)
    if troubles:
        dataset = replace(dataset, notes=(*dataset.notes, *troubles))
    # How rows were joined with objects is not known.
    reading = None if is_joined else replace(result, dataset=dataset)
    return replace(saved, dataset=dataset, reading=reading)


def open_session(path: str | Path) -> tuple[SavedSession, list[str]]:
    """Read a session file and the data it refers to, as far as they are there.

    Returns
    -------
    session : SavedSession
        A map whose data could not be read can be shown, but not played on.
    troubles : list of str
        A sentence for each thing that could not be read.

    Raises
    ------
    DataError
        The session file itself cannot be read.
    """
    path = Path(path)
    session = load(path)
    maps, troubles = [], []
    for one in session.maps:
        try:
            maps.append(finish(with_data(one, path.parent, session.maps)))
        except DataError as error:
            maps.append(one)
            troubles.append(str(error))
    return replace(session, maps=tuple(maps)), list(dict.fromkeys(troubles))


def recorded_map(path: str | Path, title: str | None = None) -> SavedMap:
    """Return a map of a session file that has a run to replay.

    Parameters
    ----------
    title : str, optional
        What it is called; by default the map that was shown.

    Raises
    ------
    DataError
        The file cannot be read, has no such map, or nothing was played on it.
    """
    path = Path(path)
    session = load(path)
    if title is None:
        saved = session[session.current]
    else:
        titles = [one.title for one in session.maps]
        if title not in titles:
            raise DataError(
                f"{path.name} has no map '{title}': choose one of {', '.join(titles)}."
            )
        saved = session.maps[titles.index(title)]
    if saved.record is None:
        raise DataError(
            f"Nothing has been played on the map '{saved.title}' of {path.name}: "
            "there is no run to replay."
        )
    return saved


def other_versions(path: str | Path) -> list[str]:
    """Return what wrote a session file in another version than that at hand.

    Each as "numpy 2.3.1 (here 2.4.6)"; with them a run may come out otherwise.
    """
    written = _head(Container(Path(path))).versions
    return [
        f"{package} {written[package]} (here {here})"
        for package, here in versions().items()
        if package in written and written[package] != here
    ]


def now() -> str:
    """Return the present time as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")
