"""All settings of a map, their ranges, and the rules for combining them.

Window, command line and session file are made from the fields of :class:`Settings`:
the metadata of each field has its title, its words and its range.
``EmbeddingGame.__init__`` repeats the defaults of 13 fields, which a test compares.
Distances, devices, and neighbours against the number of rows are checked where they are
used (``neighbors.choose_search`` and ``validate_row_count``,
``device.resolve_device``), names that are no setting in
``EmbeddingGame._resolve_settings`` and ``_begin_run``.
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
    check_number,
    make_value_error,
)
from napari_embedding_game.core.graph.choices import AFFINITIES, ROW_AFFINITIES, STARTS

ScheduleName = Literal["fast", "paper"]

_RATE = {
    "allowed": "a number at least 0",
    "least": 0,
    "below": 1e30,  # far beyond use, and still a number in single precision
    "shown": (0.0, 10.0, 0.01),
    "steerable": True,
}
_MAX_SEED = 2**32 - 1
"""Largest seed: numpy's RandomState, which libraries use, takes no larger seed."""


def _make_field(default: Any, title: str, words: str, **more: Any) -> Any:
    """Return a dataclass field whose metadata describe one setting.

    ``title`` and ``words`` are texts for the window and the command line.  ``more``:
    ``least``, ``most`` and ``below`` bound a number; ``allowed`` is the rule in words;
    ``choices`` returns a dict of names and titles; ``takes_functions`` is whether
    Python may give a function instead of a name; ``shown`` are the limits and the step
    of the window's control, ``slides`` whether the control is a slider; ``steerable``
    is whether the setting may change during a game.
    """
    metadata = {"title": title, "words": words, "steerable": False, **more}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a map: complete and immutable.

    A number of None is replaced by the method's (``methods.METHODS``) or the
    schedule's (:func:`schedule.resolve_schedule`); "auto" stands for the method's
    affinity, or for a device by the size of the data.  ``repulsion`` is in the method's
    unit: for the game lambda x N, so that the paper's lambda is ``repulsion / N``.
    Methods that are no game ignore the learning rates, momentum and schedule, and take
    at most ``max_iter`` steps.
    """

    method: str = _make_field(
        "game",
        "Method",
        "The forces between points. The embedding game suits most data.",
        choices=lambda: {
            name: _format_method_title(each) for name, each in METHODS.items()
        },
        steerable=True,
    )
    approximation: Approximation | None = _make_field(
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
    repulsion: float | None = _make_field(
        None,
        "Repulsion",
        "Low: groups draw together into branches. High: finer clusters open up. It is "
        "the papers' lambda times the number of rows.",
        allowed="a number above 0",
        least=sys.float_info.min,
        steerable=True,
    )
    large_picture: float = _make_field(
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
    n_components: int = _make_field(
        2,
        "Dimensions",
        "In 3, turn the map with the mouse. The points go on from where they are.",
        least=1,
        most=3,
    )
    n_landmarks: int = _make_field(
        200,
        "Landmarks",
        "They push the points apart and are merged into clusters: more give finer ones "
        "(L in the paper).",
        least=1,
        shown=(10, 1000, 10),
        steerable=True,
    )
    n_neighbors: int = _make_field(
        15,
        "Neighbours",
        "How many similar rows attract each point: more keep transitions together, "
        "fewer show detail (K in the paper).",
        least=1,
        shown=(2, 200, 1),
    )
    perplexity: float = _make_field(
        30.0,
        "Perplexity",
        "How many similar rows attract each point; those further away count less.",
        allowed="a number at least 1",
        least=1,
        shown=(2, 200, 5),
    )
    learning_rate: float | None = _make_field(
        None, "Learning rate", "Step length of the points.", **_RATE
    )
    landmark_learning_rate: float | None = _make_field(
        None,
        "Landmarks' rate",
        "Step length of the landmarks; too long a step makes the points collapse.",
        **_RATE,
    )
    momentum: float | None = _make_field(
        None,
        "Momentum",
        "How much of the last step is carried on into the next.",
        allowed="a number from 0 up to below 1",
        least=0,
        below=1,
        shown=(-0.05, 0.99, 0.05),
        steerable=True,
    )
    schedule: ScheduleName = _make_field(
        "fast",
        "Schedule",
        "Few and quick iterations (at most 500), or the paper's 6,000.",
        choices=lambda: {"fast": "Fast", "paper": "Paper (slow)"},
        steerable=True,
    )
    max_iter: int | None = _make_field(
        None,
        "Iterations",
        "Iterations of the game, or the most that a minimiser takes.",
        least=1,
        shown=(0, 20_000, 100),
        steerable=True,
    )
    second_share: float = _make_field(
        0.5,
        "Second space's share",
        "How much the second space decides which rows are neighbours: at 0 the first "
        "space alone, at 1 the second alone. Has no effect on data of one space.",
        allowed="a number from 0 to 1",
        least=0,
        below=math.nextafter(1, 2),
        shown=(0.0, 1.0, 0.05),
        slides=True,
        steerable=True,
    )
    second_space: str = _make_field(
        "",
        "Second space",
        "Name of the space that is mixed with the first.",
        allowed="the name of a space",
    )
    affinity: str = _make_field(
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
    metric: str = _make_field(
        "euclidean",
        "Distance",
        "How the distance between two rows is measured.",
        takes_functions=True,
        allowed='the name of a distance, such as "euclidean" or "cosine"',
    )
    init: str = _make_field(
        "spectral",
        "Start",
        "Where the points stand first; spectral keeps the large picture best.",
        choices=lambda: {
            "spectral": "Spectral",
            "random": "At random",
            **{name: each.title for name, each in STARTS.items()},
        },
    )
    random_state: int = _make_field(
        0,
        "Seed",
        "The same seed gives the same map.",
        least=0,
        most=_MAX_SEED,
        shown=(0, 2**31 - 1, 1),
    )
    device: str = _make_field(
        "auto",
        "Computed by",
        "Automatic takes an NVIDIA card if there is one.",
        allowed='"auto", "cpu", "cuda" or "mps"',
    )
    n_jobs: int | None = _make_field(
        None,
        "Threads",
        "How many, -1 for all cores. The map does not depend on it.",
    )

    def validate(self) -> Settings:
        """Return these settings with values in plain types of Python.

        Raises InputError for a value out of its range, and for two values that do not
        go together: a method with an approximation, affinity or repulsion that it does
        not take.  "auto" and None stay.
        """
        plain = {
            each.name: _validate_field_value(each, getattr(self, each.name))
            for each in _FIELDS
        }
        spec, _ = resolve_method(self.method, self.approximation)
        if self.affinity != "auto":
            offered = list_affinities(self.method)
            if self.affinity not in offered:
                raise InputError(
                    f"{spec.title} cannot be played with the affinity "
                    f"{self.affinity!r}: choose auto or {_join_with_or(offered)}."
                )
        if not spec.takes_repulsion and self.repulsion not in (None, spec.repulsion):
            raise InputError(
                f"{spec.title} cannot be steered: leave the repulsion at its own, "
                f"{spec.repulsion:g}."
            )
        if self.n_jobs == 0:
            raise make_value_error(
                "n_jobs", "1 or more threads, or -1 for all cores", 0
            )
        return Settings(**plain)


def _format_method_title(method: Method) -> str:
    """Return the method's title, after its group in a window's list."""
    return f"{method.group} > {method.title}" if method.group else method.title


_FIELDS = fields(Settings)
STEERABLE = tuple(f.name for f in _FIELDS if f.metadata["steerable"])
"""Names of settings that may change during a game; other settings need a new run."""
_TYPES = {name: get_args(x) or (x,) for name, x in get_type_hints(Settings).items()}
"""The types that each setting may have."""


def find_setting_type(name: str) -> type[int] | type[float] | type[str]:
    """Return int or float for a setting of numbers, also optional ones; else str."""
    return next((one for one in (int, float) if one in _TYPES[name]), str)


def needs_new_run(before: Settings, after: Settings) -> bool:
    """Return whether ``after`` changes a setting that a running game cannot change."""
    return replace_steerable(before, after) != after


def replace_steerable(settings: Settings, source: Settings) -> Settings:
    """Return ``settings`` with the :data:`STEERABLE` fields of ``source``."""
    return replace(settings, **{name: getattr(source, name) for name in STEERABLE})


def _validate_field_value(setting: Field[Any], value: Any) -> Any:
    """Return a setting's value as int, float, str or None; a function as it is.

    None and functions pass only where the setting takes them.  Raises InputError for a
    value out of the setting's range or of another type.
    """
    name, kind, spec = setting.name, find_setting_type(setting.name), setting.metadata
    if callable(value) and spec.get("takes_functions"):
        return value
    if value is None and type(None) in _TYPES[name]:
        return None
    if "choices" in spec:
        return check_choice(name, value, spec["choices"]())
    if kind is int:
        return check_integer(name, value, spec.get("least"), spec.get("most"))
    if kind is float:
        below = spec.get("below", math.inf)
        return check_number(name, value, spec["allowed"], spec["least"], below)
    if not isinstance(value, str):
        raise make_value_error(name, spec["allowed"], value)
    return value


NO_BOUND = {"umap": "UMAP's repulsion is infinite where two points meet"}
"""Kernels for which the landmarks' bound (Eq. 3) is empty, with the reason."""
MAX_EXACT = 50_000
"""Most points for the sum over all pairs: 0.2 to 1.5 s a step on one core."""
MANY_POINTS = 50_000
"""Fewest points for which the game in the plane uses a grid by default.

So many points crowd between the landmarks; a grid avoids this, with a lower energy in
0.7 of the time (``docs/methods.md``).
"""
FEW_IN_SPACE = 10_000
"""Fewest points in space for which t-SNE is quicker by a grid than by all pairs."""
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


def resolve_method(
    method: str, approximation: Approximation | None
) -> tuple[Method, Approximation]:
    """Return the declaration of a method and the approximation that it will use.

    ``approximation`` None becomes the first that the method offers, whatever the number
    of points: see :func:`fill_approximation_by_size`.  Raises InputError for an unknown
    name, or an approximation that the method does not take.
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
            f"{f', as {why}' if why else ''}: choose the approximation "
            f"{_join_with_or(offered)}."
        )
    return spec, approximation


def resolve_approximation(settings: Settings) -> Approximation:
    """Return the settings' approximation of the repulsion, or the method's default."""
    return resolve_method(settings.method, settings.approximation)[1]


def resolve_repulsion(settings: Settings) -> float:
    """Return the settings' repulsion, or the method's default."""
    default = get_method(settings.method).repulsion
    return default if settings.repulsion is None else settings.repulsion


def fill_affinity(settings: Settings) -> Settings:
    """Return settings with the method's default affinity instead of "auto"."""
    name = get_method(settings.method).affinity
    return replace(settings, affinity=name) if settings.affinity == "auto" else settings


def fill_approximation_by_size(settings: Settings, n_points: int) -> Settings:
    """Return settings with an approximation that suits the number of points.

    An approximation that was chosen stays.  None becomes "mesh" for the game of
    ``MANY_POINTS`` or more points in the plane, and "exact" in space for fewer than
    ``FEW_IN_SPACE`` points where the method's default is a grid, as grids in space are
    coarse and slow.  Else None stays None.
    """
    if settings.approximation is None:
        is_many = n_points >= MANY_POINTS and settings.n_components == 2
        if settings.method == "game" and is_many:
            return replace(settings, approximation="mesh")
        is_few = n_points < FEW_IN_SPACE and settings.n_components == 3
        if resolve_approximation(settings) == "mesh" and is_few:
            return replace(settings, approximation="exact")
    return settings


def resolve_n_neighbors(settings: Settings, n_rows: int) -> int:
    """Return the number of neighbours to search for in data of ``n_rows`` rows.

    With the affinity "entropic" three perplexities, at most all other rows and at least
    1; else ``settings.n_neighbors``, even if the rows are fewer.
    """
    if settings.affinity != "entropic":
        return settings.n_neighbors
    return max(1, min(round(3 * settings.perplexity), n_rows - 1))


def lower_perplexity(settings: Settings, n_rows: int) -> tuple[float, str] | None:
    """Return the largest perplexity that ``n_rows`` rows allow, and a warning sentence.

    It is a third of the other rows, at least 1.  None where the settings' perplexity is
    no larger, or the affinity is not "entropic".
    """
    asked, most = settings.perplexity, max(1.0, (n_rows - 1) / 3)
    if settings.affinity != "entropic" or asked <= most:
        return None
    needed = math.ceil(3 * asked) + 1
    return most, (
        f"perplexity={asked:g} needs at least {needed} rows; with {n_rows} rows, "
        f"{most:.3g} is used."
    )


def is_game(settings: Settings) -> bool:
    """Return whether the method is a game, rather than a minimiser or a given map."""
    return get_method(settings.method).make_layouts is None


def list_affinities(method: str) -> tuple[str, ...]:
    """Return the names of the affinities that a method can use.

    They are all of :data:`choices.AFFINITIES`, or only the method's own affinity if
    that is one of ``ROW_AFFINITIES``.
    """
    affinity = get_method(method).affinity
    return (affinity,) if affinity in ROW_AFFINITIES else AFFINITIES


def validate_point_count(settings: Settings, n_points: int) -> None:
    """Raise InputError if the settings' method cannot move so many points.

    The message proposes other approximations, or another method, and names the limit.
    """
    method = get_method(settings.method)
    others = [name for name in method.approximations if name != "exact"]
    advice = (
        f"the approximation {_join_with_or(others)}" if others else "another method"
    )
    if not is_within_point_limit(settings, n_points):
        raise InputError(
            f"{method.title} goes through all pairs of points, which takes too long "
            f"for {n_points:,} of them: choose {advice}, or embed at most "
            f"{method.max_points or MAX_EXACT:,} rows."
        )


def is_within_point_limit(settings: Settings, n_points: int) -> bool:
    """Return whether the method, with its approximation, can move so many points.

    The limit is the method's ``max_points``, or :data:`MAX_EXACT` for a game whose
    repulsion is the sum over all pairs; other games have none.
    """
    most = get_method(settings.method).max_points
    if most is None:
        is_exact = is_game(settings) and resolve_approximation(settings) == "exact"
        most = MAX_EXACT if is_exact else n_points
    return n_points <= most


def validate_takes_hand_forces(settings: Settings) -> None:
    """Raise InputError if the method is no game, so that a hand cannot move points."""
    if not is_game(settings):
        raise InputError(NO_HAND)


def validate_continuation(settings: Settings) -> None:
    """Raise InputError if the method cannot continue from an existing map.

    Games and the method "given" can; other methods begin anew.
    """
    method = get_method(settings.method)
    if method.make_layouts and settings.method != "given":
        raise InputError(
            f"{method.title} always begins anew and cannot continue from a map: "
            "press Run again, or choose another method."
        )


def _join_with_or(names: Iterable[str]) -> str:
    return " or ".join(names)
