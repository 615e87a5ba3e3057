"""Presets: settings that belong together, by the name of what they are good for.

A preset sets everything that shapes a map, and leaves what the data or the computer ask
for: distance, dimensions, seed, device.  What it does not name gets its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.session.settings import ChosenSettings

LEFT_ALONE = {"n_components", "metric", "random_state", "device", "n_jobs"}
"""Settings that no preset changes."""
_DEFAULTS: dict[str, Any] = {
    f.name: f.default for f in fields(Settings) if f.name not in LEFT_ALONE
}


class Preset(NamedTuple):
    """Settings under a name."""

    name: str
    values: Mapping[str, Any]
    """Fields of :class:`Settings` that differ from their defaults."""
    description: str


PRESETS = (
    Preset(
        "Standard",
        {},
        "The defaults: types of cells as islands, neighbours side by side.",
    ),
    Preset(
        "Islands apart",
        {"repulsion": 100.0},
        "Less repulsion: each group is drawn together, with more room between groups. "
        "Inside of them fewer neighbours lie side by side.",
    ),
    Preset(
        "Fine detail",
        {"repulsion": 1000.0},
        "More repulsion: small groups open up and more neighbours lie side by side. "
        "Groups come closer to one another.",
    ),
    Preset(
        "Continuity",
        {"repulsion": 100.0, "n_neighbors": 50},
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
            "n_landmarks": 150,
        },
        "All neighbours attract the same, plain steps, 6,000 iterations: slow.",
    ),
)


def apply(preset: Preset, settings: ChosenSettings) -> None:
    """Take up a preset; listeners hear of it when all settings are there."""
    settings.update(**{**_DEFAULTS, **preset.values})


def preset_of(settings: ChosenSettings) -> Preset | None:
    """Return the preset that the settings are those of, or None."""
    chosen = {name: getattr(settings, name) for name in _DEFAULTS}
    chosen = {name: v for name, v in chosen.items() if v != _DEFAULTS[name]}
    return next((preset for preset in PRESETS if preset.values == chosen), None)
