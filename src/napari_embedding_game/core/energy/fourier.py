"""Fourier transforms of real grids whose bits are the same on every processor.

Those of libraries are contracted, or cut into vectors, as the compiler of the day does.
Here each number is a sum in one order: Stockham's algorithm with radix 4, 2, 3 and 5
over ``WIDTH`` lines at a time, side by side in vectors.  Two real lines are the real
and the imaginary part of one complex line.  A spectrum is an array
(2, rows, layers, columns // 2 + 1): real parts, imaginary parts.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import cos
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
def _turns(n: int, dtype: np.dtype[np.floating]) -> tuple[Any, Real, Real]:
    """Return the factors of n, and the cosines and sines of -2 pi j / n, (n,)."""
    quarters = 4 * np.arange(n)
    angles = [(part + 2 * n) % (4 * n) - 2 * n for part in (quarters, quarters + n)]
    cosine, minus_sine = (cos(np.pi / (2 * n) * angle) for angle in angles)
    factors = np.array(_factors(n), np.int64)
    return factors, cosine.astype(dtype), minus_sine.astype(dtype)


# --- One pass over the lines ----------------------------------------------------------


class _Complex:
    """A vector of complex numbers while a pass is written."""

    def __init__(self, builder: Any, re: Any, im: Any) -> None:
        self._b, self.re, self.im = builder, re, im

    def __add__(self, other: _Complex) -> _Complex:
        add = self._b.fadd
        return _Complex(self._b, add(self.re, other.re), add(self.im, other.im))

    def __sub__(self, other: _Complex) -> _Complex:
        sub = self._b.fsub
        return _Complex(self._b, sub(self.re, other.re), sub(self.im, other.im))

    def scaled(self, factor: Any) -> _Complex:
        """Return the product with a real number in every lane."""
        mul = self._b.fmul
        return _Complex(self._b, mul(self.re, factor), mul(self.im, factor))

    def over_i(self) -> _Complex:
        """Return the product with -i."""
        return _Complex(self._b, self.im, self._b.fneg(self.re))

    def turned(self, c: Any, s: Any) -> _Complex:
        """Return the product with c + i s."""
        b = self._b
        re = b.fsub(b.fmul(self.re, c), b.fmul(self.im, s))
        return _Complex(b, re, b.fadd(b.fmul(self.re, s), b.fmul(self.im, c)))


def _butterfly(radix: int, x: list[_Complex], constant: Any) -> list[_Complex]:
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
            level = level + both[j][0].scaled(constant(2 * np.pi * angle / radix))
            part = 4 * angle - radix  # the sine, of what is a quarter less
            part = (part + 2 * radix) % (4 * radix) - 2 * radix
            turns.append(both[j][1].scaled(constant(np.pi * part / (2 * radix))))
        turn = turns[0] if radix == 3 else turns[0] + turns[1]
        found[k], found[radix - k] = level + turn, level - turn
    return [found[k] for k in range(radix)]


def _pass(radix: int) -> Any:
    def typed(context, source, target, begin, step, end, gap, count, parts, turns, at):
        def code(context, builder, signature, arguments):
            source, target, begin, step, end, gap, count, parts, turns, at = arguments
            kinds = signature.args
            source, target = (
                context.make_array(kind)(context, builder, array).data
                for kind, array in ((kinds[0], source), (kinds[1], target))
            )
            number = source.type.pointee
            wide = ir.VectorType(number, _LANES)
            align = 4 if isinstance(number, ir.FloatType) else 8
            parts = cgutils.unpack_tuple(builder, parts)
            tables = [
                context.make_array(kind)(context, builder, array).data
                for kind, array in zip(
                    kinds[8], cgutils.unpack_tuple(builder, turns), strict=True
                )
            ]

            def everywhere(value):
                empty = ir.Constant(wide, ir.Undefined)
                first = builder.insert_element(empty, value, ir.IntType(32)(0))
                order = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), None)
                return builder.shuffle_vector(first, empty, order)

            def constant(angle):
                return ir.Constant(wide, [number(float(cos(angle)))] * _LANES)

            def place(base, index):
                pointer = builder.gep(base, [index])
                return builder.bitcast(pointer, wide.as_pointer())

            factors = []
            for k in range(1, radix):
                index = builder.mul(at, at.type(k))
                entries = [builder.load(builder.gep(t, [index])) for t in tables]
                factors.append([everywhere(entry) for entry in entries])
            zero = count.type(0)
            loop = cgutils.for_range_slice(builder, zero, count, count.type(_LANES))
            with loop as (lane, _):
                x = []
                for k in range(radix):
                    index = builder.add(begin, builder.mul(step, step.type(k)))
                    index = builder.add(index, lane)
                    numbers = [
                        builder.load(
                            place(source, builder.add(index, part)), align=align
                        )
                        for part in parts
                    ]
                    x.append(_Complex(builder, *numbers))
                found = _butterfly(radix, x, constant)
                for k, one in enumerate(found):
                    if k:
                        one = one.turned(*factors[k - 1])
                    index = builder.add(end, builder.mul(gap, gap.type(k)))
                    index = builder.add(index, lane)
                    for value, part in zip((one.re, one.im), parts, strict=True):
                        builder.store(
                            value, place(target, builder.add(index, part)), align=align
                        )
            return context.get_dummy_value()

        whole = (types.intp,) * 5
        both = types.UniTuple(types.intp, 2)
        arguments = (source, target, *whole, both, turns, types.intp)
        return types.void(*arguments), code

    return intrinsic(typed)


_pass_2, _pass_3, _pass_4, _pass_5 = (_pass(radix) for radix in (2, 3, 4, 5))


@njit(**_OPTIONS)
def _transform(one, other, n, factors, turns, is_back):
    """Transform ``WIDTH`` lines of n numbers, (2 n WIDTH,); return where they are.

    Back is the same with real and imaginary parts exchanged.
    """
    plane = n * WIDTH
    parts = (plane, 0) if is_back else (0, plane)
    stride, length = 1, n
    for radix in factors:
        m = length // radix
        count = stride * WIDTH
        step, turn = m * count, n // length
        for j in range(m):
            begin, end, at = j * count, radix * j * count, j * turn
            if radix == 4:
                _pass_4(one, other, begin, step, end, count, count, parts, turns, at)
            elif radix == 2:
                _pass_2(one, other, begin, step, end, count, count, parts, turns, at)
            elif radix == 3:
                _pass_3(one, other, begin, step, end, count, count, parts, turns, at)
            else:
                _pass_5(one, other, begin, step, end, count, count, parts, turns, at)
        one, other = other, one
        stride *= radix
        length = m
    return one


# --- All lines along an axis ----------------------------------------------------------


@njit(**_OPTIONS)
def _lines(planes, n, inner, factors, turns, is_back, begin, end):
    """Transform some lines of n numbers, each ``inner`` after the one before, in place.

    ``planes`` (2, all): lines are counted along ``inner`` first.
    """
    one, other = np.zeros(2 * n * WIDTH, planes.dtype), np.empty(0, planes.dtype)
    other = np.empty_like(one)
    plane = n * WIDTH
    for first in range(begin, end, WIDTH):
        width = min(WIDTH, end - first)
        is_zero = True
        for at in range(width):
            line = first + at
            start = line // inner * n * inner + line % inner
            for i in range(n):
                re, im = planes[0, start + i * inner], planes[1, start + i * inner]
                one[i * WIDTH + at] = re
                one[plane + i * WIDTH + at] = im
                is_zero = is_zero and re == 0 and im == 0
        if is_zero:
            continue
        found = _transform(one, other, n, factors, turns, is_back)
        for at in range(width):
            line = first + at
            start = line // inner * n * inner + line % inner
            for i in range(n):
                planes[0, start + i * inner] = found[i * WIDTH + at]
                planes[1, start + i * inner] = found[plane + i * WIDTH + at]


@njit(**_OPTIONS)
def _from_real(grid, spectrum, factors, turns, begin, end):
    """Write the spectra of pairs of rows of ``grid`` (R, n), from ``begin`` on."""
    n_rows, n = grid.shape
    half = grid.dtype.type(0.5)
    one, other = (
        np.zeros(2 * n * WIDTH, grid.dtype),
        np.empty(2 * n * WIDTH, grid.dtype),
    )
    plane = n * WIDTH
    for first in range(begin, end, WIDTH):
        width = min(WIDTH, end - first)
        is_zero = True
        for at in range(width):
            row = 2 * (first + at)
            for i in range(n):
                re = grid[row, i]
                im = grid[row + 1, i] if row + 1 < n_rows else grid.dtype.type(0)
                one[i * WIDTH + at] = re
                one[plane + i * WIDTH + at] = im
                is_zero = is_zero and re == 0 and im == 0
        if is_zero:
            continue
        found = _transform(one, other, n, factors, turns, False)
        for at in range(width):
            row = 2 * (first + at)
            for k in range(n // 2 + 1):
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                re, im = found[here], found[plane + here]
                re_back, im_back = found[there], found[plane + there]
                spectrum[0, row, k] = half * (re + re_back)
                spectrum[1, row, k] = half * (im - im_back)
                if row + 1 < n_rows:
                    spectrum[0, row + 1, k] = half * (im + im_back)
                    spectrum[1, row + 1, k] = half * (re_back - re)


@njit(**_OPTIONS)
def _to_real(spectrum, grid, factors, turns, scale, begin, end):
    """Write pairs of rows of ``grid`` (R, n) from their spectra, times ``scale``."""
    n_rows, n = grid.shape
    one, other = (
        np.zeros(2 * n * WIDTH, grid.dtype),
        np.empty(2 * n * WIDTH, grid.dtype),
    )
    plane = n * WIDTH
    for first in range(begin, end, WIDTH):
        width = min(WIDTH, end - first)
        for at in range(width):
            row = 2 * (first + at)
            below = row + 1 if row + 1 < n_rows else row
            for k in range(n // 2 + 1):
                re, im = spectrum[0, row, k], spectrum[1, row, k]
                re_below, im_below = spectrum[0, below, k], spectrum[1, below, k]
                here, there = k * WIDTH + at, (n - k) % n * WIDTH + at
                one[there] = re + im_below
                one[plane + there] = re_below - im
                one[here] = re - im_below
                one[plane + here] = im + re_below
        found = _transform(one, other, n, factors, turns, True)
        for at in range(width):
            row = 2 * (first + at)
            for i in range(n):
                grid[row, i] = scale * found[i * WIDTH + at]
                if row + 1 < n_rows:
                    grid[row + 1, i] = scale * found[plane + i * WIDTH + at]


def forward(grid: Real, n_threads: int = 1) -> Real:
    """Return the spectrum of a grid (rows, layers, columns), of its type.

    Each side is of :func:`fast_length`.
    """
    rows, layers, columns = grid.shape
    shape = (2, rows, layers, columns // 2 + 1)
    spectrum = np.zeros(shape, grid.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, -1, shape[3])
    factors, *turns = _turns(columns, grid.dtype)
    _share(-(-len(lines) // 2), columns, n_threads)(
        lambda begin, end: _from_real(lines, flat, factors, tuple(turns), begin, end)
    )
    _along_others(spectrum, False, n_threads)
    return spectrum


def backward(
    spectrum: Real, columns: int, n_threads: int = 1, n_rows: int | None = None
) -> Real:
    """Return the first rows of the grid of a spectrum, which is written over."""
    _, rows, layers, half = spectrum.shape
    _along_others(spectrum, True, n_threads)
    grid = np.empty((n_rows or rows, layers, columns), spectrum.dtype)
    lines, flat = grid.reshape(-1, columns), spectrum.reshape(2, -1, half)
    factors, *turns = _turns(columns, grid.dtype)
    scale = grid.dtype.type(1 / (rows * layers * columns))
    _share(-(-len(lines) // 2), columns, n_threads)(
        lambda begin, end: _to_real(
            flat, lines, factors, tuple(turns), scale, begin, end
        )
    )
    return grid


def _along_others(spectrum: Real, is_back: bool, n_threads: int) -> None:
    """Transform along layers and rows, in place."""
    _, rows, layers, columns = spectrum.shape
    planes = spectrum.reshape(2, -1)
    for n, inner in ((layers, columns), (rows, layers * columns)):
        if n > 1:
            factors, *turns = _turns(n, spectrum.dtype)
            _share(planes.shape[1] // n, n, n_threads)(
                lambda begin, end, n=n, inner=inner, f=factors, t=tuple(turns): _lines(
                    planes, n, inner, f, t, is_back, begin, end
                )
            )


def _share(n_lines: int, n: int, n_threads: int) -> Any:
    """Return what shares lines of n numbers among threads, some vectors at a time."""

    def share(job: Any) -> None:
        n_blocks = -(-n_lines // WIDTH)
        work = _STEPS * n_lines * n

        def lines(begin: int, end: int) -> None:
            job(begin * WIDTH, min(end * WIDTH, n_lines))

        run_blocks(lines, n_blocks, work, n_threads)

    return share
