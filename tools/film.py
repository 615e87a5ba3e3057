"""Records the film of the README in a real window.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/film.py cells.h5ad

The file has principal components (``obsm["X_pca"]``) and some thousand cells.  In the
film the game is run, a cluster is dragged by its name, the repulsion is raised, both
are taken back by the timeline, the two maps are compared and laid side by side, a group
is brushed, and the cells that lie farthest from cells like them are followed to their
neighbours in the data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.controls.run import READY
from napari_embedding_game.ui.style.coloring import STRETCH
from palette import in_few_colors, palette_of
from person import LEFT, Person
from window import opened, picture

WINDOW = (1300, 860)
WIDTH = 860
"""Pixels of the film."""
FRAME_MS = 120
LAST_MS = 2_500
"""The last frame of a scene, so that it can be read."""
MOST_MS = 1_200
"""Of a frame while nothing moves, such as the search of neighbours."""
MAX_ITER = 1_200
"""Of the game: more than usual, so that its frames are many on a busy machine."""
OUT = Path(__file__).parents[1] / "docs" / "images" / "film.gif"


class Film:
    """Frames of a window, each with the time that it is seen.

    Parameters
    ----------
    person : Person
        Who works at the window.
    """

    def __init__(self, person: Person) -> None:
        self._person = person
        self._window = person.viewer.window._qt_window
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []
        self.pointer: QPoint | None = None
        """Where the mouse is on the canvas."""

    def shoot(self, milliseconds: int = FRAME_MS) -> None:
        """Add a frame; one like the last makes that one longer."""
        frame = picture(self._person)
        self._draw_pointer(frame)
        frame = frame.resize((WIDTH, round(WIDTH * frame.height / frame.width)))
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
            self.durations[-1] = min(self.durations[-1], MOST_MS)
        self._person.rest(1.0)
        self.shoot(LAST_MS)

    def save(self, path: Path) -> None:
        """Write an animated GIF with one table of colours."""
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
    labels = person.dock.names
    drawn = person.dock.controller.layers.projection()
    middles = labels.middles(drawn)
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
    slider = person.dock.game.repulsion_slider.native
    person.show(slider)
    for exponent in np.linspace(np.log10(300), np.log10(700), 8):
        person.dock.game.repulsion_slider.value = float(exponent)
        person.rest(0.1)
        film.shoot()
    film.follow_run()


def compare(person: Person, film: Film) -> None:
    """Have the map lie beside the one with the higher repulsion."""
    timeline = person.dock.timeline
    timeline.comparison.begin(person.session.timeline.marks[-1].number)
    person.wait(lambda: person.session.view.compared is not None, "comparison")
    person.show(timeline.comparison.words)
    person.session.look.color_by = "Movement"
    person.rest(0.4)
    film.shoot(LAST_MS)
    person.rest(1.0)
    film.shoot(LAST_MS)
    timeline.comparison.close_button.click()
    person.rest(0.4)


def brush(person: Person, film: Film) -> None:
    """Paint over a part of the map."""
    labels = person.dock.names
    drawn = person.dock.controller.layers.projection()
    sizes = [cluster.size for cluster in labels.names.clusters]
    middle = labels.middles(drawn)[int(np.argmax(sizes))]
    canvas = person.canvas
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_B)
    angles = np.linspace(0, 2 * np.pi, 16)
    way = middle + 45 * np.column_stack([np.cos(angles), np.sin(angles)])
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
    QTest.keyClick(canvas, Qt.Key.Key_B)
    QTest.keyClick(canvas, Qt.Key.Key_Escape)


def follow_doubtful(person: Person, film: Film) -> None:
    """Select the cells that lie farthest from cells like them."""
    stretch = person.session.snapshot.stretch
    person.session.selection.select_points(np.argsort(-stretch)[:6])
    person.rest(1.0)
    film.shoot(LAST_MS)
    person.session.look.color_by = STRETCH
    person.rest(1.0)
    film.shoot(LAST_MS)


def record(person: Person, path: Path) -> Film:
    """Play the whole film."""
    film = Film(person)
    person.open(path)
    person.session.settings.max_iter = MAX_ITER
    stage = person.dock.run.stage
    person.wait(lambda: stage.text() == READY, "the engine")
    film.follow(0.6)
    person.press(person.dock.run.run)
    film.follow_run()
    drag_cluster(person, film)
    raise_repulsion(person, film)
    for place in range(person.dock.timeline.marks.count())[-2:-5:-1]:
        person.look_back(place)
        person.rest(0.4)
        film.shoot(900)
    compare(person, film)
    brush(person, film)
    follow_doubtful(person, film)
    return film


def main() -> None:
    """Record and save it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    with opened(*WINDOW) as person:
        for dock in ("dockLayerList", "dockLayerControls"):  # room for the map
            getattr(person.viewer.window._qt_viewer, dock).hide()
        person.rest(2.0)
        film = record(person, arguments.data)
    film.save(arguments.out)
    seconds, size = sum(film.durations) / 1000, arguments.out.stat().st_size / 1e6
    print(f"{len(film.frames)} frames, {seconds:.0f} s, {size:.1f} MB")


if __name__ == "__main__":
    main()
