"""What a person called some cells, and what they see of it in the window."""

import numpy as np
from matplotlib.colors import to_hex


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


def objects_named(person, name):
    """Return the names of the rows of a cluster."""
    names = person.session.clusters.clustering.names
    return set(person.session.dataset.obs.index[names == name])


def test_merges_and_colours_outlast_measuring_again(person):
    image, labels = grains()
    person.viewer.add_image(image, name="DNA")
    layer = person.viewer.add_labels(labels, name="grains")
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
    person.run()
    after = shown(person)
    for name in (f"{one.name} + {two.name}", "dark"):
        assert after[name][0] == before[name][0]
        assert after[name][1] == before[name][1]
    assert len({color for _, color in after.values()}) == len(after)
    kept = sum(
        len(rows & before[n][0]) for n, (rows, _) in after.items() if n in before
    )
    assert kept > 0.8 * 144
    person.set_clusters(2)
    assert "no longer one cluster" in person.dock.run.message.text()
    assert person.dock.run.message.isVisibleTo(person.dock)
    named = objects_named(person, "dark")
    gone = int(min(named, key=int))
    layer.data_setitem(np.nonzero(layer.data == gone), 0)
    with person.loading():
        person.press(person.dock.data.relink.button)
    assert len(person.session.dataset.obs) == 143
    assert objects_named(person, "dark") == named - {str(gone)}
