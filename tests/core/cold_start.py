"""Play small games in a process of its own and print what came out, bit for bit.

Run by ``test_cold_start.py`` with an empty cache of compiled loops, and again with the
cache that the first run has left.
"""

import hashlib

import numpy as np

from napari_embedding_game.core import threads
from napari_embedding_game.core.estimator import EmbeddingGame


def rows(n_rows):
    """Ten clouds."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), n_rows // 10)
    return rng.normal(size=(len(labels), 20)) + 3 * rng.normal(size=(10, 20))[labels]


def told(name, *arrays):
    """Print a text that is the same for the same bits alone."""
    bits = b"".join(array.tobytes() for array in arrays)
    print(name, hashlib.sha256(bits).hexdigest())


def main():
    X = rows(2_000)
    game = EmbeddingGame(random_state=0, n_jobs=2, max_iter=100).fit(X)
    told("serial", game.embedding_, game.landmarks_)
    told("described", game.labels_, game.pressure_)
    threads.PARALLEL_WORK = 0
    game.fit(X)
    told("shared", game.embedding_, game.landmarks_)
    threads.PARALLEL_WORK = np.inf
    other = EmbeddingGame(method="ee", random_state=0, max_iter=100).fit(rows(300))
    told("ee", other.embedding_, other.landmarks_)


if __name__ == "__main__":
    main()
