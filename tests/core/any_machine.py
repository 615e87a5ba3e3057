"""Print the hashes of neighbours, of small maps, and of new rows on them."""

import gc
import hashlib
import sys

import numpy as np

from napari_embedding_game.core import threads
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.snapshot import compute_map_hash

WAYS = (
    {"method_params": {"large_picture": 2.0}},
    {"method": "tsne", "metric": "cosine", "init": "pca"},
    {"method": "ssne", "method_params": {"approximation": "mesh"}, "init": "random"},
)

NOT_FOR_AN_ARRAY = {"qtpy", "napari", "vispy", "zarr", "dask", "matplotlib", "anndata"}
"""Libraries that no fit of an array loads."""


def main():
    threads.PARALLEL_WORK = 0  # so that small maps are shared among threads too
    rng = np.random.default_rng(0)
    X = (
        rng.random((400, 12), np.float32)
        + 3 * rng.random((10, 12))[np.arange(400) % 10]
    )
    rows = np.column_stack([X] + 9 * [0.1 * rng.random((400, 12), np.float32)])
    graph = knn_graph(rows, 15, search="projected", metric="correlation")
    print(graph.search, hashlib.sha256(graph.distances).hexdigest())
    for number, way in enumerate(WAYS):
        shared = {"random_state": 0, "max_iter": 12, "n_jobs": int(sys.argv[1])}
        model = EmbeddingGame(**shared, **way).fit(X)
        print(number, model.map_hash_)
        if number < 2:  # among landmarks, and by a grid
            print(
                number, compute_map_hash(model.transform(0.98 * X[:20]), model.labels_)
            )
    print("added", EmbeddingGame(**shared).fit(X[:380]).partial_fit(X[380:]).map_hash_)


if __name__ == "__main__":
    gc.disable()  # a tenth of the time of a compiler
    main()
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & NOT_FOR_AN_ARRAY, loaded & NOT_FOR_AN_ARRAY
