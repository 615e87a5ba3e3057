"""What a reproduction is, how it is run, and how what it found is written.

Each is a line of :mod:`table` and a function (inputs, parts) -> Result in the module of
its paper, whose docstring says what differs from the paper, and why.
"""

from __future__ import annotations

import datetime
import inspect
import json
import operator
import os
import platform
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import joblib
import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing

from .figures import write_figure

if TYPE_CHECKING:
    import pandas as pd

    from napari_embedding_game.data.dataset import Dataset

K = TypeVar("K", bound=Hashable)
Rows = Sequence[Mapping[Any, Any]]
"""Of a table; the keys of the first are the columns."""
_RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a person chose for a reproduction."""

    data: Path | None = None
    """A folder with the files of :data:`table.SOURCES`."""
    quick: bool = False
    """Small sizes, to see that it works: seconds instead of minutes or hours."""
    random_state: int = 0

    def load(self, name: str) -> Dataset:
        """Read a data set by its name in :data:`table.SOURCES`; DataError if absent."""
        from .table import load

        return load(name, self.data)


class Check(NamedTuple):
    """A criterion: a value, and the bound that it has to keep."""

    asked: str
    value: float
    relation: str
    """"<", "<=", ">", ">=" or "=", between value and bound."""
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the value keeps the bound; NaN keeps none."""
        return bool(_RELATIONS[self.relation](self.value, self.bound))


@dataclass(frozen=True, slots=True)
class Result:
    """What a reproduction found."""

    tables: Mapping[str, Rows]
    """By title."""
    checks: Sequence[Check]
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Of the figure, by title, besides the maps of all parts."""


class Reproduction(NamedTuple):
    """One figure or table of a paper that can be computed anew."""

    name: str
    what: str
    paper: str
    data: str
    """Names in :data:`table.SOURCES`, with ", " between."""
    function: str
    """Module and function, with "." between.  What its docstring says after the first
    line is written below the tables."""


class Parts:
    """Computes parts by name, or takes them from the folder where they are kept."""

    def __init__(
        self,
        folder: Path,
        origin: dict[str, Any],
        again: bool = False,
        quiet: bool = True,
    ) -> None:
        memory = joblib.Memory(folder, verbose=0)
        self._computed = memory.cache(_computed, ignore=["compute"])
        self._origin, self._again, self._quiet = origin, again, quiet
        self.processor_seconds = 0.0
        """Of all parts, those from the folder included."""
        self.maps: dict[str, dict[str, Any]] = {}
        """Those parts that have a layout."""

    def __call__(self, compute: Callable[..., Any], keys: Iterable[K]) -> dict[K, Any]:
        """Return ``compute(*key)`` under each key, computed where it is not there."""
        from rich.console import Console
        from rich.progress import track

        found, console = {}, Console(stderr=True)
        for key in track(list(keys), console=console, disable=self._quiet):
            values = key if isinstance(key, tuple) else (key,)
            name = " ".join(map(str, values))
            call = self._origin, name, partial(compute, *values)
            if self._again and self._computed.check_call_in_cache(*call):
                self._computed.call_and_shelve(*call).clear()
            found[key], seconds = self._computed(*call)
            self.processor_seconds += seconds
            if isinstance(found[key], dict) and "layout" in found[key]:
                self.maps[name] = found[key]
        return found


def _computed(
    origin: dict[str, Any], name: str, compute: Callable[[], Any]
) -> tuple[Any, float]:
    """Return a part, and the seconds of the processor that it took."""
    begin = time.process_time()
    return compute(), time.process_time() - begin


def reproduce(
    reproduction: Reproduction,
    inputs: Inputs,
    out: Path,
    *,
    again: bool = False,
    quiet: bool = True,
) -> dict[str, Any]:
    """Run a reproduction and write what it found into the folder ``out / name``.

    The files are ``NAME.png``, ``NAME.md`` and ``NAME.json``, of which what is returned
    stands in the last.  Finished parts are kept in ``parts`` there: after an
    interruption, call it again with the same arguments.

    Raises
    ------
    DataError, InputError
        Data or folder cannot be used, or matplotlib is not installed.
    """
    from .table import described

    name = reproduction.name
    origin = {
        "reproduction": name,
        "version": metadata.version("napari-embedding-game"),
        "data": described(reproduction.data, inputs.data),
        "quick": inputs.quick,
        "random_state": inputs.random_state,
    }
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The folder {folder} cannot be made ({error.strerror}): choose another."
        ) from error
    parts = Parts(folder / "parts", origin, again, quiet)
    module, _, function = reproduction.function.partition(".")
    run = getattr(import_module(f".{module}", __package__), function)
    result: Result = run(inputs, parts)
    checks = [
        {
            "asked": f"{check.asked} {check.relation} {_text(check.bound)}",
            "found": _text(check.value),
            # None: small data cannot tell.
            "passed": None if inputs.quick else check.passed,
        }
        for check in result.checks
    ]
    facts = {
        "name": name,
        "what": reproduction.what,
        "paper": reproduction.paper,
        "origin": origin,
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "processor_seconds": round(parts.processor_seconds, 1),
        "passed": all(check["passed"] is not False for check in checks),
        "checks": checks,
        "tables": [
            {"title": title, "rows": [dict(row) for row in rows]}
            for title, rows in result.tables.items()
        ],
        "notes": [
            " ".join(note.split())
            for note in (inspect.getdoc(run) or "").split("\n\n")[1:]
        ],
    }
    write_figure(parts.maps, result.curves, folder / f"{name}.png")
    numbers = json.dumps(facts, indent=1, default=lambda value: value.item())
    for ending, text in ((".md", markdown(facts)), (".json", numbers)):
        with whole_or_nothing(folder / (name + ending)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return facts


_WORDS = {True: "passed", False: "**not passed**", None: "not judged (quick)"}


def markdown(facts: dict[str, Any]) -> str:
    """Return the text that ``NAME.md`` holds."""
    source = facts["origin"]
    quick = ", quick (small sizes)" if source["quick"] else ""
    checks = [{**each, "passed": _WORDS[each["passed"]]} for each in facts["checks"]]
    lines = [
        f"**{facts['name']}**: {facts['what']}",
        "",
        f"{facts['paper']}. Data: {source['data']}{quick}. Took "
        f"{facts['processor_seconds']:,.1f} s of processor time on "
        f"{facts['machine']}, {facts['date']}.",
        "",
        *_rows(checks),
    ]
    for table in facts["tables"]:
        lines += [f"{table['title']}:", "", *_rows(table["rows"])]
    lines += [f"- {note}" for note in facts["notes"]]
    return "\n".join(lines).rstrip() + "\n"


def _rows(rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [map(str, rows[0]), ["---"] * len(rows[0])]
    lines += [map(_text, row.values()) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:,.0f}" if abs(float(value)) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
