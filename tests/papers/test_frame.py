"""What holds for every reproduction, by toys; and where the data are looked for."""

import json

import matplotlib.image
import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.papers.reproductions.figures import write_figure
from napari_embedding_game.papers.reproductions.frame import (
    CachedRunner,
    Check,
    Result,
    run_reproduction,
)
from napari_embedding_game.papers.reproductions.inputs import SOURCES, Inputs
from napari_embedding_game.papers.reproductions.table import (
    REPRODUCTIONS,
    find_reproduction,
)

ORIGIN = {"data": "small", "quick": True}


class Counted:
    """A computation that counts how often it is done."""

    def __init__(self, value=None):
        self.value = value
        self.calls = 0

    def __call__(self, *key):
        self.calls += 1
        return self.value


def test_a_part_comes_back_as_it_was(tmp_path):
    array = np.random.default_rng(0).normal(size=(3, 4)).astype("<f4")
    compute = Counted({"layout": array, "pair": (1, float("inf"))})
    for _ in range(2):
        run_cached = CachedRunner(tmp_path, ORIGIN, True)
        found = run_cached(compute, [("a", 1)])["a", 1]
        np.testing.assert_array_equal(found["layout"], array)
        assert found["pair"] == (1, float("inf"))
        assert run_cached.processor_seconds > 0  # those of the kept part count
    assert compute.calls == 1


def test_a_part_is_of_one_name_and_origin(tmp_path):
    compute = Counted()
    for change in ({}, {"quick": False}, {"data": "large"}, {}):
        CachedRunner(tmp_path, ORIGIN | change, True)(compute, ["a/b", "a b"])
    assert compute.calls == 6


@pytest.mark.filterwarnings("ignore")  # joblib says that it cannot be read
def test_a_damaged_part_is_computed_again(tmp_path):
    CachedRunner(tmp_path, ORIGIN, True)(Counted(1), ["a"])
    for file in tmp_path.rglob("output.pkl"):
        file.write_bytes(b"\xff")
    assert CachedRunner(tmp_path, ORIGIN, True)(Counted(2), ["a"]) == {"a": 2}


@pytest.mark.parametrize(
    ("relation", "met"),
    [("<", False), ("<=", True), ("=", True), (">=", True), (">", False)],
)
def test_a_criterion_is_a_value_and_a_bound(relation, met):
    assert Check("a", 1, relation, 1).passed is met
    assert not Check("a", float("nan"), relation, 1).passed


def test_it_writes_figure_table_and_numbers(toy, tmp_path):
    facts = run_reproduction(toy(), Inputs(), tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder" / "toy"
    assert json.loads((folder / "toy.json").read_text()) == facts
    assert facts["passed"]
    assert matplotlib.image.imread(folder / "toy.png").std() > 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["parts", "toy.json", "toy.png"]


@pytest.mark.parametrize(("n_kinds", "scale"), [(10, "tab10"), (11, "tab20")])
def test_kinds_are_told_by_as_many_colours(tmp_path, n_kinds, scale):
    kinds = np.arange(110) % n_kinds
    layout = np.random.default_rng(0).normal(size=(110, 2))
    write_figure({"a map": {"layout": layout, "labels": kinds}}, {}, tmp_path / "a.png")
    pixels = matplotlib.image.imread(tmp_path / "a.png")[..., :3]
    for color in matplotlib.colormaps[scale](np.linspace(0, 1, n_kinds)):
        assert np.isclose(pixels, color[:3], atol=0.01).all(axis=-1).any()


def test_it_goes_on_where_it_stopped(toy, tmp_path):
    calls = []

    def run(inputs, run_cached):
        def compute(key):
            calls.append(key)
            if calls == ["a", "b"]:
                raise KeyboardInterrupt

        run_cached(compute, ["a", "b"])
        return Result({}, [])

    with pytest.raises(KeyboardInterrupt):
        run_reproduction(toy(run), Inputs(), tmp_path)
    run_reproduction(toy(run), Inputs(), tmp_path)
    assert calls == ["a", "b", "b"]


def test_every_line_of_the_table_is_whole():
    for name, each in REPRODUCTIONS.items():
        assert find_reproduction(name) is each
        assert each.what
        assert each.paper
        assert not each.data or set(each.data.split(", ")) <= set(SOURCES)
    with pytest.raises(DataError, match="fenchel-convergence"):
        find_reproduction("fenchel-table2")


def test_where_the_data_are_looked_for(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, size=(30, 64), dtype=np.uint8)
    X[0, 0] = 255
    for name in ("mnist", "coil20"):
        np.savez(tmp_path / SOURCES[name], X=X, y=np.arange(30) % 10)
        read = Inputs(tmp_path).load(name).X
        assert read.shape == (30, 64)
        assert (read.min() >= 0, read.max()) == (True, 1)
    told = Inputs(tmp_path).describe_files("mnist, coil20")
    assert str(tmp_path) not in told
    assert [each.split(",")[0] for each in told.split("; ")] == [
        "mnist_70k.npz",
        "coil20_32.npz",
    ]
    assert Inputs().describe_files("") == "none"
    for name, folder in (("words", tmp_path), ("coil20", None), ("mnist", "nowhere")):
        with pytest.raises(DataError, match=f"{SOURCES[name]}.*--data"):
            Inputs(folder and tmp_path / folder).load(name)
