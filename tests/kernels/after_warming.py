"""Run in a process of its own: warm up, process all kinds of input, and look for late compilation."""

import pickle
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
from checks import Store
from test_compiled import compiled

from millstream.kernels.column_names import BY_KEY, KEY, WHOLE
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.active_expiration import ActiveAggregate
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.precompile import compile_kernels
from millstream.kernels.relational.stream_union import StreamUnion
from millstream.kernels.specs import AggregateSpec, Order, OverSpec, SlideSpec, WindowSpec
from millstream.kernels.window_specs import (
    LandmarkWindows,
    NowWindows,
    RowWindows,
    SessionOrPredicateWindows,
    SlidingWindows,
    TupleSlideWindows,
)
from millstream.kernels.windows.arrival_numbers import ArrivalNumbers
from millstream.kernels.windows.window_aggregate import WindowAggregate

ROWS = 60
SHORT, LONG = pa.decimal128(17, 2), pa.decimal128(30, 2)
FUNCTIONS = [
    ("count", None, pa.int64()),
    ("sum", "i", pa.int64()),
    ("avg", "f", pa.float64()),
    ("min", "h", pa.int16()),
    ("max", "f", pa.float64()),
    ("min", "s", pa.string()),
    ("first", "s", pa.string()),
    ("last", "d", SHORT),
    ("sum", "d", pa.decimal128(27, 2)),
    ("avg", "d", pa.decimal128(21, 6)),
    ("sum", "e", pa.decimal128(38, 2)),
]
SPECS = (
    *(
        AggregateSpec(function, argument, f"{function}{argument}{ignore}", type_, ignore)
        for (function, argument, type_), ignore in product(FUNCTIONS, (True, False))
    ),
    AggregateSpec("first", "i", "first where", pa.int64(), condition="b"),
    AggregateSpec("bit_xor", "h", "bit_xor", pa.int16()),
    AggregateSpec("stddev_samp", "f", "stddev", pa.float64()),
    AggregateSpec("skewness", "f", "skewness", pa.float64()),
    AggregateSpec("covar_pop", "f", "covar_pop", pa.float64(), others=("f",)),
    AggregateSpec("min_by", "s", "min_by", pa.string(), others=("e",)),
    AggregateSpec("max_by", "d", "max_by", SHORT, others=("f",)),
    AggregateSpec("percentile", "f", "median", pa.float64(), parameters=(0.5,)),
    AggregateSpec("percentile_approx", "d", "approx", pa.list_(SHORT), parameters=(0.1, 0.9)),
    AggregateSpec("mode", "s", "mode", pa.string(), order=(Order(descending=True),)),
    AggregateSpec("count", "e", "distinct", pa.int64(), distinct=True),
    AggregateSpec("sum", "i", "distinct sum", pa.int64(), distinct=True),
    AggregateSpec("collect_set", "s", "set", pa.list_(pa.string())),
    AggregateSpec("listagg", "s", "listagg", pa.string(), parameters=(",",)),
)
REACH = ({"rows": 3}, {"range": 3}, {})


def tuples(*, is_float: bool, keyed: bool, nulls: bool) -> Tuples:
    """Two pieces of tuples that come backwards."""
    numbers = np.arange(ROWS)
    mask = numbers % 2 == 0 if nulls else None
    columns = {
        "i": pa.array(numbers, mask=mask),
        "f": pa.array(numbers * 0.5, mask=mask),
        "s": pa.array([str(number) for number in numbers], mask=mask),
        "h": pa.array(numbers, pa.int16(), mask=mask),
        "d": pa.array(numbers, mask=mask).cast(pa.int32()).cast(SHORT),
        "e": pa.array(numbers, mask=mask).cast(LONG),
        "b": pa.array(numbers % 4 == 0, mask=mask),
    }
    if keyed:
        columns[KEY] = pa.array(numbers % 7, mask=mask)
    table = pa.concat_tables([pa.table(columns).slice(0, 20), pa.table(columns).slice(20)])
    times = numbers.astype(np.float64 if is_float else np.int64)[::-1]
    return Tuples(table, times, np.zeros(ROWS, np.int32), numbers)


def work(chain, batch):
    stores = [Store() for _ in chain]
    for frontier in (Frontier(30, 0), Frontier(40, 0), END):
        result = batch
        for i, kernel in enumerate(chain):
            result = kernel.process(result, frontier)
            stores[i].write(kernel.snapshot())
            chain[i] = pickle.loads(pickle.dumps(kernel))
            kernel.restore(*stores[i].read())
        batch = batch.take(np.zeros(0, np.int64))


def main() -> None:
    compile_kernels()
    warm = {function: len(function.signatures) for _, function in compiled()}
    over = tuple(OverSpec(aggregate, **reach) for aggregate in SPECS for reach in REACH)
    panes = WindowSpec(SlidingWindows(5, 2, 1), pa.int64(), ("s",), SPECS)
    for is_float, keyed, nulls in product((False, True), repeat=3):
        batch = tuples(is_float=is_float, keyed=keyed, nulls=nulls)
        work([Reorder(), OverAggregate(over)], batch)
        for until in ({"rows": 3, "rows_until": 1}, {"range": 2, "range_until": -2}):
            work(
                [Reorder(), OverAggregate(tuple(OverSpec(aggregate, **until) for aggregate in SPECS))], batch
            )
        for slide in (SlideSpec(rows=3), SlideSpec(rows=9, emit=6, complete="c")):
            work([Reorder(), OverAggregate(over, slide)], batch)
        for aggregate in SPECS:
            work([Reorder(), ActiveAggregate(OverSpec(aggregate, range=3))], batch)
        work([StreamUnion()], batch)
        if not is_float:
            work([Reorder(), OverAggregate(over, SlideSpec(time=4, emit=3, complete="c"))], batch)
            work([WindowAggregate(panes)], batch)
        kinds = [
            RowWindows(3, 2, per=BY_KEY),
            SessionOrPredicateWindows(gap=2),
            LandmarkWindows(),
            NowWindows(is_float),
        ]
        for kind in kinds:
            spec = WindowSpec(kind, pa.float64() if is_float else pa.int64(), ("s",), SPECS)
            work([Reorder(), WindowAggregate(spec)], batch)
        for by_rank, per in product((False, True), (WHOLE, BY_KEY)):
            kind = TupleSlideWindows(3, 2, by_rank, per)
            spec = WindowSpec(kind, pa.float64() if is_float else pa.int64(), ("s",), SPECS)
            work([ArrivalNumbers(2, per), WindowAggregate(spec)], batch)
    late = [(f, f.signatures[count:]) for f, count in warm.items() if len(f.signatures) > count]
    assert not late, late


if __name__ == "__main__":
    main()
