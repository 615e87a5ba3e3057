"""The colours of napari's theme, and the plugin's style sheet made from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from napari.utils.theme import get_theme
from qtpy.QtGui import QColor

LOWER_COLOR = QColor("#c45e2b")
"""Colour of bars for values lower in the selection than elsewhere, in any theme."""


@dataclass(frozen=True, slots=True)
class ThemeColors:
    """The colours of one theme."""

    background: QColor
    foreground: QColor
    raised: QColor
    """Ground of buttons."""
    text: QColor
    dim: QColor
    """Text that may be overlooked."""
    hint: QColor
    """Placeholder of an empty field."""
    accent: QColor
    """Ground of the main button."""
    line: QColor
    """Bars and links."""
    warning: QColor
    error: QColor

    @property
    def popup_style_sheet(self) -> str:
        """Style sheet for a completer's popup, a window that inherits no sheet."""
        ground, text, accent = self.foreground, self.text, self.accent
        return (
            f"QAbstractItemView {{ background: {ground.name()}; color: {text.name()}; "
            f"selection-background-color: {accent.name()}; selection-color: white; "
            "padding: 3px; }"
        )

    def style_sheet(self, font_size: int) -> str:
        """Return the style sheet of the plugin's widgets, for a font size in points."""
        hex_colors = {f.name: getattr(self, f.name).name() for f in fields(self)}
        hover = self.accent.darker(110).name()  # white text stays readable on it
        over = _blend_colors(self.raised, self.text, 0.15).name()
        return _SHEET.format(
            size=font_size,
            button=font_size + 1,
            title=font_size + 5,
            hover=hover,
            over=over,
            **hex_colors,
        )


_SHEET = """
GameDock, ToolStrip, QAbstractItemView, QHeaderView, QLineEdit, FirmnessStrip {{
  font-size: {size}pt;
}}
QToolButton {{ font-size: {button}pt; }}
ToolStrip {{ background: {foreground}; border-radius: 4px; }}
QLabel[role="title"] {{ font-weight: bold; font-size: {title}pt; color: {text}; }}
QLabel[role="note"] {{ color: {dim}; }}
QLabel[role="warning"] {{ color: {warning}; }}
QLabel[role="error"] {{ color: {error}; }}
QPushButton[role="fold"], QPushButton[role="warned"] {{
  background: transparent; text-align: left; padding: 2px 3px; color: {text};
}}
QPushButton[role="warned"] {{ color: {warning}; }}
QPushButton[role="fold"]:focus, QPushButton[role="warned"]:focus {{
  outline: none; border: 1px solid {line}; padding: 1px 2px;
}}
QProgressBar[role="slim"] {{
  border: none; border-radius: 2px; background: {foreground};
}}
QProgressBar[role="slim"]::chunk {{ border-radius: 2px; background: {accent}; }}
QAbstractSpinBox[role="number"] {{ min-width: 6em; max-width: 6em; }}
QPushButton[role="menu"] {{ padding-right: 20px; }}
QToolButton[role="edit"] {{
  background: {raised}; color: {text}; border-radius: 2px; padding: 3px 8px;
}}
*[role="link"] {{
  background: transparent; color: {line}; border: none; padding: 3px 0px 3px 5px;
  text-align: left;
}}
*[role="link"]:hover, *[role="link"]:focus {{ text-decoration: underline; }}
QToolButton[role="link"] {{ padding-left: 0px; }}
QLineEdit[role="title"] {{
  background: transparent; border: none; color: {text}; font-weight: bold;
  font-size: {title}pt; padding: 0px 0px 1px 2px;
}}
QLineEdit[role="title"]:!read-only {{ border-bottom: 1px dashed {dim}; }}
QLineEdit[role="title"]:hover:!read-only {{ background: {foreground}; }}
QLineEdit[role="title"]:focus {{ background: {foreground}; }}
QToolButton[role="edit"]:hover {{ background: {over}; }}
QToolButton[role="edit"]:focus {{ border: 1px solid {line}; padding: 2px 7px; }}
*:focus {{ outline: 1px solid {line}; }}
QComboBox:focus {{ border: 1px solid {line}; padding: 2px 9px 2px 7px; }}
QSlider::handle:horizontal:focus {{ background: {line}; }}
QListWidget {{ background: {foreground}; }}
PictureGrid::item:selected {{ border: 3px solid {line}; background: none; }}
PlotCanvas:focus {{ border: 1px solid {line}; }}
QLineEdit {{ min-height: 1.4em; placeholder-text-color: {hint}; }}
QAbstractSpinBox {{
  min-height: 1.3em; padding: 1px 2px; qproperty-alignment: AlignCenter;
}}
QLineEdit:focus, QAbstractSpinBox:focus {{ border: 1px solid {line}; padding: 1px; }}
QAbstractSpinBox:focus {{ padding: 0px 1px; }}
QScrollBar:vertical {{ width: 8px; margin: 0px; background: transparent; }}
QScrollBar:horizontal {{ max-height: 8px; min-height: 8px; margin: 0px; }}
QScrollBar::handle {{ border-radius: 4px; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0px; height: 0px; }}
QToolButton[role="edit"]::menu-indicator {{ image: none; }}
QTabWidget::pane {{ border: 0px; }}
QStackedWidget, QScrollArea {{ padding: 0px; }}
QTabBar {{ background: transparent; border: none; padding: 0px; }}
QTabBar::tab {{
  background: transparent; color: {dim}; border: none; border-radius: 0px;
  border-bottom: 2px solid transparent; padding: 4px 3px;
}}
QTabBar::tab:hover, QTabBar::tab:selected {{ background: transparent; color: {text}; }}
QTabBar::tab:selected {{ border-bottom: 2px solid {accent}; }}
QHeaderView::section {{
  background: transparent; color: {dim}; border: none; padding: 3px 4px;
}}
QPushButton[role="main"] {{
  background: {accent}; color: white; font-weight: bold; padding: 5px 14px;
}}
QPushButton[role="main"]:hover {{ background: {hover}; }}
"""


def is_canvas_light(viewer: Any) -> bool:
    """Return whether a viewer's canvas is light, so that marks on it must be dark.

    The luminance of its colour decides, since names such as "system" and the themes of
    plugins do not tell.
    """
    red, green, blue = map(float, viewer.canvas.background_color[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


def list_canvas_color_events(viewer: Any) -> tuple[Any, Any]:
    """Return the two events after which the colour of a viewer's canvas may differ."""
    events = viewer.canvas.events
    return events.background_color, events.background_color_override


def find_theme_colors(name: str) -> ThemeColors:
    """Return the colours of the theme with a name such as ``viewer.theme``.

    Background, foreground, raised and text are the theme's own colours; the others are
    chosen for a dark or a light background, or mixed of these.
    """
    theme = get_theme(name)
    background, foreground, raised, text = (
        QColor(*color.as_rgb_tuple(alpha=False))
        for color in (theme.background, theme.foreground, theme.primary, theme.text)
    )
    is_dark = background.lightness() < 128
    return ThemeColors(
        background=background,
        foreground=foreground,
        raised=raised,
        text=text,
        # A contrast of at least 4.5: hint on raised, the texts below on the other two.
        dim=_blend_colors(text, background, 0.3),
        hint=_blend_colors(text, raised, 0.25),
        accent=QColor("#3671d6" if is_dark else "#2f6fd6"),
        line=QColor("#6ea8ff" if is_dark else "#1b58ba"),
        warning=QColor("#f0b93a" if is_dark else "#7f5200"),
        error=QColor("#ff7b72" if is_dark else "#b3261e"),
    )


def _blend_colors(first: QColor, second: QColor, share: float) -> QColor:
    """Return an opaque mixture of two colours with this share of the second."""
    pairs = zip(first.getRgb()[:3], second.getRgb()[:3], strict=True)
    return QColor(*(round(a + share * (b - a)) for a, b in pairs))
