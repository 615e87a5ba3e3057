"""Plays in a window of napari, then chooses this and that; killed by a test.

It saves on the quiet as anywhere, but every second instead of every minute.
"""

import sys
from pathlib import Path

import napari
from qtpy.QtCore import QTimer

from napari_embedding_game.session.file.autosave import ensure_autosave_folder
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui import controller
from napari_embedding_game.ui.plugin import open_dock
from napari_embedding_game.ui.tasks import session_store

SAVE_MS = 1_000


def choose(dock):
    """Change what no frame of the game tells of."""
    session = dock.controller.session
    session.settings.n_neighbors = 9
    session.look.color_by = "area"
    session.look.limits = (1.5, 2.5)
    session.selection.select_cluster(session.clusters.clusters[1].id)


def main(path):
    session_store.FIRST_MS = session_store.SAVE_MS = SAVE_MS
    controller._compile_and_warm_up = lambda compilers: None  # loaded where it runs
    viewer = napari.Viewer()
    dock = open_dock(viewer)
    session = dock.controller.session
    session.settings.n_landmarks, session.settings.max_iter = 10, 50
    dock.controller.reading.load(FileSource(Path(path)), then=dock.controller.play)
    timer = QTimer()

    def choose_once_all_is_saved():
        if session.state == "finished" and any(
            ensure_autosave_folder().glob("[!.]*.open.zip")
        ):
            timer.stop()
            choose(dock)

    timer.timeout.connect(choose_once_all_is_saved)
    timer.start(100)
    napari.run()


if __name__ == "__main__":
    main(sys.argv[1])
