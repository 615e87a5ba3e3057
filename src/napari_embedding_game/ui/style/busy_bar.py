"""Progress bars without an end, redrawn seldom enough to cost little."""

from __future__ import annotations

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QProgressBar

STEP_MS = 250
STEPS = 8
"""From empty to full."""


def move_bar(bar: QProgressBar, value: int, top: int) -> None:
    """Set a bar and have it drawn with all else.

    Left alone it is drawn at once, and the whole window with it.
    """
    if (bar.value(), bar.maximum()) == (value, top):
        return
    bar.setUpdatesEnabled(False)
    bar.setMaximum(top)
    bar.setValue(value)
    bar.setUpdatesEnabled(True)


class BusyBar(QObject):
    """Fills a bar from the left and empties it to the right, until it is ended.

    Qt's own bar without an end is drawn 25 times a second, and the whole window with
    it: without a graphics card that takes a core away from the work that is waited for.

    Parameters
    ----------
    bar : QProgressBar
    """

    def __init__(self, bar: QProgressBar) -> None:
        super().__init__(bar)
        self._bar = bar
        self._step = 0
        self._timer = QTimer(self)
        self._timer.setInterval(STEP_MS)
        self._timer.timeout.connect(self._move)

    def begin(self) -> None:
        """Move from now on."""
        if not self._timer.isActive():
            self._step = 0
            self._timer.start()
            self._move()

    def end(self) -> None:
        """Leave the bar to others."""
        self._timer.stop()
        self._bar.setInvertedAppearance(False)

    def _move(self) -> None:
        is_emptying = self._step >= STEPS
        left = 2 * STEPS - self._step if is_emptying else self._step
        self._bar.setInvertedAppearance(is_emptying)
        move_bar(self._bar, left, STEPS)
        self._step = (self._step + 1) % (2 * STEPS)
