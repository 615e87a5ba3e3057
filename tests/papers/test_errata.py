"""What the papers have wrong: the table of ``docs/reproduction.md``, line by line.

Each test shows that what is printed fails, and that what stands beside it holds.
"""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def centring(n):
    return np.eye(n) - 1 / n


def test_000_equations_4_and_5_have_signs_for_a_kernel_that_grows(rng):
    y, z = (torch.tensor(rng.normal(size=(n, 2)), requires_grad=True) for n in (9, 4))
    kernel = KERNELS["cauchy"]

    def total(a, b):
        return kernel.value(((a[:, None] - b[None]) ** 2).sum(dim=2)).sum()

    s_yz, s_zz = total(y, z), total(z, z)
    energy = s_yz**2 / s_zz  # Eq. 3 without its edges
    on_points, on_landmarks = torch.autograd.grad(energy, (y, z))

    def along(a, b, weight):
        """Sum of weight(r) (a - b) / r over all b, as in both equations."""
        offset = a.detach()[:, None] - b.detach()[None]
        r = offset.norm(dim=2).clamp_min(1e-12)
        return (weight(r)[:, :, None] * offset / r[:, :, None]).sum(dim=1)

    def slope(r):
        return -2 * r / (1 + r**2) ** 2  # of the kernel: below 0

    ratio = float((s_yz / s_zz).detach())
    # Printed: a force of + g' (y - z) / r on the points, away from landmarks.
    printed = 2 * ratio * along(y, z, slope)
    torch.testing.assert_close(-on_points, -printed)
    # Printed: + g' (y - z) / r on the landmarks, and (z_a - z_b) / r without g'.
    to_points = 2 * ratio * along(z, y, slope)  # minus what is printed
    apart = -2 * ratio**2 * along(z, z, slope)
    torch.testing.assert_close(on_landmarks, to_points + apart)
    bare = along(z, z, torch.ones_like)
    cosines = torch.nn.functional.cosine_similarity(apart, bare)
    assert float(cosines.min()) < 0.999  # no constant makes up for the lack of g'


def test_001_lemma_5_7_and_theorem_5_10_are_of_squared_distances(rng):
    X = rng.normal(size=(3, 12))  # columns are points, as in the paper
    X -= X.mean(axis=1, keepdims=True)
    gram, squares = X.T @ X, cdist(X.T, X.T) ** 2
    diagonal = np.diag(gram)
    of_lengths = (diagonal[:, None] + diagonal[None]) / 2
    np.testing.assert_allclose(gram, of_lengths - squares / 2)
    assert abs(gram - (of_lengths + squares / 2)).max() > 1  # as printed
    H = centring(12)
    np.testing.assert_allclose(gram, -H @ squares @ H / 2, atol=1e-12)
    printed = -H @ np.sqrt(squares) @ H / 2
    assert abs(gram / 12 - printed).max() > 0.1


def test_003_lemma_2_has_a_constant_of_minus_2_alpha(rng):
    C, alpha = centring(8), 0.7
    A = rng.normal(size=(8, 8))
    L = C @ (A + A.T) @ C
    Y = torch.tensor(rng.normal(size=(8, 2)), requires_grad=True)
    inner = (torch.tensor(alpha * L) * (Y @ Y.T)).sum()
    (gradient,) = torch.autograd.grad(inner, Y)
    y = Y.detach().numpy()
    of_pairs = (L[:, :, None] * (y[:, None] - y[None])).sum(axis=1)
    np.testing.assert_allclose(gradient.numpy(), -2 * alpha * of_pairs, atol=1e-12)


def pca_gradient(G, Y):
    return -4 * (G - Y @ Y.T) @ Y


def test_003_theorem_1_holds_for_almost_every_start(rng):
    X = centring(30) @ rng.normal(size=(30, 6)) * np.arange(6, 0, -1)
    G = X @ X.T
    values, vectors = np.linalg.eigh(G)
    best, other = (vectors[:, at] * np.sqrt(values[at]) for at in ([-1, -2], [-4, -5]))
    for Y in (best, other):
        assert abs(pca_gradient(G, Y)).max() < 1e-8 * abs(G).max()
    losses = [np.linalg.norm(G - Y @ Y.T) for Y in (best, other)]
    assert losses[1] > 1.5 * losses[0]  # it stays there, far from the PCA


def test_003_lemma_3_is_false_where_its_equation_11_holds():
    e1, e2 = np.linalg.svd(centring(3))[0][:, :2].T  # both are centred
    G = 10 * np.outer(e1, e1) + np.outer(e2, e2)
    rough = 10 * np.outer(e1, e1)  # the best of rank k = 1
    Y = np.sqrt(0.5) * e2[:, None]
    far = np.linalg.norm(G - Y @ Y.T) ** 2
    assert far == pytest.approx(100.25)
    assert far >= (10 / 10) * np.linalg.norm(G - rough) ** 2  # Eq. 11
    inner = (pca_gradient(G, Y) * pca_gradient(rough, Y)).sum()
    assert inner == pytest.approx(-2)


def test_003_equation_10_of_its_proof_is_right(rng):
    n_cases, n, d = 10_000, 6, 2
    X, Y = (rng.normal(size=(n_cases, n, k)) for k in (4, d))
    Y *= rng.choice([0.1, 0.5, 1, 2], (n_cases, 1, 1))
    G = X @ X.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(G)
    rough = (vectors[:, :, -1:] * values[:, None, -1:]) @ vectors[:, :, -1:].transpose(
        0, 2, 1
    )
    gap = G - Y @ Y.transpose(0, 2, 1)
    left, right = (np.linalg.norm(M @ Y, axis=(1, 2)) for M in (gap, G - rough))
    inner = 16 * ((gap @ Y) * ((rough - Y @ Y.transpose(0, 2, 1)) @ Y)).sum((1, 2))
    holds = left >= right
    assert 0.1 < holds.mean() < 0.999
    assert (inner[holds] >= -1e-9 * abs(inner).max()).all()
    assert (inner[~holds] < 0).any()  # and it is needed


def test_004_the_energy_of_ee_is_not_convex_in_the_height_of_a_pressured_point():
    squared = np.full(20, 0.04)  # repelled by points that are near
    pulls, strength = np.full(20, 0.1), 1.0
    heights = np.linspace(0, 3, 301)

    def energy(u):  # of the squared height
        lifted = squared[:, None] + u
        attraction = (
            pulls[:, None]
            * ATTRACTIONS["quadratic"].value(torch.tensor(lifted)).numpy()
        )
        return (attraction + strength * np.exp(-lifted)).sum(axis=0)

    in_height, in_square = (np.diff(energy(x), 2) for x in (heights**2, heights))
    assert in_height[0] < 0  # pressured: it falls at first, so it is not convex
    assert energy(heights**2).argmin() > 0
    assert (in_square > 0).all()  # in the squared height it is


def test_000_section_4_the_landmarks_alone_can_keep_no_energy(rng):
    """Max-min is 0: whatever the landmarks, points may run off on one spot."""
    landmarks = torch.tensor(rng.normal(size=(6, 2)))
    kernel = KERNELS["cauchy"]

    def energy(points, landmarks):
        """Eq. 3 with an edge between any two points, and a repulsion of 1."""
        squared = torch.tensor(cdist(points, points) ** 2)
        to_landmarks = torch.tensor(cdist(points, landmarks) ** 2)
        apart = torch.tensor(cdist(landmarks, landmarks) ** 2)
        repulsion = kernel.value(to_landmarks).sum() ** 2 / kernel.value(apart).sum()
        return float(ATTRACTIONS["log1p"].value(squared).sum() + repulsion)

    spots = [torch.full((9, 2), float(at), dtype=torch.float64) for at in (0, 9, 9e4)]
    energies = [energy(spot, landmarks) for spot in spots]
    assert energies == sorted(energies, reverse=True)
    assert 0 < energies[-1] < 1e-12
    # Landmarks that move second stand on the spot: there the energy stays.
    assert energy(spots[-1], spots[-1][:6]) == pytest.approx(81)
