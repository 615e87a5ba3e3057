"""A reproduction's result as figure, Markdown and JSON, each whole or not at all."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing

from .parts import Parts
from .protocol import Check, Inputs, Reproduction, Result, Table
from .sources import described

_DPI = 150


def origin(reproduction: Reproduction, inputs: Inputs) -> dict[str, Any]:
    """Say what the numbers depend on."""
    return {
        "reproduction": reproduction.name,
        "version": metadata.version("napari-embedding-game"),
        "data": described(reproduction.data, inputs.data),
        "quick": inputs.quick,
        "random_state": inputs.random_state,
    }


def verdict(check: Check, quick: bool) -> bool | None:
    """Return whether a check passed; None where small data cannot tell."""
    return None if quick and not check.in_quick else check.passed


def write(
    reproduction: Reproduction,
    result: Result,
    inputs: Inputs,
    parts: Parts,
    folder: Path,
) -> dict[str, Any]:
    """Write ``NAME.png``, ``NAME.md`` and ``NAME.json``; return what is in the last.

    Raises
    ------
    DataError
        The folder cannot be written, or matplotlib is not installed.
    """
    facts = _facts(reproduction, result, inputs, parts)
    _draw(result, folder / f"{reproduction.name}.png")
    _save(folder / f"{reproduction.name}.md", markdown(facts))
    _save(folder / f"{reproduction.name}.json", json.dumps(facts, indent=1))
    return facts


def _facts(
    reproduction: Reproduction, result: Result, inputs: Inputs, parts: Parts
) -> dict[str, Any]:
    checks = [
        {
            "asked": check.asked,
            "found": check.found,
            "passed": verdict(check, inputs.quick),
        }
        for check in result.checks
    ]
    return {
        "name": reproduction.name,
        "what": reproduction.what,
        "paper": reproduction.paper,
        "origin": origin(reproduction, inputs),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "seconds": round(parts.seconds, 1),
        "processor_seconds": round(parts.processor_seconds, 1),
        "passed": all(check["passed"] is not False for check in checks),
        "checks": checks,
        "tables": [_plain_table(table) for table in result.tables],
        "notes": list(result.notes),
    }


def _plain_table(table: Table) -> dict[str, Any]:
    rows = [{key: _plain(value) for key, value in row.items()} for row in table.rows]
    return {"title": table.title, "rows": rows}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


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
    checks = [
        {
            "asked": each["asked"],
            "found": each["found"],
            "": _WORDS[each["passed"]],
        }
        for each in facts["checks"]
    ]
    lines += _rows(checks)
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
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _save(path: Path, text: str) -> None:
    with whole_or_nothing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _draw(result: Result, path: Path) -> None:
    """Draw without a window: a figure on its own has matplotlib's Agg behind it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(
            "Figures are drawn by matplotlib, which is not installed: run "
            "`pip install matplotlib`."
        ) from error
    figure = Figure(figsize=result.inches, layout="constrained")
    result.draw(figure)
    with whole_or_nothing(path) as temporary:
        figure.savefig(temporary, dpi=_DPI)
