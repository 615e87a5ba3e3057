"""Flow and mass cytometry (.fcs): a row for each event, a column for each channel.

Channels are called by their marker and their detector.  What an instrument says beside
them, such as time and scatter, is metadata.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import as_metadata, unique_names
from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.formats.matrices import from_matrix
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import as_rows, check_shape

FLOW, MASS, STORED = "arcsinh(x / 150)", "arcsinh(x / 5)", "values as stored"
COFACTORS = {FLOW: 150.0, MASS: 5.0, STORED: None}
"""What can be embedded of the channels, by its name: the usual cofactors."""
_READ = 8
"""What a file takes in memory, at most, for each byte of it."""
_MASS = re.compile(r"\(?[A-Z][a-z]?\d{2,3}\)?D[id]")
"""Names of channels for metals, such as Er168Di."""
_BESIDE = re.compile(
    r"(time|event|center|offset|width|residual|fsc|ssc|fs[- ]|ss[- ]).*", re.IGNORECASE
)


class _Channels(NamedTuple):
    """The p channels of a file."""

    detectors: list[str]
    markers: list[str]
    """"" where a detector has none."""

    @property
    def names(self) -> list[str]:
        """What they are called: "CD3 (FITC-A)", or the detector alone."""
        parts = zip(self.are_marked, self.markers, self.detectors, strict=True)
        told = [f"{marker} ({d})" if is_marked else d for is_marked, marker, d in parts]
        return unique_names(pd.Index(told))

    @property
    def are_marked(self) -> NDArray[np.bool_]:
        """(p,) those with a marker besides their detector."""
        pairs = zip(self.markers, self.detectors, strict=True)
        return np.array([marker not in ("", detector) for marker, detector in pairs])

    @property
    def are_measures(self) -> NDArray[np.bool_]:
        """(p,) those that measure a cell by a stain."""
        return np.array([not _BESIDE.fullmatch(name) for name in self.detectors])

    @property
    def usual(self) -> NDArray[np.bool_]:
        """(p,) those that are embedded if none is chosen.

        Measures with a marker; if there are none, the areas of pulses, or all measures.
        """
        is_area = np.array([name.endswith("-A") for name in self.detectors])
        for some in (self.are_marked, is_area, ~is_area):
            if (some & self.are_measures).any():
                return some & self.are_measures
        return np.ones(len(self.detectors), bool)


def fcs_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read .fcs in stages; `options.space` is one of :data:`COFACTORS`.

    By default channels with a marker are embedded, without time and scatter, as the
    arcsinh with the cofactor of the instrument.  Events are compensated by the matrix
    that the file has, and called by their number.
    """
    if options.space not in (None, *COFACTORS):
        raise DataError(
            f'{path.name} has no space "{options.space}": choose one of '
            f"{', '.join(COFACTORS)}."
        )
    yield Stage(f"Reading {path.name}")
    with explain_damage(path, "an .fcs file of cytometry"):
        check_fits(_READ * path.stat().st_size, path.name, "its events")
        events, channels, notes = _read(path)
    check_shape(events.shape, path.name)
    yield Stage("Checking the numbers")
    is_mass, names = any(map(_MASS.fullmatch, channels.detectors)), channels.names
    space = options.space or (MASS if is_mass else FLOW)
    if cofactor := COFACTORS[space]:
        measures = channels.are_measures
        events[:, measures] = np.arcsinh(events[:, measures] / cofactor)
    chosen = options.columns or tuple(np.array(names)[channels.usual].tolist())
    columns = pd.DataFrame(events, [str(i + 1) for i in range(len(events))], names)
    others = {c: as_metadata(columns[c]) for c in names if c not in chosen}
    dataset = from_matrix(
        as_rows(events),
        pd.DataFrame(others, index=columns.index),
        names,
        space,
        path.name,
        replace(options, columns=chosen),
        name=path.name,
        source=path,
        notes=notes,
    )
    return ReadResult(dataset, sorted(COFACTORS, key=lambda one: one != space), names)


def _read(path: Path) -> tuple[NDArray[np.float64], _Channels, list[str]]:
    """Return events (n, p) on a linear scale and compensated, channels, and notes."""
    import flowio

    with (
        path.open("rb") as file,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        if file.read(3) != b"FCS":
            raise ValueError("no .fcs file")
        warnings.simplefilter("ignore")  # on what the standard does not allow
        try:
            data = flowio.FlowData(
                file,
                ignore_offset_error=True,
                ignore_offset_discrepancy=True,
                nextdata_offset=0,
            )
            events = data.as_array()
        except (ArithmeticError, re.error, flowio.exceptions.FCSParsingError) as error:
            raise ValueError(str(error)) from error
    if events.shape != (data.event_count, len(data.pnn_labels)):
        raise ValueError("another number of events or channels than is declared")
    channels = _Channels(data.pnn_labels, [one.strip() for one in data.pns_labels])
    notes = []
    if int(data.text.get("nextdata", "0")):
        notes.append("The file has several data sets, of which the first one was read.")
    if spillover := data.text.get("spillover") or data.text.get("spill"):
        notes.append(_compensated(events, channels.detectors, spillover))
    return events, channels, notes


def _compensated(
    events: NDArray[np.float64], detectors: Sequence[str], spillover: str
) -> str:
    """Compensate events (n, p) in place by the matrix of their file; return a note."""
    try:
        n, *rest = spillover.split(",")
        names = [name.strip() for name in rest[: int(n)]]
        places = [detectors.index(name) for name in names]
        if not names:
            raise ValueError("no channels")
        matrix = np.array(rest[int(n) :], float).reshape(len(names), len(names))
        events[:, places] = events[:, places] @ np.linalg.inv(matrix)
    except ValueError:
        return (
            "Not compensated: the spillover matrix of the file does not fit its "
            "channels."
        )
    return f"Compensated by the spillover matrix of the file ({n} channels)."
