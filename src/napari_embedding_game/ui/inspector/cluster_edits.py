"""Editing clusters by menu, button and key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import QPoint, Qt
from qtpy.QtGui import QAction, QColor, QKeySequence
from qtpy.QtWidgets import (
    QColorDialog,
    QInputDialog,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.palette import (
    cluster_colors,
    hexes,
    level_colors,
)
from napari_embedding_game.session.groups import is_of_levels
from napari_embedding_game.session.reclustering import Take, reclustering
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import BUILT_IN, CLUSTER, name_of
from napari_embedding_game.ui.style.layouts import in_lines, row
from napari_embedding_game.ui.style.table import Table
from napari_embedding_game.ui.tasks.worker import Latest

MOST_PARTS, MOST_LETTERS = 60, 44
"""Of clusters found anew; of a line on a button."""
AS_ANNOTATION = "Use {} as annotation"
AGAIN = "Clusters to be found among the {} selected points alone; none moves."
RECLUSTER_TIP = "Find clusters among the selected points alone."
RELEASE_TIP = "Let the game decide again where its points belong."
USE_TIP = "Name the points by the groups of this column."


class ClusterEdits(QWidget):
    """A row of buttons and the table's menu; all act on the selected clusters.

    Parameters
    ----------
    session : Session
    table : Table
        Of the clusters, by their ids.
    tell : callable
        Receives a sentence for the person, "" when there is nothing to say.
    """

    def __init__(
        self,
        session: Session,
        table: Table,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._session, self._book = session, session.clusters
        self._table, self._tell = table, tell
        self.edit_name: Callable[[int], None] = table.type_into
        """Lets a person type the name of a cluster."""
        self._finding = Latest(self, self._on_reclustered, self._on_trouble)
        self._told: tuple[str, ...] = ()
        """What was last said of the edits that can be undone and done again."""
        self._make()
        self._build()
        table.customContextMenuRequested.connect(self._open_menu)
        connections = Connections(self)
        changes = session.selection.changed, self._book.changed
        connections.connect_all(changes, self.follow)
        connections.connect(self._book.changed, self._tell_steps)
        connections.connect(session.dataset_changed, lambda _: tell(""))
        self.follow()
        self._tell_steps()

    def follow(self) -> None:
        """Enable what can be done with the selection."""
        chosen = self._chosen()
        is_one, is_some = len(chosen) == 1, not self._session.selection.is_empty
        self.rename.setEnabled(is_one)
        self.split.setEnabled(is_one)
        self.merge.setEnabled(len(chosen) > 1)
        self.make.setEnabled(self._session.selection.is_of_points)
        self.recluster.setEnabled(is_some and not self._finding.is_busy)
        # One that is not shown is not enabled either.
        self.recolor.setVisible(is_one)
        self.note.setVisible(is_one)
        self.release.setVisible(is_one and chosen[0].is_named)
        for button in self._buttons:
            button.setVisible(button.defaultAction().isEnabled())

    def name(self, cluster: int, name: str) -> None:
        """Give a cluster the name that was typed."""
        self._do(self._book.rename, cluster, name)

    # Making

    def _make(self) -> None:
        session, book, action = self._session, self._book, self._action
        do, select = self._do, self._select
        self.rename = action(
            "Rename",
            "Give the cluster a name (F2).",
            lambda: self.edit_name(self._first.id),
            "F2",
        )
        self.merge = action(
            "Merge",
            "Make one cluster of the selected ones.",
            lambda: select(book.merge, [c.id for c in self._chosen()]),
        )
        self.split = action(
            "Split",
            "Divide the cluster in two.",
            lambda: select(session.split, self._first.id),
        )
        color_tip = "Give the cluster another colour."
        self.recolor = action("Colour…", color_tip, self._recolor)
        note_tip = "Write down what is known of the cluster."
        self.note = action("Note…", note_tip, self._annotate)
        self.release = action(
            "Remove annotation", RELEASE_TIP, lambda: do(book.release, self._first.id)
        )
        make_tip = "Make the selected points a cluster of their own."
        self.make = action("New cluster", make_tip, self._make_cluster)
        self.recluster = action("Cluster again…", RECLUSTER_TIP, self._recluster)
        self.use = action(AS_ANNOTATION, USE_TIP, self._use_column)
        self.undo = action("", "", lambda: do(book.undo), "Ctrl+Z")
        self.redo = action("", "", lambda: do(book.redo), "Ctrl+Shift+Z")
        self._rare = [self.recolor, self.note, self.recluster, self.release, self.use]
        self._rare.append(self.redo)

    def _action(
        self, text: str, tip: str, act: Callable[[], Any], keys: str = ""
    ) -> QAction:
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda: act())
        return action

    def _build(self) -> None:
        # Six buttons beside each other say how narrow a window can be.
        self.setStyleSheet('QToolButton[role="edit"] { padding: 3px 5px; }')
        self._buttons = [_button(a) for a in (self.merge, self.split, self.make)]
        tip = "Colour, note and other edits of the selected clusters."
        more, self.more = menu_button("More ▾", tip)
        self.more.addActions(self._rare)
        self.more.aboutToShow.connect(self._offer_column)
        self.back = _button(self.undo, "link")
        """Undoes the last edit, and says which, whatever tab it was made in."""
        every = (*self._buttons, more)
        for button in every:
            button.setSizePolicy(*[QSizePolicy.Policy.Expanding] * 2)
        self.setLayout(row(*every, wide=every))

    def _open_menu(self, place: QPoint) -> None:
        menu = QMenu(self._table)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self.rename, self.merge, self.split])
        menu.addSeparator()
        menu.addActions(self._rare)
        self._offer_column()
        menu.popup(self._table.viewport().mapToGlobal(place))

    def _tell_steps(self) -> None:
        """Say which edit can be undone, and which done again, if these are others."""
        labels = self._book.undo_label, self._book.redo_label
        if labels == self._told:
            return
        self._told = labels
        for action, label in zip((self.undo, self.redo), labels, strict=True):
            action.setText(in_lines(label, MOST_LETTERS).replace("&", "&&"))
            action.setToolTip(f"{label} ({action.shortcut().toString()})")
        self.redo.setVisible(bool(labels[1]))
        self.undo.setEnabled(bool(labels[0]))
        self.undo.setIconText(f"↶  {self.undo.text()}")
        self.back.setVisible(bool(labels[0]))

    # Acting

    @property
    def _first(self) -> Cluster:
        """The selected cluster, of which there is one at least."""
        return self._chosen()[0]

    def _chosen(self) -> list[Cluster]:
        chosen = self._session.selection.clusters
        known = self._book.clustering.by_id if chosen else {}
        return [known[c] for c in chosen if c in known]

    def _do(self, edit: Callable[..., Any], *what: Any) -> Any:
        """Make an edit; one that cannot be made is explained."""
        self._tell("")
        try:
            return edit(*what)
        except (DataError, InputError) as error:
            self._tell(str(error))
            return None

    def _select(self, edit: Callable[..., Any], *what: Any) -> Any:
        """Make an edit, and select what it has made, if it could."""
        made = self._do(edit, *what)
        if made is not None:
            self._session.selection.replace([made] if isinstance(made, int) else made)
        return made

    def _recolor(self) -> None:
        cluster = self._first
        present = QColor(hexes(cluster_colors([cluster]))[0])
        dataset = self._session.dataset
        color = QColorDialog.getColor(present, self, f"Colour of {cluster.name}")
        if color.isValid() and dataset is self._session.dataset:
            self._do(self._book.recolor, cluster.id, color.name())

    def _annotate(self) -> None:
        cluster, dataset = self._first, self._session.dataset
        note, given = QInputDialog.getMultiLineText(
            self, "Note", f"What is known of {cluster.name}:", cluster.note
        )
        if given and dataset is self._session.dataset:  # no other has come meanwhile
            self._do(self._book.annotate, cluster.id, note)

    def _make_cluster(self) -> None:
        made = self._select(self._book.make_cluster, self._session.selection.points)
        if made is not None:
            self.edit_name(made)

    def _column(self) -> str:
        """Return the column of groups that colours the map; "" if none does."""
        dataset, choice = self._session.dataset, self._session.look.color_by
        if dataset is None or choice in BUILT_IN:
            return ""
        name = name_of(choice, dataset)
        is_there = name is not None and name in dataset.obs
        return name if is_there and is_of_levels(dataset.obs[name]) else ""

    def _offer_column(self) -> None:
        column = self._column()
        self.use.setVisible(bool(column))
        self.use.setText(AS_ANNOTATION.format(column))

    def _use_column(self) -> None:
        dataset = self._session.dataset
        assert dataset is not None
        column = dataset.obs[self._column()]
        levels = list(map(str, column.astype("category").cat.categories))
        colors = level_colors(levels, dataset.level_colors.get(column.name, {}))
        shown = dict(zip(levels, hexes(colors), strict=True))
        self._do(self._book.annotate_by, column, shown)
        self._session.look.color_by = CLUSTER

    def _recluster(self) -> None:
        """Ask for how many, and cluster the selected points in the background."""
        n_points, dataset = len(self._session.selection.rows), self._session.dataset
        n_parts, is_chosen = QInputDialog.getInt(
            *(self, "Cluster again", AGAIN.format(f"{n_points:,}")),
            *(3, 2, max(2, min(MOST_PARTS, n_points))),
        )
        is_chosen = is_chosen and dataset is self._session.dataset
        find = self._do(reclustering, self._session, n_parts) if is_chosen else None
        if find is not None:
            self._tell(f"Clustering {n_points:,} points …")
            self._finding.ask(find)
            self.follow()

    def _on_reclustered(self, take: Take) -> None:
        self._select(take)
        self.follow()

    def _on_trouble(self, error: BaseException) -> None:
        self._tell(sentence(error))
        self.follow()


def menu_button(text: str, tip: str) -> tuple[QToolButton, QMenu]:
    """Return a button that opens a menu, and the empty menu."""
    button = QToolButton()
    button.setText(text)
    button.setProperty("role", "edit")
    button.setToolTip(tip)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    button.setMenu(menu)
    return button, menu


def _button(action: QAction, role: str = "edit") -> QToolButton:
    button = QToolButton()
    button.setDefaultAction(action)
    button.setProperty("role", role)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    return button
