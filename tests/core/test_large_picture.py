"""The large picture: what is far apart in the data is far apart on the map."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from napari_embedding_game.core import pipeline, threads
from napari_embedding_game.core.dynamics import large_picture as module
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.errors import InputError, PrecomputedDistancesError
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph import coordinates, memory_order
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.core.snapshot import Steer

N_GROUPS, N_EACH = 8, 50


@functools.cache
def groups_on_a_line():
    """Rows (400, 6) of groups one behind the other, and the group of each row."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(N_GROUPS), N_EACH)
    X = rng.normal(size=(len(group), 6))
    X[:, 0] += 12 * group
    X[:, 1] += 3 * group**1.5
    order = rng.permutation(len(group))
    return X[order].astype(np.float32), group[order]


def fitted(strength, **options):
    X, _ = groups_on_a_line()
    params = {"method_params": {"large_picture": strength}, "init": "random"}
    params |= {"random_state": 1, "n_landmarks": 40, **options}
    return EmbeddingGame(**params).fit(X)


def likeness(embedding):
    """Rank correlation of the distances between groups with those in the data."""
    X, group = groups_on_a_line()
    middles = [
        [rows[group == g].mean(axis=0) for g in range(N_GROUPS)]
        for rows in (X, embedding)
    ]
    return spearmanr(*map(pdist, middles)).statistic


def test_groups_lie_as_in_the_data_and_neighbours_stay():
    X, group = groups_on_a_line()
    before, after = fitted(0.0).embedding_, fitted(5.0).embedding_
    assert likeness(before) < 0.3  # a start at random has them anywhere
    assert likeness(after) > 0.9
    apart = squareform(pdist(after)) + 1e9 * np.eye(len(X))
    nearest = np.argsort(apart, axis=1)[:, :5]
    assert (group[nearest] == group[:, None]).mean() > 0.99


def test_the_pull_is_the_gradient_of_what_is_lowered():
    rng = np.random.default_rng(0)
    middles, sizes = rng.normal(size=(9, 2)), rng.integers(1, 30, 9).astype(float)
    sizes[0] = 0.1
    in_data = squareform(rng.uniform(0.8, 1.2, 36))
    in_data[0] = in_data[:, 0] = 3 * (np.arange(9) > 0)  # like no others
    in_data[1, 2] = in_data[2, 1] = 0  # alike
    pairs = np.outer(sizes, sizes) * (1 - np.eye(9))
    n, total = sizes.sum(), pairs.sum()

    def moments(distances):
        mean = (pairs * distances).sum() / total
        spread = np.sqrt((pairs * (distances - mean) ** 2).sum() / total)
        return mean, spread

    on_map = squareform(pdist(middles))
    (mean, spread), (usual, spread_in_data) = moments(on_map), moments(in_data)
    wanted = mean + spread / spread_in_data * (in_data - usual)
    of_pairs = wanted[pairs > 0]
    assert of_pairs.min() < 0
    assert of_pairs.max() > mean + 3 * spread
    wanted = np.clip(wanted, 0, mean + 3 * spread)
    width = np.sqrt((pairs * on_map**2).sum()) / n

    def lowered(middles):
        gaps = squareform(pdist(middles)) - wanted
        return (pairs * gaps**2).sum() / (2 * n * width)

    found = module.compute_group_pull(middles, sizes, in_data)
    for a, axis in np.ndindex(middles.shape):
        step = np.zeros_like(middles)
        step[a, axis] = 1e-6
        slope = (lowered(middles + step) - lowered(middles - step)) / 2e-6
        # Of all points of the group: each pair is counted from both of its ends.
        assert sizes[a] * found[a, axis] == pytest.approx(slope / 2, rel=1e-5), (
            a,
            axis,
        )


def test_it_acts_at_once_while_the_game_runs_and_stops_with_0():
    X, _ = groups_on_a_line()
    settings = fill_affinity(Settings(n_landmarks=40, init="random", max_iter=200))
    edges, layout = pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, settings), X, settings
    )

    def likeness_after(*strengths):
        playing = play(edges, layout, settings, frame_iterations=50)
        next(playing)
        for strength in strengths:
            changed = replace(settings, large_picture=strength)
            snapshot = playing.send(Steer(settings=changed))
            while not snapshot.finished:
                snapshot = next(playing)
        return likeness(snapshot.embedding)

    assert likeness_after(0.0) < 0.3
    steered = likeness_after(0.0, 10.0, 10.0)
    assert steered > 0.7
    # Neighbours alone tear nothing apart again.
    assert likeness_after(0.0, 10.0, 10.0, 0.0) == pytest.approx(steered, abs=0.15)


def test_the_bits_are_those_of_any_number_of_threads_and_any_order_inside(monkeypatch):
    alone = fitted(2.0, n_jobs=1)
    monkeypatch.setattr(threads, "PARALLEL_WORK", 0)
    assert fitted(2.0, n_jobs=4).map_hash_ == alone.map_hash_
    monkeypatch.setattr(memory_order, "MIN_POINTS", 10)
    monkeypatch.setattr(memory_order, "POINTS_PER_BIN", 30)
    other = fitted(2.0, max_iter=5).embedding_
    monkeypatch.undo()
    usual = fitted(2.0, max_iter=5).embedding_
    np.testing.assert_allclose(other, usual, rtol=1e-3, atol=1e-3)


def test_a_graphics_card_adds_what_the_processor_adds():
    X, _ = groups_on_a_line()
    rng = np.random.default_rng(0)
    y, z = (
        torch.as_tensor(rng.normal(size=(n, 2)), dtype=torch.float32) for n in (400, 30)
    )
    found = []
    for by_torch in (False, True):
        picture = module.LargePicture(coordinates.Coordinates(X, "euclidean", 0), None)
        gradient = torch.ones_like(y)
        picture.add_pull(gradient, y, z, 2.0)
        if by_torch:
            gradient = torch.ones_like(y)
            picture._add_pull_by_torch(gradient, 2.0 * picture._pull)
        found.append(gradient.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert np.ptp(found[0]) > 0.1


@pytest.mark.parametrize("sizes", [[5.0], [3.0, 4.0], [2.0, 2.0, 2.0]])
def test_too_few_groups_or_all_on_one_spot_pull_at_nothing(sizes):
    middles = np.ones((len(sizes), 2))
    pull = module.compute_group_pull(
        middles, np.array(sizes), np.ones((len(sizes),) * 2)
    )
    np.testing.assert_array_equal(pull, 0)


def test_long_rows_keep_their_distances_and_angles_have_no_length():
    rng = np.random.default_rng(0)
    few = rng.normal(size=(200, 10)).astype(np.float32)
    wide = (few @ np.linalg.qr(rng.normal(size=(300, 10)))[0].T).astype(np.float32)
    read = coordinates.Coordinates(wide, "euclidean", 0).compute_reduced_rows()
    assert read.shape == (200, 100)
    scale = pdist(read).mean() / pdist(few).mean()  # a power of two
    np.testing.assert_allclose(pdist(read), scale * pdist(few), rtol=1e-3)
    longer = few * rng.uniform(0.5, 2, (200, 1)).astype(np.float32)
    rows = [
        coordinates.Coordinates(x, "cosine", 0).compute_reduced_rows()
        for x in (few, longer)
    ]
    np.testing.assert_allclose(*map(pdist, rows), rtol=1e-3)


@pytest.mark.parametrize(
    "options", [{"metric": "manhattan"}, {"method": "tsne"}, {"n_components": 3}]
)
def test_it_goes_with_other_distances_methods_and_dimensions(options):
    before, after = (likeness(fitted(x, **options).embedding_) for x in (0.0, 10.0))
    assert before < 0.3
    assert after > 0.9


def test_without_rows_of_data_it_is_refused_in_words():
    X, _ = groups_on_a_line()
    with pytest.raises(PrecomputedDistancesError, match="needs the rows of the data"):
        EmbeddingGame(metric="precomputed", method_params={"large_picture": 1.0}).fit(
            squareform(pdist(X))
        )
    ring = np.roll(np.eye(20), 1, axis=1)
    bare = Edges.from_symmetric_matrix(ring + ring.T)
    layout = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    settings = fill_affinity(Settings(large_picture=1.0))
    with pytest.raises(InputError, match="needs the rows of the data"):
        next(play(bare, layout, settings))
    with pytest.raises(InputError, match="large_picture must be a number at least 0"):
        fitted(-1.0)
