"""A widget to learn the class of every point from a few examples of each class."""

from __future__ import annotations

import textwrap
from functools import partial

import napari
import numpy as np
import pandas as pd
from qtpy.QtWidgets import QSizePolicy

from napari_embedding_game.core.inspect.teaching import Classification
from napari_embedding_game.data.columns import count_text, share_text
from napari_embedding_game.data.dataset import CONFIDENCE, Examples
from napari_embedding_game.data.palette import (
    cluster_colors,
    make_palette_colors,
    to_hex_colors,
)
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session import learned_classes
from napari_embedding_game.session.clusters.annotation import Annotation
from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import CLUSTER, color_by_column
from napari_embedding_game.ui.style.form_widgets import set_role
from napari_embedding_game.ui.style.layouts import horizontal_box, push_button
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.worker import JobRunner

NO_DATA = (
    "Name a few points of each class, and all others are classified like them. "
    "Open data in the Embedding Game first."
)
NOTHING_SELECTED = "Select points on the map first, then add them to a class."
OUTDATED = "Examples were changed since: Learn brings the map up to date."
KNOWN = "The map has these classes; Learn tests how well they can be told apart."
HOW_TESTED = "Share of examples that are classified correctly by the others."
NEW_TIP = "Make the selected points examples of a new class."
ADD_TIP = "The selected points become examples of the chosen class."
LEARN_TIP = "Learn the class of every point, and colour the map."
OTHER_DATA = "Other data came while it learned, so nothing was learned: press Learn."
ENOUGH = 10
"""From so many examples of each class on the accuracy is informative."""
TEXT_LENGTH, MAX_CLASSES = 80, 8
"""Letters of a point's text, and classes that are seen without scrolling."""


class TeachWidget(MapTool):
    """Tables of the classes with their examples, and of the least sure points."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._try_edit = partial(call_or_show_error, self._update_buttons_and_text)
        """Calls a function that edits clusters, and shows the text of its error."""
        self._learned: tuple[Classification, Examples] | None = None
        """The last result on the present dataset, and the examples it came from."""
        self._shown_annotation: Annotation | None = None
        """The annotation whose groups the table of classes shows."""
        self._learning_job = JobRunner(
            self, self._on_classes_learned, self._on_learning_failed, self.show_stage
        )
        self.class_table = Table(
            TableColumn(
                "Class", "Double-click to type another name.", is_editable=True
            ),
            TableColumn("Examples", "How many points say what this class is.", str),
            TableColumn("Correct", HOW_TESTED, share_text),
            max_rows=MAX_CLASSES,
        )
        self.doubtful_table = Table(
            TableColumn(
                "Least sure", "Points whose class is least sure: these teach most."
            ),
            TableColumn("Class"),
            TableColumn("Sure", "Probability of the class.", share_text),
            selects_many=True,
        )
        self.new_button = push_button(
            "New class", NEW_TIP, self._make_class_of_selection
        )
        self.add_button = push_button(
            "Add selection", ADD_TIP, self._add_selection_to_class
        )
        self.learn_button = push_button(
            "Learn", LEARN_TIP, self._start_or_stop_learning, "main"
        )
        self.class_table.cell_edited.connect(
            partial(self._try_edit, session.clusters.rename)
        )
        select = session.selection.select_points
        self.doubtful_table.rows_picked.connect(
            lambda rows, _: select(np.array(rows, np.intp))
        )
        self._connections.connect(self._on_dataset_changed, session.dataset_changed)
        self.connect_while_open(self._on_clusters_changed, session.clusters.changed)
        self.connect_while_open(self.update_view, session.look.events.color_by)
        self.connect_while_open(
            self._update_buttons_and_text, session.selection.changed
        )
        self.lay_out_parts(
            self.class_table,
            horizontal_box(self.new_button, self.add_button, self.learn_button),
            self.state,
            self.doubtful_table,
        )
        rows = QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum
        self.class_table.setSizePolicy(*rows)
        self.main_layout.setStretchFactor(self.doubtful_table, 1)

    def update_view(self) -> None:
        """Update both tables, buttons and text."""
        self._show_classes()
        self._show_doubtful_points()
        self._update_buttons_and_text()

    # Actions of a person

    def _make_class_of_selection(self) -> None:
        """Make a group of the selected points, and open the editor of its name.

        Without selected points the error's text is shown.
        """
        session = self._session
        key = self._try_edit(session.clusters.make_group, session.selection.points)
        if key is not None:
            self.class_table.edit_first_cell(key)

    def _add_selection_to_class(self) -> None:
        """Add the selected points to the examples of the chosen class.

        Without either a text asks for a selection.
        """
        session, chosen = self._session, self.class_table.list_selected_keys()
        if session.selection.is_empty or not chosen:
            self._update_buttons_and_text(NOTHING_SELECTED)
        else:
            self._try_edit(
                session.clusters.add_points_to_group,
                chosen[0],
                session.selection.points,
            )

    def _start_or_stop_learning(self) -> None:
        """Stop a running job, else learn the classes in another thread.

        Nothing is learned while the examples do not suffice.
        """
        dataset = self._session.dataset
        if self._learning_job.is_busy:
            self._learning_job.stop()
        elif not self._refusal:
            examples = learned_classes.choose_example_rows(dataset, self._annotation)

            def learn() -> Stages[tuple[Classification, Examples]]:
                """Yield the stages of learning; return classes and examples."""
                return (
                    yield from learned_classes.learn_from_examples(dataset, examples)
                ), examples

            self._learning_job.submit(learn)
        self._update_buttons_and_text()

    # Events

    def _on_classes_learned(self, result: tuple[Classification, Examples]) -> None:
        """Add the learned classes as a column, and colour the map by it.

        The newest column of learned classes is replaced.  The selection is cleared.
        """
        session, self._learned = self._session, result
        name = self._taught_column or learned_classes.TAUGHT
        column = session.add_columns(learned_classes.add_class_columns, name, *result)
        color_by_column(session, column)
        session.selection.clear()  # a selection would mute most learned colours
        self.update_view()

    def _on_learning_failed(self, error: BaseException) -> None:
        """Show the error's text before the next step."""
        self._update_buttons_and_text(error_text(error))

    def _on_clusters_changed(self) -> None:
        """Update the view if the annotation is another one."""
        if self._annotation is not self._shown_annotation:
            self.update_view()

    def _on_dataset_changed(self, event: object = None) -> None:
        """Stop learning, with a message on that, and forget the last result.

        An open editor is closed, and its text is discarded.
        """
        text = OTHER_DATA if self._learning_job.is_busy else ""
        self._learning_job.stop()
        self._learned = None
        self.class_table.close_open_editor()
        self.update_view()
        self._update_buttons_and_text(text)

    # Tables, buttons and text

    @property
    def _annotation(self) -> Annotation:
        return self._session.clusters.state.annotation

    @property
    def _refusal(self) -> str:
        """Why classes cannot be learned yet; "" if they can, or without data."""
        dataset = self._session.dataset
        return (
            ""
            if dataset is None
            else learned_classes.explain_why_unlearnable(dataset, self._annotation)
        )

    @property
    def _taught_column(self) -> str | None:
        """The newest column of learned classes; None without any."""
        dataset = self._session.dataset
        return next(
            reversed({} if dataset is None else dataset.added_of_kind("taught")), None
        )

    def _show_classes(self) -> None:
        """Show the groups with their examples, accuracies and colours.

        Accuracies are those of the last result, NaN for a group that it lacks.  Without
        a chosen group the first becomes the chosen one.
        """
        self._shown_annotation = annotation = self._annotation
        groups = annotation.groups
        recalls: dict[str, float] = {}
        if self._learned is not None:
            learned, examples = self._learned
            recalls = dict(zip(examples, learned.recalls, strict=False))
        sizes = np.bincount(annotation.codes + 1)
        frame = pd.DataFrame(
            {
                "class": [group.name for group in groups.values()],
                "n": [int(sizes[code + 1]) for code in groups],
                "right": [recalls.get(group.name, np.nan) for group in groups.values()],
            },
            index=[*groups],
        )
        on_map = self._find_class_colors()
        names = {i: group.name for i, group in groups.items() if group.name in on_map}
        self.class_table.show_frame(
            frame, {i: on_map[name] for i, name in names.items()}
        )
        if not self.class_table.list_selected_keys():
            self.class_table.select_keys([*groups][:1])

    def _find_class_colors(self) -> dict[str, str]:
        """Return the colours "#rrggbb" of classes on the map, by their names.

        These are learned classes, or named clusters while the map is coloured by
        cluster or nothing was learned.
        """
        session, column = self._session, self._taught_column
        if column is not None and session.look.color_by != CLUSTER:
            names = session.dataset.obs[column].astype("category").cat.categories
            return dict(
                zip(names, to_hex_colors(make_palette_colors(len(names))), strict=True)
            )
        named = [c for c in session.clusters.clusters if c.is_named]
        colors = to_hex_colors(cluster_colors(named))
        return {c.name: color for c, color in zip(named, colors, strict=True)}

    def _show_doubtful_points(self) -> None:
        """Show the points whose learned class is least sure.

        A point is shown by its text, else by its name.  Without learned classes the
        table stays as it is.
        """
        dataset, column = self._session.dataset, self._taught_column
        if column is None:
            return
        obs = dataset.obs
        rows = learned_classes.find_least_confident_points(
            dataset, column, self._annotation
        )
        texts = obs.index if dataset.texts is None else dataset.texts
        frame = pd.DataFrame(
            {
                "name": [textwrap.shorten(str(texts[r]), TEXT_LENGTH) for r in rows],
                "class": obs[column].iloc[rows].astype(str).to_numpy(),
                "sure": obs[column + CONFIDENCE].to_numpy()[rows],
            },
            index=rows,
        )
        self.doubtful_table.show_frame(frame)

    def _update_buttons_and_text(self, message: str = "") -> None:
        """Update buttons, and show a message followed by the next step.

        While a job learns the text stays, and without data it asks for data.
        """
        has_data, is_busy = (
            self._session.dataset is not None,
            self._learning_job.is_busy,
        )
        can_learn = is_busy or (has_data and not self._refusal)
        self.learn_button.setText("Stop" if is_busy else "Learn")
        set_role(self.new_button, "" if can_learn else "main")
        for widget, is_shown in (
            (self.new_button, has_data),
            (self.learn_button, can_learn),
            (self.class_table, has_data and bool(self._annotation.groups)),
            (self.add_button, bool(self._annotation.groups)),
            (self.doubtful_table, self._taught_column is not None),
        ):
            widget.setVisible(is_shown)
        if not is_busy:
            text = (
                f"{message} {self._describe_next_step()}".strip()
                if has_data
                else NO_DATA
            )
            self.state.show_text(text)

    def _describe_next_step(self) -> str:
        """Return a sentence on the next step, or on the accuracy of the classes.

        It is the first that holds: why nothing can be learned; that examples were
        changed since; the accuracy, if known; to learn, with the smallest class.
        """
        dataset, annotation = self._session.dataset, self._annotation
        if self._refusal:
            return self._refusal
        examples = learned_classes.choose_example_rows(dataset, annotation)
        if self._taught_column is not None:
            if examples != dataset.added[self._taught_column].examples:
                return OUTDATED
            last = self._learned
            names = [*examples]
            return (
                KNOWN
                if last is None
                else learned_classes.describe_accuracy(last[0], names)
            )
        name = min(examples, key=lambda name: len(examples[name]))
        n, more = len(examples[name]), f"; {ENOUGH} of each class teach more"
        has = count_text(n, "example") + more * (n < ENOUGH)
        return f"Press Learn: {name} has {has}."
