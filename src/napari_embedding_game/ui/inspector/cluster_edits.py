"""Editing clusters by menu, button and key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import QPoint, Qt
from qtpy.QtGui import QAction, QColor, QKeySequence
from qtpy.QtWidgets import (
    QColorDialog,
    QHBoxLayout,
    QInputDialog,
    QMenu,
    QToolButton,
    QWidget,
)

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.session.groups import is_of_levels
from napari_embedding_game.session.reclustering import (
    Reclustered,
    reclustering,
    take_parts,
)
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.view import CLUSTERS
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.cluster_table import ClusterTable
from napari_embedding_game.ui.style.cluster_colors import ClusterColors
from napari_embedding_game.ui.style.coloring import CLUSTER, name_of
from napari_embedding_game.ui.style.colors import to_hex
from napari_embedding_game.ui.tasks.worker import Latest

UNDO, REDO = "Ctrl+Z", "Ctrl+Shift+Z"
ARROW = 26
"""Pixels of a button with an arrow on it."""
MOST_PARTS = 60
AS_ANNOTATION = "Use {} as annotation"
AGAIN = (
    "Clusters to be found among the {} selected points alone, along their nearest\n"
    "neighbours in the data. No point moves; Undo brings the former clusters back."
)


class ClusterEdits(QWidget):
    """A row of buttons and the table's menu; all act on the selected clusters.

    Parameters
    ----------
    session : Session
    table : ClusterTable
    palette : ClusterColors
    tell : callable
        Receives a sentence for the person, "" when there is nothing to say.
    """

    def __init__(
        self,
        session: Session,
        table: ClusterTable,
        palette: ClusterColors,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._session = session
        self._table = table
        self._palette = palette
        self._tell = tell
        self.edit_name = table.edit_name
        """Lets a person type the name of a cluster."""
        self._book = session.clusters
        self._finding = Latest(self, self._on_reclustered, self._on_trouble)
        self._make()
        self._build()
        table.customContextMenuRequested.connect(self._open_menu)
        self._connections = Connections(self)
        book, selection = self._book, session.selection
        changes = (selection.changed, book.changed)
        self._connections.connect_all(changes, self.follow)
        others = (session.look.events.color_by, session.dataset_changed)
        self._connections.connect_all(others, self._offer_column)
        self._offer_column()
        self.follow()

    def follow(self) -> None:
        """Enable what can be done now."""
        chosen = self._chosen()
        for action in (self.rename, self.split, self.recolor, self.note):
            action.setEnabled(len(chosen) == 1)
        self.merge.setEnabled(len(chosen) > 1)
        self.release.setEnabled(len(chosen) == 1 and chosen[0].is_named)
        self.make.setEnabled(self._session.selection.is_of_points)
        for button in self._buttons:
            button.setVisible(button.defaultAction().isEnabled())
        is_some = not self._session.selection.is_empty
        self.recluster.setEnabled(is_some and not self._finding.is_busy)
        for action, label in (
            (self.undo, self._book.undo_label),
            (self.redo, self._book.redo_label),
        ):
            action.setEnabled(bool(label))
            label = label or f"Nothing to {action.text().lower()}"
            action.setToolTip(f"{label} ({action.shortcut().toString()})")

    def name(self, cluster: int, name: str) -> None:
        """Give a cluster the name that was typed."""
        self._do(self._book.rename, cluster, name)

    # Making

    def _make(self) -> None:
        book, action = self._book, self._action
        self.rename = action("Rename", "Give the cluster a name (F2).", self._rename)
        self.rename.setShortcut(QKeySequence("F2"))
        self.merge = action(
            "Merge", "Make one cluster of the selected ones.", self._merge
        )
        self.split = action("Split", "Divide the cluster in two.", self._split)
        self.recolor = action(
            "Colour…", "Give the cluster another colour.", self._recolor
        )
        self.note = action(
            "Note…", "Write down what is known of the cluster.", self._annotate
        )
        self.release = action(
            "Remove annotation",
            "Let the game and the slider decide again where its points belong.",
            lambda: self._do(book.release, self._chosen()[0].id),
        )
        self.make = action(
            "New cluster",
            "Make the selected points a cluster of their own.",
            self._make_cluster,
        )
        self.recluster = action(
            "Cluster again…",
            "Find clusters among the selected points alone, where they are: none of "
            "them moves.",
            self._recluster,
        )
        self.use = action(
            AS_ANNOTATION,
            "Give each group of the column on show its name as an annotation, which "
            "stays on its points.",
            self._use_column,
        )
        self.undo = action("Undo", "", lambda: self._do(book.undo))
        self.redo = action("Redo", "", lambda: self._do(book.redo))
        self.undo.setShortcut(QKeySequence(UNDO))
        self.redo.setShortcut(QKeySequence(REDO))
        self.undo.setIconText("↶")  # their words would widen the whole window
        self.redo.setIconText("↷")

    def _action(self, text: str, tip: str, act: Callable[[], Any]) -> QAction:
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda: act())
        return action

    def _build(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        # Six buttons beside each other say how narrow a window can be.
        self.setStyleSheet('QToolButton[role="edit"] { padding: 3px 5px; }')
        self._buttons = [_button(a) for a in (self.merge, self.split, self.make)]
        for button in self._buttons:
            row.addWidget(button)
        more = QToolButton()
        more.setText("More ▾")
        more.setProperty("role", "edit")
        more.setToolTip("Colour, note and other edits of the selected clusters.")
        more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more = QMenu(more)
        self.more.setToolTipsVisible(True)
        self.more.addActions([self.recolor, self.note])
        self.more.addActions([self.recluster, self.release, self.use])
        more.setMenu(self.more)
        row.addWidget(more)
        row.addStretch(1)
        for action in (self.undo, self.redo):
            button = _button(action)
            button.setFixedWidth(ARROW)
            row.addWidget(button)

    def _open_menu(self, place: QPoint) -> None:
        menu = QMenu(self._table)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self.rename, self.merge, self.split])
        menu.addSeparator()
        menu.addActions([self.recolor, self.note])
        menu.addActions([self.recluster, self.release, self.use])
        menu.addSeparator()
        view, chosen = self._session.view, self._chosen()
        level = str(chosen[0].id) if len(chosen) == 1 else ""
        is_hidden = level in view.hidden_levels(CLUSTERS)
        hide = view.unhide if is_hidden else view.hide
        for text, act, can in (
            ("Show" if is_hidden else "Hide", lambda: hide(CLUSTERS, level), level),
            ("Show only this", lambda: view.isolate(CLUSTERS, level), level),
            ("Show all", view.show_all, view.n_hidden),
        ):
            entry = menu.addAction(text)
            entry.setVisible(bool(can))
            entry.triggered.connect(lambda _=False, act=act: act())
        menu.popup(self._table.viewport().mapToGlobal(place))

    # Acting

    def _chosen(self) -> list[Cluster]:
        known = self._book.clustering.by_id
        return [known[c] for c in self._session.selection.clusters if c in known]

    def _do(self, edit: Callable[..., Any], *what: Any) -> Any:
        """Make an edit; one that cannot be made is explained."""
        self._tell("")
        try:
            return edit(*what)
        except (DataError, InputError) as error:
            self._tell(str(error))
            return None

    def _rename(self) -> None:
        self.edit_name(self._chosen()[0].id)

    def _merge(self) -> None:
        merged = self._do(self._book.merge, [c.id for c in self._chosen()])
        if merged is not None:
            self._session.selection.select(merged)

    def _split(self) -> None:
        parts = self._do(self._session.split, self._chosen()[0].id)
        if parts is not None:
            self._session.selection.replace(parts)

    def _recolor(self) -> None:
        cluster = self._chosen()[0]
        present = QColor(to_hex(self._palette.of((cluster,))[0]))
        color = QColorDialog.getColor(present, self, f"Colour of {cluster.name}")
        if color.isValid():
            self._do(self._book.recolor, cluster.id, color.name())

    def _annotate(self) -> None:
        cluster = self._chosen()[0]
        note, given = QInputDialog.getMultiLineText(
            self, "Note", f"What is known of {cluster.name}:", cluster.note
        )
        if given:
            self._do(self._book.annotate, cluster.id, note)

    def _make_cluster(self) -> None:
        points = self._session.selection.points
        made = self._do(self._book.make_cluster, points)
        if made is not None:
            self._session.selection.select(made)
            self.edit_name(made)

    def _column(self) -> str:
        """Return the column of groups that colours the map; "" if none does."""
        dataset, choice = self._session.dataset, self._session.look.color_by
        name = None if dataset is None else name_of(choice, dataset)
        if dataset is None or name is None or name not in dataset.obs:
            return ""
        return name if is_of_levels(dataset.obs[name]) else ""

    def _offer_column(self, event: object = None) -> None:
        column = self._column()
        self.use.setVisible(bool(column))
        self.use.setText(AS_ANNOTATION.format(column))

    def _use_column(self) -> None:
        dataset = self._session.dataset
        assert dataset is not None
        column = dataset.obs[self._column()]
        self._do(self._session.clusters.annotate_by, column)
        self._session.look.color_by = CLUSTER

    def _recluster(self) -> None:
        """Ask for how many, and cluster the selected points in the background."""
        n_points = len(self._session.selection.rows)
        n_parts, is_chosen = QInputDialog.getInt(
            *(self, "Cluster again", AGAIN.format(f"{n_points:,}")),
            *(3, 2, max(2, min(MOST_PARTS, n_points))),
        )
        if not is_chosen:
            return
        find = self._do(reclustering, self._session, n_parts)
        if find is None:
            return
        self._tell(f"Clustering {n_points:,} points …")
        self._finding.ask(find)
        self.follow()

    def _on_reclustered(self, found: Reclustered) -> None:
        parts = self._do(take_parts, self._session, found)
        if parts is not None:
            self._session.selection.replace(parts)
        self.follow()

    def _on_trouble(self, error: BaseException) -> None:
        self._tell(sentence(error))
        self.follow()


def _button(action: QAction) -> QToolButton:
    button = QToolButton()
    button.setDefaultAction(action)
    button.setProperty("role", "edit")
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    return button
