"""Points in boxes become classes of all rows, in maps of parts and files, too."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.teaching import Teaching

N = 60


@pytest.fixture
def dataset():
    """Three kinds of rows that are easy to tell apart; the file has one row more."""
    rng = np.random.default_rng(0)
    kinds = np.arange(N + 1) % 3
    X = (np.eye(3)[kinds] * 8 + rng.normal(size=(N + 1, 3))).astype("f4")
    kept = np.arange(N + 1) != 10
    obs = pd.DataFrame({"kind": kinds}, index=[f"c{i}" for i in range(N + 1)])
    return Dataset.from_rows(
        name="cells", X=X, obs=obs, var_names=list("abc"), space="X", kept=kept
    )


@pytest.fixture
def session(engine, dataset):
    session = Session(engine, UNPACED)
    session.load(dataset)
    return session


@pytest.fixture
def teaching(session):
    return Teaching(session)


def of_kind(session, kind, n):
    """Return the first n points of a kind."""
    points = np.zeros(len(session.dataset.obs), bool)
    points[np.flatnonzero(session.dataset.obs["kind"] == kind)[:n]] = True
    return points


def learn(teaching):
    examples = teaching.examples()
    return teaching.take_up(finish(teaching.lesson()()), examples)


def filled(session, teaching, n=6):
    teaching.add_box("third")
    for kind in range(3):
        teaching.put(kind, of_kind(session, kind, n))
    return teaching


def test_what_is_missing_is_said(session, teaching):
    assert "add them to a class" in teaching.refusal()
    teaching.put(0, of_kind(session, 0, 3))
    assert "add others to another class" in teaching.refusal()
    teaching.put(1, of_kind(session, 1, 1))
    assert teaching.refusal() == ""


def test_a_point_is_in_one_box(session, teaching):
    teaching.put(0, of_kind(session, 0, 4))
    teaching.put(1, of_kind(session, 0, 2))
    assert [int(teaching.points(i).sum()) for i in (0, 1)] == [2, 2]
    teaching.take_out(of_kind(session, 0, 3))
    assert [int(teaching.points(i).sum()) for i in (0, 1)] == [1, 0]


def test_boxes_have_names_of_their_own(teaching):
    teaching.rename(0, "mitotic")
    teaching.rename(1, " mitotic ")
    teaching.rename(1, "")
    assert list(teaching.boxes) == ["mitotic", "mitotic (2)"]
    teaching.remove(0)
    assert list(teaching.boxes) == ["mitotic (2)"]


def test_all_points_get_a_class_and_a_confidence(session, teaching):
    heard = []
    session.columns_changed.connect(lambda: heard.append(1))
    assert learn(filled(session, teaching)) == "taught"
    obs = session.dataset.obs
    codes = obs["taught"].cat.codes.to_numpy()
    assert obs["taught"].cat.categories.tolist() == ["Box 1", "Box 2", "third"]
    assert (codes == obs["kind"]).mean() > 0.95
    assert obs["taught_confidence"].between(1 / 3, 1).all()
    assert heard == [1]
    told = teaching.told()
    assert told.startswith("100% ± ")
    assert "(by chance 33%; cross-validated balanced accuracy)" in told
    assert teaching.recalls() == {"Box 1": 1, "Box 2": 1, "third": 1}


def test_in_a_map_of_a_part_boxes_and_classes_stay(session, teaching):
    learn(filled(session, teaching))
    part = session.dataset.subset(np.arange(N) >= 9)
    whole = session.dataset
    session.load(part)
    assert [int(teaching.points(i).sum()) for i in range(3)] == [3, 3, 3]
    assert part.obs["taught"].equals(whole.obs["taught"][9:])
    teaching.put(0, of_kind(session, 0, 4))
    session.load(whole)
    assert int(teaching.points(0).sum()) == 7


def test_other_data_begin_with_empty_boxes(session, teaching):
    learn(filled(session, teaching))
    X = np.random.default_rng(0).normal(size=(9, 2)).astype("f4")
    obs = pd.DataFrame(index=list("abcdefghi"))
    session.load(
        Dataset.from_rows(name="n", X=X, obs=obs, var_names=["a", "b"], space="X")
    )
    assert list(teaching.boxes.values()) == [(), ()]
    assert teaching.learned is None


def saved_and_opened(session, path):
    archive.save(SavedSession(maps=(session.capture(),)), path)
    return archive.open_session(path)[0].maps[0]


def test_boxes_come_back_that_nothing_was_learned_from(session, teaching, tmp_path):
    teaching.rename(1, "b")
    teaching.put(1, of_kind(session, 1, 2))
    kept = teaching.boxes
    saved = saved_and_opened(session, tmp_path / "work.zip")
    again = Session()
    restored = Teaching(again)
    again.restore(saved)
    assert restored.boxes == kept
    assert not restored.has_classes
    teaching.put(0, of_kind(session, 1, 2))
    session.restore(saved)  # of the same source, and yet the file's boxes
    assert teaching.boxes == kept
    assert not teaching.can_undo


def test_all_maps_have_the_same_boxes(session, teaching):
    maps = MapTree(session)
    learn(filled(session, teaching))
    maps.embed(np.arange(N) >= 9, "part")
    teaching.put(0, of_kind(session, 1, 5))
    learn(teaching)
    kept = teaching.boxes
    assert all(one.boxes == session.boxes for one in maps.capture().maps)
    maps.open("")
    assert teaching.boxes == kept
    assert teaching.is_outdated  # the whole map was taught by others
    assert teaching.doubtful().size  # though how well is not known any more
    assert teaching.told() == ""
    assert teaching.can_undo


def test_changes_are_undone(session, teaching):
    teaching.put(0, of_kind(session, 0, 3))
    teaching.remove(0)
    teaching.undo()
    assert [*map(len, teaching.boxes.values())] == [3, 0]
    teaching.add_box()
    for _ in range(5):
        teaching.undo()
    assert [*map(len, teaching.boxes.values())] == [0, 0]
