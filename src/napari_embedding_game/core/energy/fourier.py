"""Fourier transforms of real grids whose bits are the same on every processor.

Stockham's algorithm with radix 4, 2, 3 and 5 over ``WIDTH`` lines at a time, side by
side in vectors; each number is a sum in one order.  Two real lines are the real and the
imaginary part of one complex line.  A spectrum is an array
(2, rows, layers, columns // 2 + 1): real parts, imaginary parts.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return"

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import cos
from napari_embedding_game.core.lanes import Lanes, Place
from napari_embedding_game.core.threads import run_blocks

WIDTH = 16
"""Lines that are transformed side by side."""
_LANES = 8
"""Numbers in a vector; it divides ``WIDTH``, and changes no bit."""
_STEPS = 32
"""What a number costs, in pairs of points."""
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
Real = NDArray[np.floating]


def fast_length(n: int) -> int:
    """Return the least length of at least ``n`` that has no factor but 2, 3 and 5."""
    while n != np.prod(_factors(n)):
        n += 1
    return n


@cache
def _factors(n: int) -> tuple[int, ...]:
    """Return the factors 4, 2, 3 and 5 of a length; the product may be less."""
    found = []
    for p in (4, 2, 3, 5):
        while n % p == 0 and n > 1:
            found.append(p)
            n //= p
    return tuple(found)


@cache
def _turns(n: int, dtype: np.dtype[np.floating]) -> tuple[Any, Real]:
    """Return the factors of n, and cosines and sines of -2 pi j / n, (2, n)."""
    quarters = 4 * np.arange(n)
    angles = np.stack(
        [(part + 2 * n) % (4 * n) - 2 * n for part in (quarters, quarters + n)]
    )
    turns = np.asarray(cos(np.pi / (2 * n) * angles), dtype)
    return np.array(_factors(n), np.int64), turns


# --- One pass over the lines ----------------------------------------------------------


@dataclass(frozen=True)
class _Complex:
    """Complex numbers side by side while a pass is written."""

    re: Lanes
    im: Lanes

    def __add__(self, other: _Complex) -> _Complex:
        return _Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: _Complex) -> _Complex:
        return _Complex(self.re - other.re, self.im - other.im)

    def scaled(self, factor: float) -> _Complex:
        """Return the product with a real number."""
        return _Complex(self.re * factor, self.im * factor)

    def over_i(self) -> _Complex:
        """Return the product with -i."""
        return _Complex(self.im, -self.re)

    def turned(self, c: Lanes, s: Lanes) -> _Complex:
        """Return the product with c + i s."""
        return _Complex(self.re * c - self.im * s, self.re * s + self.im * c)


def _butterfly(radix: int, x: list[_Complex]) -> list[_Complex]:
    """Return the sums over j of x_j exp(-2 pi i j k / radix) for each k."""
    if radix == 2:
        return [x[0] + x[1], x[0] - x[1]]
    if radix == 4:
        even, odd = x[0] + x[2], x[1] + x[3]
        apart, turned = x[0] - x[2], (x[1] - x[3]).over_i()
        return [even + odd, apart + turned, even - odd, apart - turned]
    half = range(1, radix // 2 + 1)
    both = {j: (x[j] + x[radix - j], (x[j] - x[radix - j]).over_i()) for j in half}
    found = {0: x[0]}
    for j in half:
        found[0] = found[0] + both[j][0]
    for k in half:
        level, turns = x[0], []
        for j in half:
            angle = (j * k + radix // 2) % radix - radix // 2
            level = level + both[j][0].scaled(float(cos(2 * np.pi * angle / radix)))
            part = 4 * angle - radix  # the sine, of what is a quarter less
            part = (part + 2 * radix) % (4 * radix) - 2 * radix
            turns.append(both[j][1].scaled(float(cos(np.pi * part / (2 * radix)))))
        turn = turns[0] if radix == 3 else turns[0] + turns[1]
        found[k], found[radix - k] = level + turn, level - turn
    return [found[k] for k in range(radix)]


def _pass(radix: int) -> Any:
    """Return a pass: each ``radix`` numbers, ``step`` apart, become others."""

    def typed(context, source, target, begin, step, end, count, turns, at):
        def code(context, builder, signature, arguments):
            def rows(kind, value):
                array = context.make_array(kind)(context, builder, value)
                size = cgutils.unpack_tuple(builder, array.shape, 2)[1]
                return array.data, builder.gep(array.data, [size])

            from_rows, to_rows, factors = (
                rows(signature.args[k], arguments[k]) for k in (0, 1, 6)
            )
            begin, step, end, count = arguments[2:6]

            def moved(pointer, first, gap, k):
                index = builder.add(first, builder.mul(gap, gap.type(k)))
                return builder.gep(pointer, [index])

            def everywhere(table, k):
                index = builder.mul(arguments[7], count.type(k))
                number = builder.load(builder.gep(table, [index]))
                return Place(builder, None, _LANES).all(number)

            turned = [[everywhere(t, k) for t in factors] for k in range(1, radix)]
            loop = cgutils.for_range_slice(
                builder, count.type(0), count, count.type(_LANES)
            )
            with loop as (lane, _):
                place = Place(builder, lane, _LANES)
                x = [
                    _Complex(*(place.load(moved(r, begin, step, k)) for r in from_rows))
                    for k in range(radix)
                ]
                for k, each in enumerate(_butterfly(radix, x)):
                    number = each.turned(*turned[k - 1]) if k else each
                    place.store(number.re, moved(to_rows[0], end, count, k))
                    place.store(number.im, moved(to_rows[1], end, count, k))
            return context.get_dummy_value()

        whole = (types.intp,) * 4
        arguments = (source, target, *whole, turns, types.intp)
        return types.void(*arguments), code

    return intrinsic(typed)


_pass_2, _pass_3, _pass_4, _pass_5 = (_pass(radix) for radix in (2, 3, 4, 5))


@njit(**_OPTIONS)
def _transform(one, other, n, factors, turns):
    """Transform ``WIDTH`` lines of n numbers, (2, n WIDTH); return where they are."""
    stride, length = 1, n
    for radix in factors:
        m = length // radix
        count = stride * WIDTH
        step, turn = m * count, n // length
        for j in range(m):
            begin, end, at = j * count, radix * j * count, j * turn
            if radix == 4:
                _pass_4(one, other, begin, step, end, count, turns, at)
            elif radix == 2:
                _pass_2(one, other, begin, step, end, count, turns, at)
            elif radix == 3:
                _pass_3(one, other, begin, step, end, count, turns, at)
            else:
                _pass_5(one, other, begin, step, end, count, turns, at)
        one, other = other, one
        stride *= radix
        length = m
    return one


# --- All lines along an axis ----------------------------------------------------------


@njit(**_OPTIONS)
def _lines(begin, end, planes, is_back, factors, turns):
    """Transform some lines along the third axis of (2, outer, n, inner), in place."""
    _, _, n, inner = planes.shape
    n_lines = planes.shape[1] * inner
    one = np.zeros((2, n * WIDTH), planes.dtype)
    other = np.empty_like(one)
    re, im = (1, 0) if is_back else (0, 1)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            outer, place = (first + at) // inner, (first + at) % inner
            for i in range(n):
                for part in range(2):
                    number = planes[part, outer, i, place]
                    one[re if part == 0 else im, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            continue
        found = _transform(one, other, n, factors, turns)
        for at in range(width):
            outer, place = (first + at) // inner, (first + at) % inner
            for i in range(n):
                planes[0, outer, i, place] = found[re, i * WIDTH + at]
                planes[1, outer, i, place] = found[im, i * WIDTH + at]


@njit(**_OPTIONS)
def _from_real(begin, end, grid, spectrum, factors, turns):
    """Write the spectra of some pairs of rows of ``grid`` (R, n)."""
    n_rows, n = grid.shape
    n_lines = (n_rows + 1) // 2
    zero, half = grid.dtype.type(0), grid.dtype.type(0.5)
    one = np.zeros((2, n * WIDTH), grid.dtype)
    other = np.empty_like(one)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            for part in range(2):
                row = 2 * (first + at) + part
                for i in range(n):
                    number = grid[row, i] if row < n_rows else zero
                    one[part, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            continue
        found = _transform(one, other, n, factors, turns)
        for at in range(width):
            row = 2 * (first + at)
            for k in range(n // 2 + 1):
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                spectrum[0, row, k] = half * (found[0, here] + found[0, there])
                spectrum[1, row, k] = half * (found[1, here] - found[1, there])
                if row + 1 < n_rows:
                    spectrum[0, row + 1, k] = half * (found[1, here] + found[1, there])
                    spectrum[1, row + 1, k] = half * (found[0, there] - found[0, here])


@njit(**_OPTIONS)
def _to_real(begin, end, spectrum, grid, scale, factors, turns):
    """Write some pairs of rows of ``grid`` (R, n) from their spectra."""
    n_rows, n = grid.shape
    n_lines = (n_rows + 1) // 2
    one = np.zeros((2, n * WIDTH), grid.dtype)
    other = np.empty_like(one)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        for at in range(width):
            row = 2 * (first + at)
            below = min(row + 1, n_rows - 1)
            for k in range(n // 2 + 1):
                re, im = spectrum[0, row, k], spectrum[1, row, k]
                re_below, im_below = spectrum[0, below, k], spectrum[1, below, k]
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                one[1, there] = re + im_below
                one[0, there] = re_below - im
                one[1, here] = re - im_below
                one[0, here] = im + re_below
        found = _transform(one, other, n, factors, turns)
        for at in range(width):
            for part in range(2):
                row = 2 * (first + at) + part
                if row < n_rows:
                    for i in range(n):
                        grid[row, i] = scale * found[1 - part, i * WIDTH + at]


def forward(grid: Real, n_threads: int = 1) -> Real:
    """Return the spectrum of a grid (rows, layers, columns), of its type.

    Each side is of :func:`fast_length`.
    """
    rows, layers, columns = grid.shape
    spectrum = np.zeros((2, rows, layers, columns // 2 + 1), grid.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, rows * layers, -1)
    _share(_from_real, -(-len(lines) // 2), columns, n_threads, lines, flat)
    _along_others(spectrum, False, n_threads)
    return spectrum


def backward(
    spectrum: Real, columns: int, n_threads: int = 1, n_rows: int | None = None
) -> Real:
    """Return the first rows of the grid of a spectrum, which is written over."""
    _, rows, layers, half = spectrum.shape
    _along_others(spectrum, True, n_threads)
    grid = np.empty((min(n_rows or rows, rows), layers, columns), spectrum.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, -1, half)
    scale = grid.dtype.type(1 / (rows * layers * columns))
    _share(_to_real, -(-len(lines) // 2), columns, n_threads, flat, lines, scale)
    return grid


def _along_others(spectrum: Real, is_back: bool, n_threads: int) -> None:
    """Transform along layers and rows, in place."""
    _, rows, layers, columns = spectrum.shape
    for n, inner in ((layers, columns), (rows, layers * columns)):
        if n > 1:
            planes = spectrum.reshape(2, -1, n, inner)
            n_lines = planes.shape[1] * inner
            _share(_lines, n_lines, n, n_threads, planes, is_back)


def _share(loop: Any, n_lines: int, n: int, n_threads: int, *given: Any) -> None:
    """Share lines of n numbers among threads, ``WIDTH`` at a time."""
    turns, work = _turns(n, given[0].dtype), _STEPS * n_lines * n
    run_blocks(loop, -(-n_lines // WIDTH), work, n_threads, *given, *turns)
