"""The timeline in a session file: every moment comes back, and damage is told."""

import json
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive, map_text
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.file.zip_container import write
from napari_embedding_game.session.run.replay import replay, same
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session


def play(session, run):
    steers = run.warm_start is None
    for frame in run.frames():
        session.receive(run, frame)
        if frame.snapshot is None:
            continue
        if frame.snapshot.finished:
            break
        if steers:
            session.settings.repulsion, steers = 400.0, False
            session.hand.hold(np.arange(20))


@pytest.fixture(scope="module")
def session():
    """A map with a run that was steered, a branch, a new run, and a name."""
    X, _ = make_blobs(150, 4, centers=5, random_state=0)
    session = Session(pace=UNPACED)
    names = pd.Index([f"cell{i}" for i in range(len(X))])
    session.load(
        Dataset.from_rows(
            name="blobs",
            X=X.astype(np.float32),
            obs=pd.DataFrame(index=names),
            var_names=list("abcd"),
            space="X",
        )
    )
    for name, value in {"n_landmarks": 12, "max_iter": 60, "n_neighbors": 6}.items():
        setattr(session.settings, name, value)
    play(session, session.begin())
    session.settings.repulsion = 200.0
    play(session, session.play_on())
    session.settings.random_state = 5
    play(session, session.begin())
    session.timeline.rename(session.timeline.marks[1].number, "the one to show")
    session.look_back(session.timeline.marks[2].number)
    return session


@pytest.fixture(scope="module")
def path(session, tmp_path_factory):
    """The file of that session."""
    path = tmp_path_factory.mktemp("work") / "work.zip"
    archive.save(SavedSession(maps=(session.capture(),)), path)
    return path


def restored(path):
    session = Session(pace=UNPACED)
    session.restore(archive.load(path).maps[0])
    return session


NO_ARRAYS = ("snapshot", "record", "merging")


def test_every_mark_comes_back(session, path):
    found = restored(path).timeline
    assert len(found.marks) == len(session.timeline.marks) >= 5
    for one, other in zip(found.marks, session.timeline.marks, strict=True):
        for field in fields(other):
            if field.name not in NO_ARRAYS:
                assert getattr(one, field.name) == getattr(other, field.name)
        assert same(one.snapshot, other.snapshot)
        for name in ("pressure", "stretch", "neighbors", "labels"):
            ours, theirs = (getattr(x.snapshot, name) for x in (one, other))
            np.testing.assert_array_equal(ours, theirs)
        assert one.record.as_json() == other.record.as_json()
        parts = [x.merging(4) for x in (one, other)]
        np.testing.assert_array_equal(*parts)
    assert replace(found.state, marks=()) == replace(session.timeline.state, marks=())


def test_what_was_looked_back_at_is_on_show_again(session, path):
    found = restored(path)
    assert found.timeline.shown.number == session.timeline.shown.number
    assert found.timeline.shown.snapshot.embedding is found.snapshot.embedding
    found.look_back(found.timeline.marks[-1].number)
    last = session.timeline.marks[-1]
    assert same(found.snapshot, last.snapshot)
    assert found.settings.value == last.settings
    assert found.settings.random_state == 5


def test_runs_and_branches_of_marks_are_replayed(path):
    found = restored(path)
    forced = [mark for mark in found.timeline.marks if mark.record.forced]
    branches = [mark for mark in found.timeline.marks if mark.record.warm_start]
    assert forced
    assert branches
    for mark in (forced[-1], branches[-1]):
        assert same(replay(found.dataset.X, mark.record), mark.snapshot)


def test_a_branch_goes_on_from_a_mark_of_the_file(path):
    found = restored(path)
    shown = found.timeline.shown.number
    play(found, found.play_on())
    newest = found.timeline.newest
    assert newest.label == "Finished"
    assert newest.parent == shown
    assert newest.number == len(found.timeline.marks)


def test_marks_share_what_is_equal(session, path):
    found = restored(path).timeline
    assert found.n_bytes <= session.timeline.n_bytes
    neighbors = {id(mark.snapshot.neighbors) for mark in found.marks}
    assert len(neighbors) == 1  # of the same rows, found with the same settings


def test_only_so_much_is_stored(session, tmp_path, monkeypatch):
    monkeypatch.setattr(map_text, "MOST_BYTES", 1)
    archive.save(SavedSession(maps=(session.capture(),)), tmp_path / "x.zip")
    found = restored(tmp_path / "x.zip").timeline
    assert [mark.number for mark in found.marks] == [session.timeline.shown.number]
    assert found.n_thinned == len(session.timeline.marks) - 1


def changed(path, tmp_path, change):
    """Return a file whose text was changed."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    text = json.loads(members["maps/0.json"])
    change(text)
    members["maps/0.json"] = json.dumps(text).encode()
    write(tmp_path / "changed.zip", members)
    return tmp_path / "changed.zip"


def set_timeline(**values):
    return lambda text: text["timeline"].update(values)


def set_mark(place, /, **values):
    return lambda text: text["timeline"]["marks"][place].update(values)


@pytest.mark.parametrize(
    "change",
    [
        set_timeline(head=99),
        set_timeline(shown=0),
        set_timeline(n_made=1),
        set_timeline(branch=-1),
        set_mark(0, number=2),
        set_mark(0, parent=2),
        set_mark(1, parent=77),
        set_mark(1, snapshot=None),
        set_mark(1, kind="other"),
        lambda text: text["timeline"]["marks"][1]["snapshot"].update(
            embedding={"array": 10**6}
        ),
        lambda text: text["timeline"]["marks"][1]["settings"].update(repulsion=-1.0),
    ],
)
def test_a_damaged_timeline_is_told(path, tmp_path, change):
    with pytest.raises(DataError, match=r"changed\.zip is damaged"):
        archive.load(changed(path, tmp_path, change))
