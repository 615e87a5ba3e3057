"""The papers' energies, written down once more, plainly, for the tests to ask."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from napari_embedding_game.core.energy.objective import LandmarkBound, SampledEdges
from napari_embedding_game.core.energy.pair_functions import KERNELS
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.papers.sampled_landmarks import SampledLandmarks

A, B, NEAREST = 1.5769434603113077, 0.8950608779109733, 1e-3
F = {
    "log1p": torch.log1p,
    "quadratic": lambda s: s,
    "kernel": lambda s: -1 / (1 + s),
    "umap": lambda s: -torch.log(1 / (1 + A * (s + NEAREST) ** B)),
    "umap_exact": lambda s: (
        -torch.log(1 / (1 + A * (s + NEAREST) ** B))
        + torch.log(1 - 1 / (1 + A * (s + NEAREST) ** B))
    ),
}
K = {
    "cauchy": lambda s: 1 / (1 + s),
    "gaussian": lambda s: torch.exp(-s),
    "squared_cauchy": lambda s: (1 / (1 + s)) ** 2,
    "umap": lambda s: -torch.log(1 - 1 / (1 + A * (s + NEAREST) ** B)),
}


class Twin:
    """The family's energies in float64, differentiated by autograd.

    ``heads``, ``tails`` and ``weights`` are the directed edges of the sums.
    """

    def __init__(self, heads, tails, weights, attraction="log1p", kernel="cauchy"):
        self.heads = torch.as_tensor(np.asarray(heads, np.int64))
        self.tails = torch.as_tensor(np.asarray(tails, np.int64))
        self.weights = torch.as_tensor(np.asarray(weights, np.float64))
        self.f = F[attraction]
        self.k = K[kernel] if kernel in K else KERNELS[kernel].value

    @classmethod
    def of_graph(cls, graph: NeighborGraph):
        """Every neighbour pair i ~ j once, with weight 1: the paper's own sum."""
        heads = np.repeat(np.arange(graph.n_points), graph.n_neighbors)
        return cls(heads, graph.indices.ravel(), np.ones(graph.indices.size))

    @classmethod
    def of_edges(cls, symmetric: Edges, *profiles):
        """Half of every entry, the convention of ``Edges``."""
        entries = symmetric.to_csr_matrix().tocoo()
        weights = 0.5 * entries.data.astype(np.float64)
        return cls(entries.row, entries.col, weights, *profiles)

    @staticmethod
    def ends_of(pairs):
        """Both points of each pair that was drawn, (L, N), every pair once."""
        order, shifts = (each.cpu().numpy() for each in pairs)
        places = np.arange(len(order))
        tails = (places + shifts[:, None]) % len(places)
        return order[np.broadcast_to(places, tails.shape)], order[tails]

    @staticmethod
    def squared(a, b):
        return (a[:, None, :] - b[None, :, :]).square().sum(dim=2)

    def kernel_sum(self, a, b):
        return self.k(self.squared(a, b)).sum()

    def attraction(self, y):
        apart = (y[self.heads] - y[self.tails]).square().sum(dim=1)
        return (self.weights * self.f(apart)).sum()

    def all_pairs_energy(self, y, repulsion):
        return self.attraction(y) + repulsion * self.kernel_sum(y, y)

    def bound(self, y, z):
        return self.kernel_sum(y, z) ** 2 / self.kernel_sum(z, z)

    def game(self, y, z, repulsion):
        return self.attraction(y) + repulsion * self.bound(y, z)

    def pairs_sum(self, y, pairs, n_samples):
        heads, tails = (each.ravel() for each in self.ends_of(pairs))
        sampled = self.k((y[heads] - y[tails]).square().sum(dim=1)).sum()
        return (len(y) - 1) / n_samples * sampled

    def members_sum(self, y, members):
        members = torch.as_tensor(members)
        return len(y) / len(members) * self.kernel_sum(y, y[members])

    def others_sum(self, y, weights=None):
        """Over all pairs of different points."""
        apart = self.squared(y, y)
        different = ~torch.eye(len(y), dtype=torch.bool)
        weighted = self.k(apart) if weights is None else weights * self.k(apart)
        return weighted[different].sum()

    def sum_of(self, objective, y, z):
        """S, or what stands for it in an objective."""
        if isinstance(objective, LandmarkBound):
            return self.bound(y, z)
        if isinstance(objective, SampledEdges):
            return self.pairs_sum(y, objective.pairs, len(objective.pairs[1]))
        if isinstance(objective, SampledLandmarks):
            own = len(y) if objective.aggregate == "log" else 0
            return self.members_sum(y, objective.sampled_points) - own
        return self.others_sum(y)


@pytest.fixture(scope="session")
def twin():
    return Twin


class Problem:
    """A graph, its edges, and random places for points and landmarks on it."""

    def __init__(
        self,
        n,
        d,
        n_landmarks,
        affinity="uniform",
        dtype=np.float32,
        seed=0,
        profiles=("log1p", "cauchy"),
    ):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 5))
        self.graph = knn_graph(self.X, min(6, n - 1))
        found = build_edges(self.graph, affinity, X=self.X)
        self.edges = replace(found, weights=found.weights.astype(dtype))
        self.twin = (
            Twin.of_graph(self.graph)
            if affinity == "uniform"
            else Twin.of_edges(self.edges, *profiles)
        )
        self.y = torch.tensor(rng.normal(size=(n, d)).astype(dtype) * 3)
        self.z = torch.tensor(rng.normal(size=(n_landmarks, d)).astype(dtype) * 3)


@pytest.fixture(scope="session")
def make_problem():
    return Problem


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def digits_start(digits):
    """Edges and start layout of the digits."""
    from napari_embedding_game.core.graph.start import make_start_layout

    X, _ = digits
    found = build_edges(knn_graph(X), "fuzzy")
    return found, make_start_layout(found, X)
