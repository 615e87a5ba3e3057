"""Change the program at places drawn by a seed, and list what no test notices.

    python tools/mutation_sample.py record build/mutants
    python tools/mutation_sample.py draw build/mutants --seed 1 --count 40
    python tools/mutation_sample.py again build/mutants
    python tools/mutation_sample.py summary build/mutants

``record`` runs the tests once and writes down which test executes which line; given
test files or folders, these alone, as after a change of theirs.  ``draw`` draws a
package by its number of functions, a function, a kind of change and a place of it, and
runs tests that execute this line: those of the module's own test file, then others,
first those that execute most of the module in their time.  ``again`` tries the changes
that survived with the tests of today, and with more of them.

All happens in FOLDER/tree, a copy of the files that git knows.  What was tried stands
in FOLDER/mutants.jsonl; a change that means nothing gets a key "equivalent" there, with
the reason, and no longer counts.  A key "ask" lists tests that ``again`` runs for it.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/napari_embedding_game")
TESTS = [f"tests/{x}" for x in ("session", "ui", "core", "data", "papers")]
TESTS += ["tests/test_cli.py", "tests/test_tl.py"]
"""What is recorded, one after the other."""
SKIPPED = ("test_packaging", "test_example_notebooks", "test_pyside6", "test_tutorials")
"""Test files that start other processes or take minutes."""
MAX_SECONDS, MAX_TESTS = 15.0, 30
"""Of the processor, and the number of tests, that are chosen for one change."""
MORE = 4
"""Times as much, and as slow, for a change that survived."""
SLOWEST = 10.0
"""Seconds of a test that is chosen from other files than the module's own."""
LIBRARIES = [
    "anndata",
    "h5py",
    "matplotlib.pyplot",
    "msgspec",
    "napari",
    "napari.components",
    "napari.layers",
    "numba",
    "pandas",
    "psygnal",
    "pyarrow",
    "pynndescent",
    "PyQt6.QtWidgets",
    "scipy.stats",
    "skimage.measure",
    "sklearn.linear_model",
    "sklearn.neighbors",
    "superqt",
    "torch",
    "vispy.scene",
]
MAX_USERS = 20
"""Names whose users are looked for, until one of them leaves a trace."""
LOOP_SECONDS = 240
"""Allowed for compiling the loops that a change concerns."""

COMPARISONS = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
_PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")]
EXTREMES = dict(_PAIRS) | {other: one for one, other in _PAIRS}


@dataclass(frozen=True)
class Change:
    """One change of a file: bytes ``start`` to ``end`` become ``new``."""

    path: str
    function: str
    kind: str
    line: int
    start: int
    end: int
    new: str
    text: str
    """The line as it stands."""
    lines: tuple[int, int]
    """The first and last line of the statement, or of its heading."""

    @property
    def room(self) -> str:
        """The package that the file is in, or "top"."""
        parts = Path(self.path).relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else "top"

    @property
    def identity(self) -> tuple[str, ...]:
        """What stays the same where lines above have moved."""
        return self.path, self.function, self.kind, self.text, self.new


class ChangeFinder(ast.NodeVisitor):
    """Collects all changes that can be made to one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.text_lines = source.decode().splitlines()
        self.line_starts = [0]
        for line in source.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))
        self.names: list[str] = []
        self.statement = (1, 1)
        self.is_loop = False
        self.changes: list[Change] = []
        self.visit(ast.parse(source))

    def _offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno, node.end_col_offset)

    def _source_of(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _add(self, kind: str, start: int, end: int, new: str) -> None:
        line = bisect(self.line_starts, start)
        function = ".".join(self.names) or "<module>"
        text = self.text_lines[line - 1].strip()
        self.changes.append(
            Change(
                self.path, function, kind, line, start, end, new, text, self.statement
            )
        )

    def _add_between(
        self, kind: str, left: ast.AST, right: ast.AST, old: str, news: Iterable[str]
    ) -> None:
        """Replace the operator that stands between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = self.source[start:end].decode()
        pattern = r"\s+".join(map(re.escape, old.split()))
        for new in news:
            self._add(kind, start, end, re.sub(pattern, new, between, count=1))

    # Where nothing is changed

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone: before Python 3.12 places inside are unknown."""

    def visit_arg(self, node: ast.arg) -> None:
        """Leave annotations alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value, not the annotation."""
        if node.value is not None:
            self._visit_statement(node, node.end_lineno, [node.value])

    # Names of functions, lines of statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit defaults and body under the name of the function."""
        was_loop = self.is_loop
        decorators = " ".join(map(self._source_of, node.decorator_list))
        self.is_loop = was_loop or "njit" in decorators or "intrinsic" in decorators
        self.names.append(node.name)
        for child in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(child)
        for child in node.body:
            self.visit(child)
        self.names.pop()
        self.is_loop = was_loop

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body under the name of the class."""
        self.names.append(node.name)
        for child in node.body:
            self.visit(child)
        self.names.pop()

    def _visit_statement(
        self, node: ast.stmt, last: int, children: Iterable[ast.AST]
    ) -> None:
        self.statement = (node.lineno, last)
        for child in children:
            self.visit(child)

    def visit(self, node: ast.AST) -> None:
        """Keep the lines of the statement, or of the heading of a compound one."""
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            self.statement = (node.lineno, max(last, node.lineno))
        super().visit(node)

    # Changes

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change a comparison."""
        operands = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            old, news = COMPARISONS[type(op)]
            self._add_between("comparison", operands[i], operands[i + 1], old, news)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change arithmetic, but no texts that are joined."""
        texts = ast.Constant, ast.JoinedStr
        has_text = any(
            isinstance(side, texts) and not _is_number(side)
            for side in (node.left, node.right)
        )
        if type(node.op) in ARITHMETIC and not has_text:
            old, new = ARITHMETIC[type(node.op)]
            self._add_between("arithmetic", node.left, node.right, old, [new])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Exchange "and" and "or"."""
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for i in range(len(node.values) - 1):
            self._add_between("and/or", node.values[i], node.values[i + 1], old, [new])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Remove a "not"."""
        if isinstance(node.op, ast.Not):
            self._add("not", *self._span(node), f"({self._source_of(node.operand)})")
        self.generic_visit(node)

    def _negate(self, test: ast.AST) -> None:
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self._add("not", *self._span(test), f"(not ({self._source_of(test)}))")

    def visit_If(self, node: ast.If) -> None:
        """Turn a condition round."""
        if self._source_of(node.test) != "TYPE_CHECKING":
            self._negate(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Turn a condition round."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number or a truth value."""
        if isinstance(node.value, bool):
            self._add("constant", *self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add("constant", *self._span(node), str(node.value + 1))
        elif isinstance(node.value, float):
            new = repr(2 * node.value or 1.0)
            self._add("constant", *self._span(node), new)

    def visit_Call(self, node: ast.Call) -> None:
        """Exchange the least and the greatest, any and all."""
        called = node.func
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name in EXTREMES:
            end = self._span(called)[1]
            self._add("min/max", end - len(name), end, EXTREMES[name])
        for child in ast.iter_child_nodes(node):  # "strict" guards against mistakes
            if getattr(child, "arg", "") != "strict":
                self.visit(child)

    def _delete(self, node: ast.stmt) -> None:
        self._add("deleted", *self._span(node), "pass")
        self.generic_visit(node)

    visit_AugAssign = visit_Continue = visit_Break = visit_Delete = _delete

    def visit_Expr(self, node: ast.Expr) -> None:
        """Delete a call."""
        if not isinstance(node.value, ast.Constant):
            self._delete(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Delete what is stored in an object or an array."""
        if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
            self._add("deleted", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Remove an error."""
        self._add("raise", *self._span(node), "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Return the opposite, or nothing."""
        value = node.value
        if value is not None and self._source_of(value) != "None":
            is_truth = (
                isinstance(value, (ast.Compare, ast.BoolOp))
                or (isinstance(value, ast.Constant) and isinstance(value.value, bool))
                or self.names[-1].lstrip("_").startswith(("is_", "has_"))
            )
            if is_truth:
                new = f"return not ({self._source_of(value)})"
                self._add("returned", *self._span(node), new)
            elif not self.is_loop:  # compiling would fail
                self._add("returned", *self._span(node), "return None")
        self.generic_visit(node)


def _is_number(node: ast.AST) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and isinstance(value, (int, float))


def find_changes(tree: Path) -> dict[str, dict[tuple[str, str], list[Change]]]:
    """Return all changes of a tree by room, then by file and function."""
    found: dict[str, dict[tuple[str, str], list[Change]]] = defaultdict(dict)
    for path in sorted((tree / PACKAGE).rglob("*.py")):
        name = path.relative_to(tree).as_posix()
        for change in ChangeFinder(name, path.read_bytes()).changes:
            functions = found[change.room]
            functions.setdefault((change.path, change.function), []).append(change)
    return dict(found)


def draw_changes(tree: Path, seed: int) -> Iterator[Change]:
    """Yield changes for ever: a room by its functions, a function, a kind, a place."""
    found, rng = find_changes(tree), random.Random(seed)
    rooms = sorted(found)
    sizes = [len(found[room]) for room in rooms]
    while True:
        (room,) = rng.choices(rooms, sizes)
        changes = found[room][rng.choice(sorted(found[room]))]
        kind = rng.choice(sorted({change.kind for change in changes}))
        yield rng.choice([change for change in changes if change.kind == kind])


# Which test executes what


@cache
def find_functions(path: Path) -> list[tuple[int, int, str]]:
    """Return first line, last line and name of each function of a file."""
    found = []

    def walk(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = (*names, child.name)
                found.append((child.lineno, child.end_lineno, ".".join(inner)))
            walk(child, inner)

    walk(ast.parse(path.read_bytes()), ())
    return found


@cache
def read_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text().splitlines()


@cache
def make_line_keys(path: Path) -> list[str]:
    """Return for each line its function and its text: other lines may come above."""
    lines = read_lines(path)
    names = ["<module>"] * len(lines)
    for first, last, name in find_functions(path):  # the inner ones come later
        names[first - 1 : last] = [name] * (last - first + 1)
    return [f"{name}\n{line.strip()}" for name, line in zip(names, lines, strict=True)]


class Recorder:
    """A pytest plugin: seconds of the processor of each test, and what failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        """Take the time of one test."""
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.add(report.nodeid)


class InOrder:
    """A pytest plugin: runs tests in the order in which they are named."""

    def __init__(self, tests: list[str]) -> None:
        self._places = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort after everybody else."""
        items.sort(key=lambda item: self._places.get(item.nodeid, len(self._places)))


class CoverageMap:
    """Which tests execute which line; kept in a JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.seconds: dict[str, float] = stored.get("seconds", {})
        self.tests_by_line: dict[str, dict[str, list[str]]] = stored.get("lines", {})

    def add(self, tree: Path, recording: Path) -> None:
        """Replace what is known of the test files of a recording."""
        from coverage import CoverageData

        stored = json.loads(recording.with_suffix(".json").read_text())
        files = {test.split("::")[0] for test in stored["seconds"]}
        is_old = lambda test: test.split("::")[0] in files  # noqa: E731
        self.seconds = {t: s for t, s in self.seconds.items() if not is_old(t)}
        self.seconds |= stored["seconds"]
        for lines in self.tests_by_line.values():
            for key, tests in lines.items():
                lines[key] = [test for test in tests if not is_old(test)]
        data = CoverageData(str(recording))
        data.read()
        for measured in data.measured_files():
            path = Path(measured)
            keys = make_line_keys(path)
            name = path.relative_to(tree).as_posix()
            lines = self.tests_by_line.setdefault(name, {})
            for number, contexts in data.contexts_by_lineno(measured).items():
                tests = {context.rpartition("|")[0] for context in contexts} - {""}
                key = keys[number - 1]
                known = set(lines.get(key, ())) | (tests - set(stored["failed"]))
                lines[key] = sorted(known)
        self.path.write_text(
            json.dumps({"seconds": self.seconds, "lines": self.tests_by_line})
        )

    def _tests_of_lines(self, tree: Path, name: str, first: int, last: int) -> set[str]:
        keys = make_line_keys(tree / name)[first - 1 : last]
        lines = self.tests_by_line.get(name, {})
        return {test for key in keys for test in lines.get(key, ())}

    def _tests_of_users(self, tree: Path, function: str) -> set[str]:
        """Return tests of functions that mention a name: loops leave no trace.

        Where these are loops as well, their users are asked, and so on.
        """
        found: set[str] = set()
        waiting, seen = [function], set()
        while waiting and not found and len(seen) < MAX_USERS:
            *_, owner, name = ("", *waiting.pop(0).split("."))
            name = owner if name.startswith("__") else name
            if name in seen:
                continue
            seen.add(name)
            is_user = re.compile(rf"\b{re.escape(name)}\b").search
            for path in (tree / PACKAGE).rglob("*.py"):
                lines = read_lines(path)
                if not is_user("\n".join(lines)):
                    continue
                file = path.relative_to(tree).as_posix()
                for first, last, user in find_functions(path):
                    if is_user("\n".join(lines[first:last])):
                        found |= self._tests_of_lines(tree, file, first + 1, last)
                        waiting.append(user)
        return found

    def choose_tests(self, tree: Path, change: Change, times: int = 1) -> list[str]:
        """Return the tests for a change: of the module's own file, then of all others.

        As its own count the files of approved texts, which look at all there is.  First
        come those that execute most lines of the module in their time.
        They execute the line, else its function, else functions that mention it.  What
        is executed on import has those of functions that mention the name that the line
        defines, else of the whole module.

        ``times``: how many times the usual seconds and tests.
        """
        defined = re.match(r"(\w+)\b.*=", change.text)
        owner = change.function.rpartition(".")[2].lstrip("_")
        if change.function == "<module>" or owner[:1].isupper():
            tests = self._tests_of_users(tree, defined[1]) if defined else set()
            if not tests:
                n_lines = len(read_lines(tree / change.path))
                tests = self._tests_of_lines(tree, change.path, 1, n_lines)
        else:
            tests = self._tests_of_lines(tree, change.path, *change.lines)
            for start, end, name in find_functions(tree / change.path):
                is_default = change.lines[0] == start  # of a parameter
                if name == change.function and (is_default or not tests):
                    tests = self._tests_of_lines(tree, change.path, start + 1, end)
        if not tests:
            tests = self._tests_of_users(tree, change.function)
        own = f"test_{Path(change.path).stem}.py"

        def is_own(test: str) -> bool:
            return test.split("::")[0].endswith((own, "test_approved.py"))

        if not tests:
            return find_test_files(tree, change.path)
        chosen, left = [], times * MAX_SECONDS
        of_module = self.tests_by_line.get(change.path, {}).values()
        lines = Counter(test for some in of_module for test in some)
        known = tests & self.seconds.keys()
        worth = {test: lines[test] / (0.2 + self.seconds[test]) for test in known}
        for test in sorted(known, key=lambda x: (not is_own(x), -worth[x], x)):
            cost = self.seconds[test]
            if (cost <= left and cost <= times * SLOWEST) or not chosen:
                chosen.append(test)
                left -= cost
        recorded = {test.split("::")[0] for test in self.seconds}
        files = find_test_files(tree, change.path)
        unknown = [file for file in files[:1] if file not in recorded]
        return [*chosen[: times * MAX_TESTS], *unknown]


def find_import(source: str) -> Callable[[str], object]:
    """Return what tells whether a text imports a module of the package."""
    module = Path(source).relative_to("src").with_suffix("")
    folder, _, name = ".".join(module.parts).rpartition(".")
    names = rf"\([^)]*\b{name}\b|.*\b{name}\b"
    return re.compile(rf"{re.escape(folder)}(\.{name}\b| import ({names}))").search


def find_test_files(tree: Path, source: str) -> list[str]:
    """Return the test file of a module and the two smallest others that import it."""
    is_import, name = find_import(source), Path(source).stem
    own, others = [], []
    for path in (tree / "tests").rglob("test_*.py"):
        if path.stem == f"test_{name}":
            own.append(path)
        elif is_import(path.read_text()) and path.stem not in SKIPPED:
            others.append(path)
    others.sort(key=lambda path: path.stat().st_size)
    return [str(path.relative_to(tree)) for path in [*own, *others[:2]]]


def record_tests(folder: Path, paths: list[str]) -> None:
    """Run tests once, and write down which of them executes which line."""
    tree, known = folder / "tree", CoverageMap(folder / "map.json")
    (folder / "coveragerc").write_text("[run]\nsource_pkgs = napari_embedding_game\n")
    for path in paths or TESTS:
        recording = (folder / "recording").resolve()
        command = [sys.executable, __file__, "pytest", str(recording), path]
        subprocess.run(command, cwd=tree, env=_environment(tree), check=True)
        known.add(tree.resolve(), recording)
        print(f"recorded {path}", flush=True)


def run_recorded(recording: Path, paths: list[str]) -> None:
    """Run tests in this process, with coverage by test and seconds of each."""
    recording.unlink(missing_ok=True)
    os.environ["COVERAGE_FILE"] = str(recording)
    recorder = Recorder()
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--cov-context=test",
        "--cov-report=",
        "--cov",
    ]
    options += [f"--cov-config={recording.parent / 'coveragerc'}"]
    options += [f"--ignore-glob=*/{name}.py" for name in SKIPPED]
    pytest.main([*options, *paths], plugins=[recorder])
    recording.with_suffix(".json").write_text(
        json.dumps({"seconds": recorder.seconds, "failed": sorted(recorder.failed)})
    )


# Trying


def _environment(tree: Path) -> dict[str, str]:
    source = str((tree / "src").resolve())
    return os.environ | {"PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": ""}


def copy_tree(folder: Path) -> Path:
    """Bring FOLDER/tree up to date with the files that git knows, and the caches."""
    tree = folder / "tree"
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    names = {name for name in listed if (ROOT / name).is_file()}
    is_first = not tree.exists()
    if not is_first:
        for path in [*(tree / "src").rglob("*.py"), *(tree / "tests").rglob("*.py")]:
            if path.relative_to(tree).as_posix() not in names:
                path.unlink()
    for name in names:
        source, copy = ROOT / name, tree / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            if copy.exists() and name.endswith(".py"):
                for cached in find_caches(tree, name):
                    cached.unlink()
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    for name in ("napari.yaml", "resources"):
        link = tree / PACKAGE / name
        if not link.is_symlink():
            link.symlink_to(f"../../{name}")
    if is_first:  # numba asks for the time of the source, which is copied as well
        for cached in (ROOT / PACKAGE).rglob("*.nb[ci]"):
            copy = tree / cached.relative_to(ROOT)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(cached, copy)
    return tree


def find_caches(tree: Path, changed: str) -> list[Path]:
    """Return numba's cached loops of a file, and of files that import it."""
    is_source = Path(changed).is_relative_to(PACKAGE)
    if not is_source or not re.search("numba|njit", (tree / changed).read_text()):
        return []
    texts = {path: path.read_text() for path in (tree / PACKAGE).rglob("*.py")}
    found, waiting = set(), [tree / changed]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        is_import = find_import(path.relative_to(tree).as_posix())
        waiting += [user for user, text in texts.items() if is_import(text)]
    return [
        cached
        for path in found
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ci]")
    ]


@contextmanager
def applied(tree: Path, change: Change) -> Iterator[bool]:
    """Apply a change while a block runs; yield whether loops are compiled anew."""
    path, aside = tree / change.path, tree.parent / "before.py"
    caches = find_caches(tree, change.path)
    kept = tree.parent / "caches"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    shutil.copy2(path, aside)
    for i, cached in enumerate(caches):
        shutil.move(cached, kept / str(i))
    source = path.read_bytes()
    path.write_bytes(
        source[: change.start] + change.new.encode() + source[change.end :]
    )
    try:
        yield bool(caches)
    finally:
        for cached in find_caches(tree, change.path):
            cached.unlink()
        shutil.copy2(aside, path)
        for i, cached in enumerate(caches):
            shutil.move(kept / str(i), cached)


def try_change(tree: Path, change: Change, tests: list[str]) -> dict[str, object]:
    """Return whether tests notice a change, which one, and the seconds it took."""
    began = time.monotonic()
    if not tests:
        return {"result": "untested", "by": "", "code": 5, "tests": 0, "seconds": 0}
    with applied(tree, change) as is_loop:
        seconds = int(60 + 6 * MAX_SECONDS + LOOP_SECONDS * is_loop)
        code, output = run_tests(tree, tests, seconds)
        while code == pytest.ExitCode.USAGE_ERROR:  # some were there when recorded
            gone = re.findall(r"ERROR: not found: .*/(tests/.*)", output)
            kept = [test for test in tests if test.split("[")[0] not in gone]
            if len(kept) in (0, len(tests)):
                break
            tests = kept
            code, output = run_tests(tree, tests, seconds)
    said = re.findall(r"^(?:FAILED|ERROR) (.*)", output, re.MULTILINE)
    by = "" if code == 0 else said[0][:160] if said else output.strip()[-160:]
    return {
        "result": "survived" if code == 0 else "untested" if code == 5 else "noticed",
        "by": by,
        "code": code,
        "tests": len(tests),
        "seconds": round(time.monotonic() - began),
    }


def run_tests(tree: Path, tests: list[str], seconds: int) -> tuple[int, str]:
    """Return the exit code of pytest and what it printed; below 0 where it was ended.

    The process is a copy of this one, which has imported what takes longest.  It gets
    so many seconds of the processor, and six times as many by the clock.
    """
    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of libraries
    printed = tree.parent / "printed.txt"
    deadline = time.monotonic() + 6 * seconds
    process = os.fork()
    if not process:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            with open(printed, "wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.chdir(tree)
            os.environ |= _environment(tree)
            sys.dont_write_bytecode = False  # each would compile all modules again
            sys.path[:1] = [str((tree / "src").resolve())]
            code = int(pytest.main([*options, *tests], plugins=[InOrder(tests)]))
            sys.stdout.flush()
            os._exit(code)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(99)
    status = None
    while status is None and time.monotonic() < deadline:
        ended, found = os.waitpid(process, os.WNOHANG)
        status = found if ended else None
        time.sleep(0.1)
    with suppress(ProcessLookupError):  # also what the tests began
        os.killpg(process, signal.SIGKILL)
    if status is None:
        os.waitpid(process, 0)
        return -1, "timeout"
    code = os.waitstatus_to_exitcode(status)
    if code == 99:
        raise RuntimeError(printed.read_text())
    return code, printed.read_text(errors="replace") if code >= 0 else f"signal {-code}"


def import_libraries() -> None:
    """Import libraries that tests import, so that copies of this process have them."""
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def read_tried(folder: Path) -> list[dict[str, object]]:
    """Return what was tried, in order."""
    path = folder / "mutants.jsonl"
    return (
        [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
    )


def write_tried(folder: Path, tried: list[dict[str, object]]) -> None:
    """Write what was tried, whole or not at all."""
    path = folder / "mutants.jsonl"
    path.with_suffix(".new").write_text("".join(json.dumps(x) + "\n" for x in tried))
    path.with_suffix(".new").replace(path)


def show_change(found: dict[str, object]) -> None:
    """Print a change on one line."""
    old, new = found["text"], str(found["new"]).strip()
    word = "equivalent" if found.get("equivalent") else found["result"]
    print(
        f"{word}: {found['path']}:{found['line']} "
        f"({found['kind']}, {found['function']}) "
        f"{old!r} -> {new!r} [{found['seconds']} s, {found['tests']} tests] "
        f"{found['by']}",
        flush=True,
    )


def try_drawn(
    folder: Path, seed: int, count: int, rooms: list[str], is_quick: bool
) -> None:
    """Draw changes by a seed and try them; go on where an earlier call ended.

    Where ``rooms`` are given, those of other rooms are left for a later call; where
    ``is_quick``, those of files with compiled loops.
    """
    tree, known = folder / "tree", CoverageMap(folder / "map.json")
    tried = read_tried(folder)
    seen = {tuple(x["identity"]) for x in tried if x["seed"] != seed}
    done = {tuple(x["identity"]) for x in tried if x["seed"] == seed}
    drawn: set[tuple[str, ...]] = set()
    for change in draw_changes(tree, seed):
        if len(drawn) == count:
            break
        if change.identity in seen | drawn:
            continue
        drawn.add(change.identity)
        is_wanted = not rooms or change.room in rooms
        is_wanted &= not (is_quick and find_caches(tree, change.path))
        if is_wanted and change.identity not in done:
            tests = known.choose_tests(tree, change)
            found = {"seed": seed, "room": change.room, "identity": change.identity}
            found |= asdict(change) | try_change(tree, change, tests)
            write_tried(folder, [*read_tried(folder), found])
            show_change(found)


def try_again(folder: Path) -> None:
    """Try the changes that survived with the program and the tests of today."""
    tree, known = folder / "tree", CoverageMap(folder / "map.json")
    for found in read_tried(folder):
        if found["result"] == "noticed" or found.get("equivalent"):
            continue
        path = tree / str(found["path"])
        source = path.read_bytes() if path.exists() else b""  # it may be renamed
        places = ChangeFinder(str(found["path"]), source).changes
        same = [x for x in places if list(x.identity) == list(found["identity"])]
        if same:
            change = min(same, key=lambda x: abs(x.line - int(str(found["line"]))))
            tests = found.get("ask") or known.choose_tests(tree, change, MORE)
            result = try_change(tree, change, tests)
            new = found | asdict(change) | result | {"again": True}
        else:
            new = found | {"result": "gone"}
        show_change(new)
        write_tried(
            folder,
            [
                new if x["identity"] == found["identity"] else x
                for x in read_tried(folder)
            ],
        )


def show_summary(folder: Path) -> None:
    """Print what survived, and how many changes of each room were noticed."""
    tried = [x for x in read_tried(folder) if x["result"] != "gone"]
    for found in tried:
        if found["result"] != "noticed":
            show_change(found)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for found in tried:
        for room in (str(found["room"]), "all"):
            is_same = bool(found.get("equivalent"))
            counts[room]["equivalent" if is_same else str(found["result"])] += 1
            counts[room]["at first"] += found["result"] == "noticed" and (
                "again" not in found
            )
    print(f"{'':10}{'tried':>8}{'same':>8}{'noticed':>9}{'at first':>9}{'share':>8}")
    for room, count in sorted(counts.items(), key=lambda x: (x[0] == "all", x[0])):
        changed = count["noticed"] + count["survived"] + count["untested"]
        share = count["noticed"] / max(changed, 1)
        print(
            f"{room:10}{changed + count['equivalent']:8}{count['equivalent']:8}"
            f"{count['noticed']:9}{count['at first']:9}{share:8.0%}"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "action", choices=["record", "draw", "again", "summary", "pytest"]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", nargs="*", help="test files or folders to record")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--rooms", nargs="*", default=[], help="such as ui session")
    parser.add_argument("--quick", action="store_true", help="leave compiled loops out")
    chosen = parser.parse_args()
    folder: Path = chosen.folder.resolve()
    if chosen.action == "pytest":
        run_recorded(folder, chosen.tests)
        return
    if chosen.action == "summary":
        show_summary(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    copy_tree(folder)
    if chosen.action == "record":
        record_tests(folder, chosen.tests)
        return
    import_libraries()
    if chosen.action == "draw":
        try_drawn(folder, chosen.seed, chosen.count, chosen.rooms, chosen.quick)
    else:
        try_again(folder)


if __name__ == "__main__":
    main()
