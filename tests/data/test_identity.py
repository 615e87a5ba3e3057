"""Rows are known by their numbers, however these are stored."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.identity import (
    Identity,
    align_rows,
    find_row_order,
    hash_rows,
    hash_table_rows,
)

OTHER_ORDER = "another order, which their names do not show"


def test_equal_numbers_have_equal_hashes_and_others_have_not():
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.5, (9_000, 30)).astype(np.float32)
    dense[:, 0] = rng.random(9_000)
    known = hash_rows(dense)
    assert len(set(known.tolist())) == 9_000
    unsorted = sp.csr_matrix(dense)[:, ::-1][:, ::-1]
    for same in (dense.astype(np.float64), sp.csc_matrix(dense), unsorted):
        np.testing.assert_array_equal(hash_rows(same), known)
    swapped = dense[:, [1, 0, *range(2, 30)]]
    assert not (hash_rows(swapped) == known).any()
    few = np.array([[0.0, np.nan, 1], [-0.0, -np.nan, 1], [0, 0, 1]])
    one, other, third = hash_rows(few)
    assert one == other != third
    assert len(hash_rows(rng.random((5, 1_000)))) == 5  # some of its columns


def test_the_order_of_columns_does_not_matter():
    columns = {name: np.random.default_rng(0).random(5_000) for name in "ab"}
    (one,) = hash_table_rows(columns).items()
    (other,) = hash_table_rows(dict(reversed(columns.items()))).items()
    assert one[0] == other[0] == ("a", "b")
    np.testing.assert_array_equal(one[1], other[1])


def test_names_are_found_where_they_can_be():
    known = pd.Index(["a", "b", "b", "c"])
    np.testing.assert_array_equal(find_row_order(known, known), range(4))
    unique = pd.Index(["c", "b-1", "a", "b"])
    np.testing.assert_array_equal(find_row_order(known, unique), [2, 3, 1, 0])
    assert find_row_order(known, known[::-1]) is None
    assert find_row_order(known, pd.Index(list("abcd"))) is None


@pytest.mark.parametrize(
    ("names", "numbers", "why"),
    [
        ("abc", [1, 2, 3], "it now has 3 rows instead of 4"),
        ("abce", [1, 2, 3, 4], 'it has no row "d" any more'),
        ("abcd", [1, 2, 4, 3], f"its rows stand in {OTHER_ORDER}"),
        ("dcba", [4, 3, 2, 9], "1 of 4 rows have other numbers"),
    ],
)
def test_what_has_changed_is_said(names, numbers, why):
    known = Identity(pd.Index(list("abcd")), {"X": np.arange(1, 5, dtype=np.uint64)})
    found = Identity(pd.Index(list(names)), {"X": np.array(numbers, np.uint64)})
    with pytest.raises(DataError, match=rf"^cells has changed .*: {why}\. Do it\.$"):
        align_rows(known, found, "cells", "Do it.")


def test_a_part_that_is_the_same_for_all_rows_proves_nothing():
    names, same = pd.Index(list("abcd")), np.ones(4, np.uint64)
    numbers = np.arange(4, dtype=np.uint64)
    known = Identity(names, {"mask": same, "X": numbers})
    with pytest.raises(DataError, match="another order"):
        align_rows(known, Identity(names, {"mask": same, "X": numbers[::-1]}), "cells")
    anew = Identity(names, {"X": numbers, "mask": same[:2]})
    np.testing.assert_array_equal(align_rows(known, anew, "cells"), range(4))
