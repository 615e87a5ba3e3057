"""Autosaves one state after another without a pause until it is killed; run by a test.

Everything in a state has its number, so that a file is seen to hold one and no other.
"""

import os
import sys
from pathlib import Path

import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.file.autosave import Autosave
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.run.record import RunRecord
from worlds import rows, session_of

N, L = 3000, 12


def state(number, session):
    """Return a state, all of whose numbers are this one."""
    shot = Snapshot(
        iteration=number,
        n_iter=10**6,
        embedding=np.full((N, 2), number, np.float32),
        landmarks=np.full((L, 2), number, np.float32),
        energy=0.0,
        labels=np.arange(N, dtype=np.int32) % L,
        pressure=np.full(N, number, np.float32),
    )
    if number == 1:
        session.clusters.receive(shot.labels, L)
    session.clusters.rename(session.clusters.clusters[0].id, f"at {number}")
    return SavedMap(
        key="",
        title="x",
        dataset=session.dataset,
        settings=Settings(),
        record=RunRecord(settings=Settings(), n_iter=number),
        snapshot=shot,
        energies=((number, 0.0),),
        clusters=session.clusters.state,
    )


def main(folder):
    session = session_of(rows(np.random.default_rng(0).normal(size=(N, 4))))
    present = None
    autosave = Autosave(lambda: present, seconds=0.0, where=Path(folder))
    for number in range(1, 100_000):
        present = SavedSession(maps=(state(number, session),))
        autosave.touch()
        autosave.tick()()


if __name__ == "__main__":
    # Each in a copy of this process: to import all this takes longer than the test.
    for line in sys.stdin:
        copy = os.fork()
        if not copy:
            main(line.strip())
        print(copy, flush=True)
        os.waitpid(copy, 0)
        print("ended", flush=True)
