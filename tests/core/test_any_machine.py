"""A map has the same bits whatever processor, library kernels and threads make it."""

import hashlib
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from napari_embedding_game.core import elementary, threads
from napari_embedding_game.core.energy import fft
from napari_embedding_game.core.estimator import EmbeddingGame

PLAYER = Path(__file__).with_name("any_machine.py")
OLD_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    "NUMBA_CPU_NAME": "generic",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "3",  # tests have one
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4",
}
"""What makes libraries use the kernels of old processors; no others look at it."""


def hashes(settings):
    """What the player prints in a process with these settings, on one thread."""
    # A numpy without such kernels warns.
    command = [sys.executable, "-W", "ignore", PLAYER, "1"]
    ran = subprocess.run(
        command,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.filterwarnings("ignore:The points lie in one heap")
def test_maps_are_the_same_on_other_processors_and_when_loops_were_just_compiled(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(threads, "PARALLEL_WORK", 0)  # back afterwards
    monkeypatch.setattr(sys, "argv", [PLAYER, "4"])
    runpy.run_path(PLAYER)["main"]()
    usual = capsys.readouterr().out.splitlines()
    assert len(usual) == 7
    assert usual[0].startswith("projected")
    # With an empty cache of compiled loops.
    cold = OLD_PROCESSOR | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert hashes(cold) == usual
    assert list(tmp_path.rglob("*.nbi"))


def test_the_hash_is_of_places_and_nearest_landmarks():
    X = np.random.default_rng(0).random((60, 4))
    model = EmbeddingGame(random_state=0, max_iter=3, n_neighbors=5).fit(X)
    parts = model.embedding_.astype("<f4"), model.labels_.astype("<i4")
    wanted = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    assert model.map_hash_ == wanted[:16]


@pytest.mark.parametrize(
    ("ours", "numpys", "x", "within"),
    [
        (elementary.exp, np.exp, np.linspace(-700, 700, 5001), 1e-15),
        (elementary.log, np.log, np.logspace(-300, 300, 5001), 1e-15),
        (elementary.log, np.log, 1 + np.linspace(-0.1, 0.1, 5001)[1::2], 1e-15),
    ],
)
def test_elementary_functions_are_good_to_some_units(ours, numpys, x, within):
    np.testing.assert_allclose(ours(x), numpys(x), rtol=within)


def test_the_cosine_is_good_to_some_units():
    x = np.linspace(-np.pi, np.pi, 5001)
    np.testing.assert_allclose(elementary.cos(x), np.cos(x), atol=1e-15, rtol=0)


@pytest.mark.parametrize("shape", [(60, 1, 96), (15, 8, 18)])
def test_a_convolution_is_numpys(shape):
    rng = np.random.default_rng(0)
    wide = np.zeros(shape)
    kernel = rng.random(shape)
    grid = rng.random((shape[0] // 2, shape[1], shape[2] // 2))
    grid[:, (shape[1] + 1) // 2 :] = 0
    wide[: len(grid), :, : grid.shape[2]] = grid
    transfer = np.fft.rfftn(kernel).real
    wanted = np.fft.irfftn(np.fft.rfftn(wide) * transfer, s=shape, axes=(0, 1, 2))
    spectrum = np.full((2, len(grid), *transfer.shape[1:]), np.nan)
    found = np.full(grid.shape, np.nan)
    fft.convolve_with_kernel(grid, transfer, shape[2], spectrum, found)
    wanted = wanted[: len(grid), :, : grid.shape[2]]
    np.testing.assert_allclose(found, wanted, atol=1e-12 * abs(wanted).max())


@pytest.mark.parametrize("shape", [(60, 1, 96), (15, 8, 18), (9, 1, 10), (1, 1, 64)])
@pytest.mark.parametrize(("dtype", "within"), [("f4", 4e-7), ("f8", 2e-15)])
def test_fourier_transforms_are_numpys(shape, dtype, within):
    grid = np.random.default_rng(0).random(shape).astype(dtype)
    grid[len(grid) // 2 + 1 :] = 0
    wanted = np.fft.rfftn(grid.astype(float))
    found = fft.forward_transform(grid)
    assert abs(found[0] + 1j * found[1] - wanted).max() < within * abs(wanted).max()
    back = fft.inverse_transform(found, shape[2], n_rows=max(1, shape[0] // 2))
    np.testing.assert_allclose(back, grid[: len(back)], atol=4 * within)
