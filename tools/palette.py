"""The colours of a small picture of the window."""

from __future__ import annotations

from PIL import Image

COLORS, N_EXACT = 255, 128
"""Colours of a picture, and those of them that are its most frequent ones."""


def palette_of(picture: Image.Image) -> Image.Image:
    """Return a palette in which buttons and texts have their colours exactly.

    The rest of it is for colours that are rare, as those of points are.

    Parameters
    ----------
    picture : Image
        In RGB.

    Returns
    -------
    Image
        For ``Image.quantize(palette=...)``.
    """
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    exact = [channel for _, color in counted[:N_EXACT] for channel in color]
    n_others = COLORS - len(exact) // 3
    others = picture.quantize(n_others, Image.Quantize.MAXCOVERAGE).getpalette()
    palette = Image.new("P", (1, 1))
    palette.putpalette(exact + others[: 3 * n_others])
    return palette


def in_few_colors(picture: Image.Image, palette: Image.Image) -> Image.Image:
    """Return a picture that has the colours of a palette only."""
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)
