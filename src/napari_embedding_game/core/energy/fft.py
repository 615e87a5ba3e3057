"""Fourier transforms of real grids whose bits are the same on every processor.

The transforms use Stockham's algorithm with radix 4, 2, 3 and 5 on ``WIDTH`` lines at a
time, side by side in vectors; each number is a sum in a fixed order.  Two real lines
are transformed as the real and the imaginary part of one complex line.  A spectrum is
an array (2, rows, layers, columns // 2 + 1): real parts, imaginary parts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import cos
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import broadcast, load, store
from napari_embedding_game.core.threads import LOOP, run_blocks

WIDTH = 16
"""Lines that are transformed side by side."""
_LANES = 8
"""Numbers in a vector; divides ``WIDTH``, and changes no bit."""
_STEPS = 32
"""Cost of transforming a number, in pairs of points."""
_INSIDE: dict[str, Any] = {"forceinline": True, **LOOP}
Real = NDArray[np.floating]


@cache
def _factorize_length(n: int) -> tuple[int, ...]:
    """Return the factors 4, 2, 3 and 5 of a length, the fours first.

    Other prime factors, which a length must not have, are left out.
    """
    factors = []
    for p in (4, 2, 3, 5):
        while n % p == 0 and n > 1:
            factors.append(p)
            n //= p
    return tuple(factors)


@cache
def _factorize_and_make_twiddles(
    n: int, dtype: np.dtype[np.floating]
) -> tuple[Any, Real]:
    """Return the factors of n, (m,) int64, and the twiddles of n, (2, n).

    Twiddles are the cosines and the sines of -2 pi j / n, of type ``dtype``.
    """
    quarters = 4 * np.arange(n)
    angles = np.stack(
        [(angle + 2 * n) % (4 * n) - 2 * n for angle in (quarters, quarters + n)]
    )
    twiddles = np.asarray(cos(np.pi / (2 * n) * angles), dtype)
    return np.array(_factorize_length(n), np.int64), twiddles


# A complex number is a pair of lanes.  A butterfly reads ``radix`` numbers x_j, that
# lie ``step`` apart, and writes the sums over j of x_j exp(-2 pi i j k / radix), times
# a twiddle, ``count`` apart.


def _cos_of_turn(angle: int, radix: int) -> float:
    """Return cos(2 pi angle / radix)."""
    return float(cos(2 * np.pi * angle / radix))


def _sin_of_turn(angle: int, radix: int) -> float:
    """Return sin(2 pi angle / radix)."""
    shifted = (4 * angle + radix) % (4 * radix) - 2 * radix  # sin x = cos(x - pi / 2)
    return float(cos(np.pi * shifted / (2 * radix)))


_COS = _cos_of_turn(1, 3), _cos_of_turn(1, 5), _cos_of_turn(2, 5)
_SIN = _sin_of_turn(1, 3), _sin_of_turn(1, 5), _sin_of_turn(2, 5), _sin_of_turn(-1, 5)


@njit(**_INSIDE)
def _load_complex(source, at, zero):
    """Return complex numbers from index ``at`` on, as many as ``zero`` has lanes."""
    return load(source, (0, at), zero), load(source, (1, at), zero)


@njit(**_INSIDE)
def _store_complex(target, at, number):
    """Write complex numbers to ``target`` (2, n) from index ``at`` on."""
    store(number[0], target, (0, at))
    store(number[1], target, (1, at))


@njit(**_INSIDE)
def _multiply_twiddle(number, twiddles, at):
    """Return complex numbers times the twiddle at index ``at``."""
    (re, im), c, s = number, twiddles[0, at], twiddles[1, at]
    return re * c - im * s, re * s + im * c


@njit(**_INSIDE)
def _scale_complex(number, factor):
    return number[0] * factor, number[1] * factor


@njit(**_INSIDE)
def _sum_and_difference(a, b):
    """Return a + b and a - b of two complex numbers."""
    total = a[0] + b[0], a[1] + b[1]
    return total, (a[0] - b[0], a[1] - b[1])


@njit(**_INSIDE)
def _minus_and_plus_i_times(a, b):
    """Return a - i b and a + i b of two complex numbers."""
    less = a[0] + b[1], a[1] - b[0]
    return less, (a[0] - b[1], a[1] + b[0])


@njit(**_INSIDE)
def _butterfly_2(source, target, begin, step, end, count, twiddles, at, zero):
    """Compute a butterfly of radix 2: two numbers of ``source`` to two of ``target``.

    Source and target are (2, n).  The numbers are at ``begin`` and ``begin + step``.
    Their sum is written at ``end``, and their difference times the twiddle ``at`` at
    ``end + count``.  ``zero``: a vector of zeros.  See the comment above.
    """
    x0, x1 = (
        _load_complex(source, begin, zero),
        _load_complex(source, begin + step, zero),
    )
    y0, y1 = _sum_and_difference(x0, x1)
    _store_complex(target, end, y0)
    _store_complex(target, end + count, _multiply_twiddle(y1, twiddles, at))


@njit(**_INSIDE)
def _butterfly_3(source, target, begin, step, end, count, twiddles, at, zero):
    """Compute a butterfly of radix 3; arguments as for :func:`_butterfly_2`."""
    kind = twiddles.dtype.type
    x0, x1 = (
        _load_complex(source, begin, zero),
        _load_complex(source, begin + step, zero),
    )
    total, difference = _sum_and_difference(
        x1, _load_complex(source, begin + 2 * step, zero)
    )
    level, _ = _sum_and_difference(x0, _scale_complex(total, kind(_COS[0])))
    y1, y2 = _minus_and_plus_i_times(level, _scale_complex(difference, kind(_SIN[0])))
    _store_complex(target, end, _sum_and_difference(x0, total)[0])
    _store_complex(target, end + count, _multiply_twiddle(y1, twiddles, at))
    _store_complex(target, end + 2 * count, _multiply_twiddle(y2, twiddles, 2 * at))


@njit(**_INSIDE)
def _butterfly_4(source, target, begin, step, end, count, twiddles, at, zero):
    """Write the butterfly of radix 4; arguments are those of :func:`_butterfly_2`."""
    x0, x1 = (
        _load_complex(source, begin, zero),
        _load_complex(source, begin + step, zero),
    )
    even, difference = _sum_and_difference(
        x0, _load_complex(source, begin + 2 * step, zero)
    )
    odd, aside = _sum_and_difference(x1, _load_complex(source, begin + 3 * step, zero))
    y0, y2 = _sum_and_difference(even, odd)
    y1, y3 = _minus_and_plus_i_times(difference, aside)
    _store_complex(target, end, y0)
    _store_complex(target, end + count, _multiply_twiddle(y1, twiddles, at))
    _store_complex(target, end + 2 * count, _multiply_twiddle(y2, twiddles, 2 * at))
    _store_complex(target, end + 3 * count, _multiply_twiddle(y3, twiddles, 3 * at))


@njit(**_INSIDE)
def _butterfly_5(source, target, begin, step, end, count, twiddles, at, zero):
    """Write the butterfly of radix 5; arguments are those of :func:`_butterfly_2`."""
    kind = twiddles.dtype.type
    c1, c2 = kind(_COS[1]), kind(_COS[2])
    s1, s2, back = kind(_SIN[1]), kind(_SIN[2]), kind(_SIN[3])
    x0, x1 = (
        _load_complex(source, begin, zero),
        _load_complex(source, begin + step, zero),
    )
    x2 = _load_complex(source, begin + 2 * step, zero)
    outer, difference = _sum_and_difference(
        x1, _load_complex(source, begin + 4 * step, zero)
    )
    inner, aside = _sum_and_difference(
        x2, _load_complex(source, begin + 3 * step, zero)
    )
    level, _ = _sum_and_difference(
        _sum_and_difference(x0, _scale_complex(outer, c1))[0], _scale_complex(inner, c2)
    )
    y1, y4 = _minus_and_plus_i_times(
        level,
        _sum_and_difference(_scale_complex(difference, s1), _scale_complex(aside, s2))[
            0
        ],
    )
    level, _ = _sum_and_difference(
        _sum_and_difference(x0, _scale_complex(outer, c2))[0], _scale_complex(inner, c1)
    )
    y2, y3 = _minus_and_plus_i_times(
        level,
        _sum_and_difference(
            _scale_complex(difference, s2), _scale_complex(aside, back)
        )[0],
    )
    _store_complex(
        target, end, _sum_and_difference(_sum_and_difference(x0, outer)[0], inner)[0]
    )
    _store_complex(target, end + count, _multiply_twiddle(y1, twiddles, at))
    _store_complex(target, end + 2 * count, _multiply_twiddle(y2, twiddles, 2 * at))
    _store_complex(target, end + 3 * count, _multiply_twiddle(y3, twiddles, 3 * at))
    _store_complex(target, end + 4 * count, _multiply_twiddle(y4, twiddles, 4 * at))


@njit(**LOOP)
def _transform_batch(a, b, n, factors, twiddles):
    """Transform ``WIDTH`` lines of n complex numbers in ``a`` (2, n WIDTH).

    ``b`` is scratch of the same shape.  Return the array with the result, ``a`` or
    ``b``; both are overwritten.  The numbers at one position of all lines are
    consecutive.
    """
    stride, length, zero = 1, n, broadcast(a.dtype.type(0), _LANES)
    for radix in factors:
        m = length // radix
        count = stride * WIDTH
        step, turn = m * count, n // length
        for j in range(m):
            at = j * turn
            for lane in range(0, count, _LANES):
                begin, end = j * count + lane, radix * j * count + lane
                if radix == 4:
                    _butterfly_4(a, b, begin, step, end, count, twiddles, at, zero)
                elif radix == 2:
                    _butterfly_2(a, b, begin, step, end, count, twiddles, at, zero)
                elif radix == 3:
                    _butterfly_3(a, b, begin, step, end, count, twiddles, at, zero)
                else:
                    _butterfly_5(a, b, begin, step, end, count, twiddles, at, zero)
        a, b = b, a
        stride *= radix
        length = m
    return a


@njit(**LOOP)
def _transform_third_axis(begin, end, planes, is_inverse, factors, twiddles):
    """Transform lines along the third axis of ``planes`` (2, outer, n, inner).

    Lines are changed in place; ``begin`` and ``end`` count batches of ``WIDTH`` lines.
    The inverse is not divided by n.
    """
    _, _, n, inner = planes.shape
    n_lines = planes.shape[1] * inner
    a = np.zeros((2, n * WIDTH), planes.dtype)
    b = np.empty_like(a)
    re, im = (1, 0) if is_inverse else (0, 1)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            outer, column = (first + at) // inner, (first + at) % inner
            for i in range(n):
                for component in range(2):
                    number = planes[component, outer, i, column]
                    a[re if component == 0 else im, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            continue
        lines = _transform_batch(a, b, n, factors, twiddles)
        for at in range(width):
            outer, column = (first + at) // inner, (first + at) % inner
            for i in range(n):
                planes[0, outer, i, column] = lines[re, i * WIDTH + at]
                planes[1, outer, i, column] = lines[im, i * WIDTH + at]


@njit(**LOOP)
def _convolve_second_axis(begin, end, planes, transfer, factors, twiddles):
    """Convolve lines along the second axis of ``planes`` (2, R, inner), in place.

    ``transfer`` (n, inner): factors of the lines' Fourier transforms; rows from R to n
    count as 0.  Results are n times the convolution.  ``begin`` and ``end`` count
    batches of ``WIDTH`` lines.
    """
    _, n_rows, inner = planes.shape
    n = len(transfer)
    a = np.zeros((2, n * WIDTH), planes.dtype)
    b = np.empty_like(a)
    for first in range(begin * WIDTH, min(end * WIDTH, inner), WIDTH):
        width = min(WIDTH, inner - first)
        for component in range(2):
            for i in range(n_rows):
                for at in range(width):
                    a[component, i * WIDTH + at] = planes[component, i, first + at]
            a[component, n_rows * WIDTH :] = 0
        lines = _transform_batch(a, b, n, factors, twiddles)
        # The inverse is the forward transform with real and imaginary parts exchanged.
        other = a if len(factors) % 2 else b
        for component in range(2):
            for i in range(n):
                for at in range(width):
                    number = lines[component, i * WIDTH + at]
                    other[1 - component, i * WIDTH + at] = (
                        number * transfer[i, first + at]
                    )
        found = _transform_batch(other, lines, n, factors, twiddles)
        for component in range(2):
            for i in range(n_rows):
                for at in range(width):
                    planes[component, i, first + at] = found[
                        1 - component, i * WIDTH + at
                    ]


@njit(**LOOP)
def _transform_real_rows(begin, end, grid, spectrum, factors, twiddles):
    """Write the spectra of rows of ``grid`` (R, C), padded with zeros, to ``spectrum``.

    ``spectrum`` (2, R, n // 2 + 1) for n twiddles, to which rows are padded.  Two rows
    are one complex line; ``begin`` and ``end`` count batches of ``WIDTH`` lines.
    """
    (n_rows, n_columns), n = grid.shape, twiddles.shape[1]
    n_lines = (n_rows + 1) // 2
    zero, half = grid.dtype.type(0), grid.dtype.type(0.5)
    a = np.zeros((2, n * WIDTH), grid.dtype)
    b = np.empty_like(a)
    for first in range(begin * WIDTH, min(end * WIDTH, n_lines), WIDTH):
        width = min(WIDTH, n_lines - first)
        is_zero = True
        for at in range(width):
            for component in range(2):
                row = 2 * (first + at) + component
                for i in range(n_columns):
                    number = grid[row, i] if row < n_rows else zero
                    a[component, i * WIDTH + at] = number
                    is_zero = is_zero and number == 0
        if is_zero:
            spectrum[:, 2 * first : min(2 * (first + width), n_rows)] = 0
            continue
        a[:, n_columns * WIDTH :] = 0
        lines = _transform_batch(a, b, n, factors, twiddles)
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
def _invert_real_rows(begin, end, spectrum, grid, scale, factors, twiddles):
    """Write the first columns of rows of ``grid`` (R, C) from their spectra.

    Numbers are multiplied by ``scale``; two rows are one complex line.  ``begin`` and
    ``end`` count batches of ``WIDTH`` lines.
    """
    (n_rows, n_columns), n = grid.shape, twiddles.shape[1]
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
        lines = _transform_batch(a, b, n, factors, twiddles)
        for at in range(width):
            for component in range(2):
                row = 2 * (first + at) + component
                if row < n_rows:
                    for i in range(n_columns):
                        grid[row, i] = scale * lines[1 - component, i * WIDTH + at]


def forward_transform(grid: Real) -> Real:
    """Return the spectrum of a real grid (rows, layers, columns), in the grid's type.

    The spectrum is (2, rows, layers, columns // 2 + 1).  Sides have no prime factors
    but 2, 3 and 5, as ``scipy.fft.next_fast_len`` returns.
    """
    rows, layers, columns = grid.shape
    spectrum = np.zeros((2, rows, layers, columns // 2 + 1), grid.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, rows * layers, -1)
    _run_over_lines(_transform_real_rows, -(-len(lines) // 2), columns, lines, flat)
    _transform_rows_and_layers(spectrum, False)
    return spectrum


def inverse_transform(spectrum: Real, columns: int, n_rows: int | None = None) -> Real:
    """Return the first ``n_rows`` rows of the real grid of a spectrum, None for all.

    ``columns``: columns of the grid.  ``spectrum`` is overwritten.  The result is
    scaled, so that it undoes :func:`forward_transform`.
    """
    _, rows, layers, half = spectrum.shape
    _transform_rows_and_layers(spectrum, True)
    grid = np.empty((min(n_rows or rows, rows), layers, columns), spectrum.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, -1, half)
    scale = grid.dtype.type(1 / (rows * layers * columns))
    _run_over_lines(_invert_real_rows, -(-len(lines) // 2), columns, flat, lines, scale)
    return grid


def convolve_with_kernel(
    grid: Real, transfer: Real, n_columns: int, spectrum: Real, potential: Real
) -> None:
    """Write the convolution of ``grid`` with a kernel to ``potential``, of equal shape.

    ``grid`` (R, layers, C) is padded with zeros to the rows of ``transfer``, the
    kernel's Fourier transform (rows, layers, ``n_columns // 2 + 1``), and to
    ``n_columns``.  ``spectrum`` (2, R, layers, ``n_columns // 2 + 1``) is overwritten.
    """
    n_rows, layers, half = transfer.shape
    lines, flat = (each.reshape(-1, grid.shape[2]) for each in (grid, potential))
    planes = spectrum.reshape(2, -1, half)
    n_pairs = -(-len(lines) // 2)
    _run_over_lines(_transform_real_rows, n_pairs, n_columns, lines, planes)
    by_layer = spectrum.reshape(2, -1, layers, half)
    n_along = by_layer.shape[1] * half if layers > 1 else 0
    _run_over_lines(_transform_third_axis, n_along, layers, by_layer, False)
    by_row = spectrum.reshape(2, len(grid), layers * half)
    kernel = transfer.reshape(n_rows, layers * half)
    _run_over_lines(_convolve_second_axis, layers * half, n_rows, by_row, kernel)
    _run_over_lines(_transform_third_axis, n_along, layers, by_layer, True)
    scale = grid.dtype.type(1 / (n_rows * layers * n_columns))
    _run_over_lines(_invert_real_rows, n_pairs, n_columns, planes, flat, scale)


def _transform_rows_and_layers(spectrum: Real, is_inverse: bool) -> None:
    """Transform a spectrum along layers and rows, in place, without scaling.

    Axes of length 1 are skipped.
    """
    _, rows, layers, columns = spectrum.shape
    for n, inner in ((layers, columns), (rows, layers * columns)):
        if n > 1:
            planes = spectrum.reshape(2, -1, n, inner)
            n_lines = planes.shape[1] * inner
            _run_over_lines(_transform_third_axis, n_lines, n, planes, is_inverse)


def _run_over_lines(loop: Any, n_lines: int, n: int, *arrays: Any) -> None:
    """Call ``loop`` for batches of ``WIDTH`` lines of n numbers, shared among threads.

    The loop's last arguments are the factors and twiddles of n.  Without lines it is
    not called.
    """
    twiddles, work = (
        _factorize_and_make_twiddles(n, arrays[0].dtype),
        _STEPS * n_lines * n,
    )
    if n_lines > 0:
        run_blocks(loop, -(-n_lines // WIDTH), work, *arrays, *twiddles)
