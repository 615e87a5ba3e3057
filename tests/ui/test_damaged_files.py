"""Files that make a library loop or break off, dropped on a window."""

import h5py
import numpy as np
import pandas as pd
import psutil
from anndata import AnnData

from napari_embedding_game.session.file import archive
from napari_embedding_game.ui.workspace import make_workspace

PLACE = "uns/embedding_game/session"


def cells(path):
    obs = pd.DataFrame({"type": list("abcd")}, index=[f"cell{i}" for i in range(4)])
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    AnnData(X, obs=obs).write_h5ad(path)
    return path


def of_a_map(path, content):
    """The file of a map, which goes on as it was saved."""
    with h5py.File(cells(path), "r+") as file:
        part = file.create_dataset(PLACE, data=np.frombuffer(content, np.uint8))
        part.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    return path


def endless(path):
    """A damaged list of texts, which HDF5 goes through for ever: 16 zeros suffice."""
    content = bytearray(path.read_bytes())
    begin = content.index(b"GCOL") + 16
    content[begin : begin + 16] = bytes(16)
    path.write_bytes(content)
    return path


def readers():
    """The processes that read files."""
    return [
        one
        for one in psutil.Process().children()
        if one.status() != psutil.STATUS_ZOMBIE and "serve()" in str(one.cmdline())
    ]


def test_a_damaged_file_does_no_harm_to_the_window(
    window, session, from_menu, qtbot, person_at_the_window, tmp_path
):
    maps = make_workspace(window, session).map_tree
    title = person_at_the_window.GAME
    from_menu(window.window.plugins_menu, person_at_the_window.PLUGIN, title)
    data = window.window.dock_widgets[title].data_controls

    def drop(path):
        person_at_the_window.drop_files(window, path)

    def wait_for_trouble(words):
        qtbot.waitUntil(lambda: words in data.trouble.text())

    path = endless(cells(tmp_path / "endless.h5ad"))
    target = tmp_path / "map.h5ad"
    saved = of_a_map(
        target, archive.pack_shown_map_for_h5ad(maps.to_saved_session(), target)[0]
    )
    for one, words in ((path, "Opening endless"), (endless(saved), "Reading map")):
        drop(one)
        qtbot.waitUntil(lambda words=words: words in data.summary.text())
        qtbot.waitUntil(lambda: len(readers()) == 1)  # it is being started
        (reader,) = readers()
        data.cancel_button.click()
        qtbot.waitUntil(lambda it=reader: it not in readers())
        assert "40 rows" in data.summary.text()
        assert data.trouble.isHidden()
    drop(path)
    qtbot.waitUntil(lambda: "Opening endless" in data.summary.text())
    for one in readers():
        one.kill()  # as a library that breaks off does
    wait_for_trouble("endless.h5ad could not be read: the library")
    path = cells(tmp_path / "open.h5ad")
    with h5py.File(path, "r+"):
        drop(path)
        wait_for_trouble("open.h5ad is open in another program")
    drop(cells(tmp_path / "cells.h5ad"))
    qtbot.waitUntil(lambda: session.dataset.name == "cells.h5ad")
    assert data.trouble.isHidden()
