"""The tab of plots: volcano, expression, scatter, conditions, and neighbourhoods."""

from __future__ import annotations

from functools import partial

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDialog, QStackedWidget, QToolButton, QWidget

from napari_embedding_game.data.export.plots import Plot, write_plot
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.expression_pane import ExpressionPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.neighborhoods_pane import (
    NeighborhoodsPane,
)
from napari_embedding_game.ui.inspector.scatter_pane import ScatterPane
from napari_embedding_game.ui.inspector.shares_pane import SharesPane
from napari_embedding_game.ui.inspector.volcano_pane import VolcanoPane
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, TextLabel
from napari_embedding_game.ui.style.layouts import (
    frameless_tabs,
    horizontal_box,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas, PlotPane
from napari_embedding_game.ui.tasks.save_dialog import ask_and_save

FIGURES = {".pdf": "PDF", ".svg": "Scalable picture", ".png": "Picture"}
"""Titles of the formats of a figure, by ending."""
NOTHING = "Nothing is drawn yet that could be saved."
LARGER_TIP = "Show the plots in a window of their own, as large as you like."
IN_WINDOW = "The plots are in a window of their own. Close it to have them here."
WINDOW = 1000, 850
"""Width and height of that window in pixels."""
CONDITIONS_TIP = (
    "What differs between two conditions: inside the selection, or in how much of each "
    "sample a cluster makes up."
)
SAVE_TIP = "Save as .pdf, .svg or .png; its text can be edited."


class ConditionPlots(QWidget):
    """Plots of two conditions: inside the selection, or shares of clusters."""

    def __init__(self, differences: VolcanoPane, shares: SharesPane) -> None:
        super().__init__()
        self._pages = QStackedWidget()
        for pane in (differences, shares):
            self._pages.addWidget(pane)
        self.choice = ChoiceBox(CONDITIONS_TIP, self._pages.setCurrentWidget)
        self.choice.set_choices(
            (("Inside the selection", differences), ("Shares of clusters", shares))
        )
        self.choice.setAccessibleName("What is compared")
        self.setLayout(vertical_box(self.choice, self._pages, margins=(0, 4, 0, 0)))
        self.layout().setStretchFactor(self._pages, 1)

    @property
    def shown_pane(self) -> PlotPane:
        """The pane of the chosen plot."""
        return self._pages.currentWidget()


class PlotsTab(QWidget):
    """Plots that are updated with the clusters and the selection of the map.

    Parameters
    ----------
    markers : MarkersPane
    conditions : MarkersPane
        The comparisons of both are shown as volcano plots.
    """

    def __init__(self, markers: MarkersPane, conditions: MarkersPane) -> None:
        super().__init__()
        self._session = markers.workspace.session
        self.volcano = VolcanoPane(markers)
        self.expression = ExpressionPane(markers.workspace)
        self.scatter = ScatterPane(self._session)
        self.shares = SharesPane(self._session)
        self.conditions = ConditionPlots(VolcanoPane(conditions), self.shares)
        self.neighborhoods = NeighborhoodsPane(self._session)
        self.save_button = QToolButton()
        self.save_button.setText("Save…")
        self.save_button.setProperty("role", "edit")
        self.save_button.setToolTip(SAVE_TIP)
        self.save_button.clicked.connect(self._save_shown_plot)
        self.larger_button = QToolButton()
        self.larger_button.setText("Larger")
        self.larger_button.setProperty("role", "edit")
        self.larger_button.setToolTip(LARGER_TIP)
        self.larger_button.setCheckable(True)
        self.larger_button.toggled.connect(self.set_in_window)
        self.tabs = frameless_tabs()
        self.tabs.addTab(self.volcano, "Volcano")
        self.tabs.addTab(self.expression, "Expression")
        self.tabs.addTab(self.scatter, "Scatter")
        self.tabs.addTab(self.conditions, "Conditions")
        self.tabs.addTab(self.neighborhoods, "Tissue")
        self.tabs.setCurrentWidget(self.expression)
        self.in_window = TextLabel(IN_WINDOW)
        self.in_window.hide()
        buttons = horizontal_box(
            None, self.shares.table_button, self.larger_button, self.save_button
        )
        self._page = widget_with_layout(vertical_box(self.tabs, buttons))
        self.setLayout(vertical_box(self._page, self.in_window, margins=(0, 4, 0, 4)))
        self.window_of_plots = QDialog(self, Qt.WindowType.Window)
        """The window that holds the plots while they are shown larger."""
        self.window_of_plots.setWindowTitle("Plots (Embedding Game)")
        self.window_of_plots.setLayout(vertical_box(margins=(8, 8, 8, 8)))
        self.window_of_plots.resize(*WINDOW)
        self.window_of_plots.finished.connect(lambda _: self.set_in_window(False))
        changes = self._session.dataset_changed, self._session.columns_changed
        Connections(self).connect(self._offer_neighborhoods, *changes)
        self._offer_neighborhoods()

    def _offer_neighborhoods(self, *event: object) -> None:
        """Show the tab of neighbourhoods where cells have positions in tissue."""
        dataset = self._session.dataset
        has_tissue = dataset is not None and dataset.tissue is not None
        self.tabs.setTabVisible(self.tabs.indexOf(self.neighborhoods), has_tissue)

    def set_in_window(self, is_in_window: bool) -> None:
        """Move the plots into a window of their own, or back into the tab."""
        self.larger_button.setChecked(is_in_window)
        layout = self.window_of_plots.layout() if is_in_window else self.layout()
        layout.insertWidget(0, self._page)
        for canvas in self.tabs.findChildren(PlotCanvas):
            canvas.limit_growth(is_in_window)
        self.in_window.setVisible(is_in_window)
        self.window_of_plots.setVisible(is_in_window)

    @property
    def shown_pane(self) -> PlotPane:
        """The pane whose plot is seen."""
        page = self.tabs.currentWidget()
        return page.shown_pane if isinstance(page, ConditionPlots) else page

    def _save_shown_plot(self) -> None:
        """Ask for a file and save the visible plot, or say that there is none.

        After a volcano plot its comparison is stored in the session.
        """
        pane = self.shown_pane
        compared = pane.markers.compared if isinstance(pane, VolcanoPane) else None
        plot = pane.canvas.plot
        if plot is None:
            pane.state.show_text(NOTHING)
        else:
            name = self.tabs.tabText(self.tabs.currentIndex()).lower()
            message = ask_and_save_plot(
                plot, self, self._session, name.replace(" ", "_")
            )
            if message:
                pane.state.show_text(message)
                if compared is not None:
                    self._session.store_comparison(compared.groups)


def ask_and_save_plot(plot: Plot, parent: QWidget, session: Session, name: str) -> str:
    """Ask for a file and write a plot; return a message, or "" if nothing was saved.

    ``name`` is appended to the proposed file name.
    """
    return ask_and_save(parent, session, name, FIGURES, partial(write_plot, plot))
