"""Save and load the session file: a .zip of JSON and plain arrays.

Its part ``session`` holds version and summaries, ``maps`` all maps.  Everything that is
read is checked before use: :mod:`codec` checks the file and the types, :mod:`checks`
whether the parts fit together.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import msgspec
import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import atomic_write, check_not_source
from napari_embedding_game.data.export.result import (
    find_installed_versions,
    get_last_path_part,
)
from napari_embedding_game.data.identity import align_rows
from napari_embedding_game.data.loader import load_read_result
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.session.clusters.state import (
    ClusterState,
    make_initial_cluster_state,
)
from napari_embedding_game.session.file import codec
from napari_embedding_game.session.file.checks import validate_session
from napari_embedding_game.session.file.codec import DamageError
from napari_embedding_game.session.file.h5ad import (
    add_changed_columns,
    has_session,
    make_identity_of_map,
    read_obs_and_identity,
    read_session_bytes,
)
from napari_embedding_game.session.file.places import (
    PathChange,
    change_row_paths,
    change_view_paths,
    strip_reference_folders,
    to_full_path,
    to_noted_path,
)
from napari_embedding_game.session.file.rows import (
    StoredRows,
    find_recipe_result,
    read_saved_data,
    to_dataset,
    to_stored_rows,
    with_h5ad_as_source,
    with_names_of_all_maps,
)
from napari_embedding_game.session.file.saved_map import (
    MapKind,
    SavedMap,
    SavedSession,
    compose_names,
)
from napari_embedding_game.session.file.stored_clusters import (
    StoredClusters,
    to_cluster_states,
    to_stored_clusters,
)
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.sources import FileSource, store_read_result
from napari_embedding_game.session.timeline import thin_old_marks

FORMAT: Literal["napari-embedding-game session"] = "napari-embedding-game session"
VERSION, READ = 5, (3, 4, 5)
"""Version of the files that are written, and versions that can be read."""
ENDING = ".zip"
MAX_BYTES = 64 * 2**20
"""Most bytes of stored arrays of marks: the file is saved each minute."""
MAX_UNDO_BYTES = 32 * 2**20
"""Most bytes of stored arrays of undo steps."""
OPENED_AS_DATA = (
    "It was opened as data: press Run for a map, or open the file as it was."
)
OTHER_DATA = "{} has other rows or numbers than when its map was saved. {}"
_OTHER_KINDS = {
    ".h5ad": "a file of AnnData that holds no saved map of the window",
    ".zarr": "a folder of zarr",
    ".csv": "a table",
    ".tsv": "a table",
    ".parquet": "a table",
    ".npy": "an array",
    ".npz": "a file of arrays",
    ".h5": "a file of counts",
    ".h5mu": "a file of MuData",
    ".loom": "a file of counts",
    ".rds": "a file of R",
    ".fcs": "a file of a flow cytometer",
    ".ipynb": "a notebook",
    ".html": "a web page",
}
"""Descriptions, by file ending, of other files that a person may give by mistake."""
MAX_NEIGHBORS = 200_000
"""Most rows of a map whose neighbours are stored, at 60 bytes a row."""


OneMoment = TypeVar("OneMoment", bound=Moment)


class Summary(msgspec.Struct, frozen=True):
    """Title, number of points and number of groups of a map, for lists of sessions."""

    title: str
    n_points: int
    n_names: int


class _Head(msgspec.Struct, frozen=True):
    format: Literal["napari-embedding-game session"]
    version: int
    saved_at: str = ""
    current: str = ""
    versions: dict[str, str] = {}
    maps: tuple[Summary, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class _StoredMap(SavedMap):
    """A map as the file stores it: with rows instead of a dataset."""

    dataset: StoredRows  # type: ignore[assignment]
    clusters: StoredClusters  # type: ignore[assignment]


def save_session(
    session: SavedSession,
    path: str | Path,
    *,
    is_private: bool = False,
    is_shared: bool = False,
) -> str:
    """Write a session file; an existing file is replaced in one step.

    ``is_private``: whether a new file is readable for its owner only. ``is_shared``:
    whether paths are stored without their folders, and steps of undo are left out.

    Returns a sentence on what is left out of the file; "" where nothing is.

    Raises DataError: the file cannot be written, or it is one of the data files.
    """
    path = Path(path)
    for saved_map in session.maps:
        check_not_source(path, saved_map.dataset.source)
    with atomic_write(path, is_private=is_private) as half, half.open("wb") as file:
        rows = [to_stored_rows(x.dataset) for x in session.maps]
        return _write_session(session, rows, file, path.absolute().parent, is_shared)


def pack_shown_map_for_h5ad(
    session: SavedSession, path: Path, *, is_shared: bool = False
) -> tuple[bytes, str]:
    """Return the map on show as the bytes of a session file inside its .h5ad file.

    Other maps are left out, but the result of a recipe that is stored with one of them
    is taken over.

    ``path``: of the .h5ad file, from which the data will be read. ``is_shared``: as for
    :func:`save_session`.

    Returns the bytes, and a sentence on what is left out, as :func:`save_session` does.
    """
    shown = session[session.current]
    names = shown.clusters.standalone  # those of other maps, too
    alone = replace(shown, parent=None, key="", clusters=names)
    rows = to_stored_rows(alone.dataset, for_h5ad=True)
    if "recipe" in alone.dataset.provenance:
        others = (to_stored_rows(saved_map.dataset) for saved_map in session.maps)
        rows = replace(rows, prepared=find_recipe_result(rows, others))
    rows, content = replace(rows, path=get_last_path_part(rows.path)), BytesIO()
    folder = path.absolute().parent
    alone_session = SavedSession(maps=(alone,))
    left_out = _write_session(alone_session, [rows], content, folder, is_shared)
    return content.getvalue(), left_out


def _write_session(
    session: SavedSession,
    rows: list[StoredRows],
    file: IO[bytes],
    folder: Path,
    is_shared: bool,
) -> str:
    """Write a session into an open file, and return a sentence on what is left out.

    ``rows``: the stored rows of each map. ``folder``: of the file; paths below it are
    stored relative to it. ``is_shared``: as for :func:`save_session`.
    """
    change = partial(to_noted_path, folder=folder, is_shared=is_shared)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    summaries = (
        Summary(x.title, len(x.dataset.obs), len(x.clusters.annotation.groups))
        for x in session.maps
    )
    head = _Head(
        FORMAT,
        VERSION,
        now,
        session.current,
        find_installed_versions(),
        tuple(summaries),
    )
    pairs = zip(session.maps, rows, strict=True)
    maps = [
        _to_stored_map(saved_map, each, change, is_shared) for saved_map, each in pairs
    ]
    codec.write_parts(file, {"session": head, "maps": maps})
    return _describe_left_out(session.maps, maps, is_shared)


def _describe_left_out(
    maps: Sequence[SavedMap], stored: Sequence[_StoredMap], is_shared: bool
) -> str:
    """Return a sentence on marks and steps of undo that are not stored; "" if none.

    ``maps``: as they are in the session. ``stored``: as they are in the file.
    """
    n_marks, n_stored = (
        sum(len(one.timeline.marks) for one in some) for some in (maps, stored)
    )
    n_steps, n_stored_steps = (
        sum(len(one.clusters.done) + len(one.clusters.undone) for one in some)
        for some in (maps, stored)
    )
    parts = list[str]()
    if n_stored < n_marks:
        parts.append(
            f"{n_marks - n_stored} of {n_marks} earlier maps, as those without a name "
            f"are thinned beyond {MAX_BYTES >> 20} MB, the older the more (right-click "
            "one to rename it: a named map is always kept)"
        )
    if n_stored_steps < n_steps:
        why = f"as the farthest are left out beyond {MAX_UNDO_BYTES >> 20} MB"
        why = "which may tell names that were taken back" if is_shared else why
        n_gone = count_text(n_steps - n_stored_steps, "step")
        parts.append(f"{n_gone} of undo and redo, {why}")
    return f"Not in the file: {'; '.join(parts)}." if parts else ""


def load_session(path: str | Path) -> SavedSession:
    """Read a session file, or the session in an .h5ad file, without the maps' data.

    Raises DataError: the file is no session, is damaged, or was written by a version
    that cannot be read.
    """
    return _load_content(Path(path), read_session_bytes(Path(path)))


def _load_content(path: Path, content: bytes | None) -> SavedSession:
    """Return the session of a file, or of the bytes that an .h5ad file holds.

    ``content``: these bytes; None for a session file. The .h5ad file becomes the source
    of the rows.

    Raises DataError: as :func:`load_session`.
    """
    if content is None:
        _validate_kind(path)
    head = _read_head(path, content)
    try:
        stored = codec.read_part(path, "maps", tuple[_StoredMap, ...], content)
        try:
            rows = with_names_of_all_maps([x.dataset for x in stored])
            clusters = to_cluster_states([(x.clusters, x.dataset.kept) for x in stored])
        except (ValueError, LookupError) as error:
            raise DamageError(f"its rows: {error}") from error
        if content is not None:
            rows = [with_h5ad_as_source(x, path) for x in rows]
        change = partial(to_full_path, folder=path.absolute().parent)
        pairs = zip(stored, rows, clusters, strict=True)
        maps = [_restore_map(*each, change) for each in pairs]
        session = SavedSession(maps=tuple(maps), current=head.current)
        validate_session(session)
        session = replace(session, maps=tuple(compose_names(maps)))
    except DamageError as error:
        raise DataError(
            f"{path.name} is damaged ({error}): open another copy of it, or the data "
            "anew."
        ) from error
    return session


def _validate_kind(path: Path) -> None:
    """Raise DataError if a file is known to be of another kind than a session.

    The kind is known by the ending, or, for a .zip, by members without arrays.  A file
    that does not exist, or cannot be read, passes.
    """
    ending = path.suffix.lower()
    kind = _OTHER_KINDS.get(ending)
    if ending == ENDING:
        names = _list_zip_members(path)
        is_of_arrays = not names or any(name.endswith(".npy") for name in names)
        kind = None if is_of_arrays else "a .zip file of other things"
    if kind is not None and path.exists():
        raise DataError(
            f"{path.name} is no session, but {kind}: give the session file (.zip), or "
            "the .h5ad file, that was saved in the window."
        )


def _load_with_container(path: Path) -> tuple[SavedSession, bool]:
    """Read a session; return it, and whether it lies inside an .h5ad file."""
    content = None if path.name.endswith(ENDING) else read_session_bytes(path)
    return _load_content(path, content), content is not None


def is_session(path: Path) -> Stages[bool]:
    """Return whether a file holds a session, in stages.

    A .zip counts by its ending; any other file is looked into, in the process that
    reads files.
    """
    is_zip = path.name.lower().endswith(ENDING)
    return is_zip or bool((yield from read_in_process(path, has_session)))


def is_session_zip(path: str | Path) -> bool:
    """Return whether a .zip file is a session, by the names of its parts."""
    return "session.npy" in _list_zip_members(Path(path))


def _list_zip_members(path: Path) -> list[str]:
    """Return the names of a .zip file's parts; [] where the file cannot be read."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return []


def read_summary(path: str | Path) -> Summary:
    """Return the summary of a session file's first map, without reading the maps.

    Raises DataError: the file is damaged, or of a version that cannot be read.
    """
    return _read_head(Path(path)).maps[0]


def _read_head(path: Path, content: bytes | None = None) -> _Head:
    """Return version and summaries of a session file.

    ``content``: the bytes of the session inside an .h5ad file; None for a session file.

    Raises DataError: the file is damaged, holds no map, or is of a version that cannot
    be read.
    """
    try:
        head = codec.read_part(path, "session", _Head, content)
    except DamageError as error:
        raise DataError(
            f"{path.name} is damaged, or no session of this version ({error}): open "
            "another copy of it."
        ) from error
    if head.version not in READ:
        raise DataError(
            f"{path.name} was written by another version of this program: update "
            "napari-embedding-game to open it, or open it with the version before 0.4."
        )
    if not head.maps:
        raise DataError(f"{path.name} is damaged (it holds no map).")
    return head


def _to_stored_map(
    saved_map: SavedMap, rows: StoredRows, change: PathChange, is_shared: bool
) -> _StoredMap:
    """Return a map as it is stored, with marks and undo steps within their limits.

    ``change``: converts the paths of rows and view to their stored form. ``is_shared``:
    whether all undo steps are left out, as undone edits may be private.
    """
    timeline, look = thin_old_marks(saved_map.timeline, MAX_BYTES), saved_map.look
    timeline = replace(timeline, marks=tuple(map(_to_stored_moment, timeline.marks)))
    clusters = to_stored_clusters(saved_map.clusters, MAX_UNDO_BYTES, is_shared)
    parts: dict[str, Any] = {
        "dataset": strip_reference_folders(change_row_paths(rows, change)),
        "view": change_view_paths(saved_map.view, change),
        "clusters": clusters,
        "look": {part.name: getattr(look, part.name) for part in fields(look)},
        "timeline": timeline,
    }
    if (on := saved_map.placed_on) is not None:  # of former versions it has folders
        parts["placed_on"] = replace(on, reference=get_last_path_part(on.reference))
    stored: Any = replace(_to_stored_moment(saved_map), **parts)
    return stored  # type: ignore[no-any-return]


def _to_stored_moment(moment: OneMoment) -> OneMoment:
    """Return a moment as it is stored: an energy of NaN as 0, for JSON.

    Neighbours of more than ``MAX_NEIGHBORS`` rows are left out.
    """
    if (snapshot := moment.snapshot) is None:
        return moment
    near, energy = snapshot.neighbors, float(np.nan_to_num(snapshot.energy))  # for JSON
    near = near if near is not None and len(near) <= MAX_NEIGHBORS else None
    return replace(moment, snapshot=replace(snapshot, neighbors=near, energy=energy))


def _restore_map(
    stored: _StoredMap, rows: StoredRows, clusters: ClusterState, change: PathChange
) -> SavedMap:
    """Return a stored map with a dataset of its rows, and its paths converted back.

    Raises DamageError: the rows do not fit together.
    """
    try:
        parts = {
            "dataset": to_dataset(change_row_paths(rows, change)),
            "clusters": clusters,
            "view": change_view_paths(stored.view, change),
            "kind": _infer_map_kind(stored),
        }
        return SavedMap(**{**vars(stored), **parts})
    except (ValueError, TypeError, LookupError) as error:
        raise DamageError(f"its rows: {error}") from error


def _infer_map_kind(stored: _StoredMap) -> MapKind:
    """Return the kind of a stored map.

    Older files store "whole" for each map, and tell the kind of a child by its key.
    """
    if stored.kind != "whole" or stored.parent is None:
        return stored.kind
    former: dict[str, MapKind] = {"read": "reading", "placed": "placed"}
    return former.get(stored.key.rstrip("0123456789"), "part")


def read_map_data(
    saved: SavedMap, folder: Path, known_results: dict[Any, list[ReadResult]]
) -> Stages[SavedMap]:
    """Read the data of a saved map in stages, and return the map with them.

    A map whose numbers were stored with it is returned as it is.

    ``folder`` and ``known_results``: as for :func:`.rows.read_saved_data`, with its
    errors.
    """
    if saved.dataset.var_names:  # they were stored with the map
        return saved
    result = yield from read_saved_data(saved.dataset, folder, known_results)
    if saved.dataset.source_objects is None:  # how rows were joined is not known
        _store_how_read(result)
    return replace(saved, dataset=result.dataset)


def open_session_stages(path: str | Path) -> Stages[tuple[SavedSession, list[str]]]:
    """Read a session file and the data of its maps, in stages.

    Returns the session, and a list of sentences on what could not be read.  A map whose
    data could not be read has none.  If the session lies inside an .h5ad file, such a
    map is replaced by the data of this file, without a layout; else columns that were
    changed in the .h5ad file are taken over.

    Raises DataError: as :func:`load_session`.
    """
    path = Path(path)
    yield Stage(f"Reading {path.name}")
    session, is_in_h5ad = yield from read_in_process(path, _load_with_container)
    maps, troubles, known_results = [], [], dict[Any, list[ReadResult]]()
    for number, saved_map in enumerate(session.maps):
        yield Stage("Reading the data again", number / len(session.maps))
        try:
            opened = yield from read_map_data(saved_map, path.parent, known_results)
            if is_in_h5ad and opened.dataset.source is None:
                known = make_identity_of_map(opened)
                obs, found = yield from read_in_process(
                    path, read_obs_and_identity, known
                )
                order = align_rows(known, found, path.name, OPENED_AS_DATA)
                dataset = add_changed_columns(opened.dataset, obs, order)
                opened = replace(opened, dataset=dataset)
            maps.append(opened)
        except DataError as error:
            if is_in_h5ad:
                maps.append((yield from _read_as_data(path)))
                is_told = str(error).endswith(OPENED_AS_DATA)
                other = OTHER_DATA.format(path.name, OPENED_AS_DATA)
                troubles.append(str(error) if is_told else other)
            else:
                maps.append(saved_map)
                troubles.append(str(error))
    maps = _release_matrices_of_no_whole_map(maps)
    return replace(session, maps=tuple(maps)), list(dict.fromkeys(troubles))


def _release_matrices_of_no_whole_map(maps: Sequence[SavedMap]) -> list[SavedMap]:
    """Return maps that share only matrices of which one of the maps shows all rows."""
    shown = [one.dataset.matrices for one in maps if one.dataset.matrix_rows is None]
    return [
        one
        if any(one.dataset.matrices is whole for whole in shown)
        else replace(one, dataset=one.dataset.with_own_matrices())
        for one in maps
    ]


def _store_how_read(result: ReadResult) -> None:
    """Store in a dataset how it was read; nothing happens if it is not of a file."""
    dataset = result.dataset
    if dataset.source is not None:
        options = dataset.read_options or DEFAULT_OPTIONS
        source = FileSource(dataset.source)
        store_read_result(
            dataset,
            replace(result.with_counts_and_batches(), source=source, options=options),
        )


def _read_as_data(path: Path) -> Stages[SavedMap]:
    """Read the data of an .h5ad file, in stages, as a map without a layout.

    Rows with missing values are left out.
    """
    result = yield from load_read_result(path, ReadOptions(missing="drop"))
    dataset = result.dataset
    _store_how_read(result)
    parts: dict[str, Any] = {"dataset": dataset, "snapshot": None}
    parts["clusters"] = make_initial_cluster_state(dataset.kept)
    return SavedMap(key="", title=dataset.name, settings=Settings(), **parts)


def open_session(path: str | Path) -> tuple[SavedSession, list[str]]:
    """Return the session and the sentences of :func:`open_session_stages` at once."""
    return finish(open_session_stages(path))


def load_recorded_map(path: str | Path) -> SavedMap:
    """Return the map that a session file shows, without its data.

    Raises DataError: the map has no run, or as :func:`load_session`.
    """
    session = load_session(path)
    saved = session[session.current]
    if saved.record is None:
        raise DataError(
            f"Nothing has been played on the map '{saved.title}' of {Path(path).name}: "
            "there is no run to replay."
        )
    return saved


def list_other_versions(path: str | Path) -> list[str]:
    """Return the packages whose versions differ from those that wrote a session file.

    Each is a text such as "numpy 2.3.1 (here 2.4.6)"; with other versions a replayed
    run may differ.
    """
    written = _read_head(Path(path)).versions
    changed = {
        k: v for k, v in find_installed_versions().items() if written.get(k, v) != v
    }
    return [f"{name} {written[name]} (here {here})" for name, here in changed.items()]
