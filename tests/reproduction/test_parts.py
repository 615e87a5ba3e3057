import json

import numpy as np
import pytest

from napari_embedding_game.reproduction.parts import Parts

ORIGIN = {"data": "small", "quick": True}


class Counted:
    """A computation that counts how often it is done."""

    def __init__(self, **values):
        self.values = values
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.values


@pytest.mark.parametrize(
    "value",
    [1, 0.1 + 0.2, "a", True, None, [1, [2.5]], {"deep": {"er": 1e-300}}, float("inf")],
)
def test_plain_values_come_back(tmp_path, value):
    compute = Counted(value=value)
    assert Parts(tmp_path, ORIGIN)("a", compute) == {"value": value}
    assert Parts(tmp_path, ORIGIN)("a", compute) == {"value": value}
    assert compute.calls == 1


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "|b1", "|u1"])
def test_arrays_come_back_bit_for_bit(tmp_path, dtype):
    array = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(dtype)
    compute = Counted(rows=[{"layout": array}])
    for _ in range(2):
        found = Parts(tmp_path, ORIGIN)("a", compute)["rows"][0]["layout"]
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype
        assert found.flags.writeable
    assert compute.calls == 1


def test_a_numpy_number_is_a_number(tmp_path):
    found = Parts(tmp_path, ORIGIN)("a", Counted(x=np.float32(0.5), n=np.int64(3)))
    assert (type(found["x"]), type(found["n"])) == (float, int)


@pytest.mark.parametrize("change", [{"quick": False}, {"data": "large"}])
def test_a_part_of_another_origin_is_computed_again(tmp_path, change):
    compute = Counted(x=1)
    Parts(tmp_path, ORIGIN)("a", compute)
    Parts(tmp_path, ORIGIN | change)("a", compute)
    assert compute.calls == 2
    Parts(tmp_path, ORIGIN)("a", compute)  # which is still there
    assert compute.calls == 2


def test_names_that_files_write_alike_are_two_parts(tmp_path):
    parts = Parts(tmp_path, ORIGIN)
    found = [parts(name, Counted(x=name))["x"] for name in ("a b", "a_b")]
    assert found == ["a b", "a_b"]


def test_again_computes_what_is_there(tmp_path):
    compute = Counted(x=1)
    Parts(tmp_path, ORIGIN)("a", compute)
    Parts(tmp_path, ORIGIN, again=True)("a", compute)
    assert compute.calls == 2


def test_names_that_share_a_file_do_not_share_a_part(tmp_path):
    Parts(tmp_path, ORIGIN)("a/b", Counted(x=1))
    assert Parts(tmp_path, ORIGIN)("a b", Counted(x=2)) == {"x": 2}


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"part": "a"}', "\xff"])
def test_a_damaged_part_is_computed_again(tmp_path, content):
    Parts(tmp_path, ORIGIN)("a", Counted(x=1))
    (file,) = tmp_path.iterdir()
    file.write_text(content, encoding="latin-1")
    assert Parts(tmp_path, ORIGIN)("a", Counted(x=2)) == {"x": 2}


def test_a_part_that_fails_leaves_nothing(tmp_path):
    def fail():
        raise KeyboardInterrupt

    parts = Parts(tmp_path, ORIGIN)
    with pytest.raises(KeyboardInterrupt):
        parts("a", fail)
    assert list(tmp_path.iterdir()) == []


def test_time_counts_the_parts_that_were_kept(tmp_path):
    first = Parts(tmp_path, ORIGIN)
    first("a", Counted(x=1))
    (file,) = tmp_path.iterdir()
    longer = {"seconds": 100.0, "processor_seconds": 200.0}
    kept = json.loads(file.read_text()) | longer
    file.write_text(json.dumps(kept))
    second = Parts(tmp_path, ORIGIN)
    second("a", Counted(x=1))
    second("b", Counted(x=1))
    assert 100 < second.seconds < 101
    assert 200 <= second.processor_seconds < 201


def test_progress(tmp_path):
    told = []
    parts = Parts(tmp_path, ORIGIN, tell=lambda *progress: told.append(progress))

    def compute():
        parts.tell("half")
        return {}

    parts.expect(2)
    parts("a", compute)
    assert told == [("", 0, 2), ("a", 0, 2), ("a: half", 0, 2), ("a", 1, 2)]
