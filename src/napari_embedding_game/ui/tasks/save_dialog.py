"""Dialogs that ask for a file to save."""

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
    parent: QWidget | None, session: Session, suffix: str, kinds: Mapping[str, str]
) -> Path | None:
    """Ask for the path of a file to save; return None if nothing is to be saved.

    The proposed name is the name of the data and ``suffix``.

    Parameters
    ----------
    parent : QWidget, optional
    session : Session
        None is returned, with a message, if its data change while the dialog is open.
    suffix : str
        What is saved, such as "map".
    kinds : mapping of str to str
        Titles of the formats by ending.  A name without one of these endings gets the
        ending of the chosen format; if a file of that name exists, a person is asked
        whether to replace it.
    """
    filters = {f"{words} (*{ending})": ending for ending, words in kinds.items()}
    first, dataset = next(iter(kinds)), session.dataset
    name = suffix if dataset is None else f"{Path(dataset.name).stem}_{suffix}"
    name = re.sub(r'[<>:"\\|?*]', "_", name)  # a layer's name; Windows cuts at a ":"
    typed, kind = QFileDialog.getSaveFileName(
        parent, "Save", name + first, ";;".join(filters)
    )
    if typed and not session.shows_dataset(dataset):  # other data were being read
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
    suffix: str,
    kinds: Mapping[str, str],
    write: Callable[[Path], object],
) -> str:
    """Ask for a file and write it; return "Saved as ...", or "" if nothing was written.

    An error of the kinds DataError and OSError is shown as the session's message;
    others are raised.  ``suffix`` and ``kinds`` are as for :func:`ask_save_path`;
    ``write`` receives the path.
    """
    path = ask_save_path(parent, session, suffix, kinds)
    if path is None:
        return ""
    try:
        write(path)
    except (DataError, OSError) as error:
        session.show_message(error_text(error))
        return ""
    return f"Saved as {path.name}."


def _confirm_replacement(parent: QWidget | None, path: Path) -> bool:
    """Ask whether to replace an existing file; return True for Yes."""
    question = escape_tooltip(f"{path.name} already exists. Replace it?")
    return (
        QMessageBox.question(parent, "Save", question) == QMessageBox.StandardButton.Yes
    )
