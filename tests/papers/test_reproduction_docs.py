"""The document has the criteria of every reproduction, from a whole run."""

from pathlib import Path

import pytest

from napari_embedding_game.papers.reproductions.table import REPRODUCTIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_the_document_shows_a_whole_run(name):
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith(f"| {name} | ")]
    assert rows
    assert all("| yes |" in row or "| **no** |" in row for row in rows)
