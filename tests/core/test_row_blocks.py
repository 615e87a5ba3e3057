"""Rows that are shared among threads: the same bits for any number of them."""

import threading

import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game.core import threads
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.affinity_kernels import (
    conditional_probabilities,
    fuzzy_memberships,
)
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.power_loops import power_step
from napari_embedding_game.core.threads import RowBlocks

JOBS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def little_is_much(monkeypatch):
    """Share even a few rows among threads."""
    monkeypatch.setattr(threads, "PARALLEL_WORK", 0)


@pytest.fixture(scope="module")
def graph():
    X = np.random.default_rng(0).normal(size=(203, 6)).astype(np.float32)
    X[40:60] = X[0]  # distances of 0
    return X, knn_graph(X, 12, n_jobs=1)


def test_every_row_is_done_once_in_several_threads():
    done, names, both = np.zeros(101, int), set(), threading.Barrier(3, timeout=20)

    def job(begin, end):
        both.wait()  # so that no thread does the work of another
        names.add(threading.current_thread().name)
        done[begin:end] += 1

    with RowBlocks(101, 1, 3) as blocks:
        blocks(job)
    np.testing.assert_array_equal(done, 1)
    assert len(names) == 3


def test_few_rows_stay_in_this_thread(monkeypatch):
    monkeypatch.setattr(threads, "PARALLEL_WORK", 1_000)
    names = []
    with RowBlocks(10, 999, 4) as blocks:
        blocks(lambda i, j: names.append((i, j, threading.current_thread())))
    assert names == [(0, 10, threading.current_thread())]


def test_an_error_in_a_thread_is_raised():
    def job(begin, end):
        raise ValueError("broken")

    with RowBlocks(9, 1, 3) as blocks, pytest.raises(ValueError, match="broken"):
        blocks(job)


def test_weights_of_edges_are_the_same(graph):
    X, found = graph
    for affinity in ("mixed", "fuzzy", "entropic"):
        one, *others = (edges(found, affinity, X=X, n_jobs=n) for n in JOBS)
        for other in others:
            np.testing.assert_array_equal(one.weights, other.weights)
    distances = found.distances
    for n in JOBS[1:]:
        np.testing.assert_array_equal(
            fuzzy_memberships(distances, 1), fuzzy_memberships(distances, n)
        )
        np.testing.assert_array_equal(
            conditional_probabilities(distances, 4.0, 1),
            conditional_probabilities(distances, 4.0, n),
        )


def test_the_start_is_the_same(graph):
    X, found = graph
    weighted = edges(found, "mixed", X=X)
    one, *others = (start_layout(weighted, X, n_jobs=n) for n in JOBS)
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_step_has_the_bits_of_scipys_product(d):
    rng = np.random.default_rng(1)
    walk = sparse.random(300, 300, 0.1, "csr", np.float32, rng)
    vectors = rng.normal(size=(300, d)).astype(np.float32)
    own, of_others = np.float32(0.6), np.float32(0.4)
    expected = own * vectors + of_others * (walk @ vectors)
    moved = np.empty_like(vectors)
    for begin, end in ((0, 120), (120, 300)):
        power_step(
            walk.indptr,
            walk.indices,
            walk.data,
            vectors,
            own,
            of_others,
            begin,
            end,
            moved,
        )
    np.testing.assert_array_equal(moved, expected)
