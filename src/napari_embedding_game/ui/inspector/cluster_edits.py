"""Buttons, a menu and keys that edit the selected clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtCore import QPoint, Qt
from qtpy.QtGui import QAction, QColor, QGuiApplication, QKeySequence
from qtpy.QtWidgets import (
    QColorDialog,
    QInputDialog,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.palette import (
    cluster_colors,
    level_colors,
    to_hex_colors,
)
from napari_embedding_game.session.cell_names import (
    find_named_points,
    list_selected_names,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.names_window import (
    NamesWindow,
    SuggestedName,
)
from napari_embedding_game.ui.style.coloring import (
    BUILT_IN,
    CLUSTER,
    choice_name_in_file,
)
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import (
    escape_ampersands,
    escape_tooltip,
    horizontal_box,
    vertical_box,
    wrap_button_text,
)
from napari_embedding_game.ui.style.table import Table
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.save_dialog import ask_and_save
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

MAX_NEW_CLUSTERS, MAX_LETTERS = 60, 44
"""Clusters that a new clustering can be asked for, and letters of a button's line."""
AS_ANNOTATION = "Use {} as annotation"
AGAIN = "Clusters to be found among the {} selected points alone; none moves."
RECLUSTER_TIP = "Find clusters among the selected points alone."
RELEASE_TIP = "Let the game decide again where its points belong."
COPY_TIP = "Copy the names of the selected points, such as barcodes."
SAVE_TIP = "Save these names as a text file, one in each line."
ADD_TIP = "Add the points of a list of names to the selection."
NAMES = "Names, one in each line:"
USE_TIP = "Name the points by the groups of this column."
SUGGEST_TIP = (
    "Suggest a cell type for each cluster by its marker genes, with the evidence."
)


class ClusterEdits(QWidget):
    """A row of buttons and the menu of the cluster table, which edit what is selected.

    Parameters
    ----------
    session : Session
    table : Table
        Lists the clusters by their ids.
    message : TextLabel
        Shows why an edit is refused, and how many names were copied or found.
    """

    def __init__(self, session: Session, table: Table, message: TextLabel) -> None:
        super().__init__()
        self._session, self._clusters = session, session.clusters
        self._table, self._message = table, message
        self.edit_name: Callable[[int], None] = table.edit_first_cell
        """Starts editing the name of a cluster, by its id."""
        self._recluster_jobs = PaneJobRunner(
            self, "Clustering …", self._edit_and_select, message.show_text
        )
        self.names = NamesWindow(session, self, self.rename_cluster)
        self._make_actions()
        self._lay_out_buttons()
        table.customContextMenuRequested.connect(self._open_table_menu)
        connections = Connections(self)
        connections.connect(self._update_actions, session.selection.changed)
        connections.connect(self._update_undo_actions, self._clusters.changed)
        connections.connect(lambda _: message.show_text(), session.dataset_changed)
        self._update_undo_actions()

    def _update_actions(self) -> None:
        """Show the actions possible with the present selection; hide other actions."""
        chosen, selection = self._list_selected_clusters(), self._session.selection
        is_one = len(chosen) == 1
        for action, is_possible in (
            (self.rename, is_one),
            (self.split, is_one),
            (self.recolor, is_one),
            (self.note, is_one),
            (self.release, is_one and chosen[0].is_named),
            (self.merge, len(chosen) > 1),
            (self.make, selection.is_of_points),
            (self.recluster, not selection.is_empty),
            (self.copy_names, not selection.is_empty),
            (self.save_names, not selection.is_empty),
            (self.suggest, len(self._clusters.clusters) > 0),
        ):
            action.setVisible(is_possible)  # an invisible action is disabled too
        for button in self._buttons:
            button.setVisible(button.defaultAction().isVisible())

    def _update_undo_actions(self) -> None:
        """Show which edits can be undone and redone, and update the other actions."""
        steps = self._clusters.undo_label, self._clusters.redo_label
        texts = [escape_ampersands(wrap_button_text(x, MAX_LETTERS)) for x in steps]
        actions = self.undo, self.redo
        for action, label, text in zip(actions, steps, texts, strict=True):
            action.setText(text)
            action.setToolTip(
                escape_tooltip(f"{label} ({action.shortcut().toString()})")
            )
            action.setVisible(bool(label))
        self.undo.setIconText(f"↶  {texts[0]}")
        self.redo.setIconText("↷  Redo")
        for button in (self.undo_button, self.redo_button):
            button.setVisible(button.defaultAction().isVisible())
        self._update_actions()

    def rename_cluster(self, cluster: int, name: str, clustering: Clustering) -> None:
        """Rename a cluster; a refusal is shown as the message.

        ``clustering``: the clustering whose cluster had this id when the name was
        typed.
        """
        self._try_edit(self._clusters.rename, cluster, name, clustering)

    # Making

    def _make_actions(self) -> None:
        """Make an action for each edit, with its text, tooltip and shortcut."""
        session, clusters, action = self._session, self._clusters, self._make_action
        do, select = self._try_edit, self._edit_and_select
        tip = "Give the cluster a name (F2)."
        self.rename = action(
            "Rename", tip, lambda: self.edit_name(self._first_selected_cluster.id), "F2"
        )
        ids = session.selection
        self.merge = action("Merge", "", lambda: select(clusters.merge, ids.clusters))
        self.split = action(
            "Split",
            "",
            lambda: select(session.split_cluster, self._first_selected_cluster.id),
        )
        self.recolor = action("Colour…", "", self._ask_and_recolor)
        tip = "Write down what is known of the cluster."
        self.note = action("Note…", tip, self._ask_and_annotate)
        self.release = action(
            "Remove annotation",
            RELEASE_TIP,
            lambda: do(clusters.remove_annotation, self._first_selected_cluster.id),
        )
        tip = "Make the selected points a cluster of their own."
        self.make = action("New cluster", tip, self._make_cluster)
        self.recluster = action(
            "Cluster again…", RECLUSTER_TIP, self._ask_and_recluster
        )
        self.use = action(AS_ANNOTATION, USE_TIP, self._annotate_by_column)
        self.undo = action("", "", lambda: do(clusters.undo), "Ctrl+Z")
        self.redo = action("", "", lambda: do(clusters.redo), "Ctrl+Shift+Z")
        self.copy_names = action("Copy names", COPY_TIP, self._copy_point_names)
        self.save_names = action("Save names…", SAVE_TIP, self._save_point_names)
        self.add_names = action(
            "Add by names…", ADD_TIP, self._ask_names_and_add_points
        )
        self.suggest = action(
            "Suggest names…", SUGGEST_TIP, self.names.open_and_suggest
        )
        self._rare = [self.suggest, self.recolor, self.note, self.recluster]
        self._rare += [self.release, self.use]
        self._rare += [self.copy_names, self.save_names, self.add_names]

    def _make_action(
        self, text: str, tip: str, edit: Callable[[], Any], shortcut: str = ""
    ) -> QAction:
        """Return an action that calls ``edit`` if triggered while it is visible.

        The shortcut, "" for none, acts in this widget and its children.
        """
        action = QAction(text, self)
        action.setToolTip(tip)
        action.setShortcut(QKeySequence(shortcut))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        # A shortcut on the canvas triggers the action even while it is hidden.
        action.triggered.connect(lambda: action.isVisible() and edit())
        return action

    def _lay_out_buttons(self) -> None:
        """Make buttons of frequent actions, undo and redo, and a menu of the rest.

        Undo and redo are not placed here: the dock places them.
        """
        # Narrow padding: six buttons in a row limit how narrow a window can be.
        rule = 'QToolButton[role="edit"]{} {{ padding: {}px; }}'.format
        self.setStyleSheet(rule("", "3px 5") + rule(":focus", "2px 4"))
        frequent = self.rename, self.merge, self.split, self.make
        self._buttons = list(map(_make_action_button, frequent))
        tip = "Colour, note and other edits of the selected clusters."
        more, self.more = make_menu_button("More ▾", tip)
        self.more.addActions(self._rare)
        self.more.aboutToShow.connect(self._offer_annotation_column)
        self.undo_button = _make_action_button(self.undo, "link")
        """Undoes the last edit of any tab; its text names the edit."""
        self.redo_button = _make_action_button(self.redo, "link")
        """Redoes the edit that was undone last; its tooltip names the edit."""
        all_buttons = (*self._buttons, more)
        for button in all_buttons:
            button.setSizePolicy(*[QSizePolicy.Policy.Expanding] * 2)
        row = horizontal_box(*all_buttons, stretched=all_buttons)
        self.suggestion = SuggestedName(self._session, self.names)
        self.setLayout(vertical_box(self.suggestion, row))

    def _open_table_menu(self, point: QPoint) -> None:
        """Open a menu of the possible edits at a point, in pixels of the table.

        Without a possible edit no menu is opened.
        """
        menu = QMenu(self._table)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self.rename, self.merge, self.split])
        menu.addSeparator()
        menu.addActions(self._rare)
        self._offer_annotation_column()
        if any(a.isVisible() for a in menu.actions() if not a.isSeparator()):
            menu.popup(self._table.viewport().mapToGlobal(point))

    # Acting

    @property
    def _first_selected_cluster(self) -> Cluster:
        """The first selected cluster; raises IndexError where none is selected."""
        return self._list_selected_clusters()[0]

    def _list_selected_clusters(self) -> list[Cluster]:
        """Return the selected clusters that the map still has."""
        return self._clusters.find_clusters(self._session.selection.clusters)

    def _try_edit(self, edit: Callable[..., Any], *args: Any) -> Any:
        """Return ``edit(*args)``; if refused, show the reason and return None.

        A former message is cleared.
        """
        self._message.show_text()
        return call_or_show_error(self._message.show_text, edit, *args)

    def _edit_and_select(self, edit: Callable[..., Any], *args: Any) -> Any:
        """Make an edit, select the clusters that it made, and return their ids.

        ``edit`` returns an id or several ids.  None is returned where the edit is
        refused.
        """
        new = self._try_edit(edit, *args)
        if new is not None:
            self._session.selection.select_clusters(
                [new] if isinstance(new, int) else new
            )
        return new

    def _ask_user(self, ask: Callable[..., tuple[Any, bool]], *question: Any) -> Any:
        """Return the answer to a dialog; None if cancelled or other data have come.

        ``ask`` receives the parent widget and ``question``, and returns (answer,
        whether it was given).
        """
        dataset = self._session.dataset
        answer, is_given = ask(self, *question)
        return answer if is_given and self._session.shows_dataset(dataset) else None

    def _ask_and_recolor(self) -> None:
        """Ask for a colour and give the colour to the first selected cluster.

        Nothing is changed if the dialog is cancelled or other data have come meanwhile.
        """
        cluster = self._first_selected_cluster
        present = QColor(to_hex_colors(cluster_colors([cluster]))[0])

        def ask(parent: QWidget) -> tuple[QColor, bool]:
            """Return the colour chosen in a dialog, and whether one was chosen."""
            title = f"Colour of {cluster.name}"
            color = QColorDialog.getColor(present, parent, title)
            return color, color.isValid()

        color = self._ask_user(ask)
        if color is not None:
            self._try_edit(self._clusters.recolor, cluster.id, color.name())

    def _ask_and_annotate(self) -> None:
        """Ask for a note and give the note to the first selected cluster.

        Nothing is changed if the dialog is cancelled or other data have come meanwhile.
        """
        cluster = self._first_selected_cluster
        question = "Note", f"What is known of {cluster.name}:", cluster.note
        note = self._ask_user(QInputDialog.getMultiLineText, *question)
        if note is not None:
            self._try_edit(self._clusters.set_note, cluster.id, note)

    def _make_cluster(self) -> None:
        """Make and select a cluster of the selected points, and edit its name."""
        key = self._edit_and_select(
            self._clusters.make_group, self._session.selection.points
        )
        if key is not None:
            self.edit_name(key)

    def _find_color_column(self) -> str:
        """Return the column of groups that colours the map; "" if there is none.

        "" also where the map is coloured by clusters, a gene or numbers.
        """
        dataset, choice = self._session.dataset, self._session.look.color_by
        if dataset is None or choice in BUILT_IN:
            return ""
        name = choice_name_in_file(choice, dataset)
        return name if name in dataset.level_columns else ""

    def _offer_annotation_column(self) -> None:
        """Offer to annotate by the column of groups that colours the map, if any."""
        column = self._find_color_column()
        self.use.setVisible(bool(column))
        self.use.setText(escape_ampersands(AS_ANNOTATION.format(column)))

    def _annotate_by_column(self) -> None:
        """Make clusters of the groups of the column that colours the map.

        The clusters get the colours of the groups; then the map is coloured by
        clusters.  Does nothing where no column of groups colours the map.
        """
        dataset, name = self._session.dataset, self._find_color_column()
        if dataset is None or not name:
            return  # the map has changed since the menu was opened
        column = dataset.obs[name]
        levels = list(map(str, column.astype("category").cat.categories))
        colors = level_colors(levels, dataset.level_colors.get(column.name, {}))
        color_of = dict(zip(levels, to_hex_colors(colors), strict=True))

        def annotate_and_color() -> None:
            """Annotate the points; where this is not refused, show the clusters."""
            self._clusters.annotate_by_column(column, color_of)
            self._session.look.color_by = CLUSTER

        self._try_edit(annotate_and_color)

    def _ask_and_recluster(self) -> None:
        """Ask for a number of clusters, then cluster the selected points in a thread.

        The number is 2 to MAX_NEW_CLUSTERS, and at most that of the points.
        """
        n_points = len(self._session.selection.rows)
        question = "Cluster again", AGAIN.format(f"{n_points:,}")
        max_clusters = max(2, min(MAX_NEW_CLUSTERS, n_points))
        n_clusters = self._ask_user(QInputDialog.getInt, *question, 3, 2, max_clusters)
        find = n_clusters and self._try_edit(
            self._session.make_recluster_job, n_clusters
        )
        if find:
            self._recluster_jobs.submit(find)

    def _copy_point_names(self) -> None:
        """Copy the names of the selected points to the clipboard, and say how many."""
        names = self._try_edit(list_selected_names, self._session)
        if names is not None:
            QGuiApplication.clipboard().setText(names)
            n = len(self._session.selection.rows)
            self._message.show_text(f"{count_text(n, 'name')} copied.", "note")

    def _save_point_names(self) -> None:
        """Ask for a text file and write the names of the selected points into it.

        A message tells the name of the file.
        """
        names = self._try_edit(list_selected_names, self._session)
        if names is not None:

            def write_names(path: Path) -> None:
                """Write the names, replacing the file only once it is complete."""
                with atomic_write(path) as temporary:
                    temporary.write_text(names, "utf-8")

            if done := ask_and_save(
                self, self._session, "names", {".txt": "Text"}, write_names
            ):
                self._message.show_text(done, "note")

    def _ask_names_and_add_points(self) -> None:
        """Ask for names, and add the points with these names to the selection.

        A message tells how many were found.
        """
        text = self._ask_user(QInputDialog.getMultiLineText, "Add by names", NAMES)
        found = text and self._try_edit(
            find_named_points, self._session.require_data(), text
        )
        if found:
            points, message = found
            self._session.selection.select_points(points, "add")
            self._message.show_text(message, "note")


def make_menu_button(text: str, tip: str) -> tuple[QToolButton, QMenu]:
    """Return a button that opens an empty menu, and the menu."""
    button = QToolButton()
    button.setText(text)
    button.setProperty("role", "edit")
    button.setToolTip(tip)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    button.setMenu(menu)
    return button, menu


def _make_action_button(action: QAction, role: str = "edit") -> QToolButton:
    """Return a button that shows the text of an action and triggers the action."""
    button = QToolButton()
    button.setDefaultAction(action)
    button.setProperty("role", role)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    return button
