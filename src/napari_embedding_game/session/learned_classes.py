"""Classes of all points, learned from the points that a person has annotated.

The annotated groups are the classes, their points the examples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.teaching import Classification, classify_rows
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.dataset import (
    CONFIDENCE,
    AddedColumns,
    Dataset,
    Examples,
)
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.clusters.annotation import NONE, Annotation

TAUGHT = "taught"
"""Name of the column of classes."""
MAX_EXAMPLES = 1_000
"""Most examples of a class; of more, a random sample is used."""
N_SHOWN = 20
"""Number of points that are offered at once to be judged."""
FEW = 5
"""Number of examples of a class below which its accuracy is too uncertain."""


def choose_example_rows(dataset: Dataset, annotation: Annotation) -> Examples:
    """Return the examples of each group, as ascending source rows by the group's name.

    At most ``MAX_EXAMPLES`` of each group: of more, a random sample by a fixed seed.
    """
    rows, examples = np.flatnonzero(dataset.kept), {}
    for code, group in annotation.groups.items():
        of_group = rows[annotation.codes == code]
        if len(of_group) > MAX_EXAMPLES:
            rng = np.random.default_rng(0)
            of_group = np.sort(rng.choice(of_group, MAX_EXAMPLES, replace=False))
        examples[group.name] = tuple(of_group.tolist())
    return examples


def explain_why_unlearnable(dataset: Dataset, annotation: Annotation) -> str:
    """Return a sentence on why nothing can be learned yet; "" if learning can begin."""
    if not dataset.var_names:
        return dataset.missing_reason
    if dataset.is_distances:
        return (
            "There are no numbers here to learn from, only which rows are "
            "neighbours: choose another space under Data."
        )
    if not annotation.groups:
        return (
            "Select points on the map and press New class, a few of each kind. "
            "Clusters with a name are classes, too."
        )
    if len(annotation.groups) == 1:
        return "One class teaches nothing: make another class."
    return ""


def learn_from_examples(dataset: Dataset, examples: Examples) -> Stages[Classification]:
    """Learn the classes of all rows of a dataset from examples, in stages.

    Columns are standardised unless they share a unit: components, or images.

    ``examples``: source rows by class; rows that are not in the dataset are skipped.

    Raises InputError: if there are fewer than two classes.
    """
    points = [*_find_example_points(dataset, examples).values()]
    rows = np.concatenate([*points, np.zeros(0, np.intp)])
    codes = np.repeat(np.arange(len(points)), [len(one) for one in points])
    yield Stage("Learning")
    of_components = "recipe" in dataset.provenance or dataset.space.startswith("obsm[")
    has_unit = of_components or dataset.images is not None
    return classify_rows(dataset.X, rows, codes, is_scaled=has_unit)


def add_class_columns(
    dataset: Dataset, name: str, learned: Classification, examples: Examples
) -> tuple[Dataset, str]:
    """Return the dataset with columns of learned class and confidence, and their name.

    Columns of that name that were learned before are replaced; the name gets a number
    where the file has it. ``examples``: source rows by class, kept with the columns.
    """
    present = [*_find_example_points(dataset, examples)]
    classes = pd.Categorical.from_codes(learned.codes, present)
    how = AddedColumns(kind="taught", examples=dict(examples))
    columns = {"": classes, CONFIDENCE: learned.confidence}
    return dataset.with_columns(name, columns, how)


def find_least_confident_points(
    dataset: Dataset, column: str, annotation: Annotation
) -> NDArray[np.intp]:
    """Return the points of least confidence, ascending by it, at most ``N_SHOWN``.

    Points that are annotated, or without a confidence, are left out. ``column``: name
    of the learned classes.
    """
    sure = dataset.obs[column + CONFIDENCE].to_numpy()
    confidence = np.where(annotation.codes == NONE, sure, np.inf)
    order = np.argsort(confidence, kind="stable")[:N_SHOWN]
    return order[np.isfinite(confidence[order])]


def describe_accuracy(learned: Classification, names: Sequence[str]) -> str:
    """Return sentences on the cross-validated accuracy of learned classes.

    A hint follows on the smallest class if it has fewer than ``FEW`` examples, else on
    the class that is recognised least, if clearly less than on average.  Where a class
    has a single example, the text says that nothing was tested.

    ``names``: of the classes, in the order of their codes.
    """
    if learned.score is None:
        pairs = zip(names, learned.counts, strict=True)
        single = ", ".join([name for name, n in pairs if n == 1][:3])
        return (
            f"Learned from {learned.n_examples} examples, but not tested: {single} "
            "has a single one. Add another to have it tested."
        )
    margin, chance = 2 * learned.spread, 1 / len(learned.counts)
    low, high = max(0, learned.score - margin), min(1, learned.score + margin)
    sentence = (
        f"{learned.score:.0%} ({low:.0%} to {high:.0%}, 95% confidence) of unseen "
        f"examples are classified correctly (by chance {chance:.0%}; cross-validated "
        "balanced accuracy)."
    )
    fewest, weakest = int(learned.counts.argmin()), int(np.argmin(learned.recalls))
    n, share = learned.counts[fewest], learned.recalls[weakest]
    if n < FEW:
        few = count_text(int(n), "example")
        return f"{sentence} Class {names[fewest]} has only {few}: add more."
    if share < learned.score - learned.spread:
        return f"{sentence} {names[weakest]} is correct least often ({share:.0%})."
    return sentence


def _find_example_points(
    dataset: Dataset, examples: Examples
) -> dict[str, NDArray[np.intp]]:
    """Return the examples as rows of the dataset, by class, without empty classes.

    ``examples``: source rows by class; those that are not in the dataset are skipped.
    """
    indices = np.cumsum(dataset.kept) - 1
    points = {}
    for name, rows in examples.items():
        kept_rows = np.array([row for row in rows if dataset.kept[row]], np.intp)
        if len(kept_rows):
            points[name] = indices[kept_rows]
    return points
