"""Records the film of the README in a real window, or one of each gesture.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/film.py cells.h5ad
    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/film.py cells.h5ad --gestures

The file has principal components (``obsm["X_pca"]``) and some thousand cells.  The film
begins with the finished map.  Then the game is run, a cluster is dragged by its name,
the repulsion is raised, both are taken back by the timeline, the two maps are compared
and laid side by side, a group is brushed, and the cells that lie farthest from cells
like them are followed to their neighbours in the data.  The films of gestures, all or
those that are named behind ``--gestures``, stand in the guide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from scipy.spatial import cKDTree

from napari_embedding_game.ui.controls.run import READY
from napari_embedding_game.ui.style.coloring import STRETCH
from palette import in_few_colors, palette_of
from person import LEFT, Person
from window import opened, picture

WINDOW = (1300, 860)
WIDTH = 860
"""Pixels of the film."""
SMALL_WINDOW, SMALL_WIDTH = (1100, 760), 720
MAX_BYTES = 300_000
"""Of the film of a gesture."""
FRAME_MS = 120
LAST_MS = 2_500
"""The last frame of a scene, so that it can be read."""
POSTER_MS = 1_500
"""The finished map, with which the film of the README begins."""
MAX_MS = 1_200
"""Of a frame while nothing moves, such as the search of neighbours."""
FOLLICLE = 100.0
"""Radius of a follicle of the simulated tissue, in micrometres."""
MAX_ITER = 1_200
"""Of the game: more than usual, so that its frames are many on a busy machine."""
IMAGES = Path(__file__).parents[1] / "docs" / "images"


class Film:
    """Frames of a window, each with the time that it is seen.

    Parameters
    ----------
    person : Person
        Who works at the window.
    width : int
        Pixels of the film.
    """

    def __init__(self, person: Person, width: int = WIDTH) -> None:
        self._person, self._width = person, width
        self._window = person.viewer.window._qt_window
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []
        self.pointer: QPoint | None = None
        """Where the mouse is on the canvas."""

    def shoot(self, milliseconds: int = FRAME_MS) -> None:
        """Add a frame; one like the last makes that one longer."""
        frame = picture(self._person)
        self._draw_pointer(frame)
        height = round(self._width * frame.height / frame.width)
        frame = frame.resize((self._width, height))
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.durations[-1] += milliseconds
        else:
            self.frames.append(frame)
            self.durations.append(milliseconds)

    def follow(self, seconds: float) -> None:
        """Add frames while the window does something by itself."""
        for _ in range(round(1000 * seconds / FRAME_MS)):
            self._person.rest(FRAME_MS / 1000)
            self.shoot()

    def follow_run(self) -> None:
        """Add frames until the game has ended, and hold the last one."""
        while self._person.session.state not in ("finished", "failed"):
            self._person.rest(FRAME_MS / 1000)
            self.shoot()
            self.durations[-1] = min(self.durations[-1], MAX_MS)
        self._person.rest(1.0)
        self.shoot(LAST_MS)

    def show_last_first(self) -> None:
        """Begin the film with a copy of its last frame, before it is played."""
        self.frames.insert(0, self.frames[-1])
        self.durations.insert(0, POSTER_MS)

    def save(self, path: Path, max_bytes: int | None = None) -> None:
        """Write an animated GIF with one table of colours, and say how large it is.

        It has half its frames until it is no larger than `max_bytes`.
        """
        self._write(path)
        while max_bytes and path.stat().st_size > max_bytes:
            self.frames = self.frames[::-2][::-1]  # the last one stays
            odd = len(self.durations) % 2 * [0] + self.durations
            self.durations = [a + b for a, b in zip(odd[::2], odd[1::2], strict=True)]
            self._write(path)
        seconds, size = sum(self.durations) / 1000, path.stat().st_size / 1000
        print(f"{path.name}: {len(self.frames)} frames, {seconds:.0f} s, {size:.0f} kB")

    def _write(self, path: Path) -> None:
        some = self.frames[:: max(1, len(self.frames) // 30)]
        sheet = np.concatenate([np.asarray(frame) for frame in some])
        palette = palette_of(Image.fromarray(sheet))
        small = [in_few_colors(frame, palette) for frame in self.frames]
        small[0].save(
            path,
            save_all=True,
            append_images=small[1:],
            duration=self.durations,
            loop=0,
            optimize=True,
        )

    def _draw_pointer(self, frame: Image.Image) -> None:
        if self.pointer is None:
            return
        place = self._person.canvas.mapTo(self._window, self.pointer)
        x, y = place.x(), place.y()
        arrow = [(x, y), (x, y + 20), (x + 5, y + 15), (x + 14, y + 15)]
        ImageDraw.Draw(frame).polygon(arrow, fill="white", outline="black")


def drag_cluster(person: Person, film: Film) -> None:
    """Drag a middle-sized cluster by its name to the other side of the map."""
    labels = person.dock.map_names
    drawn = person.dock.controller.scene.map_layers.projection()
    middles, _ = labels.label_positions_and_opacities(drawn)
    sizes = [cluster.size for cluster in labels.names.clusters]
    place = int(np.argsort(sizes)[::-1][min(4, len(sizes) - 1)])
    begin = middles[place]
    middle = np.array([person.canvas.width(), person.canvas.height()]) / 2
    end = middle + 0.75 * (middle - begin)
    canvas = person.canvas
    QTest.mouseMove(canvas, _point(begin))
    QTest.mousePress(canvas, LEFT, pos=_point(begin))
    for share in np.linspace(0, 1, 14):
        film.pointer = _point(begin + share * (end - begin))
        QTest.mouseMove(canvas, film.pointer)
        person.rest(0.05)
        film.shoot()
    QTest.mouseRelease(canvas, LEFT, pos=_point(end))
    film.pointer = None
    film.follow_run()


def _point(place: np.ndarray) -> QPoint:
    return QPoint(*(round(float(x)) for x in place))


def raise_repulsion(person: Person, film: Film) -> None:
    """Drag the handle of the repulsion to the right."""
    slider = person.dock.method_controls.repulsion_slider.native
    person.show(slider)
    for exponent in np.linspace(np.log10(300), np.log10(700), 8):
        person.dock.method_controls.repulsion_slider.value = float(exponent)
        person.rest(0.1)
        film.shoot()
    film.follow_run()


def draw_large_picture(person: Person, film: Film) -> None:
    """Drag the handle of the large picture to the right."""
    person.dock.method_fold.set_expanded(True)
    slider = person.dock.method_controls.controls["large_picture"]
    person.show(slider.native)
    for strength in np.linspace(0.5, 4, 8):
        slider.value = float(strength)
        person.rest(0.1)
        film.shoot()
    film.follow_run()


def compare(person: Person, film: Film) -> None:
    """Have the map lie beside the one with the higher repulsion."""
    timeline = person.dock.timeline_controls
    person.wait(lambda: not person.session.is_moving, "the end")
    timeline.begin_comparison(person.session.timeline.marks[-1].number)
    person.wait(lambda: person.session.view.comparison is not None, "comparison")
    person.show(timeline.words)
    person.session.look.color_by = "Movement"
    person.rest(0.4)
    film.shoot(LAST_MS)
    person.rest(1.0)
    film.shoot(LAST_MS)
    timeline.end.click()
    person.rest(0.4)


def brush(person: Person, film: Film) -> None:
    """Paint over a part of the map."""
    person.canvas.setFocus()
    QTest.keyClick(person.canvas, Qt.Key.Key_B)
    _draw_circle(person, film, 45)
    QTest.keyClick(person.canvas, Qt.Key.Key_B)
    QTest.keyClick(person.canvas, Qt.Key.Key_Escape)


def lasso(person: Person, film: Film) -> None:
    """Draw around a part of the map."""
    person.press(person.dock.selection_controls.lasso_button)
    _draw_circle(person, film, 90)
    person.press_escape()


def _draw_circle(person: Person, film: Film, radius: float) -> None:
    """Draw around the middle of the largest cluster, and see who was selected."""
    labels = person.dock.map_names
    drawn = person.dock.controller.scene.map_layers.projection()
    sizes = [cluster.size for cluster in labels.names.clusters]
    middle = labels.label_positions_and_opacities(drawn)[0][int(np.argmax(sizes))]
    _draw_around(person, film, middle, radius)


def _draw_around(person: Person, film: Film, middle: np.ndarray, radius: float) -> None:
    """Draw a circle around a pixel (x, y) of the canvas."""
    canvas = person.canvas
    angles = np.linspace(0, 2 * np.pi, 16)
    way = middle + radius * np.column_stack([np.cos(angles), np.sin(angles)])
    QTest.mouseMove(canvas, _point(way[0]))
    QTest.mousePress(canvas, LEFT, pos=_point(way[0]))
    for place in way:
        film.pointer = _point(place)
        QTest.mouseMove(canvas, film.pointer)
        person.rest(0.12)
        film.shoot()
    film.shoot(LAST_MS)
    QTest.mouseRelease(canvas, LEFT, pos=_point(way[-1]))
    film.pointer = None
    person.rest(0.6)
    film.shoot(LAST_MS)


def show_tissue(person: Person, film: Film) -> None:
    """Show the tissue beside the map, and draw around a part of the tissue."""
    controls = person.dock.selection_controls
    person.set_clusters(8)
    person.choose_in(controls.shown, "Map and tissue")
    person.look_away()
    person.rest(1.0)
    film.shoot(LAST_MS)
    tissue = person.session.view.tissue
    projection = person.dock.controller.scene.tissue_layers.projection()
    assert tissue is not None
    assert projection is not None
    is_follicle = (person.session.dataset.obs["domain"] == "follicle").to_numpy()
    places = tissue.positions[is_follicle & (tissue.panel_of_points == 0)]
    tree = cKDTree(places)
    n_near = tree.query_ball_point(places, FOLLICLE, return_length=True)
    middle = projection.to_pixels(places[[np.argmax(n_near)]])[0]
    person.press(controls.lasso_button)
    _draw_around(person, film, middle, 26)
    film.shoot(LAST_MS)
    person.press_escape()


def choose_numbers(person: Person, film: Film) -> None:
    """Drag the slider of the number of clusters down and up again."""
    slider = person.dock.cluster_pane.slider.slider
    person.show(slider)
    begin = slider.value()
    for value in (*range(begin, 3, -1), *range(4, begin + 1)):
        slider.setValue(value)
        person.rest(0.3)
        film.shoot(4 * FRAME_MS)
    film.shoot(LAST_MS)


def merge(person: Person, film: Film) -> None:
    """Click on a cluster, Ctrl-click on another, and press Merge."""
    person.choose(1)
    film.shoot(1_000)
    person.choose_too(2)
    film.shoot(1_000)
    person.merge()
    person.rest(0.6)
    film.shoot(LAST_MS)
    person.open_tab("Map")
    person.rest(0.6)
    film.shoot(LAST_MS)
    person.press_escape()


def show_mark(person: Person, film: Film) -> None:
    """Click on the last three of the earlier maps, the newest first."""
    for place in range(len(person.session.timeline.marks))[-2:-5:-1]:
        person.show_mark(place)
        person.rest(0.4)
        film.shoot(900)


def follow_doubtful(person: Person, film: Film) -> None:
    """Select the cells that lie farthest from cells like them."""
    stretch = person.session.snapshot.stretch
    person.session.selection.select_points(np.argsort(-stretch)[:6])
    person.rest(1.0)
    film.shoot(LAST_MS)
    person.session.look.color_by = STRETCH
    person.rest(1.0)
    film.shoot(LAST_MS)


GESTURES: dict[str, Callable[[Person, Film], None]] = {
    "lasso": lasso,
    "brush": brush,
    "clusters": choose_numbers,
    "merge": merge,
    "drag": drag_cluster,
    "repulsion": raise_repulsion,
    "timeline": show_mark,
    "compare": compare,
    "large_picture": draw_large_picture,
    "tissue": show_tissue,
}
"""In an order in which each finds what it needs; "tissue" needs positions."""


def begin(person: Person, path: Path, film: Film) -> None:
    """Open the cells and play the game."""
    person.open(path)
    person.session.settings.max_iter = MAX_ITER
    stage = person.dock.run_controls.stage
    person.wait(lambda: stage.text() == READY, "the engine")
    film.follow(0.6)
    person.press(person.dock.run_controls.run_button)
    film.follow_run()


def record(person: Person, path: Path) -> None:
    """Play and save the film of the README."""
    film = Film(person)
    begin(person, path, film)
    film.show_last_first()
    for act in (drag_cluster, raise_repulsion, show_mark, compare, brush):
        act(person, film)
    follow_doubtful(person, film)
    film.save(IMAGES / "film.gif")


def record_gestures(person: Person, path: Path, names: list[str]) -> None:
    """Play and save a film of each gesture."""
    begin(person, path, Film(person))
    for name in names:
        act = GESTURES[name]
        film = Film(person, SMALL_WIDTH)
        film.shoot(1_000)
        act(person, film)
        film.save(IMAGES / f"gesture_{name}.gif", MAX_BYTES)


def main() -> None:
    """Record and save it, or them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--gestures", nargs="*", choices=GESTURES, help="those named, or all"
    )
    arguments = parser.parse_args()
    is_film = arguments.gestures is None
    with opened(*(WINDOW if is_film else SMALL_WINDOW)) as person:
        for dock in ("dockLayerList", "dockLayerControls"):  # room for the map
            getattr(person.viewer.window._qt_viewer, dock).hide()
        person.rest(2.0)
        if is_film:
            record(person, arguments.data)
        else:
            names = arguments.gestures or [*GESTURES][:-1]
            record_gestures(person, arguments.data, names)


if __name__ == "__main__":
    main()
