"""Centroids of shapes in well-known binary, as shapely 2.2 wrote and found them."""

import struct
import tracemalloc

import numpy as np
import pytest

from napari_embedding_game.data.formats.wkb import find_centroids
from worlds import to_wkb

SQUARE = [(0, 0), (10, 0), (10, 10), (0, 10)]
HOLE = [(1, 1), (4, 1), (4, 4), (1, 4)]
NAN = np.nan


@pytest.mark.parametrize(
    ("shape", "centroid"),
    [
        ("010100000000000000000008400000000000001040", (3, 4, NAN)),
        # Z, the other byte order, as ISO has it
        ("00000003E9400800000000000040100000000000004014000000000000", (3, 4, 5)),
        # ZM of ISO, M of EWKB, Z with the number of a reference system
        ("01B90B0000000000000000084000000000000010400000000000001440000000000000"
         "1840", (3, 4, 5)),
        ("0101000040000000000000084000000000000010400000000000001840", (3, 4, NAN)),
        ("01010000A0E6100000000000000000084000000000000010400000000000001440",
         (3, 4, 5)),
        # a triangle with Z
        ("01EB0300000100000004000000000000000000000000000000000000000000000000001C40"
         "000000000000184000000000000000000000000000001C4000000000000000000000000000"
         "0008400000000000001C40000000000000000000000000000000000000000000001C40",
         (2, 1, 7)),
        # points; polygons without an area: a line, and a single place
        ("010400000002000000010100000000000000000000000000000000000000010100000000"
         "000000000008400000000000001840", (1.5, 3, NAN)),
        ("0103000000010000000400000000000000000000000000000000000000000000000000F03F"
         "000000000000F03F00000000000014400000000000001440000000000000000000000000"
         "00000000", (2.5, 2.5, NAN)),
        ("010300000001000000040000000000000000000040000000000000084000000000000000"
         "400000000000000840000000000000004000000000000008400000000000000040000000"
         "0000000840", (2, 3, NAN)),
        # empty ones
        ("010300000000000000", (NAN, NAN, NAN)),
        ("0101000000000000000000F87F000000000000F87F", (NAN, NAN, NAN)),
    ],
)  # fmt: skip
def test_kinds_byte_orders_and_axes(shape, centroid):
    (found,) = find_centroids([bytes.fromhex(shape)])
    np.testing.assert_allclose(found, centroid, atol=1e-12)


@pytest.mark.parametrize("turn", [1, -1])
def test_polygons_with_holes_and_several_parts_in_either_direction(turn):
    whole = to_wkb(SQUARE[::turn], HOLE)
    part = to_wkb([(20, 20), (30, 20), (25, 40)][::turn])
    both = struct.pack("<BII", 1, 6, 2) + whole + part
    found = find_centroids([whole, None, both, part])
    np.testing.assert_allclose(found[0, :2], (500 - 9 * 2.5) / 91)
    assert np.isnan(found[1]).all()
    # by shapely
    np.testing.assert_allclose(found[2, :2], [15.589005235602095, 16.461605584642232])
    np.testing.assert_allclose(found[3, :2], [25, 80 / 3])


def test_many_shapes_far_away_keep_their_digits():
    places = np.random.default_rng(0).uniform(1e7, 2e7, (70_000, 2))
    shapes = [struct.pack("<BI2d", 1, 1, *place) for place in places]
    shapes[-1] = to_wkb(places[-1] + np.array(SQUARE), places[-1] + np.array(HOLE))
    places[-1] += (500 - 9 * 2.5) / 91
    np.testing.assert_allclose(find_centroids(shapes)[:, :2], places, rtol=1e-15)


@pytest.mark.parametrize(
    "shape",
    [
        struct.pack("<BII", 1, 3, 2**32 - 1),  # rings
        struct.pack("<BIII", 1, 3, 1, 2**32 - 1),  # corners
        struct.pack("<BII", 1, 6, 2**32 - 1),  # polygons
        struct.pack("<BII", 1, 6, 1) + to_wkb((1, 2)),  # a point in polygons
        struct.pack("<BII", 1, 2, 2) + bytes(32),  # a line
        struct.pack("<BII", 1, 7, 1) + to_wkb((1, 2)),  # a collection of any shapes
        struct.pack("<BI2d", 1, 4001, 1, 2),
        struct.pack("<BI2d", 2, 1, 1, 2),
        to_wkb((1, 2)) + b"\0",
        b"\1",
    ],
)
def test_damaged_shapes_are_refused_before_they_take_memory(shape):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="shape"):
            find_centroids([to_wkb((1, 2)), shape])
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_any_bytes_are_refused_or_give_numbers():
    rng = np.random.default_rng(0)
    whole = struct.pack("<BII", 1, 6, 2) + to_wkb(SQUARE, HOLE) + to_wkb(SQUARE)
    n_refused = 0
    for _ in range(1000):
        content = bytearray(whole[: rng.integers(1, len(whole) + 1)])
        content[rng.integers(min(30, len(content)))] ^= int(rng.integers(1, 256))
        try:
            assert find_centroids([bytes(content), whole]).shape == (2, 3)
        except ValueError:
            n_refused += 1
    assert 0 < n_refused < 1000
