import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from napari_embedding_game.session.clusters.history import History


class AgainstAList(RuleBasedStateMachine):
    """A history against all states in a list and a finger on the present one."""

    DEPTH = 5

    def __init__(self):
        super().__init__()
        self.history = History(self.DEPTH)
        self.present = 0
        self.states, self.finger = [0], 0

    @rule(state=st.integers())
    def edit(self, state):
        self.history.record(f"edit to {state}", self.present, state)
        self.present = state
        self.states[self.finger + 1 :] = [state]
        self.states = self.states[-self.DEPTH - 1 :]
        self.finger = len(self.states) - 1

    @rule()
    def undo(self):
        before = self.history.undo()
        if self.finger == 0:
            assert before is None
            return
        self.finger -= 1
        self.present = before

    @rule()
    def redo(self):
        after = self.history.redo()
        if self.finger == len(self.states) - 1:
            assert after is None
            return
        self.finger += 1
        self.present = after

    @invariant()
    def stands_where_the_finger_is(self):
        assert self.present == self.states[self.finger]

    @invariant()
    def the_menu_names_the_next_step(self):
        label = f"Undo edit to {self.present}" if self.finger else ""
        assert self.history.undo_label == label
        ahead = self.states[self.finger + 1 :]
        assert self.history.redo_label == (f"Redo edit to {ahead[0]}" if ahead else "")


TestAgainstAList = AgainstAList.TestCase


def test_a_series_is_one_step():
    history = History()
    for k in range(8, 3, -1):
        history.record(f"{k - 1} clusters", k, k - 1, series="slider")
    assert history.undo_label == "Undo 3 clusters"
    assert history.undo() == 8
    assert history.redo() == 3


@pytest.mark.parametrize("between", ["another edit", "undo and redo"])
def test_a_series_ends(between):
    history = History()
    history.record("8 clusters", 9, 8, series="slider")
    if between == "another edit":
        history.record("rename", 8, "named")
        assert history.undo() == 8
    history.undo()
    history.record("7 clusters", 9, 7, series="slider")
    assert history.undo() == 9
    assert history.undo() is None


def test_whoever_shows_the_menu_is_told():
    history, heard = History(), []
    history.changed.connect(lambda: heard.append(history.undo_label))
    history.record("split of B", 1, 2)
    history.undo()
    history.redo()
    history.clear()
    assert heard == ["Undo split of B", "", "Undo split of B", ""]
