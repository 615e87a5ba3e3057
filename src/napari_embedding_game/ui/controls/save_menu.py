"""A button with the menu of formats to save in."""

from __future__ import annotations

from functools import partial

from qtpy.QtWidgets import QMenu, QPushButton

from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.layouts import add_entries
from napari_embedding_game.ui.tasks.save_dialog import ask, proposed
from napari_embedding_game.ui.tasks.writing import WritingTask

FORMATS = {
    ".h5ad": ("AnnData", "AnnData", ""),
    ".csv": ("Table", "Comma-separated values", ""),
    ".parquet": ("Table", "Parquet", ""),
    ".png": ("Figure", "Picture", ""),
    ".svg": ("Figure", "Scalable picture", ""),
    ".pdf": ("Figure", "PDF", ""),
    ".gif": ("Film of the run", "Animated picture", ""),
    ".html": (
        "Web page",
        "Web page",
        "One file to send, with search, markers and a lasso.",
    ),
    ".ipynb": (
        "Notebook",
        "Jupyter notebook",
        "Code that makes this map again from the data.",
    ),
    ".txt": ("Methods paragraph", "Text", "With versions and citations."),
}
"""Entry, kind of file and tooltip of each ending."""


class SaveMenu(QPushButton):
    """The Save button; asks for the path of the file, and has it written."""

    def __init__(self, session: Session, writing: WritingTask) -> None:
        super().__init__("Save")
        self.setToolTip("Write map, clusters and settings to a file.")
        self._session, self._writing = session, writing
        menu = QMenu(self)
        add_entries(
            menu,
            (
                (f"{words} ({ending})…", partial(self._save, ending), tip)
                for ending, (words, _, tip) in FORMATS.items()
            ),
        )
        menu.addSeparator()
        add_entries(menu, [("Session, to go on later…", self._save_session, "")])
        self.setMenu(menu)

    def _save(self, ending: str) -> None:
        name = proposed(self._session.dataset, "map")
        path = ask(self, name, {ending: FORMATS[ending][1]})
        if path is not None:
            self._writing.save(path)

    def _save_session(self) -> None:
        name = proposed(self._session.dataset, "session")
        path = ask(self, name, {ENDING: "Embedding game session"})
        if path is not None:
            self._writing.save_session(path)
