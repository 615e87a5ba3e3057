"""The benchmarks, tried with few rows: their calls are those of the package."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Return the names that a script has."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield lambda name: runpy.run_path(str(FOLDER / f"{name}.py"))
    sys.modules.pop("shared", None)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_offers_a_quick_try(script, path, monkeypatch, capsys):
    if path.stem == "shared":
        return
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    with pytest.raises(SystemExit) as ended:
        script(path.stem)["main"]()
    assert not ended.value.code
    assert "--quick" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["pair_loops", "step_time", "neighbours_scaling", "shares"]
)
def test_a_quick_try_goes_to_its_end(script, name, monkeypatch, capsys):
    names = script(name)
    main = names["main"]
    for few, value in (("QUICK_ROWS", 300), ("QUICK_SIZES", (300,))):
        if few in names:
            monkeypatch.setitem(main.__globals__, few, value)
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    main()
    assert "machine " in capsys.readouterr().out


def test_the_recall_of_a_neighbour_search_is_measured(script, monkeypatch):
    names = script("neighbours_scaling")
    row = names["measured"](names["clouds"](400), "", repeats=1)
    assert (row["n"], row["search"], row["recall"]) == (400, "exact", 1.0)


def test_a_peer_is_timed_without_what_is_prepared_for_it(script, tmp_path, capsys):
    names = script("peers")
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 5)))
    asked = []

    def fit(table):
        asked.append(len(table.read_text().splitlines()) - 1)
        return np.zeros((asked[-1], 2))

    names["WAYS"]["annembed"] = names["Way"](fit, prepare=names["write_table"])
    names["fit_one"]("annembed", tmp_path / "X.npy", tmp_path / "Y.npy")
    assert asked == [names["N_FIRST"], 60]
    assert np.load(tmp_path / "Y.npy").shape == (60, 2)
    assert '"s":' in capsys.readouterr().out
