"""A user who does anything: random actions in a napari window, by the doors of a user.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tests/random_user.py --seed 1

The docks are opened from napari's menus, samples and files by menus, dialogs and
drops; then buttons, tabs, lists, sliders, fields, menus, the wheel, keys, the canvas
in two and three dimensions, napari's layers, and docks that are closed, floated and
opened again; and what takes several steps, see :mod:`purposes`.  Dialogs are answered
at random.  At the end the docks are closed.

It fails when an exception reaches Qt, napari or a thread, when the plugin logs an
error, when the process dies or does not answer, when what is on show contradicts
itself, and when a thread or a widget of the plugin outlives its docks.  The same seed
does the same again, as far as threads let it.  With ``--minutes`` window follows
window in one process, and after each stands what the process holds.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import logging
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import napari
import numpy as np
import psutil
from napari.settings import get_plugin_settings, get_settings
from napari.utils.notifications import notification_manager
from qtpy import QtWidgets as W
from qtpy.QtCore import QEvent, QPoint, Qt, QTimer
from qtpy.QtTest import QTest

from napari_embedding_game.data.reading_process import LISTENER
from napari_embedding_game.ui.compat import find_main_window
from napari_embedding_game.ui.map_widget import release_memory
from napari_embedding_game.ui.tasks.worker import count_running_workers
from napari_embedding_game.ui.workspace import get_workspace

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from person import PLUGIN, drop_files, entries, own_objects, turn_wheel
from purposes import Purposes

MAX_END = 300.0
"""Seconds until nothing is left of closed docks: loops may be compiled first."""
STALL_SECONDS, STALL_CLOCK = 60.0, 900.0
"""Seconds of the processor without an answer that are too many; by the clock more, as
a busy machine gives a process little."""
MAX_IN_GRID = 12
SAMPLES = ("Handwritten", "Blood cells", "Nuclei of")
TYPED = ("", "0", "7", "-3", "1e9", "abc", "CD3", "0.01", "%s", "30")
KEYS = (
    *(Qt.Key.Key_Escape, Qt.Key.Key_Delete, Qt.Key.Key_F, Qt.Key.Key_Slash),
    *(Qt.Key.Key_Z, Qt.Key.Key_Y, Qt.Key.Key_A, Qt.Key.Key_C, Qt.Key.Key_F2),
    *(Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Down),
)
"""Not P, as napari 0.9.2 itself fails when labels are painted outside of them."""
MODIFIERS = (
    *[Qt.KeyboardModifier.NoModifier] * 3,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
)
LEFT = Qt.MouseButton.LeftButton
CHANGED_LAYER = ("opacity", "symbol", "size", "mode", "translate", "delete points")
LAYER_ACTIONS = (
    *("select", "hide", "rename", "delete", "reorder", "ndisplay", "grid", "roll"),
    *("reset", "duplicate", "paint", "4-D image", "turn camera", *CHANGED_LAYER),
)


class RandomUser(Purposes):
    """Does one random thing after another in a shown window.

    Parameters
    ----------
    seed : int
    folder : Path
        Where files to open are made, and files are saved.
    is_told : bool
        Whether to print each action before it is done, for a process that dies.
    """

    def __init__(self, seed: int, folder: Path, *, is_told: bool = False) -> None:
        self.is_told = is_told
        self.rng = random.Random(seed)
        self.folder = folder
        self.done: list[str] = []
        self.errors: list[str] = []
        self.alive, self.used = time.monotonic(), time.process_time()
        self.is_over = threading.Event()
        self._listen()
        self.files = make_files(folder, seed)
        self.viewer = napari.Viewer(show=True)
        sys.excepthook = self._caught  # napari has set its own
        self.window = find_main_window(self.viewer.window.main_menu)
        self.session = get_workspace(self.viewer).session
        self.window.resize(self.rng.choice([1100, 1500]), self.rng.choice([760, 950]))
        self._answer_file_dialogs()
        self._dialogs = QTimer()
        self._dialogs.timeout.connect(self.answer_dialogs)
        self._dialogs.start(150)
        self._threads = set(threading.enumerate())
        self._objects = own_objects()

    def walk(self, n_actions: int) -> None:
        """Open docks and a sample, and do so many random things, then close."""
        self.open_docks()
        self.open_sample()
        self.rest(2)
        actions = self.actions()
        for _ in range(n_actions):
            if self.errors:
                return
            try:
                self._keep_grid_small()
                self.rng.choice(actions)()
                self.rest(self.rng.choice([0.02, 0.05, 0.3]))
                self.check()
            except Exception:  # any of them is what is looked for
                self.errors.append(traceback.format_exc())
        self._dialogs.stop()
        self.answer_dialogs()
        self.close_docks()
        self.note("closes the window")
        self.viewer.close()
        self.rest(1)

    def actions(self) -> tuple[Callable[[], None], ...]:
        """Return what is done, the more often the more often it stands there."""
        return (
            *[self.use_widget] * 12,
            *[self.use_canvas] * 4,
            *[self.press_key, self.use_layer] * 2,
            *[self.use_menu_of_button] * 2,
            *(self.scroll, self.use_dock, self.open_sample, self.drop_file),
            *[self.act_on_purpose] * 8,
        )

    def act_on_purpose(self) -> None:
        """Do steps that belong together."""
        self.rng.choice(self.purposes())()

    def close_docks(self) -> None:
        """Close the docks, and look whether they leave nothing."""
        for dock in self.own_docks():
            self.note(f"closes {dock.windowTitle()!r}")
            dock.title.close_button.click()
        dock = None  # who holds it keeps it alive
        end = time.monotonic() + MAX_END
        while (left := self._left()) and time.monotonic() < end:
            self.rest(0.1)
        if left:
            self.errors.append(f"left of closed docks: {left}")

    # What is looked for

    def _listen(self) -> None:
        sys.excepthook = self._caught
        threading.excepthook = lambda x: self._caught(
            x.exc_type, x.exc_value, x.exc_traceback
        )
        notification_manager.notification_ready.connect(self._notified)
        heard = logging.Handler(logging.ERROR)
        heard.emit = lambda record: self.errors.append(heard.format(record))
        logging.getLogger("napari_embedding_game").handlers = [heard]
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _caught(self, kind: Any, error: Any, trace: Any) -> None:
        self.errors.append("".join(traceback.format_exception(kind, error, trace)))

    def _notified(self, notification: Any) -> None:
        if str(notification.severity).lower().endswith("error"):
            self.errors.append(f"napari: {notification}")

    def _watch(self) -> None:
        while not self.is_over.wait(1):
            is_late = time.monotonic() - self.alive > STALL_CLOCK
            if is_late or time.process_time() - self.used > STALL_SECONDS:
                self._give_up()

    def _give_up(self) -> None:
        print("STALLED after:", *self.done[-15:], sep="\n  ", flush=True)
        faulthandler.dump_traceback()
        os._exit(3)

    def check(self) -> None:
        """Look whether what is on show fits together."""
        session, titles = self.session, [x.windowTitle() for x in self.docks()]
        assert len(titles) == len(set(titles)), titles
        if session.dataset is None or session.snapshot is None:
            return
        n = len(session.dataset.obs)
        assert len(session.snapshot.embedding) == n
        assert len(session.clusters.labels) == n
        assert len(session.selection.points) in (0, n)
        assert np.isfinite(session.snapshot.embedding).all()

        for layer in self.viewer.layers:
            if isinstance(layer, napari.layers.Points):
                assert np.isfinite(layer.data).all(), layer.name

    def _left(self) -> list[str]:
        """Name the threads and the Qt objects that were not there at the beginning."""
        threads = [
            thread.name
            for thread in set(threading.enumerate()) - self._threads
            if not isinstance(thread, threading._DummyThread)  # Qt's, which may be over
            if not thread.name.startswith("embedding-game_")  # of the engine's one pool
            and thread.name not in ("tqdm_monitor", LISTENER)  # one for the process
        ]
        workers = (
            [f"{count_running_workers()} workers"] if count_running_workers() else []
        )
        if threads or workers:  # of half a million objects none is looked at meanwhile
            return [*threads, *workers]
        widgets = own_objects() - self._objects
        return [f"{n} {name}" for name, n in widgets.items()]

    # Waiting and dialogs

    def rest(self, seconds: float) -> None:
        """Let the window do what it has to."""
        end = time.monotonic() + seconds
        while True:
            W.QApplication.processEvents()
            W.QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if time.monotonic() >= end:
                break
            time.sleep(0.005)
        self.alive, self.used = time.monotonic(), time.process_time()

    def note(self, text: str) -> None:
        """Remember what is done, for who has to find out."""
        self.done.append(text)
        if self.is_told:
            print(text, flush=True)

    def answer_dialogs(self) -> None:
        """Press a random button of a question, or close what has none."""
        popup = W.QApplication.activePopupWidget()
        if isinstance(popup, W.QMenu):
            popup.close()
        for dialog in W.QApplication.topLevelWidgets():
            if isinstance(dialog, W.QDialog) and dialog.isVisible():
                buttons = dialog.findChildren(W.QDialogButtonBox)
                offered = [x for box in buttons for x in box.buttons()]
                self.note(f"    answers {dialog.windowTitle()!r}")
                if offered:
                    self.rng.choice(offered).click()
                else:
                    dialog.reject()

    def _answer_file_dialogs(self) -> None:
        def open_file(*_: Any) -> tuple[str, str]:
            return self._noted(self.rng.choice(["", *map(str, self.files)])), ""

        def save_file(*words: Any) -> tuple[str, str]:
            patterns = [x.split("*")[1].strip(" )") for x in words[-1:] if "*" in x]
            name = f"saved{self.rng.randrange(3)}{patterns[0] if patterns else '.csv'}"
            return self._noted(self.rng.choice(["", str(self.folder / name)])), ""

        W.QFileDialog.getOpenFileName = staticmethod(open_file)
        W.QFileDialog.getSaveFileName = staticmethod(save_file)
        W.QFileDialog.getExistingDirectory = staticmethod(lambda *_: open_file()[0])

    def _noted(self, name: str) -> str:
        self.note(f"    file {Path(name).name!r}")
        if name and not self.files.count(Path(name)):
            self.files.append(Path(name))
        return name

    # Docks, samples, files

    def own_docks(self) -> list[W.QDockWidget]:
        """Return the docks of this plugin."""
        own, boxes = get_workspace(self.viewer).docks, self.window.findChildren
        return [x for x in boxes(W.QDockWidget) if any(map(x.isAncestorOf, own))]

    def docks(self) -> list[W.QDockWidget]:
        """Return those that are seen."""
        return [x for x in self.own_docks() if x.isVisible()]

    def open_docks(self) -> None:
        """Open or hide both docks by napari's Plugins menu."""
        for path, action in list(entries(self.viewer.window.plugins_menu)):
            if path[0] == PLUGIN:
                self.note(f"menu Plugins > {' > '.join(path)}")
                action.trigger()
                self.rest(0.3)

    def open_sample(self) -> None:
        """Choose a sample from napari's File menu."""
        words = self.rng.choice(SAMPLES)
        for path, action in entries(self.viewer.window.file_menu):
            if words in path[-1]:
                self.note(f"menu File > {' > '.join(path)}")
                action.trigger()
        self.rest(1)

    def drop_file(self) -> None:
        """Drop a file on the window."""
        path = self.rng.choice(self.files[:N_MADE])  # napari reads no session files
        self.note(f"drops {path.name}")
        drop_files(self.viewer, path)

    def use_dock(self) -> None:
        """Close, float or take away a dock."""
        docks = self.docks()
        if not docks or self.rng.random() < 0.6:
            self.open_docks()
            return
        dock = self.rng.choice(docks)
        what = self.rng.choice(["close", "float", "destroy", "area"])
        self.note(f"dock {dock.windowTitle()!r} {what}")
        if what == "close":
            dock.close()
        elif what == "float":
            dock.setFloating(not dock.isFloating())
        elif what == "area":
            area = self.rng.choice(list(Qt.DockWidgetArea)[:4])
            self.window.addDockWidget(area, dock)
        else:
            self.viewer.window.remove_dock_widget(dock.widget())

    # Widgets of the docks

    def _seen(self, *kinds: type) -> list[Any]:
        return [
            widget
            for dock in self.docks()
            for widget in dock.findChildren(kinds)
            if widget.isVisible()
            and widget.isEnabled()
            and not widget.visibleRegion().isEmpty()
        ]

    def use_widget(self) -> None:
        """Use one of the controls that can be seen."""
        uses = {
            W.QTabBar: self._use_tabs,
            W.QComboBox: self._use_combo,
            W.QAbstractSlider: self._use_slider,
            W.QLineEdit: self._use_field,
            W.QAbstractSpinBox: self._use_field,
            W.QAbstractItemView: self._use_items,
            W.QAbstractButton: self._click,
        }
        seen = self._seen(*uses)
        if not seen:
            self.open_docks()
            return
        widget = self.rng.choice(seen)
        text = getattr(widget, "text", lambda: "")
        said = "" if isinstance(widget, W.QAbstractItemView) else text()
        self.note(f"{type(widget).__name__} {widget.objectName() or said!r}")
        next(use for kind, use in uses.items() if isinstance(widget, kind))(widget)

    def _click(self, widget: W.QWidget) -> None:
        QTest.mouseClick(widget, LEFT)

    def _use_tabs(self, bar: W.QTabBar) -> None:
        tab = self.rng.randrange(max(1, bar.count()))
        QTest.mouseClick(bar, LEFT, pos=bar.tabRect(tab).center())

    def _use_combo(self, combo: W.QComboBox) -> None:
        if combo.count():
            choice = self.rng.randrange(combo.count())
            self.done[-1] += f" -> {combo.itemText(choice)!r}"
            combo.setCurrentIndex(choice)
            combo.activated.emit(choice)

    def _use_slider(self, slider: Any) -> None:
        low, high, value = slider.minimum(), slider.maximum(), slider.value()
        if isinstance(value, tuple | list):
            slider.setValue(tuple(sorted(self.rng.uniform(low, high) for _ in value)))
        else:
            slider.setValue(type(value)(self.rng.uniform(low, high)))

    def _use_field(self, field: W.QWidget) -> None:
        typed = self.rng.choice(TYPED)
        self.done[-1] += f" <- {typed!r}"
        field.setFocus()
        QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClicks(field, typed)
        end = (Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Tab)
        QTest.keyClick(field, self.rng.choice(end))

    def _use_items(self, view: W.QAbstractItemView) -> None:
        place = self._place(view.viewport())
        QTest.mouseClick(view.viewport(), LEFT, self.rng.choice(MODIFIERS), place)
        if self.rng.random() < 0.2:
            QTest.mouseDClick(view.viewport(), LEFT, pos=place)
        if self.rng.random() < 0.2:
            QTest.keyClicks(view, self.rng.choice(TYPED))

    def use_menu_of_button(self) -> None:
        """Choose an entry of the menu that a button opens."""
        seen = self._seen(W.QAbstractButton)
        with_menu = [x for x in seen if getattr(x, "menu", lambda: None)() is not None]
        if not with_menu:
            return
        button = self.rng.choice(with_menu)
        offered = [x for x in button.menu().actions() if x.isEnabled() and x.text()]
        if offered:
            action = self.rng.choice(offered)
            self.note(f"menu of {button.text()!r} > {action.text()!r}")
            action.trigger()

    def scroll(self) -> None:
        """Turn the wheel over a widget, or make the window another size."""
        if self.rng.random() < 0.2:
            width = self.rng.choice([1000, 1300, 1550])
            self.note(f"window {width} wide")
            self.window.resize(width, self.rng.choice([700, 900]))
        seen = self._seen(W.QWidget)
        if seen:
            widget = self.rng.choice(seen)
            self.note(f"wheel over {type(widget).__name__}")
            turn_wheel(widget, self.rng.choice([-360, 120]))

    # Canvas, keys, layers

    def _place(self, widget: W.QWidget) -> QPoint:
        return QPoint(
            self.rng.randint(2, max(3, widget.width() - 2)),
            self.rng.randint(2, max(3, widget.height() - 2)),
        )

    def use_canvas(self) -> None:
        """Click, double-click, hover or drag on the canvas."""
        native = self._canvas()
        modifier = self.rng.choice(MODIFIERS)
        begin, end = self._place(native), self._place(native)
        what = self.rng.choice(["click", "click", "drag", "drag", "hover", "wheel"])
        self.note(f"canvas {what} {begin} {end} {modifier}")
        if what == "click":
            QTest.mouseClick(native, LEFT, modifier, begin)
        elif what == "wheel":
            turn_wheel(native, self.rng.choice([-240, 240]))
        else:
            if what == "drag":
                QTest.mousePress(native, LEFT, modifier, begin)
            for step in range(1, 6):
                QTest.mouseMove(native, begin + (end - begin) * step / 5)
                self.rest(0.02)
            if what == "drag":
                QTest.mouseRelease(native, LEFT, modifier, end)

    def press_key(self) -> None:
        """Press a key, wherever the focus is."""
        key = self.rng.choice(KEYS)
        needs = (Qt.Key.Key_F, Qt.Key.Key_Z, Qt.Key.Key_Y, Qt.Key.Key_C)
        control = Qt.KeyboardModifier.ControlModifier
        modifier = control if key in needs else Qt.KeyboardModifier.NoModifier
        self.note(f"key {key} {modifier}")
        QTest.keyClick(W.QApplication.focusWidget() or self.window, key, modifier)

    def use_layer(self) -> None:
        """Do something to a layer, or to how layers are shown, as napari lets one."""
        layers = self.viewer.layers
        if not len(layers):
            self.open_sample()
            return
        layer, what = self.rng.choice(list(layers)), self.rng.choice(LAYER_ACTIONS)
        self.note(f"layer {layer.name!r} {what}")
        if what in CHANGED_LAYER:
            self._change(layer, what)
        elif what == "select":
            layers.selection = {layer}
        elif what == "hide":
            layer.visible = not layer.visible
        elif what == "rename":
            layer.name = f"layer {self.rng.random():.3f}"
        elif what == "delete":
            layers.remove(layer)
        elif what == "reorder":
            layers.move(layers.index(layer), self.rng.randrange(len(layers)))
        elif what == "duplicate":
            layers.append(type(layer)(layer.data, name=layer.name))
        elif what == "paint" and isinstance(layer, napari.layers.Labels):
            if layer.ndim == 2 and not layer.multiscale:
                layer.paint((9, 9), self.rng.randrange(5))
        elif what == "4-D image":
            self.viewer.add_image(np.zeros((2, 3, 20, 20)), name="4-D")
        else:
            self._change_view(what)

    def _change(self, layer: Any, what: str) -> None:
        if what == "opacity":
            layer.opacity = self.rng.random()
        elif what == "translate":
            layer.translate = np.add(layer.translate, 5)
        elif not isinstance(layer, napari.layers.Points):
            return
        elif what == "symbol":
            layer.symbol = self.rng.choice(["star", "disc", "square"])
        elif what == "size":
            layer.size = self.rng.uniform(1, 30)
        elif what == "mode":
            mode = self.rng.choice(["select", "add", "pan_zoom"])
            layer.mode = mode if layer.editable else "pan_zoom"
        elif layer.editable:
            layer.selected_data = set(range(0, len(layer.data), 3))
            layer.remove_selected()

    def _keep_grid_small(self) -> None:
        """Leave napari's grid in time: one more of 40 plain images takes it 7 s."""
        if len(self.viewer.layers) > MAX_IN_GRID:
            self.viewer.canvas.grid.enabled = False

    def _change_view(self, what: str) -> None:
        viewer = self.viewer
        if what == "ndisplay":
            viewer.dims.ndisplay = 5 - viewer.dims.ndisplay
        elif what == "grid":
            viewer.canvas.grid.enabled = not viewer.canvas.grid.enabled
        elif what == "roll":
            viewer.dims.roll()
        elif what == "reset":
            viewer.reset_view()
        elif what == "turn camera":
            angles = tuple(self.rng.uniform(-80, 80) for _ in range(3))
            viewer.scene.camera.angles = angles


N_MADE = 3
"""Files that are there from the beginning; others are saved later."""


def make_files(folder: Path, seed: int) -> list[Path]:
    """Write files as people have them: a good one, one with gaps, one that is none."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(60, 4)).round(3).astype(str)
    head = "kind,a,b,c,d"
    good = [head, *(f"T,{','.join(row)}" for row in numbers)]
    numbers[rng.random(numbers.shape) < 0.1] = ""
    gaps = [head, *(f"B,{','.join(row)}" for row in numbers)]
    files = {"good.csv": good, "gaps.csv": gaps, "none.h5ad": ["no file at all"]}
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines))
    return [folder / name for name in files]


def held() -> str:
    """Return what the process holds, as a row of a table."""
    process = psutil.Process()
    temporary = len(os.listdir(tempfile.gettempdir()))
    counts = (
        process.num_threads(),
        process.num_fds(),
        temporary,
        len(gc.get_objects()),
    )
    return " | ".join(f"{n:,}" for n in (process.memory_info().rss >> 20, *counts))


def main(kind: type[RandomUser] = RandomUser) -> None:
    """Let a user walk once, or round after round; leave with 1 for something found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--actions", type=int, default=200)
    parser.add_argument("--tell", action="store_true", help="print each action")
    parser.add_argument(
        "--minutes", type=float, default=0, help="further windows in this process"
    )
    parser.add_argument(
        "--seeds", type=int, default=1_000_000, help="of windows, again and again"
    )
    arguments = parser.parse_args()
    faulthandler.enable()
    get_settings(None).application.confirm_close_window = False  # nobody's settings
    get_plugin_settings(path_dir=None)
    end = time.monotonic() + 60 * arguments.minutes
    if arguments.minutes:
        print("seed | actions | MB | threads | file descriptors | temporary | objects")
    first = arguments.seed
    for seed in itertools.cycle(range(first, first + arguments.seeds)):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NAPARI_EMBEDDING_GAME_AUTOSAVE"] = folder
            user = kind(seed, Path(folder), is_told=arguments.tell)
            user.walk(arguments.actions)
        done, errors = user.done, user.errors
        user.is_over.set()
        user.watcher.join()
        vars(user).clear()
        release_memory()
        if arguments.minutes:
            print(f"{seed} | {len(done)} | {held()}", flush=True)
        if errors or time.monotonic() >= end:
            break
    if errors:
        print("FAILED after:", *done[-20:], sep="\n  ")
        print(*errors[:2], sep="\n----\n", flush=True)
    else:
        print(f"{len(done)} actions, nothing broke", flush=True)
    os._exit(bool(errors))  # threads need not end


if __name__ == "__main__":
    main()
