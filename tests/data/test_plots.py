"""Plots as files whose letters stay letters, each alone."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from napari_embedding_game.data.export.plots import (
    SIZE_EXPONENT,
    DotPlot,
    ExpressionPlot,
    MapPlot,
    PlatePlot,
    PointColors,
    SharesPlot,
    ViolinPlot,
    VolcanoPlot,
    clip_changes_to_axis,
    draw,
    make_paint_order,
    project_to_plane,
    write_plot,
)

SCALE = np.linspace([0, 0, 0, 1], [1, 1, 0, 1], 8)


@pytest.fixture
def clusters():
    codes = np.arange(60) % 3
    places = np.random.default_rng(0).normal(size=(60, 2)) + 5 * codes[:, None]
    names = ["T cells", "B cells", "_$odd"]
    levels = pd.Categorical.from_codes(codes, names)
    return MapPlot(
        embedding=places,
        colors=PointColors(np.eye(4)[codes] + [0, 0, 0, 1], "Cluster", levels),
        title="Clusters",
        names=(("T cells", np.zeros(2)), ("B cells", np.array([0.1, 0.0]))),
    )


@pytest.fixture
def volcano():
    return VolcanoPlot(
        names=np.array(["UP1", "FLAT", "NONE", "DOWN1"], object),
        changes=np.array([3.0, 0.1, np.nan, -4.0]),
        p_values=np.array([1e-20, 0.9, 1e-9, 0.0]),
        title="B cells against all the rest",
    )


def plot_of(kind="dots"):
    parts = {
        "genes": ("CD3D", "MS4A1", "a$b"),
        "groups": ("T cells", "B cells"),
        "values": np.array([[0, 1, 0.5], [1, 0, 0.25]]),
        "scale": np.linspace([0, 0, 0, 1], [1, 1, 1, 1], 256),
        "limits": (0.0, 1.0),
        "title": "Scaled mean",
    }
    if kind == "heatmap":
        return ExpressionPlot(**parts)
    if kind == "violins":
        densities = np.zeros((2, 3, 8))
        densities[0, :, 2], densities[1, :2, 6] = 0.5, 1.0
        spans = np.array([[0, 1], [0, 0.5], [0, 1]])
        return ViolinPlot(**parts, densities=densities, spans=spans)
    shares = np.array([[0.25, 1.0, 0.0], [1.0, 0.5, 0.04]])
    return DotPlot(**parts, shares=shares)


def test_a_violin_is_widest_at_the_most_frequent_value_and_has_the_colour_of_the_mean():
    plot = plot_of("violins")
    (axes,) = [axes for axes in draw(plot).axes if axes.get_ylim() == (2.5, -0.5)]
    (drawn,) = axes.collections
    violins, colors = [x.vertices for x in drawn.get_paths()], drawn.get_facecolor()
    assert len(violins) == 5  # nothing is drawn of a group without values
    np.testing.assert_allclose(colors[:, 0], [0, 1, 1, 0, 0.5], atol=0.01)
    for vertices, gene, group, share, height in (
        (violins[0], 0, 0, 2 / 7, 0.9),
        (violins[1], 0, 1, 6 / 7, 0.9),
        (violins[3], 1, 1, 6 / 7, 0.45),
    ):
        widest = vertices[vertices[:, 0].argmax()]
        np.testing.assert_allclose(widest[0], group + 0.45)
        np.testing.assert_allclose(widest[1], gene + 0.45 - height * share)
        assert vertices[:, 0].min() >= group - 0.451


def test_a_heatmap_has_the_colour_of_each_mean_in_its_row_and_column():
    (image,) = [axes.images for axes in draw(plot_of("heatmap")).axes if axes.images]
    colors = image[0].get_array()[..., 0]
    np.testing.assert_allclose(colors, plot_of().values.T, atol=0.01)


def test_the_last_group_of_a_file_does_not_cover_the_others():
    places = np.zeros((300, 2))
    _, rows = project_to_plane(places, np.eye(2, 3))
    assert 120 < rows[:150][rows[:150] < 150].size * 2 < 180
    assert sorted(rows) == list(range(300))
    np.testing.assert_array_equal(rows, make_paint_order(300))


def test_rows_without_a_level_are_not_those_called_missing(clusters):
    levels = pd.Categorical.from_codes([0, 1, -1], ["missing", "T"])
    colors = PointColors(np.eye(4)[:3], "Cluster", levels)
    plot = replace(clusters, embedding=np.zeros((3, 2)), colors=colors)
    names = [name for name, _ in plot.make_legend_entries()]
    assert names == ["missing (1)", "T (1)", "(missing) (1)"]


def texts_in(path):
    return {
        t.strip() for t in re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    }


def test_names_of_genes_whose_p_is_0_stand_apart_below_their_row():
    changes = np.append(np.linspace(4, 5, 8), np.linspace(-5, -4, 8))
    names = np.array([f"GENE{n}" for n in range(16)], object)
    plot = VolcanoPlot(names=names, changes=changes, p_values=np.zeros(16))
    (axes,) = draw(plot).axes
    boxes = [text.get_window_extent() for text in axes.texts]
    row = axes.transData.transform((0, 300))[1]
    assert len(boxes) == 16
    assert max(box.y1 for box in boxes) < row
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_names_of_genes_stand_where_they_cover_no_other_gene():
    names, changes = np.array(["GENE", "other"], object), np.array([1.5, 1.6])
    plot = VolcanoPlot(names=names, changes=changes, p_values=np.array([1e-4, 1e-4]))
    (axes,) = draw(plot).axes
    pixels = axes.transData.transform(plot.compute_gene_positions())
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 2
    assert not any(box.contains(*pixel) for box in boxes for pixel in pixels)


@pytest.mark.parametrize("ending", [".pdf", ".svg", ".png"])
def test_the_letters_of_a_plot_stay_letters(volcano, tmp_path, ending):
    first, again = tmp_path / f"plot{ending}", tmp_path / f"again{ending}"
    for plot, words in (
        (volcano, {"UP1", "DOWN1", "log2 fold change", volcano.title}),
        (plot_of(), {"CD3D", "T cells", "a$b", "Scaled mean"}),
        (plot_of("heatmap"), {"CD3D", "T cells", "a$b", "Scaled mean"}),
        (plot_of("violins"), {"CD3D", "T cells", "a$b", "Scaled mean"}),
    ):
        write_plot(plot, first)
        write_plot(plot, again)
        written = first.read_bytes()
        assert written == again.read_bytes()
        if ending == ".svg":
            assert words <= texts_in(first)
            assert "FLAT" not in texts_in(first)
        elif ending == ".pdf":
            assert b"/FontFile2" in written  # TrueType, which is fonttype 42
            assert b"/Subtype /Type3" not in written
        else:
            assert written.startswith(b"\x89PNG")


def test_dots_have_the_size_of_the_share_and_the_colour_of_the_value():
    plot = plot_of()
    axes = draw(plot).axes[0]
    dots, _ = axes.collections
    area = dots.get_widths() ** 2
    shares = plot.shares.T.ravel() ** SIZE_EXPONENT
    np.testing.assert_allclose(area / area.max(), shares)
    red = dots.get_facecolors()[:, 0]
    np.testing.assert_allclose(red, plot.values.T.ravel(), atol=1 / 255)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["CD3D", "MS4A1", r"a\$b"]
    assert axes.yaxis_inverted()  # the first gene on top


def plate(**more):
    rgba = np.array([[1, 0, 0, 1], [0, 0, 1, 1]], np.float32)
    wells = ((0, 0), (2, 3))
    title = "Share $of$ 1"
    return PlatePlot(shape=(3, 4), wells=wells, rgba=rgba, title=title, **more)


def test_wells_stand_where_they_are_on_the_plate(tmp_path):
    how = {"limits": (0, 0.5), "is_share": True, "chosen": ((2, 3),)}
    figure = draw(plate(scale=SCALE, **how))
    axes, bar = figure.axes
    empty, measured, ringed = axes.collections
    assert ringed.get_offsets().tolist() == [[3, 2]]
    assert len(empty.get_offsets()) == 12
    assert measured.get_offsets().tolist() == [[0, 0], [3, 2]]
    assert axes.yaxis_inverted()  # row A is above
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["A", "B", "C"]
    figure.canvas.draw()
    assert bar.get_xticklabels()[0].get_text() == "0%"
    how["limits"] = 0, 0.008  # a rare cluster
    figure = draw(plate(scale=SCALE, **how))
    figure.canvas.draw()
    ticks = [tick.get_text() for tick in figure.axes[1].get_xticklabels()]
    assert len({*ticks}) == len(ticks)
    write_plot(plate(scale=SCALE, plate="plate $7$"), tmp_path / "plate.svg")
    assert {"Share $of$ 1", "plate $7$"} <= texts_in(tmp_path / "plate.svg")


def test_names_that_would_cover_each_other_are_moved(clusters):
    figure = draw(clusters)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])


USUAL = np.linspace(-1.5, 1.5, 1_000)


@pytest.mark.parametrize(
    ("change", "p", "drawn"),
    [
        (30.0, 1.0, 2.0),  # in no cell of the other group, and not sure
        (-30.0, 1.0, -2.0),
        (5.0, 1e-9, 5.0),  # all that is sure has its place
        (30.0, 1e-9, 10.0),
        (np.nan, 1.0, np.nan),
    ],
)
def test_a_gene_without_bound_squeezes_no_others(change, p, drawn):
    found = clip_changes_to_axis(np.append(USUAL, change), np.append(np.ones(1_000), p))
    np.testing.assert_array_equal(found[:-1], USUAL)
    np.testing.assert_array_equal(found[-1], drawn)


def test_the_legend_of_shares_is_read_row_by_row():
    names = tuple("ABCDEFGH")
    shares = np.full((2, 8), 1 / 8)
    plot = SharesPlot(
        title="",
        groups=names,
        rgba=np.tile(np.linspace(0, 1, 8)[:, None], 4),
        shares=shares,
        samples=("one", "two"),
        is_first=np.array([True, False]),
        levels=("ill", "well"),
    )
    figure = draw(plot)
    texts = figure.legends[0].get_texts()
    boxes = [text.get_window_extent() for text in texts]
    order = sorted(range(8), key=lambda x: (-round(boxes[x].y0), boxes[x].x0))
    assert [texts[x].get_text().strip() for x in order] == list(names)
