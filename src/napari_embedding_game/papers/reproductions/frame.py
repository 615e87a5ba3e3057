"""What a reproduction is, how it is run, and how what it found is written.

Each is a line of :mod:`table` and a module of its name.  Its ``run`` receives the
:class:`Inputs` a person chose and the :class:`Parts` that keep what is finished:

    def run(inputs, parts):
        digits = inputs.load("mnist")
        parts.expect(len(SIZES))
        rows = [parts(f"k={k}", lambda k=k: measure(digits.X, k)) for k in SIZES]
        check = Check("every share above 0.9", f"{least:.3f}", least > 0.9)
        return Result([Table("Shares", rows)], [check], draw=partial(draw, rows))
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.export.expression_figure import figure_of_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from napari_embedding_game.data.dataset import Dataset

Tell = Callable[[str, int, int], None]
"""Receives what is being computed, the parts that are done, and all there are."""
_DPI = 150


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a person chose for a reproduction."""

    data: Path | None = None
    """A data file, or a folder with the files of :data:`table.SOURCES`."""
    quick: bool = False
    """Small sizes, to see that it works: seconds instead of minutes or hours."""
    random_state: int = 0

    def load(self, name: str) -> Dataset:
        """Read a data set by its name in :data:`table.SOURCES`.

        Raises
        ------
        DataError
            It is not there, or damaged.
        """
        from .table import load

        return load(name, self.data)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a Markdown table; the keys of the first are the columns."""

    title: str
    rows: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Check:
    """A criterion, and what was found."""

    asked: str
    """What must hold, with its number: "PCA within 0.015 of the paper"."""
    found: str
    """What came out, with its number: "0.0081 at most"."""
    passed: bool
    in_quick: bool = False
    """Whether it also holds for the small sizes of ``quick``; if not, it is not
    judged there."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a reproduction found."""

    tables: Sequence[Table]
    checks: Sequence[Check]
    draw: Callable[[Figure], None]
    """Draws on an empty figure."""
    notes: Sequence[str] = ()
    """Sentences on what differs from the paper, and why."""
    inches: tuple[float, float] = (8.0, 6.0)
    """Width and height of the figure."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One figure or table of a paper that can be computed anew."""

    name: str
    what: str
    paper: str
    data: str

    def run(self, inputs: Inputs, parts: Parts) -> Result:
        """Run the function of its module."""
        module = import_module(f".{self.name.replace('-', '_')}", __package__)
        found: Result = module.run(inputs, parts)
        return found


class Parts:
    """Computes parts by name, or takes them from the folder where they are kept.

    Parameters
    ----------
    folder : Path
        Where :class:`joblib.Memory` keeps them.
    origin : dict
        What the parts depend on.  Parts of another origin are others.
    tell : callable, optional
        Receives how far the computation is.
    again : bool
        Compute everything, whatever is there.
    """

    def __init__(
        self,
        folder: Path,
        origin: dict[str, Any],
        tell: Tell | None = None,
        again: bool = False,
    ) -> None:
        self._computed = joblib.Memory(folder, verbose=0).cache(
            _computed, ignore=["compute"]
        )
        self._origin = origin
        self._tell = tell
        self._again = again
        self._done = 0
        self._expected = 0
        self.seconds = 0.0
        """Time that all parts took, those from the folder included."""
        self.processor_seconds = 0.0
        """The same in processor time, which other programs hardly change."""

    def expect(self, n_parts: int) -> None:
        """Say how many parts there will be, for the progress."""
        self._expected = n_parts

    def __call__(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the part ``name``, computing it if it is not there."""
        self._show(name)
        call = self._origin, name, compute
        if self._again and self._computed.check_call_in_cache(*call):
            self._computed.call_and_shelve(*call).clear()
        values, seconds, processor_seconds = self._computed(*call)
        self.seconds += seconds
        self.processor_seconds += processor_seconds
        self._done += 1
        self._show(name)
        return values

    def _show(self, name: str) -> None:
        if self._tell is not None:
            self._tell(name, self._done, self._expected)


def _computed(
    origin: dict[str, Any], name: str, compute: Callable[[], Any]
) -> tuple[Any, float, float]:
    """Return a part, and the seconds that it took, also of the processor."""
    begin, processor_begin = time.perf_counter(), time.process_time()
    values = compute()
    seconds = time.perf_counter() - begin
    return values, seconds, time.process_time() - processor_begin


def reproduce(
    reproduction: Reproduction,
    inputs: Inputs,
    out: Path,
    *,
    tell: Tell | None = None,
    again: bool = False,
) -> dict[str, Any]:
    """Run a reproduction and write what it found into the folder ``out / name``.

    The files are ``NAME.png``, ``NAME.md`` and ``NAME.json``, each whole or not at
    all.  Finished parts are kept in ``out / name / parts``: after an interruption,
    call it again with the same arguments.

    Returns
    -------
    dict
        What stands in ``NAME.json``; ``passed`` says whether all checks did.

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
    parts = Parts(folder / "parts", origin, tell, again)
    result = reproduction.run(inputs, parts)
    facts = _facts(reproduction, result, origin, parts)
    _draw(result, folder / f"{name}.png")
    for ending, text in (
        (".md", markdown(facts)),
        (".json", json.dumps(facts, indent=1, default=_plain)),
    ):
        with whole_or_nothing(folder / (name + ending)) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return facts


def _facts(
    reproduction: Reproduction, result: Result, origin: dict[str, Any], parts: Parts
) -> dict[str, Any]:
    # None: small data cannot tell.
    checks = [
        {
            "asked": check.asked,
            "found": check.found,
            "passed": bool(check.passed)
            if check.in_quick or not origin["quick"]
            else None,
        }
        for check in result.checks
    ]
    return {
        "name": reproduction.name,
        "what": reproduction.what,
        "paper": reproduction.paper,
        "origin": origin,
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "seconds": round(parts.seconds, 1),
        "processor_seconds": round(parts.processor_seconds, 1),
        "passed": all(check["passed"] is not False for check in checks),
        "checks": checks,
        "tables": [
            {"title": table.title, "rows": list(table.rows)} for table in result.tables
        ],
        "notes": list(result.notes),
    }


def _plain(value: np.generic) -> Any:
    return value.item()


_WORDS = {True: "passed", False: "**not passed**", None: "not judged (quick)"}


def markdown(facts: dict[str, Any]) -> str:
    """Return the text that ``NAME.md`` holds."""
    source = facts["origin"]
    quick = ", quick (small sizes)" if source["quick"] else ""
    lines = [
        f"**{facts['name']}**: {facts['what']}",
        "",
        f"{facts['paper']}. Data: {source['data']}{quick}. Took "
        f"{facts['processor_seconds']:,.1f} s of processor time on "
        f"{facts['machine']}, {facts['date']}.",
        "",
    ]
    lines += _rows(
        [
            {"asked": each["asked"], "found": each["found"], "": _WORDS[each["passed"]]}
            for each in facts["checks"]
        ]
    )
    for table in facts["tables"]:
        lines += [f"{table['title']}:", "", *_rows(table["rows"])]
    lines += [f"- {note}" for note in facts["notes"]]
    return "\n".join(lines).rstrip() + "\n"


def _rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    head = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    body = ["| " + " | ".join(map(_text, row.values())) + " |" for row in rows]
    return [*head, *body, ""]


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)


def _draw(result: Result, path: Path) -> None:
    """Draw without a window: a figure on its own has matplotlib's Agg behind it."""
    figure = figure_of_matplotlib()(figsize=result.inches, layout="constrained")
    result.draw(figure)
    with whole_or_nothing(path) as temporary:
        figure.savefig(temporary, dpi=_DPI)
