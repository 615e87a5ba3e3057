"""What is done after a run of the command; the whole program: test_pyside6.py."""

import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.app import connect_output_saving


@pytest.mark.parametrize("fails", ["file", "run", "silent run"])
def test_what_fails_ends_with_a_sentence(
    click_run, qtbot, window, docked, engine, tmp_path, capsys, fails
):
    code = connect_output_saving(window, docked)
    if fails == "file":
        (tmp_path / "broken.csv").write_text("")
        docked.controller.reading.load(FileSource(tmp_path / "broken.csv"))
    else:
        engine.fail_at = 20
        engine.error = RuntimeError("out of numbers") if fails == "run" else DataError()
        click_run(docked, "failed")
    qtbot.waitUntil(lambda: code() == 1)
    told = {"file": "broken.csv is empty", "run": "out of numbers"}
    told["silent run"] = "The run failed."
    assert told[fails] in capsys.readouterr().err


def test_of_a_session_file_the_map_is_written(
    click_run, qtbot, window, docked, tmp_path
):
    click_run(docked)
    path, out = tmp_path / "map.zip", tmp_path / "map.csv"
    archive.save_session(docked.workspace.map_tree.to_saved_session(), path)
    code = connect_output_saving(window, docked, out=out)
    with qtbot.waitSignal(docked.controller.writing.saved):
        docked.controller.reading.open_file(path)
    assert out.exists()
    assert code() == 0
