"""napari is killed, and the next one offers back what was on the screen."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from qtpy.QtWidgets import QPushButton

from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import find_recent_sessions
from napari_embedding_game.ui import plugin

PLAYER = Path(__file__).with_name("killed_napari.py")
PATIENCE = 120
"""Seconds: it takes ten where nothing else is going on."""


def saved(folder):
    """Return the map that is saved on the quiet; None before."""
    paths = [p for p in folder.glob("*.open.zip") if not p.name.startswith(".")]
    return archive.load_session(paths[0]).maps[0] if paths else None


@pytest.fixture
def killed(tmp_path, autosave_folder):
    """The map that was saved last before a kill."""
    table = tmp_path / "cells.csv"
    rows = np.random.default_rng(0).normal(size=(60, 3))
    pd.DataFrame(rows, columns=["area", "width", "red"]).to_csv(table, index=False)
    process = subprocess.Popen([sys.executable, PLAYER, table])
    try:
        end = time.monotonic() + PATIENCE
        found = None
        while found is None or found.selected == ():
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < end, "what was chosen last is not saved"
            time.sleep(0.2)
            found = saved(autosave_folder)
    finally:
        process.kill()
        process.wait()
    return found


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_what_was_chosen_last_is_offered_after_a_kill(killed, window, qtbot):
    dock = plugin.open_dock(window)
    session = dock.controller.session
    dock.data_controls.start_panel.show_recent_maps()
    lines = dock.data_controls.start_panel.findChildren(QPushButton)
    next(one for one in lines if one.text().startswith("Not closed: ")).click()
    qtbot.waitUntil(lambda: session.snapshot is not None)
    qtbot.waitUntil(lambda: len(find_recent_sessions()) == 1)
    dock.data_controls.start_panel.show_recent_maps()
    (seen,) = dock.controller.session_store.list_recent_maps()
    assert not seen[1].startswith("Not closed")
    np.testing.assert_array_equal(session.snapshot.embedding, killed.snapshot.embedding)
    assert session.settings.n_neighbors == 9
    assert dock.method_controls.controls["n_neighbors"].value == 9
    assert (session.look.color_by, session.look.limits) == ("area", (1.5, 2.5))
    assert session.selection.clusters == killed.selected != ()
    dock.controller.session_store.close()
