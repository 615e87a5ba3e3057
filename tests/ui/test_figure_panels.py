"""A figure of several panels, from the menu through the dialog to the file."""

import re
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QDialogButtonBox, QFileDialog

from napari_embedding_game.data.export.plots import ExpressionPlot, VolcanoPlot
from napari_embedding_game.ui.controls.save_menu import PANELS
from napari_embedding_game.ui.tasks.figure_dialog import NOTHING, FigureDialog
from napari_embedding_game.ui.tasks.figure_panels import FigureChoice, collect


@pytest.fixture
def ask(dock, monkeypatch, tmp_path, from_menu):
    """Choose the entry of the menu, and answer its dialog; return the file."""

    def ask(answer):
        path = tmp_path / "figure.svg"
        monkeypatch.setattr(
            QFileDialog, "getSaveFileName", lambda *question: (str(path), "")
        )

        def act():
            dialog = QApplication.activeModalWidget()
            assert isinstance(dialog, FigureDialog)
            answer(dialog)
            if dialog.isVisible():
                dialog.reject()

        QTimer.singleShot(0, act)
        from_menu(dock.run.save.menu, PANELS)
        return path

    return ask


def save(dialog):
    button = dialog.buttons.button(QDialogButtonBox.StandardButton.Save)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def test_panels_are_ticked_and_written(play, dock, session, ask, qtbot):
    play()
    session.look.color_by = "kind"
    session.clusters.rename(2, "B cells")
    session.hiding.hide("kind", "B")

    def answer(dialog):
        assert dialog.colors.isChecked()
        assert not dialog.volcano.isEnabled()  # no Inspector shows one
        dialog.split_by.setCurrentText("kind")
        QTest.keyClicks(dialog.genes, "b, C")
        dialog.width_of_page.setCurrentIndex(0)
        save(dialog)

    with qtbot.waitSignal(dock.controller.writing.saved, timeout=20_000):
        path = ask(answer)
    drawn = path.read_text()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"Clusters", "B cells", "kind", "kind: T", "b", "c", "T"} <= set(texts)
    assert "kind: B" not in texts  # hidden
    assert any("Clusters (20 points)" in text for text in texts)
    assert float(re.search(r'width="([\d.]+)pt"', drawn)[1]) == pytest.approx(
        89 / 25.4 * 72, abs=0.1
    )


def test_what_cannot_be_drawn_is_told(play, ask):
    play()
    told = []

    def answer(dialog):
        QTest.keyClicks(dialog.genes, "GENE9")
        save(dialog)
        told.append(dialog.trouble.text())
        dialog.genes.clear()
        dialog.clusters.setChecked(False)
        save(dialog)
        told.append(dialog.trouble.text())

    path = ask(answer)
    assert told == ["These data have no column GENE9.", NOTHING]
    assert not path.exists()


def test_plots_of_the_inspector_are_panels(play, session, workspace, inspector, qtbot):
    play()
    inspector.show()
    session.selection.select(2)
    inspector.details.tabs.setCurrentWidget(inspector.details.markers)
    pane = inspector.details.markers
    qtbot.waitUntil(lambda: pane.result is not None)
    dialog = FigureDialog(workspace)
    assert dialog.volcano.isChecked()
    assert not dialog.expression.isEnabled()
    assert "under Plots first" in dialog.expression.toolTip()
    save(dialog)
    panels, page = collect(workspace, dialog.choice)()
    assert isinstance(panels[-1], VolcanoPlot)
    assert panels[-1].title == "Cluster 2 against all the rest"
    assert page.caption.startswith("a, Clusters (40 points). b, Change and adjusted")
    dialog.deleteLater()
    inspector.dock.close()
    assert workspace.plots.on_show(VolcanoPlot) is None
    assert workspace.plots.on_show(ExpressionPlot) is None


def test_a_map_in_space_is_drawn_as_it_is_seen(play, workspace, session):
    play()
    flat = session.snapshot.embedding
    places = np.hstack([flat, flat[:, :1] ** 2])
    session.snapshot = replace(session.snapshot, embedding=places)
    facing = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
    session.facing = facing
    (panel,), _ = collect(workspace, FigureChoice())()
    back_to_front = np.argsort(places @ np.cross(*facing), kind="stable")
    expected = places[back_to_front] @ facing.T
    np.testing.assert_allclose(panel.embedding, expected, rtol=1e-5, atol=1e-5)
