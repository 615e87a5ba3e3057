"""Names and numbers of clusters on a continuum, which each run cuts a little otherwise.

2,000 points lie along a curve with branches: no gap says where a cluster ends.  Real
games are played, each to its end.
"""

import numpy as np
import pytest

from worlds import Desk, rows

N = 2000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    along, branch = rng.random(N), rng.integers(0, 3, N)
    ends = rng.normal(size=(4, 10)) * 4
    X = along[:, None] * ends[branch] + np.sin(3 * along)[:, None] * ends[3]
    return rows(X + rng.normal(size=X.shape) * 0.15)


class Player(Desk):
    """A session of 20 clusters, of which each run is played to its end."""

    def __init__(self, data):
        super().__init__(data, n_landmarks=60, max_iter=200)
        self.begin(self.session.begin)
        self.book.set_n_clusters(20)

    def begin(self, begin):
        self.frames = begin().iter_progress()
        self.steer()

    def steer(self, **settings):
        """Play on to the end."""
        self.session.settings.update(**settings)
        for progress in self.frames:
            self.session.receive_frame(self.session.run, progress)
            if self.session.state == "finished":
                return

    def change(self, **settings):
        """Choose what makes the map stale, and press Continue."""
        self.session.settings.update(**settings)
        self.begin(self.session.continue_run)

    def dimensions(self, n_components):
        self.begin(lambda: self.session.change_dimensions(n_components))

    def names(self):
        """Return what a file would hold of each cell."""
        return np.asarray(self.session.to_result().groups.names_by_point)


@pytest.fixture
def player(data):
    player = Player(data)
    yield player
    player.session.stop()


def test_names_stay_on_their_cells(player):
    session, book = player.session, player.book
    for cluster in book.clusters:
        book.rename(cluster.id, f"type {cluster.name}")
    before = player.names()
    first = session.timeline.newest.number
    told = "no longer one cluster"
    assert told not in session.message
    for act in (
        lambda: player.dimensions(3),
        lambda: player.dimensions(2),
        lambda: player.steer(repulsion=20_000.0),
        lambda: player.steer(repulsion=None),
        lambda: player.steer(n_landmarks=80),
        lambda: book.set_n_clusters(6),
        lambda: book.set_n_clusters(30),
        lambda: book.set_n_clusters(None),
        lambda: book.set_n_clusters(20),
        lambda: player.change(n_neighbors=30),
        lambda: player.change(method="ee"),
        lambda: session.show_mark(first),
        lambda: setattr(session.settings, "random_state", 7),
        lambda: player.begin(session.begin),
    ):
        act()
        assert (player.names() == before).all()
        if book.n_clusters == 6:
            assert told in session.message
    assert told in session.message


def test_who_takes_cells_from_a_name_is_not_told_that_it_is_parted(player):
    book = player.book
    largest = max(book.clusters, key=lambda cluster: cluster.size)
    book.rename(largest.id, "T")
    rows = book.clustering.rows_in_cluster(largest.id)
    book.make_group(rows[len(rows) // 4 :], "CD8")
    assert not player.session.message
    book.add_points_to_group(
        book.clustering.labels[rows[0]], np.arange(len(player.names()))
    )
    assert not player.session.message
