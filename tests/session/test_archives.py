"""Session files of each released version are read for ever.

Before a release, ``python tests/session/test_archives.py`` writes that of this version.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session

FOLDER = Path(__file__).parents[1] / "archives"


def facts(path):
    """Return what a person would miss, in a form that does not change."""
    opened, troubles = archive.open_session(path)
    assert troubles == []
    tree = MapTree(Session(pace=UNPACED))
    tree.restore(opened)
    return [_facts_of(tree, place.key) for place in tree.maps]


def _facts_of(tree, key):
    tree.open(key)
    session = tree._session
    embedding = np.ascontiguousarray(session.snapshot.embedding, "<f4")
    obs = session.dataset.obs
    return {
        "map": hashlib.sha256(embedding.tobytes()).hexdigest(),
        "clusters": [
            [one.name, one.size, one.note] for one in session.clusters.clusters
        ],
        "columns": {name: list(map(str, obs[name])) for name in obs},
        "rows": obs.index.tolist(),
        "marks": [mark.label for mark in session.timeline.marks],
        "repulsion": session.settings.repulsion,
        "color_by": session.look.color_by,
    }


def write(path):
    """Write a session with a name, a note, a colour, a mark and a child map."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 4)) + 9 * i for i in range(3)])
    obs = pd.DataFrame(
        {
            "day": pd.to_datetime(["2024-05-01", None, "2024-05-02"] * 30),
            "dose": np.tile([0.5, np.nan, 2.0], 30),
            "kind": pd.Categorical(np.repeat(["B", "NK", "T"], 30)),
        },
        index=[f"cell{i}" for i in range(90)],
    )
    session = Session(pace=UNPACED)
    tree = MapTree(session)
    session.load(
        Dataset.from_rows(
            name="cells", X=X.astype(np.float32), obs=obs, var_names="abcd", space="X"
        )
    )
    session.settings.update(n_landmarks=9, max_iter=30, n_neighbors=6)
    _play(session)
    session.clusters.set_n_clusters(3)
    first, second, *_ = session.clusters.clusters
    session.clusters.rename(first.id, "T cells")
    session.clusters.annotate(first.id, "look\nagain")
    session.clusters.recolor(second.id, "#00ff00")
    session.mark("the one to show")
    session.settings.repulsion = 250.0
    session.look.color_by = "kind"
    tree.embed(np.arange(90) < 60, "part")
    session.settings.n_neighbors = 5
    _play(session)
    archive.save(tree.capture(), path)


def _play(session):
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            return


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.zip")), ids=str)
def test_a_session_of_each_version_is_read(path):
    assert facts(path) == json.loads(path.with_suffix(".json").read_text())


def test_there_is_one_of_this_version():
    assert (FOLDER / f"{version('napari-embedding-game')}.zip").exists()


if __name__ == "__main__":
    target = FOLDER / f"{version('napari-embedding-game')}.zip"
    write(target)
    target.with_suffix(".json").write_text(json.dumps(facts(target)) + "\n")
