"""The loops of a first game: which they are, and the processes that compile them."""

import os
import subprocess
import sys
import threading

import pytest
from numba.core import event as numba_event

from napari_embedding_game.session.run.compilers import KIND, Compilers

GAME = """
import sys
import warnings
import numpy as np
from numba.core.dispatcher import Dispatcher
from napari_embedding_game.session.run import engine, first_game
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.core.threads import COMPUTING

warnings.simplefilter("ignore")

def compiled():
    modules = [m for name, m in sys.modules.items() if "embedding_game" in name]
    loops = {v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return {(loop.py_func.__qualname__, *loop.signatures) for loop in loops}

for compile_part, loop in first_game.list_compile_parts().items():
    compile_part()
    assert loop.signatures, compile_part
first_game.compile_markers()
first_game.compile_large_picture()
before = compiled()
engine.warm_up(lambda: False)  # the window is closed meanwhile
assert not COMPUTING.locked()
engine.warm_up()
X = np.random.default_rng(0).normal(size=(200, 50)).astype(np.float32)
settings, merging = fill_affinity(Settings(max_iter=4)), None
graph = engine.find_neighbors(X, settings)
edges, layout = engine.make_edges_and_layout(graph, X, settings)
for seen in engine.play_game(edges, layout, settings):
    merging = engine.merge_landmarks(edges, seen.labels, len(seen.landmarks), merging)
after = compiled()
print(*after - before)
"""
PARTS = """
import time
import numba

def compile_one():
    print("not a letter of the processes")
    numba.njit(lambda x: x + 1)(1)

def never_end():
    while True:
        time.sleep(1)
"""


def test_the_parts_are_all_that_a_first_game_compiles():
    import torch  # noqa: F401 - which the process needs

    done = subprocess.run(
        [sys.executable, "-c", GAME], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A module with parts, which other processes find as well."""
    (tmp_path / "some_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    import some_parts

    return some_parts


def test_what_other_processes_compile_is_heard_of_and_none_is_waited_for(
    parts, monkeypatch
):
    heard, ended = [], threading.Event()

    class Listener(numba_event.Listener):
        def on_start(self, event):
            heard.append(1)

        def on_end(self, event):
            heard.append(-1)
            ended.set()

    compilers = Compilers()
    with numba_event.install_listener(KIND, Listener()):
        compilers.start_processes([parts.compile_one, os.abort], [])  # which breaks off
        assert compilers.wait_for_needed()
    assert ended.is_set()
    assert sum(heard) == 0
    compilers.start_processes([parts.never_end], [])
    compilers.end_processes()
    assert not compilers.wait_for_needed()
    compilers.start_processes([parts.never_end], [])  # the window is closed already
    assert not compilers.wait_for_needed()

    def refuse(*given, **options):
        raise OSError("No more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    without = Compilers()
    without.start_processes([parts.never_end], [])
    assert without.wait_for_needed()
