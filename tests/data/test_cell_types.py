"""Tables of cell types: the program's own, those of databases, and bad ones."""

import gzip

import pytest

from napari_embedding_game.data import cell_types
from napari_embedding_game.data.cell_types import CellType, read_cell_types
from napari_embedding_game.data.errors import DataError

PANGLAO = (
    "species\tofficial gene symbol\tcell type\tnicknames\tcanonical marker\torgan\n"
    "Mm Hs\tCD19\tB cells\tB4|CVID3\t1\tImmune system\n"
    "Mm Hs\tMS4A1\tB cells\tB1\t1.0\tImmune system\n"
    "Mm Hs\tCTRB1\tAcinar cells\tCTRB\tNA\tPancreas\n"
)
CELLTYPIST = (
    "High-hierarchy cell types,Low-hierarchy cell types,Description,Curated markers\n"
    'B cells,Memory B cells,"long-lived, of the marrow","CR2, CD27, MS4A1"\n'
    "T cells,Tregs,they suppress,\n"
)


def test_the_own_table_names_genes_parents_and_sources():
    types = read_cell_types()
    by_name = {one.name: one for one in types}
    assert len(by_name) == len(types) == 77
    assert by_name["NK cell"].genes[:2] == ("GNLY", "NKG7")
    assert by_name["Naive B cell"].parent == "B cell"
    for one in types:
        assert 5 <= len(one.genes) <= 12
        assert "doi:10." in one.source


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.csv", "type,gene\nA,g1\nA,g2\nB,g1\n", {"A": "g1 g2", "B": "g1"}),
        ("a.csv", "Gene;Type\ng1;A\ng2;A\n", {"A": "g1 g2"}),
        ("a.tsv", "cell_type\tgenes\nA\tg1, g2\n", {"A": "g1 g2"}),
        ("p.tsv", PANGLAO, {"B cells": "CD19 MS4A1"}),
        ("c.csv", CELLTYPIST, {"Memory B cells": "CR2 CD27 MS4A1"}),
        ("s.gmt", "A\tx\tg1\tg2\nA\ty\tg2\tg3\n", {"A": "g1 g2 g3"}),
    ],
)
def test_formats(tmp_path, name, text, wanted):
    path = tmp_path / name
    path.write_text(text)
    types = read_cell_types(path)
    assert {one.name: " ".join(one.genes) for one in types} == wanted
    if not name.endswith(".gmt"):
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(text.encode()))
        assert read_cell_types(packed) == types


def test_parents_and_sources_of_a_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("type,parent,gene,source\nT,,CD3E,me\nCD8,T,CD8A,\n")
    assert read_cell_types(path) == [
        CellType("T", ("CD3E",), "", "me"),
        CellType("CD8", ("CD8A",), "T"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "type,gene\n", "give each type one gene or more"),
        ("a.csv", "x,y\n1,2\n", "needs the columns type and gene"),
        ("a.xlsx", "PK", "save its sheet as .csv"),
        ("a.csv", "type,parent,gene\nA,B,g\n", "no types of the table"),
        ("a.csv", "type,parent,gene\nA,,g\nB,A,g\nC,B,g\n", "themselves: B"),
        ("a.csv.gz", "not packed", "damaged"),
        ("a.gmt", "A\tx\n", "has no genes"),
    ],
)
def test_a_bad_table_is_told_with_the_way_out(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=told):
        read_cell_types(tmp_path / name)


def test_a_table_of_too_many_types_or_bytes_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("type,gene\nA,g1\nB,g1\n")
    monkeypatch.setattr(cell_types, "MAX_TYPES", 1)
    with pytest.raises(DataError, match="has 2 types, and 1 can be compared"):
        read_cell_types(path)
    monkeypatch.setattr(cell_types, "MAX_FILE", 10)
    with pytest.raises(DataError, match="larger than tables of cell types"):
        read_cell_types(path)
