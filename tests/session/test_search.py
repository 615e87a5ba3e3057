import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_embedding_game.session.search import Hit, Search


@pytest.fixture
def search():
    return Search(
        {
            "cluster": ["Macrophages", "CD4 T cells"],
            "gene": ["CD44", "CD4", "ACD4", "MRC1"],
            "cell": ["cd4-1", "AAAC-1"],
        }
    )


def test_whole_names_then_beginnings_then_parts(search):
    assert search.find("cd4") == [
        Hit("cluster", 1, "CD4 T cells"),
        Hit("gene", 1, "CD4"),
        Hit("gene", 0, "CD44"),
        Hit("cell", 0, "cd4-1"),
        Hit("gene", 2, "ACD4"),
    ]


NAMES = st.lists(st.text(alphabet="aAbß ", max_size=5), max_size=12)


@given(names=NAMES, query=st.text(alphabet="aAbß", min_size=1, max_size=3))
def test_finds_what_looking_at_every_name_finds(names, query):
    folded = [name.casefold() for name in names]
    query_folded = query.casefold()
    begin = [i for i, n in enumerate(folded) if n.startswith(query_folded)]
    part = [i for i, n in enumerate(folded) if query_folded in n and i not in begin]
    found = [hit.index for hit in Search({"x": names}).find(query)]
    assert sorted(found[: len(begin)]) == begin
    assert found[len(begin) :] == part
    exact = [folded[i] != query_folded for i in found[: len(begin)]]
    assert exact == sorted(exact)
