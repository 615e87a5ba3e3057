"""The same map under other processors: a hash of every stage, under many settings.

    python tools/map_hashes.py                     # all at once against as it comes
    python tools/map_hashes.py --each              # each setting alone, to see which
    python tools/map_hashes.py --cases digits/tsne wide/game --settings blas1 numpy
    python tools/map_hashes.py --write hashes.json # of this machine; and then
    python tools/map_hashes.py --compare one.json other.json

A setting makes numba, torch, numpy, OpenBLAS, MKL or the C library do as they would on
another processor.  Where hashes differ, the first stage that does tells whom to ask.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import to_parameters
from napari_embedding_game.core.new_rows.transform import validate_transform

_NO_FMA = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4"
_HASWELL = "+sse4.2,+avx,+avx2,+fma,+bmi,+bmi2,+lzcnt,+popcnt,+f16c,-avx512f"
SETTINGS: dict[str, dict[str, str]] = {
    "generic": {"NUMBA_CPU_NAME": "generic"},
    "haswell": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": _HASWELL},
    "torch": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "numpy": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
    "blas1": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "blas2": {"OPENBLAS_CORETYPE": "Haswell"},
    "blas3": {"OPENBLAS_CORETYPE": "Nehalem"},
    "libm": {"GLIBC_TUNABLES": _NO_FMA},
    "1 thread": {"MAP_HASHES_JOBS": "1"},
    "4 threads": {"MAP_HASHES_JOBS": "4"},
}
_OTHERS = ("torch", "numpy", "blas1", "libm", "1 thread")
for _name, _processor in (("all at once", "generic"), ("all, haswell", "haswell")):
    SETTINGS[_name] = {
        k: v for name in (_processor, *_OTHERS) for k, v in SETTINGS[name].items()
    }
Hashes = dict[str, dict[str, str]]
"""Of each stage, by case."""
STAGES = ("neighbours", "weights", "start", "layout", "labels", "new rows")
NEW_ROWS = 60
_WHOLE = ("digits/game", "digits/tsne")
"""Cases that are played to their end."""


def _blobs(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return rows around ten centres, from numbers that are the same anywhere."""
    rng = np.random.default_rng(seed)
    noise = sum(rng.random((n, d), np.float32) for _ in range(4)) - 2
    return noise + 3 * rng.random((10, d), np.float32)[rng.integers(10, size=n)]


def data(name: str) -> Any:
    """Return rows (N, D), sparse rows, or distances."""
    if name == "digits":
        return np.sqrt(load_digits().data)  # products of whole numbers are exact
    if name == "sparse":
        return sparse.csr_matrix((_blobs(1_200, 300, 1) - 1).clip(0))
    if name == "given":
        X = _blobs(600, 8, 4).astype(float)
        return np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2)
    shapes = {"wide": (9_000, 784), "large": (150_000, 20), "blobs": (2_000, 12)}
    return _blobs(*{**shapes, "few": (150, 6)}[name])


def cases() -> dict[str, dict[str, Any]]:
    """Return the estimator's arguments by "data/what"."""
    found: dict[str, dict[str, Any]] = {f"digits/{m}": {"method": m} for m in METHODS}
    others = {
        "approximation": ("mesh", "sampled_edges", "sampled_landmarks", "exact"),
        "metric": ("cosine", "correlation", "manhattan"),
        "init": ("random", "pca", "le", "gradient_pca"),
    }
    for what, names in others.items():
        found |= {f"digits/{what} {name}": {what: name} for name in names}
    for method in ("ee", "ssne"):
        found[f"digits/{method}, mesh"] = {"method": method, "approximation": "mesh"}
    for name in METHODS:
        if METHODS[name].max_points:
            found[f"digits/{name}"]["max_iter"] = 10
            # So many iterations that EE leaves its minimum by pressured points.
            found[f"few/{name}"] = {"method": name, "max_iter": 2_000}
    found |= {
        "digits/3 dimensions": {"n_components": 3},
        "digits/3 dimensions, mesh": {"n_components": 3, "approximation": "mesh"},
        "digits/8 clusters": {"n_clusters": 8},
        "sparse/cosine": {"metric": "cosine"},
        "given/game": {"metric": "precomputed"},
        "wide/tsne": {"method": "tsne"},
    }
    found |= {f"{name}/game": {} for name in ("blobs", "sparse", "wide", "large")}
    for name, chosen in found.items():
        if name not in _WHOLE:
            found[name] = {"max_iter": 30, **chosen}
    return found


def _hash(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:8]


def hashes(name: str) -> dict[str, str]:
    """Return the hash of each stage of one case."""
    X = data(name.split("/")[0])
    jobs = int(os.environ.get("MAP_HASHES_JOBS", "2"))
    chosen = {**cases()[name], "random_state": 0, "n_jobs": jobs, "device": "cpu"}
    model = EmbeddingGame(**to_parameters(chosen))
    snapshots = iter(model.play(X))
    found = {"start": _hash(next(snapshots).embedding)}
    for _ in snapshots:
        pass
    weights = model.affinity_matrix_
    found["neighbours"] = _hash(model.knn_indices_, model.knn_distances_)
    found["weights"] = _hash(weights.indptr, weights.indices, weights.data)
    found["layout"] = _hash(model.embedding_, model.landmarks_)
    found["labels"] = _hash(model.labels_)
    is_placed = False
    with suppress(InputError):  # a method or a metric without new rows
        validate_transform(model.method, model.metric)
        is_placed = True
    if is_placed:
        found["new rows"] = _hash(model.transform(0.98 * X[:NEW_ROWS]))
    return found


def _run(setting: dict[str, str], chosen: list[str]) -> Hashes:
    """Return the hashes of cases by name, worked out by a process with that setting."""
    command = [sys.executable, __file__, "--here", "--cases", *chosen]
    environment = {**os.environ, **setting}
    child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: Hashes = json.loads(child.stdout.splitlines()[-1])
    return found


def _table(usual: Hashes, others: dict[str, Hashes]) -> bool:
    """Print the hashes and the first stage that differs; return whether any does."""
    print(f"| case | {' | '.join(STAGES)} | differs under |\n|{'---|' * 8}")
    any_differs = False
    for name, known in usual.items():
        differs = []
        for setting, other in others.items():
            unlike = [s for s in STAGES if known.get(s) != other[name].get(s)]
            differs += [f"{setting}: {unlike[0]}"] if unlike else []
        any_differs = any_differs or bool(differs)
        row = " | ".join(known.get(stage, "") for stage in STAGES)
        print(f"| {name} | {row} | {', '.join(differs) or 'none'} |")
    return any_differs


def main() -> None:
    """Print a table, or write the hashes of this machine; 1 where any differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--settings", nargs="+", default=["all at once"])
    parser.add_argument("--each", action="store_true", help="every setting alone")
    parser.add_argument("--write", help="a JSON file for the hashes of this machine")
    parser.add_argument("--compare", nargs="+", help="such files of several machines")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        files = {name: json.loads(Path(name).read_text()) for name in options.compare}
        sys.exit(_table(next(iter(files.values())), files))
    chosen = options.cases or list(cases())
    if options.here or options.write:
        found = {}
        for name in chosen:
            print(name, file=sys.stderr, flush=True)
            found[name] = hashes(name)
        print(json.dumps(found))
        if options.write:
            Path(options.write).write_text(json.dumps(found))
        return
    settings = list(SETTINGS) if options.each else options.settings
    usual = _run({}, chosen)
    sys.exit(_table(usual, {name: _run(SETTINGS[name], chosen) for name in settings}))


if __name__ == "__main__":
    main()
