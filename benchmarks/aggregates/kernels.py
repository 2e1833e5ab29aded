"""From the text of an aggregate to the kernel that runs it, without a query around it."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body, python_body
from millstream.catalog import Catalog
from millstream.codegen.udas import uda_compiler
from millstream.ir.python_aggregate import PythonAggregate
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.specs import OverUdaSpec, UdaSpec
from millstream.kernels.udas.over_uda import OverUda
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.program.python_program import PythonProgram
from millstream.syntax import parse_script
from millstream.types import Type


def catalog_of(text: str) -> Catalog:
    catalog = Catalog()
    for statement in parse_script(text):
        analyse(statement, catalog)
    return catalog


def spec_of(
    catalog: Catalog, name: str, types: Sequence[Type], arguments: Sequence[str], mode: str
) -> UdaSpec:
    is_window = mode in (uda_compiler.ROWS, uda_compiler.RANGE)
    entry = catalog.aggregate(name, window=is_window) or catalog.aggregate(name)
    assert entry is not None
    if isinstance(entry.definition, PythonAggregate):
        python = python_body(entry, entry.definition, types)
        return UdaSpec(PythonProgram.of(python, mode), tuple(arguments), ("r0",))
    body = checked_body(entry, types, catalog)
    results = tuple(f"r{i}" for i in range(len(body.returns)))
    return UdaSpec(uda_compiler.compile_uda(body, mode), tuple(arguments), results)


def over_rows(
    catalog: Catalog, name: str, types: Sequence[Type], rows: int, arguments: Sequence[str]
) -> Kernel:
    """The window version over so many rows."""
    return OverUda([OverUdaSpec(spec_of(catalog, name, types, arguments, uda_compiler.ROWS), rows=rows - 1)])


def base(catalog: Catalog, name: str, types: Sequence[Type], arguments: Sequence[str]) -> Kernel:
    return BaseAggregate([spec_of(catalog, name, types, arguments, uda_compiler.BASE)])
