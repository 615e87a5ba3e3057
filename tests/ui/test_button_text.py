"""Long texts of buttons on several lines."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.form_widgets import Fold, scrolled

LONG = "Run again with Learning rate automatic, Landmarks' rate automatic, Seed 7"


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
    return show


def is_within(area):
    return area.widget().width() <= area.viewport().width()


def ink_rows(button):
    """Return at how many heights of the button something of its text is drawn."""
    picture = button.grab().toImage()
    scale = picture.devicePixelRatio()
    inside = range(int(12 * scale), picture.width() - int(12 * scale))
    found = set()
    for y in range(int(3 * scale), picture.height() - int(3 * scale)):
        if len({picture.pixel(x, y) for x in inside}) > 1:
            found.add(y)
    return len(found)


def test_a_long_text_takes_lines_and_widens_nothing(column, qtbot):
    short, long = QPushButton("Run again"), QPushButton(LONG)
    for button in (short, long):
        WrappedText(button)
        column(button)
    line = short.height()
    qtbot.waitUntil(lambda: long.height() > 1.5 * line)
    assert is_within(column.area)
    assert long.text() == LONG  # for who reads it aloud
    qtbot.waitUntil(lambda: ink_rows(long) > 1.5 * ink_rows(short))
    long.setText("Run again")
    qtbot.waitUntil(lambda: long.height() == line)


def test_a_long_title_of_a_fold_pushes_nothing_out(column, qtbot):
    fold = column(Fold("Quality", QLabel("inside")))
    line = fold.toggleButton().height()
    fold.set_title("Quality: neighbours in 2 pieces, the map follows sample_of_donor")
    qtbot.waitUntil(lambda: fold.toggleButton().height() > 1.5 * line)
    assert is_within(column.area)
    qtbot.mouseClick(fold.toggleButton(), Qt.MouseButton.LeftButton)
    assert fold.isExpanded()
