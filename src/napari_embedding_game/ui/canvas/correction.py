"""Show the selection with its true neighbours, for as long as a button is held."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.core.inspect.true_neighbors import Correction, correct
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.displaced import STEP_MS, Displaced
from napari_embedding_game.ui.canvas.drawing import RESTING, Drawing
from napari_embedding_game.ui.connections import Connections


class ShownCorrection(QObject):
    """Draws in the true neighbours of the selection, lets strangers step out, and back.

    The map itself is not touched.

    Parameters
    ----------
    session : Session
    drawing : Drawing
    """

    told = Signal(str)
    """A sentence about what is shown, "" when nothing is."""

    def __init__(self, session: Session, drawing: Drawing) -> None:
        super().__init__()
        self._session = session
        self._drawing = drawing
        self._displaced = Displaced(drawing.layers)
        self._timer = QTimer(self)
        self._timer.setInterval(STEP_MS)
        self._timer.timeout.connect(self._go_on)
        self._connections = Connections()
        another_map = (
            session.state_changed,
            session.dataset_changed,
            session.progressed,
            session.looked_back,
            session.comparing.moved,
        )
        self._connections.connect_all(another_map, self._give_up)

    def close(self) -> None:
        """Show the map as it is, and undo the connections to the session."""
        self._give_up()
        self._connections.close()

    @property
    def is_shown(self) -> bool:
        """Whether points are drawn elsewhere than they are."""
        return self._displaced.is_begun

    def set_shown(self, is_shown: bool) -> None:
        """Begin, or show the map as it is again."""
        if is_shown:
            self._begin()
        else:
            self._end()

    def _begin(self) -> None:
        session, snapshot = self._session, self._session.drawn
        if self.is_shown or snapshot is None or snapshot.neighbors is None:
            return
        if session.state not in RESTING or session.selection.is_empty:
            return
        found = correct(
            snapshot.embedding, snapshot.neighbors, session.selection.points
        )
        if not self._displaced.begin():
            return
        self._drawing.hold()
        rows = np.concatenate([found.drawn_in, found.stepped_out])
        self._displaced.send(rows, self._drawing.layers.to_world(found.embedding[rows]))
        self.told.emit(told(found))
        self._go_on()
        self._timer.start()

    def _go_on(self) -> None:
        if not self._displaced.step():
            self._timer.stop()
        self._drawing.layers.repaint()

    def _end(self) -> None:
        if not self.is_shown:
            return
        self._timer.stop()
        self._displaced.end()
        self.told.emit("")
        self._drawing.release()

    def _give_up(self, event: object = None) -> None:
        """Let another map be drawn as it is."""
        self._end()


def told(found: Correction) -> str:
    """Return in a sentence what is shown."""
    n_in, n_out = len(found.drawn_in), len(found.stepped_out)
    if not (n_in or n_out):
        return "All true neighbours of the selection are beside it, and no strangers."
    return (
        f"Shown for as long as you press: {n_in:,} true "
        f"{'neighbour' if n_in == 1 else 'neighbours'} from elsewhere drawn in, "
        f"{n_out:,} {'stranger' if n_out == 1 else 'strangers'} stepped out."
    )
