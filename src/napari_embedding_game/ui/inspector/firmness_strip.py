"""How firm each number of clusters is, as bars below the slider."""

from __future__ import annotations

from qtpy.QtCore import QRectF, Qt, Signal
from qtpy.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.firmness import FEWEST, MOST, Firmness
from napari_embedding_game.ui.style.theme import ThemeColors

BARS, NUMBER, LEAST = 16, 14, 3
"""Pixels of the highest bar, of the suggested number below, and of the lowest bar."""
ALIGN_RIGHT = Qt.AlignmentFlag.AlignRight
FIRM = (
    "{n} clusters: firm. The two parts of what is divided here are further apart than "
    "the halves of one group (p = {p:.1g})."
)
NOT_FIRM = "{n} clusters: not firm. What is divided here may be one group."
NOT_ASKED = (
    "{n} clusters: what is divided here is too small to say, or was one group already."
)
SUGGESTED = " Suggested: up to here most points are divided firmly. Click to choose it."
NONE_FIRM = "No number is firm: this may be one group."
WHAT = (
    "Taller is firmer: how far apart the two parts are that this number divides, next "
    "to halves of one simulated group."
)


class FirmnessStrip(QWidget):
    """A bar for each number of clusters; a click picks one."""

    picked = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.firmness: Firmness | None = None
        """What is shown."""
        self._colors: tuple[QColor, QColor, QColor] | None = None
        self.setFixedHeight(BARS + NUMBER)
        self.setMouseTracking(True)
        self.hide()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors.accent, colors.text, colors.dim
        self.update()

    def show_firmness(self, found: Firmness | None) -> None:
        """Show what is known; None takes it away."""
        self.firmness = found
        self.setVisible(found is not None)
        self.update()

    def text(self, n_clusters: int) -> str:
        """Return what is known of a number, as a sentence; "" where nothing is."""
        cut = None if self.firmness is None else self.firmness.of(n_clusters)
        if cut is None:
            return ""
        assert self.firmness is not None
        if cut.separation is None:
            return NOT_ASKED.format(n=n_clusters)
        p = max(cut.separation.p, 1e-4)
        said = (FIRM if cut.is_firm else NOT_FIRM).format(n=n_clusters, p=p)
        return said + (SUGGESTED if n_clusters == self.firmness.suggested else "")

    def place(self, n_clusters: int) -> int:
        """Return the middle of a number's bar, in pixels from the left."""
        return round((n_clusters - FEWEST + 0.5) * self._width())

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a bar for each number, the firm ones in colour."""
        if self.firmness is None or self._colors is None:
            return
        accent, text, dim = self._colors
        painter = QPainter(self)
        if self.firmness.is_whole and self.firmness.suggested is None:
            painter.setPen(dim)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, NONE_FIRM)
            return
        for cut in self.firmness.cuts:
            height, middle = 1.0, self.place(cut.n_clusters)
            if cut.is_firm and cut.separation is not None:
                height = LEAST + (BARS - LEAST) * cut.separation.beyond
            width = max(2.0, self._width() - 2)
            bar = QRectF(middle - width / 2, BARS - height, width, height)
            painter.fillRect(bar, accent if cut.is_firm else dim)
            if self.firmness.is_whole and cut.n_clusters == self.firmness.suggested:
                painter.setPen(text)
                is_left = middle < self.width() / 2
                side = Qt.AlignmentFlag.AlignLeft if is_left else ALIGN_RIGHT
                left = middle - 4 if is_left else middle + 4 - self.width()
                below = QRectF(left, BARS, self.width(), NUMBER)
                painter.drawText(below, side, f"Use the suggested {cut.n_clusters}")

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Say what is known of the number under the mouse."""
        said = self.text(self._number_at(event.position().x()))
        self.setToolTip(f"{said} {WHAT}".strip())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick the number under the mouse; below the bars that which is suggested."""
        number = self._number_at(event.position().x())
        if event.position().y() > BARS and self.firmness and self.firmness.is_whole:
            number = self.firmness.suggested or number
        if self.text(number):
            self.picked.emit(number)

    # Inside

    def _width(self) -> float:
        return self.width() / (MOST - FEWEST + 1)

    def _number_at(self, x: float) -> int:
        return FEWEST + int(x / self._width())
