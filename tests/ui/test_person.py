"""The person of the tests at a window that stalls, as on a busy machine."""

import time

import pytest
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication, QComboBox, QPushButton


def test_a_choice_is_made_although_the_window_stalls(qtbot, person_at_the_window):
    combo, stalls = QComboBox(), QTimer()
    qtbot.addWidget(combo)
    combo.addItems(["stim", "Nothing: one map"])
    combo.show()
    seconds = 0.75 * QApplication.doubleClickInterval() / 1000
    stalls.timeout.connect(lambda: time.sleep(seconds))
    stalls.start(30)
    person_at_the_window.pick(combo, "Nothing: one map")
    assert combo.currentText() == "Nothing: one map"
    assert not combo.view().isVisible()


def test_a_button_that_is_free_only_later_takes_one_click(qtbot, person_at_the_window):
    button = QPushButton("Run")
    qtbot.addWidget(button)
    button.setEnabled(False)
    button.show()
    clicks = []
    button.clicked.connect(lambda: clicks.append(1))
    QTimer.singleShot(50, lambda: button.setEnabled(True))
    person_at_the_window.press(button)
    assert clicks == [1]


def test_what_never_has_an_effect_is_named(qtbot, person_at_the_window, monkeypatch):
    monkeypatch.setattr(person_at_the_window, "SECONDS", 0.0)
    monkeypatch.setattr(person_at_the_window, "PATIENCE", 0.0)
    with pytest.raises(TimeoutError, match="in vain: the moon"):
        person_at_the_window.repeat(lambda: None, lambda: False, "the moon")
