"""Aggregates of the library on rows as Python has them, in every way in which a query can call them."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import settings

from millstream.analysis.definitions.library_aggregates import library_aggregate
from millstream.analysis.queries.call_nodes import Bodies
from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.catalog import Catalog
from millstream.codegen.udas.uda_compiler import ACTIVE, BASE, CONTENT, RANGE, ROWS, compile_uda
from millstream.ir.typed_nodes import Body
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.buffers import frozen
from millstream.kernels.core.kernel import END, Frontier, Kernel, Tuples
from millstream.kernels.specs import OverUdaSpec, UdaSpec
from millstream.kernels.udas.active_uda import ActiveUda
from millstream.kernels.udas.compiled_machine import CompiledMachine
from millstream.kernels.udas.over_uda import OverUda
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.library import bundled_aggregates
from millstream.program.jit_loader import plain_functions
from millstream.program.program import Program
from millstream.types import Type

Row = tuple[Any, ...]

often = settings(max_examples=60, deadline=None)
"""The first example of a test reads the library."""


def bodies(name: str, types: Sequence[Type]) -> Bodies:
    return _bodies(name, tuple(types))


@cache
def _bodies(name: str, types: tuple[Type, ...]) -> Bodies:
    catalog = Catalog()
    catalog.ship(library_aggregate, bundled_aggregates.names)
    found = bodies_of(name, types, catalog)
    assert found.unfit is None, found.unfit
    return found


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Programs as Python runs them: most tests concern their results, not their speed."""
    with mock.patch("millstream.kernels.udas.compiled_machine.functions", plain_functions):
        yield


def base(name: str, types: Sequence[Type], rows: Sequence[Row], cuts: Sequence[int] = ()) -> list[list[Row]]:
    """Return the rows of the base version for each tuple of a stream."""
    spec = _spec(bodies(name, types).base, BASE)
    return _by_tuple(BaseAggregate([spec]), spec, rows, range(len(rows)), cuts)


def over_rows(
    name: str, types: Sequence[Type], rows: Sequence[Row], preceding: int, cuts: Sequence[int] = ()
) -> list[list[Row]]:
    """Return the rows of the window version for each tuple and as many before it."""
    spec = _spec(bodies(name, types).window, ROWS)
    return _by_tuple(OverUda([OverUdaSpec(spec, rows=preceding)]), spec, rows, range(len(rows)), cuts)


def over_range(
    name: str, types: Sequence[Type], rows: Sequence[Row], times: Sequence[int], preceding: int
) -> list[list[Row]]:
    """Return the rows of the window version for each tuple and those so long before it."""
    spec = _spec(bodies(name, types).window, RANGE)
    return _by_tuple(OverUda([OverUdaSpec(spec, range=preceding)]), spec, rows, times, ())


def active(
    name: str, types: Sequence[Type], rows: Sequence[Row], times: Sequence[int], preceding: int
) -> list[tuple[int, Row]]:
    """Return the rows with ACTIVE EXPIRATION, and their times."""
    found = bodies(name, types)
    spec = _spec(found.window, ACTIVE, found.base)
    out = ActiveUda(OverUdaSpec(spec, range=preceding)).process(_tuples(spec, rows, times, 0), END)
    return list(zip(out.time.tolist(), _results(out, spec), strict=True))


def content(name: str, types: Sequence[Type], rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the base version (or the only one) for a window with these tuples."""
    found = bodies(name, types)
    spec = _spec(found.base or found.window, CONTENT)
    machine = CompiledMachine(spec.program)
    machine.reserve(1, len(rows))
    parameters = machine.encoded(_table(spec.program, rows), spec.arguments)
    bounds = frozen(np.zeros(1, np.int64)), frozen(np.full(1, len(rows)))
    returned = machine.call("run", 1, bounds, parameters)
    return list(zip(*(column.to_pylist() for column in returned.columns), strict=True))


# ---------------------------------------------------------------- tuples


@cache
def _spec(body: Body | None, mode: str, left: Body | None = None) -> UdaSpec:
    assert body is not None, "there is no such version"
    program = compile_uda(body, mode, left)
    arguments = tuple(f"a{i}" for i in range(len(program.parameters)))
    return UdaSpec(program, arguments, tuple(f"r{i}" for i in range(len(program.returns))))


def _table(program: Program, rows: Sequence[Row]) -> pa.Table:
    columns = {
        f"a{i}": pa.array([row[i] for row in rows], arrow_type(parameter.type))
        for i, parameter in enumerate(program.parameters)
    }
    return pa.table(columns)


def _tuples(spec: UdaSpec, rows: Sequence[Row], times: Sequence[int], first: int) -> Tuples:
    table = _table(spec.program, rows)
    numbers = np.arange(first, first + len(rows))
    table = table.append_column("number", pa.array(numbers))
    return Tuples(table, np.array(times, np.int64), np.zeros(len(rows), np.int32), numbers)


def _by_tuple(
    kernel: Kernel, spec: UdaSpec, rows: Sequence[Row], times: Sequence[int], cuts: Sequence[int]
) -> list[list[Row]]:
    """Results by the numbers of tuples; the input is cut, and the kernel written down at each cut."""
    found: list[list[Row]] = [[] for _ in rows]
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for start, end in itertools.pairwise(bounds):
        now = Frontier(times[end - 1], 0) if end else Frontier(0, -1)
        out = kernel.process(_tuples(spec, rows[start:end], times[start:end], start), now)
        for number, row in zip(out.columns["number"].to_pylist(), _results(out, spec), strict=True):
            found[number].append(row)
        kernel = pickle.loads(pickle.dumps(kernel))
    return found


def _results(out: Tuples, spec: UdaSpec) -> list[Row]:
    return list(zip(*(out.columns[name].to_pylist() for name in spec.results), strict=True))
