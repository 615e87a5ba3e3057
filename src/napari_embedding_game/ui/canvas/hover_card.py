"""A card beside the mouse: what is known of the point it rests on."""

from __future__ import annotations

from qtpy.QtCore import QPoint, QRect, QSize, Qt
from qtpy.QtGui import QImage, QPixmap
from qtpy.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.session.row_details import RowDetails
from napari_embedding_game.ui.style.theme import ThemeColors

WIDEST, PICTURE = 340, 88
"""Pixels."""
BESIDE = QPoint(16, 18)
"""From the mouse to the corner of the card."""
LEAST_SMOOTHED = 40
"""A smaller picture shows its pixels: smoothed, it would be a blur."""


class HoverCard(QFrame):
    """Picture, name, cluster and facts of one row; mouse and keys pass through it.

    It is a window of its own, as tooltips are: a widget on the canvas would have all
    points drawn anew each time that it comes, moves or goes.

    Parameters
    ----------
    canvas : QWidget
        What it lies on, and never leaves.
    """

    def __init__(self, canvas: QWidget) -> None:
        kinds = Qt.WindowType
        passive = kinds.WindowTransparentForInput | kinds.WindowDoesNotAcceptFocus
        super().__init__(canvas, kinds.ToolTip | passive)
        self._colors: ThemeColors | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("hover_card")
        self.picture = QLabel()
        self.picture.setFixedSize(PICTURE, PICTURE)
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.name = _label("name")
        self.cluster = _label("cluster")
        self.disc = QLabel()
        self.text = _label("text")
        self.text.setWordWrap(True)
        self._facts = QWidget()
        self._grid = QGridLayout(self._facts)
        self._build()
        self.hide()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        if colors == self._colors:
            return
        self._colors = colors
        self.setStyleSheet(
            _SHEET.format(
                background=colors.background.name(),
                border=colors.foreground.lighter(150).name(),
                text=colors.text.name(),
                dim=colors.dim.name(),
            )
        )

    def tell(self, facts: RowDetails, color: QPixmap | None) -> None:
        """Show what is known; the picture follows when it has been made.

        Parameters
        ----------
        facts : RowDetails
        color : QPixmap, optional
            Of its cluster; None where the map has other colours.
        """
        self.name.setText(facts.name)
        self.cluster.setText(facts.cluster)
        self.disc.setVisible(color is not None)
        if color is not None:
            self.disc.setPixmap(color)
        self.text.setText(facts.text)
        self.text.setVisible(bool(facts.text))
        self._fill(facts.facts)

    def set_picture(self, image: QImage | None, *, is_due: bool = False) -> None:
        """Show a picture; an empty place where one is being made."""
        self.picture.setVisible(image is not None or is_due)
        if image is None:
            self.picture.clear()
        else:
            self.picture.setPixmap(_fitted(image))

    def stand_beside(self, mouse: QPoint) -> None:
        """Go to the side of the mouse where there is room, and be seen."""
        self.adjustSize()
        canvas = self.parentWidget()
        assert canvas is not None
        place = beside(mouse, self.size(), canvas.rect())
        self.move(canvas.mapToGlobal(place))
        self.show()

    # Inside

    def _build(self) -> None:
        in_cluster = QHBoxLayout()
        in_cluster.setSpacing(6)
        in_cluster.addWidget(self.disc)
        in_cluster.addWidget(self.cluster, 1)
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(1)
        self._grid.setColumnStretch(1, 1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self.name)
        words.addLayout(in_cluster)
        words.addWidget(self._facts)
        words.addStretch(1)
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self.picture, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self.text)
        self.setMaximumWidth(WIDEST)

    def _fill(self, facts: tuple[tuple[str, str], ...]) -> None:
        self._facts.setVisible(bool(facts))
        while self._grid.count():
            item = self._grid.takeAt(0)
            item.widget().setParent(None)
        for row, (name, value) in enumerate(facts):
            self._grid.addWidget(_label("fact", name), row, 0)
            self._grid.addWidget(_label("value", value), row, 1)


_SHEET = """
QFrame#hover_card {{
  background: {background}; border: 1px solid {border}; border-radius: 5px;
}}
QLabel {{ background: transparent; color: {text}; padding: 0px; }}
QLabel[role="name"] {{ font-weight: bold; }}
QLabel[role="fact"] {{ color: {dim}; }}
"""


def beside(mouse: QPoint, size: QSize, room: QRect) -> QPoint:
    """Return where a card of a size stands beside the mouse, inside the room.

    Below and to the right; on the other side where it would stand out.
    """
    place = mouse + BESIDE
    if place.x() + size.width() > room.right():
        place.setX(mouse.x() - BESIDE.x() - size.width())
    if place.y() + size.height() > room.bottom():
        place.setY(mouse.y() - BESIDE.y() - size.height())
    return QPoint(max(place.x(), room.left()), max(place.y(), room.top()))


def _label(role: str, text: str = "") -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setProperty("role", role)
    return label


def _fitted(image: QImage) -> QPixmap:
    modes = Qt.TransformationMode
    is_small = max(image.width(), image.height()) < LEAST_SMOOTHED
    return QPixmap.fromImage(
        image.scaled(
            PICTURE,
            PICTURE,
            Qt.AspectRatioMode.KeepAspectRatio,
            modes.FastTransformation if is_small else modes.SmoothTransformation,
        )
    )
