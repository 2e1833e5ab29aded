"""Pattern queries as scripts, searched by the kernel, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.analysis.queries.resolved_query import Select
from millstream.catalog import Catalog
from millstream.codegen.patterns.measure_programs import with_programs
from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.codegen.udas import uda_compiler
from millstream.ir.pattern import Pattern
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram
from millstream.syntax import parse_script
from oracle.values.expressions import compiled as computed
from tests.codegen.patterns.running import searched, uncompiled

Rows = Sequence[dict[str, Any]]


def query_of(script: str) -> Select:
    """The query that a script ends with."""
    catalog = Catalog()
    meaning = [analyse(statement, catalog).meaning for statement in parse_script(script)][-1]
    assert isinstance(meaning, RunQuery)
    assert isinstance(meaning.query, Select)
    return meaning.query


def form_of(query: Select) -> Pattern:
    pattern = query.pattern
    assert pattern is not None
    assert pattern.form is not None, pattern.unfit
    return with_programs(pattern.form, _program_of)


def _program_of(body: Body | PythonBody) -> Program | PythonProgram:
    if isinstance(body, PythonBody):
        return PythonProgram.of(body, uda_compiler.CONTENT)
    return uda_compiler.compile_uda(body, uda_compiler.CONTENT)


def answered(
    script: str, rows: Rows, cuts: Sequence[int] = (), *, compiling: bool = False
) -> list[tuple[Any, ...]]:
    """Return the rows of the query; the state is lost wherever the rows are cut. Programs run as Python."""
    query = query_of(script)
    assert query.pattern is not None
    assert not query.pattern.computed
    form = form_of(query)
    program = compile_pattern(form)
    assert program.is_compiled or not compiling
    with nullcontext() if compiling else uncompiled():
        found = searched(program, rows, form.fields, cuts, lost_at=range(len(cuts)))
    outputs = [computed(output.expr, query.pattern.returned) for output in query.outputs]
    return [tuple(output(values) for output in outputs) for _, (_, values) in found]
