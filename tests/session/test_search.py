from napari_embedding_game.session.search import Hit, find

LISTS = {
    "cluster": ["Macrophages", "CD4 T cells"],
    "gene": ["CD44", "CD4", "ACD4", "MRC1"],
    "cell": ["cd4-1", "AAAC-1"],
}


def test_whole_names_then_beginnings_then_parts():
    found = [
        Hit("gene", 1, "CD4"),
        Hit("cluster", 1, "CD4 T cells"),
        Hit("gene", 0, "CD44"),
        Hit("cell", 0, "cd4-1"),
        Hit("gene", 2, "ACD4"),
    ]
    assert find(LISTS, " cd4", 9) == found
    assert find(LISTS, "cd4", 2) == found[:2]
    assert find(LISTS, " ", 9) == []
