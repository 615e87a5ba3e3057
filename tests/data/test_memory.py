import gzip

import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.limits.memory import (
    check_fits,
    check_inflates,
    check_shape_fits,
    size_text,
)


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(12, "12 bytes"), (1500, "1.5 kB"), (2e9, "2.0 GB"), (8e12, "8.0 TB"),
     (8e15, "8,000.0 TB")],
)  # fmt: skip
def test_size(n_bytes, text):
    assert size_text(n_bytes) == text


def test_half_of_what_is_free_may_be_used(monkeypatch):
    monkeypatch.setattr(memory, "budget", lambda: 1000)
    check_fits(1000, "a.npy")
    with pytest.raises(
        DataError, match=r"a\.npy says that X would take 1\.0 kB, .*2\.0"
    ):
        check_fits(1001, "a.npy", "X")


def test_negative_and_astronomic_shapes():
    with pytest.raises(DataError, match="negative"):
        check_shape_fits((3, -1), 8, "a.npy")
    with pytest.raises(DataError, match="TB"):
        check_shape_fits((2**62, 2**62, 2**62), 8, "a.npy")


def test_unpacked_size_is_measured_only_where_it_may_be_large(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(100_000)))
    monkeypatch.setattr(memory, "budget", lambda: 100_000)
    check_inflates(path)
    with pytest.raises(DataError, match=r"more than 50\.0 kB when unpacked"):
        check_inflates(path, 2)
    monkeypatch.setattr(memory, "budget", lambda: 10**9)
    monkeypatch.setattr(gzip, "open", lambda _: pytest.fail("was unpacked"))
    check_inflates(path)
