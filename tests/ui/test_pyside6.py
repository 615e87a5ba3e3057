"""The other Qt binding: docks, a sample, a run and the way out, in its own process.

Layers come and go there, too: of what is mended in ``ui/upstream_fixes.py`` deleted
OpenGL programs end the process.
"""

import os
import subprocess
import sys

WALK = """
import gc
import sys
import time
from napari_embedding_game.ui import plugin
# In the window's thread torch and scikit-learn alone take seconds.
heavy = {"torch", "sklearn", "scipy.stats", "scanpy"} & set(sys.modules)
assert not heavy, heavy
import napari
import numpy as np
from qtpy import API_NAME
from qtpy.QtWidgets import QApplication, QDockWidget
from napari_embedding_game.data.samples import digits
from napari_embedding_game.ui.workspace import workspace_of
assert API_NAME == "PySide6", API_NAME
viewer = napari.Viewer()
game = plugin.open_dock(viewer)
session = workspace_of(viewer).session

def until(found, seconds=120):
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)
    return found()

for number in range(6):
    viewer.add_points(np.random.default_rng(number).uniform(0, 100, (50, 2)))
    until(lambda: False, 0.1)  # it is drawn
    viewer.layers.clear()
    if number % 2:
        gc.collect()
    until(lambda: False, 0.1)
    viewer.add_points(np.empty((0, 2)))
    until(lambda: False, 0.1)
    if number % 3 == 0:
        viewer.layers.clear()
viewer.layers.clear()
session.load(digits().subset(np.arange(1_797) < 200))
session.settings.max_iter = 30
game.run.run.click()
assert until(lambda: session.state == "finished"), "too slow"
session.selection.select(session.clusters.clusters[0].id)
for box in viewer.window._qt_window.findChildren(QDockWidget):
    if "Embedding Game" in box.windowTitle():
        box.setFloating(True)
        box.destroyOnClose()
plugin.open_dock(viewer)
viewer.close()
print("all of it done")
"""


def test_docks_open_play_and_close_under_pyside6(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WALK],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "QT_API": "pyside6", "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert "all of it done" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
