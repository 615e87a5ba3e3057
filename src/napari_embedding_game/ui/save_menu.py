"""What can be taken away: one button, and a menu of formats."""

from __future__ import annotations

from pathlib import Path

from magicgui.widgets import PushButton
from qtpy.QtWidgets import QFileDialog, QMenu, QWidget

from napari_embedding_game.session.archive import ENDING
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.player import Player

FORMATS = {
    ".h5ad": ("AnnData (.h5ad)…", "AnnData (*.h5ad)"),
    ".csv": ("Table (.csv)…", "Comma-separated values (*.csv)"),
    ".parquet": ("Table (.parquet)…", "Parquet (*.parquet)"),
    ".png": ("Figure (.png)…", "Picture (*.png)"),
    ".svg": ("Figure (.svg)…", "Scalable picture (*.svg)"),
}
SESSION = "Session, to go on later…"
COLUMNS = "Columns in the layer's features"


class SaveMenu(PushButton):
    """The Save button; writes in the background."""

    def __init__(self, player: Player) -> None:
        super().__init__(
            text="Save",
            tooltip="Write map, clusters and settings to a file; the input stays as "
            "it is.",
        )
        self._player = player
        self._session: Session = player.session
        self.menu = QMenu(self.native)
        for ending, (words, _) in FORMATS.items():
            self.menu.addAction(words).triggered.connect(
                lambda _=False, ending=ending: self._save(ending)
            )
        self.columns = self.menu.addAction(COLUMNS)
        self.columns.triggered.connect(player.write_features)
        self.menu.addSeparator()
        self.session = self.menu.addAction(SESSION)
        self.session.triggered.connect(self._save_session)
        self.menu.aboutToShow.connect(self._on_show)
        self.native.setMenu(self.menu)

    def _on_show(self) -> None:
        """Offer columns only where there is a layer that they go to."""
        linked = self._player.linked
        has_table = linked.current is not None or linked.table is not None
        self.columns.setVisible(has_table)

    def _save(self, ending: str) -> None:
        path = ask(self.native, self._proposed("map"), ending, FORMATS[ending][1])
        if path is not None:
            self._player.save(path)

    def _save_session(self) -> None:
        kind = f"Embedding game session (*{ENDING})"
        path = ask(self.native, self._proposed("session"), ENDING, kind)
        if path is not None:
            self._player.save_session(path)

    def _proposed(self, what: str) -> str:
        dataset = self._session.dataset
        return what if dataset is None else f"{Path(dataset.name).stem}_{what}"


def ask(parent: QWidget, proposed: str, ending: str, kind: str) -> Path | None:
    """Ask where to save; the name gets the ending, whatever was typed."""
    name, _ = QFileDialog.getSaveFileName(parent, "Save", proposed + ending, kind)
    if not name:
        return None
    path = Path(name)
    return path if path.suffix.lower() == ending else Path(f"{path}{ending}")
