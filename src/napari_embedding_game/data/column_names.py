"""What a column of metadata holds, by its name: samples, or kinds of cells."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["samples", "groups", "numbers", "positions", "ids", "texts"]
"""What a column of metadata is taken for."""
TEXT = re.compile(r"^(text|texts|sentence|document|abstract|word|words)$", re.I)
"""Names of columns with a text or word for each row."""
# fmt: off
SAMPLE_WORDS = frozenset({
    "batch", "sample", "donor", "patient", "subject", "individual",
    "animal", "mouse", "replicate", "library", "lane", "run",
    "plate", "well", "chip", "slide", "stim", "stimulation",
    "treatment", "condition", "dataset", "study", "project", "site",
    "lab", "technology", "tech", "protocol", "platform", "assay",
    "chemistry", "day", "date", "time", "timepoint", "experiment",
    "field", "image", "orig", "ident", "cohort", "channel", "pool",
    "source", "rep",
})
KIND_WORDS = frozenset({
    "type", "celltype", "class", "subclass", "label", "annotation",
    "cluster", "leiden", "louvain", "kind", "lineage", "phase",
    "state", "subtype", "cell", "ontology", "prediction", "identity",
})
MEASURE_WORDS = frozenset({"n", "total", "pct", "percent", "score"})
# fmt: on
"""Words in the names of columns of samples, cell types, and figures of each cell."""


def is_sample_name(column: str) -> bool:
    """Return whether a column has a name of samples, donors, batches or days."""
    return bool(_split_words(column) & SAMPLE_WORDS)


def is_cell_type_name(column: str) -> bool:
    """Return whether a column has a name of cell types, not of samples."""
    return bool(_split_words(column) & KIND_WORDS) and not is_sample_name(column)


def is_measure_name(column: str) -> bool:
    """Return whether a column has a name of figures of cells, as n_genes_by_counts."""
    return bool(_split_words(column) & MEASURE_WORDS) and not is_sample_name(column)


def _split_words(column: str) -> set[str]:
    """Return the words of a column's name, each with and without a plural's s."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower()
    words = re.findall(r"[a-z]+", spaced)
    return {*words, *(word.removesuffix("s") for word in words)}
