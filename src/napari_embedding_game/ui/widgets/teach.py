"""Teach by example: a few points of each class, and the classes of all others."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import napari
import numpy as np
import pandas as pd
from qtpy.QtWidgets import QSizePolicy

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.teaching import Learned
from napari_embedding_game.data.columns import counted
from napari_embedding_game.data.dataset import CONFIDENCE, Examples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.palette import (
    category_colors,
    cluster_colors,
    hexes,
)
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session import teaching
from napari_embedding_game.session.clusters.annotation import Annotation
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.coloring import CLUSTER, choice_of_column
from napari_embedding_game.ui.style.form_widgets import set_role
from napari_embedding_game.ui.style.layouts import push_button, row
from napari_embedding_game.ui.style.table import Column, Table
from napari_embedding_game.ui.tasks.worker import Latest

NO_DATA = (
    "Name a few points of each class, and all others are classified like them. "
    "Open data in the Embedding Game first."
)
NOTHING_SELECTED = "Select points on the map first, then add them to a class."
OUTDATED = "Examples were changed since: Learn brings the map up to date."
KNOWN = "The map has these classes; Learn tests how well they can be told apart."
HOW_TESTED = "Share of examples that are classified correctly by the others."
TIPS = {
    "new": "Make the selected points examples of a new class: a cluster with a name.",
    "add": "The selected points become examples of the chosen class.",
    "learn": "Learn the class of every point, and colour the map.",
}
OTHER_DATA = "Other data came while it learned, so nothing was learned: press Learn."
ENOUGH = 10
"""Examples of a class from which on its share of right ones tells something."""
TEXT_LENGTH, MOST_CLASSES = 80, 8
"""Letters of a text, and classes that are seen without scrolling."""


class TeachWidget(MapTool, Listener):
    """The classes with their examples, and what is least sure of what was learned."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._found: tuple[Learned, Examples] | None = None
        """What was learned last of the data on show, and from what."""
        self._shown: Annotation | None = None
        """What the classes on show are of."""
        self._learning = Latest(
            self, self._on_learned, lambda e: self._tell(sentence(e)), self.say_stage
        )
        self.classes = Table(
            Column("Class", "Double-click to type another name.", is_edited=True),
            Column("Examples", "How many points say what this class is.", str),
            Column("Correct", HOW_TESTED, _share),
            most_rows=MOST_CLASSES,
        )
        self.doubtful = Table(
            Column("Least sure", "Points whose class is least sure: these teach most."),
            Column("Class"),
            Column("Sure", "Probability of the class.", _share),
            is_many=True,
        )
        button = push_button
        self.new = button("New class", TIPS["new"], self._new)
        self.add = button("Add selection", TIPS["add"], self._add)
        self.learn = button("Learn", TIPS["learn"], self._learn, "main")
        self.classes.edited.connect(self._rename)
        self.doubtful.picked.connect(self._on_picked)
        self._heard.connect(session.dataset_changed, self._on_data)
        self.listen([session.clusters.changed], self._on_clusters)
        self.listen([session.look.events.color_by], self.catch_up)
        self.listen([session.selection.changed], self._tell)
        self.lay_out(
            self.classes, row(self.new, self.add, self.learn), self.state, self.doubtful
        )
        rows = QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum
        self.classes.setSizePolicy(*rows)
        self.column.setStretchFactor(self.doubtful, 1)
        self._tell()

    def catch_up(self) -> None:
        """Bring all up to date."""
        self._show_classes()
        self._show_doubtful()
        self._tell()

    # What a person does

    def _new(self) -> None:
        """Make the selected points a group, and let its name be typed."""
        points = self._session.selection.points
        made = self._do(lambda: self._session.clusters.make_cluster(points))
        if made is not None:
            self.classes.type_into(made)

    def _add(self) -> None:
        """Make the selected points examples of the chosen class."""
        selection, chosen = self._session.selection, self._chosen
        if selection.is_empty or chosen is None:
            self._tell(NOTHING_SELECTED)
        else:
            add_to = self._session.clusters.add_to
            self._do(lambda: add_to(chosen, selection.points))

    def _rename(self, cluster: int, name: str) -> None:
        self._do(lambda: self._session.clusters.rename(cluster, name))

    def _do(self, job: Callable[[], Any]) -> Any:
        """Do something; say why where it cannot be done."""
        try:
            return job()
        except (DataError, InputError) as error:
            self._tell(str(error))
            return None

    def _learn(self) -> None:
        dataset = self._session.dataset
        if self._learning.is_busy:
            self._learning.stop()
        elif not self._refusal:
            examples = teaching.examples_of(dataset, self._said)

            def learn() -> Stages[tuple[Learned, Examples]]:
                return (yield from teaching.learn_examples(dataset, examples)), examples

            self._learning.ask(learn)
        self._tell()

    # What happens

    def _on_learned(self, found: tuple[Learned, Examples]) -> None:
        session, self._found = self._session, found
        name = self._column or teaching.TAUGHT
        column = session.add(teaching.add_classes, name, *found)
        session.look.color_by = choice_of_column(column, session.dataset)
        session.selection.clear()  # which would dim all that was learned
        self.catch_up()

    def _on_clusters(self) -> None:
        if self._said is not self._shown:
            self.catch_up()

    def _on_data(self, event: object = None) -> None:
        text = OTHER_DATA if self._learning.is_busy else ""
        self._learning.stop()
        self._found = None
        self.classes.leave()
        self.catch_up()
        self._tell(text)

    def _on_picked(self, rows: list[int], is_added: bool) -> None:
        self._session.selection.select_points(np.array(rows, np.intp))

    # What is shown

    @property
    def _chosen(self) -> int | None:
        return next(iter(self.classes.chosen()), None)

    @property
    def _said(self) -> Annotation:
        return self._session.clusters.state.annotation

    @property
    def _refusal(self) -> str:
        dataset = self._session.dataset
        return "" if dataset is None else teaching.refusal(dataset, self._said)

    @property
    def _column(self) -> str | None:
        """The newest column of classes that were learned; None without any."""
        dataset = self._session.dataset
        return next(reversed({} if dataset is None else dataset.made("taught")), None)

    def _show_classes(self) -> None:
        self._shown = self._said
        groups, chosen = self._shown.groups, self.classes.chosen()
        if self._session.dataset is None:
            return
        recalls: dict[str, float] = {}
        if self._found is not None:
            learned, examples = self._found
            recalls = dict(zip(examples, learned.recalls, strict=False))
        sizes = np.bincount(self._said.codes + 1, minlength=max(groups, default=0) + 2)
        frame = pd.DataFrame(
            {
                "class": [group.name for group in groups.values()],
                "n": [int(sizes[code + 1]) for code in groups],
                "right": [recalls.get(one.name, np.nan) for one in groups.values()],
            },
            index=[*groups],
        )
        colors = hexes(category_colors(len(groups)))
        if self._session.look.color_by == CLUSTER:  # as the map has them
            named = [c for c in self._session.clusters.clusters if c.is_named]
            shown = hexes(cluster_colors(named))
            of = {c.name: color for c, color in zip(named, shown, strict=True)}
            known = zip(groups.values(), colors, strict=True)
            colors = [of.get(one.name, color) for one, color in known]
        self.classes.show_frame(frame, dict(zip(groups, colors, strict=True)))
        first = [*groups][:1]
        self.classes.choose([code for code in chosen if code in groups] or first)

    def _show_doubtful(self) -> None:
        dataset, column = self._session.dataset, self._column
        if column is None:
            return
        obs = dataset.obs
        rows = teaching.doubtful(dataset, column, self._said)
        texts = obs.index if dataset.texts is None else dataset.texts
        frame = pd.DataFrame(
            {
                "name": [textwrap.shorten(str(texts[r]), TEXT_LENGTH) for r in rows],
                "class": obs[column].iloc[rows].astype(str).to_numpy(),
                "sure": obs[column + CONFIDENCE].to_numpy()[rows],
            },
            index=rows,
        )
        chosen = self.doubtful.chosen()
        self.doubtful.show_frame(frame)
        self.doubtful.choose(chosen)

    def _tell(self, said: str = "") -> None:
        """Show what can be done, and say it after what has been done."""
        has_data, is_busy = self._session.dataset is not None, self._learning.is_busy
        can_learn = is_busy or (has_data and not self._refusal)
        self.learn.setText("Stop" if is_busy else "Learn")
        set_role(self.new, "" if can_learn else "main")
        for part, is_shown in (
            (self.new, has_data),
            (self.learn, can_learn),
            (self.classes, has_data and bool(self._said.groups)),
            (self.add, bool(self._said.groups)),
            (self.doubtful, self._column is not None),
        ):
            part.setVisible(is_shown)
        if not is_busy:
            self.say(f"{said} {self._sentence()}".strip() if has_data else NO_DATA)

    def _sentence(self) -> str:
        """Return what is to be done now."""
        dataset, said = self._session.dataset, self._said
        if self._refusal:
            return self._refusal
        examples = teaching.examples_of(dataset, said)
        if self._column is not None:
            if examples != dataset.added[self._column].examples:
                return OUTDATED
            found = self._found
            return KNOWN if found is None else teaching.told(found[0], [*examples])
        name = min(examples, key=lambda name: len(examples[name]))
        n, more = len(examples[name]), f"; {ENOUGH} of each class teach more"
        has = counted(n, "example") + more * (n < ENOUGH)
        return f"Press Learn: {name} has {has}."


def _share(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else ""
