"""Draw the folders of the package and the imports between them, read from the code.

    python tools/draw_folders.py [--out docs/images/folders.png]
    python tools/draw_folders.py --figures [--checkout ../before]

The second prints a table: files, the most files in one folder, floors and lines.

A box is a folder, with its number of files; above the folders of a room stand its
files that import them, below those that they import.  An arrow points from who
imports to what is imported, and is wider the more names are imported.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "napari_embedding_game"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE
ROOMS = ("cli", "ui", "session", "papers", "data", "core")
TOP, BASE = "(top)", "(base)"
COLORS = {
    "cli": "#dddddd",
    "ui": "#cfe3f7",
    "session": "#d9efd2",
    "papers": "#eeeeee",
    "data": "#fbe6c8",
    "core": "#f3d6d6",
}
SIZE = (13.0, 13.0)
# Left, bottom, width and height of each room, in shares of the picture.
PLACES = {
    "cli": (0.02, 0.945, 0.96, 0.04),
    "ui": (0.02, 0.62, 0.96, 0.31),
    "session": (0.02, 0.375, 0.70, 0.23),
    "papers": (0.74, 0.375, 0.24, 0.23),
    "data": (0.02, 0.02, 0.47, 0.34),
    "core": (0.51, 0.02, 0.47, 0.34),
}

Edges = Counter[tuple[str, str]]


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """Return the file of every module, by its name inside the package."""
    files = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            files[name] = path
    return files


def imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a module imports, once for each name."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            module = ".".join([*base, *filter(None, [node.module])])
        elif (node.module or "").split(".")[0] == PACKAGE:
            module = (node.module or "")[len(PACKAGE) + 1 :]
        else:
            continue
        for alias in node.names:
            inner = f"{module}.{alias.name}" if module else alias.name
            if inner in known:
                yield inner
            elif module in known:
                yield module


def room_of(module: str) -> str:
    """Return the first folder of a module; the files of the console are one room."""
    first = module.split(".")[0]
    return "cli" if first.startswith("cli") else first


def boxes(known: dict[str, Path], edges: Edges) -> dict[str, str]:
    """Return for each module the box that it is drawn in: a folder, top or base."""
    inner = {name: name.split(".")[:-1] for name in known}
    for name, path in known.items():
        if path.name == "__init__.py":
            inner[name] = name.split(".")
    after = defaultdict(set)
    for (one, other), _ in edges.items():
        after[one].add(other)

    def reaches_folder(name: str) -> bool:
        seen, waiting = {name}, [name]
        while waiting:
            for other in after[waiting.pop()] - seen:
                if room_of(other) != room_of(name):
                    continue
                if len(inner[other]) > 1:
                    return True
                seen.add(other)
                waiting.append(other)
        return False

    result = {}
    for name in known:
        room = room_of(name)
        if len(inner[name]) > 1:
            result[name] = f"{room}/{inner[name][1]}"
        else:
            result[name] = f"{room}/{TOP if reaches_folder(name) else BASE}"
    return result


def floors(names: list[str], edges: Edges) -> dict[str, int]:
    """Return the floor of each box of a room: above all that it imports.

    Where two boxes import each other, the direction with fewer imports is left out.
    """
    down = {
        one: {
            other
            for other in names
            if other != one and edges[one, other] > edges[other, one]
        }
        for one in names
    }
    floor = dict.fromkeys(names, 0)
    for _ in names:
        for one in names:
            floor[one] = min(
                max((floor[other] + 1 for other in down[one]), default=0), len(names)
            )
    for one in names:
        if one.endswith(TOP):
            floor[one] = 1 + max(floor.values())
    return floor


def draw(out: Path) -> None:
    """Draw the picture and save it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    known = modules()
    single: Edges = Counter()
    for name, path in known.items():
        single.update((name, other) for other in imported(name, path, known))
    box_of = boxes(known, single)
    edges: Edges = Counter()
    for (one, other), count in single.items():
        if box_of[one] != box_of[other]:
            edges[box_of[one], box_of[other]] += count
    n_files = Counter(
        box_of[name] for name, path in known.items() if path.name != "__init__.py"
    )
    figure = plt.figure(figsize=SIZE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    middle = {}
    for room in ROOMS:
        x, y, width, height = PLACES[room]
        axes.add_patch(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.008",
                facecolor=COLORS[room],
                edgecolor="none",
                zorder=0,
            )
        )
        axes.text(x + 0.008, y + height - 0.008, room, va="top", size=13, weight="bold")
        names = sorted(
            {b for b in box_of.values() if b.split("/")[0] == room and n_files[b]}
        )
        floor = floors(names, edges)
        rows = sorted(set(floor.values()))
        for row, level in enumerate(rows):
            level_names = [name for name in names if floor[name] == level]
            for place, name in enumerate(level_names):
                left = x + 0.075
                step = (width - 0.085) / len(level_names)
                # Boxes alone on their floors would hide the arrows between them.
                aside = (0.0, -0.6, 0.6)[row % 3] if len(level_names) == 1 else 0.0
                if name.endswith((TOP, BASE)):
                    aside = 0.0
                middle[name] = (
                    left + (place + 0.5 + 0.4 * aside) * step,
                    y + height * (row + 0.5) / len(rows),
                )
    for (one, other), count in edges.items():
        if one.split("/")[0] != other.split("/")[0] or one not in middle:
            continue
        is_back = edges[other, one] >= count and middle[other][1] > middle[one][1]
        axes.annotate(
            "",
            middle[other],
            middle[one],
            zorder=1,
            arrowprops={
                "arrowstyle": "-|>",
                "lw": 0.5 + min(count, 60) / 20,
                "color": "#c0392b" if is_back else "#777777",
                "alpha": 0.75,
                "shrinkA": 12,
                "shrinkB": 14,
                "connectionstyle": "arc3,rad=0.06",
                "linestyle": "--" if is_back else "-",
            },
        )
    for name, (x, y) in middle.items():
        label = name.split("/")[1]
        file_names = sorted(
            module.split(".")[-1]
            for module, box in box_of.items()
            if box == name and known[module].name != "__init__.py"
        )
        if label in (TOP, BASE):
            text = _lines(file_names, 3 if name.startswith("papers") else 6)
        else:
            files = "file" if n_files[name] == 1 else "files"
            text = f"{label}/\n{n_files[name]} {files}"
        axes.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            size=8 if label in (TOP, BASE) else 11,
            zorder=3,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "#555555"},
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def figures(source: Path) -> None:
    """Print files, the most files in one folder, floors and lines of each room.

    The floors of a room are the modules in the longest chain of its imports.
    """
    known = modules(source)
    after = {name: set(imported(name, path, known)) for name, path in known.items()}

    def chain(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in longest:
            inside = {o for o in after[name] if room_of(o) == room_of(name)}
            inner = (chain(o, (*above, name)) for o in inside - {*above, name})
            longest[name] = 1 + max(inner, default=0)
        return longest[name]

    longest: dict[str, int] = {}
    n_lines = {n: len(p.read_text().splitlines()) for n, p in known.items()}
    print("| room | files | most in one folder | floors | lines |")
    print("|---|---|---|---|---|")
    for room in ROOMS:
        inside = [name for name in known if room_of(name) == room]
        files = [known[n] for n in inside if known[n].name != "__init__.py"]
        most = max(Counter(path.parent for path in files).values())
        floors_of_room = max(map(chain, inside))
        lines = sum(n_lines[name] for name in inside)
        print(f"| {room} | {len(files)} | {most} | {floors_of_room} | {lines:,} |")
    print(f"| all | {len(known)} | | | {sum(n_lines.values()):,} |")


def _lines(names: list[str], most: int) -> str:
    """Return names in lines of a few each."""
    if len(names) > 14:
        return f"{len(names)} files"
    parts = [names[i : i + most] for i in range(0, len(names), most)]
    return "\n".join(", ".join(part) for part in parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = SOURCE.parents[1] / "docs" / "images" / "folders.png"
    parser.add_argument("--out", type=Path, default=default)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--checkout", type=Path, default=SOURCE.parents[1])
    given = parser.parse_args()
    if given.figures:
        figures(given.checkout / "src" / PACKAGE)
    else:
        draw(given.out)
