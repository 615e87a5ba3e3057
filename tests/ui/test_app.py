"""The whole program from its command to its files, in a process of its own."""

import subprocess
import sys

import anndata
import numpy as np
import pytest
import skimage.io

from napari_embedding_game.session.file import archive
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.app import after_run


def coloured_pixels(picture):
    """Count the pixels of the canvas, in the middle of the window, with a hue."""
    pixels = skimage.io.imread(picture)[..., :3].astype(int)
    height, width, _ = pixels.shape
    canvas = pixels[height // 10 : height // 2, width // 3 : 2 * width // 3]
    return int((np.ptp(canvas, axis=2) > 60).sum())


def test_it_plays_a_file_takes_a_picture_writes_and_quits(tmp_path):
    table, picture, out = (tmp_path / name for name in ("t.csv", "w.png", "map.h5ad"))
    rows = np.random.default_rng(0).normal(size=(200, 4))
    np.savetxt(table, rows, delimiter=",", header="a,b,c,d", comments="")
    code = (
        "from napari_embedding_game.ui.app import launch; import sys; "
        "from pathlib import Path; "
        f"sys.exit(launch(None, path=Path({str(table)!r}), out={str(out)!r}, "
        f"screenshot={str(picture)!r}, quit_after_run=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert coloured_pixels(picture) > 1_000
    assert anndata.read_h5ad(out).obsm["X_embedding_game"].shape == (200, 2)


@pytest.mark.parametrize("fails", ["file", "run"])
def test_what_fails_ends_with_a_sentence(
    click_run, qtbot, window, docked, engine, tmp_path, capsys, fails
):
    code = after_run(window, docked)
    if fails == "file":
        (tmp_path / "broken.csv").write_text("")
        docked.controller.reading.load(FileSource(tmp_path / "broken.csv"))
    else:
        engine.fail_at = 20
        click_run(docked, "failed")
    qtbot.waitUntil(lambda: code() == 1)
    told = {"file": "broken.csv is empty", "run": "out of numbers"}
    assert told[fails] in capsys.readouterr().err


def test_of_a_session_file_the_map_is_written(
    click_run, qtbot, window, docked, tmp_path
):
    click_run(docked)
    path, out = tmp_path / "map.zip", tmp_path / "map.csv"
    archive.save(docked.workspace.maps.capture(), path)
    code = after_run(window, docked, out=out)
    with qtbot.waitSignal(docked.controller.writing.saved):
        docked.controller.reading.open_file(path)
    assert out.exists()
    assert code() == 0
