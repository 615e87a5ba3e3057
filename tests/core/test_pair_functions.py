"""What is asked of every pair function, and of the one in the documents."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from numba import njit, typeof

from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_functions import (
    ATTRACTIONS,
    KERNELS,
    PairFunction,
)
from napari_embedding_game.core.energy.pair_loops import sum_values_and_slopes
from napari_embedding_game.core.energy.torch_forces import TorchForces

METHODS_PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
ALL = {f"attraction {name}": f for name, f in ATTRACTIONS.items()} | {
    f"kernel {name}": k for name, k in KERNELS.items()
}
S = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 60)])


@njit
def values_and_slopes(function, s, out):
    for i in range(len(s)):
        out[0, i] = pair_value(function, s[i])
        out[1, i] = pair_slope(function, s[i])


@njit
def of_row(function, s, weights, u):
    return sum_values_and_slopes(function, s, weights, u)


def by_torch(function, s):
    s = torch.as_tensor(s, dtype=torch.float64).requires_grad_()
    value = function.value(s)
    (slope,) = torch.autograd.grad(value.sum(), s)
    return value.detach().numpy(), slope.numpy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ALL)
def test_compiled_numbers_are_those_of_the_formula(name, dtype):
    function = ALL[name]
    s = S.astype(dtype)
    out = np.empty((2, len(s)), dtype)
    values_and_slopes(function, s, out)
    wanted = by_torch(function, s.astype(np.float64))
    # A logarithm is good to some units of the precision of 1, not of itself.
    precise = {"rtol": 4e-6, "atol": 1e-6}
    if dtype is np.float64:
        precise = {"rtol": 1e-12, "atol": 1e-15}
    np.testing.assert_allclose(out[0], wanted[0], **precise)
    precise["atol"] = 1e-37  # as near to 0 as the compiled exponential comes
    np.testing.assert_allclose(out[1], wanted[1], **precise)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 100])
def test_rows_of_any_length_are_summed(name, n):
    rng = np.random.default_rng(n)
    s, weights = rng.uniform(0, 9, n), rng.uniform(0, 1, n)
    found = of_row(ALL[name], s, weights, 0.5)
    wanted = [(weights * each).sum() for each in by_torch(ALL[name], s + 0.5)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


# --- A formula that was edited is compiled again


def test_a_formula_that_was_edited_has_another_type():
    class Before(PairFunction):
        def value(self, s):
            return 1 / (1 + s)

        def slope(self, s):
            return -1 / (1 + s) ** 2

    class After(Before):
        def value(self, s):
            return 1 / (2 + s)

    After.__qualname__ = Before.__qualname__
    assert typeof(Before()) != typeof(After())
    assert typeof(Before()) == typeof(Before())


# --- The one of the documents


@pytest.fixture(scope="module")
def heavy():
    """Declare the page's example; return the method's name."""
    page = METHODS_PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (own,) = (block for block in blocks if "KERNELS[" in block)
    before = dict(METHODS), dict(KERNELS)
    # Without the fit in its last line; exec alone makes a class of no module.
    exec(f"__name__ = 'the_page'\n{own[: own.rindex('EmbeddingGame(')]}", {})
    yield "heavy_tsne"
    METHODS.clear()
    METHODS.update(before[0])
    KERNELS.clear()
    KERNELS.update(before[1])


@pytest.mark.parametrize("approximation", ["landmarks", "sampled_edges"])
def test_the_one_of_the_documents_has_its_sums(heavy, make_problem, approximation):
    member = METHODS[heavy]
    profiles = member.attraction, member.kernel
    problem = make_problem(70, 2, 9, member.affinity, profiles=profiles)
    energies = []
    for forces in (
        CompiledForces(problem.edges, member.attraction, member.kernel),
        TorchForces(problem.edges, torch.device("cpu"), "log1p", member.kernel),
    ):
        objective = make_objective(approximation, forces, 2.0, 9, 0, "log")
        energies.append(objective.energy_and_gradients(problem.y, problem.z))
    for one, other in zip(*energies, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
