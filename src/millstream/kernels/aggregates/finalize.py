"""Results of aggregates from accumulators, in their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates import double_double, double_sum, moments
from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.aggregates.accumulator_selection import Aggregate
from millstream.kernels.aggregates.best_row import BestRow
from millstream.kernels.aggregates.content_aggregates import DistinctValues, Recomputed
from millstream.kernels.aggregates.min_max_bitwise import MinMaxBitwise
from millstream.kernels.aggregates.percentiles import OrderStatistics, interpolated
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Doubles, Integers
from millstream.kernels.core.column_codec import SHORT_DECIMAL, Column, is_long_decimal
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.specs import AggregateSpec

Position = Callable[[int], tuple[int | float, ...]]
"""A function that returns the position of a row, for errors."""

_MASK = 2**64 - 1


def result(
    aggregate: Aggregate, accumulator: Accumulator, parts: Sequence[Parts], position: Position
) -> pa.Array:
    """Return the results of an aggregate from the parts of its accumulators, of which the first is given."""
    spec = aggregate.spec
    if isinstance(accumulator, Recomputed):
        return _of_contents(aggregate, accumulator, parts[0], position)
    if isinstance(accumulator, MinMaxBitwise | BestRow):
        return accumulator.column.decode(*parts[0])
    if isinstance(accumulator, OrderStatistics):
        return _of_order(spec, accumulator, parts[0])
    if isinstance(accumulator, moments.Moments):
        return arrow_buffers.build(spec.type, *moments.results(spec.function, parts[0][0]))
    if spec.function == "count":
        return arrow_buffers.build(spec.type, parts[0][0])
    if isinstance(accumulator, double_sum.DoubleSum):
        return _of_doubles(aggregate, parts)
    if spec.function in ("try_sum", "try_avg"):
        return _tried(aggregate, accumulator, parts)
    count = parts[-1][0]
    low, high = parts[0]
    if spec.function == "avg" and pa.types.is_floating(spec.type):
        total, rest = _as_doubles(low, high)
        return arrow_buffers.build(spec.type, _quotients(total, rest, count), count > 0)
    try:
        if is_long_decimal(aggregate.argument):
            return _rounded(aggregate, _long_totals(parts[0], parts[1], count), count)
        if spec.function == "avg" or _scaling(aggregate) != (1, 1):
            return _mean(aggregate, low, high, count)
        return _sum(spec.type, low, high, count)
    except _DoesNotFitError as error:
        raise KernelError(spec.function, spec.text or spec.argument, spec.type, position(error.row)) from None


class _DoesNotFitError(Exception):
    def __init__(self, row: int) -> None:
        self.row = row


def _tried(aggregate: Aggregate, accumulator: Accumulator, parts: Sequence[Parts]) -> pa.Array:
    """Return the result, NULL where it does not fit; most often all do."""
    plain = "sum" if aggregate.spec.function == "try_sum" else "avg"
    wanted = replace(aggregate, spec=replace(aggregate.spec, function=plain))
    count = len(parts[0][0])
    out: list[pa.Array] = []
    start = 0
    while True:
        rest = [tuple(part[start:] for part in measured) for measured in parts]
        try:
            out.append(result(wanted, accumulator, rest, lambda row: (row,)))
        except KernelError as error:
            row = int(error.position[0])
            fitting = [tuple(part[:row] for part in measured) for measured in rest]
            out += [result(wanted, accumulator, fitting, lambda row: (row,)), pa.nulls(1, wanted.spec.type)]
            start += row + 1
        else:
            return pa.concat_arrays(out) if count else out[0]


def _of_contents(aggregate: Aggregate, measure: Recomputed, parts: Parts, position: Position) -> pa.Array:
    summary = measure.summary
    if not isinstance(summary, DistinctValues):
        return parts[0]
    inner = replace(aggregate, spec=replace(aggregate.spec, distinct=False))
    return result(inner, summary.measures[0], summary.split(parts), position)


def _of_order(spec: AggregateSpec, measure: OrderStatistics, parts: Parts) -> pa.Array:
    sizes, different, modes, lows, highs = parts
    some = sizes > 0
    if spec.function == "count":
        return arrow_buffers.build(spec.type, different)
    if spec.function == "mode":
        return measure.column.decode(modes, some)
    columns = measure.columns_of(spec)
    low, high = lows[:, columns], highs[:, columns]
    valid = np.repeat(some, len(columns))
    if spec.function == "percentile":
        between = interpolated(measure.column, spec, sizes, (low, high)).ravel()
        kind = spec.type.value_type if pa.types.is_list(spec.type) else spec.type
        if pa.types.is_floating(kind):
            values = arrow_buffers.build(pa.float64(), between, valid)
        else:
            # Intervals are whole numbers of microseconds; Spark cuts the rest off.
            values = measure.column.decode(np.trunc(between).astype(np.int64), valid)
    else:
        values = measure.column.decode(low.ravel(), valid)
    if not pa.types.is_list(spec.type):
        return values
    offsets = np.arange(len(sizes) + 1, dtype=np.int32) * len(columns)
    lists = pa.ListArray.from_arrays(pa.array(offsets), values).cast(spec.type)
    return lists if some.all() else lists.take(pa.array(np.arange(len(sizes)), mask=~some))


def _of_doubles(aggregate: Aggregate, parts: Sequence[Parts]) -> pa.Array:
    total, some = double_sum.total(parts[0])
    if aggregate.spec.function in ("avg", "try_avg"):
        high, low, flags = parts[0]
        count = parts[1][0]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            means = _quotients(high, low, count)
            # A sum that is too large for a double can have a mean that is not.
            means = np.where(flags & double_sum.SCALED, means / double_sum.SCALE, means)
            special = flags & ~np.uint8(double_sum.SCALED | double_sum.SOME) > 0
            total = np.where(special, total, means)
    return arrow_buffers.build(aggregate.spec.type, total, some)


def _sum(type_: pa.DataType, low: Integers, high: Integers, count: Integers) -> pa.Array:
    """Return sums of 128 bits in their type, or fail if they do not fit."""
    short = high == low >> 63
    if not pa.types.is_decimal(type_):
        _check(short)
        return Column(type_).decode(low, count > 0)
    most = 10**type_.precision
    if type_.precision <= SHORT_DECIMAL:
        _check(short & (-most < low) & (low < most))
    else:
        # Few sums are longer than 64 bits: Python's integers are fast enough for them.
        for row in np.flatnonzero(~short):
            if abs(_whole(low[row], high[row])) >= most:
                raise _DoesNotFitError(int(row))
    return arrow_buffers.build(type_, np.stack([low, high], axis=1), count > 0)


def _mean(aggregate: Aggregate, low: Integers, high: Integers, count: Integers) -> pa.Array:
    """Return means of decimals and intervals, rounded half up (away from zero): fast if 64 bits suffice."""
    times, parts = _scaling(aggregate)
    most = 2**61 // times
    if (count < 2**61 // parts).all() and (high == low >> 63).all() and ((-most < low) & (low < most)).all():
        divisor = _divisors(aggregate, count)
        rounded = (2 * abs(low) * times + divisor) // (2 * divisor) * np.sign(low)
        return _sum(aggregate.spec.type, rounded, rounded >> 63, count)
    return _rounded(aggregate, map(_whole, low, high), count)


def _divisors(aggregate: Aggregate, count: Integers) -> Integers:
    _, parts = _scaling(aggregate)
    return np.maximum(count if aggregate.spec.function == "avg" else np.ones_like(count), 1) * parts


def _rounded(aggregate: Aggregate, totals: Iterable[int], count: Integers) -> pa.Array:
    """Return sums or means from totals of any length."""
    times, _ = _scaling(aggregate)
    rounded = [
        (2 * abs(total) * times + divisor) // (2 * divisor) * (1 if total >= 0 else -1)
        for total, divisor in zip(totals, _divisors(aggregate, count).tolist(), strict=True)
    ]
    type_ = aggregate.spec.type
    most = 10**type_.precision if pa.types.is_decimal(type_) else 2**63
    for row, value in enumerate(rounded):
        if abs(value) >= most:
            raise _DoesNotFitError(row)
    low = np.array([value & _MASK for value in rounded], np.uint64).view(np.int64)
    return _sum(type_, low, np.array([value >> 64 for value in rounded], np.int64), count)


def _long_totals(low: Parts, high: Parts, count: Integers) -> Iterator[int]:
    """Yield sums of long decimals from those of their halves; the low ones are less by 2**63 each."""
    for lower, upper, n in zip(map(_whole, *low), map(_whole, *high), count.tolist(), strict=True):
        yield (upper << 64) + lower + (n << 63)


def _scaling(aggregate: Aggregate) -> tuple[int, int]:
    """Return multiplier and divisor from the argument's scale to that of the result."""
    if not pa.types.is_decimal(aggregate.spec.type):
        return 1, 1
    digits = aggregate.spec.type.scale - aggregate.argument.scale
    return 10 ** max(digits, 0), 10 ** max(-digits, 0)


def _whole(low: np.int64, high: np.int64) -> int:
    return (int(high) << 64) + (int(low) & _MASK)


def _check(fits: npt.NDArray[np.bool_]) -> None:
    if not fits.all():
        raise _DoesNotFitError(int(np.argmin(fits)))


@njit(cache=True, error_model="numpy")
def _quotients(high: Doubles, low: Doubles, count: Integers) -> Doubles:
    """Divide sums of two doubles by counts, rounding once."""
    result = np.empty(len(high))
    for i in range(len(high)):
        divisor = np.float64(count[i])
        quotient = high[i] / divisor
        # The exact error of quotient times divisor is divided in turn.
        product = double_double.times((quotient, 0.0), (divisor, 0.0))
        rest = ((high[i] - product[0]) - product[1] + low[i]) / divisor
        result[i] = quotient + rest if np.isfinite(rest) else quotient
    return result


@njit(cache=True)
def _as_doubles(low: Integers, high: Integers) -> tuple[Doubles, Doubles]:
    """Convert integers of 128 bits to sums of two doubles."""
    result, rest = np.empty(len(low)), np.empty(len(low))
    for i in range(len(low)):
        upper = np.float64(high[i]) * 2.0**64
        middle = np.float64((low[i] >> 32) & 0xFFFFFFFF) * 2.0**32
        total = upper + middle
        part = total - upper
        error = (upper - (total - part)) + (middle - part) + np.float64(low[i] & 0xFFFFFFFF)
        result[i] = total + error
        rest[i] = error - (result[i] - total)
    return result, rest
