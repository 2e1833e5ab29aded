"""Tables that get more rows than there is room for."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.codegen.udas.uda_compiler import compile_uda
from millstream.kernels.udas.compiled_machine import CompiledMachine
from millstream.kernels.udas.local_tables import LocalTableState
from millstream.program.jit_loader import plain_functions
from millstream.program.program import TableLayout
from millstream.program.row_lists import CHANGED
from millstream.syntax import parse_script
from millstream.types import BIGINT, Field


def test_the_marks_of_new_rows_say_nothing() -> None:
    """Else they would be known to have changed, and changes would be lost."""
    table = LocalTableState(TableLayout("t", "u0t0", (Field("a", BIGINT),), single=False))
    for size in (16, 100, 1000):
        used = [np.full(2 * size + 16, 255, np.uint8) for _ in range(20)]
        del used
        table.reserve(size, 1)
        assert not np.any(table["mark"] & CHANGED)


DOUBLING = """
CREATE AGGREGATE doubling(x BIGINT) : BIGINT {
    TABLE t(a BIGINT, b BIGINT);
    INITIALIZE : { INSERT INTO t VALUES (x, 0); INSERT INTO RETURN SELECT a FROM t; }
    ITERATE : {
        INSERT INTO t SELECT a + x, b + 1 FROM t;
        INSERT INTO RETURN SELECT b FROM t WHERE a = 7;
    }
};
"""


def doubling() -> CompiledMachine:
    catalog = Catalog()
    for statement in parse_script(DOUBLING):
        analyse(statement, catalog)
    entry = catalog.aggregate("doubling")
    assert entry is not None
    machine = CompiledMachine(compile_uda(checked_body(entry, [BIGINT], catalog), "base"))
    machine.reserve(1, 12)
    return machine


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_table_grows_while_a_program_runs(is_compiled: bool) -> None:
    """It doubles with every tuple, and so does what a tuple returns; rows are found by hash all the time."""
    machine = doubling()
    if not is_compiled:
        machine._functions = plain_functions(machine.program, {})
    table = pa.table({"x": np.ones(12, np.int64)})
    returned = machine.call("run", 12, (np.zeros(12, np.int32),), machine.encoded(table, ["x"]))
    assert int(machine.tables[0]["count"][0]) == 2**11
    # After n further tuples a is 1 + j in as many rows as there are ways to choose j of n.
    assert returned.columns[0].to_pylist() == [1] + [6] * 792
    many = machine.call("run", 1, (np.zeros(1, np.int32),), machine.encoded(table[:1], ["x"]))
    assert many.columns[0].to_pylist() == [6] * 924


def test_what_goes_wrong_when_there_is_to_be_more_room_is_raised() -> None:
    machine = doubling()
    table = pa.table({"x": np.ones(12, np.int64)})
    with (
        mock.patch.object(CompiledMachine, "_larger", side_effect=MemoryError("full")),
        pytest.raises(MemoryError),
    ):
        machine.call("run", 12, (np.zeros(12, np.int32),), machine.encoded(table, ["x"]))
