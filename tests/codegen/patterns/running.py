"""Patterns on rows as Python has them, searched by the kernel."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.ir.pattern import Pattern
from millstream.kernels.column_names import KEY
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel import BEGINNING, END, Frontier, Tuples
from millstream.kernels.patterns.pattern_match import PatternMatch
from millstream.kernels.specs import PatternSpec
from millstream.program.jit_loader import Functions, plain_functions
from millstream.program.program import Program
from millstream.types import Field
from tests.codegen.patterns.forms import Definition, Row

Match = tuple[int, tuple[Any, ...]]
"""The number of the last tuple, and the results."""


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Programs as Python runs them: most tests concern their results, not their speed.

    Kernels are made again and again, so their programs are read once.
    """
    known: dict[str, Functions] = {}

    def functions(program: Program, outside: Any) -> Functions:
        if program.source not in known or program.outside:
            known[program.source] = plain_functions(program, outside)
        return known[program.source]

    with (
        mock.patch("millstream.kernels.udas.compiled_machine.functions", functions),
        # Otherwise they would be noted as compiled, and would wait for others who compile.
        mock.patch("millstream.kernels.udas.machine_protocol.precompile_program", return_value=None),
    ):
        yield


def spec_of(program: Program) -> PatternSpec:
    return PatternSpec(
        program,
        tuple(column.name for column in program.parameters),
        tuple(column.name for column in program.returns),
    )


def tuples_of(fields: Sequence[Field], rows: Sequence[Row], first: int = 0) -> Tuples:
    """Rows numbered from ``first``, two at an instant; ``key`` names their partition."""
    columns = {
        field.name: pa.array([r[field.name] for r in rows], arrow_type(field.type)) for field in fields
    }
    columns[KEY] = pa.array([row.get("key", 0) for row in rows], pa.int64())
    numbers = np.arange(first, first + len(rows))
    return Tuples(pa.table(columns), numbers // 2, np.zeros(len(rows), np.int32), numbers)


def searched(
    pattern: Pattern | Program,
    rows: Sequence[Row],
    fields: Sequence[Field],
    cuts: Sequence[int] = (),
    lost_at: Sequence[int] = (),
) -> list[tuple[int, Match]]:
    """Partition and match, in the order in which they come out.

    Rows are cut into batches. After each the state is written; after some the kernel is lost, and after the
    others it is pickled. What the kernel promises is held against what comes.
    """
    program = pattern if isinstance(pattern, Program) else compile_pattern(pattern)
    kernel = PatternMatch(spec_of(program))
    chunks: dict[str, pa.Table] = {}
    found: list[tuple[int, Match]] = []
    promised = BEGINNING
    bounds = [0, *sorted(cuts), len(rows)]
    for i, (start, end) in enumerate(zip(bounds, [*bounds[1:], len(rows)], strict=True)):
        is_last = i == len(bounds) - 1
        frontier = END if is_last else Frontier(max(end - 1, 0) // 2, -1)
        out = kernel.process(tuples_of(fields, rows[start:end], start), frontier)
        for match in zip(out.time.tolist(), out.origin.tolist(), out.number.tolist(), strict=True):
            assert Frontier(match[0], match[1]) > promised
        now = kernel.passes(frontier)
        assert promised <= now <= frontier
        promised = now
        results = out.columns.drop_columns([KEY]).to_pylist()
        found += [
            (key, (number, tuple(result.values())))
            for key, number, result in zip(
                out.columns[KEY].to_pylist(), out.number.tolist(), results, strict=True
            )
        ]
        change = kernel.snapshot()
        for name in change.dropped:
            del chunks[name]
        chunks |= change.added
        if i in lost_at:
            kernel = PatternMatch(spec_of(program))
            kernel.restore(change.meta, chunks)
        else:
            kernel = pickle.loads(pickle.dumps(kernel))
    return found


def by_partition(found: Sequence[tuple[int, Match]]) -> dict[int, list[Match]]:
    parts: dict[int, list[Match]] = {}
    for key, match in found:
        parts.setdefault(key, []).append(match)
    return parts


def defined(pattern: Pattern, rows: Sequence[Row]) -> dict[int, list[Match]]:
    """Return the matches by definition."""
    found: dict[int, list[Match]] = {}
    for key in {row.get("key", 0) for row in rows}:
        numbers = [i for i, row in enumerate(rows) if row.get("key", 0) == key]
        matches = Definition(pattern, [rows[i] for i in numbers]).matches()
        if matches:
            found[key] = [(numbers[last], results) for last, results in matches]
    return found
