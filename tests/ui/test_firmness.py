"""The strip below the slider, and whether two selected clusters are one."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.game_dock import MAP, SELECTION
from worlds import rows

LEFT = Qt.MouseButton.LeftButton
SIZES = (150, 100, 80)


@pytest.fixture
def session():
    """Three groups, played in earnest."""
    rng = np.random.default_rng(0)
    middles = 9 * np.eye(12)[:3]
    of = np.repeat(np.arange(3), SIZES)
    X = (middles[of] + rng.normal(size=(len(of), 12))).astype(np.float32)
    session = Session(pace=0.0)
    session.load(rows(X))
    session.settings.update(max_iter=100, n_landmarks=60)
    return session


@pytest.fixture
def shown(qtbot, inspector, session):
    inspector.resize(420, 1000)
    inspector.show(MAP)
    QTest.mouseClick(inspector.dock.run_controls.run_button, LEFT)
    strip = inspector.clusters.slider.strip
    is_complete = lambda: getattr(strip.firmness, "is_complete", False)  # noqa: E731
    qtbot.waitUntil(is_complete, timeout=60_000)
    return inspector


def tip_at(strip, place):
    """Return the tooltip there; a move may be lost on a busy machine."""
    QTest.mouseMove(strip, place + QPoint(0, 1))
    QTest.mouseMove(strip, place)
    return strip.toolTip()


def test_a_click_on_the_suggested_number_chooses_it(qtbot, shown, session):
    strip = shown.clusters.slider.strip
    assert strip.isVisible()
    assert strip.firmness.suggested == (3,)
    assert session.clusters.n_clusters != 3
    place = QPoint(strip.find_bar_middle(3), strip.height() // 2)
    QTest.mouseClick(strip, LEFT, pos=place)
    assert session.clusters.n_clusters == 3
    sizes = sorted(cluster.size for cluster in session.clusters.clusters)
    np.testing.assert_allclose(sizes, sorted(SIZES), atol=2)
    qtbot.waitUntil(lambda: "3 clusters: firm." in tip_at(strip, place))
    p = strip.firmness.find_cut(3).separation.p_text
    assert f"({p}). Suggested, fine" in strip.toolTip()
    strip.show_firmness(replace(strip.firmness, suggested=(2, 3)))
    assert "Suggested, coarse" in strip.describe_number(2)
    for number, x in ((2, 1), (3, strip.width() - 1)):
        QTest.mouseClick(strip, LEFT, pos=QPoint(x, strip.height() - 2))
        assert session.clusters.n_clusters == number
        low = QPoint(x, strip.height() - 3)
        begin = f"{number} clusters: "  # and not of the bar above
        qtbot.waitUntil(lambda at=low, s=begin: tip_at(strip, at).startswith(s))
    assert strip.describe_number(4).startswith("4 clusters: ")
    strip.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        QTest.keyClick(strip, key)
    assert strip.accessibleDescription().startswith("2 clusters: ")
    QTest.keyClick(strip, Qt.Key.Key_Return)
    assert session.clusters.n_clusters == 2
    for _ in range(5):
        QTest.keyClick(strip, Qt.Key.Key_Left)  # below 2 there is no bar
    QTest.keyClick(strip, Qt.Key.Key_Space)
    assert session.clusters.n_clusters == 2
    session.load(None)
    qtbot.waitUntil(lambda: not strip.isVisible())


def test_two_clusters_are_two_and_the_halves_of_one_are_not(qtbot, shown, session):
    two = shown.details.two
    session.clusters.set_n_clusters(3)
    shown.show(SELECTION)
    first, second, third = (cluster.id for cluster in session.clusters.clusters)
    session.selection.select_clusters([first, second, third])
    assert two.isHidden()
    session.selection.select_clusters([first, second])
    qtbot.waitUntil(two.isVisible)
    QTest.mouseClick(two.ask, LEFT)
    qtbot.waitUntil(lambda: two.answer.text().startswith("A gap lies between them: "))
    whole = np.flatnonzero(session.clusters.labels == first)
    across = session.snapshot.embedding[whole, 0]
    half = session.clusters.make_group(whole[across < np.median(across)])
    session.selection.select_clusters([first, half])
    assert not two.answer.text()
    QTest.mouseClick(two.ask, LEFT)
    qtbot.waitUntil(lambda: ":" in two.answer.text())
    assert two.answer.text().startswith("Not told apart: ")
    # Distances have no strip, and the question says why.
    X = session.dataset.X[::3]
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    session.load(rows(apart, space="obsp['distances']"))
    session.settings.update(metric="precomputed", max_iter=20, n_landmarks=30)
    QTest.mouseClick(shown.dock.run_controls.run_button, LEFT)
    qtbot.waitUntil(lambda: session.state == "finished")
    session.clusters.set_n_clusters(3)
    session.selection.select_clusters([c.id for c in session.clusters.clusters[:2]])
    QTest.mouseClick(two.ask, LEFT)
    assert "do not tell what lies between" in two.answer.text()
    shown.show(MAP)
    assert shown.clusters.slider.strip.isHidden()
