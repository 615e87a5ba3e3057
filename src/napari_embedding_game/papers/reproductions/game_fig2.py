"""Digits, cells and texts with the settings of paper 1 (Figures 2 and 3).

Figure 2 shows that landmarks tile the data, Figure 3 that what stands near one
landmark belongs together.  Both play the same games.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.papers.reproductions.metrics import knn_accuracy

from .frame import Check, Inputs, Parts, Result, Table
from .runs import Map, draw_map, draw_rows, looks, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from napari_embedding_game.data.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Setting:
    """A data set and how the paper plays it."""

    data: str
    title: str
    column: str
    """Of the metadata: what points of one landmark should share."""
    n_landmarks: int
    repulsion: float
    """lambda of the paper."""
    n_paper: int
    """Rows the paper has."""
    n_points: int | None = None
    """Rows played with; all if None."""
    n_iter: int = 6_000

    @property
    def paper_strength(self) -> float:
        """Of the paper: lambda x N."""
        return self.repulsion * self.n_paper


SETTINGS = (
    Setting("mnist", "MNIST", "digit", 50, 0.001, 70_000),
    Setting("covid", "cells, COVID-19 lung lavage", "cell_type", 150, 0.01, 40_000),
    Setting("cells", "cells, PBMC 3k", "cell_type", 150, 0.01, 40_000),
    Setting("texts", "texts, 20 newsgroups", "label", 150, 0.01, 25_000),
)
_QUICK = {"n_points": 400, "n_landmarks": 20, "n_iter": 300}
MOST_EMPTY = 0.05
FAR = 2.0
MOST_FAR = 0.05
ENOUGH = 0.95
"""Majority share that paper 1's Figure 3 is to be read as."""


@lru_cache(maxsize=1)
def load(inputs: Inputs, setting: Setting) -> Dataset:
    """Return the rows that are played with; raw counts go through the recipe."""
    dataset = inputs.load(setting.data)
    if setting.data == "covid":
        dataset = finish(apply_recipe(dataset))
    n_rows = dataset.X.shape[0]
    chosen = np.zeros(n_rows, bool)
    chosen[draw_rows(n_rows, setting.n_points, inputs.random_state)] = True
    return dataset.subset(chosen)


def labels_of(dataset: Dataset, setting: Setting) -> NDArray[Any]:
    """Return the labels; of a file without that column, its first one."""
    obs = dataset.obs
    column = setting.column if setting.column in obs else obs.columns[0]
    return np.asarray(obs[column].astype(str))


class Tiling(NamedTuple):
    """How well landmarks cover points."""

    empty: float
    """Share of the landmarks that are nearest to no point."""
    evenness: float
    """Of the numbers of points: entropy, 1 where all landmarks have as many."""
    far: float
    """Share of the points farther from their landmark than twice the spacing."""
    spacing: float
    """Median distance of a landmark to the nearest other one."""


def tiling(layout: Map, landmarks: Map) -> Tiling:
    """Measure how landmarks tile the points."""
    from scipy.spatial import cKDTree

    tree = cKDTree(landmarks)
    distances, nearest = tree.query(layout)
    sizes = np.bincount(nearest, minlength=len(landmarks))
    shares = sizes[sizes > 0] / len(layout)
    entropy = -(shares * np.log(shares)).sum()
    spacing = float(np.median(tree.query(landmarks, k=2)[0][:, 1]))
    return Tiling(
        empty=float((sizes == 0).mean()),
        evenness=float(entropy / np.log(len(landmarks))),
        far=float((distances > FAR * spacing).mean()),
        spacing=spacing,
    )


def majority_shares(labels: NDArray[Any], nearest: NDArray[np.integer]) -> list[float]:
    """Return, for each landmark with points, the share with its commonest label."""
    numbers = np.unique(labels, return_inverse=True)[1]
    table = np.zeros((nearest.max() + 1, numbers.max() + 1), np.int64)
    np.add.at(table, (nearest, numbers), 1)
    sizes = table.sum(axis=1)
    shares: list[float] = (table.max(axis=1)[sizes > 0] / sizes[sizes > 0]).tolist()
    return shares


def fit(inputs: Inputs, setting: Setting, repulsion: float | None) -> dict[str, Any]:
    """Play by the paper's schedule, with its lambda or with a lambda N."""
    dataset = load(inputs, setting)
    labels = labels_of(dataset, setting)
    n_points = len(labels)
    seed = inputs.random_state
    start = Settings(affinity="uniform", n_neighbors=15, random_state=seed)
    placed = place(dataset.X, labels, start)
    used = setting.repulsion * n_points if repulsion is None else repulsion
    settings = Settings(
        repulsion=used,
        n_landmarks=setting.n_landmarks,
        schedule="paper",
        max_iter=setting.n_iter,
    )
    (end,) = looks(placed, settings, [setting.n_iter], seed)
    shares = majority_shares(labels, end.labels)
    kept = draw_rows(n_points, 10_000, seed)
    return {
        "n_points": n_points,
        "repulsion": used,
        **tiling(end.embedding, end.landmarks)._asdict(),
        "majority": float(np.median(shares)),
        "majority_quarter": float(np.percentile(shares, 25)),
        "chance": float(np.unique(labels, return_counts=True)[1].max() / n_points),
        "accuracy": knn_accuracy(end.embedding[kept], labels[kept]),
        "layout": end.embedding,
        "landmarks": end.landmarks,
        "nearest": end.labels,
        "names": np.unique(labels).tolist(),
        "labels": np.unique(labels, return_inverse=True)[1],
    }


def settings_for(inputs: Inputs, names: Sequence[str]) -> list[Setting]:
    """Return the settings of the data sets, small ones for ``quick``."""
    chosen = [each for each in SETTINGS if each.data in names]
    if not inputs.quick:
        return chosen
    return [replace(each, **_QUICK) for each in chosen]  # type: ignore[arg-type]


def run(inputs: Inputs, parts: Parts) -> Result:
    names = [each.data for each in (SETTINGS[:1] if inputs.quick else SETTINGS)]
    settings = settings_for(inputs, names)
    parts.expect(2 * len(settings) - 1)
    found = []
    for setting in settings:
        for repulsion in _strengths(setting):
            name = f"{setting.data} {'lambda' if repulsion is None else 'lambda N'}"
            each = parts(name, partial(fit, inputs, setting, repulsion))
            found.append((setting, repulsion, each))
    return Result(
        tables=[Table(_title(settings[0].n_iter), [_row(*each) for each in found])],
        checks=_checks(found),
        draw=partial(_draw, found),
        notes=_NOTES,
        inches=(4.2 * len(settings), 9.0),
    )


def _strengths(setting: Setting) -> tuple[float | None, ...]:
    """Return the paper's lambda N and, where the data are others, its lambda (None)."""
    if setting.data == "mnist":
        return (setting.paper_strength,)
    return (setting.paper_strength, None)


def _title(n_iter: int) -> str:
    return f"After {n_iter:,} iterations of the paper's schedule, K = 15"


_NOTES = [
    "The paper shows pictures and no numbers. Empty: share of the landmarks that are "
    "nearest to no point. Far: share of the points farther from their landmark than "
    "twice the spacing, the median distance of a landmark to the nearest other one. "
    "Evenness: entropy of the points over the landmarks, 1 is even. Majority: median "
    "over the landmarks of the share of their points with their commonest label.",
    "The paper's 40,000 cells and 25,000 posts are not among the data; other cells and "
    "texts stand in. lambda is not scale-free, so these are played twice: with the "
    "paper's lambda = 0.01, and with its lambda N.",
]


def _row(
    setting: Setting, repulsion: float | None, each: dict[str, Any]
) -> dict[str, Any]:
    return {
        "data": setting.title,
        "N": each["n_points"],
        "L": setting.n_landmarks,
        "lambda": round(each["repulsion"] / each["n_points"], 4),
        "lambda N": round(each["repulsion"]),
        "empty": round(each["empty"], 3),
        "far": round(each["far"], 4),
        "evenness": round(each["evenness"], 3),
        "majority": round(each["majority"], 3),
        "of all": round(each["chance"], 3),
        "kNN accuracy": round(each["accuracy"], 3),
    }


def _checks(found: list[tuple[Setting, float | None, dict[str, Any]]]) -> list[Check]:
    checks = []
    for setting, repulsion, each in found:
        how = "the paper's lambda" if repulsion is None else "the paper's lambda N"
        checks.append(
            Check(
                f"{setting.title}, {how}: landmarks tile the data (at most "
                f"{MOST_EMPTY:.0%} of them empty, at most {MOST_FAR:.0%} of the points "
                "far from theirs)",
                f"{each['empty']:.1%} empty, {each['far']:.1%} far",
                each["empty"] <= MOST_EMPTY and each["far"] <= MOST_FAR,
            )
        )
    digits = found[0][2]
    checks.append(
        Check(
            f"MNIST: median share of a landmark's majority digit at least {ENOUGH}",
            f"{digits['majority']:.3f}, a quarter of the landmarks below "
            f"{digits['majority_quarter']:.3f}",
            digits["majority"] >= ENOUGH,
        )
    )
    return checks


def _draw(
    found: list[tuple[Setting, float | None, dict[str, Any]]], figure: Figure
) -> None:
    columns = list(dict.fromkeys(setting.data for setting, _, _ in found))
    grid = figure.subplots(2, len(columns), squeeze=False)
    for axes in grid.ravel():
        axes.set_axis_off()
    for setting, repulsion, each in found:
        axes = grid[1 if repulsion is None else 0, columns.index(setting.data)]
        axes.set_axis_on()
        title = f"{setting.title}, lambda N = {each['repulsion']:.0f}"
        draw_map(axes, each["layout"], each["labels"], each["landmarks"], title)
