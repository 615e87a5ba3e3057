"""A notebook or script under way: its cells, its imports, the files beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SCANPY = "import scanpy as sc"
PANDAS = "import pandas as pd"
NUMPY = "import numpy as np"
PYPLOT = "import matplotlib.pyplot as plt"
WIDTH = 88
"""Most characters of a line of code, where it can be broken."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: a text in Markdown, or code."""

    kind: Literal["markdown", "code"]
    source: str


class Code(str):
    """An expression that stands in the code as it is, not as a text in quotes."""

    __slots__ = ()


def code_of(value: Any) -> str:
    """Return the code of a value: texts in double quotes, as formatters write them."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        is_quoted = '"' in value and "'" not in value
        return repr(value) if is_quoted else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(code_of, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(code_of, value))})"
    if isinstance(value, dict):
        pairs = (f"{code_of(key)}: {code_of(one)}" for key, one in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value.item() if hasattr(value, "item") else value)


class Draft:
    """Cells that are added one after another.

    Parameters
    ----------
    path : Path
        Where the notebook or script will lie.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[Path, Callable[[Path], None]] = {}
        """Files that it reads, each with what writes it."""
        self._cells: list[Cell] = []
        self._imports: set[str] = set()

    def text(self, *paragraphs: str) -> None:
        """Add a cell of Markdown."""
        self._cells.append(Cell("markdown", "\n\n".join(paragraphs)))

    def code(self, *lines: str, imports: Iterable[str] = ()) -> None:
        """Add a cell of code, and what has to be imported for it.

        Parameters
        ----------
        lines : str
        imports : iterable of str
            As ``import numpy as np`` or ``from package import name``.
        """
        self._imports.update(imports)
        self._cells.append(Cell("code", "\n".join(lines)))

    def beside(self, ending: str, write: Callable[[Path], None]) -> str:
        """Let a file be written beside it, and return its name."""
        name = f"{self.path.stem}_{ending}"
        self.files[self.path.with_name(name)] = write
        return name

    def path_to(self, source: Path) -> str:
        """Return how the code calls a file: relative where it lies beside or below."""
        source, folder = source.absolute(), self.path.absolute().parent
        if source.is_relative_to(folder):
            return source.relative_to(folder).as_posix()
        return str(source)

    @property
    def cells(self) -> list[Cell]:
        """All cells; the imports stand behind the first text."""
        first, *rest = self._cells
        return [first, Cell("code", "\n".join(_sorted(self._imports))), *rest]


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, over several lines where it is long.

    Parameters
    ----------
    function : str
        May begin with what the result is assigned to.
    positional : str
        Expressions.
    named : any
        Values, which are written as such; a :class:`Code` is an expression.
    """
    arguments = [
        *positional,
        *(f"{name}={code_of(value)}" for name, value in named.items()),
    ]
    one_line = f"{function}({', '.join(arguments)})"
    if len(one_line) <= WIDTH and "\n" not in one_line:
        return one_line
    named_lines = [_argument(name, value) for name, value in named.items()]
    lines = [*(f"    {a}," for a in positional), *named_lines]
    return "\n".join([f"{function}(", *lines, ")"])


def _argument(name: str, value: Any) -> str:
    """Return the lines of one argument; a long list takes several."""
    line = f"    {name}={code_of(value)},"
    if len(line) <= WIDTH or not isinstance(value, list):
        return line
    lines = [" " * 7]
    for item in map(code_of, value):
        if len(f"{lines[-1]} {item},") > WIDTH:
            lines.append(" " * 7)
        lines[-1] += f" {item},"
    return "\n".join([f"    {name}=[", *lines, "    ],"])


def times(n: int) -> str:
    """Return how often, in words."""
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def listed(pairs: Mapping[Any, Any]) -> Code:
    """Return a dict, an item on each line."""
    lines = [f"    {code_of(key)}: {code_of(value)}," for key, value in pairs.items()]
    return Code("\n".join(["{", *lines, "}"]))


def as_notebook(cells: list[Cell]) -> str:
    """Return the text of an .ipynb file, in version 4.5 of the format."""
    notebook = {
        "cells": [_as_json(number, cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def as_script(cells: list[Cell]) -> str:
    """Return a Python script; ``# %%`` begins a cell, as editors know it."""
    parts = []
    for cell in cells:
        if cell.kind == "markdown":
            lines = [f"# {line}".rstrip() for line in cell.source.splitlines()]
            parts.append("\n".join(["# %% [markdown]", *lines]))
        else:
            parts.append(f"# %%\n{cell.source}")
    return "\n\n".join(parts) + "\n"


def _as_json(number: int, cell: Cell) -> dict[str, Any]:
    made: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.kind == "code":
        made |= {"execution_count": None, "outputs": []}
    return made


def _sorted(imports: set[str]) -> list[str]:
    """Return imports as they are usually sorted, names of one module in one line."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, list[str]] = {}
    for line in sorted(imports - set(plain)):
        module, name = line.removeprefix("from ").split(" import ")
        names.setdefault(module, []).append(name)
    return [*plain, *(f"from {m} import {', '.join(n)}" for m, n in names.items())]
