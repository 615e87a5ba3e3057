"""Where the files of a session are, as a session file notes it.

Files in the folder of the session or below are noted relative to it, so that both can
be moved together.  A session that is saved to share has names without folders, as these
may tell who somebody is and what they work on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from napari_embedding_game.data.export.result import last_path_part
from napari_embedding_game.session.file.rows import Rows

PathChange = Callable[[str], str]
"""Returns another path for a path."""


def to_noted_path(path: str, folder: Path, *, is_shared: bool) -> str:
    """Return a path as a session file in a folder notes it."""
    if not _is_absolute(path):
        return path
    if is_shared:
        return last_path_part(path)
    is_below = Path(path).is_relative_to(folder)
    return Path(path).relative_to(folder).as_posix() if is_below else path


def to_full_path(noted: str, folder: Path) -> str:
    """Return the full path of what a session file in a folder notes."""
    is_relative = noted and not _is_absolute(noted) and "://" not in noted
    return str(folder / noted) if is_relative else noted


def change_row_paths(rows: Rows, change: PathChange) -> Rows:
    """Return rows with the places of their file and of measured images changed."""
    provenance, measured = rows.provenance, rows.provenance.get("measured")
    if isinstance(measured, Mapping) and isinstance(measured.get("folder"), str):
        measured = {**measured, "folder": change(measured["folder"])}
        provenance = {**provenance, "measured": measured}
    return replace(rows, path=change(rows.path), provenance=provenance)


def change_view_paths(view: Any, change: PathChange) -> Any:
    """Return what the window knows, in values for JSON, with each "path" changed."""
    if isinstance(view, Mapping):
        is_path = {key: key == "path" and isinstance(x, str) for key, x in view.items()}
        return {
            key: change(value) if is_path[key] else change_view_paths(value, change)
            for key, value in view.items()
        }
    if isinstance(view, list | tuple):
        return [change_view_paths(value, change) for value in view]
    return view


def strip_reference_folders(rows: Rows) -> Rows:
    """Return rows whose predicted columns name the file of their reference alone."""
    if rows.added is None:
        return rows
    added = rows.added.items()
    named = {k: replace(x, reference=last_path_part(x.reference)) for k, x in added}
    return replace(rows, added=named)


def _is_absolute(path: str) -> bool:
    kinds = PurePosixPath, PureWindowsPath
    return any(kind(path).is_absolute() for kind in kinds)
