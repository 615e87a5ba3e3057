import numpy as np

from napari_embedding_game.core.energy import pair_loops, pressure_solver
from napari_embedding_game.core.energy.pair_functions import Cauchy, Log1p


def test_chunks_cover_every_point():
    sizes = [1, pair_loops.CHUNK - 1, pair_loops.CHUNK, pair_loops.CHUNK + 1]
    assert [pair_loops.n_chunks(n) for n in sizes] == [1, 1, 1, 2]


def test_a_point_that_nothing_holds_is_lifted_very_high():
    none = np.zeros(0, np.float32)
    far, ones = np.zeros(3, np.float32), np.ones(3, np.float32)

    def height(far, ones):
        pull = Log1p(), none, none
        return pressure_solver.lifted_height(*pull, Cauchy(), far, ones, 1.0, 0.0)

    assert height(far, ones) > 1e5
    assert height(none, none) == 0
