"""From the text of an aggregate to the kernel that runs it, without a query around it."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.analysis.bodies import checked_body, python_body
from millstream.analysis.statements import analyse
from millstream.catalog import Catalog
from millstream.kernels.base import Kernel
from millstream.kernels.specs import UserOverSpec, UserSpec
from millstream.kernels.user_base import BaseAggregate
from millstream.kernels.user_over import UserOver
from millstream.syntax import parse_script
from millstream.types import Type
from millstream.uda import compiler
from millstream.uda.python import PythonAggregate
from millstream.uda.python_program import PythonProgram


def catalog_of(text: str) -> Catalog:
    catalog = Catalog()
    for statement in parse_script(text):
        analyse(statement, catalog)
    return catalog


def spec_of(
    catalog: Catalog, name: str, types: Sequence[Type], arguments: Sequence[str], mode: str
) -> UserSpec:
    is_window = mode in (compiler.ROWS, compiler.RANGE)
    entry = catalog.aggregate(name, window=is_window) or catalog.aggregate(name)
    assert entry is not None
    if isinstance(entry.definition, PythonAggregate):
        python = python_body(entry, entry.definition, types)
        return UserSpec(PythonProgram.of(python, mode), tuple(arguments), ("r0",))
    body = checked_body(entry, types, catalog)
    results = tuple(f"r{i}" for i in range(len(body.returns)))
    return UserSpec(compiler.compiled(body, mode), tuple(arguments), results)


def over_rows(
    catalog: Catalog, name: str, types: Sequence[Type], rows: int, arguments: Sequence[str]
) -> Kernel:
    """The window version over so many rows."""
    return UserOver([UserOverSpec(spec_of(catalog, name, types, arguments, compiler.ROWS), rows=rows - 1)])


def base(catalog: Catalog, name: str, types: Sequence[Type], arguments: Sequence[str]) -> Kernel:
    return BaseAggregate([spec_of(catalog, name, types, arguments, compiler.BASE)])
