"""The tool that changes the program to see which tests notice."""

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"
SOURCE = b'''def is_near(a: int | None, b=2):
    """Say "\xc3\xa9"."""
    if not a and min(a, b) <= 1:
        raise ValueError(f"{a + b}")
    self.a[0] = a + b
    return a is b
'''
CHANGED = """def is_near(a: int | None, b=3):
    if (a) and min(a, b) <= 1:
    if not a or min(a, b) <= 1:
    if (not (not a and min(a, b) <= 1)):
    if not a and max(a, b) <= 1:
    if not a and min(a, b) < 1:
    if not a and min(a, b) > 1:
    if not a and min(a, b) <= 2:
        pass
    pass
    self.a[1] = a + b
    self.a[0] = a - b
    return not (a is b)
    return a is not b"""


def test_each_change_is_one_line_of_code_and_texts_stay(monkeypatch):
    pytest.importorskip("resource", reason="Windows has none")
    monkeypatch.syspath_prepend(TOOLS)
    tool = importlib.import_module("mutation_sample")
    path = str(tool.PACKAGE / "core" / "near.py")
    changes = tool.ChangeFinder(path, SOURCE).changes
    lines = set()
    for one in changes:
        changed = SOURCE[: one.start] + one.new.encode() + SOURCE[one.end :]
        lines.add(changed.decode().splitlines()[one.line - 1])
        assert (one.room, one.function) == ("core", "is_near")
    assert lines == set(CHANGED.splitlines())
