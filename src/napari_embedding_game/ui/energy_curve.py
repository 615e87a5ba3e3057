"""The energy of the game, iteration by iteration, drawn live."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtGui import QHideEvent, QShowEvent
from qtpy.QtWidgets import QVBoxLayout, QWidget
from vispy import scene

from napari_embedding_game.ui.reading import Reading
from napari_embedding_game.ui.theme import ThemeColors

HEIGHT = 86
STEEP_SHARE = 0.03
"""Share of the iterations, at the beginning, that may leave the picture."""


class EnergyCurve(QWidget):
    """A line of (iteration, energy), scaled to what there is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setToolTip(
            "The energy the game lowers: falling steeply, the map still changes; "
            "flat, it has settled."
        )
        self._colors: ThemeColors | None = None
        self._energies: Sequence[tuple[int, float]] = ()
        self._shown_in: int | None = None
        """Number of the window; the window itself would never be freed."""
        self._energy = Reading("Energy")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self._energy)
        self._make_canvas()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw on a new canvas in a new window, as when the dock is made to float.

        All that was made for drawing belongs to the window that it was made in.
        """
        super().showEvent(event)
        before, self._shown_in = self._shown_in, int(self.window().winId())
        if before in (None, self._shown_in):
            self._canvas.native.show()
        else:
            self.layout().removeWidget(self._canvas.native)
            self._canvas.close()
            self._make_canvas()

    def hideEvent(self, event: QHideEvent) -> None:
        """Draw nothing on the way to another window."""
        super().hideEvent(event)
        self._canvas.native.hide()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self._canvas.bgcolor = colors.background.name()
        self._line.set_data(color=colors.line.getRgbF())
        self._view.bgcolor = colors.foreground.name()

    def set_energies(self, energies: Sequence[tuple[int, float]]) -> None:
        """Show these (iteration, energy) pairs."""
        self._energies = energies
        curve = np.array(energies, dtype=np.float64).reshape(-1, 2)
        curve = curve[np.isfinite(curve).all(axis=1)]
        self._line.visible = len(curve) > 1
        if len(curve) > 1:
            self._line.set_data(pos=curve)
            self._fit(curve)
        self._tell(curve)

    def close_canvas(self) -> None:
        """Free the drawing context."""
        self._canvas.close()

    def _make_canvas(self) -> None:
        self._canvas = scene.SceneCanvas(keys=None, show=False, parent=self)
        self._canvas.native.setFixedHeight(HEIGHT)
        self._canvas.native.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to type
        # A click or wheel on the curve means nothing; let it scroll the dock.
        self._canvas.native.setAttribute(
            Qt.WidgetAttribute.WA_TransparentForMouseEvents
        )
        self._view = self._canvas.central_widget.add_view()
        self._view.camera = scene.PanZoomCamera(interactive=False)
        self._line = scene.Line(width=2, antialias=True, parent=self._view.scene)
        self.layout().addWidget(self._canvas.native)
        self._canvas.native.show()
        if self._colors is not None:
            self.set_theme(self._colors)
        self.set_energies(self._energies)

    def _fit(self, curve: np.ndarray) -> None:
        (left, low), (right, _) = curve.min(axis=0), curve.max(axis=0)
        # The first steps fall so far that nothing else would be seen beside them.
        high = curve[curve[:, 0] >= STEEP_SHARE * right, 1].max()
        height = max(high - low, abs(high) * 1e-6, 1e-12)
        self._view.camera.set_range(
            x=(left, max(right, left + 1)), y=(low, low + height), margin=0.08
        )

    def _tell(self, curve: np.ndarray) -> None:
        if not len(curve):
            self._energy.setText("Energy")
            return
        self._energy.setText(f"Energy {short(curve[-1, 1])}")


def short(number: float) -> str:
    """Return a number with three digits and a word for its size: ``475 k``."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"
