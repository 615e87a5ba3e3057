import pandas as pd
import pytest

from napari_embedding_game.data import columns


@pytest.mark.parametrize(
    ("values", "grouped"),
    [
        ([0, 1] * 10, True),
        (["a", "b"] * 10, True),
        (list(range(20)), False),
        ([f"n{i}" for i in range(20)], False),
        ([0.5, 1.5] * 10, False),
        (list(range(31)) * 4, False),
        ([f"n{i}" for i in range(31)] * 4, True),
    ],
)
def test_few_different_values_are_groups(values, grouped):
    shown = columns.as_metadata(pd.Series(values))
    assert isinstance(shown.dtype, pd.CategoricalDtype) is grouped


def test_truth_values_with_gaps_are_no_texts():
    shown = columns.as_metadata(pd.Series([True, None, False], dtype=object))
    assert shown.dtype == "boolean"
    assert shown.isna().tolist() == [False, True, False]
