"""Kernels of user-defined aggregates, and their snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.codegen.udas import uda_compiler
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.kernels.specs import OverUdaSpec, UdaSpec
from millstream.kernels.udas.over_uda import OverUda
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.syntax import parse_script
from millstream.types import BIGINT

TOTAL = """
CREATE WINDOW AGGREGATE total(Next BIGINT) : BIGINT {
    TABLE state(tsum BIGINT);
    TABLE inwindow(wnext BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next; INSERT INTO RETURN SELECT tsum FROM state; }
    EXPIRE     : { UPDATE state SET tsum = tsum - oldest().wnext; }
};
"""


def totals_of_the_last(range_: int) -> OverUda:
    catalog = Catalog()
    for statement in parse_script(TOTAL):
        analyse(statement, catalog)
    entry = catalog.aggregate("total", window=True)
    assert entry is not None
    body = checked_body(entry, [BIGINT], catalog)
    return OverUda(
        [OverUdaSpec(UdaSpec(uda_compiler.compile_uda(body, "range"), ("v",), ("r",)), range=range_)]
    )


def at(time: int, keys: range) -> tuple[Tuples, Frontier]:
    count = len(keys)
    columns = pa.table({KEY: pa.array(list(keys), pa.int64()), "v": np.arange(count) + 1})
    times = np.full(count, time)
    return Tuples(columns, times, np.zeros(count, np.int32), np.arange(count)), Frontier(time, 0)


def results(kernel: Kernel, time: int, keys: range) -> list[int]:
    found: list[int] = kernel.process(*at(time, keys)).columns["r"].to_pylist()
    return found


@pytest.mark.parametrize("written", [{0, 100, 101}, {101}, {100, 101}, {0, 101}])
def test_what_many_silent_keys_leave_behind_is_tidied_up_and_nothing_else_is_lost(written: set[int]) -> None:
    """Return whether state is written after each batch or only after some."""
    kernel = totals_of_the_last(10)
    chunks: dict[str, pa.Table] = {}
    meta: Mapping[str, Any] = {}
    for time, keys in ((0, range(20_000)), (100, range(50_000, 50_003)), (101, range(50_000, 50_003))):
        results(kernel, time, keys)
        if time in written:
            change = kernel.snapshot()
            chunks |= change.added
            for name in change.dropped:
                del chunks[name]
            meta = change.meta
    recovered = totals_of_the_last(10)
    recovered.restore(meta, chunks)
    assert recovered.rows == kernel.rows == 3 + 6
    assert results(recovered, 102, range(50_000, 50_003)) == [3, 6, 9]
    assert results(kernel, 102, range(50_000, 50_003)) == [3, 6, 9]


COUNTS = """
CREATE AGGREGATE times_seen(Next BIGINT) : BIGINT {
    TABLE seen(v BIGINT, n BIGINT);
    INITIALIZE : { INSERT INTO seen VALUES (Next, 1); INSERT INTO RETURN VALUES (1); }
    ITERATE    : { INSERT INTO seen SELECT Next, 0 WHERE Next NOT IN (SELECT v FROM seen);
                   UPDATE seen SET n = n + 1 WHERE v = Next;
                   INSERT INTO RETURN SELECT n FROM seen WHERE v = Next; }
};
"""


def test_rows_that_have_changed_since_they_were_written_are_restored_as_they_are_now() -> None:
    catalog = Catalog()
    for statement in parse_script(COUNTS):
        analyse(statement, catalog)
    entry = catalog.aggregate("times_seen")
    assert entry is not None
    program = uda_compiler.compile_uda(checked_body(entry, [BIGINT], catalog), uda_compiler.BASE)
    kernel = BaseAggregate((UdaSpec(program, ("v",), ("r",)),))
    chunks: dict[str, pa.Table] = {}
    for time in range(4):
        # Each value once in each batch; the first ones are written before they change again.
        assert results(kernel, time, range(3)) == [time + 1] * 3
        change = kernel.snapshot()
        chunks = {name: chunk for name, chunk in chunks.items() if name not in change.dropped} | change.added
        restored = BaseAggregate((UdaSpec(program, ("v",), ("r",)),))
        restored.restore(change.meta, chunks)
        assert results(restored, time + 1, range(3)) == [time + 2] * 3
