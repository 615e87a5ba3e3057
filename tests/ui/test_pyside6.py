"""The whole program under the other Qt binding, in a process of its own.

Layers come and go there, too: of what is mended in ``ui/upstream_fixes.py`` deleted
OpenGL programs end the process.
"""

import os
import subprocess
import sys

import anndata
import numpy as np
import skimage.io

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
from pathlib import Path
from qtpy import API_NAME
from qtpy.QtWidgets import QApplication, QDockWidget
from napari_embedding_game.ui.compat import find_main_window
from napari_embedding_game.ui.workspace import get_workspace
assert API_NAME == "PySide6", API_NAME
viewer = napari.Viewer()
game = plugin.open_dock(viewer)
session = get_workspace(viewer).session

def until(found, seconds=120):
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)
    return found()

for number in range(4):
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
table = Path(sys.argv[1])
game.controller.reading.open_file(table)
assert until(lambda: session.dataset is not None), "too slow"
session.settings.max_iter = 30
game.run_controls.run_button.click()
assert until(lambda: session.state == "finished"), "too slow"
session.selection.select_cluster(session.clusters.clusters[0].id)
seen = viewer.scene.camera.zoom
for box in find_main_window(game).findChildren(QDockWidget):
    if "Embedding Game" in box.windowTitle():
        box.setFloating(True)
        box.destroyOnClose()
plugin.open_dock(viewer)  # which takes of the canvas what it had
assert until(lambda: abs(viewer.scene.camera.zoom / seen - 1) < 0.02), "cut off"
viewer.close()
# The command, from a file to its map, a picture and the way out.
from napari_embedding_game.ui.app import launch
out = {"screenshot": table.with_suffix(".png"), "out": table.with_suffix(".h5ad")}
code = launch(path=table, quit_after_run=True, **out)
print("all of it done")
sys.exit(code)
"""


def coloured_pixels(picture):
    """Count the pixels of the canvas, in the middle of the window, with a hue."""
    pixels = skimage.io.imread(picture)[..., :3].astype(int)
    height, width, _ = pixels.shape
    canvas = pixels[height // 10 : height // 2, width // 3 : 2 * width // 3]
    return int((np.ptp(canvas, axis=2) > 60).sum())


def test_docks_and_the_command_under_pyside6(tmp_path):
    table = tmp_path / "t.csv"
    rows = np.random.default_rng(0).normal(size=(200, 4))
    np.savetxt(table, rows, delimiter=",", header="a,b,c,d", comments="")
    done = subprocess.run(
        [sys.executable, "-c", WALK, table],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "QT_API": "pyside6", "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert "all of it done" in done.stdout, done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
    assert coloured_pixels(table.with_suffix(".png")) > 1_000
    found = anndata.read_h5ad(table.with_suffix(".h5ad"))
    assert found.obsm["X_embedding_game"].shape == (200, 2)
