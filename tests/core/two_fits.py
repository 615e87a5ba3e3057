"""Fit two maps at once in two Python threads; print whether each is as alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from napari_embedding_game.core import threads
from napari_embedding_game.core.estimator import EmbeddingGame


def fit(X):
    return EmbeddingGame(random_state=0, n_jobs=2, max_iter=100).fit_transform(X)


def main():
    threads.PARALLEL_WORK = 0
    X = np.random.default_rng(0).normal(size=(1_500, 5))
    alone = fit(X)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(fit, [X, X]))
    print(all(np.array_equal(one, alone) for one in both))


if __name__ == "__main__":
    main()
