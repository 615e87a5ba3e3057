"""Write a map as a notebook or script that makes it again from the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from datetime import date
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.new_rows.transform import nearest_landmark
from napari_embedding_game.core.snapshot import map_hash
from napari_embedding_game.data.as_anndata import FEATURES, SAMPLES, as_anndata
from napari_embedding_game.data.columns import KEY, unique_names
from napari_embedding_game.data.dataset import CONFIDENCE, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import is_same_file, whole_or_nothing
from napari_embedding_game.data.export.plots import PlotKind
from napari_embedding_game.data.export.result import versions
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.readers import is_table
from napari_embedding_game.session.cluster_expression import N_CELLS
from napari_embedding_game.session.expression_rows import RowChoice, rows_of
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.looked_at import ShownComparison, ShownFigure
from napari_embedding_game.session.notebook import cells
from napari_embedding_game.session.notebook.cells import Cell, Code, call, code_of
from napari_embedding_game.session.notebook.methods_text import (
    NOTHING_PLAYED,
    clustering_of,
    how_merged,
    methods_text,
)
from napari_embedding_game.session.run.provenance import steps
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import check

NOTEBOOK, SCRIPT, METHODS = ".ipynb", ".py", ".txt"
ENDINGS = (NOTEBOOK, SCRIPT, METHODS)
"""Endings of files that can be written."""
MOST_STEPS = 40
"""Changes of settings above which they are repeated from a session file."""
_PLOTS: dict[PlotKind, str] = {
    "dots": "dotplot",
    "matrix": "matrixplot",
    "cells": "heatmap",
}
_WORKED_OUT = {"Stretch": "stretch", "Isolation": "isolation", "Pressure": "pressure"}


def write_code(
    session: SavedSession,
    path: Path,
    *,
    comparisons: Iterable[ShownComparison] | None = None,
    colors: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the map that is shown as .ipynb or .py, or its methods as .txt.

    Run, the code reads the input, makes the same map, gives its points the clusters of
    the window, by their names, and says how far they agree.

    Parameters
    ----------
    session : SavedSession
        With its data.
    path : Path
        The ending says what is written; tables beside it begin with its name.
    comparisons : iterable of ShownComparison
        Those that were kept or saved; by default the ones that the map knows of.
    colors : mapping, optional
        Name of a cluster to its colour on the screen, as "#rrggbb".

    Returns
    -------
    list of Path
        The files that were written, `path` the first.

    Raises
    ------
    DataError
        Nothing was played, the run or the data are not at hand, the ending is
        another, or a file cannot be written.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(
            f"{path.name} cannot be written as code: choose a name that ends in "
            f"{', '.join(ENDINGS)}."
        )
    saved = session[session.current]
    comparisons = list(saved.comparisons if comparisons is None else comparisons)
    if ending == METHODS:
        _write_text(methods_text(saved, comparisons) + "\n", path)
        return [path]
    if saved.snapshot is None or saved.record is None:
        raise DataError(NOTHING_PLAYED)
    made = _Code(saved, path, colors or {})
    made.add_all(comparisons)
    for target in made.files:
        source = saved.dataset.source
        if source is not None and is_same_file(target, source):
            raise DataError(
                f"{target.name} is the data file itself and stays as it is: choose "
                "another name."
            )
    for target, write in made.files.items():
        with whole_or_nothing(target) as temporary:
            write(temporary)
    return list(made.files)


class _Code:
    """The cells of a map's code, and the files that it reads."""

    def __init__(self, saved: SavedMap, path: Path, colors: Mapping[str, str]) -> None:
        self.saved, self.dataset, self.path = saved, saved.dataset, path
        self.colors = colors
        self.cells: list[Cell] = []
        self.files: dict[Path, Callable[[Path], object]] = {path: self._write}
        self.clustering = clustering_of(saved)
        names = pd.Index(unique_names(self.dataset.source_obs_names))
        self.rows = pd.DataFrame(
            {"cluster": self.clustering.names},
            index=names[self.dataset.kept].rename("name"),
        )
        """What the code reads of each row."""
        self.column = "cluster" if "cluster" not in self.dataset.obs else "map_cluster"

    def add_all(self, comparisons: list[ShownComparison]) -> None:
        """Add all cells."""
        dataset = self.dataset
        table = self._beside("cells.csv", lambda path: self.rows.to_csv(path))
        self._text(
            cells.TITLE,
            title=self.saved.title,
            date=f"{date.today():%d %B %Y}",
            version=metadata.version("napari-embedding-game"),
            versions=", ".join(f"{name} {one}" for name, one in versions().items()),
        )
        self._code(cells.IMPORTS)
        how, read = self._reading()
        self._text(cells.DATA, how=how, table=table)
        self._code(f"{read}\n" + cells.ROWS.format(table=code_of(table)))
        self._add_run()
        self._add_made_columns()
        self._add_clusters()
        if dataset.profile.shape[1]:
            for one in comparisons:
                self._add_comparison(one)
            for figure in self.saved.figures:
                self._add_figure(figure)
        self._text(
            "## Methods, for a paper\n\n" + methods_text(self.saved, comparisons)
        )

    def _text(self, template: str, **values: Any) -> None:
        self.cells.append(Cell("markdown", template.format(**values)))

    def _code(self, source: str) -> None:
        self.cells.append(Cell("code", source))

    def _beside(self, ending: str, write: Callable[[Path], object]) -> str:
        """Let a file be written beside the code, and return its name."""
        path = self.path.with_name(f"{self.path.stem}_{ending}")
        self.files[path] = write
        return path.name

    def _write(self, path: Path) -> None:
        is_notebook = self.path.suffix.lower() == NOTEBOOK
        as_text = cells.as_notebook if is_notebook else cells.as_script
        path.write_text(as_text(self.cells), encoding="utf-8")

    def _reading(self) -> tuple[str, str]:
        """Return how the data are read, in words and as code."""
        dataset, source = self.dataset, self.dataset.source
        if _is_read_again(dataset):
            told = dataset.name.lower() if source is None else self._path_to(source)
            options = {} if source is None else _options(dataset.read_options)
            code = call("adata = read", code_of(told), **options)
            return "`read` reads the data as the window does.", code
        if not dataset.X.shape[1]:
            raise DataError(dataset.missing_reason)
        name = self._beside(
            "features.h5ad",
            lambda path: as_anndata(dataset).write_h5ad(path, compression="gzip"),
        )
        how = (
            f"The numbers are no file's: they are those of **{dataset.name}**, as they "
            f"were in napari, saved in `{name}`."
        )
        return how, f"adata = sc.read_h5ad({code_of(name)})"

    def _path_to(self, source: Path) -> str:
        """Return how the code calls a file: relative where it lies beside or below."""
        source, folder = source.absolute(), self.path.absolute().parent
        is_below = source.is_relative_to(folder)
        return source.relative_to(folder).as_posix() if is_below else str(source)

    def _add_run(self) -> None:
        """Add what makes the map of the data.

        Raises
        ------
        DataError
            The run went on from a map that is not kept.
        """
        record, saved = self.saved.record, self.saved
        assert record is not None
        assert saved.snapshot is not None
        if record.is_branch and record.warm_start is None:
            raise DataError(
                "This run went on from another map, which is not kept any more: press "
                "Run, then save the notebook."
            )
        check(record)
        title = get_method(record.settings.method).title
        changes = steps(record)
        if record.is_branch or record.forced or len(changes) > MOST_STEPS:
            name = self._beside("run.zip", partial(_write_session, saved))
            told = f"What was done by hand is in `{name}`, a session file."
            if saved.behind is not None:
                reference = Path(saved.behind.reference).name
                told = f"Cells lie where they were placed on the map of `{reference}`."
            self._text("## Map: {title}\n\n{told}", title=title, told=told)
            self._code(call("tl.replay", "adata", code_of(name), use_rep=FEATURES))
            return
        way: dict[str, Any] = {}
        if changes:
            way["steering"] = changes
        if not saved.snapshot.finished:
            way["stop_at"] = record.n_iter
        way |= {"random_state": record.settings.random_state}
        options = {"use_rep": FEATURES, **parameters(record), **way}
        self._text("## Map: {title}", title=title)
        self._code(call("tl.embedding_game", "adata", **options))

    def _add_made_columns(self) -> None:
        """Add the columns that were made in the window: scores, labels, classes."""
        dataset = self.dataset
        made = {*dataset.worked_out, *dataset.scores}
        made |= {name + end for name in dataset.taught for end in ("", CONFIDENCE)}
        for name, predicted in dataset.predicted.items():
            made |= {name + end for end in predicted.columns}
        names = [name for name in dataset.obs if name in made]
        if not names:
            return
        is_number = pd.api.types.is_numeric_dtype
        self.rows[names] = dataset.obs[names].set_axis(self.rows.index)
        numbers = [name for name in names if is_number(dataset.obs[name])]
        texts = [name for name in names if name not in numbers]
        self._text(cells.MADE, told="\n".join(f"- `{name}`" for name in names))
        lines = []
        if texts:
            lines.append(f"adata.obs[{code_of(texts)}] = rows[{code_of(texts)}]")
        if numbers:
            values = f"rows[{code_of(numbers)}].apply(pd.to_numeric)"
            lines.append(f"adata.obs[{code_of(numbers)}] = {values}")
        self._code("\n".join(lines))

    def _add_clusters(self) -> None:
        """Add the clusters of the window, and the figure of the map."""
        snapshot, shown = self.saved.snapshot, self.clustering.clusters
        assert snapshot is not None
        sizes = ", ".join(f"{cluster.name} ({cluster.size:,})" for cluster in shown)
        notes = "\n".join(f"- **{one.name}**: {one.note}" for one in shown if one.note)
        how = how_merged(self.saved, self.clustering)
        self._text(cells.CLUSTERS, how=how, sizes=sizes)
        if notes:
            self._text("{notes}", notes=notes)
        labels = snapshot.labels
        if not snapshot.finished:  # those may be of a moment before
            every = np.ones(len(snapshot.landmarks), bool)
            labels = nearest_landmark(snapshot.embedding, snapshot.landmarks, every)
        table = pd.crosstab(labels, self.clustering.names)
        order = {one.name: self.colors.get(one.name, "#888888") for one in shown}
        pairs = [f"    {code_of(name)}: {code_of(c)}," for name, c in order.items()]
        self._code(
            cells.NAMED.format(
                clusters="\n".join(["{", *pairs, "}"]),
                column=code_of(self.column),
                colors=code_of(f"{self.column}_colors"),
                map_hash=code_of(map_hash(snapshot.embedding, labels)),
                agreement=float(table.to_numpy().max(axis=1).sum() / len(self.rows)),
            )
        )
        place = {"projection": "3d"} if snapshot.embedding.shape[1] == 3 else {}
        colored = list(dict.fromkeys([self.column, *self._colored()]))
        options = {"color": colored, **place}
        self._code(call("sc.pl.embedding", "adata", f'"X_{KEY}"', **options))

    def _colored(self) -> list[str]:
        """Return what else the map was coloured or split by on the screen."""
        dataset, snapshot, look = self.dataset, self.saved.snapshot, self.saved.look
        if look.color_by in _WORKED_OUT:
            values = getattr(snapshot, _WORKED_OUT[look.color_by])
            is_known = values is not None and not np.isnan(values).all()
            color = f"{KEY}_{_WORKED_OUT[look.color_by]}" if is_known else ""
        else:
            color = look.color_by
        known = {*dataset.obs, *dataset.profile_names}
        named = [name for name in (color, look.split_by) if name in known]
        return [color, *named] if color.startswith(KEY) else named

    def _add_comparison(self, one: ShownComparison) -> None:
        """Add what sets two groups apart, which the table beside the code names."""
        number = sum(name.startswith("comparison ") for name in self.rows) + 1
        column = f"comparison {number}"
        outside = ~one.inside if one.outside is None else one.outside
        self.rows[column] = np.select([one.inside, outside], ["inside", "outside"], "")
        how: dict[str, Any] = {"samples": one.samples} if one.samples else {}
        if not one.samples and one.method != "wilcoxon":
            how["method"] = one.method
        if self.dataset.expression.is_log1p:
            how["log1p"] = True
        groups = "adata", "inside", "outside"
        self._text("## Compared: {title}", title=one.title)
        self._code(
            cells.COMPARED.format(
                column=code_of(column),
                found=call("found = tl.compare", *groups, **how, n_top=None),
                title=code_of(one.title),
            )
        )
        self._code("found.head(20)")

    def _add_figure(self, one: ShownFigure) -> None:
        """Add a figure of genes in groups; nothing where the data lack a part of it."""
        dataset, choice = self.dataset, RowChoice(one.column, one.splits_clusters)
        is_known = not one.column or one.column in dataset.obs
        if not is_known or not set(dataset.profile_names).issuperset(one.genes):
            return
        column = choice.text if one.column else self.column
        self._text(f"## {'Genes' if dataset.has_expression else 'Columns'} in groups")
        lines = []
        if one.column and column not in self.rows:
            labels, clusters = self.clustering.labels, self.clustering.clusters
            rows = rows_of(choice, dataset, labels, clusters)
            self.rows[column] = np.array(rows.names, dtype=object)[rows.labels]
            values = f"rows[{code_of(column)}], {code_of(list(rows.names))}"
            lines.append(f"adata.obs[{code_of(column)}] = pd.Categorical({values})")
        drawn = "adata"
        if one.kind == "cells":
            lines.append(cells.SOME_ROWS.format(column=code_of(column), n=N_CELLS))
            drawn = "adata[some]"
        options: dict[str, Any] = {"standard_scale": "var"} if one.is_scaled else {}
        function, genes = f"sc.pl.{_PLOTS[one.kind]}", code_of(list(one.genes))
        lines.append(call(function, drawn, genes, groupby=column, **options))
        self._code("\n".join(lines))


def _is_read_again(dataset: Dataset) -> bool:
    """Return whether ``read`` gives the numbers that the window had."""
    source, options = dataset.source, dataset.read_options
    if source is None:
        return dataset.name.lower() in SAMPLES
    # Columns of a table of objects were standardised without the background.
    is_joined = dataset.source_objects is not None and is_table(source)
    return not is_joined and (options is None or options.id_column is None)


def _options(options: ReadOptions | None) -> dict[str, Any]:
    """Return what ``read`` has to be given beside the file."""
    if options is None:
        return {}
    told = _unusual(options, ReadOptions())
    if options.recipe is not None:
        told["recipe"] = Code(call("Recipe", **_unusual(options.recipe, Recipe())))
    return told


def _unusual(
    given: ReadOptions | Recipe, usual: ReadOptions | Recipe
) -> dict[str, Any]:
    values = {one.name: getattr(given, one.name) for one in fields(given)}
    return {name: v for name, v in values.items() if v != getattr(usual, name)}


def parameters(record: RunRecord) -> dict[str, Any]:
    """Return the parameters of the estimator that are not its own."""
    from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters

    settings = asdict(record.settings)
    del settings["random_state"]
    if settings["affinity"] == get_method(record.settings.method).affinity:
        settings["affinity"] = "auto"
    told = as_parameters(settings)
    own = EmbeddingGame().get_params()
    return {name: value for name, value in told.items() if value != own[name]}


def _write_session(saved: SavedMap, path: Path) -> None:
    alone = replace(saved, parent=None, key="", view={})
    archive.save(SavedSession(maps=(alone,), current=""), path)


def _write_text(text: str, path: Path) -> None:
    with whole_or_nothing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
