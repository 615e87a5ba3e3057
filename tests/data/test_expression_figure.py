"""Dot plot, matrix plot and heat map as files whose text stays text."""

import numpy as np
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.expression_figure import (
    SIZE_EXPONENT,
    ExpressionPlot,
    draw_expression,
    write_expression,
)


def plot_of(kind="dots"):
    shares = np.array([[0.25, 1.0, 0.0], [1.0, 0.5, 0.04]])
    return ExpressionPlot(
        kind=kind,
        genes=("CD3D", "MS4A1", "a$b"),
        groups=("T cells", "B cells"),
        values=np.array([[0, 1, 0.5], [1, 0, 0.25]]),
        shares=shares,
        cells=(np.zeros((4, 3)), np.ones((2, 3))),
        scale=np.linspace([0, 0, 0, 1], [1, 1, 1, 1], 256),
        limits=(0.0, 1.0),
        title="Scaled mean",
    )


def test_dots_have_the_size_of_the_share_and_the_colour_of_the_value():
    axes = draw_expression(plot_of()).axes[0]
    (dots,) = axes.collections
    area = dots.get_sizes() / dots.get_sizes().max()
    np.testing.assert_allclose(area, plot_of().shares.ravel() ** SIZE_EXPONENT)
    np.testing.assert_allclose(
        dots.get_facecolors()[:, 0], plot_of().values.ravel(), atol=1 / 255
    )
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "T cells",
        "B cells",
    ]
    assert axes.yaxis_inverted()  # the first cluster on top


@pytest.mark.parametrize(("kind", "heights"), [("matrix", (1, 1)), ("cells", (4, 2))])
def test_a_picture_for_each_group(kind, heights):
    axes = draw_expression(plot_of(kind)).axes[0]
    assert tuple(image.get_array().shape[0] for image in axes.images) == heights


@pytest.mark.parametrize("kind", ["dots", "matrix", "cells"])
def test_the_text_of_an_svg_stays_text(tmp_path, kind):
    path = tmp_path / "figure.svg"
    write_expression(plot_of(kind), path)
    drawn = path.read_text()
    for word in ("CD3D", "T cells", "a$b", "Scaled mean"):
        assert f">{word}</text>" in drawn
    write_expression(plot_of(kind), tmp_path / "again.svg")
    assert drawn == (tmp_path / "again.svg").read_text()


def test_the_letters_of_a_pdf_are_of_a_font_that_can_be_edited(tmp_path):
    path = tmp_path / "figure.pdf"
    write_expression(plot_of(), path)
    assert b"/FontFile2" in path.read_bytes()  # TrueType, which is fonttype 42
    assert b"/Subtype /Type3" not in path.read_bytes()


def test_a_picture_of_pixels(tmp_path):
    write_expression(plot_of(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"end its name in \.pdf, \.svg or \.png"):
        write_expression(plot_of(), tmp_path / "figure.doc")
