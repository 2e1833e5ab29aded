"""The body of an aggregate in ESL: its local tables, its blocks, and every statement in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import ErrorCollector
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.udas.body_expressions import INWINDOW, BodyNames, Fields, LocalTable
from millstream.analysis.udas.body_statements import RETURN, StatementChecker
from millstream.errors import AnalysisError, Source
from millstream.syntax.spans import span_of
from millstream.types import Field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.types.type_inference import OpenTypes
    from millstream.syntax import nodes

Statements = tuple[exp.Expr, ...]


@dataclass(frozen=True)
class AggregateBody:
    """A checked body: tables with their types, and the statements of each block as trees."""

    tables: tuple[LocalTable, ...]
    initialize: Statements
    iterate: Statements
    terminate: Statements
    expire: Statements
    source: Source = field(repr=False)


def declared_fields(
    declared: Sequence[nodes.ColumnDeclaration], what: str, open_types: OpenTypes, table: str = ""
) -> Fields:
    """Declared columns, parameters or results; a type that was left out is open."""
    fields: dict[str, Field] = {}
    for column in declared:
        name = column.name
        if name.lower() in fields:
            raise AnalysisError(f"{what} '{name}' is declared twice", span=span_of(column))
        kind = column.args.get("kind")
        type_ = from_datatype(kind) if kind is not None else open_types.new(f"{what} {table}.{name}".lower())
        fields[name.lower()] = Field(name, type_)
    return tuple(fields.values())


class BodyChecker:
    """Checks a body, again and again until nothing more is learnt about types that were left out."""

    def __init__(self, node: nodes.CreateAggregate, names: BodyNames, returns: Fields) -> None:
        self.names = names
        self.returns = returns
        self._blocks = _blocks(node, names.window)

    def check(self, source: Source) -> AggregateBody:
        known = -1
        while known != self.names.open_types.known or self.names.open_types.settle_by_literal():
            known = self.names.open_types.known
            self._check_statements()
        closed = self.names.open_types.closed
        tables = tuple(
            LocalTable(table.name, tuple(Field(f.name, closed(f.type)) for f in table.fields))
            for table in self.names.tables
        )
        statements = {name: tuple(block.args.get("statements") or ()) for name, block in self._blocks.items()}
        return AggregateBody(
            tables,
            statements["INITIALIZE"],
            statements["ITERATE"],
            statements.get("TERMINATE", ()),
            statements.get("EXPIRE", ()),
            source,
        )

    def _check_statements(self) -> None:
        # Types that a statement with a mistake would have told are open: no more can be said of the others.
        mistakes = ErrorCollector()
        for name, block in self._blocks.items():
            checker = StatementChecker(self.names.inside(name), self.returns, mistakes)
            for statement in block.args.get("statements") or ():
                with mistakes.collected():
                    checker.check(statement)
        mistakes.check()


def local_tables(
    node: nodes.CreateAggregate, window: bool, parameters: Fields, open_types: OpenTypes
) -> tuple[LocalTable, ...]:
    """The tables that an aggregate declares."""
    tables: dict[str, LocalTable] = {}
    for declared in node.args.get("tables") or ():
        name = declared.name
        if name.lower() in tables:
            raise AnalysisError(f"table '{name}' is declared twice", span=span_of(declared))
        if name.lower() == RETURN:
            raise AnalysisError("RETURN is no table of your own: it is what goes out", span=span_of(declared))
        if name.lower() == INWINDOW and not window:
            raise AnalysisError(
                "inwindow is for window aggregates", span=span_of(declared), hint="CREATE WINDOW AGGREGATE"
            )
        fields = declared_fields(declared.args["columns"], "column", open_types, name)
        if name.lower() == INWINDOW:
            _check_inwindow(declared, fields, parameters, open_types)
        tables[name.lower()] = LocalTable(name, fields)
    return tuple(tables.values())


def _check_inwindow(node: exp.Expr, columns: Fields, parameters: Fields, open_types: OpenTypes) -> None:
    """The columns of inwindow are the parameters under other names (ESL paper, section 4)."""
    if len(columns) != len(parameters):
        raise AnalysisError(
            f"inwindow has {_counted(len(columns), 'column')} for {_counted(len(parameters), 'parameter')}",
            span=span_of(node),
            hint="it holds the arguments of each tuple: a column for each parameter",
        )
    for declared, column, parameter in zip(node.args["columns"], columns, parameters, strict=True):
        open_types.meet(column.type, parameter.type)
        known = column.type.is_known and parameter.type.is_known
        if known and column.type != parameter.type:
            raise AnalysisError(
                f"'{column.name}' is {column.type}, but parameter '{parameter.name}' is {parameter.type}",
                span=span_of(declared),
                hint="inwindow holds the arguments as they come",
            )


def _blocks(node: nodes.CreateAggregate, window: bool) -> dict[str, nodes.StateBlock]:
    blocks: dict[str, nodes.StateBlock] = {}
    for block in node.args.get("blocks") or ():
        name = str(block.this)
        if name in blocks:
            raise AnalysisError(f"{name} is given twice", span=span_of(block))
        if name == "EXPIRE" and not window:
            raise AnalysisError(
                "EXPIRE is for window aggregates", span=span_of(block), hint="CREATE WINDOW AGGREGATE"
            )
        if name == "TERMINATE" and window:
            raise AnalysisError(
                "a window aggregate has no TERMINATE",
                span=span_of(block),
                hint="a window has no last tuple: return the result in INITIALIZE and ITERATE",
            )
        blocks[name] = block
    for name in ("INITIALIZE", "ITERATE"):
        if name not in blocks:
            raise AnalysisError(f"aggregate '{node.name}' has no {name}", span=span_of(node.this))
    return blocks


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
