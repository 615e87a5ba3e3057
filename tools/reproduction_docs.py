"""Put the tables of `napari-embedding-game reproduce` into docs/reproduction.md.

    python tools/reproduction_docs.py FOLDER

FOLDER is what --out was.  A part of the document is replaced where its marks
``<!-- generated: NAME -->`` and ``<!-- end: NAME -->`` stand; runs with --quick are
refused.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproduction.md"


def with_part(text: str, name: str, part: str) -> str:
    """Return the document with another part of that name."""
    marks = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    if not all(mark in text for mark in marks):
        raise SystemExit(f"{DOCUMENT.name} has no marks {' ... '.join(marks)}")
    between = re.compile("(?s)" + ".*?".join(map(re.escape, marks)))
    return between.sub(lambda found: f"{marks[0]}\n{part}\n{marks[1]}", text)


def main() -> None:
    """Replace the part of every reproduction in the folder."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for table in sorted(Path(sys.argv[1]).glob("*/*.md")):
        facts = json.loads(table.with_suffix(".json").read_text(encoding="utf-8"))
        if facts["origin"]["quick"]:
            raise SystemExit(f"{table.stem} is of a quick run: leave out --quick.")
        text = with_part(text, table.stem, table.read_text(encoding="utf-8"))
        print(table.stem)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
