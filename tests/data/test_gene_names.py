"""Names as a person types them, found among those of the data."""

import pandas as pd
import pytest

from napari_embedding_game.data.gene_names import (
    choose_gene_display_names,
    find_names,
    split_names,
)
from napari_embedding_game.session.axis_values import find_axis_values
from worlds import annotated, read, write_adata


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CD3D, MS4A1;LYZ\n'NKG7'\tCD3D", ["CD3D", "MS4A1", "LYZ", "NKG7"]),
        ("CD3D MS4A1", ["CD3D", "MS4A1"]),
        ("mean intensity, area", ["mean intensity", "area"]),
        ("  ", []),
    ],
)
def test_names_are_split(text, names):
    assert split_names(text) == names


def test_case_counts_only_where_two_names_differ_by_it():
    names = ("CD3D", "Actb", "ACTB", "LYZ")
    found = find_names(["cd3d", "Actb", "actb", "LYZ", "lyz", "NONE"], names)
    assert found.indices == [0, 1, 3]
    assert found.missing == ["actb", "NONE"]
    assert found.note == "Not in the data: actb, NONE."


def test_symbols_of_genes_whose_identifiers_come_twice():
    ids = ["ENSG00000000003", "ENSG00000000003", "ENSG00000000005.6"]
    var = pd.DataFrame({"feature_name": pd.Categorical(["A", "", None])}, ids)
    assert choose_gene_display_names(var).tolist() == ["A", *ids[1:]]
    assert choose_gene_display_names(var.rename(index=str.lower)).tolist() == [
        i.lower() for i in ids
    ]


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
@pytest.mark.parametrize("on_show", ["names", "Gene Symbol"])
def test_genes_are_found_by_symbol_and_by_identifier(tmp_path, on_show):
    adata, ids = annotated(), [f"ENSG{i:011d}.{i}" for i in range(6)]
    symbols, is_index = ["MT-CO1", "GFAP", "DUP", "DUP", "a", "b"], on_show == "names"
    other = {"ids": ids} if is_index else {on_show: pd.Categorical(symbols)}
    adata.var = pd.DataFrame(other, symbols if is_index else ids)
    adata.raw, adata.obs["b"] = adata, range(12)
    dataset = read(write_adata(adata[:, 1:].copy(), tmp_path / "a.h5ad"), space="X")
    assert dataset.profile_names == ("MT-CO1", "GFAP", "DUP", "DUP-1", "a", "b")
    asked = ["gfap", ids[1], "ensg00000000003", "ENSG00000000000.7", "ENSG00000000009"]
    found = dataset.find_profile_columns(asked)
    assert (found.indices, found.missing) == ([1, 3, 0], asked[-1:])
    assert found.share == 4 / 5
    assert find_axis_values(dataset, ids[3]).name == "DUP-1"
    assert find_axis_values(dataset, "b").tolist() == [*range(12)]  # the column
