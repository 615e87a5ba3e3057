"""The other Qt binding: docks, a sample, a run and the way out, in its own process."""

import os
import subprocess
import sys

WALK = """
import time
import napari
import numpy as np
from qtpy import API_NAME
from qtpy.QtWidgets import QApplication, QDockWidget
from napari_embedding_game.data.samples import digits
from napari_embedding_game.ui import plugin
from napari_embedding_game.ui.workspace import workspace_of
assert API_NAME == "PySide6", API_NAME
viewer = napari.Viewer()
game = plugin.open_dock(viewer)
session = workspace_of(viewer).session

def until(found):
    end = time.monotonic() + 120
    while not found():
        assert time.monotonic() < end, "too slow"
        QApplication.processEvents()
        time.sleep(0.01)

session.load(digits().subset(np.arange(1_797) < 200))
session.settings.max_iter = 30
game.run.run.click()
until(lambda: session.state == "finished")
session.selection.select(session.clusters.clusters[0].id)
for box in viewer.window._qt_window.findChildren(QDockWidget):
    if "Embedding Game" in box.windowTitle():
        box.setFloating(True)
        box.destroyOnClose()
plugin.open_dock(viewer)
viewer.close()
print("all of it done")
"""


def test_docks_open_play_and_close_under_pyside6():
    done = subprocess.run(
        [sys.executable, "-c", WALK],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "QT_API": "pyside6"},
    )
    assert "all of it done" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
