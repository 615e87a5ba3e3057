"""A random user of the worst kind: what nobody does on purpose, in a strange window.

    xvfb-run -a -s "-screen 0 2000x1400x24" python tests/harsh_user.py --seed 1

Besides all that :mod:`random_user` does: two viewers, docks closed while a game runs,
other data each moment, storms of undo, a window of 300 x 200 pixels, themes, layers
deleted, and napari's own tools between.  The seed chooses a scale of the screen (1, 1.5
or 2) and a locale (English, Turkish or German).
"""

from __future__ import annotations

import os
import sys

import napari
import numpy as np
from qtpy.QtCore import QLocale, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.compat import find_main_window
from napari_embedding_game.ui.workspace import get_workspace
from random_user import RandomUser, main

SCALES, LANGUAGES = ("1", "1.5", "2"), ("en_US", "tr_TR", "de_DE")
CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
THEMES = ("dark", "light", "system")
MODES = {
    napari.layers.Labels: ("paint", "erase", "fill", "pick", "transform", "pan_zoom"),
    napari.layers.Shapes: ("add_rectangle", "select", "direct", "pan_zoom"),
    napari.layers.Points: ("select", "transform", "pan_zoom"),
    napari.layers.Image: ("transform", "pan_zoom"),
}


class HarshUser(RandomUser):
    """Does what a random user does, and what nobody does on purpose."""

    _other: tuple | None = None
    """The viewer, window and session that are not in use."""

    def actions(self) -> tuple:
        """Return what is done, the more often the more often it stands there."""
        harsh = (
            *(self.use_other_viewer, self.close_docks_while_running),
            *(self.change_data_again_and_again, self.undo_in_storms),
            *(self.make_window_tiny, self.change_theme, self.delete_layers),
            *[self.use_tools_of_napari] * 3,
        )
        return (*super().actions(), *harsh * 2)

    def use_other_viewer(self) -> None:
        """Go to the other viewer, which is opened at first; sometimes close it."""
        if self._other is None:
            self.note("a second viewer")
            viewer = napari.Viewer(show=True)
            sys.excepthook = self._caught  # napari has set its own
            window = find_main_window(viewer.window.main_menu)
            self._other = viewer, window, get_workspace(viewer).session
            self._swap_viewers()
            self.open_docks()
            self.open_sample()
        elif self.rng.random() < 0.3:
            self.note("closes the other viewer")
            self._other[0].close()
            self._other = None
        else:
            self.note("the other viewer")
            self._swap_viewers()

    def _swap_viewers(self) -> None:
        here = self.viewer, self.window, self.session
        assert self._other is not None
        (self.viewer, self.window, self.session), self._other = self._other, here

    def close_docks_while_running(self) -> None:
        """Begin a run, and close or hide the docks in the midst of it."""
        for dock in self.docks():
            runs = getattr(dock.widget(), "run_controls", None)
            if runs is not None:
                self.note("runs, and closes the dock")
                runs.run_button.click()
                self.rest(self.rng.choice([0.0, 0.05, 0.5]))
                dock.title.close_button.click()
        self.rest(0.1)
        self.open_docks()

    def change_data_again_and_again(self) -> None:
        """Drop files and open samples, each before the last is read."""
        for _ in range(3):
            self.rng.choice([self.drop_file, self.drop_file, self.open_sample])()
            self.rest(self.rng.choice([0.0, 0.2, 1.0]))

    def undo_in_storms(self) -> None:
        """Undo and redo twenty times."""
        self.note("a storm of undo")
        for dock in self.docks():
            for _ in range(20):
                again = self.rng.choice([CONTROL, CONTROL, CONTROL | SHIFT])
                QTest.keyClick(dock.widget(), Qt.Key.Key_Z, again)
        self.rest(0.2)

    def make_window_tiny(self) -> None:
        """Make the window 300 x 200 pixels, do something in it, and make it large."""
        self.note("a window of 300 x 200")
        self.window.resize(300, 200)
        self.rest(0.2)
        self.rng.choice([self.use_widget, self.use_canvas, self.press_key])()
        self.rest(0.2)
        self.window.resize(1100, 760)

    def use_canvas(self) -> None:
        """Use the canvas, unless the docks leave it no pixel: vispy divides by that."""
        canvas = self._canvas()
        if canvas.width() > 0 and canvas.height() > 0:
            super().use_canvas()

    def change_theme(self) -> None:
        """Choose another theme, or another size of letters."""
        theme, size = self.rng.choice(THEMES), self.rng.choice([6, 10, 18])
        self.note(f"theme {theme}, letters {size}")
        self.viewer.theme = theme
        napari.settings.get_settings().appearance.font_size = size

    def delete_layers(self) -> None:
        """Delete some or all layers."""
        self.note("deletes layers")
        layers = self.viewer.layers
        for layer in list(layers)[:: self.rng.choice([1, 2])]:
            if layer in layers:
                layers.remove(layer)

    def use_tools_of_napari(self) -> None:
        """Use a tool of napari on a layer, with the mouse on the canvas."""
        layers, kind = self.viewer.layers, self.rng.choice(["labels", "shapes", ""])
        if kind == "labels":
            layers.append(napari.layers.Labels(np.zeros((60, 60), int)))
        elif kind == "shapes":
            layers.append(napari.layers.Shapes())
        if not len(layers):
            return
        layer = self.rng.choice(list(layers))
        modes = next((m for k, m in MODES.items() if isinstance(layer, k)), ())
        offered = [m for m in modes if layer.editable or m == "pan_zoom"]
        layers.selection.active = layer
        if offered:
            layer.mode = self.rng.choice(offered)
            self.note(f"tool {layer.mode} of {layer.name!r}")
        for _ in range(2):
            self.use_canvas()
        if layer in layers and offered:
            layer.mode = "pan_zoom"

    def close_docks(self) -> None:
        """Close the other viewer and its docks, then the docks of this viewer."""
        if self._other is not None:
            self._swap_viewers()
            for dock in self.own_docks():
                dock.title.close_button.click()
            self._swap_viewers()
            self._other[0].close()
            self._other = None
            self.rest(1)
        super().close_docks()


if __name__ == "__main__":
    arguments = sys.argv
    seed = int(arguments[arguments.index("--seed") + 1]) if "--seed" in arguments else 0
    language = LANGUAGES[seed // 3 % 3]
    os.environ["QT_SCALE_FACTOR"] = SCALES[seed % 3]  # before Qt begins
    QLocale.setDefault(QLocale(language))
    print(f"scale {os.environ['QT_SCALE_FACTOR']}, {language}", flush=True)
    main(HarshUser)
