import numpy as np
import pytest

from napari_embedding_game.papers.reproductions.fenchel_convergence import (
    PROBLEMS,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.table import find


def test_quick_run_passes(tmp_path):
    facts = reproduce(find("fenchel-convergence"), Inputs(quick=True), tmp_path)
    assert [check["passed"] for check in facts["checks"]] == [True, True]
    rows = facts["tables"][0]["rows"]
    assert len(rows) == 6
    assert all(0 <= row["gap"] < row["bound"] for row in rows)
    # two ways to the same numbers, not one way twice
    assert any(row["difference"] > 0 for row in rows)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problems_are_what_they_say(name):
    problem = PROBLEMS[name](3)
    rng = np.random.default_rng(0)
    reach = np.linalg.norm(problem.least)
    for _ in range(20):
        step = rng.normal(size=len(problem.least))
        w = problem.least + reach * rng.uniform() * step / np.linalg.norm(step)
        slopes = problem.gradient(w)
        assert problem.value(problem.least) <= problem.value(w)
        assert np.linalg.norm(slopes) <= problem.slope
        np.testing.assert_allclose(problem.best_response(w), slopes, rtol=1e-10)
        direction = 1e-6 * step
        change = problem.value(w + direction) - problem.value(w - direction)
        np.testing.assert_allclose(change, 2 * slopes @ direction, rtol=1e-4)
