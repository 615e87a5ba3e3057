import json

import pytest

from napari_embedding_game.papers.reproductions.frame import (
    Check,
    Reproduction,
    Result,
)
from napari_embedding_game.papers.reproductions.table import REPRODUCTIONS


@pytest.fixture
def run(command_line):
    return lambda *arguments: command_line("reproduce", *arguments)


class Toy(Reproduction):
    """A reproduction that fails its criterion, or is interrupted."""

    def run(self, inputs, parts):
        parts("one", lambda: {"x": 1})
        if self.paper == "interrupted":
            raise KeyboardInterrupt
        found = f"{inputs.random_state}"
        return Result([], [Check("a below 1", found, False)], lambda figure: None)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(REPRODUCTIONS, "toy", Toy("toy", "A toy", "Paper", ""))


def test_the_list_names_them_all(run, toy):
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(REPRODUCTIONS)


def test_a_criterion_that_is_not_met_ends_with_1(run, toy, tmp_path):
    result = run("toy", "--out", tmp_path, "--random-state", 3)
    assert result.exit_code == 1
    assert "NOT PASSED: a below 1 (3)" in result.stdout
    assert not json.loads((tmp_path / "toy" / "toy.json").read_text())["passed"]


def test_quick_does_not_judge(run, toy, tmp_path):
    result = run("toy", "--out", tmp_path, "--quick")
    assert result.exit_code == 0
    assert "not judged: a below 1" in result.stdout


def test_an_unknown_name_is_one_sentence(run, tmp_path):
    result = run("nothing", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "fenchel-convergence" in result.stderr


def test_an_interruption_keeps_what_is_done(run, toy, tmp_path, monkeypatch):
    stopped = Toy("toy", "A toy", "interrupted", "")
    monkeypatch.setitem(REPRODUCTIONS, "toy", stopped)
    result = run("toy", "--out", tmp_path)
    assert result.exit_code == 130
    assert "kept in" in result.stderr
    assert list((tmp_path / "toy" / "parts").rglob("output.pkl"))
