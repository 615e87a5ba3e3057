import warnings

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

from napari_embedding_game.data import columns
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.harmony import find_batch_columns
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.roles import (
    LEVELS,
    convert_columns_by_role,
    describe_roles,
    guess_role,
)
from napari_embedding_game.data.stages import finish


def read_column(values):
    return convert_columns_by_role(values.to_frame("value"), {}, "cells.csv")[0][
        "value"
    ]


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
    shown = read_column(pd.Series(values))
    assert isinstance(shown.dtype, pd.CategoricalDtype) is grouped


@pytest.mark.parametrize("kind", ["UInt64", "string", object, "uint64[pyarrow]"])
def test_ids_beyond_double_precision_are_exact(kind):
    ids = pd.Series([2**53 + 1, None, 2**53 + 3], dtype="Int64").astype(kind)
    assert columns.parse_integers(ids).tolist() == [2**53 + 1, -1, 2**53 + 3]
    for beyond in (pd.Series([2**63 + 5, 3], dtype="uint64"), pd.Series([1e300, 1])):
        assert columns.parse_integers(beyond) is None


def test_truth_values_with_gaps_are_no_texts():
    shown = read_column(pd.Series([True, None, False], dtype=object))
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
    obs, roles = convert_columns_by_role(table, {}, "cells.csv")
    assert describe_roles(roles) == (
        "Samples: donor. Groups: cell_type, is_doublet. Numbers: n_counts, "
        "percent_mito. Positions: Centroid X µm, umap_1. Ids: cell_id. Texts: note."
    )
    assert {one: guess_role(obs[one]) for one in obs} == roles


def study(n=200):
    """Return 200 cells of a study, with a number in each kind of column."""
    rng = np.random.default_rng(0)
    rows = np.arange(n)
    return pd.DataFrame(
        {
            "donor": rows % 40,
            "leiden": rows % 35,
            "grade": 1 + rows % 3,
            "day": rows % 33,
            "cell_type": pd.Series(rows % 4).map("kind {}".format),
            "cell_id": 90_000 + rows,
            "x_centroid": rng.normal(size=n),
            "y_centroid": rows % 12,  # on a regular grid
            "n_genes": 500 + rows % 9,
            "y": rows % 10,
            "t": rows / 7,
            "is_doublet": rows % 7 == 0,
        }
    )


ROLES = {
    "donor": "samples",
    "leiden": "groups",
    "grade": "groups",
    "day": "numbers",
    "cell_type": "groups",
    "cell_id": "ids",
    "x_centroid": "positions",
    "y_centroid": "positions",
    "n_genes": "numbers",
    "y": "groups",  # classes, as scikit-learn calls them
    "t": "numbers",
    "is_doublet": "groups",
}


@pytest.mark.parametrize("ending", ["csv", "parquet", "h5ad", "zarr", "npz"])
def test_the_same_columns_are_taken_for_the_same_in_every_kind_of_file(
    tmp_path, ending
):
    table, path = study(), tmp_path / f"cells.{ending}"
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    if ending in ("h5ad", "zarr"):
        adata = AnnData(X.to_numpy(np.float32), table.set_axis(map(str, table.index)))
        with warnings.catch_warnings(action="ignore"):  # of the format of zarr
            getattr(adata, f"write_{ending}")(path)
    elif ending == "npz":
        columns_ = {name: table[name].to_numpy() for name in table}
        columns_["cell_type"] = columns_["cell_type"].astype("U")
        np.savez(path, X=X.to_numpy(np.float32), **columns_)
    else:
        whole = pd.concat([table, X], axis="columns")
        getattr(whole, f"to_{ending}")(path, index=False)
    options = {"columns": ("a", "b", "c")} if ending in ("csv", "parquet") else {}
    dataset = finish(load(path, **options))
    assert dataset.roles == ROLES
    assert dataset.level_columns == [x for x in ROLES if ROLES[x] in LEVELS]
    assert find_batch_columns(dataset)[0] == "donor"
    assert dataset.obs["leiden"].cat.categories.tolist() == list(range(35))
    # What a person says holds, whatever the type and the name are.
    given = {"day": "groups", "grade": "numbers", "cell_type": "ids", "n_genes": "ids"}
    dataset = finish(load(path, **options, roles=given))
    assert dataset.roles == ROLES | given
    assert dataset.level_columns == ["donor", "leiden", "day", "y", "is_doublet"]
    assert pd.api.types.is_integer_dtype(dataset.obs["grade"])
    assert dataset.obs["cell_type"].dtype != "category"
    with pytest.raises(
        DataError, match=r'cell_type of .* has the text "kind 0" in row'
    ):
        finish(load(path, **options, roles={"cell_type": "numbers"}))
    with pytest.raises(DataError, match='has no column "weight"'):
        finish(load(path, **options, roles={"weight": "numbers"}))
    with pytest.raises(DataError, match="day can be taken for samples, groups, "):
        finish(load(path, **options, roles={"day": "number"}))


def test_what_a_column_of_a_table_is_taken_for_decides_whether_it_is_embedded(tmp_path):
    path = tmp_path / "cells.csv"
    table = study()[["leiden", "x_centroid", "n_genes"]]
    table.assign(a=np.arange(200.0) ** 2, b=np.arange(200.0) % 11).to_csv(path)
    assert finish(load(path)).var_names == ("n_genes", "a", "b")
    roles = {"leiden": "numbers", "n_genes": "groups", "a": "texts", "b": "numbers"}
    dataset = finish(load(path, roles=roles))
    assert dataset.var_names == ("leiden", "b")
    assert dataset.roles["n_genes"] == "groups"
    assert dataset.obs["a"].iloc[3] == "9.0"


@pytest.mark.parametrize(("most", "word"), [(30, "{}"), (100, "level{}")])
def test_columns_without_a_telling_name_are_groups_while_they_have_few_levels(
    most, word
):
    """Numbers of more are measured, texts of more name rows."""
    for n, is_group in ((most, True), (most + 1, False)):
        levels = pd.Series([word.format(i % n) for i in range(404)], name="x")
        column = pd.to_numeric(levels) if word == "{}" else levels
        assert (guess_role(column) == "groups") is is_group


def test_a_column_that_shows_its_levels_late_has_all_of_them():
    late = pd.Series(["a"] * 50 + ["b", "c", "d"])
    assert columns.count_levels(late, 3) == 4
    assert columns.count_levels(late, 10) == 4
    many = pd.Series([f"n{i}" for i in range(1_000)])
    assert 3 < columns.count_levels(many, 3) < 1_000  # not looked through
