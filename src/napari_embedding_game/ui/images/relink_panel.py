"""Say which layer of a session is not open, and offer what can be done about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from magicgui.widgets import PushButton
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.form_widgets import show_text, text_label

if TYPE_CHECKING:
    from napari_embedding_game.ui.images.relink import Missing


class RelinkPanel(QWidget):
    """Appears while something is missing.

    ``image_found`` says that the offered layer is the image, ``folder_located`` brings
    the path that a person chose.
    """

    image_found = Signal()
    folder_located = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.text = text_label(role="warning")
        self.image = PushButton(
            text="",
            tooltip="Cut the pictures of the objects out of this layer. Its pixels fit "
            "those of the labels.",
        )
        WrappedText(self.image.native)
        self.folder = PushButton(
            text="Locate folder…",
            tooltip="Choose where the images are now; the map stays as it is.",
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for widget in (self.text, self.image.native, self.folder.native):
            column.addWidget(widget)
        self.image.changed.connect(lambda: self.image_found.emit())
        self.folder.changed.connect(self._locate)
        self.hide()

    def show_missing(self, missing: Missing) -> None:
        """Say what is missing; nothing where it is not."""
        show_text(self.text, missing.sentence, "warning")
        self.image.text = f"This is the image: {missing.candidate}"
        self.image.native.setVisible(bool(missing.candidate))
        self.folder.native.setVisible(missing.is_folder)
        self.setVisible(bool(missing.sentence))

    def _locate(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Where the images are now")
        if name:
            self.folder_located.emit(Path(name))
