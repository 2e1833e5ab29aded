"""Tables of the catalog that bodies read: the same for all instances, and never changed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.codegen.udas.uda_compiler import compile_uda
from millstream.errors import AnalysisError
from millstream.ir import typed_nodes
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.specs import UdaSpec
from millstream.kernels.udas.compiled_machine import CompiledMachine, UserAggregateError
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.program.jit_loader import plain_functions
from millstream.syntax import parse_script
from millstream.types import DOUBLE, INT, STRING, Type
from oracle.bodies import Instance
from oracle.errors import Failure
from tests.codegen.udas.bodies import aggregate, arguments

Row = tuple[Any, ...]

TABLE = "CREATE TABLE u (c INT, d DOUBLE) USING csv OPTIONS (path 'nowhere');"
PRICES = """
CREATE TABLE prices (item STRING, price INT) USING csv OPTIONS (path 'nowhere');
CREATE AGGREGATE worth(name STRING) : INT {
    TABLE state(total INT);
    INITIALIZE : { INSERT INTO state VALUES (0); UPDATE state SET total =
                       coalesce((SELECT price FROM prices WHERE item = name), 0);
                   INSERT INTO RETURN SELECT total FROM state; }
    ITERATE :    { UPDATE state SET total = total + coalesce((SELECT price FROM prices WHERE item = name), 0);
                   INSERT INTO RETURN SELECT total FROM state; }
    TERMINATE :  { }
};
"""


def body_of(text: str, name: str, types: list[Type]) -> typed_nodes.Body:
    catalog = Catalog()
    for statement in parse_script(text):
        analyse(statement, catalog)
    entry = catalog.aggregate(name)
    assert entry is not None
    return checked_body(entry, types, catalog)


def by_definition(body: typed_nodes.Body, tuples: list[Row], rows: list[Row]) -> list[Row] | str:
    instance, out = Instance(body, {"u": [list(row) for row in rows]}), []
    try:
        for i, row in enumerate(tuples):
            out += instance.run("INITIALIZE" if i == 0 else "ITERATE", row)
            out += instance.run("TERMINATE")
    except Failure:
        return "failure"
    return out


def by_program(body: typed_nodes.Body, tuples: list[Row], rows: list[Row]) -> list[Row] | str:
    program = compile_uda(body, "running")
    columns = [pa.array([row[i] for row in rows], t) for i, t in enumerate((pa.int32(), pa.float64()))]
    for table in program.given:
        table.rows = pa.table(columns, ["c0", "c1"])
    machine = CompiledMachine(program)
    machine._functions = plain_functions(machine.program, machine._outside())
    types = (pa.int32(), pa.float64(), pa.string())
    given_ = pa.table([pa.array([row[i] for row in tuples], t) for i, t in enumerate(types)], ["x", "y", "z"])
    machine.reserve(1, len(tuples))
    try:
        codes = np.zeros(len(tuples), np.int32)
        returned = machine.call("run", len(tuples), (codes,), machine.encoded(given_, ["x", "y", "z"]))
    except UserAggregateError:
        return "failure"
    return list(zip(*(column.to_pylist() for column in returned.columns), strict=True))


rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-3, 3)), st.sampled_from([None, 0.0, -0.0, 1.5, 2.0])),
    max_size=5,
)


@settings(max_examples=100, deadline=None)
@given(aggregate(given="u"), st.lists(arguments, max_size=5), rows)
def test_a_program_reads_a_table_as_its_body_says(text: str, tuples: list[Row], rows: list[Row]) -> None:
    body = body_of(TABLE + text, "agg", [INT, DOUBLE, STRING])
    assert repr(by_program(body, tuples, rows)) == repr(by_definition(body, tuples, rows))  # NaN is like NaN


def test_a_table_is_found_by_its_index_and_is_no_part_of_the_state() -> None:
    program = compile_uda(body_of(PRICES, "worth", [STRING]), "base")
    (layout,) = (layout for layout in program.tables if layout.given)
    assert layout.hashes == ((0,),)
    prices = pa.array(range(1000), pa.int32())
    program.given[0].rows = pa.table({"c0": [f"item{i}" for i in range(1000)], "c1": prices})
    names = ["item7", "nothing", "item9", None, "item7", "item999"]
    columns = {"w": pa.array(names), KEY: pa.array([1, 1, 2, 2, 2, 1])}
    numbers = np.arange(len(names))
    tuples = Tuples(pa.table(columns), numbers, np.zeros(len(names), np.int32), numbers)
    kernel = BaseAggregate([UdaSpec(program, ("w",), ("r",))])
    out = kernel.process(tuples.take(numbers[:4]), Frontier(4, 0))
    change = kernel.snapshot()
    assert sum(table.num_rows for table in change.added.values()) == 2  # the instances, and nothing else
    again = BaseAggregate([UdaSpec(program, ("w",), ("r",))])
    again.restore(change.meta, change.added)
    for later in (again, pickle.loads(pickle.dumps(kernel))):
        rest = later.process(tuples.take(numbers[4:]), END)
        assert [*out.columns["r"].to_pylist(), *rest.columns["r"].to_pylist()] == [7, 7, 9, 9, 16, 1006]
    assert not kernel._states[0].is_wasteful()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO u VALUES (1, 2)", "an aggregate changes only its own tables, and 'u' is not one"),
        ("UPDATE u SET c = 1", "an aggregate changes only its own tables, and 'u' is not one"),
        ("DELETE FROM u", "an aggregate changes only its own tables, and 'u' is not one"),
    ],
)
def test_a_table_of_the_catalog_cannot_be_changed(statement: str, message: str) -> None:
    text = f"{TABLE} CREATE AGGREGATE agg(x INT) : INT {{ INITIALIZE : {{ {statement}; }} ITERATE : {{ }} }};"
    with pytest.raises(AnalysisError, match=message) as raised:
        body_of(text, "agg", [INT])
    assert raised.value.place is not None or raised.value.span is not None
