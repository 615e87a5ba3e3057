"""A day with a session, step by step, and its files, against approved texts."""

import io
import json
import re
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from approved import States, describe, numbers
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.dataset import AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.prediction import REFERENCE, UNLIKE
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import PlacedOn, ShownComparison
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.run.run import UNPACED
from worlds import Desk, frames_to, play, read

PASSING = ("made_at", "saved_at", "versions", "fingerprint", "key", "energy")
"""Parts of a session file that differ from run to run, or between machines."""


@pytest.fixture
def desk(dataset, engine):
    parts = pd.Categorical.from_codes(np.arange(40) // 5 % 4, [*"wxyz"])
    obs = dataset.obs.assign(part=parts, donor=[f"d{i % 4}" for i in range(40)])
    data = replace(dataset, obs=obs, source_obs=obs)
    desk = Desk(engine=engine)
    desk.session.pace = UNPACED
    desk.session.load(data)
    return desk


class Diary:
    """Does one thing after another, and writes down what is so afterwards."""

    def __init__(self, desk):
        self.desk, self.session = desk, desk.session
        self.states, self.heard = States(), []
        owners = {"session": desk.session, "clusters": desk.book}
        owners |= {"selection": desk.session.selection, "view": desk.session.view}
        owners |= {"hand": desk.session.hand, "timeline": desk.session.timeline}
        for owner, emitter in owners.items():
            for name in sorted(getattr(type(emitter), "__psygnal_group__", ()) or ()):
                self._listen(owner, emitter, name)
            for name in sorted(vars(type(emitter))):
                if type(getattr(type(emitter), name)).__name__ == "Signal":
                    self._listen(owner, emitter, name)

    def _listen(self, owner, emitter, name):
        getattr(emitter, name).connect(
            lambda *_: self.heard.append(f"{owner}.{name}"), check_nargs=False
        )

    def do(self, title, act):
        """Do something, and write down what it returned or refused."""
        self.heard.clear()
        try:
            found = act()
            told = f"-> {describe(found)}" if found is not None else ""
        except (DataError, InputError, ValueError, KeyError) as error:
            told = f"{type(error).__name__}: {error}"
        heard = ", ".join(dict.fromkeys(self.heard))
        self.states.add(f"{title} {told}", [*self.lines()])
        self.states.lines += [f"heard: {heard}"] * bool(heard)

    def lines(self):
        """Yield what the session shows."""
        session, book = self.session, self.session.clusters
        yield f"state {session.state}, stale {session.stale}: {session.message!r}"
        yield f"moving {session.is_moving}, can continue {session.can_continue}"
        shot = session.snapshot
        if shot is not None:
            yield f"iteration {shot.iteration} of {shot.n_iter}"
            yield f"layout {numbers(shot.embedding)}"
        moment = session.moment
        if moment is not None:
            yield f"moment {describe(moment.settings)}"
        if session.dataset is not None:
            data = session.dataset
            yield f"data {data.name} {data.X.shape} {[*data.obs.columns]}"
        for one in book.clusters:
            yield f"cluster {describe(one)}"
        yield f"labels {np.bincount(book.labels).tolist() if len(book.labels) else []}"
        yield f"undo {book.undo_label!r}, redo {book.redo_label!r}"
        yield f"wanted {book.n_clusters}"
        chosen = session.selection
        yield f"selected {chosen.clusters} {chosen.rows.tolist()[:12]}"
        yield f"  points {chosen.is_of_points}, {chosen.selected_share_by_cluster()}"
        for mark in session.timeline.marks:
            origin = re.sub(r", \d\d:\d\d", "", mark.origin)
            told = f"{mark.title!r} {mark.kind} {mark.parent} {origin}"
            told += f", iteration {mark.snapshot.iteration}"
            yield f"mark {mark.number} {told}"
        state = session.timeline.state
        yield f"  head {state.head}, on show {state.shown}"
        view = session.view
        yield f"split {view.split_columns}, side by side {view.is_side_by_side}"
        if view.panels is not None:
            yield f"panels {view.panels.captions} {numbers(view.panels.positions)}"
        if view.positions is not None:
            yield f"painted {numbers(view.positions)}"
        yield f"hand {describe(session.hand.forces)}"
        yield f"  {session.hand.describe_forces_or_refusal()!r}"
        yield f"look {describe(session.look)}"
        yield f"chosen {describe(session.settings.value)}"
        for one in self.desk.maps.maps:
            yield f"map {one.key!r} {one.title!r} {one.parent!r} {one.kind}"
        yield f"path {[one.title for one in self.desk.maps.path]}"


def test_a_day_goes_as_approved(desk, approve):
    diary, session, book = Diary(desk), desk.session, desk.book
    do, selection, hand = diary.do, session.selection, session.hand
    do("the data are there", lambda: None)
    do("nothing to go on from", lambda: session.continue_run())
    do("nothing to hold", lambda: hand.hold_points([1]))
    frames = []
    do("a step", lambda: frames.append(frames_to(session, until=10)))
    do("stronger", lambda: setattr(session.settings, "repulsion", 900.0))
    do("other neighbours", lambda: setattr(session.settings, "n_neighbors", 30))
    do("as before", lambda: setattr(session.settings, "n_neighbors", 15))
    late = next(frames[0])
    do("pause", session.pause)
    do("a frame that comes late", lambda: session.receive_frame(session.run, late))
    do("resume", session.resume)
    do("a cluster is taken", lambda: hand.begin_cluster_drag(1))
    do("and dragged", lambda: hand.drag_by(np.array([1.0, 2.0])))
    do("and pinned", lambda: hand.end_drag(is_pinned=True))
    do("a landmark is taken", lambda: hand.begin_landmark_drag(2))
    do("one that is not there", lambda: hand.begin_landmark_drag(99))
    do("and let go", hand.end_drag)
    do("a cluster that is gone", lambda: hand.begin_cluster_drag(99))
    do("stop", session.stop)
    do("goes on", lambda: play(session, session.continue_run("on")) and None)
    do("from the start", lambda: play(session) and None)
    do("a cluster", lambda: selection.select_cluster(1))
    do("and another", lambda: selection.toggle_cluster(2))
    do("merged", lambda: book.merge(selection.clusters))
    do("renamed", lambda: book.rename(book.clusters[0].id, "T cells"))
    do("noted", lambda: book.set_note(book.clusters[0].id, "a note"))
    do("coloured", lambda: book.recolor(book.clusters[0].id, "#123456"))
    do("split", lambda: session.split_cluster(book.clusters[0].id, 2))
    do("undone", book.undo)
    do("again", book.redo)
    do("an id that is not there", lambda: book.rename(99, "none"))
    do("points", lambda: selection.select_points(np.arange(3, 8)))
    do("more", lambda: selection.select_points(np.arange(12, 14), "add"))
    do("fewer", lambda: selection.select_points(np.arange(3, 5), "remove"))
    do("a group", lambda: book.make_group(selection.points, "mine"))
    do(
        "added",
        lambda: book.add_points_to_group(book.clusters[-1].id, np.arange(20, 25)),
    )
    do("let go", lambda: book.remove_annotation(book.clusters[-1].id))
    do("by a column", lambda: book.annotate_by_column(session.dataset.obs["part"], {}))
    do("undone", book.undo)
    do("three clusters", lambda: book.set_n_clusters(3))
    do("as many as it takes", lambda: book.set_n_clusters(None))
    do("held", lambda: play(session, hand.hold_points(np.arange(4))) and None)
    do("free", lambda: play(session, hand.release_points()) and None)
    do("free already", hand.release_points)
    do("a mark", lambda: session.add_mark("mine"))
    do("the same", lambda: session.add_mark_if_new("mine"))
    do("called so", lambda: session.timeline.rename_mark(1, "first"))
    do("back", lambda: session.show_mark(1))
    do("one that is not there", lambda: session.show_mark(99))
    do("forgotten", lambda: session.timeline.remove_mark(2))
    do("split by", lambda: setattr(session.look, "split_by", "part"))
    do("together", lambda: setattr(session.look, "split_by", ""))
    do("by a kind", lambda: setattr(session.look, "color_by", "kind"))
    do("in space", lambda: play(session, session.change_dimensions(3)) and None)
    do("on a line?", lambda: session.change_dimensions(7))
    do("flat", lambda: play(session, session.change_dimensions(2)) and None)
    do("t-SNE", lambda: session.settings.choose_method("tsne"))
    do("played", lambda: play(session) and None)
    do(
        "a column",
        lambda: session.add_columns(
            Dataset.with_map_column, "score", pd.Series(np.arange(40.0))
        ),
    )
    do("a child", lambda: desk.maps.open_child_map(np.arange(40) < 20, "a part"))
    do("played", lambda: play(session) and None)
    do("named there", lambda: book.rename(book.clusters[0].id, "there"))
    do("back", lambda: desk.maps.open(""))
    do("a cluster that is gone", lambda: session.move_cluster(99, np.ones(2)))
    do(
        "moved",
        lambda: (
            play(
                session, session.move_cluster(book.clusters[0].id, np.array([5.0, 5.0]))
            )
            and None
        ),
    )
    do("other data", lambda: session.load(None))
    approve("session", diary.states.lines)


def test_files_of_a_session_are_those_approved(desk, approve, tmp_path):
    session = desk.session
    desk.play()
    desk.book.rename(desk.book.clusters[0].id, "T cells")
    desk.book.set_note(desk.book.clusters[0].id, "a note")
    session.selection.select_cluster(1)
    session.look.color_by = "kind"
    session.add_mark("mine")
    desk.maps.open_child_map(np.arange(40) < 20, "a part")
    desk.play()
    path, lines = desk.save(tmp_path / "session.zip"), []
    with zipfile.ZipFile(path) as packed:
        for name in sorted(packed.namelist()):
            array = np.load(io.BytesIO(packed.read(name)))
            is_packed = array.dtype == np.uint8  # a table, by a version of pyarrow
            lines.append(f"{name} {array.dtype.kind} {array.shape * (not is_packed)}")
            if name[0].isdigit() and is_packed:
                continue
            if name[0].isdigit():
                lines.append(f"  {numbers(array)}")
            else:
                lines[-1] = name
                text = re.sub("[0-9a-f]{32}", "KEY", array.tobytes().decode())
                lines += json_lines(json.loads(text))
    opened, troubles = archive.open_session(path)
    again = Desk.restored(opened)
    lines += [f"troubles {troubles}", *Diary(again).lines()]
    approve("session_file", lines)


def json_lines(value, path=""):
    """Yield a line for each leaf of what a JSON file holds."""
    if isinstance(value, dict) and not any(
        isinstance(one, (dict, list)) for one in value.values()
    ):
        parts = {k: v for k, v in value.items() if k not in PASSING}
        yield f"  {path} {parts}"
    elif isinstance(value, dict):
        for key in value:
            if key not in PASSING:
                yield from json_lines(value[key], f"{path}.{key}")
    elif isinstance(value, list) and any(isinstance(x, (dict, list)) for x in value):
        for i, one in enumerate(value):
            yield from json_lines(one, f"{path}[{i}]")
    elif isinstance(value, list) and len(value) > 6 and isinstance(value[0], float):
        yield f"  {path} {numbers(value)}"
    elif isinstance(value, float):
        yield f"  {path} {value:.4g}"
    else:
        yield f"  {path} {str(value)[:200]!r}"


METHODS = {
    "t-SNE from another start": {"method": "tsne", "init": "gradient_pca"},
    "UMAP in space": {"method": "umap", "n_components": 3, "metric": "cosine"},
    "a minimiser": {"method": "ee_homotopy", "max_iter": 50},
    "on a line, by random pairs": {"n_components": 1, "approximation": "mesh"},
    "a perplexity": {"affinity": "entropic", "perplexity": 12.0, "large_picture": 2.0},
}
RECIPE = {
    "scanpy": "1.2.3",
    "min_cells": 3,
    "genes_left_out": 1234,
    "target_sum": 10_000.0,
    "genes_used": 2000,
    "max_value": 10.0,
    "components": 30,
    "cells_used": 60,
    "batch_key": "donor",
    "harmonypy": "0.1",
    "doublets": True,
    "min_genes": 200,
    "max_genes": 0,
    "min_counts": 0,
    "max_counts": 9000,
    "max_mito": 5.0,
    "left_out": {
        "min_genes": 4,
        "max_genes": 0,
        "min_counts": 0,
        "max_counts": 2,
        "max_mito": 1000,
        "doublets": 3,
    },
}


def test_methods_and_notebooks_are_those_approved(
    dataset, engine, approve, tmp_path, monkeypatch
):
    """Of a table, of which some column is as some person or program made it."""
    pytest.importorskip("nbformat")
    told = []
    table = dataset.obs.assign(donor=[f"d{i % 2}" for i in range(40)])
    table[[*"abcde"]] = dataset.X
    table.to_csv(tmp_path / "cells.csv")

    def desk(**settings):
        return Desk(read(tmp_path / "cells.csv"), engine, **settings)

    def tell(title, desk, ending=".txt", **changes):
        session = desk.maps.to_saved_session()
        maps = tuple(replace(one, **changes) for one in session.maps)
        path = tmp_path / f"map{ending}"
        write_code(replace(session, maps=maps), path, is_shared=ending == ".ipynb")
        if ending == ".txt":
            told.extend([f"== {title}", *path.read_text().splitlines()])
        else:
            told.append(f"== {title}, as a notebook")
            for cell in json.loads(path.read_text())["cells"]:
                told.append(f"-- {cell['cell_type']}")
                told.extend("".join(cell["source"]).splitlines())

    played = desk().play()
    played.book.rename(0, "T cells")
    played.book.set_note(0, "a note")
    played.session.look.color_by = "kind"
    tell("a table", played)
    tell("a table", played, ".ipynb")
    for title, settings in METHODS.items():
        tell(title, desk(**settings).play())
    steered = desk()
    steered.play(at=10, then=lambda: steered.session.settings.update(repulsion=99))
    steered.play(steered.session.continue_run())
    steered.play(steered.session.hand.hold_points(np.arange(4)))
    tell("steered, gone on with and held", steered)
    tell("steered, gone on with and held", steered, ".ipynb")
    other = desk()
    update = other.session.settings.update
    other.play(at=10, then=lambda: update(method="ee"))
    tell("another method", other)
    other.session.look.color_by = "Pressure"
    tell("stopped, coloured by pressure", other.play(until=10))
    first = played.session.moment.snapshot.embedding
    placed = PlacedOn("folder/reference.h5ad", first[:7], first)
    tell("placed", played, placed_on=placed)
    given = desk()
    given.session.settings.update(method="given")
    prepared = replace(played.session.dataset, provenance={"recipe": RECIPE})
    tell("prepared", played, dataset=prepared)
    bare = RECIPE | {"batch_key": None, "doublets": False, "cells_used": 40}
    bare |= {"min_genes": 0, "max_counts": 0, "max_mito": 0.0, "min_cells": 0}
    prepared = replace(played.session.dataset, provenance={"recipe": bare})
    tell("prepared without limits", played, dataset=prepared)
    mixed = {"space": "obsm['X_pca']", "batch_key": "donor", "harmonypy": "0.1"}
    data = replace(played.session.dataset, provenance={"harmony": mixed})
    tell("mixed", played, dataset=data)
    data = played.session.dataset
    columns = {"score": np.arange(40.0), "taught": ["x", "y"] * 20}
    columns |= {"label_predicted": ["x"] * 40, "change": np.arange(40.0)}
    kinds = ("score", "taught", "predicted", "change")
    for (name, values), kind in zip(columns.items(), kinds, strict=True):
        record = AddedColumns(
            kind=kind,
            genes=("a", "b"),
            examples={"x": (1, 2), "y": (3,)},
            reference="folder/ref.h5ad",
            label="label",
            correct_batch=kind == "predicted",
        )
        unlike = [UNLIKE, *["like"] * 39]
        parts = {"": values} | ({REFERENCE: unlike} if kind == "predicted" else {})
        data, _ = data.with_columns(name, parts, record)
    tell("with columns", played, dataset=data)
    inside = np.arange(40) < 20
    compared = [
        ShownComparison(
            inside=inside,
            outside=None,
            title=f"{how} {i}",
            method=how,
            samples="donor" * (i == 2),
            tie_correct=i == 1,
        )
        for i, how in enumerate(("wilcoxon", "wilcoxon", "t-test"))
    ]
    tell("compared", played, comparisons=tuple(compared))
    tell("compared", played, ".ipynb", comparisons=tuple(compared))
    told = [VERSION.sub(r"\1 X", one) for one in told]
    told = [MADE.sub("HASH", one).replace(str(tmp_path), "FOLDER") for one in told]
    approve("methods", told)


VERSION = re.compile(
    r"\b(napari-embedding-game|napari|numpy|scipy|numba|torch|scikit-learn|"
    r"pynndescent|anndata) \d+(\.\d+)*(\+\w+)?"
)
MADE = re.compile(r"(?<=map )[0-9a-f]{4}\b|\b[0-9a-f]{16}\b|\d\d \w+ 20\d\d")
"""Which map it is, and on which day it was made."""
