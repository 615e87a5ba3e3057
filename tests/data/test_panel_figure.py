"""Figures of several panels: letters, places, and points as shapes or pictures."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.expression_figure import ExpressionPlot
from napari_embedding_game.data.export.figure import Levels, PointColors
from napari_embedding_game.data.export.panel_figure import (
    MapPanel,
    PageSettings,
    caption_of,
    draw_panels,
    write_panels,
)
from napari_embedding_game.data.export.volcano_figure import VolcanoPlot, write_volcano

SCALE = np.linspace([0, 0, 0, 1], [1, 1, 0, 1], 8)
PAGE = PageSettings()


@pytest.fixture
def clusters():
    codes = np.arange(60) % 3
    places = np.random.default_rng(0).normal(size=(60, 2)) + 5 * codes[:, None]
    levels = Levels(("T cells", "B cells", "_$odd"), codes)
    return MapPanel(
        embedding=places,
        colors=PointColors(np.eye(4)[codes] + [0, 0, 0, 1], "Cluster", levels),
        title="Clusters",
        names=(("T cells", 0.0, 0.0), ("B cells", 0.1, 0.0)),
    )


@pytest.fixture
def gene(clusters):
    rgba = SCALE[np.arange(60) % 8]
    colors = PointColors(rgba, "ISG15", scale=SCALE, limits=(0.0, 2.5))
    return replace(clusters, colors=colors, title="ISG15", names=())


@pytest.fixture
def volcano():
    return VolcanoPlot(
        names=np.array(["UP1", "FLAT", "NONE", "DOWN1"], object),
        changes=np.array([3.0, 0.1, np.nan, -4.0]),
        p_values=np.array([1e-20, 0.9, 1e-9, 0.0]),
        title="B cells against all the rest",
    )


@pytest.fixture
def dots():
    return ExpressionPlot(
        kind="dots",
        genes=("CD3D", "MS4A1"),
        groups=("T cells", "B cells"),
        values=np.eye(2),
        shares=np.eye(2),
        cells=(),
        scale=SCALE,
        limits=(0.0, 1.0),
        title="Scaled mean",
    )


@pytest.fixture
def panels(clusters, gene, volcano, dots):
    groups = replace(clusters, names=(), title="kind")
    return [clusters, groups, gene, volcano, dots]


def test_letters_stay_letters_in_an_svg(panels, tmp_path):
    path = tmp_path / "figure.svg"
    write_panels(panels, replace(PAGE, caption=caption_of(panels)), path)
    drawn = path.read_text()
    texts = set(re.findall(r"<text[^>]*>([^<]*)</text>", drawn))
    assert {"a", "b", "c", "d", "e", "ISG15", "T cells", "CD3D", "UP1"} <= texts
    assert "_$odd" in {text.strip() for text in texts}
    assert any(text.startswith("a, Clusters (60 points). b, kind") for text in texts)
    assert "<image" not in drawn.split("ISG15")[0]  # few points are shapes
    again = tmp_path / "again.svg"
    write_panels(panels, replace(PAGE, caption=caption_of(panels)), again)
    assert again.read_bytes() == path.read_bytes()


def test_a_pdf_has_its_letters_in_a_font_that_can_be_edited(panels, tmp_path):
    path = tmp_path / "figure.pdf"
    write_panels(panels, PAGE, path)
    written = path.read_bytes()
    assert written.startswith(b"%PDF")
    assert b"/FontFile2" in written  # TrueType, and not the outlines of Type 3
    assert b"/Type3" not in written


def test_many_points_are_one_picture(gene, tmp_path):
    sizes = {}
    for most in (59, 60):
        path = tmp_path / f"{most}.svg"
        write_panels([gene], replace(PAGE, most_vector=most), path)
        drawn = path.read_text()
        sizes[most] = drawn.count("<image"), len(re.findall("<use ", drawn))
    assert sizes[59][0] == sizes[60][0] + 1
    assert sizes[60][1] >= sizes[59][1] + 60


@pytest.mark.parametrize("width", [89.0, 183.0])
def test_the_page_has_its_width_and_nothing_is_cut_off(panels, width):
    page = replace(PAGE, width=width, caption=caption_of(panels))
    figure = draw_panels(panels, page)
    assert figure.get_size_inches()[0] * 25.4 == pytest.approx(width)
    box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    assert box.x0 >= -0.01
    assert box.y0 >= -0.01
    assert box.x1 <= wide + 0.01
    assert box.y1 <= high + 0.01


def test_maps_have_one_scale(clusters, gene):
    half = replace(gene, embedding=clusters.embedding / 2)
    figure = draw_panels([clusters, half], PAGE)
    first, second = figure.axes[:2]
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    one, other = first.get_position(), second.get_position()
    assert one.width == pytest.approx(other.width)
    assert one.height == pytest.approx(other.height)


def test_names_that_would_cover_each_other_are_moved(clusters):
    figure = draw_panels([clusters], PAGE)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])


def test_one_panel_has_no_letter(gene):
    texts = [text.get_text() for text in draw_panels([gene], PAGE).texts]
    assert texts == ["ISG15"]
    assert caption_of([gene]).startswith("ISG15 of 60 points, colours from 0 to 2.5")


def test_no_panel_is_told():
    with pytest.raises(DataError, match="at least one panel"):
        draw_panels([], PAGE)


@pytest.mark.parametrize("ending", [".pdf", ".svg", ".png"])
def test_a_volcano_plot_is_written(volcano, tmp_path, ending):
    path = tmp_path / f"volcano{ending}"
    write_volcano(volcano, path)
    assert path.stat().st_size > 1_000
    if ending == ".svg":
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
        assert {"UP1", "DOWN1", "log2 fold change"} <= set(texts)
        assert "FLAT" not in texts
        assert volcano.title in texts
