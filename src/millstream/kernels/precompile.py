"""Compiling before a query starts, so that no batch has to wait for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from millstream.kernels.column_names import BY_KEY, KEY, KEY2, WHOLE
from millstream.kernels.core.kernel import END, Frontier, Kernel, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.active_expiration import ActiveAggregate
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.relational.stream_union import StreamUnion
from millstream.kernels.specs import AggregateSpec, OverSpec, SlideSpec, WindowSpec
from millstream.kernels.window_specs import (
    AssignerSpec,
    LandmarkWindows,
    NowWindows,
    RowWindows,
    SessionOrPredicateWindows,
    SlidingWindows,
    TupleSlideWindows,
)
from millstream.kernels.windows.arrival_numbers import ArrivalNumbers
from millstream.kernels.windows.pane_sweep import PaneLog
from millstream.kernels.windows.window_aggregate import WindowAggregate

_ROWS = 100  # enough for hash tables to grow
_REACH: tuple[dict[str, int], ...] = ({"rows": 2}, {"range": 2}, {})


def compile_kernels() -> None:
    """Run all that is compiled once, on a handful of tuples: afterwards it is in memory, and in the cache."""
    tuples = _tuples()
    calls = tuple(OverSpec(aggregate, **reach) for reach in _REACH for aggregate in _aggregates())
    elsewhere = (
        OverSpec(calls[0].aggregate, rows=1, rows_until=-1),
        OverSpec(calls[0].aggregate, range=2, range_until=1),
    )
    panes = WindowSpec(SlidingWindows(4, 2), pa.int64(), ("word",), tuple(_aggregates()))
    kernels: list[list[Kernel]] = [
        [Reorder(), OverAggregate(calls)],
        *([Reorder(), OverAggregate((call,))] for call in elsewhere),
        [Reorder(), OverAggregate(calls, SlideSpec(rows=6))],
        [Reorder(), OverAggregate(calls, SlideSpec(time=6))],
        [WindowAggregate(panes)],
        *([Reorder(), WindowAggregate(spec)] for spec in _kinds(panes)),
        [
            ArrivalNumbers(2, WHOLE),
            WindowAggregate(replace(panes, assigner=TupleSlideWindows(3, 2, by_rank=False))),
        ],
        [StreamUnion()],
    ]
    for chain in kernels:
        for frontier in (Frontier(_ROWS // 2, 0), END):
            _run(chain, tuples, frontier)
    # It wants all tuples in order: none that are late.
    _run([Reorder(), ActiveAggregate(OverSpec(calls[0].aggregate, range=2))], tuples, END)
    PaneLog().live_rows()


def _run(chain: list[Kernel], tuples: Tuples, frontier: Frontier) -> None:
    for kernel in chain:
        tuples = kernel.process(tuples, frontier)
        kernel.snapshot()


def _kinds(panes: WindowSpec) -> list[WindowSpec]:
    """Windows of the other kinds; what their aggregates compile is the same."""
    kinds: list[AssignerSpec] = [
        RowWindows(3, 2, per=BY_KEY),
        SessionOrPredicateWindows(gap=2, emit=1),
        LandmarkWindows(slide=3, emit=1),
        NowWindows(),
    ]
    return [replace(panes, assigner=kind, aggregates=panes.aggregates[:1]) for kind in kinds]


def _tuples() -> Tuples:
    """Out of order, with NULLs, and some that are late."""
    numbers = np.arange(_ROWS)
    some_null = numbers % 3 == 0
    columns = {
        KEY: pa.array(numbers % 50, mask=some_null),
        KEY2: pa.array(numbers % 50),
        "whole": pa.array(numbers, mask=some_null),
        "double": pa.array(numbers / 2, mask=some_null),
        "word": pa.array([str(number) for number in numbers]),
    }
    hold = np.where(numbers % 10 == 0, numbers, np.iinfo(np.int64).min)
    return Tuples(pa.table(columns), numbers[::-1].copy(), np.zeros(_ROWS, np.int32), numbers, hold)


def _aggregates() -> list[AggregateSpec]:
    wanted: list[tuple[str, str | None, pa.DataType]] = [
        ("count", None, pa.int64()),
        ("sum", "whole", pa.int64()),
        ("avg", "whole", pa.float64()),
        ("sum", "double", pa.float64()),
        ("avg", "double", pa.float64()),
        ("min", "double", pa.float64()),
        ("max", "word", pa.string()),
        ("first", "whole", pa.int64()),
        ("last", "whole", pa.int64()),
        ("bit_and", "whole", pa.int64()),
        ("var_pop", "double", pa.float64()),
        ("kurtosis", "double", pa.float64()),
        ("collect_list", "whole", pa.list_(pa.int64())),
    ]
    plain = [
        AggregateSpec(function, argument, f"{function}_{argument}", type_, ignore_nulls=True)
        for function, argument, type_ in wanted
    ]
    return [
        *plain,
        AggregateSpec("corr", "double", "corr", pa.float64(), others=("double",)),
        AggregateSpec("max_by", "word", "max_by", pa.string(), others=("whole",)),
        AggregateSpec("percentile", "double", "percentile", pa.float64(), parameters=(0.5,)),
    ]
