"""What a reproduction is, how it is run, and how what it found is written.

Each is a line of :mod:`table` and a function (inputs, parts) -> Result in the module of
its paper.  What differs from the papers, and why: ``docs/reproduction.md``.
"""

from __future__ import annotations

import datetime
import json
import operator
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from napari_embedding_game.data.export.atomic import atomic_write

from .figures import write_figure
from .inputs import Inputs

Rows = list[dict[Any, Any]]
RELATIONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


class Check(NamedTuple):
    """A criterion: a value, and the bound that it has to keep."""

    asked: str
    value: float
    relation: str
    """One of ``RELATIONS``, between value and bound."""
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the value keeps the bound; NaN keeps none."""
        return bool(RELATIONS[self.relation](self.value, self.bound))


class Result(NamedTuple):
    """What a reproduction found: tables and curves of the figure by title."""

    tables: Mapping[str, pd.DataFrame | Rows]
    checks: Sequence[Check]
    curves: Mapping[str, pd.DataFrame] = {}
    """Drawn besides the maps of all parts."""


class Reproduction(NamedTuple):
    """One figure or table of a paper that can be computed anew."""

    name: str
    what: str
    paper: str
    data: str
    """Names in :data:`inputs.SOURCES`, with ", " between."""
    function: str
    """Module and function, with "." between."""


class Parts:
    """Computes parts by name, or takes them from the folder where they are kept."""

    def __init__(self, folder: Path, origin: dict[str, Any], quiet: bool) -> None:
        memory = joblib.Memory(folder, verbose=0)
        self._computed = memory.cache(_computed, ignore=["compute"])
        self._origin, self._quiet = origin, quiet
        self.processor_seconds = 0.0
        """Of all parts, those from the folder included."""
        self.maps: dict[str, dict[str, Any]] = {}
        """Those parts that have a layout."""

    def __call__(
        self, compute: Callable[..., Any], keys: Iterable[Any]
    ) -> dict[Any, Any]:
        """Return ``compute(*key)`` under each key, computed where it is not there."""
        from rich.console import Console
        from rich.progress import track

        results, console = {}, Console(stderr=True)
        for key in track(list(keys), console=console, disable=self._quiet):
            values = key if isinstance(key, tuple) else (key,)
            name = " ".join(map(str, values))
            results[key], seconds = self._computed(
                self._origin, name, partial(compute, *values)
            )
            self.processor_seconds += seconds
            if isinstance(results[key], dict) and "layout" in results[key]:
                self.maps[name] = results[key]
        return results


def _computed(
    origin: dict[str, Any], name: str, compute: Callable[[], Any]
) -> tuple[Any, float]:
    """Return a part, and the seconds of the processor that it took."""
    begin = time.process_time()
    return compute(), time.process_time() - begin


def reproduce(
    reproduction: Reproduction, inputs: Inputs, out: Path, quiet: bool = True
) -> dict[str, Any]:
    """Run a reproduction and write what it found into the folder ``out / name``.

    The files are ``NAME.png`` and ``NAME.json``, which holds what is returned.
    Finished parts are kept in ``parts`` there: after an interruption, call it again.
    DataError, InputError or OSError: data or folder cannot be used.
    """
    name, _, _, data, function = reproduction
    origin = {
        "reproduction": name,
        "version": metadata.version("napari-embedding-game"),
        "data": inputs.described(data),
        "quick": inputs.quick,
        "random_state": inputs.random_state,
    }
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    parts = Parts(folder / "parts", origin, quiet)
    module, function = function.split(".")
    run = getattr(import_module(f".{module}", __package__), function)
    result: Result = run(inputs, parts)
    facts = {
        "name": name,
        "origin": origin,
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "processor_seconds": round(parts.processor_seconds, 1),
        # Small data are not significant.
        "passed": inputs.quick or all(check.passed for check in result.checks),
        "checks": [
            {
                "asked": f"{check.asked} {check.relation} {_text(check.bound)}",
                "found": _text(check.value),
                "passed": None if inputs.quick else check.passed,
            }
            for check in result.checks
        ],
        "tables": [
            {"title": title, "rows": _rows(pd.DataFrame(table))}
            for title, table in result.tables.items()
        ],
    }
    write_figure(parts.maps, result.curves, folder / f"{name}.png")
    numbers = json.dumps(facts, indent=1, default=lambda value: value.item())
    with atomic_write(folder / f"{name}.json") as temporary:
        temporary.write_text(numbers, encoding="utf-8")
    return facts


def _rows(table: pd.DataFrame) -> Rows:
    """Return the rows of a table, with the index where it has a name."""
    whole = table.reset_index() if any(table.index.names) else table
    return list(whole.to_dict("records"))


def table_lines(rows: Rows) -> list[str]:
    """Return the lines of a Markdown table, an empty one at its end."""
    lines = [map(str, rows[0]), ["---"] * len(rows[0])] if rows else []
    lines += [map(_text, row.values()) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:,.0f}" if abs(float(value)) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
