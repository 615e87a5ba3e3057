"""One protocol: what holds for every reproduction."""

import json

import matplotlib.image
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.reproduction import registry
from napari_embedding_game.reproduction.protocol import (
    Check,
    Inputs,
    Reproduction,
    Result,
    Table,
)

TABLE = Table("Shares", [{"k": 1000, "share": 0.123456}])


MET = Check("a below 1", "0.5", True)


def toy(run=None, checks=(MET,), name="toy"):
    def found(inputs, parts):
        parts.expect(1)
        parts("one", lambda: {"x": 1})
        return Result(
            [TABLE], checks, lambda figure: figure.add_subplot().plot([0, 1]), ["Note."]
        )

    return Reproduction(name, "A toy", "A paper, Figure 0", run or found)


def test_it_writes_figure_table_and_numbers(tmp_path):
    facts = registry.reproduce(toy(), Inputs(), tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder" / "toy"
    assert json.loads((folder / "toy.json").read_text()) == facts
    assert facts["passed"]
    assert facts["tables"] == [{"title": TABLE.title, "rows": TABLE.rows}]
    text = (folder / "toy.md").read_text()
    assert "| 1,000 | 0.1235 |" in text
    assert "| a below 1 | 0.5 | passed |" in text
    assert "- Note." in text
    assert matplotlib.image.imread(folder / "toy.png").std() > 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["parts", "toy.json", "toy.md", "toy.png"]


@pytest.mark.parametrize(
    ("quick", "in_quick", "verdict"),
    [(False, False, False), (True, True, False), (True, False, None)],
)
def test_quick_judges_only_what_small_data_can_tell(tmp_path, quick, in_quick, verdict):
    check = Check("a below 1", "7", False, in_quick=in_quick)
    facts = registry.reproduce(toy(checks=[check]), Inputs(quick=quick), tmp_path)
    assert facts["checks"][0]["passed"] is verdict
    assert facts["passed"] == (verdict is None)


def test_it_goes_on_where_it_stopped(tmp_path):
    computed, stopped = [], []

    def run(inputs, parts):
        for name in ("a", "b"):
            parts(name, lambda name=name: computed.append(name) or {})
            if not stopped:
                stopped.append(name)
                raise KeyboardInterrupt
        return Result([], [], lambda figure: None)

    with pytest.raises(KeyboardInterrupt):
        registry.reproduce(toy(run), Inputs(), tmp_path)
    registry.reproduce(toy(run), Inputs(), tmp_path)
    assert computed == ["a", "b"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="choose another"):
        registry.reproduce(toy(), Inputs(), tmp_path / "file")


def test_an_unknown_name_tells_the_known_ones():
    with pytest.raises(DataError, match="fenchel-convergence"):
        registry.find("fenchel-table2")


def test_names_are_those_of_the_table():
    for name, each in registry.REPRODUCTIONS.items():
        assert name == each.name
        assert each.what
        assert each.paper
