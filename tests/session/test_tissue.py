"""Where cells lie in tissue: sections, groups of a column, pictures, rows left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.samples import tissue as simulate_tissue
from napari_embedding_game.data.tissue import Tissue, TissueImage
from napari_embedding_game.session.tissue import arrange_tissue, estimate_spacing
from worlds import play, session_of

N = 40


def in_sections(apart=0.0, image=None):
    """Cells of two sections in turn, the second so far to the right; 2 are nowhere."""
    rng = np.random.default_rng(0)
    places = rng.uniform([100, 50], [400, 250], (N, 2)).astype(np.float32)
    places[1::2, 0] += apart
    places[[3, 8]] = np.nan
    obs = pd.DataFrame({"slide": pd.Categorical(["one", "two"] * (N // 2))})
    obs["kind"] = pd.Categorical(["B", "B", "T", "T"] * (N // 4))
    images = {} if image is None else {"two": image}
    return Tissue(places, "µm", "obsm['spatial']", "slide", images), obs


def test_sections_that_overlap_lie_in_panels_with_their_pictures():
    picture = TissueImage(
        np.zeros((30, 20), np.uint8), np.array([40.0, 20]), np.zeros(2)
    )
    tissue, obs = in_sections(image=picture)
    found = arrange_tissue(tissue, obs)
    assert found.panels.captions == (("one", "19"), ("two", "19"))
    raw = tissue.positions * [1, -1]
    moved = found.positions - raw
    np.testing.assert_allclose(
        moved[::2], np.where(np.isnan(raw), raw, 0)[::2], atol=1e-3
    )
    (shift,) = found.image_shifts.values()  # the picture goes where its section goes
    known = np.isfinite(moved[1::2, 0])
    np.testing.assert_allclose(
        moved[1::2][known], np.tile(shift, (known.sum(), 1)), atol=1e-2
    )
    # The picture of the second section, 800 wide, does not reach the first section.
    left = picture.origin[0] - 20 + shift[0]
    assert left > np.nanmax(found.positions[::2, 0])
    assert np.isnan(found.positions[[3, 8]]).all()


def test_numbers_of_many_sections_are_sections():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 100, (500, 2)).astype(np.float32)
    obs = pd.DataFrame({"slide": np.arange(500) % 50})
    found = arrange_tissue(Tissue(places, "", "x, y", "slide"), obs)
    captions = [caption for caption, _ in found.panels.captions]
    assert len(captions) == 50
    shown = [captions[panel] for panel in found.panel_of_points]
    assert shown == obs["slide"].astype(str).tolist()


def test_sections_that_lie_apart_stay_until_they_are_split():
    tissue, obs = in_sections(apart=1000.0)
    found = arrange_tissue(tissue, obs)
    assert found.panels is None
    np.testing.assert_array_equal(found.positions, tissue.positions * [1, -1])
    split = arrange_tissue(tissue, obs, "slide")
    assert [name for name, _ in split.panels.captions] == ["one", "two"]
    assert np.nanmax(split.positions[1::2, 0]) < 1_000
    assert split.is_arranged_as(arrange_tissue(tissue, obs, "slide"))
    assert not split.is_arranged_as(found)


def test_each_group_of_a_column_has_all_sections():
    tissue, obs = in_sections()
    whole, split = arrange_tissue(tissue, obs), arrange_tissue(tissue, obs, "kind")
    assert split.panels.captions == (("B", "19"), ("T", "19"))
    moved = (split.positions - whole.positions)[(obs["kind"] == "T").to_numpy()]
    moved = moved[np.isfinite(moved[:, 0])]
    np.testing.assert_allclose(
        moved, np.tile(split.panels.offsets[1], (len(moved), 1)), atol=0.1
    )
    assert not split.image_shifts


@pytest.mark.parametrize("n_axes", [2, 3])
def test_the_spacing_of_cells_is_that_of_a_grid(n_axes):
    side = np.arange(30) * 7.0
    grid = np.stack(np.meshgrid(*[side] * n_axes), axis=-1).reshape(-1, n_axes)
    grid = np.vstack([grid, np.full((1, n_axes), np.nan), np.full((1, n_axes), 400)])
    assert estimate_spacing(grid) == pytest.approx(7.0, rel=0.15)
    assert estimate_spacing(np.zeros((5, n_axes))) == 1.0


def test_the_view_has_the_tissue_of_the_rows_on_the_map(engine, dataset):
    tissue, _ = in_sections()
    whole = replace(dataset, source_tissue=replace(tissue, section_column=""))
    is_kept = np.arange(N) % 3 > 0
    session, told = session_of(whole.subset(is_kept), engine), []
    view = session.view
    view.panels_changed.connect(lambda: told.append(view.tissue))
    assert view.has_tissue
    assert view.tissue is None
    play(session)
    session.look.show = "tissue"
    first = view.tissue
    np.testing.assert_array_equal(first.positions, tissue.positions[is_kept] * [1, -1])
    assert not view.is_map_shown
    assert told == [first]
    session.look.split_by = "kind"
    assert told[1:] == [view.tissue]
    session.look.split_by = ""
    session.add_columns(Dataset.with_map_column, "score", np.ones(len(first.positions)))
    assert view.tissue is told[-1]  # another column moves no cell
    session.load(dataset)
    assert not view.has_tissue
    assert view.tissue is None
    assert view.is_map_shown  # whatever was looked at


def test_the_simulated_tissue_is_the_same_each_time():
    cells, again = simulate_tissue(), simulate_tissue()
    np.testing.assert_array_equal(cells.X, again.X)
    np.testing.assert_array_equal(cells.tissue.positions, again.tissue.positions)
    share = pd.crosstab(cells.obs["domain"], cells.obs["cell_type"], normalize="index")
    assert share.loc["follicle"].idxmax() == "B cell"
    assert share.loc["tumour"].idxmax() == "Tumour"
    assert arrange_tissue(cells.tissue, cells.obs).spacing == pytest.approx(12, rel=0.1)
