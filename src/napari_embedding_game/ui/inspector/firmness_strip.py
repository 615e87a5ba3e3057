"""Bars below the slider that show how firm each number of clusters is."""

from __future__ import annotations

from qtpy.QtCore import QPoint, QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QToolTip, QWidget

from napari_embedding_game.session.firmness import MAX_CLUSTERS, MIN_CLUSTERS, Firmness
from napari_embedding_game.ui.style.theme import ThemeColors

MAX_BAR, GAP, MIN_BAR = 16, 3, 3
"""Pixels of the highest bar, of the gap below the bars, and of the lowest firm bar."""
SIDES = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
USE_TEXTS = ((), ("Use the suggested {}",), ("Use {} (coarse)", "Use {} (fine)"))
"""Texts below the bars, left and right, by how many numbers are suggested."""
FIRM = (
    "{n} clusters: firm. Where the two parts meet that this number divides, the data "
    "are {depth:.0%} sparser than those of one group would be ({p})."
)
NOT_FIRM = "{n} clusters: not firm. What is divided here may be one group, or is small."
SUGGESTED = " Suggested, {}. Click to choose it."
COARSE = "coarse: of highest modularity over the widest range of resolutions"
FINE = "fine: the last firm number up to resolution 1 of modularity"
NONE_FIRM = "No firm number: maybe one group."
STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
CHOOSING = Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space
"""Keys that go to the bar beside, and that choose its number."""
WHAT = (
    "Taller bars are firmer: fewer points lie between the two parts that the number "
    "divides, next to what any single group has there."
)


class FirmnessStrip(QWidget):
    """A bar for each number of clusters; a click picks a number.

    With the focus, arrow keys go from bar to bar, and Enter picks a number.
    """

    picked = Signal(int)
    """Carries the number of clusters that was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.firmness: Firmness | None = None
        """The shown firmness, or None."""
        self._suggested: tuple[int, ...] = ()
        self._colors: tuple[QColor, QColor, QColor] | None = None
        self._pointed = MIN_CLUSTERS
        """The number that arrow keys have come to."""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Firmness of each number of clusters")
        self.hide()

    def set_theme(self, colors: ThemeColors) -> None:
        """Apply the colours of napari's theme, and set the height by the font."""
        self._colors = colors.line, colors.text, colors.dim
        self.setFixedHeight(MAX_BAR + GAP + self.fontMetrics().height())
        self.update()

    def show_firmness(self, firmness: Firmness | None) -> None:
        """Show the firmness of each number of clusters; None hides the strip."""
        self.firmness = firmness
        self._suggested = () if firmness is None else firmness.suggested
        if self._suggested and not self.hasFocus():
            self._pointed = self._suggested[0]
        self.setVisible(firmness is not None)
        self.update()

    def describe_number(self, n_clusters: int) -> str:
        """Return whether a number of clusters is firm and suggested, as sentences.

        Returns "" if the firmness of the number is not known.
        """
        cut = None if self.firmness is None else self.firmness.find_cut(n_clusters)
        if cut is None:
            return ""
        sentence = NOT_FIRM.format(n=n_clusters)
        if cut.is_firm and cut.separation is not None:
            depth, p = cut.separation.depth, cut.separation.p_text
            sentence = FIRM.format(n=n_clusters, depth=depth, p=p)
        for number, use in zip(self._suggested[::-1], (FINE, COARSE), strict=False):
            sentence += SUGGESTED.format(use) if number == n_clusters else ""
        return sentence

    def find_bar_middle(self, n_clusters: int) -> int:
        """Return the middle of a number's bar in pixels from the left."""
        return round((n_clusters - MIN_CLUSTERS + 0.5) * self._find_bar_width())

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a bar for each number of clusters, and suggested numbers below.

        Firm bars are higher, suggested ones of another colour.  If no number is firm, a
        text says so instead.
        """
        if self.firmness is None or self._colors is None:
            return
        line, text, dim = self._colors
        painter = QPainter(self)
        cuts, marked = self.firmness.cuts, self._suggested
        if self.firmness.is_complete and not any(cut.is_firm for cut in cuts):
            painter.setPen(dim)
            middle = SIDES[0] | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(self.rect().adjusted(5, 0, 0, 0), middle, NONE_FIRM)
            return
        for cut in cuts:
            height, middle = 1.0, self.find_bar_middle(cut.n_clusters)
            if cut.is_firm and cut.separation is not None:
                height = MIN_BAR + (MAX_BAR - MIN_BAR) * cut.separation.depth
            width = max(2.0, self._find_bar_width() - 2)
            bar = QRectF(middle - width / 2, MAX_BAR - height, width, height)
            color = line if cut.is_firm else dim
            painter.fillRect(bar, text if cut.n_clusters in marked else color)
        painter.setPen(line)  # the colour of links
        below = QRectF(self.rect()).adjusted(0, MAX_BAR + GAP, 0, 0)
        for number, side, use in zip(
            marked, SIDES, USE_TEXTS[len(marked)], strict=False
        ):
            painter.drawText(below, side, use.format(number))
        if self.hasFocus():
            x, width = self.find_bar_middle(self._pointed), self._find_bar_width()
            painter.setPen(QPen(text, 1))
            painter.drawRect(QRectF(x - width / 2, 0, width, MAX_BAR + 1))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to the bar beside on an arrow key and describe it; pick it on Enter."""
        n_clusters = self._pointed + STEPS.get(Qt.Key(event.key()), 0)
        text = self.describe_number(n_clusters)
        if event.key() in CHOOSING and text:
            self.picked.emit(n_clusters)
        elif event.key() not in STEPS:
            super().keyPressEvent(event)
        elif text:
            self._pointed = n_clusters
            self.setAccessibleDescription(text)
            at = QPoint(self.find_bar_middle(n_clusters), self.height())
            QToolTip.showText(self.mapToGlobal(at), text, self)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Set the tooltip to the description of the number under the mouse."""
        text = self.describe_number(self._find_number_at(event.position()))
        self.setToolTip(f"{text} {WHAT}".strip())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Emit ``picked`` with the number at the mouse, on a left click.

        Numbers of unknown firmness are not picked.
        """
        number = self._find_number_at(event.position())
        if self.describe_number(number) and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(number)

    # Inside

    def _find_bar_width(self) -> float:
        """Return the pixels of a bar with its gap."""
        return self.width() / (MAX_CLUSTERS - MIN_CLUSTERS + 1)

    def _find_number_at(self, position: QPointF) -> int:
        """Return the number of clusters of the bar at a position in pixels.

        Below the bars it is a suggested number: the first on the left half, else the
        last.
        """
        if position.y() > MAX_BAR and self._suggested:
            return self._suggested[0 if position.x() < self.width() / 2 else -1]
        return MIN_CLUSTERS + int(position.x() / self._find_bar_width())
