import pandas as pd
import pytest

from napari_embedding_game.data import columns


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        [1.5, None],
        ["1", "2.5"],
        pd.array([1, None], dtype="Int64"),
        pd.array(["1", "2"], dtype="string"),
    ],
)
def test_numbers(values):
    found = columns.numbers(pd.Series(values, name="a"), "t.csv")
    assert found is not None
    assert found.dtype == "f8"
    assert found.shape == (2,)


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [True, None],
        [1j, 2j],
        ["a", "b"],
        [None, None],
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.Categorical(["1", "2"]),
        ["1", "b"],
    ],
)
def test_other_kinds_are_no_numbers(values):
    assert columns.numbers(pd.Series(values, name="a"), "t.csv") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("label", True),
        ("cell_id", True),
        ("Cluster", True),
        ("nucleus id", True),
        ("area", False),
        ("width", False),
        ("index_of_refraction", False),
    ],
)
def test_names_that_measure_nothing(name, expected):
    values = pd.Series([1.0, 2.0]).to_numpy()
    assert columns.is_name_or_group(name, values) is expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("cell", ["a", "b", "c"], True),
        ("Unnamed: 0", [4, 5, 6], True),
        ("cell", ["a", "a", "c"], False),
        ("cell", ["a", None, "c"], False),
        ("area", [4, 5, 6], False),
        ("area", ["1", "2", "3", "4", "5", "x"], False),
        ("text", ["a", "b", "c"], False),
    ],
)
def test_row_names(name, values, expected):
    assert columns.is_row_name(pd.Series(values, name=name)) is expected


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


def test_text_column():
    obs = pd.DataFrame({"length": [1, 2], "Text": ["a", "b"]})
    assert columns.texts(obs) == ["a", "b"]
    assert columns.texts(obs[["length"]]) is None


def test_truth_values_with_gaps_are_no_texts():
    shown = columns.as_metadata(pd.Series([True, None, False], dtype=object))
    assert shown.dtype == "boolean"
    assert shown.isna().tolist() == [False, True, False]
