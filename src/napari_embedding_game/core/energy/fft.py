"""Fourier transforms of real grids whose bits are the same on every processor.

Stockham's algorithm with radix 4, 2, 3 and 5 over ``WIDTH`` lines at a time, side by
side in vectors; each number is a sum in one order.  Two real lines are the real and the
imaginary part of one complex line.  A spectrum is an array
(2, rows, layers, columns // 2 + 1): real parts, imaginary parts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import cos
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import load, spread, store
from napari_embedding_game.core.threads import LOOP, run_blocks

WIDTH = 16
"""Lines that are transformed side by side."""
_LANES = 8
"""Numbers in a vector; it divides ``WIDTH``, and changes no bit."""
_STEPS = 32
"""What a number costs, in pairs of points."""
_INSIDE: dict[str, Any] = {"forceinline": True, **LOOP}
Real = NDArray[np.floating]


@cache
def _factors(n: int) -> tuple[int, ...]:
    """Return the factors 4, 2, 3 and 5 of a length that has no others."""
    factors = []
    for p in (4, 2, 3, 5):
        while n % p == 0 and n > 1:
            factors.append(p)
            n //= p
    return tuple(factors)


@cache
def _turns(n: int, dtype: np.dtype[np.floating]) -> tuple[Any, Real]:
    """Return the factors of n, and cosines and sines of -2 pi j / n, (2, n)."""
    quarters = 4 * np.arange(n)
    angles = np.stack(
        [(part + 2 * n) % (4 * n) - 2 * n for part in (quarters, quarters + n)]
    )
    turns = np.asarray(cos(np.pi / (2 * n) * angles), dtype)
    return np.array(_factors(n), np.int64), turns


# A complex number is a pair of lanes.  Each ``radix`` of them, ``step`` apart, become
# others: the sums over j of x_j exp(-2 pi i j k / radix), turned, ``count`` apart.


def _cos(angle: int, radix: int) -> float:
    return float(cos(2 * np.pi * angle / radix))


def _sin(angle: int, radix: int) -> float:
    part = (4 * angle + radix) % (4 * radix) - 2 * radix  # a quarter less
    return float(cos(np.pi * part / (2 * radix)))


_COS = _cos(1, 3), _cos(1, 5), _cos(2, 5)
_SIN = _sin(1, 3), _sin(1, 5), _sin(2, 5), _sin(-1, 5)


@njit(**_INSIDE)
def _get(source, at, zero):
    return load(source, (0, at), zero), load(source, (1, at), zero)


@njit(**_INSIDE)
def _put(target, at, number):
    store(number[0], target, (0, at))
    store(number[1], target, (1, at))


@njit(**_INSIDE)
def _turned(number, turns, at):
    (re, im), c, s = number, turns[0, at], turns[1, at]
    return re * c - im * s, re * s + im * c


@njit(**_INSIDE)
def _times(number, factor):
    return number[0] * factor, number[1] * factor


@njit(**_INSIDE)
def _both(a, b):
    """Return the sum and the difference of two numbers."""
    total = a[0] + b[0], a[1] + b[1]
    return total, (a[0] - b[0], a[1] - b[1])


@njit(**_INSIDE)
def _aside(a, b):
    """Return one - i other, and one + i other."""
    less = a[0] + b[1], a[1] - b[0]
    return less, (a[0] - b[1], a[1] + b[0])


@njit(**_INSIDE)
def _of_2(source, target, begin, step, end, count, turns, at, zero):
    x0, x1 = _get(source, begin, zero), _get(source, begin + step, zero)
    y0, y1 = _both(x0, x1)
    _put(target, end, y0)
    _put(target, end + count, _turned(y1, turns, at))


@njit(**_INSIDE)
def _of_3(source, target, begin, step, end, count, turns, at, zero):
    kind = turns.dtype.type
    x0, x1 = _get(source, begin, zero), _get(source, begin + step, zero)
    total, difference = _both(x1, _get(source, begin + 2 * step, zero))
    level, _ = _both(x0, _times(total, kind(_COS[0])))
    y1, y2 = _aside(level, _times(difference, kind(_SIN[0])))
    _put(target, end, _both(x0, total)[0])
    _put(target, end + count, _turned(y1, turns, at))
    _put(target, end + 2 * count, _turned(y2, turns, 2 * at))


@njit(**_INSIDE)
def _of_4(source, target, begin, step, end, count, turns, at, zero):
    x0, x1 = _get(source, begin, zero), _get(source, begin + step, zero)
    even, difference = _both(x0, _get(source, begin + 2 * step, zero))
    odd, aside = _both(x1, _get(source, begin + 3 * step, zero))
    y0, y2 = _both(even, odd)
    y1, y3 = _aside(difference, aside)
    _put(target, end, y0)
    _put(target, end + count, _turned(y1, turns, at))
    _put(target, end + 2 * count, _turned(y2, turns, 2 * at))
    _put(target, end + 3 * count, _turned(y3, turns, 3 * at))


@njit(**_INSIDE)
def _of_5(source, target, begin, step, end, count, turns, at, zero):
    kind = turns.dtype.type
    c1, c2 = kind(_COS[1]), kind(_COS[2])
    s1, s2, back = kind(_SIN[1]), kind(_SIN[2]), kind(_SIN[3])
    x0, x1 = _get(source, begin, zero), _get(source, begin + step, zero)
    x2 = _get(source, begin + 2 * step, zero)
    outer, difference = _both(x1, _get(source, begin + 4 * step, zero))
    inner, aside = _both(x2, _get(source, begin + 3 * step, zero))
    level, _ = _both(_both(x0, _times(outer, c1))[0], _times(inner, c2))
    y1, y4 = _aside(level, _both(_times(difference, s1), _times(aside, s2))[0])
    level, _ = _both(_both(x0, _times(outer, c2))[0], _times(inner, c1))
    y2, y3 = _aside(level, _both(_times(difference, s2), _times(aside, back))[0])
    _put(target, end, _both(_both(x0, outer)[0], inner)[0])
    _put(target, end + count, _turned(y1, turns, at))
    _put(target, end + 2 * count, _turned(y2, turns, 2 * at))
    _put(target, end + 3 * count, _turned(y3, turns, 3 * at))
    _put(target, end + 4 * count, _turned(y4, turns, 4 * at))


@njit(**LOOP)
def _transform(a, b, n, factors, turns):
    """Transform ``WIDTH`` lines of n numbers, (2, n WIDTH); return where they are."""
    stride, length, zero = 1, n, spread(a.dtype.type(0), _LANES)
    for radix in factors:
        m = length // radix
        count = stride * WIDTH
        step, turn = m * count, n // length
        for j in range(m):
            at = j * turn
            for lane in range(0, count, _LANES):
                begin, end = j * count + lane, radix * j * count + lane
                if radix == 4:
                    _of_4(a, b, begin, step, end, count, turns, at, zero)
                elif radix == 2:
                    _of_2(a, b, begin, step, end, count, turns, at, zero)
                elif radix == 3:
                    _of_3(a, b, begin, step, end, count, turns, at, zero)
                else:
                    _of_5(a, b, begin, step, end, count, turns, at, zero)
        a, b = b, a
        stride *= radix
        length = m
    return a


@njit(**LOOP)
def _lines(begin, end, planes, is_back, factors, turns):
    """Transform some lines along the third axis of (2, outer, n, inner), in place."""
    _, _, n, inner = planes.shape
    n_lines = planes.shape[1] * inner
    a = np.zeros((2, n * WIDTH), planes.dtype)
    b = np.empty_like(a)
    re, im = (1, 0) if is_back else (0, 1)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            outer, column = (first + at) // inner, (first + at) % inner
            for i in range(n):
                for part in range(2):
                    number = planes[part, outer, i, column]
                    a[re if part == 0 else im, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            continue
        lines = _transform(a, b, n, factors, turns)
        for at in range(width):
            outer, column = (first + at) // inner, (first + at) % inner
            for i in range(n):
                planes[0, outer, i, column] = lines[re, i * WIDTH + at]
                planes[1, outer, i, column] = lines[im, i * WIDTH + at]


@njit(**LOOP)
def _convolve_lines(begin, end, planes, transfer, factors, turns):
    """Convolve some lines along the second axis of (2, R, inner), in place.

    ``transfer`` (n, inner): what their Fourier transforms are multiplied by; rows from
    R to n count as 0.
    """
    _, n_rows, inner = planes.shape
    n = len(transfer)
    a = np.zeros((2, n * WIDTH), planes.dtype)
    b = np.empty_like(a)
    for first in range(begin * WIDTH, min(end * WIDTH, inner), WIDTH):
        width = min(WIDTH, inner - first)
        for part in range(2):
            for i in range(n_rows):
                for at in range(width):
                    a[part, i * WIDTH + at] = planes[part, i, first + at]
            a[part, n_rows * WIDTH :] = 0
        lines = _transform(a, b, n, factors, turns)
        # The way back is the way there with real and imaginary parts exchanged.
        other = a if len(factors) % 2 else b
        for part in range(2):
            for i in range(n):
                for at in range(width):
                    number = lines[part, i * WIDTH + at]
                    other[1 - part, i * WIDTH + at] = number * transfer[i, first + at]
        found = _transform(other, lines, n, factors, turns)
        for part in range(2):
            for i in range(n_rows):
                for at in range(width):
                    planes[part, i, first + at] = found[1 - part, i * WIDTH + at]


@njit(**LOOP)
def _from_real(begin, end, grid, spectrum, factors, turns):
    """Write the spectra of some pairs of rows of ``grid`` (R, C), followed by zeros."""
    (n_rows, n_columns), n = grid.shape, turns.shape[1]
    n_lines = (n_rows + 1) // 2
    zero, half = grid.dtype.type(0), grid.dtype.type(0.5)
    a = np.zeros((2, n * WIDTH), grid.dtype)
    b = np.empty_like(a)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            for part in range(2):
                row = 2 * (first + at) + part
                for i in range(n_columns):
                    number = grid[row, i] if row < n_rows else zero
                    a[part, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            spectrum[:, 2 * first : min(2 * (first + width), n_rows)] = 0
            continue
        a[:, n_columns * WIDTH :] = 0
        lines = _transform(a, b, n, factors, turns)
        for at in range(width):
            row = 2 * (first + at)
            for k in range(n // 2 + 1):
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                spectrum[0, row, k] = half * (lines[0, here] + lines[0, there])
                spectrum[1, row, k] = half * (lines[1, here] - lines[1, there])
                if row + 1 < n_rows:
                    spectrum[0, row + 1, k] = half * (lines[1, here] + lines[1, there])
                    spectrum[1, row + 1, k] = half * (lines[0, there] - lines[0, here])


@njit(**LOOP)
def _to_real(begin, end, spectrum, grid, scale, factors, turns):
    """Write the first columns of some pairs of rows of ``grid`` from their spectra."""
    (n_rows, n_columns), n = grid.shape, turns.shape[1]
    n_lines = (n_rows + 1) // 2
    a = np.zeros((2, n * WIDTH), grid.dtype)
    b = np.empty_like(a)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        for at in range(width):
            row = 2 * (first + at)
            below = min(row + 1, n_rows - 1)
            for k in range(n // 2 + 1):
                re, im = spectrum[0, row, k], spectrum[1, row, k]
                re_below, im_below = spectrum[0, below, k], spectrum[1, below, k]
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                a[1, there] = re + im_below
                a[0, there] = re_below - im
                a[1, here] = re - im_below
                a[0, here] = im + re_below
        lines = _transform(a, b, n, factors, turns)
        for at in range(width):
            for part in range(2):
                row = 2 * (first + at) + part
                if row < n_rows:
                    for i in range(n_columns):
                        grid[row, i] = scale * lines[1 - part, i * WIDTH + at]


def forward(grid: Real) -> Real:
    """Return the spectrum of a grid (rows, layers, columns), of its type.

    Sides have no factor but 2, 3 and 5, as ``scipy.fft.next_fast_len`` returns them.
    """
    rows, layers, columns = grid.shape
    spectrum = np.zeros((2, rows, layers, columns // 2 + 1), grid.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, rows * layers, -1)
    _share(_from_real, -(-len(lines) // 2), columns, lines, flat)
    _along_others(spectrum, False)
    return spectrum


def backward(spectrum: Real, columns: int, n_rows: int | None = None) -> Real:
    """Return the first rows of the grid of a spectrum, which is written over."""
    _, rows, layers, half = spectrum.shape
    _along_others(spectrum, True)
    grid = np.empty((min(n_rows or rows, rows), layers, columns), spectrum.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, -1, half)
    scale = grid.dtype.type(1 / (rows * layers * columns))
    _share(_to_real, -(-len(lines) // 2), columns, flat, lines, scale)
    return grid


def convolve(
    grid: Real, transfer: Real, n_columns: int, spectrum: Real, potential: Real
) -> None:
    """Write a grid convolved with a kernel to ``potential``, of the grid's shape.

    ``grid`` (R, layers, C) is followed by zeros along rows and columns, to as many rows
    as ``transfer`` (rows, layers, ``n_columns // 2 + 1``) has, and to ``n_columns``.
    ``spectrum`` (2, R, layers, ``n_columns // 2 + 1``) is written over.
    """
    n_rows, layers, half = transfer.shape
    lines, flat = (each.reshape(-1, grid.shape[2]) for each in (grid, potential))
    planes = spectrum.reshape(2, -1, half)
    n_pairs = -(-len(lines) // 2)
    _share(_from_real, n_pairs, n_columns, lines, planes)
    by_layer = spectrum.reshape(2, -1, layers, half)
    n_along = by_layer.shape[1] * half if layers > 1 else 0
    _share(_lines, n_along, layers, by_layer, False)
    by_row = spectrum.reshape(2, len(grid), layers * half)
    kernel = transfer.reshape(n_rows, layers * half)
    _share(_convolve_lines, layers * half, n_rows, by_row, kernel)
    _share(_lines, n_along, layers, by_layer, True)
    scale = grid.dtype.type(1 / (n_rows * layers * n_columns))
    _share(_to_real, n_pairs, n_columns, planes, flat, scale)


def _along_others(spectrum: Real, is_back: bool) -> None:
    """Transform along layers and rows, in place."""
    _, rows, layers, columns = spectrum.shape
    for n, inner in ((layers, columns), (rows, layers * columns)):
        if n > 1:
            planes = spectrum.reshape(2, -1, n, inner)
            n_lines = planes.shape[1] * inner
            _share(_lines, n_lines, n, planes, is_back)


def _share(loop: Any, n_lines: int, n: int, *arrays: Any) -> None:
    """Share lines of n numbers among threads, ``WIDTH`` at a time."""
    turns, work = _turns(n, arrays[0].dtype), _STEPS * n_lines * n
    if n_lines > 0:
        run_blocks(loop, -(-n_lines // WIDTH), work, *arrays, *turns)
