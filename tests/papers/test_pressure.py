"""Quick runs of the reproductions of paper 4, on pictures and words made here."""

import numpy as np
import pytest

from napari_embedding_game.papers.reproductions import (
    pressure_fig3,
    pressure_fig4,
    pressure_fig5,
    pressure_fig7,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.pressure_parts import (
    EE_LAMBDA,
    among_others,
    compare,
    last,
    objective_of,
    random_start,
    recall,
)
from napari_embedding_game.papers.reproductions.table import find


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Groups of rows under the names of the real files."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    y = np.arange(300) % 10
    centres = rng.integers(60, 190, size=(10, 64))
    X = np.clip(centres[y] + rng.normal(scale=25, size=(300, 64)), 0, 255)
    for name in ("mnist_70k.npz", "coil20_32.npz"):
        np.savez(folder / name, X=X.astype(np.uint8), y=y)
    words = np.array([f"word{i}" for i in range(300)])
    np.savez(folder / "glove_words_5000.npz", X=X.astype(np.float32), word=words)
    return folder


def quick(module, data, tmp_path):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    facts = reproduce(find(name), Inputs(data, quick=True), tmp_path)
    assert (tmp_path / name / f"{name}.png").stat().st_size > 0
    assert all(check["passed"] is None for check in facts["checks"])
    return [table["rows"] for table in facts["tables"]], facts["notes"]


@pytest.mark.parametrize(
    ("module", "titles"),
    [
        (pressure_fig3, ["twisted roll, s-SNE", "COIL-20 midway, EE"]),
        (pressure_fig4, ["300 digits, t-SNE"]),
    ],
)
def test_where_pressure_is(module, titles, data, tmp_path):
    (rows,), _ = quick(module, data, tmp_path)
    assert [row[""] for row in rows] == titles
    assert all(row["pressured among the others"] > 0 for row in rows)


def test_the_optimisers(data, tmp_path):
    (summary, each), notes = quick(pressure_fig5, data, tmp_path)
    assert notes[-1].startswith("Homotopy: 5 values")
    assert len(summary) == 10
    assert [row["paper"] for row in summary[:3]] == [
        "3.84 ± 0.18",
        "3.6 ± 0.14",
        "3.61 ± 0.19",
    ]
    assert len(each) == 5
    assert all(0 < row["SD"] < EE_LAMBDA for row in each)
    assert all(row["iterations of SD"] <= 60 for row in each)


def test_the_words(data, tmp_path):
    (rows,), _ = quick(pressure_fig7, data, tmp_path)
    assert [row["optimiser"] for row in rows] == ["SD", "PP from SD"]
    assert all(0 < row["least"] < row["most"] < EE_LAMBDA for row in rows)
    assert all(row["iterations, mean"] <= 60 for row in rows)


def test_the_energies_are_in_the_papers_unit(data):
    """All points at one place: EE is lambda, s-SNE the logarithm of all pairs."""
    X = Inputs(data).load("coil20").X
    origin = np.zeros((len(X), 2))
    for method, wanted in (("ee", EE_LAMBDA), ("ssne", np.log(300 * 299))):
        objective = objective_of(X, method, 10, np.float64)
        assert objective.forces.edges.weights.sum() == pytest.approx(2)
        found = compare(objective, origin, 0)
        assert last(found, "SD") == pytest.approx(wanted)


def test_recall_of_what_pressure_knows():
    wrong = np.arange(100) < 20
    heights = np.where(wrong, 1.0, 0.0)
    row = recall(heights, wrong)
    assert row["recall by the highest pressure"] == 1
    assert row["chance"] == 0.2
    assert row["probability by chance"] < 1e-10
    row = recall(1 - heights, wrong)
    assert row["recall by the highest pressure"] == 0
    assert row["probability by chance"] == 1


def test_a_point_among_others():
    y = np.concatenate([random_start(40, 0), random_start(40, 1) + 9])
    labels = np.repeat([0, 1], 40)
    labels[3] = 1
    assert np.flatnonzero(among_others(y, labels)).tolist() == [3]


def test_the_half_of_a_roll_is_turned_over():
    sheet = np.random.default_rng(0).uniform(size=(200, 2)) * [10, 1]
    start = pressure_fig3.twisted(sheet)
    first = sheet[:, 0] < sheet[:, 0].mean()
    for half, sign in ((first, 1), (~first, -1)):
        assert np.corrcoef(start[half, 1], sign * sheet[half, 1])[0, 1] > 0.999
    assert pressure_fig3.strangeness(sheet, sheet).max() == pytest.approx(1)
    assert pressure_fig3.strangeness(sheet[::-1], sheet).mean() > 2
