"""What holds for every reproduction, by toys; and where the data are looked for."""

import json

import matplotlib.image
import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.papers.reproductions.figures import curves
from napari_embedding_game.papers.reproductions.frame import (
    Check,
    Inputs,
    Parts,
    Result,
    reproduce,
)
from napari_embedding_game.papers.reproductions.table import (
    REPRODUCTIONS,
    SOURCES,
    described,
    find,
)

ORIGIN = {"data": "small", "quick": True}


class Counted:
    """A computation that counts how often it is done."""

    def __init__(self, value=None):
        self.value = value
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.value


def test_a_part_comes_back_as_it_was(tmp_path):
    array = np.random.default_rng(0).normal(size=(3, 4)).astype("<f4")
    compute = Counted({"layout": array, "pair": (1, float("inf"))})
    for _ in range(2):
        parts = Parts(tmp_path, ORIGIN)
        found = parts({("a", 1): compute})["a", 1]
        np.testing.assert_array_equal(found["layout"], array)
        assert found["pair"] == (1, float("inf"))
        assert parts.processor_seconds > 0  # those of the kept part count
    assert compute.calls == 1


def test_a_part_is_of_one_name_and_origin(tmp_path):
    compute = Counted()
    for change in ({}, {"quick": False}, {"data": "large"}, {}):
        Parts(tmp_path, ORIGIN | change)({"a/b": compute, "a b": compute})
    assert compute.calls == 6


def test_again_computes_what_is_there(tmp_path):
    compute = Counted()
    for again in (False, True, False):
        Parts(tmp_path, ORIGIN, again)({"a": compute})
    assert compute.calls == 2


@pytest.mark.filterwarnings("ignore")  # joblib says that it cannot be read
def test_a_damaged_part_is_computed_again(tmp_path):
    Parts(tmp_path, ORIGIN)({"a": Counted(1)})
    for file in tmp_path.rglob("output.pkl"):
        file.write_bytes(b"\xff")
    assert Parts(tmp_path, ORIGIN)({"a": Counted(2)}) == {"a": 2}


@pytest.mark.parametrize(
    ("relation", "met"),
    [("<", False), ("<=", True), ("=", True), (">=", True), (">", False)],
)
def test_a_criterion_is_a_value_and_a_bound(relation, met):
    assert Check("a", 1, relation, 1).passed is met
    assert not Check("a", float("nan"), relation, 1).passed


def test_it_writes_figure_table_and_numbers(toy, tmp_path):
    facts = reproduce(toy(), Inputs(), tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder" / "toy"
    assert json.loads((folder / "toy.json").read_text()) == facts
    assert facts["passed"]
    text = (folder / "toy.md").read_text()
    assert "| 1,000 | 0.1235 | 2 |" in text
    assert "| a < 1 | 0.5 | passed |" in text
    assert "- A note on two lines." in text
    assert matplotlib.image.imread(folder / "toy.png").std() > 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["parts", "toy.json", "toy.md", "toy.png"]


@pytest.mark.parametrize("quick", [False, True])
def test_quick_judges_nothing(toy, tmp_path, quick):
    facts = reproduce(toy(value=7), Inputs(quick=quick), tmp_path)
    assert facts["passed"] is quick
    assert facts["checks"][0]["passed"] is (None if quick else False)


def test_it_goes_on_where_it_stopped(toy, tmp_path):
    a, b = Counted(), Counted()

    def stop():
        raise KeyboardInterrupt

    def run(second, inputs, parts):
        parts({"a": a, "b": second})
        return Result({}, [], [curves("", {"a": ([0], [1])}, "x")])

    with pytest.raises(KeyboardInterrupt):
        reproduce(toy(lambda *given: run(stop, *given)), Inputs(), tmp_path)
    reproduce(toy(lambda *given: run(b, *given)), Inputs(), tmp_path)
    assert (a.calls, b.calls) == (1, 1)


def test_a_folder_that_cannot_be_made(toy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="choose another"):
        reproduce(toy(), Inputs(), tmp_path / "file")


def test_an_unknown_name_tells_the_known_ones():
    with pytest.raises(DataError, match="fenchel-convergence"):
        find("fenchel-table2")


def test_every_line_of_the_table_is_whole():
    for name, each in REPRODUCTIONS.items():
        assert name == each.name
        assert each.what
        assert each.paper
        assert not each.data or set(each.data.split(", ")) <= set(SOURCES)


# --- Where the data are looked for


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(30, 64), dtype=np.uint8)
    for name in ("mnist_70k.npz", "coil20_32.npz"):
        np.savez(tmp_path / name, X=X, y=np.arange(30) % 10)
    return tmp_path


@pytest.mark.parametrize("name", ["mnist", "coil20"])
def test_pixels_from_a_folder_or_a_file(folder, name):
    from_folder = Inputs(folder).load(name)
    from_file = Inputs(folder / SOURCES[name]).load(name)
    assert from_folder.X.shape == (30, 64)
    assert from_folder.X.min() >= 0
    assert from_folder.X.max() == 1
    np.testing.assert_array_equal(from_folder.X, from_file.X)


def test_digits_come_with_scikit_learn():
    assert Inputs().load("digits").X.shape == (1797, 64)


def test_what_was_read_is_told_without_the_folder(folder):
    told = described("coil20", folder)
    assert told.startswith("coil20_32.npz, ")
    assert str(folder) not in told
    assert described("", folder) == "none"
    both = described("mnist, coil20", folder).split("; ")
    assert [each.split(",")[0] for each in both] == ["mnist_70k.npz", "coil20_32.npz"]
    assert described("mnist", None) == "mnist"


@pytest.mark.parametrize("name", ["coil20", "words", "cells", "texts"])
def test_what_cannot_be_downloaded_is_asked_for(name):
    with pytest.raises(DataError, match="--data"):
        Inputs().load(name)


def test_a_file_that_is_not_there(folder):
    with pytest.raises(DataError, match=r"glove_words_5000\.npz"):
        Inputs(folder).load("words")
    with pytest.raises(DataError, match="does not exist"):
        Inputs(folder / "nowhere").load("mnist")


def test_one_file_where_several_are_needed(folder):
    with pytest.raises(DataError, match="and not one file"):
        described("mnist, coil20", folder / SOURCES["mnist"])
