"""File dialogs for saving."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QMessageBox, QWidget

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.session import Session, error_text
from napari_embedding_game.ui.style.layouts import escape_tooltip

OTHER_DATA = "Nothing was saved, as other data have come meanwhile: save again."


def ask_save_path(
    parent: QWidget | None, session: Session, what: str, kinds: Mapping[str, str]
) -> Path | None:
    """Ask where to save as one of some kinds, words by their endings; None: not at all.

    The name is proposed by the data and ``what`` is saved of them.  It gets the ending
    of the chosen kind, the first one by default. A file of that name, which the dialog
    has not asked about, is replaced if a person agrees.
    """
    filters = {f"{words} (*{ending})": ending for ending, words in kinds.items()}
    first, dataset = next(iter(kinds)), session.dataset
    name = what if dataset is None else f"{Path(dataset.name).stem}_{what}"
    name = re.sub(r'[<>:"\\|?*]', "_", name)  # of a layer; Windows cuts it off at a ":"
    typed, kind = QFileDialog.getSaveFileName(
        parent, "Save", name + first, ";;".join(filters)
    )
    if typed and not session.shows_dataset(dataset):  # they were being read
        session.show_message(OTHER_DATA)
        return None
    path = Path(typed)
    if typed and path.suffix.lower() not in kinds:
        path = Path(f"{path}{filters.get(kind, first)}")
        if os.path.exists(path) and not _confirm_replacement(parent, path):
            return None
    return path if typed else None


def ask_and_save(
    parent: QWidget,
    session: Session,
    what: str,
    kinds: Mapping[str, str],
    write: Callable[[Path], object],
) -> str:
    """Ask for a file and write it; return what came of it in a sentence.

    ``kinds``: as for :func:`ask_save_path`. "": nothing was written; the session says
    why.
    """
    path = ask_save_path(parent, session, what, kinds)
    if path is None:
        return ""
    try:
        write(path)
    except (DataError, OSError) as error:
        session.show_message(error_text(error))
        return ""
    return f"Saved as {path.name}."


def _confirm_replacement(parent: QWidget | None, path: Path) -> bool:
    question = escape_tooltip(f"{path.name} already exists. Replace it?")
    return (
        QMessageBox.question(parent, "Save", question) == QMessageBox.StandardButton.Yes
    )
