"""A button with a menu of the formats in which a map can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from qtpy.QtWidgets import QMenu, QPushButton

from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.layouts import add_menu_entries, push_button
from napari_embedding_game.ui.tasks.save_dialog import ask_save_path
from napari_embedding_game.ui.tasks.writing import WritingTask

FORMATS: dict[str, tuple[Mapping[str, str], str]] = {
    "AnnData": ({".h5ad": "AnnData"}, ""),
    "Table": (
        {".csv": "Comma-separated values", ".parquet": "Parquet"},
        "For pandas or R. A spreadsheet takes a name that begins with =, + or @ for a "
        "formula: import the columns of names as text.",
    ),
    "Figure": ({".png": "Picture", ".svg": "Scalable picture", ".pdf": "PDF"}, ""),
    "Film of the run": ({".gif": "Animated picture"}, ""),
    "Web page": (
        {".html": "Web page"},
        "One file to send, with search, markers and a lasso.",
    ),
    "Notebook": (
        {".ipynb": "Jupyter notebook"},
        "Code that makes this map again from the data.",
    ),
    "Methods paragraph": ({".txt": "Text"}, "With versions and citations."),
    "Session, to go on later": ({ENDING: "Embedding game session"}, ""),
}
"""For each entry the titles of its formats, by ending, and its tooltip."""
TIP = "A figure, table, notebook … The rest stays under Recent maps."

SHARE = "Save to share: without folder names"
SHARE_TIP = (
    "Sessions, AnnData and notebooks then name your files without the folders they are "
    "in. Who opens one needs the data file beside it."
)


def make_save_button(session: Session, writing: WritingTask) -> QPushButton:
    """Return a button with a menu of formats; an entry asks for a path and saves.

    A last entry, to be ticked, leaves folder names out of the files.
    """

    def save(kinds: Mapping[str, str]) -> None:
        """Ask for a path with one of these endings, and write the map there."""
        path = ask_save_path(button, session, "map", kinds)
        if path is not None:
            writing.save(path, is_shared=shared.isChecked())

    button = push_button("Save", TIP)
    button.setMenu(menu := QMenu(button))
    for words, (kinds, tip) in FORMATS.items():
        text = f"{words} ({', '.join(kinds)})…"
        add_menu_entries(menu, [(text, partial(save, kinds), tip)])
    menu.addSeparator()
    shared = menu.addAction(SHARE)
    shared.setToolTip(SHARE_TIP)
    shared.setCheckable(True)
    return button
