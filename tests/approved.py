"""What the program shows and writes, as texts beside the tests.

``check`` compares a text with the file of its name in ``tests/approved``.  After a
change that is meant, ``pytest --approve`` writes these files anew, and the difference
is read in git before it is committed.

Numbers that were computed stand in ``[~ ]``, and may differ by one in their last digit:
another machine or another version of a library may round them otherwise.
"""

import difflib
import re
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

MARKS = ("+++", "---")
COMPUTED = re.compile(r"\[~ ([^]]*)\]")
FOLDER = Path(__file__).parent / "approved"
LIBRARIES = "anndata", "matplotlib", "numpy", "pandas"
"""What shapes the texts: its newer versions write and paint a little otherwise."""


def check(name, lines, is_approved=False):
    """Compare lines with those of tests/approved/NAME.txt, or write these anew."""
    path = FOLDER / f"{name}.txt"
    found = [line.rstrip() for line in lines]
    if is_approved:
        FOLDER.mkdir(exist_ok=True)
        path.write_text("\n".join(found) + "\n", encoding="utf-8")
    known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if len(known) == len(found):
        pairs = zip(known, found, strict=True)
        found = [old if _are_alike(old, new) else new for old, new in pairs]
    differing = difflib.unified_diff(
        known, found, "approved", "found", n=2, lineterm=""
    )
    told = "\n".join(differing)
    others = find_other_versions() if told else []
    if others:
        pytest.skip(f"approved with other versions: {', '.join(others)}")
    assert not told, f"if it is meant: pytest --approve\n{told}"


def find_other_versions():
    """Return the libraries that shape the texts and have other versions than pinned."""
    lines = (FOLDER.parents[1] / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    return [name for name in LIBRARIES if version(name) != pinned[name]]


def _are_alike(known, found):
    """Return whether two lines differ at most in last digits of what is computed."""
    if COMPUTED.sub("", known) != COMPUTED.sub("", found):
        return False
    olds, news = (" ".join(COMPUTED.findall(x)).split() for x in (known, found))
    return len(olds) == len(news) and all(map(_are_close, olds, news))


def _are_close(known, found):
    values = [text.rstrip(",") for text in (known, found)]
    if values[0] == values[1]:
        return True
    try:
        old, new = map(float, values)
    except ValueError:
        return False
    largest = max(abs(old), abs(new))
    return np.isfinite(largest) and abs(old - new) < 1.01 * 10.0 ** (
        np.floor(np.log10(largest)) - 2
    )


def number(value, digits=3):
    """Return a number with so many digits, without what rounding makes of 0."""
    value = float(value)
    if not np.isfinite(value):
        return str(value)
    return f"{value:.{digits}g}" if abs(value) > 1e-6 else "0"


def numbers(values, digits=3, n=6):
    """Return the first of many numbers, and the sum and the sum of squares of all."""
    is_computed = np.asarray(values).dtype.kind == "f"
    values = np.ravel(np.asarray(values, float))
    said = " ".join(number(one, digits) for one in values[:n])
    if len(values) > n:
        total, squares = np.nansum(values), np.nansum(values**2)
        is_zero = abs(total) < 1e-5 * np.sqrt(len(values) * squares)
        said += f" ... {number(0 if is_zero else total, digits)}"
        said += f", {number(squares, digits)}"
    return f"[~ {said}]" if is_computed and said else f"[{said}]"


def describe(value):
    """Return a value in words: a dataclass by its fields, an array by its numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = [(one.name, getattr(value, one.name)) for one in fields(value)]
        default = {
            one.name: one.default
            for one in fields(value)
            if not isinstance(one.default, (np.ndarray, pd.Series))
        }
        said = [
            f"{name}={describe(part)}"
            for name, part in parts
            if not _is_same(part, default.get(name, ...))
        ]
        return f"{type(value).__name__}({', '.join(said)})"
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return repr([*map(str, value.ravel()[:9])])
    if isinstance(value, (np.ndarray, np.floating, float)):
        return numbers(value) if np.ndim(value) else f"{float(value):.3g}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {describe(one)}" for key, one in value.items())
    return (
        repr(value)
        if isinstance(value, (str, int, type(None)))
        else type(value).__name__
    )


def _is_same(one, other):
    return type(one) is type(other) and not np.ndim(one) and one == other


class States:
    """Lines of what is on show in one state after another.

    Of each state after the first, the lines that came and went.
    """

    def __init__(self):
        self.lines, self._before = [], []

    def add(self, title, lines):
        """Add what is on show now."""
        changed = difflib.unified_diff(self._before, lines, n=0, lineterm="")
        kept = [one for one in changed if one[0] in "+-" and one[:3] not in MARKS]
        self.lines += [f"== {title}", *(kept if self._before else lines)]
        self._before = lines
