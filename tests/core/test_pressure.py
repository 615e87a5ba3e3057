"""For how many points pressure is known; its values: test_methods.py."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import APPROXIMATIONS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.settings import Settings

N, L, STRENGTH = 90, 20, 300.0


@pytest.fixture(scope="module", params=[2, 3])
def played(request, make_problem):
    """A short game in float64: a map in which some points are stuck."""
    problem = make_problem(N, request.param, L, "fuzzy", np.float64)
    settings = Settings(repulsion=STRENGTH, n_landmarks=L, max_iter=60)
    for snapshot in play(problem.edges, problem.y.numpy(), settings):
        last = snapshot
    problem.y = torch.tensor(last.embedding, dtype=torch.float64)
    problem.z = torch.tensor(last.landmarks, dtype=torch.float64)
    return problem


def objective_of(problem, approximation):
    forces = CompiledForces(problem.edges)
    return make_objective(approximation, forces, STRENGTH / N, L, random_state=1)


def test_of_many_points_it_is_known_under_landmarks_alone(played, monkeypatch):
    def found():
        return {
            name: compute_labels_and_pressure(
                objective_of(played, name), played.y, played.z
            )
            for name in APPROXIMATIONS
        }

    of_few = found()
    monkeypatch.setattr("napari_embedding_game.core.energy.pressure.MAX_POINTS", N - 1)
    for name, (labels, heights) in found().items():
        np.testing.assert_array_equal(labels, of_few[name][0])
        assert len(np.unique(labels)) > 1
        assert (of_few[name][1] >= 0).all()
        if name == "landmarks":
            np.testing.assert_array_equal(heights, of_few[name][1])
            assert 0 < np.count_nonzero(heights) < N
        else:
            assert np.isnan(heights).all()
