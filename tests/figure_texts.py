"""What is painted in a figure of matplotlib, as lines of text."""

import numpy as np

from approved import number, numbers


def figure_lines(figure):
    """Return lines of what is painted in a figure of matplotlib, in data coordinates.

    What is laid out by the size of letters is not told: another font has another.
    """
    lines = []
    for axes in figure.axes:
        x, y = axes.get_xlim(), axes.get_ylim()
        lines.append(f"axes {numbers(x)} x {numbers(y)}, {axes.get_aspect()}")
        lines.append(f"  scales {axes.get_xscale()}, {axes.get_yscale()}")
        said = axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
        lines.append(f"  {' | '.join(map(repr, said))}")
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [label.get_text() for label in axis.get_ticklabels()]
            lines.append(f"  ticks {ticks} {axis.get_ticks_position()}")
        shown = [name for name, spine in axes.spines.items() if spine.get_visible()]
        lines.append(f"  spines {shown}, frame {axes.axison}")
        bars = []
        for artist in axes.get_children():
            if type(artist).__name__ == "Rectangle" and artist is not axes.patch:
                bars.append(artist)
            else:
                lines += [f"  {line}" for line in _artist_lines(artist)]
        if bars:
            boxes = [bar.get_bbox().bounds for bar in bars if bar.get_visible()]
            colors = sorted({_hex(bar.get_facecolor()) for bar in bars})
            lines.append(f"  {len(boxes)} bars {numbers(boxes, n=12)} {colors}")
    return lines


def _artist_lines(artist):
    from matplotlib.collections import Collection
    from matplotlib.image import AxesImage
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

    look = f"above {number(artist.get_zorder())}, clipped {artist.get_clip_on()}"
    if isinstance(artist, Legend):
        yield f"Legend {artist.get_title().get_text()!r}"
        for text, handle in zip(artist.texts, artist.legend_handles, strict=True):
            color = handle.get_facecolor() if hasattr(handle, "get_facecolor") else ""
            yield f"  {text.get_text()!r} {_hex(color)}"
    elif isinstance(artist, Text):
        if artist.get_text():
            font = artist.get_fontproperties()
            yield (
                f"Text {artist.get_text()!r} {_hex(artist.get_color())} "
                f"{number(font.get_size())} {font.get_weight()} {font.get_style()} "
                f"{artist.get_ha()} {artist.get_va()} {number(artist.get_rotation())}"
            )
    elif isinstance(artist, Line2D):
        ends = [numbers(part) for part in artist.get_data()]
        yield (
            f"Line {' '.join(ends)} {_hex(artist.get_color())} "
            f"{number(artist.get_linewidth())} {artist.get_linestyle()} "
            f"{artist.get_marker()} {number(artist.get_markersize())}"
        )
    elif isinstance(artist, AxesImage):
        pixels = artist.get_array()
        yield f"Image {pixels.shape} {numbers(pixels.ravel())} {artist.get_extent()}"
    elif isinstance(artist, Collection):
        yield f"{type(artist).__name__} {look}, rasterized {artist.get_rasterized()}"
        parts = {
            "at": artist.get_offsets(),
            "colours": artist.get_facecolor(),
            "edges": artist.get_edgecolor(),
            "lines": artist.get_linewidth(),
        }
        if hasattr(artist, "get_sizes"):
            parts["sizes"] = artist.get_sizes()
        if hasattr(artist, "_widths"):
            parts["diameters"] = artist._widths
        parts["paths"] = [path.vertices for path in artist.get_paths()]
        for name, values in parts.items():
            whole = [np.ravel(one) for one in values] if name == "paths" else [values]
            flat = np.concatenate([np.ravel(one) for one in whole] or [[]])
            shape = f"{len(flat)}"
            yield f"  {name} {shape}: {numbers(flat)}"
    elif isinstance(artist, Rectangle) and artist.get_visible():
        box = artist.get_bbox().bounds
        yield f"Rectangle {numbers(box)} {_hex(artist.get_facecolor())} {look}"
    elif type(artist).__name__ not in ("Spine", "XAxis", "YAxis"):
        yield f"{type(artist).__name__} {look}"


def _hex(color):
    from matplotlib.colors import to_hex

    return to_hex(color, keep_alpha=True) if len(color) else ""
