"""Presets: settings that belong together, by the name of what they are good for.

A preset sets everything that shapes a map, and leaves what the data or the computer
ask for: distance, dimensions, seed, device.  What it does not name gets its default.
A person's presets are kept in one file, ``presets.json``, in the user's configuration
folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

import platformdirs

from napari_embedding_game.core.types import GameSettings, StartSettings
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.session.file.check_settings import check_settings
from napari_embedding_game.session.json_codec import decode, dumps, loads
from napari_embedding_game.session.settings import (
    GAME_FIELDS,
    START_FIELDS,
    Settings,
)

FILE_VARIABLE = "NAPARI_EMBEDDING_GAME_PRESETS"
"""Environment variable that names another file."""
LEFT_ALONE = frozenset({"n_components", "metric", "random_state", "device", "n_jobs"})
"""Settings that no preset changes."""
PRESET_FIELDS = tuple(f.name for f in fields(Settings) if f.name not in LEFT_ALONE)
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings under a name."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`Settings` that differ from their defaults."""
    description: str = ""
    is_own: bool = False
    """Whether a person saved it."""

    def complete(self) -> dict[str, Any]:
        """Return a value for each of ``PRESET_FIELDS``."""
        return {**_DEFAULTS, **self.values}


_DEFAULTS: dict[str, Any] = {
    f.name: f.default for f in fields(Settings) if f.name in PRESET_FIELDS
}

BUILT_IN: tuple[Preset, ...] = (
    Preset(
        "Standard",
        description="The defaults: types of cells as islands, neighbours side by side.",
    ),
    Preset(
        "Islands apart",
        {"strength": 100.0},
        "Less repulsion: each group is drawn together, with more room between groups. "
        "Inside of them fewer neighbours lie side by side.",
    ),
    Preset(
        "Fine detail",
        {"strength": 1000.0},
        "More repulsion: small groups open up and more neighbours lie side by side. "
        "Groups come closer to one another.",
    ),
    Preset(
        "Continuity",
        {"strength": 100.0, "n_neighbors": 50},
        "For development: many neighbours and little repulsion, so that transitions "
        "stay connected as lines and branches. Fine detail is lost.",
    ),
    Preset(
        "Quick look",
        {"max_iter": 150, "n_landmarks": 100},
        "Fewer iterations and landmarks: the same groups in about half of the time, a "
        "little less exact inside of them.",
    ),
    Preset(
        "As in the paper",
        {
            "affinity": "uniform",
            "approximation": "landmarks",
            "schedule": "paper",
            "update": "omd",
            "landmark_update": "omd",
            "n_landmarks": 150,
        },
        "All neighbours attract the same, plain steps, 6,000 iterations: slow.",
    ),
)


def apply(preset: Preset, settings: Settings) -> None:
    """Take up a preset; listeners hear of it when all settings are there."""
    with contextlib.ExitStack() as stack:
        for name in PRESET_FIELDS:
            stack.enter_context(settings.events[name].paused())
        for name, value in preset.complete().items():
            setattr(settings, name, value)


def differing(settings: Settings) -> dict[str, Any]:
    """Return those settings a preset could hold that are not the defaults."""
    return {
        name: getattr(settings, name)
        for name in PRESET_FIELDS
        if getattr(settings, name) != _DEFAULTS[name]
    }


def preset_of(settings: Settings, presets: Sequence[Preset]) -> Preset | None:
    """Return the first preset that the settings are those of, or None."""
    chosen = differing(settings)
    return next((p for p in presets if _changes(p) == chosen), None)


def _changes(preset: Preset) -> dict[str, Any]:
    return {k: v for k, v in preset.values.items() if v != _DEFAULTS[k]}


def presets_path() -> Path:
    """Return the file of the person's presets, which need not be there."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return Path(chosen)
    return platformdirs.user_config_path("napari-embedding-game") / "presets.json"


class PresetStore:
    """The presets that are offered: the built-in ones, then the person's.

    Parameters
    ----------
    path : Path, optional
        Of the file; ``presets_path()`` by default.

    Raises
    ------
    DataError
        By ``read``, ``save`` and ``delete``: the file is damaged or cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or presets_path()
        self.presets: tuple[Preset, ...] = BUILT_IN

    def read(self) -> None:
        """Read the person's presets; where that fails only the built-in are there."""
        self.presets = BUILT_IN
        self.presets = (*BUILT_IN, *_read(self.path))

    def save(self, name: str, settings: Settings) -> Preset:
        """Keep the present settings under a name; one of the person's is replaced.

        A file that cannot be read is put aside, beside the new one.

        Raises
        ------
        DataError
            The name is empty, too long, or that of a built-in preset.
        """
        name = " ".join(name.split())
        if not name or len(name) > LONGEST_NAME:
            raise DataError(
                f"Give the preset a name of 1 to {LONGEST_NAME} characters."
            )
        if any(name.casefold() == built_in.name.casefold() for built_in in BUILT_IN):
            raise DataError(f"'{name}' is built in: choose another name.")
        preset = Preset(name, differing(settings), is_own=True)
        own = [p for p in self._own() if p.name.casefold() != name.casefold()]
        self._write([*own, preset])
        return preset

    def delete(self, name: str) -> None:
        """Forget one of the person's presets."""
        self._write([p for p in self._own() if p.name != name])

    def _own(self) -> list[Preset]:
        """Return what another window may have saved meanwhile, too."""
        try:
            return _read(self.path)
        except DataError:
            with contextlib.suppress(OSError):
                self.path.replace(self.path.with_suffix(".damaged.json"))
            return []

    def _write(self, own: Sequence[Preset]) -> None:
        stored = _File(tuple(_Stored(p.name, dict(p.values)) for p in own))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"Presets cannot be kept in {self.path.parent} "
                f"({error.strerror or error})."
            ) from error
        with whole_or_nothing(self.path) as temporary:
            temporary.write_bytes(dumps(stored))
        self.presets = (*BUILT_IN, *own)


@dataclass(frozen=True, slots=True)
class _Stored:
    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _File:
    presets: tuple[_Stored, ...] = ()


def _read(path: Path) -> list[Preset]:
    where = f"The file of your presets, {path},"
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(
            f"{where} cannot be read ({error.strerror or error})."
        ) from error
    return [_checked(stored, where) for stored in loads(_File, text, where).presets]


def _checked(stored: _Stored, where: str) -> Preset:
    hints = get_type_hints(Settings)
    values = {}
    for name, value in stored.values.items():
        if name not in PRESET_FIELDS:
            raise DataError(
                f"{where} has a preset '{stored.name}' with a setting '{name}', which "
                "this version does not know: update napari-embedding-game, or delete "
                "the file."
            )
        values[name] = decode(hints[name], value, where)
    preset = Preset(stored.name, values, is_own=True)
    complete = preset.complete()
    start = {k: v for k, v in complete.items() if k in START_FIELDS}
    game = {k: v for k, v in complete.items() if k in GAME_FIELDS}
    check_settings(StartSettings(**start), GameSettings(**game), where)
    return preset
