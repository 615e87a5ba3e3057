import numpy as np

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy import pair_loops, pressure_solver
from napari_embedding_game.core.energy.pair_functions import Cauchy, Log1p
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.warm_up import compile_kernels


def compiled():
    """How many versions of every kernel there are in this process."""
    return {
        name: len(kernel.signatures)
        for name, kernel in (vars(pair_loops) | vars(pressure_solver)).items()
        if hasattr(kernel, "signatures")
    }


def test_after_the_warm_up_a_run_compiles_nothing(make_problem):
    compile_kernels()
    problem = make_problem(50, 2, 1, "fuzzy")
    before = compiled()
    settings = Settings(max_iter=5)
    for _ in play(problem.edges, problem.y.numpy(), settings, n_jobs=2):
        pass
    assert compiled() == before
    assert sum(before.values()) > 5


def test_warm_up_can_be_called_again():
    compile_kernels()
    before = compiled()
    compile_kernels()
    assert compiled() == before


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
