"""What a tooltip tells of a row: few facts, and no more letters than can be read."""

from dataclasses import replace

import numpy as np

from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.session.row_details import describe_row

CLUSTER = Cluster(id=1, name="1", size=9)


def test_five_facts_are_told_and_what_was_worked_out_first(dataset):
    names = ["kind", "nothing", "counts", "kind", "a", "b", "c"]
    told = describe_row(dataset, 3, CLUSTER, names, {"Stretch": 2.5})
    assert (told.name, told.cluster, told.text) == ("cell3", "Cluster 1", "")
    first, *_ = told.facts
    assert first == ("Stretch", "2.5")
    assert [name for name, _ in told.facts] == ["Stretch", "kind", "counts", "a", "b"]


def test_missing_values_are_passed_over_and_long_ones_cut(dataset):
    letters = {"a": 40 * "x", "b": 41 * "x", "c": "two\n  words", "d": np.nan}
    texts = [f"{row:02} " + (237 + row % 2) * "y" for row in range(40)]
    dataset = replace(dataset, obs=dataset.obs.assign(text=texts, **letters))
    even, odd = (describe_row(dataset, row, CLUSTER, [*letters]) for row in (0, 1))
    assert dict(even.facts) == {"a": 40 * "x", "b": 39 * "x" + "…", "c": "two words"}
    assert (even.text, odd.text) == (texts[0], f"{texts[1][:239]}…")
