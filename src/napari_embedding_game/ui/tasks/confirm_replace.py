"""Ask before other data replace a map with a person's edits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from qtpy.QtWidgets import QMessageBox, QWidget

from napari_embedding_game.session.maps import Work
from napari_embedding_game.session.sources import Source
from napari_embedding_game.ui.tasks.save_dialog import ask_for_session

if TYPE_CHECKING:
    from napari_embedding_game.ui.tasks.writing import WritingTask
    from napari_embedding_game.ui.workspace import Workspace

Answer = Literal["save", "replace", "cancel"]

LATER = "Without saving, a copy stays for a while under Open > Recent maps."


class Replacing:
    """Guards what a person made of the open maps against being replaced unasked.

    Parameters
    ----------
    workspace : Workspace
    writing : WritingTask
        Saves the session where a person wants it saved first.
    """

    def __init__(self, workspace: Workspace, writing: WritingTask) -> None:
        self._workspace = workspace
        self._writing = writing
        self.parent_widget: QWidget | None = None
        """What the question is asked over."""
        self._source_being_read: Source | Path | None = None
        self._given_up: Work = ([], {})
        """What may take the place of what, as a person has said."""

    def is_allowed(self, by: Source | Path, then: Callable[[], None]) -> bool:
        """Return whether something may take the place of the maps, or ask.

        Once for each, unless more has been made meanwhile.

        Parameters
        ----------
        by : Source or Path
        then : callable
            Is called where a person wants the session saved first, once it is: until
            then nothing may take its place.
        """
        maps, dataset = self._workspace.maps, self._workspace.session.dataset
        made, work = maps.made, maps.work
        if not made or dataset is None or work == self._writing.saved_work:
            return True
        if by is self._source_being_read and work == self._given_up:
            return True
        answer = ask_to_replace(self.parent_widget, dataset.name, made)
        if answer == "save":
            path = ask_for_session(self.parent_widget, dataset)
            if path is not None:
                self._writing.save_session(path, then)
        if answer == "replace":
            self._source_being_read, self._given_up = by, work
        return answer == "replace"


def ask_to_replace(parent: QWidget | None, name: str, made: str) -> Answer:
    """Ask whether other data may take the place of the map; Escape is no.

    Parameters
    ----------
    name : str
        What a person calls the data of the map.
    made : str
        What was made of them, in words.
    """
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle("Replace the map")
    box.setText(f"The map of {name} has {made}: replace it?")
    box.setInformativeText(LATER)
    save = box.addButton("Save session…", QMessageBox.ButtonRole.AcceptRole)
    replace = box.addButton("Replace", QMessageBox.ButtonRole.DestructiveRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(save)
    box.setEscapeButton(cancel)
    box.exec()
    clicked = box.clickedButton()
    box.deleteLater()
    if clicked is save:
        return "save"
    return "replace" if clicked is replace else "cancel"
