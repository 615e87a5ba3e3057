"""The plate that the points come from: how many, or what share, in each well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import PlatePlot, write_plot
from napari_embedding_game.data.wells import FORMATS, Well, smallest_format
from napari_embedding_game.session.cluster_report import is_continuous
from napari_embedding_game.session.plates import (
    Plate,
    plate_columns,
    plates_of,
    well_text,
)
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.inspector.plate_view import PlateView
from napari_embedding_game.ui.style.coloring import SHADES
from napari_embedding_game.ui.style.colors import (
    MISSING,
    Colors,
    category_colors,
    value_colors,
    value_extent,
)
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.level_click import select_rows
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed

COUNT, SHARE = "Number of points", "Share of clusters"
CHOOSE = (
    "Click a cluster on the map or in the table: wells show its share of their points."
)
SEVERAL, UNKNOWN = "several", "not known"
MOST_NAMED = 4
"""Clusters that are named in the key."""


class PlatePane(QWidget):
    """A choice of what is shown, and the wells.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._dataset: Dataset | None = None
        self._obs: object = None
        """Its metadata, of which each change makes another frame."""
        self._plates: tuple[Plate, ...] = ()
        self._clusters: tuple[int, ...] = ()
        """Those that were chosen last; a click on a well does not change them."""
        self._columns: list[str] = []
        self.shown = QComboBox()
        self.plate = QComboBox()
        self.format = QComboBox()
        self.saved = QToolButton()
        self.state = text_label()
        self.view = PlateView()
        self._build()
        for box in (self.shown, self.plate, self.format):
            box.activated.connect(self._draw)
        self.saved.clicked.connect(self._save)
        self.view.picked.connect(self._choose)
        self.view.cleared.connect(session.selection.clear)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.view.set_theme(colors)

    def set_dataset(self, dataset: Dataset | None) -> None:
        """Take up other data; :attr:`has_plate` tells whether they are of a plate."""
        obs = None if dataset is None else dataset.obs
        if dataset is self._dataset and obs is self._obs:
            return
        if dataset is not self._dataset:
            self._clusters = ()
        self._dataset, self._obs = dataset, obs
        self._plates = () if dataset is None else plates_of(dataset)
        self._offer()
        self.refresh()

    @property
    def has_plate(self) -> bool:
        """Whether it is known from which wells the points are."""
        return bool(self._plates)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Follow the clusters and the selection, while it is seen."""
        selection = self._session.selection
        if selection.clusters and not selection.is_of_points:
            self._clusters = tuple(selection.clusters)
        if self.isVisible():
            self._draw()

    # Inside

    def _build(self) -> None:
        self.shown.setToolTip(
            "What the colours of the wells tell: how many points, the share of the "
            "chosen clusters among them, or a column that is known of each well."
        )
        self.plate.setToolTip("Which of the plates is shown.")
        self.format.setToolTip("How many wells the plate has.")
        for n in FORMATS:
            self.format.addItem(f"{n:,} wells", n)
        self.saved.setText("Save…")
        self.saved.setProperty("role", "edit")
        self.saved.setToolTip("Save as .pdf, .svg or .png; its text can be edited.")
        head = QHBoxLayout()
        head.addWidget(self.shown)
        head.addWidget(self.plate)
        head.addWidget(self.format)
        head.addStretch(1)
        head.addWidget(self.saved)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.state)
        layout.addWidget(self.view, 1)
        show_text(self.state, "")

    def _offer(self) -> None:
        """Offer what can be shown of the present data."""
        dataset, plates = self._dataset, self._plates
        former = self.shown.currentText()
        self._columns = plate_columns(dataset, plates) if dataset and plates else []
        choices = [COUNT, SHARE, *self._columns]
        self.shown.clear()
        self.shown.addItems(choices)
        self.shown.setCurrentText(former if former in choices else COUNT)
        self.plate.clear()
        self.plate.addItems([plate.name or "no plate" for plate in plates])
        self.plate.setVisible(len(plates) > 1)
        wells = [well for plate in plates for well in plate.wells]
        self.format.setCurrentIndex(self.format.findData(smallest_format(wells)))

    def _draw(self) -> None:
        """Show the wells of the chosen plate in the chosen way."""
        dataset, place = self._dataset, self.plate.currentIndex()
        show_text(self.state, "")
        if dataset is None or not 0 <= place < len(self._plates):
            self.view.show_picture(None, ())
            return
        plate = self._plates[place]
        picture, figures = self._picture(dataset, plate)
        texts = []
        for well, said in zip(plate.wells, figures, strict=True):
            told = well_text(dataset, plate, well, self._columns)
            texts.append("\n".join(filter(None, (told, said))))
        self.view.show_picture(picture, texts)
        self.view.mark(self._chosen(plate))

    def _picture(
        self, dataset: Dataset, plate: Plate
    ) -> tuple[PlatePlot, Sequence[str]]:
        """Return the wells in their colours, and what is said of each besides."""
        choice = self.shown.currentText()
        nothing = [""] * len(plate.wells)
        if choice == COUNT:
            counts = plate.counts()
            limits = 0.0, max(1.0, self._highest(lambda one: one.counts()))
            return self._by_number(plate, counts, limits, COUNT), nothing
        if choice == SHARE:
            return self._by_share(plate)
        values = dataset.obs[choice]
        if is_continuous(values):
            means = plate.means(values)
            every = np.concatenate([one.means(values) for one in self._plates])
            return self._by_number(plate, means, value_extent(every), choice), nothing
        return self._by_name(plate, choice), nothing

    def _by_share(self, plate: Plate) -> tuple[PlatePlot, Sequence[str]]:
        clusters = self._session.clusters
        known = clusters.clustering.by_id
        chosen = [c for c in self._clusters if c in known]
        if not chosen or self._session.snapshot is None:
            show_text(self.state, CHOOSE, "note")
            shares = np.full(len(plate.wells), np.nan)
            picture = self._by_number(plate, shares, (0.0, 1.0), SHARE, is_share=True)
            return picture, [""] * len(plate.wells)
        points = np.isin(clusters.labels, chosen)
        shares = plate.shares(points)
        highest = self._highest(lambda one: one.shares(points))
        names = [known[c].name for c in chosen[:MOST_NAMED]]
        named = ", ".join(names) + (" …" if len(chosen) > MOST_NAMED else "")
        title = f"Share of {named if known[chosen[0]].is_named else f'cluster {named}'}"
        limits = (0.0, highest or 1.0)
        picture = self._by_number(plate, shares, limits, title, is_share=True)
        figures = [
            f"{share:.1%} in {named} ({points[rows].sum():,} of {len(rows):,})"
            if len(rows)
            else ""
            for share, rows in zip(shares, plate.wells.values(), strict=True)
        ]
        return picture, figures

    def _highest(self, figure: Callable[[Plate], NDArray[np.float64]]) -> float:
        """Return the highest figure of all plates, so that they can be compared."""
        every = np.concatenate([figure(plate) for plate in self._plates])
        return float(np.max(every, where=np.isfinite(every), initial=0.0))

    def _by_number(
        self,
        plate: Plate,
        values: NDArray[np.floating],
        limits: tuple[float, float],
        title: str,
        *,
        is_share: bool = False,
    ) -> PlatePlot:
        return self._made(
            plate,
            value_colors(values, limits),
            title,
            scale=value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0)),
            limits=limits,
            is_share=is_share,
        )

    def _by_name(self, plate: Plate, column: str) -> PlatePlot:
        assert self._dataset is not None
        values = self._dataset.obs[column].astype("category")
        names = [str(level) for level in values.cat.categories]
        palette = dict(zip(names, category_colors(len(names)), strict=True))
        levels = plate.levels(self._dataset.obs[column])
        rgba = [palette[one[0]] if len(one) == 1 else MISSING for one in levels]
        told = [(name, palette[name]) for name in names]
        if any(len(one) > 1 for one in levels):
            told.append((SEVERAL, MISSING))
        elif not all(levels):
            told.append((UNKNOWN, MISSING))
        colors = np.array(rgba, np.float32).reshape(-1, 4)
        return self._made(plate, colors, column, levels=tuple(told))

    def _made(self, plate: Plate, rgba: Colors, title: str, **more: Any) -> PlatePlot:
        return PlatePlot(
            shape=self._shape(plate),
            wells=tuple(plate.wells),
            rgba=rgba,
            title=title,
            plate=plate.name,
            **more,
        )

    def _shape(self, plate: Plate) -> tuple[int, int]:
        """Return the rows and columns of the chosen plate, or as many as are needed."""
        n = max(self.format.currentData() or 0, smallest_format(plate.wells))
        return FORMATS[n]

    def _chosen(self, plate: Plate) -> list[Well]:
        """Return the wells of which all points are selected, one by one."""
        selection = self._session.selection
        if self._session.snapshot is None or not selection.is_of_points:
            return []
        points = selection.points
        return [
            w for w, rows in plate.wells.items() if len(rows) and points[rows].all()
        ]

    def _choose(self, well: Well, is_added: bool) -> None:
        """Select the points of a well."""
        session, plate = self._session, self._plates[self.plate.currentIndex()]
        if session.snapshot is None:
            show_text(self.state, "Run the game first: a click then selects.", "note")
            return
        rows = plate.wells.get(well, np.empty(0, np.intp))
        points = np.zeros(len(session.snapshot.embedding), bool)
        points[rows] = True
        select_rows(session.selection, points, is_added=is_added)

    def _save(self) -> None:
        picture = self.view.picture
        if picture is None:
            return
        path = ask_figure(self, proposed(self._session.dataset, "plate"))
        if path is None:
            return
        try:
            write_plot(picture, path)
        except (DataError, OSError) as error:
            self._session.say(sentence(error))
        else:
            show_text(self.state, f"Saved as {path.name}.", "note")
