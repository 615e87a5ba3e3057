"""A panel that scores typed genes or sets of a file and colours the map by scores."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QInputDialog, QLineEdit

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.gene_names import FoundNames, split_names
from napari_embedding_game.data.gene_sets import (
    GeneSet,
    read_gene_sets,
    score_genes,
    with_score_column,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import color_by_column
from napari_embedding_game.ui.style.form_widgets import FoldingSection, TextLabel
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

GENES_TIP = (
    "A cell's score: the mean of these genes less that of others of like expression "
    "(scanpy.tl.score_genes)."
)
FILE_TIP = "Take sets from a .gmt file (MSigDB, Enrichr), or one from a text file."
FILES = "Gene sets (*.gmt *.txt *.grp *.csv);;All files (*)"


class GeneSetsPanel(FoldingSection):
    """Fields for the genes and the name of a set, and buttons to score and to open.

    The score becomes a column of the metadata and the colour variable of the map.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.genes, self.name = QLineEdit(), QLineEdit()
        self.genes.setPlaceholderText("Type genes: CD3D, CD3E, CD2")
        self.genes.setToolTip(GENES_TIP)
        self.genes.setAccessibleName("Genes")
        self.name.setPlaceholderText("Name of the set")
        self.name.setAccessibleName("Name")
        self.name.setToolTip("What the score is called in Colour by and in files.")
        self.score = push_button(
            "Score",
            "Score every cell, and colour the map by it.",
            self._score_typed_genes,
        )
        self.file = push_button("From file…", FILE_TIP, self._open_gene_set_file)
        self.state = TextLabel()
        buttons = horizontal_box(self.name, self.score, self.file)
        super().__init__("Gene sets", self.genes, buttons, self.state)
        self._score_jobs = PaneJobRunner(
            self, "Scoring …", self._on_genes_scored, self._show_message
        )
        self.genes.textChanged.connect(self._update_score_button)
        self.genes.returnPressed.connect(self._score_typed_genes)
        self.name.returnPressed.connect(self._score_typed_genes)
        # Also while this is hidden: a score belongs to the data of its request.
        Connections(self).connect(self._on_dataset_changed, session.dataset_changed)
        self._on_dataset_changed(session.dataset)

    def _on_dataset_changed(self, dataset: Dataset | None) -> None:
        """Stop scoring the former data, and clear the message."""
        self._score_jobs.stop()
        self._show_message("")

    def _update_score_button(self) -> None:
        """Show the Score button while genes are typed and nothing is being scored."""
        has_genes = bool(split_names(self.genes.text()))
        self.score.setVisible(has_genes and not self._score_jobs.is_busy)

    def _open_gene_set_file(self) -> None:
        """Ask for a file, and for one of its sets; put that set into the fields.

        Nothing is scored yet.  A file with one set needs no choice; an unreadable file
        is refused with a message, and a cancelled dialog changes nothing.
        """
        name, _ = QFileDialog.getOpenFileName(self, "Open gene sets", "", FILES)
        if not name:
            return
        warn = partial(self._show_message, role="warning")
        sets = call_or_show_error(warn, read_gene_sets, Path(name))
        if sets is None:
            return
        names = [f"{gene_set.name}  ({len(gene_set.genes)})" for gene_set in sets]
        chosen = names[0]
        if len(sets) > 1:  # the list can be searched by typing
            words = "Gene sets", f"Sets of {Path(name).name}:"
            chosen, is_given = QInputDialog.getItem(self, *words, names)
            if not is_given or chosen not in names:
                return
        gene_set = sets[names.index(chosen)]  # can be edited before it is scored
        self.name.setText(gene_set.name)
        self.genes.setText(", ".join(gene_set.genes))
        for field in self.genes, self.name:
            field.setCursorPosition(0)

    def _score_typed_genes(self) -> None:
        """Score the typed genes in the background, unless there are none or a job runs.

        A set without a typed name is named after its first gene.
        """
        dataset, genes = self._session.dataset, split_names(self.genes.text())
        if dataset is None or not genes or self._score_jobs.is_busy:
            return
        gene_set = GeneSet(self.name.text().strip() or f"{genes[0]} set", tuple(genes))
        self._score_jobs.submit(lambda: (gene_set, *score_genes(dataset, gene_set)))

    def _on_genes_scored(self, scored: tuple[GeneSet, Any, FoundNames]) -> None:
        """Add the score as a column, colour by it and say how many genes were found.

        ``scored``: (the scored set, a score of each point, the names found and
        missing).  Missing genes make the message a warning.
        """
        gene_set, values, matched = scored
        name = self._session.add_columns(with_score_column, gene_set, values)
        color_by_column(self._session, name)
        n = len(gene_set.genes)
        share = f"{n - len(matched.missing)} of {n} genes found."
        role = "warning" if matched.missing else "note"
        self._show_message(f"{name}: {share} {matched.note}".rstrip(), role)

    def _show_message(self, text: str, role: str = "note") -> None:
        """Show a text, "" for none, and update the button."""
        self.state.show_text(text, role)
        self._update_score_button()
