import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.label_objects import Objects


def build(kept, X=None, **parts):
    n = len(kept)
    X = np.arange(2 * n, dtype=np.float32).reshape(n, 2) if X is None else X
    return Dataset.from_rows(
        name="cells",
        X=X,
        obs=pd.DataFrame({"row": range(n)}, index=[f"cell {i}" for i in range(n)]),
        var_names=[f"c{i}" for i in range(X.shape[1])],
        space="X",
        kept=np.asarray(kept, dtype=bool),
        **parts,
    )


masks = hnp.arrays(bool, st.integers(1, 40))


@given(masks)
def test_rows_keep_their_identity_through_left_out_rows(kept):
    dataset = build(kept)
    back = dataset.expand(dataset.obs["row"], -1)
    np.testing.assert_array_equal(back[kept], np.flatnonzero(kept))
    assert (back[~kept] == -1).all()
    np.testing.assert_array_equal(
        dataset.source_obs_names[dataset.kept], dataset.obs.index
    )


def test_subset_leaves_rows_of_the_source_what_they_are():
    obs = pd.DataFrame(
        {"k": [*"abcdef"], "text": [*"ABCDEF"]}, index=[f"r{i}" for i in range(6)]
    )
    kept = np.array([1, 1, 0, 1, 1, 1], dtype=bool)
    dataset = Dataset.from_rows(
        name="d",
        X=np.arange(12, dtype=np.float32).reshape(6, 2),
        obs=obs,
        var_names=["x", "y"],
        space="X",
        kept=kept,
        images=np.arange(6 * 4).reshape(6, 2, 2),
        objects=Objects(np.arange(6) + 10, np.zeros((6, 4), np.int64)),
    )
    part = dataset.subset(np.array([0, 1, 1, 0, 1], dtype=bool), "a part")
    assert part.obs.index.tolist() == ["r1", "r3", "r5"]
    assert part.X[:, 0].tolist() == [2, 6, 10]
    assert part.profile is part.X
    assert part.texts == ["B", "D", "F"]
    assert part.images[:, 0, 0].tolist() == [4, 12, 20]
    assert part.objects.label_ids.tolist() == [11, 13, 15]
    assert dataset.objects.label_ids.tolist() == [10, 11, 13, 14, 15]
    assert part.notes == ("a part",)
    assert part.n_source_rows == 6
    assert part.expand(np.array([1.0, 2, 3]), 0).tolist() == [0, 1, 0, 2, 0, 3]


def test_columns_that_are_added_leave_the_source_as_it_was():
    dataset = build([True, True])
    frame, columns = dataset.source_obs, dataset.source_obs.columns.tolist()
    dataset.add_column("score", np.ones(2))
    assert "score" in dataset.obs
    assert dataset.source_obs is frame
    assert frame.columns.tolist() == columns
