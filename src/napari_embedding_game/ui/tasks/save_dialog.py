"""File dialogs for saving."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QMessageBox, QWidget

from napari_embedding_game.data.dataset import Dataset


def proposed(dataset: Dataset | None, what: str) -> str:
    """Return a name for what is saved of a dataset, without an ending."""
    return what if dataset is None else f"{Path(dataset.name).stem}_{what}"


def ask(parent: QWidget | None, name: str, kinds: Mapping[str, str]) -> Path | None:
    """Ask where to save as one of some kinds, words by their endings; None: not at all.

    The name gets the ending of the chosen kind, the first one by default. A file of
    that name, which the dialog has not asked about, is replaced if a person agrees.
    """
    filters = {f"{words} (*{ending})": ending for ending, words in kinds.items()}
    first = next(iter(kinds))
    typed, kind = QFileDialog.getSaveFileName(
        parent, "Save", name + first, ";;".join(filters)
    )
    path = Path(typed)
    if typed and path.suffix.lower() not in kinds:
        path = Path(f"{path}{filters.get(kind, first)}")
        if path.exists() and not _is_replaced(parent, path):
            return None
    return path if typed else None


def _is_replaced(parent: QWidget | None, path: Path) -> bool:
    question = f"{path.name} already exists. Replace it?"
    return (
        QMessageBox.question(parent, "Save", question) == QMessageBox.StandardButton.Yes
    )
