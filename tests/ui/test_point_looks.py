"""How points look is worked out for those that are drawn, and is the same for all."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas import painting
from napari_embedding_game.ui.canvas.painting import FlatPainting
from napari_embedding_game.ui.canvas.pixels import Part, paint_density, points_near
from napari_embedding_game.ui.point_looks import DrawingOrder, Muting, PointLooks
from napari_embedding_game.ui.style.colors import CodedColors

N = 4000
RNG = np.random.default_rng(0)
TABLE = RNG.random((5, 4)).astype(np.float32)
CODES = RNG.integers(-1, 4, N).astype(np.int32)
CHOSEN, HIDDEN = CODES == 2, CODES == 3
MUTING = Muting(0.8, 0.3)


def looks(colors, chosen=CHOSEN):
    return PointLooks(colors, 2.0, 1.0, chosen, MUTING, 1.5)


def test_a_code_is_a_row_of_the_table_and_one_below_it_is_the_last():
    coded = CodedColors(TABLE, CODES)
    np.testing.assert_array_equal(coded.of(), TABLE[CODES])
    later = CodedColors(TABLE, np.where(CODES < 0, 4, CODES).astype(np.int32) + 7, 7)
    np.testing.assert_array_equal(later.of(), coded.of())
    np.testing.assert_array_equal(later.of(np.array([5, 2])), TABLE[CODES[[5, 2]]])
    np.testing.assert_array_equal(later.of(slice(3, 9)), TABLE[CODES[3:9]])


@pytest.mark.parametrize("is_coded", [True, False])
def test_looks_are_the_same_for_some_and_for_all(is_coded):
    each = TABLE[CODES]
    some = looks(CodedColors(TABLE, CODES) if is_coded else each)
    expected = np.where(CHOSEN[:, None], each, MUTING.of(each))
    rows = RNG.permutation(N)[:50]
    np.testing.assert_array_equal(some.colors_of(rows), expected[rows])
    np.testing.assert_array_equal(some.colors_of(slice(10, 90)), expected[10:90])
    written, sizes = np.zeros((N, 4)), np.zeros(N)
    some.write_colors(written)
    some.write_sizes(sizes)
    np.testing.assert_array_equal(written, expected)
    np.testing.assert_allclose(sizes, np.where(CHOSEN, 3.0, 2.0))
    assert some.largest == sizes.max()
    assert (looks(each, None).colors_of(rows) == each[rows]).all()  # none is chosen
    sized = PointLooks(each, 2.0, np.linspace(1, 3, N))
    np.testing.assert_allclose(sized.sizes(), np.linspace(2, 6, N))


def test_hidden_points_are_not_drawn_and_chosen_ones_last():
    order = DrawingOrder(CHOSEN, HIDDEN)
    expected = [*np.flatnonzero(~CHOSEN & ~HIDDEN), *np.flatnonzero(CHOSEN)]
    assert order.rows.tolist() == expected
    assert (order.n_drawn, order.n_above) == (len(expected), CHOSEN.sum())
    assert order.above.tolist() == np.flatnonzero(CHOSEN).tolist()
    some = order.one_in(8)
    assert np.isin(some, order.rows).all()
    assert len(some) == pytest.approx(len(expected) / 8, rel=0.2)
    assert DrawingOrder(hidden=HIDDEN).n_above == 0
    assert (
        DrawingOrder(CHOSEN, CHOSEN).rows.tolist() == np.flatnonzero(~CHOSEN).tolist()
    )


@pytest.mark.parametrize("is_coded", [True, False])
@pytest.mark.parametrize("n_pixels", [100, 10**6])  # a density, and discs
@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("order", [None, DrawingOrder(CHOSEN, HIDDEN)])
def test_a_picture_is_the_same_as_of_an_array_of_all_colours(
    is_coded, n_pixels, stride, order, monkeypatch
):
    monkeypatch.setattr(painting, "AT_ONCE", 700)
    each, chosen = TABLE[CODES], None if order is None else CHOSEN
    lazy = looks(CodedColors(TABLE, CODES) if is_coded else each, chosen)
    positions = RNG.normal(20, 9, (N, 2)).astype(np.float32)
    pictures = []
    for colors in (lazy, lazy.colors_of(slice(None))):
        seen = painting.Looks(lazy.sizes(), colors, order, 0.9, (40, 44), n_pixels)
        flat = FlatPainting(seen, positions, (1.1, 0.0), (1.0, 2.0))
        pictures.append(flat.paint(stride))
    assert pictures[0].is_density is (n_pixels == 100)
    assert pictures[0].picture.any()
    np.testing.assert_array_equal(pictures[0].picture, pictures[1].picture)


def test_parts_of_a_density_add_up():
    positions = RNG.uniform(-2, 12, (N, 2)).astype(np.float32)
    lines = ((1.0, 0.0), (1.0, 0.0)), (9, 8)
    whole = paint_density([Part(positions, TABLE[CODES])], (), *lines)
    coded, some = CodedColors(TABLE, CODES), (CHOSEN, ~CHOSEN)
    halves = [Part(positions, coded, np.flatnonzero(rows)) for rows in some]
    np.testing.assert_array_equal(paint_density(halves, (), *lines), whole)
    none = Part(positions, coded, np.empty(0, int))
    assert not paint_density([none], [none], *lines).any()
    near = points_near(positions, *lines, 1.0)
    inside = (positions > -1) & (positions < np.array([10, 9]))
    np.testing.assert_array_equal(near, np.flatnonzero(inside.all(axis=1)))
    some = points_near(positions, *lines, 1.0, near[::-3])
    np.testing.assert_array_equal(some, near[::-3])
