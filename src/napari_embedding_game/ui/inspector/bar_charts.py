"""Bar charts of composition and contrasts of the selected clusters."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import QRectF, QSize, Qt, Signal
from qtpy.QtGui import QMouseEvent, QPainter, QPaintEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_embedding_game.session.cluster_report import Contrast, Share
from napari_embedding_game.ui.style.level_click import CLICK_TIP, adds
from napari_embedding_game.ui.style.theme import LOWER, ThemeColors

ROW, BAR = 20, 11
NAME_SHARE = 0.42
"""Share of the width for the names."""


class Bars(QWidget):
    """Rows of a name, a bar and a number.

    Parameters
    ----------
    is_signed : bool
        Bars grow from the middle: to the left where they are negative.
    """

    def __init__(self, *, is_signed: bool = False) -> None:
        super().__init__()
        self._rows: list[tuple[str, float, float | None, str]] = []
        self._colors: ThemeColors | None = None
        self._is_signed = is_signed
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(150)

    @property
    def n_rows(self) -> int:
        """Number of rows that are shown."""
        return len(self._rows)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self.update()

    def set_rows(self, rows: list[tuple[str, float, float | None, str]]) -> None:
        """Show (name, bar -1 to 1, mark or None, number) rows."""
        self._rows = rows
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return room for every row."""
        return QSize(220, ROW * len(self._rows))

    def minimumSizeHint(self) -> QSize:
        """Return the same: rows are never cut, the pane scrolls."""
        return QSize(150, ROW * len(self._rows))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is to be seen."""
        if self._colors is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, row in enumerate(self._rows):
            self._paint_row(painter, self._colors, number * ROW, row)

    def _paint_row(
        self,
        painter: QPainter,
        colors: ThemeColors,
        top: int,
        row: tuple[str, float, float | None, str],
    ) -> None:
        name, length, mark, number = row
        metrics = self.fontMetrics()
        numbers = (metrics.horizontalAdvance(text) for *_, text in self._rows)
        number_width = max(numbers) + 4
        left = NAME_SHARE * self.width()
        room = self.width() - left - number_width - 8
        middle = Qt.AlignmentFlag.AlignVCenter
        shown = metrics.elidedText(name, Qt.TextElideMode.ElideRight, int(left) - 8)
        painter.setPen(colors.text)
        painter.drawText(QRectF(0, top, left - 8, ROW), middle, shown)
        painter.setPen(colors.dim)
        right = QRectF(self.width() - number_width, top, number_width, ROW)
        painter.drawText(right, middle | Qt.AlignmentFlag.AlignRight, number)
        bar = QRectF(left, top + (ROW - BAR) / 2, room, BAR)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.foreground)
        painter.drawRoundedRect(bar, 2, 2)
        painter.setBrush(colors.line if length >= 0 else LOWER)
        painter.drawRoundedRect(self._filled(bar, length), 2, 2)
        if mark is not None:
            line = QRectF(left + room * mark - 1, bar.top() - 2, 2, BAR + 4)
            painter.fillRect(line, colors.text)

    def _filled(self, bar: QRectF, length: float) -> QRectF:
        """Return the part of a bar that a length fills."""
        size = min(abs(length), 1.0) * bar.width()
        if not self._is_signed:
            return QRectF(bar.left(), bar.top(), size, bar.height())
        middle = bar.center().x()
        left = middle - size / 2 if length < 0 else middle
        return QRectF(left, bar.top(), size / 2, bar.height())


class CompositionBars(Bars):
    """How the selection divides over the values of a metadata column.

    ``picked`` brings the values that were clicked, and whether they are to be added.
    """

    picked = Signal(object, bool)

    def __init__(self) -> None:
        super().__init__()
        self._shares: Sequence[Share] = ()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick the value under the mouse, or all that are summed up there."""
        row = event.pos().y() // ROW
        if event.button() == Qt.MouseButton.LeftButton and row < len(self._shares):
            self.picked.emit(self._shares[row].levels, adds(event))
        else:
            super().mousePressEvent(event)

    def set_shares(self, shares: Sequence[Share]) -> None:
        """Show these shares; a mark tells the share among all points."""
        self.setToolTip(
            "Share of the selected points; the mark is the share of all. " + CLICK_TIP
        )
        self._shares = shares
        self.set_rows(
            [(s.level, s.share, s.share_overall, f"{s.share:.0%}") for s in shares]
        )


class ContrastBars(Bars):
    """The columns in which the selection differs most from the rest."""

    def __init__(self) -> None:
        super().__init__(is_signed=True)

    def set_contrasts(self, contrasts: Sequence[Contrast]) -> None:
        """Show these columns; to the right higher inside, left lower."""
        self.setToolTip(
            "Columns that differ most from the rest, in standard deviations: to the "
            "right (blue) higher in the selection, to the left (orange) lower."
        )
        largest = max((abs(c.difference) for c in contrasts), default=1.0)
        self.set_rows(
            [
                (c.name, c.difference / largest, None, f"{c.difference:+.2f} sd")
                for c in contrasts
            ]
        )
