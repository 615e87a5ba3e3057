"""The papers' energies, written down once more, plainly, for the tests to ask."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from napari_embedding_game.core.affinities import Edges, edges
from napari_embedding_game.core.graph import NeighborGraph, knn_graph


class Twin:
    """Eq. 1, 3, 8 and 9 in float64, differentiated by autograd.

    ``heads``, ``tails`` and ``weights`` are the directed edges of the sums.
    """

    def __init__(self, heads, tails, weights):
        self.heads = torch.as_tensor(np.asarray(heads, np.int64))
        self.tails = torch.as_tensor(np.asarray(tails, np.int64))
        self.weights = torch.as_tensor(np.asarray(weights, np.float64))

    @classmethod
    def of_graph(cls, graph: NeighborGraph):
        """Every neighbour pair i ~ j once, with weight 1: the paper's own sum."""
        heads = np.repeat(np.arange(graph.n_points), graph.n_neighbors)
        return cls(heads, graph.indices.ravel(), np.ones(graph.indices.size))

    @classmethod
    def of_edges(cls, symmetric: Edges):
        """Half of every entry, the convention of ``Edges``."""
        entries = symmetric.matrix().tocoo()
        return cls(entries.row, entries.col, 0.5 * entries.data.astype(np.float64))

    @staticmethod
    def squared(a, b):
        return (a[:, None, :] - b[None, :, :]).square().sum(dim=2)

    @classmethod
    def kernel_sum(cls, a, b):
        return (1 / (1 + cls.squared(a, b))).sum()

    def attraction(self, y):
        apart = (y[self.heads] - y[self.tails]).square().sum(dim=1)
        return (self.weights * torch.log1p(apart)).sum()

    def true_energy(self, y, repulsion):
        return self.attraction(y) + repulsion * self.kernel_sum(y, y)

    def game(self, y, z, repulsion):
        bound = self.kernel_sum(y, z) ** 2 / self.kernel_sum(z, z)
        return self.attraction(y) + repulsion * bound

    def sampled_edges(self, y, pairs, n_samples, repulsion):
        """``pairs``: the symmetric Edges of the draws, each in both of its rows."""
        entries = pairs.matrix().tocoo()
        apart = (y[entries.row] - y[entries.col]).square().sum(dim=1)
        return (
            self.attraction(y)
            + repulsion * len(y) / n_samples * 0.5 * (1 / (1 + apart)).sum()
        )

    def sampled_landmarks(self, y, members, repulsion):
        members = torch.as_tensor(members)
        scale = repulsion * len(y) / len(members)
        return self.attraction(y) + scale * self.kernel_sum(y, y[members])


@pytest.fixture(scope="session")
def twin():
    return Twin


class Problem:
    """A graph, its edges, and random places for points and landmarks on it."""

    def __init__(self, n, d, n_landmarks, affinity="uniform", dtype=np.float32, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 5))
        self.graph = knn_graph(self.X, min(6, n - 1), n_jobs=1)
        found = edges(self.graph, affinity)
        self.edges = Edges(found.indptr, found.indices, found.weights.astype(dtype))
        self.twin = (
            Twin.of_graph(self.graph)
            if affinity == "uniform"
            else Twin.of_edges(self.edges)
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
    from napari_embedding_game.core.initialization import start_layout

    X, _ = digits
    found = edges(knn_graph(X, n_jobs=1), "fuzzy")
    return found, start_layout(found, X)
