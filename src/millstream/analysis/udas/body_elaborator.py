"""The checked form of an aggregate for the arguments of a call.

Old listings leave out types; then the call has its say too, so the form is made for each call anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.analysis.queries.call_nodes import Bodies, Panes
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.types.type_inference import OpenTypes
from millstream.analysis.udas.body_analyzer import AggregateBody
from millstream.analysis.udas.body_expression_elaborator import BodyExpressionElaborator, Scans, with_outputs
from millstream.analysis.udas.body_expressions import BodyNames, LocalTable
from millstream.analysis.udas.body_queries import BodyQueries
from millstream.analysis.udas.body_query_elaborator import BodyQueryElaborator, SeveralRowsError
from millstream.analysis.udas.body_statements import RETURN, StatementChecker, inserted_rows
from millstream.catalog.entries import View
from millstream.codegen.udas.uda_compiler import CONTENT, compile_uda
from millstream.errors import AnalysisError, MillstreamError
from millstream.ir import typed_nodes
from millstream.ir.python_aggregate import PythonAggregate, PythonBody
from millstream.program.failures import UnsupportedError
from millstream.syntax import nodes, parse_script
from millstream.syntax.spans import span_of
from millstream.types import Field, Kind, Type

if TYPE_CHECKING:
    from millstream.catalog import Catalog
    from millstream.catalog.entries import Aggregate

Fields = tuple[Field, ...]

_NOT_KEPT = (Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL)
"""Kinds of values that kernels cannot remember."""


def checked_body(aggregate: Aggregate, arguments: Sequence[Type], catalog: Catalog) -> typed_nodes.Body:
    """An aggregate in ESL, for arguments of these types."""
    body = aggregate.definition
    assert isinstance(body, AggregateBody), "it is written in ESL"
    return _BodyElaborator(aggregate, body, catalog).check(arguments)


def bodies_of(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    """Both versions of an aggregate of the user's, for arguments of these types, and what it is in panes."""
    bodies = _versions(name, arguments, catalog)
    return (
        bodies
        if bodies.unfit is not None
        else replace(bodies, panes=_panes(name, bodies, arguments, catalog))
    )


def _panes(name: str, bodies: Bodies, arguments: Sequence[Type], catalog: Catalog) -> Panes | None:
    """What ALGEBRAIC says, if both the aggregate of panes and the one that combines them can be run."""
    entries = (catalog.aggregate(name, window=window) for window in (False, True))
    entry = next((entry for entry in entries if entry is not None and entry.algebraic), None)
    if entry is None:
        return None
    partial = bodies if entry.partial is None else _named(entry.partial, arguments, catalog)
    pane = partial.base or partial.window
    if not isinstance(pane, typed_nodes.Body):
        return None
    combined = _named(entry.final or name, [f.type for f in pane.returns], catalog)
    body = combined.window or combined.base
    if not isinstance(body, typed_nodes.Body) or not all(map(_goes_into, pane.returns, body.parameters)):
        return None
    return Panes(pane, combined)


def _named(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    """An aggregate that ALGEBRAIC names: one of the user's, or a built-in one as if a user had written it."""
    if catalog.has_aggregate(name):
        return _versions(name, arguments, catalog)
    columns = ", ".join(f"x{i} {type_}" for i, type_ in enumerate(arguments))
    given = ", ".join(f"x{i}" for i in range(len(arguments)))
    text = f"""CREATE AGGREGATE built_in_{name}({columns}) : (result) {{
        TABLE given({columns});
        INITIALIZE : {{ INSERT INTO given VALUES ({given}); }}
        ITERATE    : {{ INSERT INTO given VALUES ({given}); }}
        TERMINATE  : {{ INSERT INTO RETURN SELECT {name}({given}) FROM given; }} }}"""
    try:
        (statement,) = parse_script(text)
        assert isinstance(statement.tree, nodes.CreateAggregate)
        entry = analyse_aggregate(statement.tree, catalog, statement.source)
        body = checked_body(entry, arguments, catalog)
        compile_uda(body, CONTENT)
    except (MillstreamError, UnsupportedError):
        return Bodies(unfit=f"'{name}' cannot be run inside an aggregate")
    return Bodies(base=body)


def _goes_into(given: Field, wanted: Field) -> bool:
    """Whether what a pane returns can be taken as it is: nothing is lost, or it is an error."""
    number = given.type.is_integral and (wanted.type.is_integral or wanted.type.kind is Kind.DOUBLE)
    return given.type == wanted.type or number


def _versions(name: str, arguments: Sequence[Type], catalog: Catalog) -> Bodies:
    versions: list[typed_nodes.Body | PythonBody | None] = []
    for window in (False, True):
        entry = catalog.aggregate(name, window=window)
        if entry is None:
            versions.append(None)
            continue
        body: typed_nodes.Body | PythonBody
        try:
            if isinstance(entry.definition, PythonAggregate):
                body = python_body(entry, entry.definition, arguments)
            else:
                body = checked_body(entry, arguments, catalog)
                compile_uda(body, CONTENT)
        except AnalysisError as error:
            # Types that nobody knows before Spark does may turn out to fit.
            if not all(type_.is_known for type_ in arguments):
                return Bodies(unfit=f"in aggregate '{name}', {error.message}")
            given = ", ".join(map(str, arguments))
            error.message = f"in aggregate '{name}', called with ({given}): {error.message}"
            if isinstance(entry.definition, AggregateBody):
                error.locate(entry.definition.source)
            raise
        except UnsupportedError as error:
            return Bodies(unfit=f"in aggregate '{name}', {error}")
        versions.append(body)
    base, window_version = versions
    if window_version is None and isinstance(base, PythonBody) and base.goes_along:
        window_version = base
    return Bodies(base, window_version)


def python_body(aggregate: Aggregate, definition: PythonAggregate, arguments: Sequence[Type]) -> PythonBody:
    """An aggregate in Python, for arguments of these types."""
    parameters = tuple(
        p if p.type.is_known else Field(p.name, type_)
        for p, type_ in zip(aggregate.parameters, arguments, strict=True)
    )
    for column in (*parameters, *aggregate.returns):
        if column.type.kind in _NOT_KEPT:
            raise AnalysisError(f"'{column.name}' of type {column.type} cannot be kept in an aggregate yet")
        if not column.type.is_known:
            raise AnalysisError(f"the type of '{column.name}' cannot be told", hint="declare it")
    return PythonBody(aggregate.name, parameters, aggregate.returns, definition)


class _BodyElaborator:
    def __init__(self, aggregate: Aggregate, body: AggregateBody, catalog: Catalog) -> None:
        self._aggregate, self._body = aggregate, body
        self._types = OpenTypes()
        parameters = self._opened("parameter", aggregate.parameters)
        tables = tuple(LocalTable(t.name, self._opened(t.name, t.fields)) for t in body.tables)
        self._returns = self._opened("result", aggregate.returns)
        self._names = BodyNames(aggregate.name, aggregate.window, parameters, tables, catalog, self._types)
        self._numbers = itertools.count()

    def _opened(self, what: str, fields: Fields) -> Fields:
        """What is still unknown after the aggregate was made is open again."""
        return tuple(
            f if f.type.is_known else Field(f.name, self._types.new(f"{what}.{f.name}".lower()))
            for f in fields
        )

    def check(self, arguments: Sequence[Type]) -> typed_nodes.Body:
        for parameter, type_ in zip(self._names.parameters, arguments, strict=True):
            self._types.meet(parameter.type, type_)
        for table in self._names.tables:
            if table.name.lower() == typed_nodes.INWINDOW:
                for column, parameter in zip(table.fields, self._names.parameters, strict=True):
                    self._types.meet(column.type, parameter.type)
        self._settle()
        self._make_sure_of_types()
        try:
            return self._made()
        except SeveralRowsError:
            raise
        except AnalysisError as error:
            # Nothing is wrong with it.
            raise UnsupportedError(error.message) from None

    def _make_sure_of_types(self) -> None:
        declared = [("the parameters", self._names.parameters), ("the result", self._returns)]
        declared += [(f"table '{table.name}'", table.fields) for table in self._names.tables]
        for what, fields in declared:
            for column in fields:
                if not self._types.closed(column.type).is_known:
                    raise AnalysisError(
                        f"the type of '{column.name}' in {what} cannot be told", hint="declare it"
                    )

    def _made(self) -> typed_nodes.Body:
        tables = tuple(
            typed_nodes.Table(table.name.lower(), self._closed(f"table '{table.name}'", table.fields))
            for table in self._names.tables
        )
        body = typed_nodes.Body(
            self._aggregate.name,
            self._aggregate.window,
            self._closed("the parameters", self._names.parameters),
            self._closed("the result", self._returns),
            tables,
            (),
            (),
            given=self._given(),
        )
        blocks = {
            "initialize": ("INITIALIZE", self._body.initialize),
            "iterate": ("ITERATE", self._body.iterate),
            "terminate": ("TERMINATE", self._body.terminate),
            "expire": ("EXPIRE", self._body.expire),
        }
        made = {
            name: tuple(
                _StatementElaborator(self._names.inside(block), body, self._numbers, self._body).of(s)
                for s in given
            )
            for name, (block, given) in blocks.items()
        }
        return replace(
            body,
            initialize=made["initialize"],
            iterate=made["iterate"],
            terminate=made["terminate"],
            expire=made["expire"],
        )

    def _given(self) -> tuple[typed_nodes.Table, ...]:
        """The tables of the catalog that statements read."""
        known = {RETURN, *(table.name.lower() for table in self._names.tables)}
        given: list[typed_nodes.Table] = []
        body = self._body
        for statement in (*body.initialize, *body.iterate, *body.terminate, *body.expire):
            for node in statement.find_all(exp.Table):
                name = node.name.lower()
                if name in known:
                    continue
                known.add(name)
                entry = self._names.catalog.relation(name)
                if entry is None:
                    continue
                if isinstance(entry, View):
                    raise AnalysisError(
                        f"the view '{entry.name}' cannot be read in an aggregate yet", span=span_of(node)
                    )
                if entry.schema is None:
                    raise AnalysisError(
                        f"the columns of '{entry.name}' are not known before Spark reads it",
                        span=span_of(node),
                        hint="declare them with CREATE TABLE",
                    )
                given.append(typed_nodes.Table(name, self._closed(f"table '{entry.name}'", entry.schema)))
        return tuple(given)

    def _settle(self) -> None:
        known = -1
        while known != self._types.known or self._types.settle_by_literal():
            known = self._types.known
            for block, statements in (
                ("INITIALIZE", self._body.initialize),
                ("ITERATE", self._body.iterate),
                ("TERMINATE", self._body.terminate),
                ("EXPIRE", self._body.expire),
            ):
                checker = StatementChecker(self._names.inside(block), self._returns)
                for statement in statements:
                    checker.check(statement)

    def _closed(self, what: str, fields: Fields) -> Fields:
        closed = tuple(Field(f.name, self._types.closed(f.type)) for f in fields)
        for column in closed:
            if not column.type.is_known or column.type.kind in _NOT_KEPT:
                raise AnalysisError(
                    f"'{column.name}' of {what}, of type {column.type}, cannot be kept in an aggregate yet"
                )
        return closed


class _StatementElaborator:
    """Makes the checked form of the statements of one block."""

    def __init__(
        self, names: BodyNames, body: typed_nodes.Body, numbers: Iterator[int], written: AggregateBody
    ) -> None:
        self._names, self._body, self._numbers, self._written = names, body, numbers, written
        self._queries = BodyQueries(names)

    def of(self, node: exp.Expr) -> typed_nodes.Statement:
        match node:
            case nodes.InsertInto():
                return self._insert(node)
            case exp.Update():
                return self._update(node)
            case exp.Delete():
                scan, values = self._changed(node)
                where = node.args.get("where")
                conditions = values.conditions(where.this if where is not None else None)
                return typed_nodes.Delete(scan, conditions, text=self._text(node), span=span_of(node))
        raise AssertionError("the checker has seen to it")

    def _text(self, node: exp.Expr) -> str:
        span = span_of(node)
        return "" if span is None else " ".join(self._written.source.text[span[0] : span[1] + 1].split())

    def _values(self, scans: Scans) -> BodyExpressionElaborator:
        return BodyExpressionElaborator(self._queries.typer(scans.scope), scans, self.query)

    def query(self, node: exp.Expr, outer: Scans | None = None) -> typed_nodes.Query:
        return BodyQueryElaborator.query(node, self._queries, self._body, self._numbers, outer)

    def _insert(self, node: nodes.InsertInto) -> typed_nodes.Insert:
        table = None if node.name.lower() == RETURN else self._body.table(node.name.lower())
        fields = self._body.returns if table is None else table.fields
        listed = node.args.get("columns")
        positions = list(range(len(fields)))
        if listed:
            names = [f.name.lower() for f in fields]
            positions = [names.index(column.name.lower()) for column in listed]
        types = [fields[i].type for i in positions]
        facts = {"text": self._text(node), "span": span_of(node)}
        name = None if table is None else table.name
        if node.args.get("query") is not None:
            query = self.query(node.args["query"].unnest())
            outputs = [converted(o, t) for o, t in zip(query.outputs, types, strict=True)]
            query = _spread(with_outputs(query, outputs), positions, fields)
            return typed_nodes.Insert(name, query=query, **facts)  # type: ignore[arg-type]
        values = self._values(Scans(Scope()))
        rows = []
        for row in inserted_rows(node):
            given = {
                i: values.as_(value, type_) for i, value, type_ in zip(positions, row, types, strict=True)
            }
            rows.append(tuple(given.get(i, typed_nodes.Constant(None, f.type)) for i, f in enumerate(fields)))
        where = node.args.get("where")
        condition = None if where is None else values.condition(where)
        return typed_nodes.Insert(name, tuple(rows), condition, **facts)  # type: ignore[arg-type]

    def _update(self, node: exp.Update) -> typed_nodes.Update:
        scan, values = self._changed(node)
        assigned = []
        names = [f.name.lower() for f in scan.fields]
        for assignment in node.expressions:
            index = names.index(assignment.this.name.lower())
            assigned.append((index, values.as_(assignment.expression, scan.fields[index].type)))
        where = node.args.get("where")
        conditions = values.conditions(where.this if where is not None else None)
        return typed_nodes.Update(
            scan, tuple(assigned), conditions, text=self._text(node), span=span_of(node)
        )

    def _changed(self, node: exp.Expr) -> tuple[typed_nodes.Scan, BodyExpressionElaborator]:
        table = self._body.table(node.this.name.lower())
        scan = typed_nodes.Scan(next(self._numbers), table.name, fields=table.fields)
        alias = node.this.alias or table.name
        scope = Scope([ScopeRelation(alias, table.fields)])
        return scan, self._values(Scans(scope, {alias.lower(): scan}))


def _spread(query: typed_nodes.Query, positions: Sequence[int], fields: Fields) -> typed_nodes.Query:
    """Outputs at the places of the columns that they fill; the others are NULL."""
    if list(positions) == list(range(len(fields))):
        return query
    given = dict(zip(positions, query.outputs, strict=True))
    outputs = [given.get(i, typed_nodes.Constant(None, f.type)) for i, f in enumerate(fields)]
    united = tuple(_spread(other, positions, fields) for other in query.united)
    return replace(query, outputs=tuple(outputs), names=tuple(f.name for f in fields), united=united)
