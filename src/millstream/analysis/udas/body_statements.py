"""Statements of a body: INSERT, UPDATE and DELETE on its local tables, INSERT INTO RETURN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import CollectingBlock, error_at
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import stores
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.udas.body_expressions import with_outputs
from millstream.analysis.udas.body_names import RETURN, Attempt, Scans, is_literal
from millstream.analysis.udas.body_queries import BodyQueries
from millstream.errors import did_you_mean
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import INWINDOW
from millstream.syntax import nodes
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from millstream.analysis.error_collector import ErrorCollector
    from millstream.analysis.udas.body_expressions import BodyExpressions
    from millstream.analysis.udas.body_names import BodyNames, Fields, LocalTable
    from millstream.errors import Source
    from millstream.types import Field, Type

Targets = dict[int, "Field"]
"""Columns that an INSERT fills, by position."""


def inserted_rows(node: nodes.InsertInto) -> list[list[exp.Expr]]:
    """List the rows of VALUES; the papers also put parentheses around all of them."""
    rows = [row.expressions for row in node.args["values"]]
    if len(rows) == 1 and all(isinstance(value, exp.Tuple) for value in rows[0]):
        return [value.expressions for value in rows[0]]
    return rows


class BodyStatements:
    """Statements of one block; the first mistake is raised unless mistakes are collected."""

    def __init__(
        self, names: BodyNames, returns: Fields, source: Source, collector: ErrorCollector | None = None
    ) -> None:
        self._mistakes = collector
        self._source = source
        self.names = names
        self.returns = returns
        self.queries = BodyQueries(names)

    def analyse(self, node: exp.Expr) -> Attempt[typed_nodes.Statement]:
        match node:
            case nodes.InsertInto():
                return self._insert(node)
            case exp.Update():
                return self._update(node)
            case exp.Delete():
                return self._delete(node)
            case _:
                raise error_at(node, "expected INSERT, UPDATE or DELETE")

    def _collected(self) -> CollectingBlock:
        return CollectingBlock(self._mistakes)

    def _attempt(self, make: Callable[[], typed_nodes.Statement]) -> Attempt[typed_nodes.Statement]:
        """Make the form of a statement, unless it has a mistake."""
        return Attempt() if self._mistakes and self._mistakes.count else self.names.attempt(make)

    def _text(self, node: exp.Expr) -> str:
        span = span_of(node)
        return "" if span is None else " ".join(self._source.text[span[0] : span[1] + 1].split())

    # ------------------------------------------------------------ INSERT

    def _insert(self, node: nodes.InsertInto) -> Attempt[typed_nodes.Statement]:
        fields = self._filled(node)
        targets = self._targets(node, fields)
        fields = self.names.settled(fields)
        name = None if node.name.lower() == RETURN else node.name.lower()
        plain = typed_nodes.Insert(name, text=self._text(node), span=span_of(node))
        if node.args.get("query") is not None:
            given, query = self.queries.analyse(node.args["query"])
            if given is not None:
                self._check_width(node, targets, len(given), node.args["query"])
                for target, column in zip(targets.values(), given, strict=True):
                    self._store(target, column.type, node.args["query"])
            return self._attempt(lambda: replace(plain, query=_into(fields, list(targets), query.get())))
        values = self.queries.expressions(Scans(Scope()))
        rows = inserted_rows(node)
        for row in rows:
            self._check_width(node, targets, len(row), row[0])
            for target, value in zip(targets.values(), row, strict=True):
                with self._collected():
                    self._store(target, values.check_plain(value, "in VALUES"), value)
        where = node.args.get("where")
        values.check_condition(where, "WHERE")
        return self._attempt(
            lambda: replace(
                plain,
                rows=tuple(_row(fields, dict(zip(targets, row, strict=True)), values) for row in rows),
                where=None if where is None else values.condition(where),
            )
        )

    def _filled(self, node: nodes.InsertInto) -> Fields:
        """Return the columns of the table of an INSERT."""
        if node.name.lower() == INWINDOW:
            raise error_at(node.this, "nothing can be inserted into inwindow", hint="the system keeps it")
        return self.returns if node.name.lower() == RETURN else self._local(node.this).fields

    def _targets(self, node: nodes.InsertInto, fields: Fields) -> Targets:
        listed = node.args.get("columns")
        if not listed:
            return dict(enumerate(fields))
        chosen: Targets = {}
        for column in listed:
            target = self._field(column, fields, node.name)
            if fields.index(target) in chosen:
                raise error_at(column, f"column '{column.name}' is given twice")
            chosen[fields.index(target)] = target
        return chosen

    def _check_width(self, node: nodes.InsertInto, targets: Targets, given: int, place: exp.Expr) -> None:
        if len(targets) != given:
            into = "RETURN" if node.name.lower() == RETURN else f"'{node.name}'"
            values = f"{len(targets)} value{'' if len(targets) == 1 else 's'}"
            raise error_at(place, f"{into} takes {values}, not {given}")

    # ------------------------------------------------------------ UPDATE, DELETE

    def _update(self, node: exp.Update) -> Attempt[typed_nodes.Statement]:
        table = self._changed(node, "UPDATE", {"this", "expressions", "where"})
        if table.name.lower() == INWINDOW:
            raise error_at(
                node.this,
                "inwindow cannot be updated",
                hint="its tuples may be deleted; what changes belongs in a table of your own",
            )
        scan, values = self._scan(node, table)
        assigned: dict[int, exp.Expr] = {}
        for assignment in node.expressions:
            with self._collected():
                self._assign(assignment, table, assigned, values)
        where = self._where(node, values)
        return self._attempt(
            lambda: typed_nodes.Update(
                scan,
                tuple((i, values.as_(value, scan.fields[i].type)) for i, value in assigned.items()),
                values.conditions(where),
                text=self._text(node),
                span=span_of(node),
            )
        )

    def _where(self, node: exp.Expr, values: BodyExpressions) -> exp.Expr | None:
        where = node.args.get("where")
        condition = None if where is None else where.this
        values.check_condition(condition, "WHERE")
        return condition

    def _assign(
        self, node: exp.Expr, table: LocalTable, assigned: dict[int, exp.Expr], values: BodyExpressions
    ) -> None:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise error_at(node, "expected column = value in SET")
        target = self._assigned(node.this, table)
        index = table.fields.index(target)
        if index in assigned:
            raise error_at(node.this, f"column '{target.name}' is set twice")
        assigned[index] = node.expression
        self._store(target, values.check_plain(node.expression, "in SET"), node.expression)

    def _assigned(self, column: exp.Column, table: LocalTable) -> Field:
        known = any(f.name.lower() == column.name.lower() for f in table.fields)
        if not known and not column.table and self.names.parameter(column.name) is not None:
            raise error_at(
                column,
                f"'{column.name}' is a parameter and cannot be set",
                hint="parameters are constants; keep what changes in a table",
            )
        return self._field(column, table.fields, table.name)

    def _delete(self, node: exp.Delete) -> Attempt[typed_nodes.Statement]:
        table = self._changed(node, "DELETE", {"this", "where"})
        scan, values = self._scan(node, table)
        where = self._where(node, values)
        return self._attempt(
            lambda: typed_nodes.Delete(
                scan, values.conditions(where), text=self._text(node), span=span_of(node)
            )
        )

    def _changed(self, node: exp.Expr, what: str, known: set[str]) -> LocalTable:
        """Return the table that a statement changes; clauses that ESL does not have are refused."""
        for name, value in node.args.items():
            if value and name not in known:
                clause = f"{what} with {name.strip('_').upper()}"
                raise error_at(node, f"{clause} cannot be used in an aggregate")
        if not isinstance(node.this, exp.Table):
            raise error_at(node, f"{what} needs a table")
        return self._local(node.this)

    def _scan(self, node: exp.Expr, table: LocalTable) -> tuple[typed_nodes.Scan, BodyExpressions]:
        fields = self.names.settled(table.fields)
        scan = typed_nodes.Scan(next(self.names.scans), table.name.lower(), fields=fields)
        alias = node.this.alias or table.name
        scans = Scans(Scope([ScopeRelation(alias, fields)]), {alias.lower(): scan})
        return scan, self.queries.expressions(scans)

    # ------------------------------------------------------------ tables, columns, values

    def _local(self, node: exp.Expr) -> LocalTable:
        table = self.names.table(node.name)
        if table is not None:
            return table
        if node.name.lower() == RETURN:
            raise error_at(node, "RETURN only takes INSERT")
        if self.names.catalog.named(node.name) is not None:
            raise error_at(node, f"an aggregate changes only its own tables, and '{node.name}' is not one")
        raise error_at(
            node,
            f"unknown local table '{node.name}'",
            hint=did_you_mean(node.name, [t.name for t in self.names.tables])
            or f"declare it in the aggregate: TABLE {node.name}(...)",
        )

    def _field(self, column: exp.Expr, fields: Fields, table: str) -> Field:
        found = next((f for f in fields if f.name.lower() == column.name.lower()), None)
        if found is None:
            raise error_at(
                column,
                f"unknown column '{column.name}' in '{table}'",
                hint=did_you_mean(column.name, [f.name for f in fields]),
            )
        return found

    def _store(self, target: Field, given: Type, value: exp.Expr) -> None:
        self.names.open_types.meet(target.type, given, literal=is_literal(value))
        wanted = self.names.open_types.settled(target.type)
        if not stores(given, wanted):
            raise error_at(
                value, f"'{target.name}' is {wanted} and cannot take {given}", hint="convert it with CAST"
            )


def _row(
    fields: Fields, given: Mapping[int, exp.Expr], values: BodyExpressions
) -> tuple[typed_nodes.Expr, ...]:
    """Make a row of VALUES; columns that are not given are NULL."""
    made = {i: values.as_(value, fields[i].type) for i, value in given.items()}
    return tuple(made.get(i, typed_nodes.Constant(None, f.type)) for i, f in enumerate(fields))


def _into(fields: Fields, positions: Sequence[int], query: typed_nodes.Query) -> typed_nodes.Query:
    """Convert the outputs of a query to the columns that they fill."""
    types = (fields[i].type for i in positions)
    outputs = [converted(o, t) for o, t in zip(query.outputs, types, strict=True)]
    return _spread(with_outputs(query, outputs), positions, fields)


def _spread(query: typed_nodes.Query, positions: Sequence[int], fields: Fields) -> typed_nodes.Query:
    """Put outputs at the positions of the columns that they fill; the others are NULL."""
    if list(positions) == list(range(len(fields))):
        return query
    given = dict(zip(positions, query.outputs, strict=True))
    outputs = [given.get(i, typed_nodes.Constant(None, f.type)) for i, f in enumerate(fields)]
    united = tuple(_spread(other, positions, fields) for other in query.united)
    return replace(query, outputs=tuple(outputs), names=tuple(f.name for f in fields), united=united)
