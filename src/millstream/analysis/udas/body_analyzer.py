"""Analysis of a body: once at CREATE, and once for each list of argument types that it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import CollectingBlock, ErrorCollector, error_at
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.type_inference import OpenTypes
from millstream.analysis.udas.body_names import (
    NO_RECURSION,
    RETURN,
    Attempt,
    BodyNames,
    Fields,
    LocalTable,
    MistakenCallError,
)
from millstream.analysis.udas.body_statements import BodyStatements
from millstream.catalog.entries import Aggregate, View
from millstream.codegen.udas.body_facts import unsupported
from millstream.errors import AnalysisError, Source
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import INWINDOW, Body
from millstream.types import UNKNOWN, Field, Kind, Type

if TYPE_CHECKING:
    from millstream.catalog import Catalog
    from millstream.syntax import nodes

NOT_KEPT = (Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL)
"""Kinds of values that kernels cannot store."""

Statements = tuple[exp.Expr, ...]
Meanings = tuple[object, ...]
"""Entries of the catalog that the names in a body had when it was analysed."""


@dataclass(frozen=True)
class AggregateBody:
    """A body without mistakes: tables with their types, and the statements of each block as trees."""

    tables: tuple[LocalTable, ...]
    initialize: Statements
    iterate: Statements
    terminate: Statements
    expire: Statements
    source: Source = field(repr=False)
    forms: dict[tuple[Type, ...], tuple[Meanings, Attempt[Body]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Typed forms by the types of arguments whose parameters declare none."""

    @property
    def blocks(self) -> dict[str, Statements]:
        return {
            "INITIALIZE": self.initialize,
            "ITERATE": self.iterate,
            "TERMINATE": self.terminate,
            "EXPIRE": self.expire,
        }

    def _nodes(self, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
        return (n for block in self.blocks.values() for statement in block for n in statement.find_all(kind))

    @cached_property
    def table_names(self) -> list[str]:
        """Names of the tables of the catalog that statements read, each once."""
        known = {RETURN, *(table.name.lower() for table in self.tables)}
        named = (node.name.lower() for node in self._nodes(exp.Table))
        return [name for name in dict.fromkeys(named) if name not in known]

    @cached_property
    def call_names(self) -> list[str]:
        """Names of the functions and aggregates that statements call, each once."""
        return list(dict.fromkeys(node.name.lower() for node in self._nodes(exp.Anonymous)))


def analyse_body(aggregate: Aggregate, catalog: Catalog) -> Aggregate:
    """Analyse the body of an aggregate at CREATE, and settle types that it leaves out."""
    analyzer = _BodyAnalyzer(aggregate, catalog)
    analyzer.analyse(ErrorCollector)
    closed = analyzer.closed()
    if analyzer.is_typed:
        body = _body(closed)
        body.forms[()] = _meanings(body, catalog), analyzer.form()
    return closed


_CALLERS: ContextVar[tuple[tuple[str, bool], ...]] = ContextVar("callers", default=())
"""The aggregates whose calls are being made typed, each called by the one before it."""


def specialise(aggregate: Aggregate, arguments: Sequence[Type], catalog: Catalog) -> Attempt[Body]:
    """Make the typed form of a body for arguments of some types, once as long as its names mean the same.

    Old listings leave out types, and what statements do not tell about them the arguments do.
    """
    body = _body(aggregate)
    pairs = zip(aggregate.parameters, arguments, strict=True)
    key = tuple(type_ for parameter, type_ in pairs if not parameter.type.is_known)
    meanings = _meanings(body, catalog)
    known = body.forms.get(key)
    if known is not None and known[0] == meanings:
        return known[1]
    own, callers = (aggregate.name.lower(), aggregate.window), _CALLERS.get()
    if own in callers:
        chain = ", which calls ".join(f"'{name}'" for name, _ in (*callers[callers.index(own) + 1 :], own))
        raise MistakenCallError(
            f"aggregate '{aggregate.name}' calls itself: it calls {chain}", hint=NO_RECURSION
        )
    token = _CALLERS.set((*callers, own))
    try:
        analyzer = _BodyAnalyzer(aggregate, catalog, arguments)
        analyzer.analyse(lambda: None)
        analyzer.check_types()
        form = analyzer.form()
    finally:
        _CALLERS.reset(token)
    body.forms[key] = meanings, form
    return form


def _body(aggregate: Aggregate) -> AggregateBody:
    assert isinstance(aggregate.definition, AggregateBody), "it is written in ESL"
    return aggregate.definition


def _meanings(body: AggregateBody, catalog: Catalog) -> Meanings:
    """List the entries of all tables and calls that a body names, also those of the aggregates it calls."""
    found: list[object] = []
    seen: set[str] = set()
    waiting = [body]
    while waiting:
        one = waiting.pop()
        found += map(catalog.relation, one.table_names)
        for name in one.call_names:
            if name not in seen:
                seen.add(name)
                called = catalog.aggregate(name)
                found += [catalog.function(name), called, catalog.aggregate(name, window=True)]
                if called is not None and isinstance(called.definition, AggregateBody):
                    waiting.append(called.definition)
    return tuple(found)


class _BodyAnalyzer:
    """Analyser of a body: passes until nothing more is learnt about open types; the last makes the form."""

    def __init__(self, aggregate: Aggregate, catalog: Catalog, arguments: Sequence[Type] = ()) -> None:
        self._aggregate, self._body = aggregate, _body(aggregate)
        self._types = OpenTypes()
        parameters = self._opened("parameter", aggregate.parameters)
        tables = tuple(
            LocalTable(t.name, self._opened(f"table {t.name}", t.fields)) for t in self._body.tables
        )
        self._returns = self._opened("result", aggregate.returns)
        self._names = BodyNames(
            aggregate.name, aggregate.window, parameters, tables, catalog, self._types, self._called
        )
        self._made: dict[str, list[Attempt[typed_nodes.Statement]]] = {}
        inwindow = self._names.table(INWINDOW)
        columns = [column.type for column in inwindow.fields] if inwindow is not None else ()
        for types in (arguments, columns):
            for parameter, type_ in zip(parameters, types, strict=False):
                self._types.meet(parameter.type, type_)

    def _opened(self, owner: str, fields: Fields) -> Fields:
        """Return columns whose unknown types are open."""
        return tuple(
            f if f.type.is_known else Field(f.name, self._types.new(f"{owner}.{f.name}".lower()))
            for f in fields
        )

    def analyse(self, collector: Callable[[], ErrorCollector | None]) -> None:
        """Raise all mistakes of a pass together, or without a collector the first."""
        known = -1
        while known != self._types.known or self._types.settle_by_literal():
            known = self._types.known
            # A statement with a mistake leaves types open, so no more can be said of the others.
            mistakes = collector()
            names = self._names.for_pass()
            for block, statements in self._body.blocks.items():
                analyser = BodyStatements(names.in_block(block), self._returns, self._body.source, mistakes)
                self._made[block] = []
                for statement in statements:
                    with CollectingBlock(mistakes):
                        self._made[block].append(analyser.analyse(statement))
            if mistakes is not None:
                mistakes.check()

    @property
    def is_typed(self) -> bool:
        return self._types.all_settled

    def closed(self) -> Aggregate:
        """Return the aggregate with what has been learnt about its types."""
        tables = tuple(LocalTable(t.name, self._closed(t.fields)) for t in self._names.tables)
        return replace(
            self._aggregate,
            parameters=self._closed(self._names.parameters),
            returns=self._closed(self._returns),
            definition=replace(self._body, tables=tables),
        )

    def _closed(self, fields: Fields) -> Fields:
        return tuple(Field(f.name, self._types.closed(f.type)) for f in fields)

    def check_types(self) -> None:
        declared = [("the parameters", self._names.parameters), ("the result", self._returns)]
        declared += [(f"table '{table.name}'", table.fields) for table in self._names.tables]
        for what, fields in declared:
            for column in self._closed(fields):
                if not column.type.is_known:
                    raise AnalysisError(
                        f"the type of '{column.name}' in {what} cannot be told", hint="declare it"
                    )

    # ------------------------------------------------------------ the typed form

    def form(self) -> Attempt[Body]:
        """Return the typed form of the body, or the first reason why it cannot be compiled."""
        return self._names.for_pass().attempt(self._form)

    def _form(self) -> Body:
        body = Body(
            self._aggregate.name,
            self._aggregate.window,
            tables=tuple(self._table(table.name, table.fields) for table in self._names.tables),
            parameters=self._stored("the parameters", self._names.parameters),
            returns=self._stored("the result", self._returns),
            given=tuple(self._given()),
            **{name.lower(): tuple(s.get() for s in block) for name, block in self._made.items()},
        )
        reason = unsupported(body)
        if reason is not None:
            raise AnalysisError(reason)
        return body

    def _table(self, name: str, fields: Fields) -> typed_nodes.Table:
        return typed_nodes.Table(name.lower(), self._stored(f"table '{name}'", fields))

    def _stored(self, what: str, fields: Fields) -> Fields:
        closed = self._closed(fields)
        for column in closed:
            if not column.type.is_known or column.type.kind in NOT_KEPT:
                raise AnalysisError(
                    f"'{column.name}' of {what}, of type {column.type}, cannot be kept in an aggregate yet"
                )
        return closed

    def _given(self) -> Iterator[typed_nodes.Table]:
        """Yield the tables of the catalog that statements read."""
        for name in self._body.table_names:
            entry = self._names.catalog.relation(name)
            if isinstance(entry, View):
                raise AnalysisError(f"the view '{entry.name}' cannot be read in an aggregate yet")
            if entry is not None and entry.schema is None:
                raise AnalysisError(f"the columns of '{entry.name}' are not known before Spark reads it")
            if entry is not None and entry.schema is not None:
                yield replace(self._table(entry.name, entry.schema), name=name)

    def _called(self, aggregate: Aggregate, arguments: Sequence[Type]) -> Body:
        return specialise(aggregate, arguments, self._names.catalog).get()


# ---------------------------------------------------------------- declarations


def declared_fields(declared: Sequence[nodes.ColumnDeclaration], what: str) -> Fields:
    """Return declared columns, parameters or results; a type that is left out is unknown."""
    fields: dict[str, Field] = {}
    for column in declared:
        name = column.name
        if name.lower() in fields:
            raise error_at(column, f"{what} '{name}' is declared twice")
        kind = column.args.get("kind")
        fields[name.lower()] = Field(name, UNKNOWN if kind is None else from_datatype(kind))
    return tuple(fields.values())


def declared_body(node: nodes.CreateAggregate, parameters: Fields, source: Source) -> AggregateBody:
    """Return the local tables and the blocks of an aggregate as they are written."""
    window = bool(node.args.get("window"))
    tables = _local_tables(node, window, parameters)
    blocks = {name: tuple(b.args.get("statements") or ()) for name, b in _blocks(node, window).items()}
    return AggregateBody(
        tables,
        blocks["INITIALIZE"],
        blocks["ITERATE"],
        blocks.get("TERMINATE", ()),
        blocks.get("EXPIRE", ()),
        source,
    )


def _local_tables(node: nodes.CreateAggregate, window: bool, parameters: Fields) -> tuple[LocalTable, ...]:
    tables: dict[str, LocalTable] = {}
    for declared in node.args.get("tables") or ():
        name = declared.name
        if name.lower() in tables:
            raise error_at(declared, f"table '{name}' is declared twice")
        if name.lower() == RETURN:
            raise error_at(declared, "RETURN is no table of your own: it is what goes out")
        if name.lower() == INWINDOW and not window:
            raise error_at(declared, "inwindow is for window aggregates", hint="CREATE WINDOW AGGREGATE")
        fields = declared_fields(declared.args["columns"], "column")
        if name.lower() == INWINDOW:
            _check_inwindow(declared, fields, parameters)
        tables[name.lower()] = LocalTable(name, fields)
    return tuple(tables.values())


def _check_inwindow(node: exp.Expr, columns: Fields, parameters: Fields) -> None:
    """Check that the columns of inwindow are the parameters under other names (ESL paper, section 4)."""
    if len(columns) != len(parameters):
        raise error_at(
            node,
            f"inwindow has {_counted(len(columns), 'column')} for {_counted(len(parameters), 'parameter')}",
            hint="it holds the arguments of each tuple: a column for each parameter",
        )
    for declared, column, parameter in zip(node.args["columns"], columns, parameters, strict=True):
        known = column.type.is_known and parameter.type.is_known
        if known and column.type != parameter.type:
            raise error_at(
                declared,
                f"'{column.name}' is {column.type}, but parameter '{parameter.name}' is {parameter.type}",
                hint="inwindow holds the arguments as they come",
            )


def _blocks(node: nodes.CreateAggregate, window: bool) -> dict[str, nodes.StateBlock]:
    blocks: dict[str, nodes.StateBlock] = {}
    for block in node.args.get("blocks") or ():
        name = str(block.this)
        if name in blocks:
            raise error_at(block, f"{name} is given twice")
        if name == "EXPIRE" and not window:
            raise error_at(block, "EXPIRE is for window aggregates", hint="CREATE WINDOW AGGREGATE")
        if name == "TERMINATE" and window:
            raise error_at(
                block,
                "a window aggregate has no TERMINATE",
                hint="a window has no last tuple: return the result in INITIALIZE and ITERATE",
            )
        blocks[name] = block
    for name in ("INITIALIZE", "ITERATE"):
        if name not in blocks:
            raise error_at(node.this, f"aggregate '{node.name}' has no {name}")
    return blocks


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
