"""Texts that widen no dock: of buttons on several lines, of labels that are drawn."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_embedding_game.ui.style.form_widgets import Fold, scrolled


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


def test_a_long_title_of_a_fold_pushes_nothing_out(column, qtbot):
    fold = column(Fold("Quality", QLabel("inside")))
    line = fold.toggleButton().height()
    fold.set_title("Quality: neighbours in 2 pieces, the map follows sample_of_donor")
    qtbot.waitUntil(lambda: fold.toggleButton().height() > 1.5 * line)
    qtbot.mouseClick(fold.toggleButton(), Qt.MouseButton.LeftButton)
    assert fold.isExpanded()
