"""Programs of random bodies against their definitions, compiled or not."""

from __future__ import annotations

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
from millstream.ir import typed_nodes
from millstream.kernels.udas.compiled_machine import CompiledMachine, UserAggregateError
from millstream.program.jit_loader import plain_functions
from millstream.syntax import parse_script
from millstream.types import DOUBLE, INT, STRING
from oracle.bodies import Instance
from oracle.errors import Failure
from tests.codegen.udas.bodies import aggregate, arguments
from tests.codegen.udas.keyed_bodies import arguments as few_values
from tests.codegen.udas.keyed_bodies import keyed

Row = tuple[Any, ...]


def body_of(text: str) -> typed_nodes.Body:
    catalog = Catalog()
    for statement in parse_script(text):
        analyse(statement, catalog)
    entry = catalog.aggregate("agg")
    assert entry is not None
    return checked_body(entry, [INT, DOUBLE, STRING], catalog)


def by_definition(
    body: typed_nodes.Body, tuples: list[Row], codes: list[int] | None = None
) -> list[Row] | str:
    """Return the rows for tuples, each of which belongs to an instance, by default the first."""
    instances: dict[int, Instance] = {}
    out = []
    try:
        for row, code in zip(tuples, codes or [0] * len(tuples), strict=True):
            block = "ITERATE" if code in instances else "INITIALIZE"
            instance = instances.setdefault(code, Instance(body))
            out += instance.run(block, row)
            out += instance.run("TERMINATE")
    except Failure:
        return "failure"
    return out


def by_program(
    body: typed_nodes.Body,
    tuples: list[Row],
    whose: list[int] | None = None,
    *,
    is_compiled: bool,
    splits: int = 1,
) -> list[Row] | str:
    machine = CompiledMachine(compile_uda(body, "running"))
    if not is_compiled:
        machine._functions = plain_functions(machine.program, machine._outside())
    out: list[Row] = []
    for part in range(splits):
        own = slice(part * len(tuples) // splits, (part + 1) * len(tuples) // splits)
        rows = tuples[own]
        table = pa.table(
            [
                pa.array([row[i] for row in rows], t)
                for i, t in enumerate((pa.int32(), pa.float64(), pa.string()))
            ],
            ["x", "y", "z"],
        )
        codes = np.array((whose or [0] * len(tuples))[own], np.int32)
        machine.reserve(max(whose or [0], default=0) + 1, len(rows))
        try:
            returned = machine.call("run", len(rows), (codes,), machine.encoded(table, ["x", "y", "z"]))
        except UserAggregateError:
            return "failure"
        out += zip(*(column.to_pylist() for column in returned.columns), strict=True)
    return out


def shown(returned: list[Row] | str) -> str:
    """Rows as texts, in which one NaN is like another."""
    return repr(returned)


@settings(max_examples=100, deadline=None)
@given(aggregate(), st.lists(arguments, max_size=5), st.integers(1, 3))
def test_a_program_does_what_its_body_says(text: str, tuples: list[Row], splits: int) -> None:
    body = body_of(text)
    found = by_program(body, tuples, is_compiled=False, splits=splits)
    assert shown(found) == shown(by_definition(body, tuples))


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(aggregate(), st.lists(arguments, max_size=5))
def test_a_compiled_program_does_the_same(text: str, tuples: list[Row]) -> None:
    body = body_of(text)
    assert shown(by_program(body, tuples, is_compiled=True)) == shown(by_definition(body, tuples))


@st.composite
def owned(draw: st.DrawFn) -> tuple[list[Row], list[int]]:
    """Tuples, and to which of three instances each belongs."""
    tuples = draw(st.lists(few_values, max_size=12))
    return tuples, draw(st.lists(st.integers(0, 2), min_size=len(tuples), max_size=len(tuples)))


@settings(max_examples=200, deadline=None)
@given(keyed(), owned(), st.integers(1, 3))
def test_rows_that_were_found_before_are_those_that_would_be_found(
    text: str, some: tuple[list[Row], list[int]], splits: int
) -> None:
    body = body_of(text)
    found = by_program(body, *some, is_compiled=False, splits=splits)
    assert shown(found) == shown(by_definition(body, *some))


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(keyed(), owned())
def test_compiled_programs_find_the_same_rows(text: str, some: tuple[list[Row], list[int]]) -> None:
    body = body_of(text)
    assert shown(by_program(body, *some, is_compiled=True)) == shown(by_definition(body, *some))


def test_a_star_takes_columns_of_one_name_and_of_none_by_their_positions() -> None:
    body = body_of("""
        AGGREGATE agg(x INT, y DOUBLE, z STRING) : (p INT, q INT, r INT) {
            TABLE t(a INT);
            INITIALIZE : { INSERT INTO t VALUES (x); }
            ITERATE    : { INSERT INTO RETURN SELECT * FROM (SELECT a, a + x AS a, a * x FROM t) AS s; }
        }""")
    tuples: list[Row] = [(x, 0.0, "") for x in (5, 2)]
    assert by_program(body, tuples, is_compiled=False) == [(5, 7, 10)]
    assert by_definition(body, tuples) == [(5, 7, 10)]


def test_what_was_computed_behind_a_false_condition_is_computed_again_where_it_is_needed() -> None:
    body = body_of("""
        AGGREGATE agg(x INT, y DOUBLE, z STRING) : INT {
            TABLE t(a INT);
            INITIALIZE : { INSERT INTO t VALUES (x); }
            ITERATE    : { INSERT INTO RETURN VALUES (0) WHERE x > 2 AND x * 10 % 7 > 4;
                           INSERT INTO RETURN VALUES (x * 10 % 7); }
            TERMINATE  : { }
        }""")
    tuples: list[Row] = [(x, 0.0, "") for x in (1, 4, 2, 3, 1)]
    assert by_program(body, tuples, is_compiled=False) == [(0,), (5,), (6,), (2,), (3,)]
    assert by_definition(body, tuples) == [(0,), (5,), (6,), (2,), (3,)]


@pytest.mark.slow
def test_a_count_of_different_values_is_known_outside_of_the_loop_that_counts() -> None:
    body = body_of("""
        CREATE AGGREGATE agg(x INT, y DOUBLE, z STRING) : INT {
            TABLE t(a INT);
            INITIALIZE : { INSERT INTO t VALUES (x); }
            ITERATE    : { INSERT INTO t VALUES (x);
                           INSERT INTO RETURN SELECT (SELECT CAST(count(DISTINCT a) AS INT) FROM t)
                               FROM t AS s ORDER BY s.a LIMIT 1; }
            TERMINATE  : { }
        }""")
    tuples: list[Row] = [(x, 0.0, "") for x in (4, 4, 5, 4)]
    assert by_definition(body, tuples) == [(1,), (2,), (2,)]
    assert by_program(body, tuples, is_compiled=True) == [(1,), (2,), (2,)]


def test_nulls_come_first_in_an_order_of_a_compiled_program() -> None:
    body = body_of("""
        CREATE AGGREGATE agg(x INT, y DOUBLE, z STRING) : (r INT, q STRING) {
            TABLE t(a INT, s STRING);
            INITIALIZE : { INSERT INTO t VALUES (x, z); }
            ITERATE    : { INSERT INTO t VALUES (x, z); }
            TERMINATE  : { INSERT INTO RETURN
                               SELECT a, s FROM t ORDER BY s, a DESC NULLS FIRST LIMIT 2; }
        }""")
    tuples: list[Row] = [(1, 0.0, "p"), (2, 0.0, None), (None, 0.0, None)]
    rows = [(1, "p"), (2, None), (1, "p"), (None, None), (2, None)]
    assert by_definition(body, tuples) == rows
    assert by_program(body, tuples, is_compiled=True) == rows
