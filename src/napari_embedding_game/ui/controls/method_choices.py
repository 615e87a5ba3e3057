"""What can be chosen for a game, in plain words, and a control for each setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from magicgui.widgets import Container, create_widget
from magicgui.widgets.bases import ValueWidget

from napari_embedding_game.core import settings as engine
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.graph.row_affinities import ROW_AFFINITIES
from napari_embedding_game.core.graph.starts import STARTS
from napari_embedding_game.core.settings import Settings, affinities, approximations
from napari_embedding_game.session.settings import ChosenSettings

APPROXIMATIONS = [
    ("Landmarks that move", "landmarks"),
    ("All pairs, by a grid", "mesh"),
    ("Random pairs", "sampled_edges"),
    ("Random landmarks", "sampled_landmarks"),
    ("All pairs (slow)", "exact"),
]
AFFINITIES = [
    ("The method's own", "auto"),
    ("Partly by closeness", "mixed"),
    ("By closeness (fuzzy)", "fuzzy"),
    ("All the same", "uniform"),
    ("By chance (entropic)", "entropic"),
    *((each.title, name) for name, each in ROW_AFFINITIES.items()),
]
INITS = [
    ("Spectral", "spectral"),
    ("At random", "random"),
    *((method.title, name) for name, method in STARTS.items()),
]
OPTIMIZERS = [(each.title, name) for name, each in engine.OPTIMIZERS.items()]
SCHEDULES = [("Fast", "fast"), ("As in the paper (slow)", "paper")]
METRICS = ["euclidean", "cosine", "correlation", "manhattan"]
DEVICES = [
    ("Automatic", "auto"),
    ("Processor", "cpu"),
    ("NVIDIA graphics card", "cuda"),
    ("Apple graphics", "mps"),
]
AUTOMATIC = "automatic"
REPELLED_BY = (
    "What keeps points apart: landmarks that fit themselves to the map (the game), all "
    "other points, added up on a grid, pairs drawn at random, points drawn at random, "
    "or all pairs of points one by one, for a few thousand at most."
)
LABELS = {
    "method": "Method",
    "n_components": "Dimensions",
    "approximation": "Repelled by",
    "n_landmarks": "Landmarks",
    "n_neighbors": "Neighbours",
    "perplexity": "Perplexity",
    "optimizer": "Optimiser",
    "learning_rate": "Learning rate",
    "landmark_learning_rate": "Landmarks' rate",
    "momentum": "Momentum",
    "schedule": "Schedule",
    "max_iter": "Iterations",
    "affinity": "Attraction",
    "metric": "Distance",
    "init": "Start",
    "random_state": "Seed",
    "device": "Computed by",
}
"""Settings that have a control of their own, from top to bottom: as the dock calls
them."""


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in the words of the dock, such as "Repulsion 100"."""
    parts = []
    for name, value in settings.items():
        label = "Repulsion" if name == "repulsion" else LABELS.get(name, name)
        parts.append(f"{label} {_value_text(name, value)}")
    return ", ".join(parts)


_CHOICES = {
    "approximation": APPROXIMATIONS,
    "affinity": AFFINITIES,
    "init": INITS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}


def _value_text(name: str, value: Any) -> str:
    if value is None:
        return (
            "the method's own" if name in ("repulsion", "approximation") else AUTOMATIC
        )
    if name == "method":
        return METHODS[value].title
    if name in _CHOICES:
        return next((words for words, one in _CHOICES[name] if one == value), value)
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def method_title(name: str) -> str:
    """Return what the list of methods calls one, after what it is listed under."""
    method = METHODS[name]
    return f"{method.group} > {method.title}" if method.group else method.title


def approximations_of(method: str, optimizer: str = "game") -> list[tuple[str, str]]:
    """Return what can push the points of a method apart under an optimiser."""
    offered = approximations(method, optimizer)
    return [choice for choice in APPROXIMATIONS if choice[1] in offered]


def affinities_of(method: str) -> list[tuple[str, str]]:
    """Return the edges that a method can be played on."""
    offered = ("auto", *affinities(method))
    return [choice for choice in AFFINITIES if choice[1] in offered]


def optimizers_of(method: str, affinity: str) -> list[tuple[str, str]]:
    """Return what can move the points of a method that is played on such edges."""
    offered = engine.optimizers(method, affinity)
    return [choice for choice in OPTIMIZERS if choice[1] in offered]


def make_controls(settings: ChosenSettings) -> Container[ValueWidget]:
    """Return a control for each of ``LABELS``, by the type of its field.

    A number that may be None is chosen automatically at its lowest value.
    """
    kinds, options = get_type_hints(Settings), _options(settings)
    controls = Container[ValueWidget](labels=False)
    for name in (field.name for field in fields(Settings) if field.name in LABELS):
        kind, is_automatic = _without_none(kinds[name])
        chosen = dict(options[name])
        decimals, text = chosen.pop("decimals", None), chosen.pop("text", None)
        widget = create_widget(
            name=name, label=LABELS[name], annotation=kind, options=chosen
        )
        if is_automatic and "choices" not in chosen:
            widget.native.setSpecialValueText(AUTOMATIC)
            widget.value = widget.min
        if decimals is not None:
            widget.native.setDecimals(decimals)
        if text is not None:
            widget.native.setText(text)
        controls.append(widget)
    return controls


def _without_none(kind: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was among its values."""
    if get_origin(kind) not in (Union, UnionType):
        return kind, False
    others = [one for one in get_args(kind) if one is not type(None)]
    return others[0], len(others) < len(get_args(kind))


def _options(settings: ChosenSettings) -> dict[str, dict[str, Any]]:
    """Return what magicgui is told of each control."""
    return {
        "method": {
            "choices": [(method_title(name), name) for name in METHODS],
            "tooltip": "The forces between points: the embedding game is quick and "
            "suits most data, the others are known methods to compare it with.",
        },
        "approximation": {
            "choices": lambda _: approximations_of(settings.method, settings.optimizer),
            "tooltip": REPELLED_BY,
        },
        "n_components": {
            "widget_type": "RadioButtons",
            "orientation": "horizontal",
            # A file may have a map on a line.
            "choices": lambda _: sorted({2, 3, settings.n_components}),
            "tooltip": "2: a flat map. 3: a map in space, which you turn with the "
            "mouse; crowded groups find more room. The points go on from where they "
            "are: to 3 along a new axis, and the map stays rather flat until Restart "
            "lays it out anew; to 2 on the plane in which they spread most. The mark "
            "in the timeline brings the former map back.",
        },
        "n_landmarks": {
            "widget_type": "Slider",
            "min": 10,
            "max": 1000,
            "step": 10,
            "tooltip": "Number of landmarks, which push the points apart and are "
            "merged into the clusters: more give finer ones and a more exact repulsion "
            "(L in the paper).",
        },
        "n_neighbors": {
            "min": 2,
            "max": 200,
            "tooltip": "How many most similar rows attract each point: more keep the "
            "large picture together, fewer show fine detail (K in the paper).",
        },
        "perplexity": {
            "min": 2,
            "max": 200,
            "step": 5,
            "decimals": 0,
            "tooltip": "How many similar rows attract each point, counting those "
            "further away for less; three times as many are looked at.",
        },
        "affinity": {
            "choices": lambda _: affinities_of(settings.method),
            "tooltip": "Whether nearer neighbours attract more strongly, or all of "
            "them the same, as in the paper.",
        },
        "metric": {
            "choices": METRICS,
            "tooltip": "How the distance between two rows is measured.",
        },
        "init": {
            "choices": INITS,
            "tooltip": "Where the points stand before the game begins; spectral keeps "
            "the large picture best.",
        },
        "schedule": {
            "choices": SCHEDULES,
            "tooltip": "How step lengths go down during the game: 500 quick "
            "iterations, or the paper's 6,000.",
        },
        "optimizer": {
            "choices": lambda _: optimizers_of(settings.method, settings.affinity),
            "tooltip": "How the points find their places. The game's own steps are "
            "quick and suit all data; the others go downhill over all pairs of points. "
            "Pressured points lets those under pressure out of the plane for a while, "
            "homotopy lets the repulsion grow from next to nothing. For more than "
            "10,000 rows choose Repelled by: All pairs, by a grid, as well.",
        },
        "learning_rate": {
            "min": 0.0,
            "max": 10.0,
            "step": 0.01,
            "tooltip": "Step length of the points in each iteration. Acts at once.",
        },
        "landmark_learning_rate": {
            "min": 0.0,
            "max": 10.0,
            "step": 0.01,
            "tooltip": "Step length of the landmarks; far too long a step makes the "
            "points collapse. Acts at once.",
        },
        "momentum": {
            "min": -0.05,
            "max": 0.99,
            "step": 0.05,
            "tooltip": "How much of the last step is carried on into the next. Acts "
            "at once.",
        },
        "max_iter": {
            "widget_type": "FloatSpinBox",  # magicgui's other one has no "automatic"
            "decimals": 0,
            "min": 0,
            "max": 20_000,
            "step": 100,
            "tooltip": "Iterations of the game, or the most that an optimiser takes. "
            "Acts at once.",
        },
        "random_state": {
            "min": 0,
            "max": 2**31 - 1,
            "tooltip": "Starts the random numbers: the same seed gives the same map.",
        },
        "device": {
            "choices": DEVICES,
            "tooltip": "What computes the game; automatic takes an NVIDIA card if "
            "there is one.",
        },
    }
