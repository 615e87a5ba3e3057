"""A window with the docks, and layers that come and go; prints "alive" at the end."""

import gc
import os
import time

import napari
import numpy as np
from qtpy.QtWidgets import QApplication

from napari_embedding_game.ui import plugin

N_TIMES = 6


def rest(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)


viewer = napari.Viewer()
plugin.open_dock(viewer)
rest(0.5)
for i in range(N_TIMES):
    viewer.add_points(np.random.default_rng(i).uniform(0, 100, (50, 2)))
    rest(0.1)
    viewer.layers.clear()
    if i % 2:
        gc.collect()
    rest(0.1)
    viewer.add_points(np.empty((0, 2)))
    rest(0.1)
    if i % 3 == 0:
        viewer.layers.clear()
print("alive", flush=True)
os._exit(0)
