"""A line that is drawn, not laid out."""

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.ui.style.status_label import StatusLabel


class Requests(QObject):
    """Counts how often a widget is asked to lay out what is in it."""

    def __init__(self, watched):
        super().__init__()
        self.count = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched, event):
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


def shown(qtbot, line, width=200):
    box = QWidget()
    QVBoxLayout(box).addWidget(line)
    box.resize(width, 40)
    qtbot.addWidget(box)
    box.show()
    qtbot.waitExposed(box)
    qtbot.wait(50)
    return box


def ink(widget):
    picture = widget.grab().toImage()
    ground = picture.pixel(0, 0)
    return sum(
        picture.pixel(x, y) != ground
        for x in range(picture.width())
        for y in range(picture.height())
    )


def test_the_text_is_drawn(qtbot):
    line = StatusLabel()
    box = shown(qtbot, line)
    assert box.isVisible()
    assert ink(line) == 0
    line.setText("250 of 500 iterations")
    assert line.text() == line.accessibleName() == "250 of 500 iterations"
    assert ink(line) > 100


def test_another_text_lays_nothing_out(qtbot):
    line = StatusLabel("1")
    box = shown(qtbot, line)
    requests = Requests(box)
    for number in range(5):
        line.setText(f"{number} of many iterations")
        qtbot.wait(10)
    assert requests.count == 0


def test_a_long_line_does_not_widen_the_dock(qtbot):
    line = StatusLabel("a very long line " * 20)
    box = shown(qtbot, line, width=120)
    assert box.width() == 120
    assert box.minimumSizeHint().width() < 120
