"""Put what `napari-embedding-game reproduce` found into docs/reproduction.md.

    python tools/reproduction_docs.py FOLDER

FOLDER is what --out was.  The rows of a reproduction in the table of criteria are
replaced, and where it has marks ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``
its tables with figures of the paper between these.  Runs with --quick are refused.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from napari_embedding_game.papers.reproductions.frame import to_markdown_lines

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproduction.md"


def with_criteria(text: str, facts: dict[str, Any]) -> str:
    """Return the document with other rows of criteria of that reproduction."""
    ran = f"{facts['processor_seconds']:,.0f} s, {facts['date']}"
    name = facts["name"]
    rows = "".join(
        f"| {name} | {each['asked']} | {each['found']} | "
        f"{'yes' if each['passed'] else '**no**'} | {ran} |\n"
        for each in facts["checks"]
    )
    known = re.compile(rf"(?m)(^\| {name} \|.*\n)+")
    return known.sub(lambda found: rows, text, count=1)


def with_tables(text: str, facts: dict[str, Any]) -> str:
    """Return the document with other tables between the marks of a reproduction."""
    lines: list[str] = []
    for table in facts["tables"]:
        if any("paper" in column for column in table["rows"][0]):
            lines += [f"{table['title']}:", "", *to_markdown_lines(table["rows"])]
    marks = f"<!-- generated: {facts['name']} -->", f"<!-- end: {facts['name']} -->"
    between = re.compile("(?s)" + ".*?".join(map(re.escape, marks)))
    return between.sub(lambda found: "\n".join([marks[0], *lines, marks[1]]), text)


def main() -> None:
    """Replace what there is of every reproduction in the folder."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for file in sorted(Path(sys.argv[1]).glob("*/*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        if facts["origin"]["quick"]:
            raise SystemExit(f"{file.stem} is of a quick run: leave out --quick.")
        text = with_tables(with_criteria(text, facts), facts)
        print(file.stem)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
