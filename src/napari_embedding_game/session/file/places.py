"""Paths of files as a session file stores them.

Files in the folder of the session or below are stored relative to it, so that both can
be moved together.  A session that is saved to be shared stores names without folders,
which may reveal who a person is and what they work on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from napari_embedding_game.data.export.result import get_last_path_part
from napari_embedding_game.session.file.rows import StoredRows

PathChange = Callable[[str], str]
"""Converts a path, either to its stored form or back."""


def to_noted_path(path: str, folder: Path, *, is_shared: bool) -> str:
    """Return a path as a session file in a folder stores it.

    A path below ``folder`` becomes relative to it; other absolute paths, and relative
    ones, stay. ``is_shared``: whether any absolute path is stored without its folder.
    """
    if not _is_absolute(path):
        return path
    if is_shared:
        return get_last_path_part(path)
    is_below = Path(path).is_relative_to(folder)
    return Path(path).relative_to(folder).as_posix() if is_below else path


def to_full_path(noted: str, folder: Path) -> str:
    """Return the absolute path of a path that a session file in a folder stores.

    "", absolute paths and addresses with "://" are returned as they are.
    """
    is_relative = noted and not _is_absolute(noted) and "://" not in noted
    return str(folder / noted) if is_relative else noted


def change_row_paths(rows: StoredRows, change: PathChange) -> StoredRows:
    """Return rows with the paths of their file and of measured images converted."""
    provenance, measured = rows.provenance, rows.provenance.get("measured")
    if isinstance(measured, Mapping) and isinstance(measured.get("folder"), str):
        measured = {**measured, "folder": change(measured["folder"])}
        provenance = {**provenance, "measured": measured}
    return replace(rows, path=change(rows.path), provenance=provenance)


def change_view_paths(view: Any, change: PathChange) -> Any:
    """Return the window's state, of values for JSON, with each "path" converted.

    At any depth; tuples become lists.
    """
    if isinstance(view, Mapping):
        is_path = {key: key == "path" and isinstance(x, str) for key, x in view.items()}
        return {
            key: change(value) if is_path[key] else change_view_paths(value, change)
            for key, value in view.items()
        }
    if isinstance(view, list | tuple):
        return [change_view_paths(value, change) for value in view]
    return view


def strip_reference_folders(rows: StoredRows) -> StoredRows:
    """Return rows whose predicted columns name their reference without its folder."""
    if rows.added is None:
        return rows
    added = rows.added.items()
    named = {k: replace(x, reference=get_last_path_part(x.reference)) for k, x in added}
    return replace(rows, added=named)


def _is_absolute(path: str) -> bool:
    """Return whether a path is absolute on any system."""
    kinds = PurePosixPath, PureWindowsPath
    return any(kind(path).is_absolute() for kind in kinds)
