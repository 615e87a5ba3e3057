"""A search box for clusters, genes, columns and rows by name, and for texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from qtpy.QtCore import QModelIndex, QStringListModel, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QCompleter, QLineEdit

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.gene_names import ENSEMBL
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import (
    COLUMN,
    choice_of_column,
    choice_of_feature,
    find_informative_columns,
)
from napari_embedding_game.ui.style.form_widgets import CTRL
from napari_embedding_game.ui.workspace import Workspace

MAX_HITS = 12
MAX_ROWS = 50_000
"""Rows up to which a part of a name finds a row and texts are searched while typing.

Of more rows only the full name finds a row, and texts are searched once the search in
texts is chosen.
"""
CLUSTER, ROW, VALUE, TEXTS = "cluster", "row", "value", "in texts"
TIP = f"Selects a cluster, colours by a gene or column, goes to a row ({CTRL}+F, /)."


class SearchBox(QLineEdit):
    """Offers matching names while a person types; Enter opens the marked hit."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self.hits: list[tuple[str, str]] = []
        """(kind, name) of each offered hit."""
        self._model = QStringListModel(self)
        self._completer = QCompleter(self._model, self)
        self._completer.setCompletionMode(
            QCompleter.CompletionMode.UnfilteredPopupCompletion
        )
        self._completer.setMaxVisibleItems(MAX_HITS + 1)  # the search in texts
        self._completer.setWidget(self)
        activated = self._completer.activated[QModelIndex]
        activated.connect(lambda index: self._open_offered_hit(index.row()))
        self.setPlaceholderText("Find a cluster, gene, row or text  ( / )")
        self.setToolTip(TIP)
        self.setAccessibleName("Find")
        self.setClearButtonEnabled(True)
        self.textEdited.connect(self._offer_matches)
        self.returnPressed.connect(self._open_offered_hit)
        changed = workspace.session.dataset_changed
        Connections(self).connect(self.clear_search, changed)

    def take_focus(self) -> None:
        """Move the focus to the box and select its text."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.selectAll()

    def clear_search(self, event: object = None) -> None:
        """Remove the typed text and its hits."""
        self.clear()
        self.hits = []
        self._completer.popup().hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """On Escape clear the box and focus its parent, which gets further keys."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
            return
        self.clear_search()
        self.clearFocus()
        parent = self.parentWidget()
        if parent is not None:
            parent.setFocus(Qt.FocusReason.OtherFocusReason)

    def _offer_matches(self, text: str) -> None:
        """Offer the hits for a typed text in a popup; hide the popup without hits."""
        self.hits = self._find_matches(text.strip())
        self._model.setStringList([f"{name}   ({kind})" for kind, name in self.hits])
        if self.hits:
            self._completer.complete()
        else:
            self._completer.popup().hide()

    def _open_offered_hit(self, index: int | None = None) -> None:
        """Open a hit and clear the box; do nothing where there is no such hit.

        ``index``: position of the hit; None for the hit marked in the popup, else the
        first.
        """
        if index is None:
            index = max(0, self._completer.popup().currentIndex().row())
        if index < len(self.hits):
            (kind, name), self.hits = self.hits[index], []
            self._completer.popup().hide()
            self.clear()
            self._open_hit(kind, name)

    def _open_hit(self, kind: str, name: str) -> None:
        """Select a cluster, a row or rows with a text; colour by a column or gene.

        ``kind``: CLUSTER, ROW, TEXTS, COLUMN or the name of a feature's kind.  All
        clusters or rows of the name are selected, and the camera moves to the first
        row.  If no text has ``name``, a message says so.
        """
        session = self._workspace.session
        dataset = session.dataset
        if dataset is None:
            return
        if kind == CLUSTER:
            clusters = session.clusters.clusters
            session.selection.select_clusters(
                [c.id for c in clusters if c.name == name]
            )
        elif kind == ROW:  # a file may have several rows of one name
            rows = np.flatnonzero(dataset.obs.index.astype(str) == name)
            session.selection.select_points(rows)
            self._workspace.reveal_wanted.emit(int(rows[0]))
        elif kind == TEXTS:
            has_text = np.array(
                [_contains_text(text, name) for text in dataset.texts or ()], bool
            )
            session.selection.toggle_points(has_text, is_added=False)
            if not has_text.any():
                session.show_message(f'No text has "{name}".')
        else:
            choice_of = choice_of_column if kind == COLUMN else choice_of_feature
            session.look.color_by = choice_of(name, dataset)

    def _find_matches(self, text: str) -> list[tuple[str, str]]:
        """Return (kind, name) of at most MAX_HITS names that match a text, best first.

        Names that equal the text come first, then names that begin with it, then names
        that contain it, whatever their case; 60,000 names take some 10 ms.  A full
        Ensembl identifier finds its gene by any name.  One more hit, the last, stands
        for a search in texts, if a text contains ``text`` or there are more than
        MAX_ROWS texts.
        """
        query, dataset = text.casefold(), self._workspace.session.dataset
        ranked: tuple[list[tuple[str, str]], ...] = [], [], []
        if dataset is not None and re.fullmatch(ENSEMBL, text, re.IGNORECASE):
            genes = dataset.find_profile_columns([text]).indices
            names = (dataset.profile_names[index] for index in genes)
            ranked[0].extend((_find_feature_kind(dataset), name) for name in names)
        for kind, names in self._iter_searchable_names(text) if query else ():
            for name in names:
                folded = name.casefold()
                if query in folded:
                    rank = 0 if folded == query else 2 - folded.startswith(query)
                    ranked[rank].append((kind, name))
        matches = [hit for hits in ranked for hit in dict.fromkeys(hits)][:MAX_HITS]
        texts = None if dataset is None or not query else dataset.texts
        if texts and (
            len(texts) > MAX_ROWS or any(_contains_text(each, query) for each in texts)
        ):
            matches.append((TEXTS, text))
        return matches

    def _iter_searchable_names(self, text: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield (kind, names) of clusters, columns, features and rows to search.

        Of more than MAX_ROWS rows only names that equal ``text`` are yielded.  Pixels
        of images are no features.
        """
        session = self._workspace.session
        dataset = session.dataset
        if dataset is None:
            return
        yield CLUSTER, [cluster.name for cluster in session.clusters.clusters]
        yield COLUMN, find_informative_columns(dataset)
        if dataset.images is None:  # the columns of images are pixels
            yield _find_feature_kind(dataset), dataset.profile_names
        rows = dataset.obs.index
        if len(rows) > MAX_ROWS:
            is_number = rows.dtype.kind in "iu" and text.isdecimal()
            rows = rows[rows == (int(text) if is_number else text)]
        yield ROW, rows.astype(str).tolist()


def _find_feature_kind(dataset: Dataset) -> str:
    """Return how hits among the features are called, such as "gene"."""
    return VALUE if dataset.column_noun == COLUMN else dataset.column_noun


def _contains_text(text: str, part: str) -> bool:
    return part.casefold() in text.casefold()
