"""Ask before other data replace a map with a person's edits."""

from __future__ import annotations

from typing import Literal

from qtpy.QtWidgets import QMessageBox, QWidget

Answer = Literal["save", "replace", "cancel"]

LATER = "Without saving, a copy stays for a while under Open > Recent maps."


def ask_to_replace(parent: QWidget | None, name: str, made: str) -> Answer:
    """Ask whether other data may take the place of the map; Escape is no."""
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
