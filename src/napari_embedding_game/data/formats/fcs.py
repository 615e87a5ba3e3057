"""Read flow and mass cytometry (.fcs): a row for each event, a column for each channel.

A folder is read as one table with a sample for each of its files. Channels are named by
marker and detector. Further columns of an instrument, such as time, scatter, and height
and width of a pulse that has an area, are metadata.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import (
    check_columns_exist,
    count_text,
    list_text,
    make_names_unique,
)
from napari_embedding_game.data.dataset import CYTOMETRY
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.matrices import make_dataset_from_matrix
from napari_embedding_game.data.identity import hash_table_rows
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import check_shape, to_sufficient_precision

FLOW, MASS, STORED = "arcsinh(x / 150)", "arcsinh(x / 5)", "values as stored"
COFACTORS = {FLOW: 150.0, MASS: 5.0, STORED: None}
"""Cofactor of each scale of the channels that can be embedded; the usual ones."""
ENDING = ".fcs"
_BYTES_PER_BYTE = 8
"""Largest memory that a file takes, for each of its bytes."""
_PAIR = rb"(?s)[^D]+D((?:[^D]|DD)*)D|.+"
"""Pattern of a keyword and its value, D being the delimiter; or of text without
pairs."""
_ORDERS = "1,2,3,4", "1,2", "4,3,2,1", "2,1"
"""Values of the keyword for the order of bytes."""
_MASS = re.compile(r"\(?[A-Z][a-z]?\d{2,3}\)?D[id]")
"""Names of channels for metals, such as Er168Di."""
_NO_STAIN = re.compile(
    r"(time|event|cell_length|center|offset|width|residual|fsc|ssc|fs[- ]|ss[- ]).*",
    re.IGNORECASE,
)
"""Names of columns that measure no stain of a cell."""

_PULSE = re.compile(
    r"^(?P<light>.*?)"
    r"(?:(?P<area>[-_ ](?:a|area|int))|[-_ ](?:h|w|height|width|peak|tof))?$",
    re.IGNORECASE,
)
"""A detector: its light, and whether it is the area, or height or width, of a pulse.
"INT", "PEAK" and "TOF" are Beckman Coulter's words."""

_Events = tuple[pd.DataFrame, pd.DataFrame, list[str]]
"""Events by the names of channels, facts about the channels, and notes."""


def _describe_channels(detectors: list[str], markers: list[str]) -> pd.DataFrame:
    """Return a table of p channels, named "CD3 (FITC-A)", or as the detector.

    A marker that is empty or repeats the detector counts as none. The columns are
    ``detector``, ``marker``, ``is_marked`` (whether there is a marker) and ``measures``
    (whether the channel measures a stain of the cell).
    """
    table = pd.DataFrame({"detector": detectors, "marker": markers}).astype(str)
    is_marked = (table["marker"] != "") & (table["marker"] != table["detector"])
    long_names = table["marker"] + " (" + table["detector"] + ")"
    names = pd.Index(long_names.where(is_marked, table["detector"]))
    measures = ~table["detector"].str.fullmatch(_NO_STAIN)
    table = table.assign(measures=measures, is_marked=is_marked)
    return table.set_axis(pd.Index(make_names_unique(names)))


def _choose_default_channels(
    channels: pd.DataFrame,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the channels that are embedded by default, and notes on this choice.

    These are, of the channels that measure a stain, the first kind that exists:

    1. channels with a marker,
    2. areas of pulses,
    3. channels that are no area,
    4. all channels of the file.

    In 1 to 3 only the area of a pulse is embedded: height and width are nearly the same
    number, so that its marker would count three times.
    """
    measures = channels["measures"]
    pulses = channels["detector"].str.extract(_PULSE)
    is_area = pulses["area"].notna()
    lights = pulses["light"].str.lower()
    repeats = measures & ~is_area & lights.isin(lights[is_area])
    once = measures & ~repeats
    choices = (some & once for some in (channels["is_marked"], is_area, ~is_area))
    usual = next((some for some in choices if some.any()), once | True)
    n_repeats = count_text(int(repeats.sum()), "channel")
    note = f"Not on the map, as the area of the same pulse is: {n_repeats} of height or"
    notes = [f"{note} width. They are columns to colour by."] if repeats.any() else []
    return tuple(channels.index[usual]), notes


def find_fcs_files(folder: Path) -> list[Path]:
    """Return the .fcs files of a folder, sorted by name; hidden files are skipped."""
    files = (file for file in folder.iterdir() if not file.name.startswith("."))
    return sorted(file for file in files if file.suffix.lower() == ENDING)


def read_fcs_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read an .fcs file or a folder, in stages; the space is one of :data:`COFACTORS`.

    - By default channels with a marker are embedded, without time and scatter, and of
      area, height and width of a pulse the area alone.
    - Stains are embedded as arcsinh, by default with the cofactor of mass cytometry if
      any channel is a metal, else of flow cytometry. If time or scatter are chosen
      beside an arcsinh, all columns are standardised.
    - Events are compensated by the matrix of the file, and named by their number; in a
      folder by file and number.
    - Of several files the channels that all of them have are read.

    Raises DataError if a file is damaged or too large, or a channel does not exist.
    """
    files = find_fcs_files(path) if path.is_dir() else [path]
    n_bytes = sum(file.stat().st_size for file in files)
    read = []
    for number, file in enumerate(files):
        yield Stage(f"Reading {file.name}", number / len(files))
        with wrap_read_errors(file, "an .fcs file of cytometry"):
            check_fits(_BYTES_PER_BYTE * n_bytes, path.name, "its events")
            read.append(_read_events(file))
    events, channels, notes = _concatenate_files(read, files, path.name)
    check_shape(events.shape, path.name)
    yield Stage("Checking the numbers")
    is_mass, names = channels["detector"].str.fullmatch(_MASS), channels.index
    usual = MASS if is_mass.any() else FLOW
    space = options.choose_space([usual, *COFACTORS], path.name)
    measures = channels["measures"].to_numpy()
    row_hashes = hash_table_rows(
        {str(one): values.to_numpy() for one, values in events.items()}
    )
    if cofactor := COFACTORS[space]:
        stained = names[measures]
        events[stained] = np.arcsinh(events[stained] / cofactor)
    usual_channels, pulse_notes = _choose_default_channels(channels)
    chosen = options.columns or usual_channels
    notes += [] if options.columns else pulse_notes
    check_columns_exist(names, chosen, path.name)
    # Scatter values of 100,000 and more would dominate distances beside an arcsinh.
    is_mixed = bool(cofactor) and not measures[names.isin(chosen)].all()
    used = names[names.isin(chosen)] if is_mixed else names
    samples, index = (events.index.get_level_values(i).astype(str) for i in (0, 1))
    obs = events.drop(columns=[*chosen]).set_axis(index)
    if path.is_dir():
        obs = obs.set_axis(samples + " " + index)
        obs = obs.assign(sample=pd.Categorical(samples))
    dataset = make_dataset_from_matrix(
        to_sufficient_precision(events[used].to_numpy()),
        obs,
        list(used),
        space,
        path.name,
        replace(options, columns=chosen),
        standardise=is_mixed,
        name=path.name,
        source=path,
        notes=notes,
        provenance={CYTOMETRY: space},
        row_hashes=row_hashes,
    )
    spaces = sorted(COFACTORS, key=lambda one: one != space)
    return ReadResult(dataset, spaces, list(names))


def _concatenate_files(
    read: Sequence[_Events], files: Sequence[Path], where: str
) -> _Events:
    """Return the events of all files in their common channels, the channels, and notes.

    Events are indexed by file and number. A note of some files only names these files.
    Raises DataError if several files have no stained channel in common.
    """
    events = pd.concat(
        [one for one, *_ in read], join="inner", keys=[file.stem for file in files]
    )
    channels = read[0][1].loc[events.columns]
    if not channels["measures"].any() and len(read) > 1:
        raise DataError(
            f"The .fcs files in {where} have no stained channel in common: put those "
            "of one panel into a folder of their own."
        )
    names = dict.fromkeys(name for one, *_ in read for name in one)
    others = [name for name in names if name not in events]
    notes = [f"Left out because not all files have them: {list_text(others)}."]
    of_files: dict[str, list[str]] = {}
    for file, (*_, file_notes) in zip(files, read, strict=True):
        for note in file_notes:
            of_files.setdefault(note, []).append(file.name)
    for note, noted in of_files.items():
        notes.append(
            note if len(noted) == len(files) else f"{list_text(noted)}: {note}"
        )
    return events, channels, notes if others else notes[1:]


def _read_events(path: Path) -> _Events:
    """Read events (n, p), linear and compensated, their channels, and notes.

    Of several data sets in a file the first is read. Raises DataError for an unknown
    order of bytes, and ValueError if the size is not as declared.
    """
    import flowio

    # flowio warns of deviations from the standard.
    quiet = warnings.catch_warnings(action="ignore")
    with quiet, np.errstate(all="ignore"):
        lenient = {"ignore_offset_error": True, "ignore_offset_discrepancy": True}
        data = flowio.FlowData(_drop_empty_keywords(path), nextdata_offset=0, **lenient)
        events = data.as_array()
    if (order := data.text["byteord"]) not in _ORDERS:  # flowio accepts any order
        raise DataError(
            f'{path.name} has its bytes in the order "{order}", which is not read: '
            "export it again as FCS 3.1."
        )
    if events.shape != (data.event_count, len(data.pnn_labels)):
        raise ValueError("another number of events or channels than is declared")
    markers = [one.strip() for one in data.pns_labels]
    notes = []
    if int(data.text.get("nextdata", "0")):
        notes.append("The file has several data sets, of which the first one was read.")
    if spillover := data.text.get("spillover") or data.text.get("spill"):
        notes.append(_compensate_in_place(events, data.pnn_labels, spillover))
    channels = _describe_channels(data.pnn_labels, markers)
    numbers = pd.RangeIndex(1, len(events) + 1)
    return pd.DataFrame(events, numbers, channels.index), channels, notes


def _drop_empty_keywords(path: Path) -> io.BytesIO:
    """Return a file's content without keywords of empty value, which flowio misreads.

    flowio takes the two delimiters of an empty value for an escaped delimiter. The
    content keeps its length. Raises ValueError if the file does not begin with "FCS".
    """
    file = path.read_bytes()
    if not file.startswith(b"FCS"):
        raise ValueError("no .fcs file")
    start, stop = int(file[10:18]), int(file[18:26]) + 1
    pair = _PAIR.replace(b"D", re.escape(file[start : start + 1]))
    plain = re.sub(
        pair, lambda match: b"" if match[1] == b"" else match[0], file[start + 1 : stop]
    )
    rest = plain.ljust(stop - start - 1) + file[stop:]
    return io.BytesIO(file[: start + 1] + rest)


def _compensate_in_place(
    events: NDArray[np.float64], detectors: Sequence[str], spillover: str
) -> str:
    """Compensate events (n, p) in place by the spillover matrix; return a note.

    ``spillover``: the keyword's text, as "n,name 1,...,name n,value 1,...". If it does
    not fit `detectors`, events stay unchanged and the note says so.
    """
    try:
        n, *values = spillover.split(",")
        names = [name.strip() for name in values[: int(n)]]
        indices = [detectors.index(name) for name in names]
        if not names:
            raise ValueError("no channels")
        matrix = np.array(values[int(n) :], float).reshape(len(names), len(names))
        events[:, indices] = events[:, indices] @ np.linalg.inv(matrix)
    except ValueError:
        return (
            "Not compensated: the spillover matrix of the file does not fit its "
            "channels."
        )
    return f"Compensated by the spillover matrix of the file ({n} channels)."
