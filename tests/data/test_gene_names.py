"""Names as a person types them, found among those of the data."""

import pandas as pd
import pytest

from napari_embedding_game.data.gene_names import find_names, names_of, split_names


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
    assert names_of(var).tolist() == ["A", *ids[1:]]
    assert names_of(var.rename(index=str.lower)).tolist() == [i.lower() for i in ids]
