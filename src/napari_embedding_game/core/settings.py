"""All that can be chosen for a map, what goes with what, and what cannot be used.

Window, command line and session file are made from the fields of :class:`Settings`:
each has its title, its words and its range in its metadata.  ``EmbeddingGame.__init__``
repeats the defaults of 13 of them, which a test compares.  Distances, devices and
neighbours against the number of rows are checked where they are used
(``neighbors.choose_search`` and ``check_rows``, ``device.resolve_device``), names that
are no setting in ``EmbeddingGame._chosen`` and ``_play``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from napari_embedding_game.core.energy.methods import (
    APPROXIMATIONS,
    METHODS,
    Approximation,
    Method,
    get_method,
)
from napari_embedding_game.core.errors import (
    InputError,
    check_choice,
    check_integer,
    number,
    refused,
)
from napari_embedding_game.core.graph.choices import AFFINITIES, ROW_AFFINITIES, STARTS

ScheduleName = Literal["fast", "paper"]

_RATE = {
    "allowed": "a number at least 0",
    "least": 0,
    "below": 1e30,  # far beyond use, but single precision can hold it
    "shown": (0.0, 10.0, 0.01),
    "steerable": True,
}
_MAX_SEED = 2**32 - 1
"""As numpy's RandomState, which libraries draw from, takes no larger one."""


def _setting(default: Any, title: str, words: str, **more: Any) -> Any:
    """Return a field with its texts for the window and the command line.

    ``least``, ``most`` and ``below`` bound a number; ``allowed`` is the rule in words;
    ``choices`` returns names and their titles; ``takes_functions``: whether Python may
    give a function instead of a name; ``shown`` are the limits and the step of
    a window's control, ``slides`` whether it is a slider; ``steerable``: whether it may
    change in a game.
    """
    metadata = {"title": title, "words": words, "steerable": False, **more}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a map is made with.  Always complete, never edited.

    A number of None is that of the method (``methods.METHODS``) or of the schedule
    (:func:`schedule.resolve_schedule`), "auto" the method's edges or a device by the
    size of the data.  ``repulsion`` is in the method's unit: for the game
    lambda x N, so that the paper's lambda is ``repulsion / N``.  Under a method that is
    no game the learning rates, momentum and schedule have no say, and ``max_iter`` is
    the most steps.
    """

    method: str = _setting(
        "game",
        "Method",
        "The forces between points. The embedding game suits most data.",
        choices=lambda: {name: _titled(each) for name, each in METHODS.items()},
        steerable=True,
    )
    approximation: Approximation | None = _setting(
        None,
        "Repulsion by",
        "What keeps points apart; all pairs are for a few thousand points.",
        choices=lambda: {
            "landmarks": "Landmarks",
            "mesh": "All pairs (grid)",
            "sampled_edges": "Random pairs",
            "sampled_landmarks": "Random landmarks",
            "exact": "All pairs (slow)",
        },
        steerable=True,
    )
    repulsion: float | None = _setting(
        None,
        "Repulsion",
        "Low: groups draw together into branches. High: finer clusters open up. It is "
        "the papers' lambda times the number of rows.",
        allowed="a number above 0",
        least=sys.float_info.min,
        steerable=True,
    )
    large_picture: float = _setting(
        0.0,
        "Large picture",
        "How strongly groups that are far apart in the data are drawn far apart on the "
        "map. At 0 only neighbours count; about 2 hardly changes neighbourhoods.",
        allowed="a number at least 0",
        least=0,
        below=1e6,
        shown=(0.0, 10.0, 0.5),
        slides=True,
        steerable=True,
    )
    n_components: int = _setting(
        2,
        "Dimensions",
        "In 3, turn the map with the mouse. The points go on from where they are.",
        least=1,
        most=3,
    )
    n_landmarks: int = _setting(
        200,
        "Landmarks",
        "They push the points apart and are merged into clusters: more give finer ones "
        "(L in the paper).",
        least=1,
        shown=(10, 1000, 10),
        steerable=True,
    )
    n_neighbors: int = _setting(
        15,
        "Neighbours",
        "How many similar rows attract each point: more keep transitions together, "
        "fewer show detail (K in the paper).",
        least=1,
        shown=(2, 200, 1),
    )
    perplexity: float = _setting(
        30.0,
        "Perplexity",
        "How many similar rows attract each point; those further away count less.",
        allowed="a number at least 1",
        least=1,
        shown=(2, 200, 5),
    )
    learning_rate: float | None = _setting(
        None, "Learning rate", "Step length of the points.", **_RATE
    )
    landmark_learning_rate: float | None = _setting(
        None,
        "Landmarks' rate",
        "Step length of the landmarks; too long a step makes the points collapse.",
        **_RATE,
    )
    momentum: float | None = _setting(
        None,
        "Momentum",
        "How much of the last step is carried on into the next.",
        allowed="a number from 0 up to below 1",
        least=0,
        below=1,
        shown=(-0.05, 0.99, 0.05),
        steerable=True,
    )
    schedule: ScheduleName = _setting(
        "fast",
        "Schedule",
        "Few and quick iterations (at most 500), or the paper's 6,000.",
        choices=lambda: {"fast": "Fast", "paper": "Paper (slow)"},
        steerable=True,
    )
    max_iter: int | None = _setting(
        None,
        "Iterations",
        "Iterations of the game, or the most that a minimiser takes.",
        least=1,
        shown=(0, 20_000, 100),
        steerable=True,
    )
    affinity: str = _setting(
        "auto",
        "Attraction",
        "How it falls with the distance of neighbours: uniform not at all.",
        choices=lambda: {
            "auto": "Automatic",
            "mixed": "Mixed",
            "fuzzy": "Fuzzy",
            "uniform": "Uniform",
            "entropic": "Entropic",
            **{name: each.title for name, each in ROW_AFFINITIES.items()},
        },
    )
    metric: str = _setting(
        "euclidean",
        "Distance",
        "How the distance between two rows is measured.",
        takes_functions=True,
        allowed='the name of a distance, such as "euclidean" or "cosine"',
    )
    init: str = _setting(
        "spectral",
        "Start",
        "Where the points stand first; spectral keeps the large picture best.",
        choices=lambda: {
            "spectral": "Spectral",
            "random": "At random",
            **{name: each.title for name, each in STARTS.items()},
        },
    )
    random_state: int = _setting(
        0,
        "Seed",
        "The same seed gives the same map.",
        least=0,
        most=_MAX_SEED,
        shown=(0, 2**31 - 1, 1),
    )
    device: str = _setting(
        "auto",
        "Computed by",
        "Automatic takes an NVIDIA card if there is one.",
        allowed='"auto", "cpu", "cuda" or "mps"',
    )
    n_jobs: int | None = _setting(
        None,
        "Threads",
        "How many, -1 for all cores. The map does not depend on it.",
    )

    def validate(self) -> Settings:
        """Return the same in plain types of Python.

        InputError: a value is out of its range, or two do not go together.
        """
        plain = {each.name: _plain(each, getattr(self, each.name)) for each in _FIELDS}
        spec, _ = choose(self.method, self.approximation)
        if self.affinity != "auto":
            offered = affinities(self.method)
            if self.affinity not in offered:
                raise InputError(
                    f"{spec.title} cannot be played with the affinity "
                    f"{self.affinity!r}: choose auto or {_or(offered)}."
                )
        if not spec.takes_repulsion and self.repulsion not in (None, spec.repulsion):
            raise InputError(
                f"{spec.title} cannot be steered: leave the repulsion at its own, "
                f"{spec.repulsion:g}."
            )
        if self.n_jobs == 0:
            raise refused("n_jobs", "1 or more threads, or -1 for all cores", 0)
        return Settings(**plain)


def _titled(method: Method) -> str:
    return f"{method.group} > {method.title}" if method.group else method.title


_FIELDS = fields(Settings)
STEERABLE = tuple(f.name for f in _FIELDS if f.metadata["steerable"])
"""Settings that may change while the game is played; others need a new run."""
_TYPES = {name: get_args(x) or (x,) for name, x in get_type_hints(Settings).items()}
"""The types that each setting may have."""


def find_setting_type(name: str) -> type[int] | type[float] | type[str]:
    """Return the type of a setting's values other than None; choices are texts."""
    return next((one for one in (int, float) if one in _TYPES[name]), str)


def needs_start(before: Settings, after: Settings) -> bool:
    """Return whether only a new run can be made with the settings that come after."""
    return steered(before, after) != after


def steered(settings: Settings, to: Settings) -> Settings:
    """Return the settings of a run that was steered by others."""
    return replace(settings, **{name: getattr(to, name) for name in STEERABLE})


def _plain(each: Field[Any], value: Any) -> Any:
    """Return the value of a field in a type of Python, if it is in its range."""
    name, kind, spec = each.name, find_setting_type(each.name), each.metadata
    if callable(value) and spec.get("takes_functions"):  # of Python alone
        return value
    if value is None and type(None) in _TYPES[name]:
        return None
    if "choices" in spec:
        return check_choice(name, value, spec["choices"]())
    if kind is int:
        return check_integer(name, value, spec.get("least"), spec.get("most"))
    if kind is float:
        below = spec.get("below", math.inf)
        return number(name, value, spec["allowed"], spec["least"], below)
    if not isinstance(value, str):
        raise refused(name, spec["allowed"], value)
    return value


NO_BOUND = {"umap": "UMAP's repulsion is infinite where two points meet"}
"""Kernels for which landmarks (Eq. 3) bound nothing, and why."""
MAX_EXACT = 50_000
"""Points up to which all pairs are gone through: 0.2 to 1.5 s a step on one core."""
MANY_POINTS = 50_000
"""Points from which a flat map of the game is played on a grid by default.

So many crowd between the landmarks; on a grid they do not, at a lower energy in 0.7 of
the time (``docs/methods.md``).
"""
FEW_IN_SPACE = 10_000
"""Points in space of t-SNE from which a grid is quicker than all pairs, about."""
NO_CHANGE = (
    "The game cannot take turns with what moves the points by itself: begin a new run "
    "to use another method."
)
NO_STEERING = (
    "Only a game is steered on its way: give the parameters to a new fit, or choose a "
    "method that is played as a game."
)
NO_LARGE_PICTURE = (
    "The large picture needs the rows of the data, which this map does not have: set "
    "it to 0."
)
NO_HAND = (
    "Only a game takes up what a hand does to its points: choose a method that is "
    "played as a game."
)


def choose(
    method: str, approximation: Approximation | None
) -> tuple[Method, Approximation]:
    """Return a method and its approximation; None is the method's default.

    InputError: there is no such method or approximation, or they do not go together.
    """
    spec = get_method(method)
    offered = spec.approximations
    if approximation is None:
        return spec, offered[0]
    check_choice("approximation", approximation, APPROXIMATIONS)
    if approximation not in offered:
        why = NO_BOUND.get(spec.kernel) if approximation == "landmarks" else None
        raise InputError(
            f"{spec.title} does not take the approximation {approximation}"
            f"{f', as {why}' if why else ''}: choose the approximation {_or(offered)}."
        )
    return spec, approximation


def approximation_of(settings: Settings) -> Approximation:
    """Return how the settings, or else their method, find the repulsion."""
    return choose(settings.method, settings.approximation)[1]


def repulsion_of(settings: Settings) -> float:
    """Return the repulsion that the settings or else their method asks for."""
    default = get_method(settings.method).repulsion
    return default if settings.repulsion is None else settings.repulsion


def with_affinity(settings: Settings) -> Settings:
    """Return settings with the method's default affinity in place of "auto"."""
    name = get_method(settings.method).affinity
    return replace(settings, affinity=name) if settings.affinity == "auto" else settings


def with_approximation(settings: Settings, n_points: int) -> Settings:
    """Return settings in which the approximation suits the number of points.

    If none was chosen it is "mesh" for the game of ``MANY_POINTS`` or more in the
    plane; in space grids are coarse, and slow: below ``FEW_IN_SPACE`` methods whose
    default is a grid are "exact".
    """
    if settings.approximation is None:
        is_many = n_points >= MANY_POINTS and settings.n_components == 2
        if settings.method == "game" and is_many:
            return replace(settings, approximation="mesh")
        is_few = n_points < FEW_IN_SPACE and settings.n_components == 3
        if approximation_of(settings) == "mesh" and is_few:
            return replace(settings, approximation="exact")
    return settings


def n_searched(settings: Settings, n_rows: int) -> int:
    """Return how many neighbours to search for: the entropic take 3 perplexities."""
    if settings.affinity != "entropic":
        return settings.n_neighbors
    return max(1, min(round(3 * settings.perplexity), n_rows - 1))


def lowered_perplexity(settings: Settings, n_rows: int) -> tuple[float, str] | None:
    """Return the perplexity that so few rows allow, and a sentence that says so.

    None where the settings' own perplexity fits, or is not used.
    """
    asked, most = settings.perplexity, max(1.0, (n_rows - 1) / 3)
    if settings.affinity != "entropic" or asked <= most:
        return None
    needed = math.ceil(3 * asked) + 1
    return most, (
        f"perplexity={asked:g} needs at least {needed} rows; with {n_rows} rows, "
        f"{most:.3g} is used."
    )


def is_played(settings: Settings) -> bool:
    """Return whether points and landmarks play, rather than the points be moved."""
    return get_method(settings.method).moved_by is None


def affinities(method: str) -> tuple[str, ...]:
    """Return the edges that a method can be played on."""
    affinity = get_method(method).affinity
    return (affinity,) if affinity in ROW_AFFINITIES else AFFINITIES


def check_size(settings: Settings, n_points: int) -> None:
    """Raise InputError for a map too large for what moves its points."""
    method = get_method(settings.method)
    others = [name for name in method.approximations if name != "exact"]
    advice = f"the approximation {_or(others)}" if others else "another method"
    if not fits(settings, n_points):
        raise InputError(
            f"{method.title} goes through all pairs of points, which takes too long "
            f"for {n_points:,} of them: choose {advice}, or embed at most "
            f"{method.max_points or MAX_EXACT:,} rows."
        )


def fits(settings: Settings, n_points: int) -> bool:
    """Return False if the sum is over all pairs of too many points to wait for."""
    most = get_method(settings.method).max_points
    if most is None:
        is_exact = is_played(settings) and approximation_of(settings) == "exact"
        most = MAX_EXACT if is_exact else n_points
    return n_points <= most


def check_hand(settings: Settings) -> None:
    """Raise InputError where nothing takes up what a hand does to the points."""
    if not is_played(settings):
        raise InputError(NO_HAND)


def check_goes_on(settings: Settings) -> None:
    """Raise InputError where the method cannot go on from a map."""
    method = get_method(settings.method)
    if method.moved_by and settings.method != "given":
        raise InputError(
            f"{method.title} always begins anew and cannot continue from a map: "
            "press Run again, or choose another method."
        )


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)
