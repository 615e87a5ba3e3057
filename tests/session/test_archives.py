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

from worlds import Desk, rows

FOLDER = Path(__file__).parents[1] / "archives"


def facts(path):
    """Return what a person would miss, in a form that does not change."""
    desk = Desk.opened(path)
    return [_facts_of(desk, place.key) for place in desk.maps.maps]


def _facts_of(desk, key):
    desk.maps.open(key)
    session = desk.session
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
    short = {"n_landmarks": 9, "max_iter": 30, "n_neighbors": 6}
    desk = Desk(rows(X, name="cells", obs=obs, var_names="abcd"), **short).play()
    session = desk.session
    session.clusters.set_n_clusters(3)
    first, second, *_ = session.clusters.clusters
    session.clusters.rename(first.id, "T cells")
    session.clusters.set_note(first.id, "look\nagain")
    session.clusters.recolor(second.id, "#00ff00")
    session.add_mark("the one to show")
    session.settings.repulsion = 250.0
    session.look.color_by = "kind"
    desk.maps.open_child_map(np.arange(90) < 60, "part")
    session.settings.n_neighbors = 5
    desk.play().save(path)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.zip")), ids=str)
def test_a_session_of_each_version_is_read(path):
    assert facts(path) == json.loads(path.with_suffix(".json").read_text())


def test_there_is_one_of_this_version():
    assert (FOLDER / f"{version('napari-embedding-game')}.zip").exists()


if __name__ == "__main__":
    target = FOLDER / f"{version('napari-embedding-game')}.zip"
    write(target)
    target.with_suffix(".json").write_text(json.dumps(facts(target)) + "\n")
