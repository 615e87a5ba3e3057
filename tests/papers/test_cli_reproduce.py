import json

import pytest

from napari_embedding_game.papers.reproductions.table import REPRODUCTIONS


@pytest.fixture
def run(command_line):
    return lambda *arguments: command_line("reproduce", *arguments)


@pytest.fixture(autouse=True)
def failing(toy, monkeypatch):
    """Add a reproduction whose criterion is not met."""
    monkeypatch.setitem(REPRODUCTIONS, "toy", toy(value=3))


def test_the_list_names_them_all(run):
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(REPRODUCTIONS)


def test_a_criterion_that_is_not_met_ends_with_1(run, tmp_path):
    result = run("toy", "--out", tmp_path, "--random-state", 3)
    assert result.exit_code == 1
    assert "| 1,000 | 0.1235 | 2 |" in result.stdout
    assert "NOT PASSED: a < 1 (3)" in result.stdout
    assert not json.loads((tmp_path / "toy" / "toy.json").read_text())["passed"]


def test_quick_does_not_judge(run, tmp_path):
    result = run("toy", "--out", tmp_path, "--quick")
    assert result.exit_code == 0
    assert "not judged: a < 1" in result.stdout


def test_an_unknown_name_is_one_sentence(run, tmp_path):
    result = run("nothing", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert "fenchel-convergence" in result.stderr


def test_an_interruption_keeps_what_is_done(run, toy, tmp_path):
    def stop(inputs, run_cached):
        run_cached(lambda key: 1, ["one"])
        raise KeyboardInterrupt

    toy(stop)
    result = run("toy", "--out", tmp_path)
    assert result.exit_code == 130
    assert "kept in" in result.stderr
    assert list((tmp_path / "toy" / "parts").rglob("output.pkl"))
