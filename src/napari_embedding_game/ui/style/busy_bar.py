"""Progress bars that are redrawn seldom enough to cost little."""

from __future__ import annotations

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QProgressBar

STEP_MS, STEPS = 250, 8
"""Between two steps; steps from empty to full."""


def move_bar(bar: QProgressBar, value: int, top: int) -> None:
    """Set a bar and have it drawn with all else: alone it draws the whole window."""
    if (bar.value(), bar.maximum()) != (value, top):
        bar.setUpdatesEnabled(False)
        bar.setMaximum(top)
        bar.setValue(value)
        bar.setUpdatesEnabled(True)


class BusyBar(QTimer):
    """Fills a bar from the left and empties it to the right, until it is ended.

    Qt's own bar without an end is drawn 25 times a second, and the whole window with
    it: without a graphics card that takes a core away from the work that is waited for.
    """

    def __init__(self, bar: QProgressBar) -> None:
        super().__init__(bar)
        self._bar, self._step = bar, 0
        self.setInterval(STEP_MS)
        self.timeout.connect(self._move)

    def begin(self) -> None:
        """Move from now on."""
        if not self.isActive():
            self._step = 0
            self.start()
            self._move()

    def end(self) -> None:
        """Leave the bar to others."""
        self.stop()
        self._bar.setInvertedAppearance(False)

    def _move(self) -> None:
        self._bar.setInvertedAppearance(self._step >= STEPS)
        move_bar(self._bar, STEPS - abs(STEPS - self._step), STEPS)
        self._step = (self._step + 1) % (2 * STEPS)
