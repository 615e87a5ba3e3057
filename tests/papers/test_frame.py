"""What holds for every reproduction, by toys; and where the data are looked for."""

import json

import matplotlib.image
import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.papers.reproductions.frame import (
    Check,
    Inputs,
    Parts,
    Reproduction,
    Result,
    Table,
    reproduce,
)
from napari_embedding_game.papers.reproductions.table import (
    REPRODUCTIONS,
    SOURCES,
    described,
    find,
)

ORIGIN = {"data": "small", "quick": True}
MET = Check("a below 1", "0.5", True)
TABLE = Table("Shares", [{"k": 1000, "share": 0.123456, "n": np.int32(2)}])


class Counted:
    """A computation that counts how often it is done."""

    def __init__(self, value=None):
        self.value = value
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.value


class Toy(Reproduction):
    """A reproduction that finds what it is given."""

    def __init__(self, run=None, checks=(MET,)):
        super().__init__("toy", "A toy", "A paper, Figure 0", "")
        found = Result(
            [TABLE], checks, lambda figure: figure.add_subplot().plot([0, 1]), ["Note."]
        )
        object.__setattr__(self, "found", run or (lambda inputs, parts: found))

    def run(self, inputs, parts):
        return self.found(inputs, parts)


def test_a_part_comes_back_as_it_was(tmp_path):
    array = np.random.default_rng(0).normal(size=(3, 4)).astype("<f4")
    value = {"rows": [{"layout": array}], "pair": (1, float("inf")), 3: np.float32(0.1)}
    compute = Counted(value)
    for _ in range(2):
        found = Parts(tmp_path, ORIGIN)("a", compute)
        np.testing.assert_array_equal(found["rows"][0]["layout"], array)
        assert found["rows"][0]["layout"].dtype == array.dtype
        assert (found["pair"], found[3]) == (value["pair"], value[3])
    assert compute.calls == 1


def test_a_part_is_of_one_name_and_origin(tmp_path):
    compute = Counted()
    for change in ({}, {"quick": False}, {"data": "large"}):
        Parts(tmp_path, ORIGIN | change)("a/b", compute)
        Parts(tmp_path, ORIGIN | change)("a b", compute)
    assert compute.calls == 6
    Parts(tmp_path, ORIGIN)("a/b", compute)  # which is still there
    assert compute.calls == 6


def test_again_computes_what_is_there_and_leaves_the_rest(tmp_path):
    compute = Counted()
    for part in ("a", "b"):
        Parts(tmp_path, ORIGIN)(part, compute)
    Parts(tmp_path, ORIGIN, again=True)("a", compute)
    assert compute.calls == 3
    Parts(tmp_path, ORIGIN)("b", compute)
    assert compute.calls == 3


@pytest.mark.filterwarnings("ignore")  # joblib says that it cannot be read
def test_a_damaged_part_is_computed_again(tmp_path):
    Parts(tmp_path, ORIGIN)("a", Counted(1))
    for file in tmp_path.rglob("output.pkl"):
        file.write_bytes(b"\xff")
    assert Parts(tmp_path, ORIGIN)("a", Counted(2)) == 2


def test_times_and_progress_count_the_parts_that_were_kept(tmp_path):
    told = []
    parts = Parts(tmp_path, ORIGIN, tell=lambda *progress: told.append(progress))
    parts.expect(2)
    parts("a", lambda: sum(range(300_000)))
    assert told == [("a", 0, 2), ("a", 1, 2)]
    kept = Parts(tmp_path, ORIGIN)
    kept("a", Counted())
    assert kept.seconds == parts.seconds > 0
    assert kept.processor_seconds == parts.processor_seconds


def test_it_writes_figure_table_and_numbers(tmp_path):
    facts = reproduce(Toy(), Inputs(), tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder" / "toy"
    assert json.loads((folder / "toy.json").read_text()) == facts
    assert facts["passed"]
    assert facts["tables"] == [{"title": TABLE.title, "rows": TABLE.rows}]
    text = (folder / "toy.md").read_text()
    assert "| 1,000 | 0.1235 | 2 |" in text
    assert "| a below 1 | 0.5 | passed |" in text
    assert "- Note." in text
    assert matplotlib.image.imread(folder / "toy.png").std() > 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["parts", "toy.json", "toy.md", "toy.png"]


@pytest.mark.parametrize(
    ("quick", "in_quick", "verdict"),
    [(False, False, False), (True, True, False), (True, False, None)],
)
def test_quick_judges_only_what_small_data_can_tell(tmp_path, quick, in_quick, verdict):
    check = Check("a below 1", "7", False, in_quick=in_quick)
    facts = reproduce(Toy(checks=[check]), Inputs(quick=quick), tmp_path)
    assert facts["checks"][0]["passed"] is verdict
    assert facts["passed"] == (verdict is None)


def test_it_goes_on_where_it_stopped(tmp_path):
    computed, stopped = [], []

    def run(inputs, parts):
        for name in ("a", "b"):
            parts(name, lambda name=name: computed.append(name))
            if not stopped:
                stopped.append(name)
                raise KeyboardInterrupt
        return Result([], [], lambda figure: None)

    with pytest.raises(KeyboardInterrupt):
        reproduce(Toy(run), Inputs(), tmp_path)
    reproduce(Toy(run), Inputs(), tmp_path)
    assert computed == ["a", "b"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="choose another"):
        reproduce(Toy(), Inputs(), tmp_path / "file")


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
