import os
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import (
    FOLDER_VARIABLE,
    KEPT,
    Autosave,
    ensure_autosave_folder,
    find_recent_sessions,
    was_closed,
)
from worlds import Desk


@pytest.fixture
def start(dataset):
    """A function that starts the autosave of one more program."""
    started = []

    def start():
        started.append(Autosave(Desk(dataset).maps.to_saved_session))
        return started[-1]

    yield start
    for one in started:
        one.make_closing_job()()


def test_what_is_closed_in_good_order_is_not_offered_but_kept_a_while(start):
    paths = []
    for _ in range(KEPT + 2):
        autosave = start()
        autosave.make_closing_job()()
        paths.append(autosave.path)
        time.sleep(0.01)
    assert all(map(was_closed, paths))
    assert find_recent_sessions() == paths[: -KEPT - 1 : -1]


def test_a_file_that_another_program_reads_keeps_its_name(start, monkeypatch):
    autosave = start()
    monkeypatch.setattr(Path, "rename", Mock(side_effect=PermissionError))  # Windows
    autosave.make_closing_job()()
    assert autosave.path.exists()


@pytest.mark.parametrize("error", [DataError, OSError])
def test_a_last_saving_that_fails_is_told_and_the_former_one_offered(
    start, error, monkeypatch
):
    def fail(*_, **__):
        raise error("There is no room on the disk.")

    autosave = start()
    autosave.make_save_job()()
    with monkeypatch.context() as full:
        full.setattr(archive, "save_session", fail)
        with pytest.raises(error, match="no room"):
            autosave.make_closing_job()()
    assert find_recent_sessions() == [autosave.path]
    assert not was_closed(autosave.path)


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_nobody_else_reads_what_is_kept_on_the_quiet(start, monkeypatch, tmp_path):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert ensure_autosave_folder().stat().st_mode & 0o777 == 0o700
    ensure_autosave_folder().chmod(0o755)  # as an earlier version made it
    assert ensure_autosave_folder().stat().st_mode & 0o777 == 0o700
    chosen = tmp_path / "shared"
    chosen.mkdir(mode=0o755)
    monkeypatch.setenv(FOLDER_VARIABLE, str(chosen))
    assert (
        ensure_autosave_folder().stat().st_mode & 0o777 == 0o755
    )  # somebody else's matter
    autosave = start()
    autosave.make_save_job()()
    assert autosave.path.parent == chosen
    assert autosave.path.stat().st_mode & 0o777 == 0o600


def test_a_program_killed_before_it_saved_leaves_nothing(autosave_folder):
    (autosave_folder / ".999999999-0a1b2c3d-999999999-1-x.open.zip").write_text("half")
    assert find_recent_sessions() == []
    assert list(autosave_folder.iterdir()) == []


def test_a_file_has_what_there_was_when_its_saving_began(dataset, autosave_folder):
    desk = Desk(dataset)
    saver, session = Autosave(desk.maps.to_saved_session), desk.session
    job = saver.make_save_job()
    session.add_columns(Dataset.with_map_column, "depth", np.arange(40.0))
    job()
    saved = archive.load_session(saver.path).maps[0]
    assert "depth" not in saved.dataset.added
    assert "depth" not in saved.dataset.obs
    assert "depth" not in session.dataset.source_obs
    saver.path.unlink()
    autosave_folder.rmdir()  # by a program that tidies up
    saver.make_closing_job()()
    assert find_recent_sessions() == [saver.path]
