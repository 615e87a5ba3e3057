import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.readers import read


@pytest.fixture
def letters(tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[2, 1] = np.nan
    np.savez(tmp_path / "letters.npz", X=X, y=np.arange(6) % 3)
    return tmp_path / "letters.npz"


def texts_beside(folder, n=6, name="letters_text.csv.gz"):
    topics = ["news", "sport"] * (n // 2)
    texts = [f"dear {letter}" for letter in "abcdef"[:n]]
    table = pd.DataFrame({"text": texts, "topic": topics, "y": range(n)})
    table.to_csv(folder / name, index=False)


@pytest.mark.parametrize("name", ["letters_text.csv.gz", "letters_obs.csv"])
def test_texts_come_from_the_table_beside(letters, name):
    assert read(letters, missing="drop").texts is None
    texts_beside(letters.parent, name=name)
    dataset = read(letters, missing="drop")
    assert list(dataset.texts) == ["dear a", "dear b", "dear d", "dear e", "dear f"]
    assert dataset.obs["topic"].tolist() == ["news", "sport", "sport", "news", "sport"]
    assert dataset.obs["y"].tolist() == [0, 1, 0, 1, 2]  # that of the .npz stays
    assert dataset.source_obs["text"].iloc[2] == "dear c"
    assert f"With text, topic from {name}." in dataset.notes


def test_table_of_another_length(letters):
    texts_beside(letters.parent, n=4)
    with pytest.raises(
        DataError, match=r"letters_text\.csv\.gz has 4 rows and letters"
    ):
        read(letters, missing="drop")


def test_an_empty_text_shifts_no_other(letters):
    beside = letters.with_name("letters_text.csv")
    beside.write_text("text\na\n\nb\nc\nd\ne\n")
    dataset = read(letters, missing="drop")
    assert list(dataset.texts) == ["a", "", "c", "d", "e"]


@pytest.mark.parametrize(
    ("column", "first"), [("id", 1), ("Unnamed: 0", 0), ("row", 1)]
)
def test_rows_go_by_a_column_of_row_numbers(letters, column, first):
    numbers = np.array([4, 0, 5, 2, 1, 3])
    texts = [f"dear {'abcdef'[number]}" for number in numbers]
    table = pd.DataFrame({column: numbers + first, "text": texts})
    table.to_csv(letters.with_name("letters_text.csv"), index=False)
    dataset = read(letters, missing="drop")
    assert list(dataset.texts) == ["dear a", "dear b", "dear d", "dear e", "dear f"]
    assert any("joined by its column" in note for note in dataset.notes)
