r"""Shows both docks in each of their states, and finds what is cut off in them.

    xvfb-run -a -s "-screen 0 2100x1300x24" python tools/screenshots.py OUT \
        [--only cells digits texts nuclei space large] [--themes dark light] \
        [--widths 1100 1500]

For each state, theme and width a picture of the window and, where the long dock is
scrolled, one of the whole dock are saved in the folder OUT.  A table tells which share
of the window the canvas has, with all panels and with *Larger map* pressed; below it
are the texts that do not fit into what shows them.  The data are made up, or are the
samples of installed packages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch  # before Qt: on Windows it fails to load after PyQt  # noqa: F401
from qtpy.QtCore import QPoint, QRect, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionSpinBox,
    QTabBar,
    QToolButton,
    QWidget,
)

from napari_embedding_game.session.run.engine import CoreEngine
from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.status_label import StatusLabel
from person import PLUGIN, Person

HEIGHTS = {1100: 750, 1500: 950, 2000: 1200}
"""Of the window, for each width."""
THEMES = ("dark", "light")
N_CELLS, N_GENES, N_KINDS = 1_200, 300, 5
N_MANY = 250_000
WAIT = 0.6
"""Seconds until everything is laid out anew."""


class Album:
    """Takes pictures of a window in all sizes and themes, and measures them.

    Parameters
    ----------
    person : Person
    folder : Path
        Where the pictures go.
    widths : sequence of int
    themes : sequence of str
    """

    def __init__(
        self,
        person: Person,
        folder: Path,
        widths: Sequence[int],
        themes: Sequence[str],
    ) -> None:
        self.person = person
        self.folder = folder
        self.widths, self.themes = widths, themes
        self.shares: dict[str, dict[int, tuple[float, float]]] = {}
        """Share of the canvas by state and width: with all panels, and without."""
        self.cut: dict[str, set[str]] = {}
        """Where a text is cut, by what is cut."""

    def __call__(self, state: str) -> None:
        """Take the pictures of a state."""
        person = self.person
        window = person.dock.window()
        for theme in self.themes:
            person.viewer.theme = theme
            for width in self.widths:
                window.resize(width, HEIGHTS.get(width, 950))
                person.rest(0.1)
                person.rest(WAIT)
                person.viewer.window._qt_viewer.viewerButtons.resetViewButton.click()
                person.rest(0.2)
                name = f"{state}_{width}_{theme}"
                _save(person.viewer, self.folder / f"{name}.png")
                self._save_dock(name)
                self._measure(state, width)
        print(f"{state}: {len(self.widths) * len(self.themes)} pictures", flush=True)

    def _save_dock(self, name: str) -> None:
        """Save the long dock as a whole, where the window shows a part of it."""
        area = self.person.dock.findChild(QScrollArea)
        inside = area.widget()
        if inside.height() > area.viewport().height():
            inside.grab().save(str(self.folder / f"{name}_dock.png"))

    def _measure(self, state: str, width: int) -> None:
        person = self.person
        for told in cut_texts(person.dock):
            self.cut.setdefault(told, set()).add(f"{state} {width}")
        with_all = self._share()
        person.dock.larger.click()
        person.rest(0.2)
        alone = self._share()
        person.dock.larger.click()
        person.rest(0.2)
        self.shares.setdefault(state, {})[width] = with_all, alone

    def _share(self) -> float:
        """Return the share of the window that the canvas has."""
        canvas, window = self.person.canvas, self.person.dock.window()
        return canvas.width() * canvas.height() / (window.width() * window.height())

    def tell(self) -> None:
        """Print the table and the list."""
        print("\nCanvas as a share of the window: all panels (Larger map)\n")
        print("| state |" + "".join(f" {width:,} |" for width in self.widths))
        print("|---|" + "---|" * len(self.widths))
        for state, found in self.shares.items():
            cells = [f" {found[w][0]:.0%} ({found[w][1]:.0%}) |" for w in self.widths]
            print(f"| {state} |" + "".join(cells))
        print(f"\n{len(self.cut)} texts are cut off" + (":" if self.cut else "."))
        for told, states in sorted(self.cut.items()):
            shown = ", ".join(sorted(states)[:4])
            print(f"- {told} [{shown}{' …' if len(states) > 4 else ''}]")


# What is cut off


def cut_texts(root: QWidget) -> Iterator[str]:
    """Yield what is visible below a widget and whose text does not fit into it."""
    for widget in root.findChildren(QWidget):
        if not widget.isVisible() or _is_folded_away(widget, root):
            continue
        kind = type(widget).__name__
        for text, needed, there in _fits(widget):
            if needed > there:
                yield f"{kind} {text!r}: {needed} of {there} pixels"
        if _is_beyond(widget, root) and (text := _text(widget)):
            yield f"{kind} {text!r} reaches beyond what holds it"


def _is_folded_away(widget: QWidget, root: QWidget) -> bool:
    """Whether a widget, or what holds it, has no size."""
    while widget is not root:
        if QWidget.size(widget).isEmpty():  # a part may have a child of this name
            return True
        widget = widget.parentWidget()
    return False


def _text(widget: QWidget) -> str:
    text = getattr(widget, "text", None)
    return str(text()).replace("&", "") if callable(text) else ""


def _fits(widget: QWidget) -> Iterator[tuple[str, int, int]]:
    """Yield texts of a widget, the pixels that each needs, and those it has."""
    metrics = widget.fontMetrics()
    if isinstance(widget, QTabBar):
        yield from _tabs(widget)
    elif isinstance(widget, QHeaderView):
        yield from _sections(widget)
    elif isinstance(widget, QComboBox):
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        place = widget.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox,
            option,
            QStyle.SubControl.SC_ComboBoxEditField,
            widget,
        )
        text = widget.currentText()
        yield text, metrics.horizontalAdvance(text), place.width()
    elif isinstance(widget, QAbstractSpinBox):
        option = QStyleOptionSpinBox()
        widget.initStyleOption(option)
        place = widget.lineEdit().contentsRect()
        yield widget.text(), metrics.horizontalAdvance(widget.text()), place.width()
    elif isinstance(widget, StatusLabel | QLabel):
        yield from _label(widget)
    elif isinstance(widget, QPushButton | QCheckBox | QRadioButton):
        if widget.findChild(WrappedText) is not None:
            return  # on as many lines as it takes
        option = QStyleOptionButton()
        widget.initStyleOption(option)
        element = {
            QCheckBox: QStyle.SubElement.SE_CheckBoxContents,
            QRadioButton: QStyle.SubElement.SE_RadioButtonContents,
        }.get(type(widget), QStyle.SubElement.SE_PushButtonContents)
        place = widget.style().subElementRect(element, option, widget)
        text = _text(widget)
        there = min(place.width(), widget.width())
        if text:
            yield text, metrics.horizontalAdvance(text), there
    elif isinstance(widget, QToolButton):
        style = widget.toolButtonStyle()
        if _text(widget) and style != Qt.ToolButtonStyle.ToolButtonIconOnly:
            needed = metrics.horizontalAdvance(_text(widget))
            yield _text(widget), needed, widget.contentsRect().width()


def _label(label: Any) -> Iterator[tuple[str, int, int]]:
    text, place = label.text(), label.contentsRect()
    metrics = label.fontMetrics()
    if not text or "<" in text:
        return
    if getattr(label, "wordWrap", lambda: False)():
        longest = max(text.split(), key=metrics.horizontalAdvance, default="")
        yield longest, metrics.horizontalAdvance(longest), place.width()
        yield f"{text} (height)", label.heightForWidth(label.width()), label.height()
    else:
        needed = max(metrics.horizontalAdvance(line) for line in text.split("\n"))
        yield text, needed, place.width()


def _tabs(bar: QTabBar) -> Iterator[tuple[str, int, int]]:
    """Yield tabs: beyond the edge there are none, but for the scroll buttons."""
    for place in range(bar.count()):
        box, text = bar.tabRect(place), bar.tabText(place)
        yield text, bar.fontMetrics().horizontalAdvance(text), box.width()
        yield f"{text} (place in the row)", box.right() + 1, bar.width()


def _sections(header: QHeaderView) -> Iterator[tuple[str, int, int]]:
    if header.orientation() != Qt.Orientation.Horizontal or _is_turned(header):
        return
    for section in range(header.count()):
        if header.isSectionHidden(section):
            continue
        text = header.model().headerData(section, Qt.Orientation.Horizontal)
        if isinstance(text, str) and text:
            needed = header.fontMetrics().horizontalAdvance(text)
            yield text, needed, header.sectionSize(section)


def _is_turned(header: QHeaderView) -> bool:
    """Whether its texts are written upwards, as names of genes are."""
    return type(header).__name__ == "_TurnedHeader"


def _is_beyond(widget: QWidget, root: QWidget) -> bool:
    """Whether a part of a widget lies outside of what holds it and cannot be scrolled.

    What is scrolled up and down may lie below the edge, never beside it.
    """
    parent, can_scroll = widget.parentWidget(), False
    while parent is not None and parent is not root.parentWidget():
        area = parent.parentWidget()
        if isinstance(area, QScrollArea) and area.viewport() is parent:
            can_scroll = True
        elif not _is_viewport(parent):
            box = QRect(widget.mapTo(parent, QPoint(0, 0)), widget.size())
            inside = parent.rect()
            if box.left() < -1 or box.right() > inside.right() + 1:
                return True
            if not can_scroll and box.bottom() > inside.bottom() + 1:
                return True
        else:
            return False  # a list or table, whose items are scrolled
        parent = area
    return False


def _is_viewport(widget: QWidget) -> bool:
    return widget.objectName() == "qt_scrollarea_viewport"


# The states


def cells(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Cells of a plate: the states of the main dock, and what is told of genes."""
    shoot("empty")
    person.open(_made_cells(folder / "made_cells.h5ad"))
    shoot("recipe")
    person.unfold(person.dock.data.recipe.quality.fold)
    shoot("recipe_quality")
    person.prepare_counts()
    shoot("loaded")
    _run_states(person, shoot)
    _trust(person, shoot)
    _looks(person, shoot)
    _genes(person, shoot)


def _run_states(person: Person, shoot: Callable[[str], None]) -> None:
    run, settings = person.dock.run, person.session.settings
    settings.max_iter = 200_000
    person.press(run.run)
    person.wait(lambda: person.session.snapshot is not None, "the first frame")
    person.rest(1)
    shoot("running")
    person.press(run.pause)
    person.wait(lambda: person.session.state == "paused", "the pause")
    shoot("paused")
    person.press(run.stop)
    person.wait(lambda: person.session.state == "stopped", "the stop")
    shoot("stopped")
    settings.max_iter, settings.learning_rate = None, 10.0
    settings.landmark_learning_rate = 10.0
    person.dock.game.show_settings()
    person.press(run.run)
    person.wait(lambda: person.session.state == "finished", "the end")
    shoot("diverged")
    settings.learning_rate = settings.landmark_learning_rate = None
    person.dock.game.show_settings()
    with patch.object(CoreEngine, "play", side_effect=MemoryError):
        person.press(run.run)
        person.wait(lambda: person.session.state == "failed", "the failure")
    shoot("failed")
    person.run()
    shoot("finished")


def _trust(person: Person, shoot: Callable[[str], None]) -> None:
    dock = person.dock
    person.unfold(dock.trust_fold)
    person.wait(lambda: dock.trust.bars["continuity"].value() > 0, "the quality")
    shoot("quality")
    strip = dock.timeline
    strip.comparison.begin(person.session.timeline.marks[-1].number)
    person.rest(1)
    person.show(strip.comparison)
    shoot("comparing")
    strip.comparison.slider.setValue(strip.comparison.slider.maximum() // 2)
    person.rest(0.5)
    shoot("comparing_halfway")
    strip.comparison.slider.setValue(0)
    person.press(strip.comparison.side_by_side)
    person.rest(1)
    shoot("comparing_beside")
    person.press(strip.comparison.close_button)
    person.press(strip.back)
    person.rest(0.5)
    person.show(strip)
    shoot("looking_back")
    person.session.settings.n_neighbors = 30
    dock.game.show_settings()
    person.show(dock.game.continue_stale)
    shoot("stale")
    person.session.settings.n_neighbors = 15
    dock.game.show_settings()
    person.unfold(dock.game.more)
    person.show(dock.game.more)
    shoot("more_settings")
    person.unfold(dock.game.more)


def _looks(person: Person, shoot: Callable[[str], None]) -> None:
    look = person.dock.look
    for choice in ("Stretched (far from similar)", "Squeezed (pressure)"):
        person.color_by(choice)
    person.color_by(LONG_COLUMN)
    person.show(look.legend)
    shoot("long_names")
    person.color_by("sample")
    person.split_by("sample")
    person.show(look.legend)
    shoot("split")
    person.split_by("Nothing: one map")
    look.legend.hiding_requested.emit("hide", 0)
    person.rest(0.5)
    person.show(look.legend)
    shoot("hidden")
    look.legend.hiding_requested.emit("show all", -1)
    person.unfold(look.gene_sets)
    person.show(look.gene_sets)
    shoot("gene_sets")
    person.unfold(look.gene_sets)
    person.color_by("Cluster")
    person.scroll_dock(0)


def _genes(person: Person, shoot: Callable[[str], None]) -> None:
    details = person.inspector
    shoot("inspector_hint")
    person.choose(_mixed(person))
    person.markers()
    person.look_away()
    shoot("markers")
    choices = details.markers.against
    offered = [choices.itemText(i) for i in range(choices.count())]
    person.compare(next(words for words in offered if "treated" in words))
    person.look_away()
    person.dock.window().resize(min(HEIGHTS), HEIGHTS[min(HEIGHTS)])
    person.rest(WAIT)
    plots = person.dock.plots
    for name in ("Volcano", "Dot plot", "Scatter"):
        person.open_tab(name)
        person.rest(1)
        if name == "Dot plot":
            person.wait(lambda: plots.dot_plot.result, "the dot plot")
        if name == "Scatter":
            plots.scatter.across.setText("CD3D")
            plots.scatter.up.setText("HLA-DRA")
            plots.scatter.up.editingFinished.emit()
            person.rest(0.5)
        shoot(name.lower().replace(" ", "_"))


def _mixed(person: Person) -> int:
    """Return a cluster with cells of both conditions."""
    book = person.session.clusters
    conditions = person.session.dataset.obs["condition"]
    return max(
        (cluster.id for cluster in book.clusters),
        key=lambda c: conditions[book.labels == c].value_counts().min(),
    )


def digits(person: Person, shoot: Album, folder: Path) -> None:
    """Pictures, and examples of them in boxes."""
    person.open_sample("Handwritten digits (1,797 images)")
    shoot("ready")
    person.run()
    person.choose(person.session.clusters.clusters[0].id)
    person.open_tab("Pictures")
    person.rest(0.5)
    person.look_away()
    shoot("pictures")
    person.press_escape()
    _brush(person, shoot)
    person.choose(person.session.clusters.clusters[0].id)
    person.sort(1, 6)
    person.choose(person.session.clusters.clusters[1].id)
    person.sort(2, 6)
    person.name_box(1, "round and upright")
    shoot("teach_boxes")
    person.learn()
    person.look_away()
    shoot("taught")


def _brush(person: Person, shoot: Callable[[str], None]) -> None:
    """The brush while its button is held over a cluster."""
    QTest.keyClick(person.canvas, Qt.Key.Key_B)
    person.rest(0.3)
    person.show(person.dock.select)
    shoot("brush")
    middle = person.canvas.rect().center()
    QTest.mousePress(person.canvas, Qt.MouseButton.LeftButton, pos=middle)
    for step in range(12):
        QTest.mouseMove(person.canvas, middle + QPoint(6 * step, 0))
        person.rest(0.05)
    shoot("brush_held")
    QTest.mouseRelease(person.canvas, Qt.MouseButton.LeftButton)
    person.rest(0.5)
    shoot("brushed")
    QTest.keyClick(person.canvas, Qt.Key.Key_B)
    person.press_escape()


def space(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Maps of three dimensions, alone and side by side."""
    person.open_sample("Blood cells, PBMC (700 cells)")
    person.run()
    dimensions = person.dock.game.controls["n_components"]
    dimensions.value = 3
    person.wait(lambda: person.session.state == "finished", "the end in space")
    person.rest(0.5)
    shoot("in_space")
    former = person.session.timeline.marks[-1].number
    person.dock.game.repulsion.value /= 3
    person.wait(lambda: person.session.state == "running", "the game to go on")
    person.wait(lambda: person.session.state == "finished", "the end")
    strip = person.dock.timeline
    strip.comparison.begin(former)
    person.wait(lambda: person.session.view.compared, "the comparison")
    person.show(strip.comparison)
    person.press(strip.comparison.side_by_side)
    person.rest(1)
    shoot("space_beside")


def large(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """More points than pixels, which are drawn as a density."""
    rng = np.random.default_rng(0)
    kind = rng.integers(12, size=N_MANY)
    rows = rng.normal(size=(12, 6))[kind] * 3 + rng.normal(size=(N_MANY, 6))
    np.save(folder / "many.npy", rows.astype(np.float32))
    person.open(folder / "many.npy")
    person.session.settings.max_iter = 30
    person.run()
    person.rest(2)
    shoot("density")
    person.choose(person.session.clusters.clusters[0].id)
    person.look_away()
    shoot("density_chosen")


def texts(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Rows with texts."""
    person.open(_made_texts(folder / "made_texts.npz"))
    person.run()
    person.choose(person.session.clusters.clusters[0].id)
    person.look_away()
    shoot("texts")


def nuclei(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Objects of an image."""
    person.open_sample("Nuclei of a stained section (image + labels)")
    shoot("nuclei_loaded")
    person.run()
    person.choose(person.session.clusters.clusters[0].id)
    person.open_tab("Pictures")
    person.look_away()
    shoot("nuclei_pictures")


def objects(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Objects that are measured, saved and opened again without their layers."""
    from skimage.data import coins
    from skimage.measure import label

    image = coins()
    labels = label(image > 110)
    labels[np.isin(labels, np.flatnonzero(np.bincount(labels.ravel()) < 60))] = 0
    person.viewer.add_image(image, name="coins")
    person.viewer.add_labels(labels, name="coins_labels")
    person.rest(0.3)
    shoot("measure")
    person.measure()
    person.run()
    path = folder / "coins.zip"
    person.dock.controller.writing.save_session(path)
    person.wait(path.exists, "the session file")
    person.viewer.layers.clear()
    person.dock.controller.reading.open_session(path)
    person.wait(lambda: not person.dock.data.relink.isHidden(), "what is missing")
    person.rest(0.5)
    shoot("relink")


def widgets(person: Person, shoot: Callable[[str], None], folder: Path) -> None:
    """Widgets of the Plugins menu, beside the map of cells of a plate."""
    person.open(_made_cells(folder / "made_cells.h5ad"))
    person.prepare_counts()
    person.run()
    for name in ("Teach", "Plate", "Stability", "Labels from a reference",
                 "Figure page"):  # fmt: skip
        title = f"{name} ({PLUGIN})"
        widget = person.open_widget(title)
        if name == "Teach":
            for place in (0, 1):
                person.choose(person.session.clusters.clusters[place].id)
                widget.classes.choose([place])
                person.press(widget.add)
            person.learn()
        shoot(name.lower().replace(" ", "_"))
        person.viewer.window.remove_dock_widget(widget)


KILLED = """
import os, numpy as np
from napari_embedding_game.data.readers import read
from napari_embedding_game.session.file.autosave import Autosave
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
np.savetxt("cells.csv", np.random.default_rng(0).normal(size=(300, 5)), delimiter=",",
           header="a,b,c,d,e", comments="")
session = Session()
maps = MapTree(session)
session.load(read("cells.csv"))
session.settings.max_iter = 50
run = session.begin()
for progress in run.frames():
    session.receive(run, progress)
session.ended(run)
Autosave(maps.capture).job()()
os._exit(1)
"""
"""A program that is gone before it has closed its map."""


def recovered(person: Person, shoot: Album, folder: Path) -> None:
    """What is offered after a program was killed."""
    subprocess.run([sys.executable, "-c", KILLED], cwd=folder, check=False)
    person.viewer.window.remove_dock_widget(person.dock)
    shoot.person = Person(person.viewer)
    shoot("recovery")


PARTS = {
    "cells": cells,
    "objects": objects,
    "widgets": widgets,
    "recovered": recovered,
    "digits": digits,
    "texts": texts,
    "nuclei": nuclei,
    "space": space,
    "large": large,
}

LONG_COLUMN, LONG_LEVEL = (
    "cell_type_of_the_atlas_level_2",
    "-positive blood cell, activated",
)
KINDS = ("CD3D CD3E IL7R", "HLA-DRA CD79A MS4A1", "LYZ S100A8 CST3", "NKG7 GNLY PRF1",
         "PPBP PF4 GP9")  # fmt: skip
"""Genes by which the made-up kinds of cells are known."""


def _made_cells(path: Path) -> Path:
    """Write counts of cells of some kinds, from wells, samples and conditions."""
    import anndata
    import pandas as pd

    rng = np.random.default_rng(0)
    known = " ".join(KINDS).split()
    genes = [*known, *(f"MT-{i}" for i in range(3))]
    genes += [f"GENE{i}" for i in range(N_GENES - len(genes))]
    kind = rng.integers(N_KINDS, size=N_CELLS)
    sample = rng.integers(4, size=N_CELLS)
    rates = rng.gamma(2.0, 1.0, size=len(genes)) * np.ones((N_CELLS, 1))
    for number, words in enumerate(KINDS):
        for gene in words.split():
            rates[kind == number, genes.index(gene)] += 12
    rates *= rng.gamma(40.0, 1 / 40, size=(4, len(genes)))[sample]
    obs = pd.DataFrame(
        {
            "sample": pd.Categorical([f"donor_{s + 1}_PBMC" for s in sample]),
            "condition": pd.Categorical(np.where(sample % 2, "treated", "control")),
            LONG_COLUMN: pd.Categorical([KINDS[k][:4] + LONG_LEVEL for k in kind]),
            "well": [f"{'ABCDEFGH'[s]}{k + 1:02}" for s, k in
                     zip(rng.integers(8, size=N_CELLS), rng.integers(12, size=N_CELLS),
                         strict=True)],
        },
        index=[f"cell{i}" for i in range(N_CELLS)],
    )  # fmt: skip
    counts = rng.poisson(rates * rng.gamma(5.0, 0.3, size=(N_CELLS, 1)))
    var = pd.DataFrame(index=genes)
    anndata.AnnData(counts.astype(np.float32), obs=obs, var=var).write_h5ad(path)
    return path


def _made_texts(path: Path) -> Path:
    """Write vectors of some sentences."""
    rng = np.random.default_rng(0)
    about = rng.integers(4, size=400)
    subjects = ("The car needs a new clutch", "The patch fixes the printer driver",
                "The goalkeeper was the best on the field",
                "The probe reached its orbit last night")  # fmt: skip
    vectors = rng.normal(size=(4, 20))[about] * 3 + rng.normal(size=(400, 20))
    said = np.array(
        [f"{subjects[a]}, as letter {i} says." for i, a in enumerate(about)]
    )
    np.savez(path, X=vectors, text=said, subject=about.astype(str))
    return path


def _save(viewer: Any, path: Path) -> None:
    from PIL import Image

    picture = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False))
    picture.convert("RGB").save(path)


@contextmanager
def _window() -> Iterator[Person]:
    """Open a window that knows nothing of the person's own maps."""
    import napari

    folder = tempfile.mkdtemp()
    os.environ["NAPARI_EMBEDDING_GAME_AUTOSAVE"] = folder
    viewer = napari.Viewer()
    viewer.window.resize(1500, 950)
    try:
        yield Person(viewer)
    finally:
        viewer.close()


def main(arguments: Iterable[str] | None = None) -> None:
    """Take the pictures that are asked for, and tell what is cut off."""
    # Where docks lay last time is not to matter; napari reads this when it is imported.
    os.environ["NAPARI_CONFIG"] = str(Path(tempfile.mkdtemp()) / "settings.yaml")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--themes", nargs="*", choices=THEMES, default=[*THEMES])
    parser.add_argument("--widths", nargs="*", type=int, default=[*HEIGHTS])
    chosen = parser.parse_args(None if arguments is None else [*arguments])
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.only:
        began = time.perf_counter()
        with _window() as person, tempfile.TemporaryDirectory() as folder:
            album = Album(person, chosen.out, chosen.widths, chosen.themes)
            try:
                PARTS[name](person, album, Path(folder))
            finally:
                album.tell()
        print(f"\n{name}: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
