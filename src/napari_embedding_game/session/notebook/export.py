"""Write a map as a notebook or script that makes it again from the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import is_same_file, whole_or_nothing
from napari_embedding_game.data.export.result import versions
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.notebook.cluster_cells import (
    Clusters,
    cluster_cells,
    clusters_of,
)
from napari_embedding_game.session.notebook.column_cells import (
    column_cells,
    known_columns,
)
from napari_embedding_game.session.notebook.comparison_cells import ComparisonCells
from napari_embedding_game.session.notebook.data_cells import (
    Loaded,
    is_part,
    load_cells,
)
from napari_embedding_game.session.notebook.draft import (
    Draft,
    as_notebook,
    as_script,
    code_of,
)
from napari_embedding_game.session.notebook.expression_code import expression_cells
from napari_embedding_game.session.notebook.figure_cells import FigureCells, drawable
from napari_embedding_game.session.notebook.methods_text import methods_text
from napari_embedding_game.session.notebook.run_cells import NOTHING_PLAYED, run_cells
from napari_embedding_game.session.shown_comparisons import ShownComparison

NOTEBOOK, SCRIPT, METHODS = ".ipynb", ".py", ".txt"
CALLED = ("scanpy", "harmonypy")
"""Packages that the code may call, besides those of every result."""
ENDINGS = (NOTEBOOK, SCRIPT, METHODS)
"""Endings of files that can be written."""


def write_code(
    session: SavedSession,
    path: Path,
    *,
    comparisons: Iterable[ShownComparison] | None = None,
    colors: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write the map that is shown as .ipynb or .py, or its methods as .txt.

    Run, the code reads the input, makes the same map and gives its points the same
    clusters.  What no code can tell in short, such as points that were drawn around,
    is saved beside it in files whose names begin with its own.

    Parameters
    ----------
    session : SavedSession
        With its data.
    path : Path
        The ending says what is written.
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
        _write(path, methods_text(saved, comparisons) + "\n")
        return [path]
    draft = drafted(session, path, comparisons, colors or {})
    for target in (path, *draft.files):
        if saved.dataset.source is not None and is_same_file(
            target, saved.dataset.source
        ):
            raise DataError(
                f"{target.name} is the data file itself and stays as it is: choose "
                "another name."
            )
    for beside, write in draft.files.items():
        with whole_or_nothing(beside) as temporary:
            write(temporary)
    as_text = as_notebook if ending == NOTEBOOK else as_script
    _write(path, as_text(draft.cells))
    return [path, *draft.files]


def drafted(
    session: SavedSession,
    path: Path,
    comparisons: Iterable[ShownComparison],
    colors: Mapping[str, str],
) -> Draft:
    """Return the cells of the map that is shown, for a file at `path`.

    Raises
    ------
    DataError
        As :func:`write_code`.
    """
    saved = session[session.current]
    if saved.snapshot is None or saved.record is None:
        raise DataError(NOTHING_PLAYED)
    draft, clusters = Draft(path), clusters_of(saved)
    _title(draft, saved)
    loaded = load_cells(draft, saved.dataset, of_part=_is_of_part(session, saved))
    run_cells(draft, saved, loaded, clusters.n_clusters)
    column_cells(draft, saved.dataset, loaded)
    cluster_cells(draft, saved, loaded, clusters, colors)
    comparisons = list(comparisons)
    _expression(draft, saved, loaded, clusters, comparisons)
    name = f"{path.stem}_clusters.csv"
    draft.text("## Result", f"The cluster of each row is written to `{name}`.")
    draft.code(f"adata.obs[[{code_of(clusters.column)}]].to_csv({code_of(name)})")
    draft.text("## Methods, for a paper", methods_text(saved, comparisons))
    return draft


def _expression(
    draft: Draft,
    saved: SavedMap,
    loaded: Loaded,
    clusters: Clusters,
    comparisons: list[ShownComparison],
) -> None:
    """Add what was looked at of genes, or of other columns, in groups."""
    dataset = saved.dataset
    figures = drawable(saved.figures, dataset, known_columns(dataset, loaded))
    if not (comparisons or figures) or not dataset.profile.shape[1]:
        return
    expression = expression_cells(draft, dataset, loaded)
    ComparisonCells(draft, dataset, expression, clusters).add(comparisons)
    if figures:
        FigureCells(draft, dataset, expression, clusters.column).add(figures)


def _is_of_part(session: SavedSession, saved: SavedMap) -> bool:
    """Return whether the map, or one that it hangs on, is of some rows only."""
    one: SavedMap | None = saved
    while one is not None and one.parent is not None:
        if is_part(one.key):
            return True
        one = session.find(one.parent)
    return False


def _title(draft: Draft, saved: SavedMap) -> None:
    version = metadata.version("napari-embedding-game")
    used = [f"{package} {number}" for package, number in versions().items()]
    used += [f"{p} {metadata.version(p)}" for p in CALLED if find_spec(p) is not None]
    draft.text(
        f"# {saved.title}",
        f"The map that was on show in napari on {date.today():%d %B %Y}, as code: "
        f"written by napari-embedding-game {version}. With the same versions of all "
        "packages the map is the same bit for bit, on any processor; on a GPU sums may "
        "be rounded otherwise, and it then differs in detail.",
        f"Versions: {', '.join(used)}.",
    )


def _write(path: Path, text: str) -> None:
    with whole_or_nothing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
