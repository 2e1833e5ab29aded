"""Variance, skewness, kurtosis, covariance, correlation and regression, of numbers and of pairs.

The state is the count, the means, and sums of powers (or products) of differences from the mean. Two states
are merged by the formulas of Chan, Golub and LeVeque; nothing is ever subtracted. Every number but the count
is the sum of two doubles, so that even a small variance around a large mean is precise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.jit import compiled_methods, njit
from millstream.kernels.aggregates.accumulator import AccumulatorLog, FixedWidthAccumulator, Parts
from millstream.kernels.aggregates.double_double import (
    Double,
    minus,
    or_plain,
    plus,
    quotient,
    scaled,
    times,
)
from millstream.kernels.aggregates.two_stacks import TwoStacksLog
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Bytes, Doubles, Whole, frozen
from millstream.kernels.core.kernel import Tuples

VARIANCE, SHAPE, PAIRS = 2, 4, 1
"""Kinds of moments: up to squares; up to fourth powers; squares and products of pairs."""

_FIELDS = {
    VARIANCE: ("count", "mean", "squares"),
    SHAPE: ("count", "mean", "squares", "cubes", "fourths"),
    PAIRS: ("count", "mean", "second_mean", "squares", "second_squares", "products"),
}


class Moments(FixedWidthAccumulator):
    """An accumulator with one structured array: the count and pairs of doubles."""

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
        doubles = state.view(np.float64).reshape(-1, len(self._names))
        _classify(self.kind, frozen(values[0]), frozen(values[-1]), frozen(valid), doubles)
        return (state,)

    def rows(self, parts: Parts) -> VarianceRows | ShapeRows | PairRows:
        return _ROWS[self.kind](*parts)

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        return {f"{self.name}.{name}": pa.array(parts[0][name]) for name in self._names}

    def of_table(self, table: pa.Table) -> Parts:
        state = np.empty(table.num_rows, self.record)
        for name in self._names:
            state[name] = arrow_buffers.values(arrow_buffers.single(table[f"{self.name}.{name}"]), np.float64)
        return (state,)

    def trail(self, windows: int) -> AccumulatorLog:
        return TwoStacksLog(self, windows, dict.fromkeys(self._names, np.float64))


def _doubles(array: pa.Array) -> Doubles:
    if pa.types.is_null(array.type):
        return np.zeros(len(array))
    dtype = np.float32 if pa.types.is_float32(array.type) else np.float64
    return arrow_buffers.values(array, dtype).astype(np.float64, copy=False)


def results(function: str, state: Array) -> tuple[Doubles, Array]:
    """Return an aggregate of each row, and where there is one, by Spark's formulas."""
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
    """Return an aggregate of pairs; the first of a pair is the dependent one, as in Spark's regressions."""
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


@njit(cache=True, allocates=False)
def _classify(kind: int, values: Doubles, others: Doubles, valid: Bytes, state: Doubles) -> None:
    for i in range(len(values)):
        if not valid[i]:
            continue
        state[i, 0] = 1.0
        # An infinity or a NaN has no difference from the mean.
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


@njit(cache=True, allocates=False)
def _merge_weights(count: float, other: float) -> tuple[Double, Double, Double]:
    """Return the shares of two counts in their sum, and the product of the counts divided by their sum."""
    share, other_share = quotient(count, count + other), quotient(other, count + other)
    return share, other_share, scaled(other_share, count)


@njit(cache=True, allocates=False)
def _merge_means(a: Double, delta: Double, share: Double) -> Double:
    return or_plain(plus(a, times(delta, share)), a[0] + delta[0] * share[0])


@njit(cache=True, allocates=False)
def _merge_products(a: Double, b: Double, delta: Double, other: Double, both: Double) -> Double:
    """Return the sum of products of differences from two means; squares are products with themselves."""
    exact = plus(plus(a, b), times(times(delta, other), both))
    return or_plain(exact, a[0] + b[0] + delta[0] * other[0] * both[0])


Variance = tuple[float, Double, Double]
"""Count, mean and sum of squares."""

Shape = tuple[float, Double, Double, Double, Double]
"""Count, mean and sums of squares, cubes and fourth powers."""

Pair = tuple[float, Double, Double, Double, Double, Double]
"""Count, both means, both sums of squares, and the sum of products."""


class _Records(NamedTuple):
    """Records, which are both the parts of moments and the elements of stacks."""

    records: Array

    def value(self, row: Whole) -> Any:
        return self.load(self.records[row])

    def put(self, row: Whole, value: Any) -> None:
        self.store(self.records[row], value)

    @abstractmethod
    def load(self, record: Any) -> Any: ...

    @abstractmethod
    def store(self, record: Any, value: Any) -> None: ...


@compiled_methods
class VarianceRows(_Records):
    """Records of variances."""

    def load(self, record: Any) -> Variance:
        return record.count, (record.mean, record.mean_rest), (record.squares, record.squares_rest)

    def store(self, record: Any, value: Variance) -> None:
        record.count, (record.mean, record.mean_rest), (record.squares, record.squares_rest) = value

    def merge(self, value: Variance, later: Variance) -> Variance:
        if value[0] == 0.0 or later[0] == 0.0:
            return value if later[0] == 0.0 else later
        count, mean, squares = value
        _, share, both = _merge_weights(count, later[0])
        delta = minus(later[1], mean)
        return (
            count + later[0],
            _merge_means(mean, delta, share),
            _merge_products(squares, later[2], delta, delta, both),
        )


@compiled_methods
class ShapeRows(_Records):
    """Records of skewness and kurtosis."""

    def load(self, record: Any) -> Shape:
        mean, squares = (record.mean, record.mean_rest), (record.squares, record.squares_rest)
        cubes, fourths = (record.cubes, record.cubes_rest), (record.fourths, record.fourths_rest)
        return record.count, mean, squares, cubes, fourths

    def store(self, record: Any, value: Shape) -> None:
        record.count, (record.mean, record.mean_rest), (record.squares, record.squares_rest) = value[:3]
        (record.cubes, record.cubes_rest), (record.fourths, record.fourths_rest) = value[3:]

    def merge(self, value: Shape, later: Shape) -> Shape:
        """Return the value of both, by Pébay's formulas for cubes and fourth powers."""
        if value[0] == 0.0 or later[0] == 0.0:
            return value if later[0] == 0.0 else later
        count, mean, squares_a, cubes_a, fourths_a = value
        _, _, squares_b, cubes_b, fourths_b = later
        share_a, share_b, both = _merge_weights(count, later[0])
        delta = minus(later[1], mean)
        minus_b = -share_b[0], -share_b[1]
        square = times(times(delta, delta), both)
        crossed = plus(times(share_a, squares_b), times(minus_b, squares_a))
        inner = plus(times(square, plus(share_a, minus_b)), scaled(crossed, 3.0))
        cubes = plus(plus(cubes_a, cubes_b), times(delta, inner))
        shares = plus(plus(times(share_a, share_a), times(share_a, minus_b)), times(share_b, share_b))
        spread = plus(times(times(share_a, share_a), squares_b), times(times(share_b, share_b), squares_a))
        turned = plus(times(share_a, cubes_b), times(minus_b, cubes_a))
        inner = plus(times(delta, plus(times(square, shares), scaled(spread, 6.0))), scaled(turned, 4.0))
        fourths = plus(plus(fourths_a, fourths_b), times(delta, inner))
        d, s, r = delta[0], share_a[0], share_b[0]
        large = d * d * both[0]
        plain_cubes = cubes_a[0] + cubes_b[0] + d * (large * (s - r) + 3.0 * crossed[0])
        plain = d * (d * (large * shares[0] + 6.0 * spread[0]) + 4.0 * turned[0])
        return (
            count + later[0],
            _merge_means(mean, delta, share_b),
            _merge_products(squares_a, squares_b, delta, delta, both),
            or_plain(cubes, plain_cubes),
            or_plain(fourths, fourths_a[0] + fourths_b[0] + plain),
        )


@compiled_methods
class PairRows(_Records):
    """Records of covariances."""

    def load(self, record: Any) -> Pair:
        mean, second = (record.mean, record.mean_rest), (record.second_mean, record.second_mean_rest)
        squares = record.squares, record.squares_rest
        second_squares = record.second_squares, record.second_squares_rest
        return record.count, mean, second, squares, second_squares, (record.products, record.products_rest)

    def store(self, record: Any, value: Pair) -> None:
        record.count, (record.mean, record.mean_rest) = value[:2]
        record.second_mean, record.second_mean_rest = value[2]
        record.squares, record.squares_rest = value[3]
        record.second_squares, record.second_squares_rest = value[4]
        record.products, record.products_rest = value[5]

    def merge(self, value: Pair, later: Pair) -> Pair:
        if value[0] == 0.0 or later[0] == 0.0:
            return value if later[0] == 0.0 else later
        count, mean, second_mean, squares, second_squares, products = value
        _, share, both = _merge_weights(count, later[0])
        delta, other = minus(later[1], mean), minus(later[2], second_mean)
        return (
            count + later[0],
            _merge_means(mean, delta, share),
            _merge_means(second_mean, other, share),
            _merge_products(squares, later[3], delta, delta, both),
            _merge_products(second_squares, later[4], other, other, both),
            _merge_products(products, later[5], delta, other, both),
        )


_ROWS: dict[int, type[VarianceRows | ShapeRows | PairRows]] = {
    VARIANCE: VarianceRows,
    SHAPE: ShapeRows,
    PAIRS: PairRows,
}
