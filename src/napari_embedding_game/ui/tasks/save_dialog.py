"""File dialogs for saving."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.file.archive import ENDING

FIGURES = {".pdf": "PDF", ".svg": "Scalable picture", ".png": "Picture"}
"""Endings of figures with what they are called."""


def ask_for_session(parent: QWidget | None, dataset: Dataset | None) -> Path | None:
    """Ask for the name of a session file; None when it was called off."""
    kind = f"Embedding game session (*{ENDING})"
    return ask(parent, proposed(dataset, "session"), ENDING, kind)


def proposed(dataset: Dataset | None, what: str) -> str:
    """Return a name for what is saved of a dataset, without an ending."""
    return what if dataset is None else f"{Path(dataset.name).stem}_{what}"


def ask(parent: QWidget | None, proposed: str, ending: str, kind: str) -> Path | None:
    """Ask where to save; the name gets the ending, whatever was typed."""
    name, _ = QFileDialog.getSaveFileName(parent, "Save", proposed + ending, kind)
    if not name:
        return None
    path = Path(name)
    return path if path.suffix.lower() == ending else Path(f"{path}{ending}")


def ask_figure(parent: QWidget | None, proposed: str) -> Path | None:
    """Ask where to save a figure; the ending, .pdf if there is none, says how."""
    kinds = {f"{words} (*{ending})": ending for ending, words in FIGURES.items()}
    name, kind = QFileDialog.getSaveFileName(
        parent, "Save", f"{proposed}.pdf", ";;".join(kinds)
    )
    if not name:
        return None
    path = Path(name)
    is_told = path.suffix.lower() in FIGURES
    return path if is_told else Path(f"{path}{kinds.get(kind, '.pdf')}")
