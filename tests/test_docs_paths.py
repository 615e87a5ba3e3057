"""The documents name only files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "napari_embedding_game"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
FILE = re.compile(r"`((?:core|data|session|ui|papers|tests|tools)/[\w/]*(?:\.py)?)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_are_there(document):
    named = set(FILE.findall(document.read_text(encoding="utf-8")))
    missing = [
        name
        for name in sorted(named)
        if not (ROOT / name).exists() and not (SOURCE / name).exists()
    ]
    assert not missing


def test_each_row_of_the_architecture_stands_once():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", text, flags=re.M)
    assert sorted({row for row in rows if rows.count(row) > 1}) == []


def test_journeys_name_functions_of_today():
    """Else make the page again: its head says how."""
    text = (ROOT / "docs" / "journeys.md").read_text(encoding="utf-8")
    calls = set(re.findall(r"`([\w.]+)` \(([\w/]+\.py)\)", text))
    gone = [
        f"{name} ({path})"
        for name, path in sorted(calls)
        if not re.search(
            rf"\b(def|class) {name.split('.')[-1]}\b",
            (SOURCE / path).read_text(encoding="utf-8"),
        )
    ]
    assert not gone
