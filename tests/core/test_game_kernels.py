import numpy as np

from napari_embedding_game.core.dynamics.driver import play, warm_up
from napari_embedding_game.core.energy import game_kernels
from napari_embedding_game.core.types import GameSettings
from napari_embedding_game.core.warm_up import compile_kernels


def compiled():
    """How many versions of every kernel there are in this process."""
    return {
        name: len(kernel.signatures)
        for name, kernel in vars(game_kernels).items()
        if hasattr(kernel, "signatures")
    }


def test_after_the_warm_up_a_run_compiles_nothing(make_problem):
    compile_kernels()
    problem = make_problem(50, 2, 1, "fuzzy")
    before = compiled()
    settings = GameSettings(max_iter=5)
    for _ in play(problem.edges, problem.y.numpy(), settings, n_jobs=2):
        pass
    assert compiled() == before
    assert sum(before.values()) > 5


def test_warm_up_can_be_called_again():
    warm_up()
    before = compiled()
    warm_up()
    assert compiled() == before


def test_chunks_cover_every_point():
    sizes = [1, game_kernels.CHUNK - 1, game_kernels.CHUNK, game_kernels.CHUNK + 1]
    assert [game_kernels.n_chunks(n) for n in sizes] == [1, 1, 1, 2]


def test_a_point_that_nothing_holds_is_lifted_very_high():
    none = np.zeros(0, np.float32)
    far = np.zeros(3, np.float32)
    assert game_kernels.lift(none, none, far, np.ones(3, np.float32)) > 1e5
    assert game_kernels.lift(none, none, none, none) == 0
