"""Write a notebook that makes a map again from the input data."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from csv import QUOTE_ALL
from dataclasses import asdict, fields, replace
from datetime import date
from functools import partial
from importlib import metadata
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.new_rows.transform import find_nearest_landmark_among
from napari_embedding_game.core.snapshot import compute_map_hash
from napari_embedding_game.data.as_anndata import FEATURES, SECOND, as_anndata
from napari_embedding_game.data.columns import KEY, make_names_unique
from napari_embedding_game.data.dataset import SAMPLE
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import to_storable_obs
from napari_embedding_game.data.export.atomic import atomic_write, check_not_source
from napari_embedding_game.data.export.hdf5 import write_h5ad
from napari_embedding_game.data.export.result import find_installed_versions
from napari_embedding_game.data.identity import sum_absolute_rows
from napari_embedding_game.data.palette import cluster_colors, to_hex_colors
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.session.clusters.annotation import make_unique_name
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import (
    SavedMap,
    SavedSession,
    ShownComparison,
)
from napari_embedding_game.session.notebook.methods import (
    NOTHING_PLAYED,
    compose_methods_text,
    describe_clustering,
)
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import validate_event_order
from napari_embedding_game.session.second_space import TISSUE, find_section_columns

NOTEBOOK, METHODS = ".ipynb", ".txt"
MAX_STEPS = 40
"""Most changes of settings that are written as code; more are replayed from a session
file."""
WIDTH = 88
"""Most characters of a line of code that can be broken."""

TITLE = """\
# {title}

The map that was on show in napari on {date}, as code: written by \
napari-embedding-game {version}. With the same versions of all packages the map is \
the same bit for bit, on any processor; on a GPU sums may be rounded otherwise, and \
it then differs in detail.

Versions: {versions}."""
IMPORTS = """\
import pandas as pd
import scanpy as sc
from IPython.display import display

from napari_embedding_game import read, tl
from napari_embedding_game.data.export.plots import VolcanoPlot, draw
from napari_embedding_game.data.identity import check_row_sums
from napari_embedding_game.data.read_options import Recipe"""
DATA = """\
## Data

{how} What is embedded is in `obsm["X_features"]`; `X` has the genes, with counts as \
logarithms, or the columns. {table} has what was known of each row in the window, by \
its name: its cluster, the groups it was in, and the sum of its numbers, which shows \
that it is the same row."""
ROWS = """\
{read}
rows = pd.read_csv({table}, dtype=str, keep_default_na=False).set_index({names})
adata = adata[rows.index].copy()
check_row_sums(adata, rows[{sums}])
adata"""
CLUSTERS = """\
## Clusters

{how} They are those of the window, with their names: {sizes}.{notes}"""
NAMED = """\
clusters = {clusters}
adata.obs[{column}] = pd.Categorical(rows[{column}], list(clusters))
adata.uns[{colors}] = list(clusters.values())
table = pd.crosstab(adata.obs["embedding_game_cluster"], adata.obs[{column}])
agreement = table.max(axis=1).sum() / adata.n_obs
is_same = adata.uns["embedding_game"]["map_hash"] == {map_hash}
print(
    "The map is", "the same" if is_same else "another in detail", "as in the window;",
    f"{{agreement:.1%}} of the rows are of the cluster of most around their landmark",
    "(there {agreement:.1%})."
)"""
COMPARED = """\
inside = rows[{column}] == "inside"
outside = rows[{column}] == "outside"
{found}
volcano = VolcanoPlot(
    names=found["names"].to_numpy(),
    changes=found["logfoldchanges"].to_numpy(),
    p_values=found["pvals_adj"].to_numpy(),
    title={title},
)
display(draw(volcano), found.head(20))"""


def write_code(
    session: SavedSession, path: Path, *, is_shared: bool = False
) -> list[Path]:
    """Write the map on show as a notebook (.ipynb), or its methods paragraph as .txt.

    The notebook reads the input, makes the same map, assigns the clusters of the window
    to its points by name, and prints how far both agree.

    ``session``: with its data. ``path``: its ending says what is written; the names of
    tables beside it begin with its name. ``is_shared``: whether the notebook reads the
    data from its own folder, so that no other folder is named.

    Returns the files that were written, ``path`` first.

    Raises DataError: nothing was played, the run or the data are missing, the ending is
    another, a table would replace an unrelated file, or a file cannot be written.
    """
    saved = session[session.current]
    if not saved.dataset.var_names:
        raise DataError(saved.dataset.missing_reason)
    files: dict[Path, Callable[[Path], object]]
    if path.suffix.lower() == METHODS:
        text = compose_methods_text(saved) + "\n"
        files = {path: lambda target: target.write_text(text, encoding="utf-8")}
    elif path.suffix.lower() == NOTEBOOK:
        files = _Notebook(saved, path, is_shared).files
    else:
        raise DataError(
            f"{path.name} cannot be written as code: choose a name that ends in "
            f"{NOTEBOOK}, or {METHODS} for the methods."
        )
    for target in files:
        check_not_source(target, saved.dataset.source)
        if target.exists() and not path.exists():  # else they are of that notebook
            raise DataError(
                f"A file {target.name} is there, which the notebook would replace by "
                "one that it reads: choose another name for the notebook."
            )
    for target, write in reversed(files.items()):  # the code comes last
        with atomic_write(target) as temporary:
            write(temporary)
    return list(files)


class _Notebook:
    """The cells of a map's notebook, and functions that write its files."""

    def __init__(self, saved: SavedMap, path: Path, is_shared: bool) -> None:
        if saved.snapshot is None or saved.record is None:
            raise DataError(NOTHING_PLAYED)
        self.saved, self.dataset, self.path = saved, saved.dataset, path
        self.snapshot, self.is_shared = saved.snapshot, is_shared
        self.cells: list[dict[str, Any]] = []
        self.files: dict[Path, Callable[[Path], object]] = {path: self._write_ipynb}
        self.clustering = saved.clusters.clustering
        names = pd.Index(make_names_unique(self.dataset.source_obs_names))
        taken = {*self.dataset.obs, *self.dataset.profile_names}
        default = "map_cluster" if "cluster" in taken else "cluster"
        self.column = make_unique_name(default, taken)
        index = names[self.dataset.kept].rename(make_unique_name("name", taken))
        sums = make_unique_name("row_sum", taken)
        columns = {
            self.column: self.clustering.names_by_point,
            sums: sum_absolute_rows(self.dataset.expression.values),
        }
        self.rows = pd.DataFrame(columns, index)
        """The table of all rows that the notebook reads."""
        write = partial(self.rows.to_csv, quoting=QUOTE_ALL)
        table = self._add_file("cells.csv", write)
        self._add_text(
            TITLE,
            title=saved.title,
            date=f"{date.today():%d %B %Y}",
            version=metadata.version("napari-embedding-game"),
            versions=", ".join(
                f"{name} {one}" for name, one in find_installed_versions().items()
            ),
        )
        self._add_code(IMPORTS)
        how, read = self._describe_reading()
        self._add_text(DATA, {"how": how, "table": to_code_span(table)})
        code = {"table": _to_code(table), "names": _to_code(index.name)}
        code["sums"] = _to_code(sums)
        self._add_code(ROWS.format(read=read, **code))
        self._add_run(saved.record)
        self._add_new_columns()
        self._add_clusters()
        if self.dataset.profile_names:
            for number, compared in enumerate(saved.comparisons, 1):
                column = make_unique_name(f"comparison {number}", {*self.rows})
                self._add_comparison(compared, column)
        methods = compose_methods_text(saved)
        self._add_text("## Methods, for a paper\n\n{methods}", methods=methods)

    def _add_text(
        self, template: str, markdown: Mapping[str, str] = {}, **plain: str
    ) -> None:
        """Add a Markdown cell from a template.

        ``markdown``: values that are inserted as Markdown. ``plain``: texts in which
        Markdown is escaped.
        """
        texts = {key: escape_markdown(text) for key, text in plain.items()}
        source = template.format(**markdown, **texts).splitlines(keepends=True)
        self.cells.append({"cell_type": "markdown", "metadata": {}, "source": source})

    def _add_code(self, source: str) -> None:
        """Add a code cell that was not run yet."""
        lines = source.splitlines(keepends=True)
        cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "source": lines}
        self.cells.append({**cell, "execution_count": None, "outputs": []})

    def _add_file(self, ending: str, write: Callable[[Path], object]) -> str:
        """Register a file to be written next to the notebook, and return its name."""
        path = self.path.with_name(f"{self.path.stem}_{ending}")
        self.files[path] = write
        return path.name

    def _write_ipynb(self, path: Path) -> None:
        """Write an .ipynb file, in version 4.5 of the format."""
        cells = [{**cell, "id": f"cell-{n}"} for n, cell in enumerate(self.cells)]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        about = {"kernelspec": kernel, "language_info": {"name": "python"}}
        notebook = {"cells": cells, "metadata": about, "nbformat": 4}
        text = json.dumps(
            {**notebook, "nbformat_minor": 5}, indent=1, ensure_ascii=False
        )
        path.write_text(text + "\n", encoding="utf-8")

    def _describe_reading(self) -> tuple[str, str]:
        """Return a sentence on how the data are read, and the code that reads them.

        Data of no file are registered to be written beside the notebook.  Other data
        are read by the options of the window; a path below the notebook's folder is
        relative, and a shared notebook names no folder.
        """
        dataset, source = self.dataset, self.dataset.source
        if source is None and SAMPLE not in dataset.provenance:
            adata = as_anndata(dataset)
            adata.obs = to_storable_obs(adata.obs)
            name = self._add_file("features.h5ad", partial(write_h5ad, adata))
            how = (
                f"The numbers are no file's: they are those of "
                f"**{escape_markdown(dataset.name)}**, as they were in napari, saved "
                f"in {to_code_span(name)}."
            )
            return how, f"adata = sc.read_h5ad({_to_code(name)})"
        path, options = str(dataset.provenance.get(SAMPLE)), dict[str, Any]()
        if source is not None:
            source, folder = source.absolute(), self.path.absolute().parent
            is_below = source.is_relative_to(folder)
            path = source.relative_to(folder).as_posix() if is_below else str(source)
            path = source.name if self.is_shared else path
            given, usual = dataset.read_options or ReadOptions(), ReadOptions()
            values = {one.name: getattr(given, one.name) for one in fields(given)}
            options = {k: v for k, v in values.items() if v != getattr(usual, k)}
        code = _format_call("adata = read", _to_code(path), **options)
        return "`read` reads the data as the window does.", code

    def _add_run(self, record: RunRecord) -> None:
        """Add the code that makes the map: by the estimator, or by a replay.

        A branch, a run with forces of a hand, or one with more than ``MAX_STEPS``
        changes of settings is replayed from a session file, which is registered to be
        written.

        Raises DataError: the run continued from a map that was not kept, or its record
        is damaged.
        """
        if record.is_branch and record.warm_start is None:
            raise DataError(
                "This run went on from another map, which is not kept any more: press "
                "Run, then save the notebook."
            )
        validate_event_order(record)
        title = get_method(record.settings.method).title
        if (
            record.is_branch
            or record.forced
            or len(record.changes_by_iteration) > MAX_STEPS
        ):
            alone = replace(self.saved, parent=None, key="", view={})
            run = SavedSession(maps=(alone,))
            write = partial(archive.save_session, run, is_shared=self.is_shared)
            name = self._add_file("run.zip", write)
            text = f"What was done by hand is in {to_code_span(name)}, a session file."
            placed_on = self.saved.placed_on
            if placed_on is not None and placed_on.has_layout_of(self.snapshot):
                reference = PureWindowsPath(placed_on.reference).name
                on = to_code_span(reference)
                text = f"Cells lie where they were placed on the map of {on}."
            self._add_text("## Map: {title}\n\n{text}", {"text": text}, title=title)
            spaces = {"use_rep": FEATURES, **self._find_second_space(record)}
            self._add_code(_format_call("tl.replay", "adata", _to_code(name), **spaces))
            return
        extra: dict[str, Any] = (
            {"steering": record.changes_by_iteration}
            if record.changes_by_iteration
            else {}
        )
        if not self.snapshot.finished:
            extra["stop_at"] = record.n_iter
        extra["random_state"] = record.settings.random_state
        options = {"use_rep": FEATURES, **self._find_second_space(record)}
        options |= {**find_non_default_parameters(record), **extra}
        self._add_text("## Map: {title}", title=title)
        self._add_code(_format_call("tl.embedding_game", "adata", **options))

    def _find_second_space(self, record: RunRecord) -> dict[str, Any]:
        """Return the arguments that name a run's second space; {} for one space."""
        name = record.settings.second_space
        if name != TISSUE:
            return {"second_rep": SECOND} if name else {}
        columns = find_section_columns(self.dataset)
        key = columns if len(columns) > 1 else "".join(columns)
        return {"second_rep": TISSUE, **({"section_key": key} if key else {})}

    def _add_new_columns(self) -> None:
        """Add code that reads the columns made in the window from the exported table.

        The columns are added to that table, ``self.rows``; nothing happens without any.
        """
        dataset = self.dataset
        names = [name for name in dataset.obs if name in dataset.added_columns]
        if not names:
            return
        self.rows[names] = dataset.obs[names].set_axis(self.rows.index)
        text = "\n".join(f"- {to_code_span(str(name))}" for name in names)
        heading = "## Columns that were made in the window\n\n{names}"
        self._add_text(heading, {"names": text})
        lines = []
        for name in names:
            values = f"rows[{_to_code(name)}]"
            if pd.api.types.is_numeric_dtype(dataset.obs[name]):
                values = f"pd.to_numeric({values})"
            elif dataset.obs[name].isna().any():
                values = f'{values}.where({values} != "")'
            lines.append(f"adata.obs[{_to_code(name)}] = {values}")
        self._add_code("\n".join(lines))

    def _add_clusters(self) -> None:
        """Add text and code that assign the clusters of the window and plot the map.

        The code also prints whether the map is the same, and how far clusters and
        landmarks agree, as in the window.
        """
        snapshot, shown = self.snapshot, self.clustering.clusters
        sizes = ", ".join(f"{cluster.name} ({cluster.size:,})" for cluster in shown)
        noted = [(one.name, one.note) for one in shown if one.note]
        notes = [f"- **{escape_markdown(x)}**: {escape_markdown(y)}" for x, y in noted]
        how = describe_clustering(self.saved.clusters, self.snapshot)
        listed = "\n".join(["", "", *notes] if notes else [])
        self._add_text(CLUSTERS, {"notes": listed}, how=how, sizes=sizes)
        labels = snapshot.labels
        if not snapshot.finished:  # those may be of a moment before
            every = np.ones(len(snapshot.landmarks), bool)
            labels = find_nearest_landmark_among(
                snapshot.embedding, snapshot.landmarks, every
            )
        table = pd.crosstab(labels, self.clustering.names_by_point)
        colored = zip(shown, to_hex_colors(cluster_colors(shown)), strict=True)
        pairs = [f"    {_to_code(one.name)}: {_to_code(c)}," for one, c in colored]
        self._add_code(
            NAMED.format(
                clusters="\n".join(["{", *pairs, "}"]),
                column=_to_code(self.column),
                colors=_to_code(f"{self.column}_colors"),
                map_hash=_to_code(compute_map_hash(snapshot.embedding, labels)),
                agreement=float(table.to_numpy().max(axis=1).sum() / len(self.rows)),
            )
        )
        # scanpy cannot distinguish a column and a gene of one name.
        look, genes = self.saved.look, set(self.dataset.profile_names)
        unique = genes ^ {*self.dataset.obs}
        also = [name for name in (look.color_by, look.split_by) if name in unique]
        options: dict[str, Any] = {"color": list(dict.fromkeys([self.column, *also]))}
        if snapshot.embedding.shape[1] == 3:
            options["projection"] = "3d"
        self._add_code(
            _format_call("sc.pl.embedding", "adata", f'"X_{KEY}"', **options)
        )

    def _add_comparison(self, one: ShownComparison, column: str) -> None:
        """Add code that compares two groups, and plots the result.

        The groups become a column of the table: "inside", "outside" or "".
        """
        outside = ~one.inside if one.outside is None else one.outside
        self.rows[column] = np.select([one.inside, outside], ["inside", "outside"], "")
        how: dict[str, Any] = {"samples": one.samples} if one.samples else {}
        if not one.samples and one.method != "wilcoxon":
            how["method"] = one.method
        if one.tie_correct:
            how["tie_correct"] = True
        if self.dataset.expression.is_log1p:
            how["log1p"] = True
        groups, title = ("adata", "inside", "outside"), _to_code(one.title)
        found = _format_call("found = tl.compare", *groups, **how, n_top=None)
        self._add_text("## Compared: {title}", title=one.title)
        code = COMPARED.format(column=_to_code(column), found=found, title=title)
        self._add_code(code)


def find_non_default_parameters(record: RunRecord) -> dict[str, Any]:
    """Return the estimator's parameters of a run that differ from their defaults.

    The seed is left out, and so is an affinity that is the method's own.
    """
    from napari_embedding_game.core.estimator import EmbeddingGame, to_parameters

    settings = asdict(record.settings)
    del settings["random_state"]
    if not settings.pop("second_space"):  # tl names it, and a share has no effect
        del settings["second_share"]
    if settings["affinity"] == get_method(record.settings.method).affinity:
        settings["affinity"] = "auto"
    given = to_parameters(settings)
    defaults = EmbeddingGame().get_params()
    return {name: value for name, value in given.items() if value != defaults[name]}


def escape_markdown(text: str) -> str:
    """Return Markdown that shows a text literally.

    Special characters become HTML entities, which cannot begin markup such as a remote
    picture.
    """
    special = r"[&<`*\[\]~\\]|(?<![^\W_])_|_(?![^\W_])|(?m:^)#"
    return re.sub(special, _to_entity, text)


def _to_entity(match: re.Match[str]) -> str:
    """Return a matched character as an HTML entity."""
    escaped = html.escape(match[0])  # of "&" and "<"
    return escaped if escaped != match[0] else f"&#{ord(match[0])};"


def to_code_span(text: str) -> str:
    """Return a text as a Markdown code span, with as many backticks as needed."""
    text = " ".join(text.split())
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " * ("`" in text)
    return f"{fence}{space}{text}{space}{fence}"


def _to_code(value: Any) -> str:
    """Return the Python code of a value, with double quotes around texts.

    Items of lists are converted, too; a number of NumPy becomes one of Python.
    """
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_to_code, value))}]"
    return repr(value.item() if hasattr(value, "item") else value)


def _format_call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, one argument per line if longer than ``WIDTH``.

    ``positional``: code of expressions. ``named``: values of keyword arguments.
    """
    arguments = [*positional, *(f"{name}={_to_code(v)}" for name, v in named.items())]
    one_line = f"{function}({', '.join(arguments)})"
    if len(one_line) <= WIDTH:
        return one_line
    return "\n".join([f"{function}(", *(f"    {one}," for one in arguments), ")"])
