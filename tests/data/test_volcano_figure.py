"""How far the axis of a volcano plot reaches."""

import numpy as np
import pytest

from napari_embedding_game.data.export.volcano_figure import drawn_changes

USUAL = np.linspace(-1.5, 1.5, 1_000)


@pytest.mark.parametrize(
    ("change", "p", "drawn"),
    [
        (30.0, 1.0, 2.0),  # in no cell of the other group, and not sure
        (-30.0, 1.0, -2.0),
        (5.0, 1e-9, 5.0),  # all that is sure has its place
        (30.0, 1e-9, 10.0),
        (np.nan, 1.0, np.nan),
    ],
)
def test_a_gene_without_bound_squeezes_no_others(change, p, drawn):
    found = drawn_changes(np.append(USUAL, change), np.append(np.ones(1_000), p))
    np.testing.assert_array_equal(found[:-1], USUAL)
    np.testing.assert_array_equal(found[-1], drawn)


def test_where_no_gene_has_a_change_none_is_drawn():
    assert np.isnan(drawn_changes(np.full(3, np.nan), np.ones(3))).all()
