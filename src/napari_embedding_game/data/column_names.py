"""Tell from a column's name whether it holds samples, cell types or measures."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Role: TypeAlias = Literal[
    "samples", "groups", "numbers", "positions", "times", "tracks", "ids", "texts"
]
"""Use of a metadata column: to group rows, as numbers, to follow an object through
time, or neither."""
TEXT = re.compile(r"^(text|texts|sentence|document|abstract|word|words)$", re.I)
"""Names of columns that hold a text or word for each row."""
_TRACK = re.compile(
    r"(spot|cell|object|nucleus)?track(id|number|label|index)?|trackobjectslabel\d*"
    r"|(particle|trajectory)(id)?"
)
_TIME = re.compile(
    r"(metadata|position|spot)?(t|frame|timepoint|timeindex|timestep"
    r"|frame(no|number|index|id)|time(s|sec|seconds|min|minutes|h|hours|ms)?)"
)
"""Names without case and separators; as TrackMate, Imaris, CellProfiler, ilastik,
trackpy and napari write them."""
# fmt: off
SAMPLE_WORDS = frozenset({
    "batch", "sample", "donor", "patient", "subject", "individual",
    "animal", "mouse", "replicate", "library", "lane", "run",
    "plate", "well", "chip", "slide", "stim", "stimulation",
    "treatment", "condition", "dataset", "study", "project", "site",
    "lab", "technology", "tech", "protocol", "platform", "assay",
    "chemistry", "day", "date", "time", "timepoint", "experiment",
    "field", "image", "orig", "ident", "cohort", "channel", "pool",
    "source", "rep", "movie", "video",
})
KIND_WORDS = frozenset({
    "type", "celltype", "class", "subclass", "label", "annotation",
    "cluster", "leiden", "louvain", "kind", "lineage", "phase",
    "state", "subtype", "cell", "ontology", "prediction", "identity",
})
MEASURE_WORDS = frozenset({"n", "total", "pct", "percent", "score"})
# fmt: on
"""Words in the names of columns of samples, cell types, and measures of each cell."""


def is_sample_name(column: str) -> bool:
    """Return whether a column name contains a word such as donor, batch or day.

    A plural s is ignored.
    """
    return bool(_split_words(column) & SAMPLE_WORDS)


def is_cell_type_name(column: str) -> bool:
    """Return whether a column name has a word of cell types, and none of samples."""
    return bool(_split_words(column) & KIND_WORDS) and not is_sample_name(column)


def is_measure_name(column: str) -> bool:
    """Return whether a column name is one of measures, as n_genes_by_counts.

    False if the name has a word of samples, too.
    """
    return bool(_split_words(column) & MEASURE_WORDS) and not is_sample_name(column)


def is_track_name(column: str) -> bool:
    """Return whether a column name is one of tracks, as track_id or TrackID."""
    return bool(_TRACK.fullmatch(re.sub(r"[\W_]", "", column.lower())))


def is_time_name(column: str) -> bool:
    """Return whether a column name is one of times, as frame, POSITION_T or Time [s].

    False for days and dates, which name samples.
    """
    return bool(_TIME.fullmatch(re.sub(r"[\W_]", "", column.lower())))


def _split_words(column: str) -> set[str]:
    """Return the lower-case words of a column name, each also without a plural s."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower()
    words = re.findall(r"[a-z]+", spaced)
    return {*words, *(word.removesuffix("s") for word in words)}
