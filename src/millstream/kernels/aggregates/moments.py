"""Variance, skewness, correlation and their kin, of numbers and of pairs of them.

Kept are the count, the means, and sums of powers (or products) of differences from the mean. Two of these are
merged as Chan, Golub and LeVeque do; nothing is ever subtracted. Every number but the count is two doubles
whose sum it is, so that even a small variance around a large mean keeps its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, Parts, WindowBatch
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Doubles, Integers, Whole, frozen
from millstream.kernels.core.kernel import Tuples

Double = tuple[float, float]
"""A number as the sum of two doubles, the second of which is far smaller."""

VARIANCE, SHAPE, PAIRS = 2, 4, 1
"""Up to squares; up to fourth powers; squares and products of pairs."""

_FIELDS = {
    VARIANCE: ("count", "mean", "squares"),
    SHAPE: ("count", "mean", "squares", "cubes", "fourths"),
    PAIRS: ("count", "mean", "second_mean", "squares", "second_squares", "products"),
}


class Moments(Accumulator):
    """One structured array: the count and pairs of doubles, which compiled loops see as rows of doubles."""

    def __init__(self, arguments: Sequence[str], kind: int) -> None:
        super().__init__(arguments[0])
        self._arguments = arguments
        self.kind = kind
        count, *sums = _FIELDS[kind]
        names = [count, *(name for field in sums for name in (field, f"{field}_rest"))]
        self._names = names
        self.record: np.dtype[Any] = np.dtype([(name, np.float64) for name in names])
        self.parts = {"state": self.record}  # type: ignore[misc, dict-item]

    @property
    def name(self) -> str:
        return f"moments{self.kind}({', '.join(self._arguments)})"

    def of_tuples(self, tuples: Tuples) -> Parts:
        arrays = [arrow_buffers.single(tuples.columns[name]) for name in self._arguments]
        valid = arrow_buffers.validity(arrays[0])
        values = [_doubles(array) for array in arrays]
        for array in arrays[1:]:
            valid = valid & arrow_buffers.validity(array)
        state = np.zeros(len(valid), self.record)
        _classify(self.kind, frozen(values[0]), frozen(values[-1]), frozen(valid), self.rows(state))
        return (state,)

    def rows(self, state: Array) -> Doubles:
        """The doubles of each, for compiled loops."""
        return state.view(np.float64).reshape(-1, len(self._names))

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        return {f"{self.name}.{name}": pa.array(parts[0][name]) for name in self._names}

    def of_table(self, table: pa.Table) -> Parts:
        state = np.empty(table.num_rows, self.record)
        for name in self._names:
            state[name] = arrow_buffers.values(arrow_buffers.single(table[f"{self.name}.{name}"]), np.float64)
        return (state,)

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = np.empty(len(groups) if running else 0, self.record)
        rows, totals = frozen(self.rows(np.ascontiguousarray(parts[0]))), self.rows(into[0])
        _fold(self.kind, frozen(groups), rows, totals, self.rows(out))
        return (out,)

    def trail(self, windows: int) -> AccumulatorLog:
        return _MomentsLog(self, windows)


class _MomentsLog(AccumulatorLog):
    """Two stacks for each window (see stacks.py), with rows of doubles instead of records."""

    def __init__(self, measure: Moments, windows: int) -> None:
        super().__init__(measure)
        self._measure = measure
        record = measure.record
        self._older = [Buffer(record) for _ in range(windows)]
        self._newer = [(Buffer(record, 0), Buffer(np.int64, 0), Buffer(np.int32, 0)) for _ in range(windows)]

    def ask(self, window: int, batch: WindowBatch) -> Parts:
        rows = self._measure.rows
        out = np.empty(len(batch), self._measure.record)
        older = self._older[window].resize(len(batch.previous))
        newer, bounds, latest = (buffer.resize(batch.keys) for buffer in self._newer[window])
        stacks = rows(older), rows(newer), bounds, latest
        _slide(self._measure.kind, batch.windows, batch.previous, rows(self.parts[0]), stacks, rows(out))
        return (out,)


def _doubles(array: pa.Array) -> Doubles:
    if pa.types.is_null(array.type):
        return np.zeros(len(array))
    dtype = np.float32 if pa.types.is_float32(array.type) else np.float64
    return arrow_buffers.values(array, dtype).astype(np.float64, copy=False)


def results(function: str, state: Array) -> tuple[Doubles, Array]:
    """An aggregate of each row, and where there is one: all by Spark's formulas."""
    count = state["count"]
    one = {name: state[name] + state[f"{name}_rest"] for name in (state.dtype.names or ())[1::2]}
    enough = count > 0
    with np.errstate(all="ignore"):
        match function:
            case "var_pop" | "stddev_pop":
                result = one["squares"] / count
            case "regr_sxx" | "regr_syy":
                result = one["squares"]
            case "var_samp" | "stddev_samp":
                result, enough = one["squares"] / (count - 1), count > 1
            case "skewness":
                result = np.sqrt(count) * one["cubes"] / np.sqrt(one["squares"] ** 3)
                enough = enough & (one["squares"] != 0)
            case "kurtosis":
                result = count * one["fourths"] / one["squares"] ** 2 - 3.0
                enough = enough & (one["squares"] != 0)
            case _:
                result, enough = _of_pairs(function, count, one)
        if function.startswith("stddev"):
            result = np.sqrt(result)
    return result, enough


def _of_pairs(function: str, count: Doubles, one: dict[str, Doubles]) -> tuple[Doubles, Array]:
    """The first of a pair is the dependent one, as Spark has it for regressions."""
    products, squares, others = one["products"], one["squares"], one["second_squares"]
    enough = count > 0
    match function:
        case "covar_pop":
            return products / count, enough
        case "covar_samp":
            return products / (count - 1), count > 1
        case "regr_sxy":
            return products, enough
        case "corr":
            root = np.sqrt(squares * others)
            return products / root, (count > 1) & (root != 0)
        case "regr_slope":
            return products / others, enough & (others != 0)
        case "regr_intercept":
            return one["mean"] - products / others * one["second_mean"], enough & (others != 0)
        case "regr_r2":
            fits = (products / np.sqrt(squares * others)) ** 2
            return np.where(squares == 0, 1.0, fits), enough & (others != 0)
    raise AssertionError(function)


# ---------------------------------------------------------------- compiled


@njit(cache=True)
def _plus(a: Double, b: Double) -> Double:
    upper = a[0] + b[0]
    part = upper - a[0]
    error = (a[0] - (upper - part)) + (b[0] - part) + a[1] + b[1]
    high = upper + error
    return high, error - (high - upper)


@njit(cache=True)
def _times(a: Double, b: Double) -> Double:
    product = a[0] * b[0]
    spread = 134217729.0 * a[0]
    head = spread - (spread - a[0])
    tail = a[0] - head
    spread = 134217729.0 * b[0]
    upper = spread - (spread - b[0])
    lower = b[0] - upper
    error = ((head * upper - product) + head * lower + tail * upper) + tail * lower
    error += a[0] * b[1] + a[1] * b[0]
    high = product + error
    return high, error - (high - product)


@njit(cache=True)
def _scaled(a: Double, factor: float) -> Double:
    return _times(a, (factor, 0.0))


@njit(cache=True)
def _share(part: float, whole: float) -> Double:
    """A quotient of counts."""
    quotient = part / whole
    product = _times((quotient, 0.0), (whole, 0.0))
    return quotient, ((part - product[0]) - product[1]) / whole


@njit(cache=True)
def _get(rows: Doubles, row: Whole, field: int) -> Double:
    return rows[row, 2 * field - 1], rows[row, 2 * field]


@njit(cache=True)
def _put(rows: Doubles, row: Whole, field: int, value: Double, plain: float) -> None:
    """What is too large for the digits of two doubles is as large as plain arithmetic finds it."""
    if np.isfinite(value[0]) and np.isfinite(value[1]):
        rows[row, 2 * field - 1], rows[row, 2 * field] = value
    else:
        rows[row, 2 * field - 1], rows[row, 2 * field] = plain, 0.0


@njit(cache=True)
def _classify(kind: int, values: Doubles, others: Doubles, valid: Bytes, state: Doubles) -> None:
    for i in range(len(values)):
        if not valid[i]:
            continue
        state[i, 0] = 1.0
        # Of an infinity or a NaN no difference can be taken.
        known = np.isfinite(values[i])
        state[i, 1] = values[i] if known else np.nan
        if kind != PAIRS:
            if not known:
                state[i, 3:] = np.nan
            continue
        second = np.isfinite(others[i])
        state[i, 3] = others[i] if second else np.nan
        if not known:
            state[i, 5] = np.nan
        if not second:
            state[i, 7] = np.nan
        if not (known and second):
            state[i, 9] = np.nan


@njit(cache=True)
def _merge(kind: int, a: Doubles, i: Whole, b: Doubles, j: Whole, out: Doubles, k: Whole) -> None:
    """Put the sum of a row of one array and a row of another into a row of a third, perhaps the same."""
    if a[i, 0] == 0.0 or b[j, 0] == 0.0:
        for field in range(out.shape[1]):
            out[k, field] = a[i, field] if b[j, 0] == 0.0 else b[j, field]
        return
    count_a, count_b = a[i, 0], b[j, 0]
    count = count_a + count_b
    share_a, share_b = _share(count_a, count), _share(count_b, count)
    both = _scaled(share_b, count_a)
    mean_a, mean_b = _get(a, i, 1), _get(b, j, 1)
    delta = _plus(mean_b, (-mean_a[0], -mean_a[1]))
    square = _times(delta, delta)
    mean = _plus(mean_a, _times(delta, share_b))
    if kind == PAIRS:
        other_a, other_b = _get(a, i, 2), _get(b, j, 2)
        other = _plus(other_b, (-other_a[0], -other_a[1]))
        out_other = _plus(other_a, _times(other, share_b))
        squares = _plus(_plus(_get(a, i, 3), _get(b, j, 3)), _times(square, both))
        others = _plus(_plus(_get(a, i, 4), _get(b, j, 4)), _times(_times(other, other), both))
        products = _plus(_plus(_get(a, i, 5), _get(b, j, 5)), _times(_times(delta, other), both))
        plain_squares = a[i, 5] + b[j, 5] + delta[0] * delta[0] * both[0]
        plain_others = a[i, 7] + b[j, 7] + other[0] * other[0] * both[0]
        plain_products = a[i, 9] + b[j, 9] + delta[0] * other[0] * both[0]
        _put(out, k, 2, out_other, other_a[0] + other[0] * share_b[0])
        _put(out, k, 3, squares, plain_squares)
        _put(out, k, 4, others, plain_others)
        _put(out, k, 5, products, plain_products)
    else:
        squares_a, squares_b = _get(a, i, 2), _get(b, j, 2)
        squares = _plus(_plus(squares_a, squares_b), _times(square, both))
        plain_squares = squares_a[0] + squares_b[0] + delta[0] * delta[0] * both[0]
        if kind == SHAPE:
            _merge_shapes(a, i, b, j, out, k, delta, both, share_a, share_b)
        _put(out, k, 2, squares, plain_squares)
    _put(out, k, 1, mean, mean_a[0] + delta[0] * share_b[0])
    out[k, 0] = count


@njit(cache=True)
def _merge_shapes(
    a: Doubles, i: Whole, b: Doubles, j: Whole, out: Doubles, k: Whole,
    delta: Double, both: Double, share_a: Double, share_b: Double,
) -> None:  # fmt: skip
    """Sums of cubes and of fourth powers (Pébay's formulas)."""
    squares_a, squares_b = _get(a, i, 2), _get(b, j, 2)
    cubes_a, cubes_b = _get(a, i, 3), _get(b, j, 3)
    minus_b = -share_b[0], -share_b[1]
    square = _times(_times(delta, delta), both)
    crossed = _plus(_times(share_a, squares_b), _times(minus_b, squares_a))
    inner = _plus(_times(square, _plus(share_a, minus_b)), _scaled(crossed, 3.0))
    cubes = _plus(_plus(cubes_a, cubes_b), _times(delta, inner))
    shares = _plus(_plus(_times(share_a, share_a), _times(share_a, minus_b)), _times(share_b, share_b))
    spread = _plus(_times(_times(share_a, share_a), squares_b), _times(_times(share_b, share_b), squares_a))
    turned = _plus(_times(share_a, cubes_b), _times(minus_b, cubes_a))
    inner = _plus(_times(delta, _plus(_times(square, shares), _scaled(spread, 6.0))), _scaled(turned, 4.0))
    fourths = _plus(_plus(_get(a, i, 4), _get(b, j, 4)), _times(delta, inner))
    d, s, r = delta[0], share_a[0], share_b[0]
    large = d * d * both[0]
    _put(out, k, 3, cubes, cubes_a[0] + cubes_b[0] + d * (large * (s - r) + 3.0 * crossed[0]))
    plain = a[i, 7] + b[j, 7] + d * (d * (large * shares[0] + 6.0 * spread[0]) + 4.0 * turned[0])
    _put(out, k, 4, fourths, plain)


@njit(cache=True)
def _fold(kind: int, groups: Codes, rows: Doubles, into: Doubles, out: Doubles) -> None:
    for i in range(len(groups)):
        group = groups[i]
        _merge(kind, into, group, rows, i, into, group)
        if len(out):
            out[i] = into[group]


@njit(cache=True)
def _slide(
    kind: int,
    windows: Parts,
    previous: Codes,
    rows: Doubles,
    stacks: tuple[Doubles, Doubles, Integers, Codes],
    out: Doubles,
) -> None:
    """Windows one after the other, by two stacks."""
    codes, starts, ends, rebuild = windows
    older, newer, bounds, latest = stacks
    for i in range(len(codes)):
        key, start, end = codes[i], starts[i], ends[i]
        row = end
        if start >= bounds[key] or (len(rebuild) and rebuild[i]):
            older[end] = rows[end]
            while row != start:
                before = previous[row]
                _merge(kind, rows, before, older, row, older, before)
                row = before
            bounds[key] = end + 1
            newer[key] = 0.0
            out[i] = older[start]
        else:
            while row != latest[key]:
                _merge(kind, newer, key, rows, row, newer, key)
                row = previous[row]
            _merge(kind, older, start, newer, key, out, i)
        latest[key] = end
