"""Choose the space in which selected points become a child map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from magicgui.widgets import ComboBox
from qtpy.QtWidgets import QDialog, QVBoxLayout, QWidget

from napari_embedding_game.data import readers
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import FileSource, LoadResult, Source
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.columns_panel import MOST, ColumnsPanel
from napari_embedding_game.ui.style.form_widgets import add_row, form
from napari_embedding_game.ui.tasks.worker import Latest

AS_HERE, CHOSEN = "As here", "Chosen columns …"


class ChildSpace(QWidget):
    """Offers the spaces of the source that the open map is of; hidden without any.

    Parameters
    ----------
    session : Session
    maps : MapTree
    """

    def __init__(self, session: Session, maps: MapTree) -> None:
        super().__init__()
        self._session = session
        self._maps = maps
        self._looking = Latest(self, self._on_looked, self._on_nothing)
        self.source: Source | None = None
        """What is read where another space is chosen."""
        self._spaces: Sequence[str] = ()
        self._columns: Sequence[str] = ()
        self.choice = ComboBox(
            choices=[AS_HERE],
            tooltip="What a map of its own is made of: the same numbers as this map, "
            "or others of the same data.",
        )
        rows = form()
        add_row(rows, "Its space", self.choice)
        self.setLayout(rows)
        self._connections = Connections(self)
        self._connections.connect(session.dataset_changed, self._on_dataset)
        self._connections.connect(session.restored, self._on_restored)
        self._offer()

    def note_asked(self, source: Source | None) -> None:
        """Follow what is going to be read; None: a session file was taken up."""
        if source is None:
            self.source, self._spaces, self._columns = None, (), ()

    def note_loaded(self, source: Source, loaded: LoadResult) -> None:
        """Offer the spaces of the source that was taken up."""
        self.source = source
        self._spaces, self._columns = loaded.spaces, loaded.columns
        self._offer()

    def ask(self) -> tuple[bool, ReadOptions | None]:
        """Return whether to go on, and how to read the data; None: as they are.

        Asks for the columns where they are to be chosen.
        """
        chosen = self.choice.value
        if chosen == AS_HERE:
            return True, None
        if chosen != CHOSEN:
            return True, ReadOptions(space=chosen, missing="drop")
        columns = self._choose_columns()
        return bool(columns), ReadOptions(
            space=self._present(), columns=columns, missing="drop"
        )

    # Inside

    def _on_dataset(self, dataset: Dataset | None) -> None:
        """Forget the choice, and the source where the data are of another one."""
        is_same = dataset is not None and self._maps.is_moving
        if not is_same:
            self.source, self._spaces, self._columns = None, (), ()
        self._offer()

    def _on_restored(self, saved: object) -> None:
        """Look what else is in the file of a session that was opened."""
        dataset = self._session.dataset
        path = None if dataset is None else dataset.source
        if self.source is not None or path is None or not path.exists():
            return

        def look() -> Stages[tuple[Path, list[str], list[str]]]:
            spaces = yield from read_apart(path, readers.spaces)
            return path, spaces, (yield from read_apart(path, readers.columns))

        self._looking.ask(look)

    def _on_looked(self, found: tuple[Path, list[str], list[str]]) -> None:
        path, spaces, columns = found
        dataset = self._session.dataset
        if self.source is None and dataset is not None and dataset.source == path:
            self.source = FileSource(path)
            self._spaces, self._columns = spaces, columns
            self._offer()

    def _on_nothing(self, error: object) -> None:
        """The map can still be taken apart as it is."""

    def _offer(self) -> None:
        present = self._present()
        others = [space for space in self._spaces if space != present]
        columns = [CHOSEN] if 2 < len(self._columns) <= MOST else []
        self.choice.choices = []  # else those that stay keep their places
        self.choice.choices = [AS_HERE, *others, *columns]
        self.choice.value = AS_HERE
        self.setVisible(len(self.choice.choices) > 1)

    def _present(self) -> str | None:
        """Return the space of the open map, if it is one of the source's."""
        dataset = self._session.dataset
        space = None if dataset is None else dataset.space
        return space if space in self._spaces else None

    def _choose_columns(self) -> tuple[str, ...]:
        """Ask for columns; none when it was called off."""
        dataset = self._session.dataset
        dialog = ColumnsDialog(
            self._columns, dataset.var_names if dataset else (), self
        )
        return dialog.panel.chosen() if dialog.exec() else ()


class ColumnsDialog(QDialog):
    """A list of columns with ticks, to be asked once."""

    def __init__(
        self, columns: Sequence[str], ticked: Sequence[str], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Columns of the new map")
        self.panel = ColumnsPanel()
        self.panel.fold.expand(animate=False)
        QVBoxLayout(self).addWidget(self.panel)
        self.panel.set_columns(columns, ticked)
        self.panel.wanted.connect(self.accept)
