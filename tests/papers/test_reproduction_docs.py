"""The document has a place for every reproduction, filled from a whole run."""

import re
from pathlib import Path

import pytest

from napari_embedding_game.papers.reproductions import (
    explain_conjecture1,
    game_fig2,
    game_fig4,
    game_fig5,
    game_fig6,
    pressure_fig5,
)
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


def test_texts_that_name_sizes_are_those_of_the_whole_run():
    text = DOCUMENT.read_text(encoding="utf-8")
    full = game_fig2.SETTINGS[0]
    assert game_fig2._title(full.n_iter) in text
    for note in (
        *game_fig4._notes(game_fig4.N_POINTS, min(game_fig4.RATES)),
        *game_fig5._notes(game_fig5.N_POINTS),
        *game_fig6._notes(game_fig6.N_POINTS),
        *pressure_fig5._notes(pressure_fig5.N_DIGITS, pressure_fig5.N_SNE_RUNS, 50),
        *explain_conjecture1._notes(explain_conjecture1.AT),
    ):
        assert f"- {note}\n" in text
