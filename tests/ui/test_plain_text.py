"""Names and values are shown as they are: no markup acts, no picture is loaded."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QAbstractListModel, Qt
from qtpy.QtGui import QAction
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QMainWindow,
    QWidget,
)

from napari_embedding_game.ui.compat import find_main_window
from napari_embedding_game.ui.game_dock import MAP, PLOTS, SELECTION
from napari_embedding_game.ui.widgets.plate import PlateWidget
from napari_embedding_game.ui.widgets.reference import ReferenceWidget
from napari_embedding_game.ui.widgets.teach import TeachWidget

HOSTILE = "<b>x</b><img src=nowhere.png>&amp;"
TIP = Qt.ItemDataRole.ToolTipRole


@pytest.fixture
def session(session, dataset):
    """With hostile names of everything that a file names."""
    names = [f"{HOSTILE} {i}" for i in range(5)]
    rows = [f"{HOSTILE} row {i}" for i in range(40)]
    kinds = pd.Categorical([f"{HOSTILE} B", f"{HOSTILE} T"] * 20)
    obs = pd.DataFrame(
        {f"{HOSTILE} kind": kinds, f"{HOSTILE} n": np.arange(40.0)}, rows
    )
    obs["donor"] = np.repeat([f"{HOSTILE} 1", f"{HOSTILE} 2"], 20)
    parts = {"obs": obs, "source_obs": obs, "source_obs_names": pd.Index(rows)}
    parts |= {"var_names": tuple(names), "profile_names": tuple(names)}
    session.load(replace(dataset, name=f"{HOSTILE}.csv", **parts))
    return session


def test_no_name_or_value_is_markup_anywhere(seen, session, qtbot, viewer):
    of_the_session = viewer
    dock, viewer, points = seen.dock, seen.viewer, seen.layers.points
    session.clusters.rename(0, f"{HOSTILE} cells")
    session.clusters.rename(1, f"{HOSTILE} others")
    session.clusters.set_note(0, f"{HOSTILE} note")
    session.add_mark(f"{HOSTILE} mark")
    seen_kinds = set()
    for color in (f"{HOSTILE} kind", f"{HOSTILE} n", f"{HOSTILE} 1"):
        session.look.color_by = color
    for clusters in ((0,), (0, 1)):
        session.selection.select_cluster(clusters[0])
        for one in clusters[1:]:
            session.selection.toggle_cluster(one)
        for tab in (SELECTION, PLOTS, MAP):
            dock.tabs.setCurrentIndex(tab)
            QApplication.processEvents()
            seen_kinds |= walk(dock)

    dock.tabs.setCurrentIndex(SELECTION)
    markers = dock.selection_tab.markers
    dock.selection_tab.tabs.setCurrentWidget(markers)
    qtbot.waitUntil(lambda: markers.compared is not None)
    seen_kinds |= walk(dock)

    session.selection.select_cluster(0)
    for kind in (TeachWidget, PlateWidget, ReferenceWidget):
        widget = kind(of_the_session)
        qtbot.addWidget(widget)
        widget.show()
        qtbot.settle()
        found = walk(widget)
        assert found or kind is not TeachWidget  # the others show names of files
        widget.close()

    viewer.layers.selection.active = points
    at = points.data_to_world(points.data[3])
    viewer.status = points.get_status(at, world=True)
    assert f"{HOSTILE} B" in viewer.status["coordinates"] or "T" in str(viewer.status)
    seen_kinds |= walk(dock)
    viewer.tooltip.text = f"{HOSTILE} kind: B"
    assert not is_markup(viewer.tooltip.text)
    assert seen_kinds >= {
        "label",
        "combo box",
        "item",
        "tooltip",
        "line edit",
        "status",
    }


def is_markup(text):
    """Whether Qt would take a text with a hostile name for HTML."""
    return "<img" in text and Qt.mightBeRichText(text)


def walk(dock):
    """Look at all texts of a dock and of the status bar.

    Return in which kinds of them there are hostile names.
    """
    kinds, window = set(), find_main_window(dock)
    bar = window.statusBar() if isinstance(window, QMainWindow) else QWidget()
    parts = [dock, *dock.findChildren(QWidget), *bar.findChildren(QLabel)]
    for widget in parts:
        for tip in (widget.toolTip(), widget.statusTip(), widget.whatsThis()):
            assert not is_markup(tip), (widget, tip)
            kinds |= {"tooltip"} if "&lt;img" in tip else set()
        if isinstance(widget, QLabel) and "<img" in widget.text():
            assert widget.textFormat() == Qt.TextFormat.PlainText, widget.text()
            kinds.add("status" if bar.isAncestorOf(widget) else "label")
        elif isinstance(widget, QAbstractButton):
            assert "&amp;" not in widget.text().replace("&&", ""), widget.text()
        elif isinstance(widget, QLineEdit) and HOSTILE in widget.text():
            kinds.add("line edit")
        elif isinstance(widget, QComboBox):
            texts = [widget.itemText(i) for i in range(widget.count())]
            kinds |= {"combo box"} if HOSTILE in " ".join(texts) else set()
        elif isinstance(widget, QAbstractItemView) and widget.model() is not None:
            for text, tip in items_of(widget.model()):
                assert not is_markup(tip), (widget, tip)
                kinds |= {"item"} if HOSTILE in text else set()
    for action in dock.findChildren(QAction):
        assert not is_markup(action.toolTip()), action.text()
        assert "&amp;" not in action.text().replace("&&", ""), action.text()
    return kinds


def items_of(model):
    is_list = isinstance(model, QAbstractListModel)
    for row in range(model.rowCount()):
        for column in range(1 if is_list else model.columnCount()):
            index = model.index(row, column)
            yield str(index.data() or ""), str(index.data(TIP) or "")
