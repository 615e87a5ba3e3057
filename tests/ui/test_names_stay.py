"""What a person called some cells, and what they see of it in the window."""

import anndata
import numpy as np
import pytest
from matplotlib.colors import to_hex
from qtpy.QtWidgets import QLineEdit

N = 600


@pytest.fixture
def cells(tmp_path):
    """A file of cells along a curve with three branches, where nothing parts them."""
    rng = np.random.default_rng(0)
    along, branch = rng.random(N), rng.integers(0, 3, N)
    ends = rng.normal(size=(4, 10)) * 4
    X = along[:, None] * ends[branch] + np.sin(3 * along)[:, None] * ends[3]
    X += rng.normal(size=X.shape) * 0.15
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(X.astype(np.float32)).write_h5ad(path)
    return path


def finish(person, act):
    """Do what has the map play on, and watch to the end."""
    states = []
    person.session.state_changed.connect(states.append)
    act()
    person.wait(lambda: "running" in states and states[-1] == "finished", "the end")
    person.session.state_changed.disconnect(states.append)


def names(person, path):
    """Save the map, and read the name of each cell in the file."""
    person.save(path)
    return anndata.read_h5ad(path).obs["embedding_game_cluster"].astype(str)


def test_names_are_of_cells_whatever_is_done_to_the_map(
    person, person_at_the_window, cells, tmp_path
):
    game, message = person.dock.game, person.dock.run.message

    def type_repulsion(value):
        editor = game.repulsion.native.findChild(QLineEdit)
        person.show(editor)
        person_at_the_window._type(editor, value)

    def dimensions(n):
        return lambda: person.choose_in(game.controls["n_components"].native, str(n))

    person.open(cells)
    person.run()
    person.set_clusters(8)
    for number in range(8):
        cluster = next(c for c in person.session.clusters.clusters if not c.is_named)
        person.choose(cluster.id)
        person.rename(f"type {number}")
    before = names(person, tmp_path / "0.h5ad")
    assert before.value_counts().size == 8
    for step, act in enumerate(
        (
            dimensions(3),
            dimensions(2),
            lambda: type_repulsion("1200"),
            lambda: type_repulsion("300"),
        )
    ):
        finish(person, act)
        after = names(person, tmp_path / f"{step}.h5ad")
        assert after.equals(before), step
    person.set_clusters(3)
    assert names(person, tmp_path / "few.h5ad").equals(before)
    assert message.isVisibleTo(person.dock)
    assert "are no longer one cluster each: their points keep the names" in (
        message.text()
    )


def grains():
    """Return an image and the labels of 144 grains of eight sizes and brightnesses."""
    rng = np.random.default_rng(0)
    image = rng.normal(10, 1, (240, 240)).astype(np.float32)
    labels = np.zeros(image.shape, np.int32)
    for number in range(144):
        row, column = (20 * part for part in divmod(number, 12))
        side = 6 + 4 * (number % 3)
        place = np.s_[row : row + side, column : column + side]
        labels[place] = number + 1
        image[place] += 40 * (number % 8)
    return image, labels


def shown(person):
    """Return the rows and the colour of each cluster by its name, as on the map."""
    book = person.session.clusters
    colors = person.dock.controller.scene.layers.points.face_color
    rows = {c.name: book.clustering.rows(c.id) for c in book.clusters}
    for name, inside in rows.items():
        assert len({to_hex(color) for color in colors[inside]}) == 1, name
    return {n: (set(inside), to_hex(colors[inside[0]])) for n, inside in rows.items()}


def test_merges_and_colours_outlast_measuring_again(person):
    image, labels = grains()
    person.viewer.add_image(image, name="DNA")
    layer = person.viewer.add_labels(labels, name="grains")
    person.measure()
    person.run()
    person.set_clusters(8)
    one, two, *_, last = person.session.clusters.clusters
    person.choose(one.id)
    person.choose_too(two.id)
    person.merge()
    person.choose(last.id)
    person.rename("dark")
    person.press_escape()  # else the others are dimmed
    before = shown(person)
    assert len(before) == 7
    layer.brush_size = 1
    layer.paint((3, 3), 2)  # a grain has lost a pixel to its neighbour
    with person.loading():
        person.press(person.dock.data.relink.button)
    finish(person, lambda: person.press(person.dock.run.run))
    after = shown(person)
    for name in (f"{one.name} + {two.name}", "dark"):
        assert after[name][0] == before[name][0]
        assert after[name][1] == before[name][1]
    assert len({color for _, color in after.values()}) == len(after)
    kept = sum(
        len(rows & before[n][0]) for n, (rows, _) in after.items() if n in before
    )
    assert kept > 0.8 * 144
