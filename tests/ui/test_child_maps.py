"""A part as a map of its own, and the way back."""

import numpy as np


def test_a_selection_is_laid_out_alone_and_the_way_back_is_kept(
    play, qtbot, dock, session
):
    play()
    session.selection.select_points(np.arange(3))
    dock.select.embed.click()
    assert "too few" in dock.data.trouble.text()
    assert len(session.dataset.obs) == 40
    whole = session.snapshot.embedding
    assert dock.data.way.isHidden()
    cluster = session.clusters.clusters[1]
    session.clusters.rename(cluster.id, "T & NK")
    session.selection.select(cluster.id)
    dock.select.embed.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    dock.data.way.buttons[0].click()
    (part,) = dock.data.way.parts.menu().actions()
    assert part.text() == "T && NK (10 points)"  # else Qt shows no "&"
    session.selection.select_points(np.arange(20))
    dock.select.embed.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert len(dock.controller.scene.layers.points.data) == 20
    assert "20 rows" in dock.data.summary.text()
    (back,) = dock.data.way.buttons
    assert not dock.data.way.isHidden()
    assert back.text() == "‹ cells"
    named = session.clusters.clusters[0]
    session.clusters.rename(named.id, "naive")
    back.click()
    assert dock.data.way.buttons == []
    layers = dock.controller.scene.layers
    np.testing.assert_allclose(layers.points.data, layers.to_world(whole), atol=1e-3)
    names = [cluster.name for cluster in session.clusters.clusters]
    assert {"T & NK", "naive"} <= set(names)
    _, part = dock.data.way.parts.menu().actions()
    assert part.text() == "20 points (20 points)"
    part.trigger()
    assert len(session.dataset.obs) == 20
    assert dock.data.way.parts.isHidden()
    assert session.clusters.clustering.by_id[named.id].name == "naive"
