"""Cells that play the recorded run of a map again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.notebook.data_cells import Loaded
from napari_embedding_game.session.notebook.draft import (
    Code,
    Draft,
    call,
    code_of,
    times,
)
from napari_embedding_game.session.run.provenance import steps
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import check

TL = "from napari_embedding_game import tl"
MOST_STEPS = 40
"""Changes of settings above which they are read from a file."""
NOTHING_PLAYED = (
    "Nothing has been played on this map that could be written as code: press Run "
    "first."
)
OF_A_LOST_MAP = (
    "This run went on from another map, which is not kept any more: press Run, then "
    "save the notebook."
)


def run_cells(
    draft: Draft, saved: SavedMap, loaded: Loaded, n_clusters: int | None
) -> None:
    """Add the cells that make the map of `saved` from the data.

    Parameters
    ----------
    n_clusters : int or None
        Into how many clusters landmarks are merged; None: each stays one.

    Raises
    ------
    DataError
        Nothing was played, or on a map that is not kept.
    """
    record, snapshot = saved.record, saved.snapshot
    if record is None or snapshot is None:
        raise DataError(NOTHING_PLAYED)
    if record.is_branch and record.warm_start is None:
        raise DataError(OF_A_LOST_MAP)
    check(record)
    merged = {} if n_clusters is None else {"n_clusters": n_clusters}
    if saved.behind is not None:
        name = Path(saved.behind.reference).name
        told = f"The cells lie where they were placed on the map of `{name}`."
        draft.text("## Map: placed on a reference", told)
    else:
        title = get_method(record.settings.method).title
        draft.text(f"## Map: {title}", *_told(record, snapshot.finished, loaded))
    if record.is_branch or record.forced:
        name = draft.beside("run.zip", _writer_of_session(saved))
        what = "What was done by hand, or from an earlier map on, is"
        if saved.behind is not None:
            what = "These places are"
        draft.text(f"{what} in `{name}`, a session file, and repeated from there.")
        where = _with_quotes(loaded.where)
        draft.code(
            call("tl.replay", "adata", code_of(name), **where, **merged), imports=[TL]
        )
        return
    changes = steps(record)
    way: dict[str, Any] = {}
    if len(changes) > MOST_STEPS:
        name = draft.beside("steering.json", _writer_of_steps(record))
        steered = [
            f"with open({code_of(name)}) as file:",
            "    steering = json.load(file)",
            "",
        ]
        draft.code(*steered, imports=["import json"])
        way["steering"] = Code("steering")
    elif changes:
        draft.code("steering = [", *(f"    {code_of(step)}," for step in changes), "]")
        way["steering"] = Code("steering")
    if not snapshot.finished:
        way["stop_at"] = record.n_iter
    draft.code(
        call(
            "tl.embedding_game",
            "adata",
            **_with_quotes(loaded.where),
            **parameters(record, n_neighbors="neighbors_key" in loaded.where),
            **way,
            **merged,
            random_state=record.settings.random_state,
        ),
        imports=[TL],
    )


def parameters(record: RunRecord, *, n_neighbors: bool = False) -> dict[str, Any]:
    """Return the parameters of the estimator that are not its own, as code.

    Parameters
    ----------
    n_neighbors : bool
        Whether the number of neighbours is told in any case.
    """
    from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters

    told = asdict(record.settings)
    del told["random_state"]
    if told["metric"] == "precomputed":
        del told["metric"]
    if told["affinity"] == get_method(record.settings.method).affinity:
        told["affinity"] = "auto"
    told = as_parameters(told)
    own = EmbeddingGame().get_params()
    told = {name: value for name, value in told.items() if value != own[name]}
    if n_neighbors:
        told["n_neighbors"] = record.settings.n_neighbors
    return told


def _writer_of_steps(record: RunRecord) -> Any:
    def write(path: Path) -> None:
        import json

        path.write_text(json.dumps(steps(record), indent=1), encoding="utf-8")

    return write


def _writer_of_session(saved: SavedMap) -> Any:
    alone = replace(saved, parent=None, key="", look=saved.look, view={})

    def write(path: Path) -> None:
        archive.save(SavedSession(maps=(alone,), current=""), path)

    return write


def _with_quotes(where: Mapping[str, str]) -> dict[str, str]:
    return dict(where)


def _told(record: RunRecord, finished: bool, loaded: Loaded) -> list[str]:
    """Return what happened in the run, in words."""
    space = loaded.where.get("use_rep")
    start = (
        f"Neighbours are searched in `{space}`."
        if space
        else "The neighbours are those that the file has."
    )
    told = [start]
    if record.steered:
        told.append(
            f"The run was steered {times(len(record.steered))}, after the iterations "
            "that stand before the changed settings."
        )
    if not finished:
        told.append(f"It was stopped after {record.n_iter} iterations.")
    return [" ".join(told)]
