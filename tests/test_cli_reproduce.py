import json

import pytest
from typer.testing import CliRunner

from napari_embedding_game.cli import app
from napari_embedding_game.reproduction import registry
from napari_embedding_game.reproduction.protocol import (
    Check,
    Inputs,
    Reproduction,
    Result,
)


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture
def toy(monkeypatch):
    """A reproduction that fails its criterion; ``seen`` holds what it was given."""
    seen = []

    def compute(inputs, parts):
        seen.append(inputs)
        parts("one", lambda: {"x": 1})
        return Result([], [Check("a below 1", "7", False)], lambda figure: None)

    monkeypatch.setitem(
        registry.REPRODUCTIONS, "toy", Reproduction("toy", "A toy", "Paper", compute)
    )
    return seen


def test_the_list_names_them_all(toy):
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(registry.REPRODUCTIONS)


def test_a_criterion_that_is_not_met_ends_with_1(toy, tmp_path):
    result = run("toy", "--out", tmp_path, "--random-state", 3)
    assert result.exit_code == 1
    assert "NOT PASSED: a below 1 (7)" in result.stdout
    assert not json.loads((tmp_path / "toy" / "toy.json").read_text())["passed"]
    assert toy == [Inputs(random_state=3)]


def test_quick_does_not_judge(toy, tmp_path):
    result = run("toy", "--out", tmp_path, "--quick")
    assert result.exit_code == 0
    assert "not judged: a below 1" in result.stdout


def test_an_unknown_name_is_one_sentence(tmp_path):
    result = run("nothing", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "fenchel-convergence" in result.stderr


def test_an_interruption_keeps_what_is_done(toy, tmp_path, monkeypatch):
    def compute(inputs, parts):
        parts("one", lambda: {"x": 1})
        raise KeyboardInterrupt

    stopped = Reproduction("toy", "A toy", "Paper", compute)
    monkeypatch.setitem(registry.REPRODUCTIONS, "toy", stopped)
    result = run("toy", "--out", tmp_path)
    assert result.exit_code == 130
    assert "kept in" in result.stderr
    (kept,) = (tmp_path / "toy" / "parts").iterdir()
    assert kept.name.startswith("one-")
