"""Functions from all elements of windows to results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates import value_lists
from millstream.kernels.aggregates.accumulator import Parts
from millstream.kernels.aggregates.content_aggregates import Elements, Summary
from millstream.kernels.specs import ROWS, AggregateSpec


def summary(spec: AggregateSpec) -> Summary:
    """Return the function that computes an aggregate from elements as a column of results."""
    make = _SUMMARIES[spec.function]
    return _Bound(make, spec)


class _Bound:
    """A function bound to its aggregate; not a closure, because kernels are pickled."""

    def __init__(self, make: Callable[[AggregateSpec, Elements], pa.Array], spec: AggregateSpec) -> None:
        self._make, self._spec = make, spec

    def __call__(self, elements: Elements) -> Parts:
        return (self._make(self._spec, elements),)


def _listed(spec: AggregateSpec, elements: Elements) -> pa.Array:
    lists = value_lists.as_list(elements.columns[0], elements.lengths, elements.codes[0], elements.valid[0])
    return _as(spec, lists)


def _rows(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Return all tuples of each window, in the order of the stream."""
    offsets = np.zeros(elements.count + 1, np.int32)
    offsets[1:] = np.cumsum(elements.lengths)
    columns = [elements.array(i) for i in range(len(elements.columns))]
    rows = pa.StructArray.from_arrays(columns, fields=list(spec.type.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), rows, type=spec.type)


def _joined(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute listagg: texts (or bytes) with a separator, perhaps in their own order."""
    if spec.order:
        elements = elements.take(_sorted(spec, elements))
    (separator,) = spec.parameters
    return pa.array([separator.join(words) if words else None for words in _each(elements, 0)], spec.type)


def _sorted(spec: AggregateSpec, elements: Elements) -> np.ndarray[Any, Any]:
    keys = [elements.windows]
    for argument, order in enumerate(spec.order, len(elements.columns) - len(spec.order)):
        valid = elements.valid[argument].astype(np.int64)
        places = elements.places(argument) * valid
        # Complements have the reverse order of integers.
        keys += [valid if order.nulls_first else 1 - valid, ~places if order.descending else places]
    return np.lexsort(keys[::-1])


def _extreme(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute min_by and max_by with a limit: the values of the best tuples, the best first."""
    places = elements.places(1)
    order = np.lexsort((~places if spec.function == "max_by" else places, elements.windows))
    (wanted,) = spec.parameters
    elements = elements.take(order)
    lengths = elements.lengths
    rows = value_lists.within(np.cumsum(lengths) - lengths, np.minimum(lengths, int(wanted)))
    elements = elements.take(rows)
    lists = value_lists.as_list(elements.columns[0], elements.lengths, elements.codes[0], elements.valid[0])
    return _or_null(spec, lists, elements.lengths > 0)


def _united(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute collect_union: the different elements of lists."""
    out = [
        list(dict.fromkeys(v for lst in lists for v in lst if v is not None)) for lists in _each(elements, 0)
    ]
    return pa.array(out, spec.type)


def _most_frequent(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute approx_top_k, exactly; of equally frequent values the first that came."""
    (most,) = spec.parameters
    codes = np.where(elements.valid[0], elements.codes[0], -1)
    keys = list(zip(elements.valid[0].tolist(), codes.tolist(), strict=True))
    place_of = {key: place for place, key in enumerate(keys)}
    found: list[tuple[int, int]] = []
    offsets, end = [0], 0
    for length in elements.lengths.tolist():
        counted = Counter(keys[end : end + length]).most_common(int(most))
        found += [(place_of[key], number) for key, number in counted]
        offsets.append(len(found))
        end += length
    items = elements.array(0).take(pa.array([place for place, _ in found], pa.int64()))
    counts = pa.array([number for _, number in found], pa.int64())
    fields = [spec.type.value_type.field(i) for i in range(2)]
    columns = [one.cast(field.type) for one, field in zip((items, counts), fields, strict=True)]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=spec.type)


def _percentile_of_counts(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute percentile(value, percentage, frequency)."""
    elements = elements.take(np.lexsort((elements.places(0), elements.windows)))
    out: list[Any] = []
    is_list = pa.types.is_list(spec.type)
    for values, counts in zip(_each(elements, 0), _each(elements, 1), strict=True):
        if any(count < 0 for count in counts):
            raise ValueError("a frequency of percentile is negative")
        ends = np.cumsum(counts)
        if not len(ends) or not ends[-1]:
            out.append(None)
            continue
        found = [_weighed(values, ends, share) for share in spec.parameters]
        out.append(found if is_list else found[0])
    return pa.array(out, spec.type)


def _weighed(values: list[float], ends: np.ndarray[Any, Any], share: float) -> float:
    position = (int(ends[-1]) - 1) * share
    low, high = math.floor(position), math.ceil(position)
    one, two = (values[int(np.searchsorted(ends, rank, "right"))] for rank in (low, high))
    return one if low == high or one == two else (high - position) * one + (position - low) * two


def _histogram(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute histogram_numeric (Ben-Haim and Tom-Tov): merge the bins that are nearest to each other."""
    (most,) = spec.parameters
    out = []
    for values in _each(elements, 0):
        bins: list[list[float]] = []
        for value in values:
            _put(bins, value, int(most))
        out.append([{"x": x, "y": y} for x, y in bins] or None)
    type_ = spec.type.value_type
    struct = pa.array([one for bins in out for one in bins or ()], _doubled(type_))
    if struct.type != type_:
        struct = pa.StructArray.from_arrays(
            [struct.field(0).cast(type_.field(0).type, safe=False), struct.field(1)], ["x", "y"]
        )
    lengths = np.array([len(bins or ()) for bins in out], np.int64)
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), struct)
    return _or_null(spec, lists, lengths > 0)


def _doubled(type_: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])


def _put(bins: list[list[float]], value: float, most: int) -> None:
    place = next((i for i, (x, _) in enumerate(bins) if x >= value), len(bins))
    if place < len(bins) and bins[place][0] == value:
        bins[place][1] += 1.0
        return
    bins.insert(place, [float(value), 1.0])
    if len(bins) > most:
        gaps = [after[0] - before[0] for before, after in pairwise(bins)]
        at = gaps.index(min(gaps))
        (x, y), (other, more) = bins[at], bins[at + 1]
        bins[at : at + 2] = [[(x * y + other * more) / (y + more), y + more]]


def _vectors(spec: AggregateSpec, elements: Elements) -> pa.Array:
    """Compute vector_sum and vector_avg, component by component."""
    out = []
    for vectors in _each(elements, 0):
        whole = [vector for vector in vectors if None not in vector]
        total = np.sum(np.array(whole, np.float64), axis=0) if whole else None
        if total is not None and spec.function == "vector_avg":
            total = total / len(whole)
        out.append(None if total is None else total.tolist())
    return pa.array(out, spec.type)


def _each(elements: Elements, argument: int) -> Iterator[list[Any]]:
    """Yield the values of an argument, window by window."""
    values = elements.array(argument).to_pylist()
    end = 0
    for length in elements.lengths.tolist():
        yield values[end : end + length]
        end += length


def _as(spec: AggregateSpec, lists: pa.Array) -> pa.Array:
    return lists if lists.type == spec.type else lists.cast(spec.type)


def _or_null(spec: AggregateSpec, lists: pa.Array, some: np.ndarray[Any, Any]) -> pa.Array:
    """Return lists, with NULL for empty windows."""
    rows = pa.array(np.arange(len(lists)), mask=~some)
    return _as(spec, lists.take(rows))


_SUMMARIES: dict[str, Callable[[AggregateSpec, Elements], pa.Array]] = {
    ROWS: _rows,
    "collect_list": _listed,
    "collect_set": _listed,
    "listagg": _joined,
    "min_by": _extreme,
    "max_by": _extreme,
    "collect_union": _united,
    "approx_top_k": _most_frequent,
    "percentile_of_counts": _percentile_of_counts,
    "histogram_numeric": _histogram,
    "vector_sum": _vectors,
    "vector_avg": _vectors,
}
