import numpy as np
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
        ([1, 2, 3, None] * 5, True),
        ([1.0, 2.0] * 10, True),
        (list(range(31)) * 4, False),
        ([2**63 + 1, 2**63 + 5] * 10, True),
        ([f"n{i}" for i in range(31)] * 4, True),
    ],
)
def test_few_different_values_are_groups(values, grouped):
    shown = columns.as_metadata(pd.Series(values))
    assert isinstance(shown.dtype, pd.CategoricalDtype) is grouped


@pytest.mark.parametrize("kind", ["UInt64", "string", object, "uint64[pyarrow]"])
def test_ids_beyond_double_precision_are_exact(kind):
    ids = pd.Series([2**53 + 1, None, 2**53 + 3], dtype="Int64").astype(kind)
    assert columns.numbers_of(ids).tolist() == [2**53 + 1, -1, 2**53 + 3]
    for beyond in (pd.Series([2**63 + 5, 3], dtype="uint64"), pd.Series([1e300, 1])):
        assert columns.numbers_of(beyond) is None


def test_truth_values_with_gaps_are_no_texts():
    shown = columns.as_metadata(pd.Series([True, None, False], dtype=object))
    assert shown.dtype == "boolean"
    assert shown.isna().tolist() == [False, True, False]


def test_each_column_is_taken_for_one_thing():
    rows = np.arange(40)
    table = pd.DataFrame(
        {
            "donor": [f"D{i % 3}" for i in rows],
            "cell_type": [f"kind {i % 4}" for i in rows],
            "is_doublet": rows % 2 == 0,
            "n_counts": 1000 + 37 * rows,
            "percent_mito": rows / 3,
            "Centroid X µm": rows / 7,
            "umap_1": rows / 9,
            "cell_id": 90_000 + rows,
            "note": [f"text {i}" for i in rows],
            "embedding_game_x": rows / 2,
        }
    )
    obs = table.apply(columns.as_metadata)
    assert columns.roles_text(obs) == (
        "Samples: donor. Groups: cell_type, is_doublet. Numbers: n_counts, "
        "percent_mito. Positions: Centroid X µm, umap_1. Ids: cell_id. Texts: note."
    )
    obs.columns = ["cell_type"] * obs.shape[1]  # a file may have names twice
    assert columns.roles_text(obs).startswith(
        "Groups: cell_type, cell_type, cell_type."
    )
