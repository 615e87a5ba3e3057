"""The document has a place for every reproduction, filled from a whole run."""

import re
from pathlib import Path

import pytest

from napari_embedding_game.papers.reproductions.table import REPRODUCTIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_the_document_shows_a_whole_run(name):
    text = DOCUMENT.read_text(encoding="utf-8")
    marks = f"<!-- generated: {name} -->(.*)<!-- end: {name} -->"
    (part,) = re.findall(marks, text, re.DOTALL)
    assert f"**{name}**: {REPRODUCTIONS[name].what}" in part
    assert "| asked | found |" in part
    assert "not judged" not in part
