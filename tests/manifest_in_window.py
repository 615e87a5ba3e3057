"""Triggers every entry of the manifest in a napari window, and tells what came of it.

A program of its own, for an environment in which the plugin was just installed:
``python manifest_in_window.py TABLE.csv`` prints one line of JSON.
"""

import gc
import json
import os
import sys
import time
import traceback

import napari
from napari.utils.notifications import notification_manager
from npe2 import PluginManager
from qtpy.QtWidgets import QApplication

from napari_embedding_game.session.run import engine
from napari_embedding_game.session.run.compilers import Compilers

PLUGIN, NAME = "Embedding Game", "napari-embedding-game"
SECONDS = 60.0


def main(table: str) -> dict[str, object]:
    """Open a window, trigger each entry, and return what happened."""
    wrong: list[str] = []
    notification_manager.notification_ready.connect(lambda n: wrong.append(str(n)))
    sys.excepthook = lambda *error: wrong.append(repr(error[1]))
    engine.warm_up = Compilers.start_processes = lambda *given: (
        None
    )  # nothing is played here
    viewer = napari.Viewer()
    gc.freeze()  # napari collects for each layer that goes: not what was imported
    window = viewer.window
    contributed = PluginManager.instance().get_manifest(NAME).contributions
    titles = [widget.display_name for widget in contributed.widgets]
    docks = {"program": [], "plugins menu": [], "layers menu": []}
    for title in titles:
        window.add_plugin_dock_widget(NAME, title)
    docks["program"] = take_away(window)
    for place in ("layers menu", "plugins menu"):
        menu = getattr(window, place.replace(" ", "_"))
        for title in titles if place == "plugins menu" else titles[:1]:
            trigger(menu, f"{title} ({PLUGIN})")
        docks[place] = shown(window) if place == "plugins menu" else take_away(window)
    dock = window.dock_widgets[f"Map ({PLUGIN})"]
    session, data = dock.controller.session, []

    def loads(begin) -> None:
        former = session.dataset
        begin()
        end = time.monotonic() + SECONDS
        while (
            session.dataset is former
            and not dock.data_controls.trouble.text()
            and not wrong
        ):
            QApplication.processEvents()
            time.sleep(0.01)
            if time.monotonic() > end:
                wrong.append(f"nothing was loaded after {data}")
        data.append(dock.data_controls.trouble.text() or session.dataset.name)

    for sample in contributed.sample_data:
        loads(lambda sample=sample: trigger(window.file_menu, sample.display_name))
    loads(lambda: viewer.open(table, plugin=NAME))
    return {"docks": docks, "data": data, "wrong": wrong}


def entries(menu, path=()):
    """Yield the texts that lead to each action of a menu, and the action."""
    menu.aboutToShow.emit()  # napari fills it when it is opened
    for action in menu.actions():
        if action.menu() is not None:
            yield from entries(action.menu(), (*path, action.text()))
        else:
            yield (*path, action.text()), action


def trigger(menu, text: str) -> None:
    """Trigger the one entry of a menu with a text."""
    (action,) = (action for path, action in entries(menu) if path[-1] == text)
    action.trigger()
    QApplication.processEvents()


def shown(window) -> list[str]:
    """Return the titles of the docks of this plugin."""
    ours = (PLUGIN, NAME)
    return sorted(t for t in window.dock_widgets if any(x in t for x in ours))


def take_away(window) -> list[str]:
    """Close the docks of this plugin and return their titles."""
    titles = shown(window)
    for title in titles:
        window.remove_dock_widget(window.dock_widgets[title])
    return titles


if __name__ == "__main__":
    try:
        told = json.dumps(main(sys.argv[1]))
    except Exception:
        traceback.print_exc()
        os._exit(1)
    print(told, flush=True)
    os._exit(0)  # what is still read or compiled in the background need not end
