import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.validation import (
    as_float32,
    check_values,
    usable_rows,
)

NAMES = pd.Index(["A", "B", "C", "D"])
COLUMNS = ["area", "depth"]


def gappy():
    return np.array([[1, 2], [np.nan, 4], [5, np.inf], [7, 8]])


def ask(X, missing):
    return usable_rows(X, "t.csv", row_names=NAMES, var_names=COLUMNS, missing=missing)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_missing_values_are_counted_and_the_first_is_named(kind):
    with pytest.raises(MissingValuesError) as error:
        ask(kind(gappy()), "error")
    assert str(error.value) == (
        "t.csv has 2 missing or infinite values in 2 of 4 rows, the first in row 2 "
        '("B"), column area: fill them in, or have these rows left out '
        '(missing="drop").'
    )
    assert error.value.told("--missing drop").endswith("left out (--missing drop).")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_with_missing_values_can_be_left_out(kind):
    kept, notes = ask(kind(gappy()), "drop")
    assert kept.tolist() == [True, False, False, True]
    assert notes == (
        "2 of 4 rows left out because they have missing or infinite values, the "
        'first in row 2 ("B"), column area.',
    )


def test_sparse_column_of_a_missing_value_is_found():
    X = sp.csr_matrix(np.array([[0, 0], [0, 1], [2, 0], [0, np.nan]]))
    with pytest.raises(DataError, match=r'row 4 \("D"\), column depth'):
        ask(X, "error")


def test_leaving_out_must_leave_a_map():
    X = gappy()
    X[0, 0] = np.nan
    with pytest.raises(DataError, match=r"in 3 of 4 rows, .* no map is left"):
        ask(X, "drop")


@pytest.mark.parametrize("value", [1e19, -1e19, 1e300])
def test_numbers_too_large_for_single_precision(value):
    X = as_float32(np.array([[0.0], [value]]))
    with pytest.raises(DataError, match=r"larger than 1e\+18"):
        check_values(X, "t.csv")


@pytest.mark.parametrize("kind", [sp.csc_matrix, sp.coo_matrix, sp.csr_array])
def test_sparse_becomes_csr_in_single_precision(kind):
    X = as_float32(kind(np.eye(3)))
    assert isinstance(X, sp.csr_matrix)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.toarray(), np.eye(3))
