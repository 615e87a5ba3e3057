"""Score gene sets, typed or from a file, and colour the map by them."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QSearchableListWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.data.gene_sets import (
    GeneScores,
    GeneSet,
    add_score,
    read_gene_sets,
    score_genes,
)
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import choice_of_column
from napari_embedding_game.ui.style.form_widgets import Fold, show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

GENES_TIP = (
    "Genes of the set, separated by commas or spaces. The score of a cell is their "
    "mean less that of other genes of like expression (scanpy.tl.score_genes)."
)
FILE_TIP = (
    "Take sets from a .gmt file, as of MSigDB or Enrichr, or one set from a text file "
    "with a gene in each line."
)
FILES = "Gene sets (*.gmt *.txt *.grp *.csv);;All files (*)"


class GeneSetsPanel(Fold):
    """The genes of a set, a list of sets from a file, and a button.

    The score becomes a column of the metadata; the map is coloured by it.
    """

    def __init__(self, session: Session) -> None:
        inside = QWidget()
        super().__init__("Gene sets", inside)
        self._session = session
        self._scoring = Latest(self, self._on_scored, self._on_failed)
        self._sets: list[GeneSet] = []
        self.search = QSearchableListWidget()
        self.search.setFixedHeight(150)
        self.search.layout().setContentsMargins(0, 0, 0, 0)
        self.filter, self.list = self.search.filter_widget, self.search.list_widget
        self.filter.setPlaceholderText("Find a set")
        self.list.setToolTip("Sets of the file: click one to see its genes.")
        self.genes, self.name = QLineEdit(), QLineEdit()
        self.genes.setPlaceholderText("Type genes: CD3D, CD3E, CD2")
        self.genes.setToolTip(GENES_TIP)
        self.name.setPlaceholderText("Name of the set")
        self.name.setToolTip("What the score is called in Colour by and in files.")
        self.score, self.file = QPushButton("Score"), QPushButton("From file…")
        self.score.setToolTip("Score every cell, and colour the map by it.")
        self.file.setToolTip(FILE_TIP)
        self.state = text_label()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.search)
        column.addWidget(self.genes)
        row = QHBoxLayout()
        row.addWidget(self.name, 1)
        row.addWidget(self.score)
        row.addWidget(self.file)
        column.addLayout(row)
        column.addWidget(self.state)
        self.genes.textChanged.connect(self._enable)
        self.genes.returnPressed.connect(self._score)
        self.name.returnPressed.connect(self._score)
        self.score.clicked.connect(self._score)
        self.file.clicked.connect(self._open)
        self.list.currentRowChanged.connect(self._on_row)
        self._connections = Connections(self)
        self._connections.connect(session.dataset_changed, self._on_dataset)
        self._show_sets([])
        self._on_dataset(session.dataset)

    # Inside

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._scoring.stop()
        show_text(self.state, "")
        self.setVisible(dataset is not None and dataset.has_expression)
        self._enable()

    def _enable(self) -> None:
        has_genes = bool(split_names(self.genes.text()))
        self.score.setEnabled(has_genes and not self._scoring.is_busy)

    def _open(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open gene sets", "", FILES)
        if not name:
            return
        try:
            sets = read_gene_sets(Path(name))
        except (DataError, OSError) as error:
            show_text(self.state, sentence(error), "warning")
            return
        self._show_sets(sets)
        told = f"{len(sets):,} sets in {Path(name).name}: choose one, and score it."
        show_text(self.state, told if len(sets) > 1 else "", "note")
        if len(sets) == 1:
            self._take(sets[0])

    def _show_sets(self, sets: list[GeneSet]) -> None:
        """List the sets of a file, where there are several."""
        self._sets = sets
        self.search.setVisible(len(sets) > 1)
        self.filter.clear()
        with QSignalBlocker(self.list):
            self.list.clear()
            self.list.addItems([f"{one.name}  ({len(one.genes)})" for one in sets])

    def _on_row(self, row: int) -> None:
        if 0 <= row < len(self._sets):
            self._take(self._sets[row])

    def _take(self, gene_set: GeneSet) -> None:
        """Show the genes of a set, to be scored or changed."""
        self.genes.setText(", ".join(gene_set.genes))
        self.genes.setCursorPosition(0)
        self.name.setText(gene_set.name)
        self.name.setCursorPosition(0)

    def _score(self) -> None:
        dataset, genes = self._session.dataset, split_names(self.genes.text())
        if dataset is None or not genes or self._scoring.is_busy:
            return
        wanted = GeneSet(self.name.text().strip() or f"{genes[0]} set", tuple(genes))
        show_text(self.state, "Scoring …", "note")
        self._scoring.ask(lambda: score_genes(dataset, wanted))
        self._enable()

    def _on_scored(self, scores: GeneScores) -> None:
        self._enable()
        dataset = self._session.dataset
        assert dataset is not None
        name = self._session.add(add_score, scores)
        self._session.look.color_by = choice_of_column(name, dataset)
        role = "warning" if scores.found.missing else "note"
        show_text(self.state, f"{name}: {scores.told}", role)

    def _on_failed(self, error: BaseException) -> None:
        self._enable()
        show_text(self.state, sentence(error), "warning")
