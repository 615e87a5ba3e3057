"""Plays and autosaves without a pause until it is killed; run by a test.

Before a state is saved, its fingerprint goes into a log: what is found after
the kill has to be one of the states in there.
"""

import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.file.autosave import Autosave
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.session import Session

N, L = 3000, 12


def fingerprint(saved):
    """Of all that moves in a state of this test."""
    digest = hashlib.sha256()
    names = [cluster.name for cluster in clusters(saved)]
    digest.update(repr([names, saved.record, saved.energies]).encode())
    shot = saved.snapshot
    for array in (shot.embedding, shot.landmarks, shot.labels, shot.pressure):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def clusters(saved):
    session = Session()
    session.restore(saved)
    return session.clusters.clusters


def states():
    rng = np.random.default_rng(os.getpid())
    frame = pd.DataFrame(index=[f"cell{i}" for i in range(N)])
    X = rng.normal(size=(N, 4)).astype(np.float32)
    dataset = Dataset.from_rows(name="x", X=X, obs=frame, var_names="abcd", space="X")
    session = Session()
    session.load(dataset)
    energies = []
    for iteration in range(1, 100_000):
        shot = Snapshot(
            iteration=iteration,
            n_iter=10**6,
            embedding=rng.normal(size=(N, 2)).astype(np.float32),
            landmarks=rng.normal(size=(L, 2)).astype(np.float32),
            energy=float(rng.random()),
            labels=np.arange(N, dtype=np.int32) % L,
            pressure=rng.random(N).astype(np.float32),
        )
        energies.append((iteration, shot.energy))
        if iteration == 1:
            session.clusters.receive(shot.labels, L)
        session.clusters.rename(iteration % L, f"named at {iteration}")
        yield SavedMap(
            key="",
            title="x",
            dataset=dataset,
            settings=Settings(),
            record=RunRecord(settings=Settings(), n_iter=iteration),
            snapshot=shot,
            energies=tuple(energies[-20:]),
            clusters=session.clusters.state,
        )


def main(folder):
    present = None
    autosave = Autosave(lambda: present, seconds=0.0, where=Path(folder))
    with (Path(folder) / "shown.log").open("w") as log:
        for state in states():
            log.write(fingerprint(state) + "\n")
            log.flush()
            present = SavedSession(maps=(state,))
            autosave.touch()
            autosave.tick()()


def main_of_each_line():
    """For each folder on the standard input, play in a copy of this process.

    Tells the number of the copy, and then that it was killed: to start Python anew and
    import all this takes longer than what is asked.
    """
    for line in sys.stdin:
        number = os.fork()
        if not number:
            main(line.strip())
        print(number, flush=True)
        os.waitpid(number, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main_of_each_line()
