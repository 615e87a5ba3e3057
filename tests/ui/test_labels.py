"""Texts that widen no dock: of buttons on several lines, of labels that are drawn."""

import pytest
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.form_widgets import Fold, scrolled
from napari_embedding_game.ui.style.status_label import StatusLabel

LONG = "Run again with Learning rate automatic, Landmarks' rate automatic, Seed 7"


class Requests(QObject):
    """Counts how often a widget is asked to lay out what is in it."""

    count = 0

    def eventFilter(self, watched, event):
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


@pytest.fixture
def column(qtbot):
    """A narrow column that is scrolled up and down only, as the dock."""
    box = QWidget()
    QVBoxLayout(box)
    area = scrolled(box)
    area.resize(220, 300)
    qtbot.addWidget(area)

    def show(widget):
        box.layout().addWidget(widget)
        area.show()
        qtbot.waitExposed(area)
        qtbot.waitUntil(lambda: box.width() > 0 and widget.height() > 0)
        return widget

    show.area = area
    yield show
    assert area.widget().width() <= area.viewport().width()


def ink(widget):
    picture = widget.grab().toImage()
    ground, across = picture.pixel(0, 0), range(picture.width())
    rows = range(picture.height())
    return sum(picture.pixel(x, y) != ground for x in across for y in rows)


def test_a_long_text_of_a_button_takes_lines(column, qtbot):
    short, long = QPushButton("Run again"), QPushButton(LONG)
    for button in (short, long):
        WrappedText(button)
        column(button)
    line = short.height()
    qtbot.waitUntil(lambda: long.height() > 1.5 * line)
    assert long.text() == LONG  # for who reads it aloud
    long.setText("Run again")
    qtbot.waitUntil(lambda: long.height() == line)


def test_a_long_title_of_a_fold_pushes_nothing_out(column, qtbot):
    fold = column(Fold("Quality", QLabel("inside")))
    line = fold.toggleButton().height()
    fold.set_title("Quality: neighbours in 2 pieces, the map follows sample_of_donor")
    qtbot.waitUntil(lambda: fold.toggleButton().height() > 1.5 * line)
    qtbot.mouseClick(fold.toggleButton(), Qt.MouseButton.LeftButton)
    assert fold.isExpanded()


def test_a_status_is_drawn_and_lays_nothing_out(column, qtbot):
    line = column(StatusLabel())
    assert ink(line) == 0
    qtbot.wait(50)
    requests = Requests()
    column.area.widget().installEventFilter(requests)
    for text in ("250 of 500 iterations", "a very long line " * 20):
        line.setText(text)
        assert line.text() == line.accessibleName() == text
        assert ink(line) > 100
    qtbot.wait(10)
    assert requests.count == 0
