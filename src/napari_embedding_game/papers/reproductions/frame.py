"""Define reproductions, run them, and write their results.

A reproduction is a line of :mod:`table` and a function (inputs, run_cached) -> Result
in the module of its paper.  ``docs/reproduction.md`` says what differs from the papers,
and why.
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
    """A criterion: a value, and the bound that the value has to keep."""

    asked: str
    value: float
    relation: str
    """Key of ``RELATIONS``, between value and bound."""
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the value keeps the bound; False for NaN."""
        return bool(RELATIONS[self.relation](self.value, self.bound))


class Result(NamedTuple):
    """The result of a reproduction: tables and curves by title, and criteria."""

    tables: Mapping[str, pd.DataFrame | Rows]
    checks: Sequence[Check]
    curves: Mapping[str, pd.DataFrame] = {}
    """Plotted in the figure after the maps of all computations."""


class Reproduction(NamedTuple):
    """A figure or table of a paper that can be reproduced."""

    name: str
    what: str
    paper: str
    data: str
    """Names of :data:`inputs.SOURCES`, separated by ", "."""
    function: str
    """Module and function, separated by "."."""


class CachedRunner:
    """Runs computations by name, or reads their results from the folder of a cache.

    ``origin``: what all results depend on, a part of the cache's keys; ``quiet``:
    whether to show no progress bar.
    """

    def __init__(self, folder: Path, origin: dict[str, Any], quiet: bool) -> None:
        memory = joblib.Memory(folder, verbose=0)
        self._compute_with_time = memory.cache(_compute_with_time, ignore=["compute"])
        self._origin, self._quiet = origin, quiet
        self.processor_seconds = 0.0
        """Processor time of all computations, including cached ones."""
        self.maps: dict[str, dict[str, Any]] = {}
        """Results that have a layout, by name."""

    def __call__(
        self, compute: Callable[..., Any], keys: Iterable[Any]
    ) -> dict[Any, Any]:
        """Return ``compute(*key)`` by key, read from the cache where possible.

        A key that is no tuple is the only argument.  Processor seconds are added to
        ``processor_seconds``, and results with a layout to ``maps``.
        """
        from rich.console import Console
        from rich.progress import track

        results, console = {}, Console(stderr=True)
        for key in track(list(keys), console=console, disable=self._quiet):
            values = key if isinstance(key, tuple) else (key,)
            name = " ".join(map(str, values))
            results[key], seconds = self._compute_with_time(
                self._origin, name, partial(compute, *values)
            )
            self.processor_seconds += seconds
            if isinstance(results[key], dict) and "layout" in results[key]:
                self.maps[name] = results[key]
        return results


def _compute_with_time(
    origin: dict[str, Any], name: str, compute: Callable[[], Any]
) -> tuple[Any, float]:
    """Return the result of ``compute()``, and the processor seconds it took.

    ``origin`` and ``name`` are not used here: they are the key of the cache.
    """
    begin = time.process_time()
    return compute(), time.process_time() - begin


def run_reproduction(
    reproduction: Reproduction, inputs: Inputs, out: Path, quiet: bool = True
) -> dict[str, Any]:
    """Run a reproduction, write its results to ``out / name``, and return its facts.

    The files are ``NAME.png`` and ``NAME.json``, which has the returned facts.
    Finished computations are cached in the folder ``parts``, so that an interrupted
    reproduction continues when it is called again.  The criteria of a quick run are not
    judged, and "passed" is True.

    DataError, InputError or OSError: data or folder cannot be used.
    """
    name, _, _, data, function = reproduction
    origin = {
        "reproduction": name,
        "version": metadata.version("napari-embedding-game"),
        "data": inputs.describe_files(data),
        "quick": inputs.quick,
        "random_state": inputs.random_state,
    }
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    run_cached = CachedRunner(folder / "parts", origin, quiet)
    module, function = function.split(".")
    run = getattr(import_module(f".{module}", __package__), function)
    result: Result = run(inputs, run_cached)
    facts = {
        "name": name,
        "origin": origin,
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "processor_seconds": round(run_cached.processor_seconds, 1),
        # Criteria of quick runs are not judged, as their data are small.
        "passed": inputs.quick or all(check.passed for check in result.checks),
        "checks": [
            {
                "asked": f"{check.asked} {check.relation} {_format_value(check.bound)}",
                "found": _format_value(check.value),
                "passed": None if inputs.quick else check.passed,
            }
            for check in result.checks
        ],
        "tables": [
            {"title": title, "rows": _to_records(pd.DataFrame(table))}
            for title, table in result.tables.items()
        ],
    }
    write_figure(run_cached.maps, result.curves, folder / f"{name}.png")
    numbers = json.dumps(facts, indent=1, default=lambda value: value.item())
    with atomic_write(folder / f"{name}.json") as temporary:
        temporary.write_text(numbers, encoding="utf-8")
    return facts


def _to_records(table: pd.DataFrame) -> Rows:
    """Return the rows of a table as dicts; named levels of the index become columns."""
    with_index = table.reset_index() if any(table.index.names) else table
    return list(with_index.to_dict("records"))


def to_markdown_lines(rows: Rows) -> list[str]:
    """Return the lines of a Markdown table, with an empty line at the end.

    Columns are the keys of the first row.  Without rows there is only the empty line.
    """
    lines = [map(str, rows[0]), ["---"] * len(rows[0])] if rows else []
    lines += [map(_format_value, row.values()) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _format_value(value: Any) -> str:
    """Return a value as text.

    Floats have four digits, or from 10,000 on separators and no decimals; integers have
    separators.
    """
    if isinstance(value, (float, np.floating)):
        return f"{value:,.0f}" if abs(float(value)) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
