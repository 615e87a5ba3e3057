"""Annotated points are the examples of classes of all rows, in files, too."""

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core.inspect.teaching import Classification
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session import learned_classes
from worlds import rows, session_of

N = 60


@pytest.fixture
def session(engine):
    """Three kinds of rows that are easy to tell apart; the file has one row more."""
    rng = np.random.default_rng(0)
    kinds = np.arange(N + 1) % 3
    X = (np.eye(3)[kinds] * 8 + rng.normal(size=(N + 1, 3))).astype("f4")
    kept = np.arange(N + 1) != 10
    obs = pd.DataFrame({"kind": kinds}, index=[f"c{i}" for i in range(N + 1)])
    return session_of(rows(X, obs=obs, var_names="abc", kept=kept), engine)


def said(session):
    return session.clusters.state.annotation


def of_kind(session, kind, n):
    """Return the first n points of a kind."""
    return np.flatnonzero(session.dataset.obs["kind"] == kind)[:n]


def filled(session, n=6):
    for kind in range(3):
        session.clusters.make_group(of_kind(session, kind, n), f"kind {kind}")
    return session


def learn(session):
    examples = learned_classes.choose_example_rows(session.dataset, said(session))
    learned = finish(learned_classes.learn_from_examples(session.dataset, examples))
    add = learned_classes.add_class_columns
    return session.add_columns(add, "taught", learned, examples), learned, examples


def test_what_is_missing_is_said(session):
    dataset = session.dataset
    assert "press New class" in learned_classes.explain_why_unlearnable(
        dataset, said(session)
    )
    group = session.clusters.make_group(of_kind(session, 0, 3), "a")
    assert "make another class" in learned_classes.explain_why_unlearnable(
        dataset, said(session)
    )
    session.clusters.make_group(of_kind(session, 1, 1), "b")
    assert learned_classes.explain_why_unlearnable(dataset, said(session)) == ""
    session.clusters.recolor(group, "#ff0000")
    session.clusters.add_points_to_group(group, of_kind(session, 2, 2))
    first, second = learned_classes.choose_example_rows(dataset, said(session)).values()
    assert (len(first), len(second)) == (5, 1)
    assert said(session).groups[group].color == "#ff0000"
    session.clusters.undo()
    assert (said(session).codes == group).sum() == 3


def test_all_points_get_a_class_and_a_confidence(session):
    heard = []
    session.columns_changed.connect(lambda: heard.append(1))
    column, learned, examples = learn(filled(session))
    obs = session.dataset.obs
    codes = obs["taught"].cat.codes.to_numpy()
    assert [*examples] == obs["taught"].cat.categories.tolist()
    assert (codes == obs["kind"]).mean() > 0.95
    assert obs["taught_confidence"].between(1 / 3, 1).all()
    assert (column, heard) == ("taught", [1])
    told = learned_classes.describe_accuracy(learned, [*examples])
    low = 1 - 2 * learned.spread  # one standard error holds in two cases of three
    assert told.startswith(f"100% ({low:.0%} to 100%, 95% confidence)")
    assert "(by chance 33%; cross-validated balanced accuracy)" in told
    doubtful = learned_classes.find_least_confident_points(
        session.dataset, column, said(session)
    )
    assert (said(session).codes[doubtful] == -1).all()
    sure = obs["taught_confidence"].to_numpy()
    assert sure[doubtful].max() <= np.sort(sure[said(session).codes == -1])[19]


def test_the_class_that_is_hardest_to_tell_is_named_where_it_differs():
    counts = np.array([30, 30, 30])

    def told(*recalls, spread=0.05):
        score = float(np.mean(recalls))
        learned = Classification(
            counts * 0, counts * 0.0, counts, score, spread, recalls
        )
        return learned_classes.describe_accuracy(learned, ["A", "B", "C"])

    assert told(0.95, 0.5, 0.95).endswith(" B is correct least often (50%).")
    assert told(0.9, 0.88, 0.9).endswith("balanced accuracy).")
    assert told(0.75, 0.5, 1.0, spread=0.25).endswith("balanced accuracy).")
    counts[2] = 5
    assert told(0.9, 0.88, 0.9).endswith("balanced accuracy).")
    counts[2] = 4
    assert told(0.9, 0.88, 0.9).endswith(" Class C has only 4 examples: add more.")


def test_of_a_large_group_some_points_are_learned_from(session, monkeypatch):
    monkeypatch.setattr(learned_classes, "MAX_EXAMPLES", 5)
    _, learned, examples = learn(filled(session, 12))
    assert learned.counts.tolist() == [5, 5, 5]
    assert examples == learned_classes.choose_example_rows(
        session.dataset, said(session)
    )


def test_in_a_map_of_a_part_classes_stay(session):
    learn(filled(session))
    part = session.dataset.subset(np.arange(N) >= 9)
    assert part.obs["taught"].equals(session.dataset.obs["taught"][9:])
