"""Save and load the session file: a .zip of JSON and plain arrays.

``session.json`` says what there is; each map has a folder with its texts and
arrays.  Whatever is read is checked before it is used: see :mod:`zip_container` for
the file, :mod:`json_codec` for the texts, and :mod:`map_reader` for how it fits
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import is_same_file
from napari_embedding_game.data.export.result import versions
from napari_embedding_game.data.gene_sets import score_again
from napari_embedding_game.data.stages import Stages, finish
from napari_embedding_game.session.file import zip_container
from napari_embedding_game.session.file.json_schema import (
    FORMAT,
    VERSION,
    MapText,
    SessionText,
)
from napari_embedding_game.session.file.map_reader import MapReader, check_family
from napari_embedding_game.session.file.map_writer import encode_map
from napari_embedding_game.session.file.origin import reload
from napari_embedding_game.session.file.prepared import prepared_for
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.file.zip_container import Container
from napari_embedding_game.session.json_codec import dumps, loads
from napari_embedding_game.session.reference.predicting import add_again
from napari_embedding_game.session.taught_classes import teach_again

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
    members: dict[str, bytes | NDArray[Any]] = {
        "session.json": dumps(
            SessionText(
                format=FORMAT,
                version=VERSION,
                saved_at=session.saved_at or now(),
                current=session.current,
                n_maps=len(session.maps),
                versions=versions(),
            )
        )
    }
    for number, one in enumerate(session.maps):
        folder = f"maps/{number}"
        text, arrays = encode_map(one, reads_source=reads_sources)
        members[f"{folder}/map.json"] = dumps(text)
        members[f"{folder}/names.json"] = dumps(list(map(str, one.dataset.obs.index)))
        for name, array in arrays.items():
            members[f"{folder}/{name}.npy"] = array
    zip_container.write(path, members, is_private=is_private)


def load(path: str | Path) -> SavedSession:
    """Read a session file; the data it refers to are not read yet.

    Raises
    ------
    DataError
        It is no session file, is damaged, or was written by a later version.
    """
    file = Container(Path(path))
    text = loads(SessionText, file.text("session.json"), file.name)
    if text.version > VERSION:
        raise DataError(
            f"{file.name} was written by a later version of this program: "
            "update napari-embedding-game to open it."
        )
    if not 1 <= text.n_maps <= len(file):
        raise DataError(f"{file.name} is damaged: it holds no map.")
    maps = tuple(MapReader(file, number).map() for number in range(text.n_maps))
    session = SavedSession(maps=maps, current=text.current, saved_at=text.saved_at)
    check_family(session, file.name)
    return session


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list of session files tells of each."""

    title: str
    n_points: int
    n_names: int


def summary(path: str | Path) -> Summary:
    """Return what a session file holds, without reading its arrays.

    Raises
    ------
    DataError
        It is no session file, or damaged.
    """
    file = Container(Path(path))
    text = loads(MapText, file.text("maps/0/map.json"), file.name)
    names = {given.name for _, given in text.given} - {""}
    return Summary(text.title, text.n_points, len(names))


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
    file = Container(Path(path))
    written = loads(SessionText, file.text("session.json"), file.name).versions
    return [
        f"{package} {written[package]} (here {here})"
        for package, here in versions().items()
        if package in written and written[package] != here
    ]


def now() -> str:
    """Return the present time as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")
