"""Show the selection with its true neighbours, for as long as a button is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.core.inspect.true_neighbors import Correction, correct
from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.drawing import RESTING
from napari_embedding_game.ui.connections import Connections

STEPS, STEP_MS = 8, 25
"""Pictures in which the points go to their places, and the time between them."""
MOST_ANIMATED = 50_000
"""Points; more go at once."""


class ShownCorrection(QObject):
    """Draws in the true neighbours of the selection, lets strangers step out, and back.

    The map itself is not touched: what is drawn at the end is the session's snapshot.

    Parameters
    ----------
    session : Session
    draw : callable
        Draws a snapshot.
    """

    told = Signal(str)
    """A sentence about what is shown, "" when nothing is."""

    def __init__(self, session: Session, draw: Callable[[Snapshot], None]) -> None:
        super().__init__()
        self._session = session
        self._draw = draw
        self._shown: tuple[Snapshot, Correction] | None = None
        self._step = 0
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
        return self._shown is not None

    def set_shown(self, is_shown: bool) -> None:
        """Begin, or show the map as it is again."""
        if is_shown:
            self._begin()
        else:
            self._end()

    def _begin(self) -> None:
        session, snapshot = self._session, self._session.drawn
        if self._shown is not None or snapshot is None or snapshot.neighbors is None:
            return
        if session.state not in RESTING or session.selection.is_empty:
            return
        points = session.selection.points
        found = correct(snapshot.embedding, snapshot.neighbors, points)
        self._shown = snapshot, found
        self.told.emit(told(found))
        is_quick = len(points) > MOST_ANIMATED
        self._step = STEPS - 1 if is_quick else 0
        self._go_on()
        self._timer.start()

    def _go_on(self) -> None:
        if self._shown is None:
            return
        snapshot, found = self._shown
        self._step += 1
        share = min(1.0, self._step / STEPS)
        between = snapshot.embedding + share * (found.embedding - snapshot.embedding)
        self._draw(replace(snapshot, embedding=between.astype("f4")))
        if self._step >= STEPS:
            self._timer.stop()

    def _end(self) -> None:
        if self._shown is None:
            return
        self._timer.stop()
        snapshot, self._shown = self._shown[0], None
        self.told.emit("")
        if self._session.drawn is snapshot:
            self._draw(snapshot)

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
