"""The trustworthiness of the map: one line, and a table of figures and warnings."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd
from qtpy.QtCore import QTimer, Signal

from napari_embedding_game.core.inspect.quality import MapQuality
from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.quality import (
    DOUBTFUL,
    find_sample_effect_column,
    make_quality_job,
)
from napari_embedding_game.session.second_space import TITLES
from napari_embedding_game.session.session import ACTIVE_STATES, Session, error_text
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.connections import Listener, throttle_while_running
from napari_embedding_game.ui.style.coloring import STRETCH
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import (
    horizontal_box,
    push_button,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.table import Bar, Table, TableColumn
from napari_embedding_game.ui.tasks.worker import JobRunner

AGAIN_MS, SOON_MS = 2_000, 150
"""Milliseconds between two measurements in a run, and after a change at rest."""
MAX_AUTOMATIC_ROWS = 100_000
"""Rows up to which a finished map is measured while the fold is closed."""
MIN_OUTSIDE_SHARE = 0.01
"""Share of points outside the largest connected part from which on a warning shows."""
MAX_COLUMNS = 3
"""Columns of groups that the note names at most."""
FIGURES = {
    "neighbors_kept": (
        "Neighbours kept",
        "Share of the {k} nearest neighbours in the data that are neighbours on the "
        "map. Of cells 10 to 40 % are usual.",
    ),
    "trustworthiness": (
        "Trustworthiness",
        "Whether neighbours on the map are alike in the data: 50 % by chance, of cells "
        "mostly above 80 %.",
    ),
    "continuity": (
        "Continuity",
        "Whether neighbours in the data are neighbours on the map: 50 % by chance. "
        "Low: groups are torn apart.",
    ),
    "triplets": (
        "Large picture",
        "Whether far distances are those of the data. Near 50 % distances between "
        "groups mean nothing; Large picture, under Method, raises it.",
    ),
    "between_clusters": (
        "Between clusters",
        "Whether clusters that are far apart on the map are far apart in the data: "
        "0 % by chance, 100 % in the same order.",
    ),
}
"""Title and tooltip of the figures of a :class:`MapQuality`."""
POINT_SHARES = {
    "stretched_share": ("Misplaced", "Points far from similar points."),
    "unlike_share": ("Outliers", "Points unlike all others in the data."),
    "pressured_share": ("Crowded", "Points that the crowd pushes."),
}
"""Title and tooltip of the shares of points of a :class:`Snapshot`."""
NOT_KNOWN = "Not known: the data of this map are not there as rows."
TOO_FEW = "Not known: that takes at least 8 rows."
WAITING = "Measured as soon as there is a map."
MEASURING = "Measuring …"


class TrustControls(Listener):
    """Measures the map in the background while this is open, and after each run."""

    warnings_changed = Signal(str)
    """Carries the titles of the present warnings; "" for none."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._quality_jobs = JobRunner(
            self, self._on_quality_measured, self._on_measuring_failed, finishes=True
        )
        self._quality: MapQuality | None = None
        self._note = ""
        """The reason where the map has no quality."""
        self._measured_map: tuple[object, ...] = ()
        """Identity of the map that quality or note belong to."""
        self.summary = TextLabel(role="plain")
        meaning = FIGURES["trustworthiness"][1]
        tip = "Misplaced points lie far from similar points: doubt them."
        self.summary.setToolTip(f"Trustworthy: {meaning}\n\n{tip}")
        tip = "Colour the points by how misplaced they are."
        color = partial(setattr, session.look, "color_by", STRETCH)
        self.show_misplaced = push_button("Show", tip, color, "link")
        self.line = widget_with_layout(
            horizontal_box(self.summary, self.show_misplaced, spacing=0)
        )
        """Trustworthiness and misplaced points in one line, which the dock places."""
        bars = (
            TableColumn("Figure"),
            TableColumn("", has_bar=True),
            TableColumn("Share"),
        )
        n_rows = len(FIGURES) + len(POINT_SHARES)
        self.figures = Table(*bars, has_headings=False, max_rows=n_rows)
        self.warning, self.note = TextLabel("", "warning"), TextLabel()
        parts = self.figures, self.warning, self.note
        self.setLayout(vertical_box(*parts, spacing=5, margins=(0, 0, 0, 6)))
        self._update_figures_soon = throttle_while_running(
            self, session, self._update_figures
        )
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.update_view)
        self._connections.connect(self._on_state_changed, session.state_changed)
        changes = session.mark_shown, session.restored, session.progressed
        self._connections.connect(
            self._on_map_changed, *changes, session.columns_changed
        )
        self._update_figures()

    def show_quality(self, quality: MapQuality | None, note: str = "") -> None:
        """Show the quality of the present map, or for None the reason ``note``."""
        self._quality, self._note = quality, note
        self._measured_map = self._identify_map()
        self._update_figures()

    # Texts

    def _describe_sample(self, quality: MapQuality) -> str:
        """Return how many points were measured, and which groups neighbours share.

        Of at most MAX_COLUMNS columns, the share of neighbours of the same group is
        said, and the share by chance.
        """
        dataset = self._session.dataset
        is_all = dataset is not None and quality.n_sampled == len(dataset.obs)
        sampling = "" if is_all else " sampled at random"
        text = f"Measured on {quality.n_sampled:,} points{sampling}."
        if dataset is not None and not math.isnan(quality.kept_in_second):
            second = self._session.map_settings.second_space
            text += (
                f" Figures are of {dataset.space}; of neighbours in "
                f"{TITLES.get(second, second)}, {quality.kept_in_second:.0%} are kept. "
                "Misplaced points are far from their neighbours by both spaces."
            )
        best = quality.columns[:MAX_COLUMNS]
        shares = [f"{c.name} {c.same:.0%} ({c.by_chance:.0%} by chance)" for c in best]
        groups = f" Neighbours of the same group: {', '.join(shares)}."
        return text + groups if shares else text

    def _update_figures(self) -> None:
        """Show figures, warnings and line of the present map, as far as known.

        The quality of a former map is not shown.  Emits ``warnings_changed``.  In a run
        the line leaves the trustworthiness out.
        """
        session, rows, tips = self._session, {}, {}
        is_current = are_same_objects(self._measured_map, self._identify_map())
        quality = self._quality if is_current else None
        snapshot = None if session.state == "preparing" else session.snapshot
        is_at_rest = snapshot is not None and session.state != "running"
        is_measured = is_at_rest and self._quality_jobs.is_busy
        note = self._note if is_current else MEASURING if is_measured else WAITING
        self.note.show_text(note if quality is None else self._describe_sample(quality))
        warnings = {} if quality is None else _find_warnings(quality, session.dataset)
        self.warning.show_text("\n".join(warnings.values()))
        self.warnings_changed.emit(", ".join(warnings))
        k = 15 if quality is None else quality.n_neighbors
        for source, texts in ((quality, FIGURES), (snapshot, POINT_SHARES)):
            for name, (title, meaning) in texts.items():
                share = math.nan if source is None else getattr(source, name)
                has_share = not math.isnan(share)
                is_trust = name == "trustworthiness"
                is_bad = source is snapshot or (is_trust and share < DOUBTFUL)
                bar = Bar(0.0, share if has_share else 0.0, is_orange=is_bad)
                rows[name] = title, bar, share_text(share) if has_share else "–"
                tips[name] = meaning.format(k=k)
        self.figures.show_frame(
            pd.DataFrame(rows.values(), index=list(rows)), tips=tips
        )
        trust, far = rows["trustworthiness"][2], rows["stretched_share"][2]
        has_trust = trust != "–" and session.state != "running"
        words = [f"Trustworthy {trust}"] if has_trust else []
        words += [f"{far} misplaced"] if far != "–" else []
        is_doubtful = quality is not None and quality.trustworthiness < DOUBTFUL
        role = "warning" if has_trust and is_doubtful else ""
        self.summary.show_text(" · ".join(words), role)
        has_map = snapshot is not None
        self.show_misplaced.setVisible(has_map and snapshot.stretched_share > 0)

    # Measuring

    def _on_state_changed(self, state: str) -> None:
        """Start a measurement: soon if this is open, else at once for a finished map.

        The latter only up to ``MAX_AUTOMATIC_ROWS`` rows.
        """
        self._on_map_changed()
        dataset = self._session.dataset
        is_small = dataset is not None and len(dataset.obs) <= MAX_AUTOMATIC_ROWS
        if state == "finished" and is_small and not self.is_open():
            self.update_view()

    def _on_map_changed(self, *event: object) -> None:
        """Update the figures, and measure soon while this is open.

        In a run the map is measured every AGAIN_MS milliseconds.
        """
        is_moving = self._session.state == "running"
        self._update_figures_soon()
        if not self.is_open():
            self._is_outdated = True
        elif not (is_moving and self._timer.isActive()):
            self._timer.start(AGAIN_MS if is_moving else SOON_MS)

    def update_view(self) -> None:
        """Start measuring the present map, or show that its quality is not known.

        The latter where the data of the map are not there as rows, once no run is
        active. Without a map nothing is done.
        """
        session = self._session
        job, map_identity = make_quality_job(session), self._identify_map()
        if job is not None:
            self._quality_jobs.submit(lambda: (job(), map_identity))
            self._update_figures()
        elif session.snapshot is not None and session.state not in ACTIVE_STATES:
            self.show_quality(None, NOT_KNOWN)

    def _identify_map(self) -> tuple[object, ...]:
        """Return (dataset, run, embedding), the objects that identify the present map.

        The embedding is None while points move, so that one map is measured for a run.
        """
        session, snapshot = self._session, self._session.snapshot
        is_at_rest = snapshot is not None and not session.is_moving
        return session.dataset, session.run, snapshot.embedding if is_at_rest else None

    def _on_quality_measured(
        self, result: tuple[MapQuality | None, tuple[object, ...]]
    ) -> None:
        """Show a measured quality, unless the map has changed since.

        ``result``: (quality, or None for too few rows; the identity of the measured
        map).
        """
        quality, map_identity = result
        if are_same_objects(map_identity, self._identify_map()):
            self.show_quality(quality, TOO_FEW)

    def _on_measuring_failed(self, error: BaseException) -> None:
        """Show the message of the error as the reason why there is no quality."""
        self.show_quality(None, error_text(error))


def _find_warnings(quality: MapQuality, dataset: Dataset | None) -> dict[str, str]:
    """Return the warnings of a map by their titles; {} for none.

    There is a warning if at least MIN_OUTSIDE_SHARE of the points are outside of the
    largest connected part, and one if the samples of a column seem to shape the map.
    """
    messages, parts = dict[str, str](), quality.parts
    column = find_sample_effect_column(
        quality, {} if dataset is None else dataset.roles
    )
    if parts is not None and parts.outside >= MIN_OUTSIDE_SHARE:
        messages[f"Neighbours in {parts.n_parts:,} pieces"] = (
            f"The points and their {parts.n_neighbors} nearest in the data fall into "
            f"{parts.n_parts:,} groups without any link ({parts.outside:.0%} of the "
            "points are outside of the largest). Distances between these mean nothing "
            "without Large picture, under Method. More Neighbours may link them."
        )
    if column is not None:
        clusters, more = quality.clusters, ""
        if clusters is not None and column.agreement >= clusters.agreement:
            more = f", more than are of its cluster ({clusters.same:.0%})"
        messages[f"Batch effect of {column.name}?"] = (
            f"{column.same:.0%} of a point's neighbours have the same {column.name}, "
            f"{column.by_chance:.0%} by chance{more}. If that is a batch effect and "
            "not biology, mix the batches under Data."
        )
    return messages
