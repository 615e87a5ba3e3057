"""How good the map is as a whole: figures on a sample, while it runs and at rest."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from magicgui.widgets import PushButton
from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtWidgets import QGridLayout, QLabel, QProgressBar, QWidget

from napari_embedding_game.core.inspect.quality import (
    ColumnAgreement,
    GraphParts,
    MapQuality,
)
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.quality import (
    followed_samples,
    label_column,
    more_neighbors,
    quality_job,
)
from napari_embedding_game.session.session import ALIVE, Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.method_choices import settings_text
from napari_embedding_game.ui.controls.stability_panel import StabilityPanel
from napari_embedding_game.ui.style.busy_bar import move_bar
from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.form_widgets import Fold, show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

AGAIN_MS = 2_000
"""Between two measurements while the points move."""
SOON_MS = 150
"""After a change at rest."""
MOST_UNASKED = 100_000
"""Rows up to which a finished map is measured although nobody unfolded the panel."""
TITLE = "Quality"
LONGEST_LABEL = 130
"""Pixels of what a figure is called, which may have the name of a column in it."""


class Figure(NamedTuple):
    """A line of the panel."""

    field: str
    label: str
    meaning: str


FIGURES = (
    Figure(
        "neighbors_kept",
        "Neighbours kept",
        "Of the {k} rows most like each one in the data, the share that is among its "
        "{k} nearest on the map. A plane has room for few: on maps of cells 10 to 40 % "
        "are usual. Compare maps of the same data.",
    ),
    Figure(
        "trustworthiness",
        "Trustworthiness",
        "Whether points side by side on the map are alike in the data: 100 % if all "
        "are, 50 % by chance; maps of cells mostly have 80 % and more. Low: groups on "
        "the map may not be groups in the data.",
    ),
    Figure(
        "continuity",
        "Continuity",
        "Whether rows that are alike in the data lie side by side: 100 % if all do, "
        "50 % by chance. Low: groups of the data are torn apart.",
    ),
    Figure(
        "triplets",
        "Large picture",
        "Of two random points, how often the one that is more like a third in the data "
        "is also nearer to it on the map: 50 % by chance. Near that, distances between "
        "far groups mean nothing.",
    ),
    Figure(
        "accuracy",
        "Same {column}",
        "How often the {k} nearest points on the map vote for a point's own {column}: "
        "100 % if its groups lie apart.",
    ),
)
LINK_TIP = (
    "Look for twice as many neighbours of each point and play on from the map that you "
    "see. Other settings stay as they are, and the map as it is stays in the timeline."
)
FEW_OUTSIDE = 0.01
"""Share of the points outside of the largest part that is not worth a sentence."""
NOT_KNOWN = "Not known: the data of this map are not there as rows."
TOO_FEW = "Not known: that takes at least 8 rows."
WAITING = "Measured as soon as there is a map."
MEASURING = "Measuring …"


def told_parts(parts: GraphParts | None) -> list[str]:
    """Return a sentence on a graph in parts; none where it hangs together, nearly."""
    if parts is None or parts.outside < FEW_OUTSIDE:
        return []
    return [
        f"The points and their {parts.n_neighbors} nearest in the data fall into "
        f"{parts.n_parts:,} groups without any link ({parts.outside:.0%} of the points "
        "are outside of the largest): where these groups lie to one another on the map "
        "tells nothing. More neighbours may link them."
    ]


MOST_COLUMNS_TOLD = 3


def told_columns(columns: tuple[ColumnAgreement, ...]) -> str:
    """Return a sentence on the columns that agree best with the map; "" for none."""
    told = [
        f"{one.name} {one.same:.0%} ({one.by_chance:.0%} by chance)"
        for one in columns[:MOST_COLUMNS_TOLD]
    ]
    if not told:
        return ""
    shares = ", ".join(told)
    return f"Neighbours of the same group, high where groups lie apart: {shares}."


def told_samples(
    column: ColumnAgreement | None, clusters: ColumnAgreement | None = None
) -> str:
    """Return what it means that the map follows a column of samples; "" for none.

    ``clusters``: how far the map's own clusters agree with it.
    """
    if column is None:
        return ""
    told = (
        f"The map follows {column.name}: {column.same:.0%} of a point's neighbours "
        f"are of its own {column.name}, {column.by_chance:.0%} by chance"
    )
    if clusters is not None and column.agreement >= clusters.agreement:
        told += f", more than of its own cluster ({clusters.same:.0%})"
    return (
        f"{told}. That is a batch effect, or it is real: mix only what is not what you "
        "study."
    )


class QualityPanel(Fold):
    """Measures the map in the background while it is unfolded, and once it is finished.

    Parameters
    ----------
    session : Session
    """

    continue_requested = Signal()
    """A run that goes on from the map on show, with settings that were changed."""
    warned = Signal(str)
    """What a person should know without asking; "" for nothing."""
    trust_changed = Signal(object)
    """Trustworthiness of the map, 0 to 1; None where it is not known."""
    mix_requested = Signal(str)
    """The column whose samples are to be mixed."""

    def __init__(self, session: Session) -> None:
        inside = QWidget()
        super().__init__(TITLE, inside)
        self.toggleButton().hide()  # it opens with the fold that it is in
        self.setToolTip("How well the map shows the data as a whole.")
        self._session = session
        self._measuring = Latest(self, self._take, self._on_failed, finishes=True)
        self.note = text_label(WAITING)
        self.columns_note = text_label()
        self.samples_note = text_label("", "warning")
        self.stability = StabilityPanel(session)
        self.parts_note = text_label("", "warning")
        self.link = PushButton(text="")
        WrappedText(self.link.native)
        self._parts: GraphParts | None = None
        self._linking: dict[str, Any] = {}
        """Settings that may link the parts of the graph."""
        self.mix = PushButton(text="")
        WrappedText(self.mix.native)
        self._mixable: tuple[str, ...] = ()
        self._followed: ColumnAgreement | None = None
        self._clusters: ColumnAgreement | None = None
        self.bars: dict[str, QProgressBar] = {}
        self.labels: dict[str, QLabel] = {}
        self._build(inside)
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._measure)
        self.toggled.connect(self._on_toggled)
        self.mix.changed.connect(self._ask_to_mix)
        self.link.changed.connect(self._ask_to_link)
        self._connections = Connections(self)
        for signal in (
            session.progressed,
            session.state_changed,
            session.restored,
            session.looked_back,
            session.dataset_changed,
            session.columns_changed,
            session.look.events.color_by,
        ):
            self._connections.connect(signal, self._on_change)
        self._connections.connect(session.state_changed, self._on_state)
        self._connections.connect(session.dataset_changed, self._forget_samples)
        self._connections.connect(session.looked_back, self._forget_samples)

    def set_mixable(self, columns: tuple[str, ...]) -> None:
        """Note the columns whose batches can be mixed, now."""
        self._mixable = columns
        self._show_samples()

    def show_quality(self, found: MapQuality | None, column: str | None) -> None:
        """Show figures; dashes where there are none."""
        for figure in FIGURES:
            value = math.nan if found is None else getattr(found, figure.field)
            known = not math.isnan(value)
            bar, label = self.bars[figure.field], self.labels[figure.field]
            is_shown = figure.field != "accuracy" or (known and column is not None)
            bar.setVisible(is_shown)
            label.setVisible(is_shown)
            said = figure.label.format(column=column)
            elided = Qt.TextElideMode.ElideRight
            label.setText(label.fontMetrics().elidedText(said, elided, LONGEST_LABEL))
            k = found.n_neighbors if found is not None else 15
            tip = figure.meaning.format(k=k, column=column)
            for widget in (bar, label):
                widget.setToolTip(tip)
            move_bar(bar, round(100 * value) if known else 0, 100)
            bar.setFormat(f"{value:.0%}" if known else "–")
        known = None if found is None else found.trustworthiness
        self.trust_changed.emit(None if known is None or math.isnan(known) else known)
        self._followed = None if found is None else followed_samples(found)
        self._clusters = None if found is None else found.clusters
        self._parts = None if found is None else found.parts
        self._show_parts()
        self._show_samples()
        show_text(self.columns_note, told_columns(found.columns) if found else "")
        if found is not None:
            show_text(
                self.note, f"Measured on {found.n_sampled:,} points drawn at random."
            )

    # Inside

    def _build(self, inside: QWidget) -> None:
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(3)
        for row, figure in enumerate(FIGURES):
            bar = QProgressBar()
            bar.setProperty("role", "figure")
            bar.setFixedHeight(16)
            bar.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label = text_label(wraps=False)
            grid.addWidget(label, row, 0)
            grid.addWidget(bar, row, 1)
            self.bars[figure.field], self.labels[figure.field] = bar, label
        grid.setColumnStretch(1, 1)
        notes = (
            self.parts_note,
            self.link.native,
            self.samples_note,
            self.mix.native,
            self.columns_note,
            self.note,
        )
        for row, widget in enumerate(notes, start=len(FIGURES)):
            grid.addWidget(widget, row, 0, 1, 3)
        grid.addWidget(self.stability, grid.rowCount(), 0, 1, 3)
        self.show_quality(None, None)

    def _show_samples(self) -> None:
        """Tell that the map follows samples, and offer to mix them if possible."""
        followed = self._followed
        self._show_title()
        show_text(self.samples_note, told_samples(followed, self._clusters))
        can_mix = followed is not None and followed.name in self._mixable
        self.mix.native.setVisible(can_mix)
        if followed is not None:
            self.mix.text = f"Mix batches of {followed.name}"
            self.mix.tooltip = (
                "Takes differences between the batches out of the principal components "
                "with Harmony, for a map in which they mix. The map on show stays in "
                "the list of maps."
            )

    def _show_title(self) -> None:
        """Tell in the title what a person should know without asking."""
        followed, parts = self._followed, self._parts
        told = [
            *([f"neighbours in {parts.n_parts:,} pieces"] if told_parts(parts) else []),
            *([] if followed is None else [f"the map follows {followed.name}"]),
        ]
        self.warned.emit(", ".join(told))

    def _show_parts(self) -> None:
        """Tell that the graph is in parts, and offer to go on with more neighbours."""
        session, told = self._session, told_parts(self._parts)
        show_text(self.parts_note, " ".join(told))
        dataset, played = session.dataset, session.played
        self._linking = {}
        if told and dataset is not None and played is not None and session.can_continue:
            self._linking = more_neighbors(played.settings, len(dataset.obs))
        self.link.native.setVisible(bool(self._linking))
        if self._linking:
            self.link.text = f"Continue with {settings_text(self._linking)}"
            self.link.tooltip = LINK_TIP

    def _ask_to_link(self) -> None:
        for name, value in self._linking.items():
            setattr(self._session.settings, name, value)
        self.continue_requested.emit()

    def _ask_to_mix(self) -> None:
        if self._followed is not None:
            self.mix_requested.emit(self._followed.name)

    def _on_state(self, state: str) -> None:
        if state == "preparing":
            self._forget_samples()
        dataset = self._session.dataset
        is_small = dataset is not None and len(dataset.obs) <= MOST_UNASKED
        if state == "finished" and is_small and not self.isExpanded():
            self._measure_now()

    def _forget_samples(self, *event: object) -> None:
        self._followed = self._parts = None
        self._show_parts()
        self._show_samples()

    def _on_toggled(self, is_open: bool) -> None:
        if is_open:
            self._measure()

    def _on_change(self, *event: object) -> None:
        if not self.isExpanded():
            return
        session = self._session
        if session.snapshot is None:
            self.show_quality(None, None)
            show_text(self.note, WAITING)
        elif session.state == "running":
            if not self._turn.isActive():
                self._turn.start(AGAIN_MS)
        else:
            self._turn.start(SOON_MS)

    def _measure(self) -> None:
        if self.isExpanded():
            self._measure_now()

    def _measure_now(self) -> None:
        session = self._session
        job = quality_job(session)
        if job is None:
            self.show_quality(None, None)
            lacks_data = session.snapshot is not None and session.state not in ALIVE
            show_text(self.note, NOT_KNOWN if lacks_data else WAITING)
            return
        if session.state != "running":
            show_text(self.note, MEASURING)
        asked = session.dataset, label_column(session), session.snapshot
        self._measuring.ask(lambda: (job(), *asked))

    def _take(
        self, found_of: tuple[MapQuality | None, Dataset, str | None, Snapshot]
    ) -> None:
        found, dataset, column, measured = found_of
        if dataset is self._session.dataset:
            if found is not None:
                self._session.timeline.tell_quality(measured, found)
            self.show_quality(found, column)
            if found is None:
                show_text(self.note, TOO_FEW)

    def _on_failed(self, error: BaseException) -> None:
        self.show_quality(None, None)
        show_text(self.note, sentence(error))
