"""A second space: read beside the first, mixed live, recorded, replayed, told."""

import json

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game import read, tl
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.neighborhoods import make_neighborhood_job
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.quality import make_quality_job
from napari_embedding_game.session.second_space import (
    TISSUE,
    find_section_columns,
    list_second_spaces,
    make_second_rows,
)
from napari_embedding_game.session.session import Session
from worlds import annotated, play, write_adata
from worlds import read as read_file

PROTEIN = "obsm['protein']"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """An .h5ad of 120 cells with proteins, positions and sections, some unknown."""
    rng = np.random.default_rng(0)
    adata = annotated(120, X_pca=6, protein=4, spatial=2)
    adata.obs["section"] = pd.Categorical(rng.choice(["a", "b"], 120))
    adata.obsm["spatial"][5] = adata.obsm["protein"][7] = np.nan
    return write_adata(adata, tmp_path_factory.mktemp("cells") / "cells.h5ad")


def open_session(path, **options):
    session = Session(pace=0)
    session.load(read_file(path, **options))
    session.settings.update(n_landmarks=10, max_iter=40, n_neighbors=5)
    return session


def test_the_second_space_is_read_beside_the_first(path):
    dataset = read_file(path, second_space="protein")
    assert (dataset.space, dataset.second_space) == ("obsm['X_pca']", PROTEIN)
    assert dataset.second_X.shape == (120, 4)
    assert np.isnan(dataset.second_X[7]).all()  # and the cell stays on the map
    part = dataset.subset(np.arange(120) % 2 == 1)
    np.testing.assert_array_equal(part.second_X, dataset.second_X[1::2])
    no_others = ["obsm['X_pca']", "obsp['distances']", "obsm['spatial'] of rna"]
    offered = list_second_spaces(dataset, [*no_others, "X"])
    assert [*offered] == ["", TISSUE, PROTEIN, "X"]
    assert [*list_second_spaces(None)] == [""]


def test_what_is_not_read_is_refused(path):
    session = open_session(path)
    session.settings.second_space = PROTEIN
    with pytest.raises(DataError, match="choose it again under Data"):
        make_second_rows(session.dataset, session.resolve_settings())
    session.load(read_file(path))  # of other data the choice is gone
    assert session.settings.second_space == ""


def test_a_share_changes_live_and_the_run_is_replayed_from_its_file(path, tmp_path):
    session = open_session(path, second_space="protein")
    maps = MapTree(session)
    session.settings.second_space = TISSUE
    play(session)
    one = session.snapshot
    session.settings.second_share = 0.1  # while the game waits at its end
    session.stop()
    wanted = []
    session.play_wanted.connect(wanted.append)
    session.settings.second_share = 0.9
    play(session, wanted[0]())
    assert session.run_record.settings.second_share == 0.9
    assert not np.array_equal(session.snapshot.embedding, one.embedding)
    session.settings.second_space = PROTEIN
    assert session.stale
    play(session, session.continue_run())
    assert "Second space tissue to" in " ".join(
        mark.label for mark in session.timeline.state.marks
    )
    quality = make_quality_job(session)()
    assert quality.kept_in_second > quality.neighbors_kept
    file = tmp_path / "map.zip"
    archive.save_session(maps.to_saved_session(), file)
    adata = read(path, second_space="protein")
    tl.replay(adata, file, use_rep="X_features", second_rep="X_second")
    np.testing.assert_array_equal(
        adata.obsm["X_embedding_game"], session.snapshot.embedding
    )
    with pytest.raises(DataError, match="give the second"):
        tl.replay(adata, file, use_rep="X_features")


def test_a_notebook_makes_the_map_of_tissue_again(path, tmp_path):
    session = open_session(path)
    maps = MapTree(session)
    session.settings.update(second_space=TISSUE, second_share=0.3)
    play(session)
    write_code(maps.to_saved_session(), tmp_path / "map.ipynb")
    cells = json.loads((tmp_path / "map.ipynb").read_text())["cells"]
    code = "".join(
        next(
            cell["source"]
            for cell in cells
            if "tl.embedding_game" in "".join(cell["source"])
        )
    )
    methods = "".join(cells[-1]["source"])
    assert "the mean of the 30 cells around each cell in tissue" in methods
    assert "share is 0.3" in methods
    adata = read(path)
    exec(code, {"tl": tl, "adata": adata})
    np.testing.assert_array_equal(
        adata.obsm["X_embedding_game"], session.snapshot.embedding
    )
    with pytest.raises(DataError, match="two spaces"):
        tl.map_onto_reference(adata.copy(), adata)


def test_in_a_movie_cells_around_are_of_the_same_frame(tmp_path):
    rng = np.random.default_rng(0)
    well, track, time = (one.ravel() for one in np.mgrid[:2, :12, :9])
    n = len(track)
    frame = pd.DataFrame({f"m{i}": rng.random(n) for i in range(4)})
    frame["track_id"], frame["Time"], frame["well"] = track, time, 1 + well
    # Cells stay where they are: the nearest rows are the same cell at other times.
    x, y = rng.uniform(0, 100, (2, 12))
    frame["x"], frame["y"] = x[track] + 0.01 * time, y[track] + 0.02 * well
    frame["kind"] = np.where(track % 2, "odd", "even")
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "movie.csv", index=False)
    session = open_session(tmp_path / "movie.csv")
    dataset, kinds = session.dataset, session.dataset.obs["kind"]
    assert dataset.tissue.section_column == ""
    assert find_section_columns(dataset) == ["well", "Time"]
    found = make_neighborhood_job(dataset, pd.Categorical(kinds), 2)()
    at = dataset.obs.reset_index(drop=True)
    counts = pd.DataFrame(0, ["even", "odd"], ["even", "odd"])
    for _, part in at.groupby(["well", "Time"], observed=True):
        for i, cell in part.iterrows():
            near = np.hypot(part["x"] - cell["x"], part["y"] - cell["y"]).drop(i)
            for j in near.sort_values(kind="stable").index[:2]:
                counts.loc[cell["kind"], at.loc[j, "kind"]] += 1
    np.testing.assert_array_equal(found.counts, counts)
    adata = read(tmp_path / "movie.csv")
    table = tl.neighborhoods(
        adata, "kind", n_neighbors=2, section_key=find_section_columns(dataset)
    )
    np.testing.assert_array_equal(table["counts"], found.counts.ravel())
    session.settings.second_space = TISSUE
    play(session)
    write_code(MapTree(session).to_saved_session(), tmp_path / "map.ipynb")
    text = (tmp_path / "map.ipynb").read_text()
    assert "section_key=['well', 'Time']" in text.replace('\\"', "'")


def test_neighborhoods_of_an_anndata(path):
    adata = read(path)
    table = tl.neighborhoods(adata, "type", section_key="section", n_permutations=99)
    assert [*table["around"]] == ["B", "B", "T", "T"]
    assert table["counts"].sum() == 119 * 6  # one cell has no position
    assert table["p"].min() >= 0.01
    adata.obsm["wide"] = np.zeros((adata.n_obs, 4))
    whole = tl.neighborhoods(adata, "type", radius=0.5, n_neighbors=20)
    assert whole["counts"].sum() < 119 * 20
    for wrong, words in (
        ({"cluster_key": "no"}, "no column 'no'"),
        ({"section_key": "no"}, "no column 'no'"),
        ({"spatial_key": "no"}, "no positions"),
        ({"spatial_key": "wide"}, "has 4 columns"),
        ({"radius": 0}, "radius above 0"),
    ):
        with pytest.raises((ValueError, DataError), match=words):
            tl.neighborhoods(adata, **{"cluster_key": "type", **wrong})
