"""What stands near one landmark, at random (paper 1, Figure 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .frame import Check, Inputs, Parts, Result, Table
from .game_fig2 import (
    ENOUGH,
    Setting,
    fit,
    load,
    majority_shares,
    settings_for,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from napari_embedding_game.data.dataset import Dataset

N_CLUSTERS = 4
"""As the paper: the first ones."""
N_MEMBERS = 16
"""Shown of each."""
_WIDTH = 62
"""Letters of a text that fit into the figure."""
_LINES = 8


def members(
    nearest: NDArray[np.integer], cluster: int, n_members: int, random_state: int
) -> NDArray[np.intp]:
    """Return rows of a cluster at random, all if there are fewer."""
    rows = np.flatnonzero(nearest == cluster)
    rng = np.random.default_rng(random_state)
    return rng.permutation(rows)[:n_members]


def describe(inputs: Inputs, setting: Setting) -> dict[str, Any]:
    """Return random members of the first clusters, and how alike clusters are."""
    found = fit(inputs, setting, setting.paper_strength)
    nearest, labels = found["nearest"], np.array(found["names"])[found["labels"]]
    first = np.unique(nearest)[:N_CLUSTERS]
    shown = [members(nearest, each, N_MEMBERS, inputs.random_state) for each in first]
    dataset = load(inputs, setting)
    return {
        "clusters": [
            {
                "cluster": int(cluster),
                "points": int((nearest == cluster).sum()),
                "rows": rows,
                "members": _shown(dataset, labels, rows),
            }
            for cluster, rows in zip(first, shown, strict=True)
        ],
        "labels": [labels[nearest == each].tolist() for each in first],
        "majority": majority_shares(labels, nearest),
        "chance": found["chance"],
        "n_points": found["n_points"],
    }


def _shown(dataset: Dataset, labels: NDArray[Any], rows: NDArray[np.intp]) -> list[str]:
    """Return a line for each row: its text, or its label."""
    if dataset.texts is None:
        return [str(label) for label in labels[rows]]
    lines = (" ".join(str(dataset.texts[row]).split()) for row in rows)
    return [line[:_WIDTH] for line in lines]


def run(inputs: Inputs, parts: Parts) -> Result:
    names = ["mnist"] if inputs.quick else ["mnist", "covid", "texts"]
    settings = settings_for(inputs, names)
    parts.expect(len(settings))
    found = [
        (setting, parts(setting.data, partial(describe, inputs, setting)))
        for setting in settings
    ]
    pictures = load(inputs, settings[0]).images
    assert pictures is not None
    return Result(
        tables=[
            Table("Over all landmarks", [_overall(*each) for each in found]),
            Table(f"The first {N_CLUSTERS} landmarks with points", _rows(found)),
        ],
        checks=_checks(found[0][1]),
        draw=partial(_draw, found, pictures),
        notes=_NOTES,
        inches=(15.0, 3.4 * len(found)),
    )


_NOTES = [
    "The paper shows pictures of four clusters of MNIST and of the posts, and no "
    "numbers. Majority: share of a landmark's points with their commonest label; of "
    "all: the share of the commonest label among all points.",
    "Settings and data are those of game-fig2, with the paper's lambda N.",
]


def _overall(setting: Setting, each: dict[str, Any]) -> dict[str, Any]:
    majority = np.array(each["majority"])
    return {
        "data": setting.title,
        "N": each["n_points"],
        "landmarks with points": len(majority),
        "median majority": round(float(np.median(majority)), 3),
        "a quarter below": round(float(np.percentile(majority, 25)), 3),
        "least": round(float(majority.min()), 3),
        "of all": round(each["chance"], 3),
    }


def _rows(found: list[tuple[Setting, dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for setting, each in found:
        for cluster, labels in zip(each["clusters"], each["labels"], strict=True):
            names, counts = np.unique(labels, return_counts=True)
            most = np.argsort(-counts)[:3]
            rows.append(
                {
                    "data": setting.title,
                    "landmark": cluster["cluster"],
                    "points": cluster["points"],
                    "majority": round(float(counts.max() / counts.sum()), 3),
                    "labels": ", ".join(f"{names[i]} {counts[i]}" for i in most),
                }
            )
    return rows


def _checks(digits: dict[str, Any]) -> list[Check]:
    median = float(np.median(digits["majority"]))
    return [
        Check(
            f"MNIST: median share of a landmark's majority digit at least {ENOUGH}",
            f"{median:.3f}",
            median >= ENOUGH,
        )
    ]


def _draw(
    found: list[tuple[Setting, dict[str, Any]]],
    pictures: NDArray[Any],
    figure: Figure,
) -> None:
    grid = figure.subplots(len(found), N_CLUSTERS, squeeze=False)
    for row, (setting, each) in zip(grid, found, strict=True):
        for axes in row:
            axes.set_axis_off()
        for axes, cluster in zip(row, each["clusters"], strict=False):
            axes.set_title(
                f"{setting.title}: landmark {cluster['cluster']}, "
                f"{cluster['points']:,} points",
                fontsize=8,
            )
            if setting.data == "mnist":
                axes.imshow(mosaic(pictures[cluster["rows"]]), cmap="gray_r")
            else:
                text = "\n".join(cluster["members"][:_LINES])
                axes.text(0, 1, text, va="top", fontsize=6.5, wrap=True)


def mosaic(pictures: NDArray[Any]) -> NDArray[Any]:
    """Put (n, h, w) pictures side by side in a square, what is left over empty."""
    n, height, width = pictures.shape
    side = int(np.ceil(np.sqrt(n)))
    whole = np.zeros((side * side, height, width), pictures.dtype)
    whole[:n] = pictures
    rows = whole.reshape(side, side, height, width).transpose(0, 2, 1, 3)
    return rows.reshape(side * height, side * width)
