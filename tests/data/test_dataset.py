import numpy as np
import pandas as pd

from napari_embedding_game.data.dataset import AddedColumns
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.read_options import ReadOptions
from worlds import rows


def test_subset_leaves_rows_of_the_source_what_they_are():
    obs = pd.DataFrame(
        {"k": [*"abcdef"], "text": [*"ABCDEF"]}, index=[f"r{i}" for i in range(6)]
    )
    kept = np.array([1, 1, 0, 1, 1, 1], dtype=bool)
    dataset = rows(
        np.arange(12).reshape(6, 2),
        obs=obs,
        kept=kept,
        images=np.arange(6 * 4).reshape(6, 2, 2),
        source_objects=Objects(
            np.arange(6) + 10, np.zeros((6, 4), np.int64), np.arange(6)
        ),
    )
    part = dataset.subset(np.array([0, 1, 1, 0, 1], dtype=bool), "apart")
    assert part.obs.index.tolist() == ["r1", "r3", "r5"]
    assert part.X[:, 0].tolist() == [2, 6, 10]
    assert part.texts == ["B", "D", "F"]
    assert part.images[:, 0, 0].tolist() == [4, 12, 20]
    assert part.objects.label_ids.tolist() == [11, 13, 15]
    assert dataset.objects.label_ids.tolist() == [10, 11, 13, 14, 15]
    assert [*part.left_out] == ["missing or infinite values", "apart"]
    assert part.expand_to_source_rows(np.array([1.0, 2, 3]), 0).tolist() == [
        0,
        1,
        0,
        2,
        0,
        3,
    ]
    frame, names = part.source_obs, part.source_obs.columns.tolist()
    more, name = part.with_map_column("score", np.ones(3))
    assert more.obs[name].tolist() == [1, 1, 1]
    assert "score" not in part.obs  # which stays as it was
    assert more.source_obs is frame
    assert more.differs_only_in_columns(part)
    assert not more.differs_only_in_columns(dataset)
    assert frame.columns.tolist() == names


def test_added_columns_replace_their_own_and_never_those_of_the_file():
    obs = pd.DataFrame({"m_confidence": [0.5, 0.6, 0.7]}, index=list("abc"))
    dataset = rows(np.eye(3), obs=obs)
    predicted = AddedColumns(kind="predicted")
    once, name = dataset.with_columns("m", {"": list("uvw")}, predicted)
    assert name == "m"
    columns = {"": list("uvw"), "_confidence": [1.0, 1.0, 1.0]}
    again, name = once.with_columns("m", columns, predicted)
    assert name == "m 2"
    assert list(again.obs) == ["m_confidence", "m", "m 2", "m 2_confidence"]
    assert list(again.obs["m_confidence"]) == [0.5, 0.6, 0.7]
    # Of a column that is made anew without its confidence, none stays behind.
    last, name = again.with_columns("m 2", {"": list("xyz")}, predicted)
    assert name == "m 2"
    assert list(last.obs) == ["m_confidence", "m", "m 2"]
    assert list(last.obs["m 2"]) == list("xyz")


def test_added_columns_stay_when_roles_are_chosen():
    numbers = np.arange(8.0).reshape(4, 2)
    dataset = rows(numbers, obs=pd.DataFrame({"a": [1, 2] * 2}))
    dataset, _ = dataset.with_map_column("score", np.arange(4.0))
    chosen = dataset.with_roles_and_gene_kind(ReadOptions(roles={"a": "texts"}))
    assert chosen.obs["score"].tolist() == [0, 1, 2, 3]
    assert (chosen.added_columns, chosen.roles["a"]) == (["score"], "texts")
