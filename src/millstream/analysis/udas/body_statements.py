"""The statements of an aggregate: INSERT, UPDATE and DELETE on its local tables, INSERT INTO RETURN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import CollectingBlock
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import stores
from millstream.analysis.udas.body_expressions import INWINDOW, is_literal
from millstream.analysis.udas.body_queries import BodyQueries
from millstream.errors import AnalysisError, did_you_mean
from millstream.syntax import nodes
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from millstream.analysis.error_collector import ErrorCollector
    from millstream.analysis.udas.body_expressions import BodyNames, BodyTyper, Fields, LocalTable
    from millstream.types import Field, Type

RETURN = "return"


def inserted_rows(node: nodes.InsertInto) -> list[list[exp.Expr]]:
    """The rows of VALUES; the papers also put parentheses around all of them."""
    rows = [row.expressions for row in node.args["values"]]
    if len(rows) == 1 and all(isinstance(value, exp.Tuple) for value in rows[0]):
        return [value.expressions for value in rows[0]]
    return rows


class StatementChecker:
    """Checks the statements of one block; the first mistake is raised unless mistakes are collected."""

    def __init__(self, names: BodyNames, returns: Fields, collector: ErrorCollector | None = None) -> None:
        self._mistakes = collector
        self.names = names
        self.returns = returns
        self.queries = BodyQueries(names)

    def check(self, node: exp.Expr) -> None:
        match node:
            case nodes.InsertInto():
                self._insert(node)
            case exp.Update():
                self._update(node)
            case exp.Delete():
                self._delete(node)
            case _:
                raise AnalysisError("expected INSERT, UPDATE or DELETE", span=span_of(node))

    def _collected(self) -> CollectingBlock:
        return CollectingBlock(self._mistakes)

    # ------------------------------------------------------------ INSERT

    def _insert(self, node: nodes.InsertInto) -> None:
        targets = self._targets(node)
        if node.args.get("query") is not None:
            fields = self.queries.fields(node.args["query"])
            if fields is not None:
                self._check_width(node, targets, len(fields), node.args["query"])
                for target, given in zip(targets, fields, strict=True):
                    self._store(target, given.type, node.args["query"])
            return
        typer = self.queries.typer(Scope())
        for row in inserted_rows(node):
            self._check_width(node, targets, len(row), row[0])
            for target, value in zip(targets, row, strict=True):
                with self._collected():
                    self._store(target, typer.plain(value, "in VALUES"), value)
        if node.args.get("where") is not None:
            typer.condition(node.args["where"], "WHERE")

    def _targets(self, node: nodes.InsertInto) -> Fields:
        """The columns that an INSERT fills."""
        if node.name.lower() == INWINDOW:
            raise AnalysisError(
                "nothing can be inserted into inwindow", span=span_of(node.this), hint="the system keeps it"
            )
        fields = self.returns if node.name.lower() == RETURN else self._local(node.this).fields
        listed = node.args.get("columns")
        if not listed:
            return fields
        chosen: dict[str, Field] = {}
        for column in listed:
            if column.name.lower() in chosen:
                raise AnalysisError(f"column '{column.name}' is given twice", span=span_of(column))
            chosen[column.name.lower()] = self._field(column, fields, node.name)
        return tuple(chosen.values())

    def _check_width(self, node: nodes.InsertInto, targets: Fields, given: int, place: exp.Expr) -> None:
        if len(targets) != given:
            into = "RETURN" if node.name.lower() == RETURN else f"'{node.name}'"
            values = f"{len(targets)} value{'' if len(targets) == 1 else 's'}"
            raise AnalysisError(f"{into} takes {values}, not {given}", span=span_of(place))

    # ------------------------------------------------------------ UPDATE, DELETE

    def _update(self, node: exp.Update) -> None:
        table = self._changed(node, "UPDATE", {"this", "expressions", "where"})
        if table.name.lower() == INWINDOW:
            raise AnalysisError(
                "inwindow cannot be updated",
                span=span_of(node.this),
                hint="its tuples may be deleted; what changes belongs in a table of your own",
            )
        typer = self.queries.typer(self._scope(node, table))
        assigned: set[str] = set()
        for assignment in node.expressions:
            with self._collected():
                self._assign(assignment, table, assigned, typer)
        if node.args.get("where") is not None:
            typer.condition(node.args["where"].this, "WHERE")

    def _assign(self, node: exp.Expr, table: LocalTable, assigned: set[str], typer: BodyTyper) -> None:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise AnalysisError("expected column = value in SET", span=span_of(node))
        target = self._assigned(node.this, table)
        if target.name.lower() in assigned:
            raise AnalysisError(f"column '{target.name}' is set twice", span=span_of(node.this))
        assigned.add(target.name.lower())
        self._store(target, typer.plain(node.expression, "in SET"), node.expression)

    def _assigned(self, column: exp.Column, table: LocalTable) -> Field:
        known = any(f.name.lower() == column.name.lower() for f in table.fields)
        if not known and not column.table and self.names.parameter(column.name) is not None:
            raise AnalysisError(
                f"'{column.name}' is a parameter and cannot be set",
                span=span_of(column),
                hint="parameters are constants; keep what changes in a table",
            )
        return self._field(column, table.fields, table.name)

    def _delete(self, node: exp.Delete) -> None:
        table = self._changed(node, "DELETE", {"this", "where"})
        if node.args.get("where") is not None:
            self.queries.typer(self._scope(node, table)).condition(node.args["where"].this, "WHERE")

    def _changed(self, node: exp.Expr, what: str, known: set[str]) -> LocalTable:
        """The table that a statement changes; parts that ESL does not have are refused."""
        for name, value in node.args.items():
            if value and name not in known:
                clause = f"{what} with {name.strip('_').upper()}"
                raise AnalysisError(f"{clause} cannot be used in an aggregate", span=span_of(node))
        if not isinstance(node.this, exp.Table):
            raise AnalysisError(f"{what} needs a table", span=span_of(node))
        return self._local(node.this)

    def _scope(self, node: exp.Expr, table: LocalTable) -> Scope:
        return Scope([ScopeRelation(node.this.alias or table.name, self.names.settled(table.fields))])

    # ------------------------------------------------------------ tables, columns, values

    def _local(self, node: exp.Expr) -> LocalTable:
        table = self.names.table(node.name)
        if table is not None:
            return table
        if node.name.lower() == RETURN:
            raise AnalysisError("RETURN only takes INSERT", span=span_of(node))
        if self.names.catalog.named(node.name) is not None:
            raise AnalysisError(
                f"an aggregate changes only its own tables, and '{node.name}' is not one", span=span_of(node)
            )
        raise AnalysisError(
            f"unknown local table '{node.name}'",
            span=span_of(node),
            hint=did_you_mean(node.name, [t.name for t in self.names.tables])
            or f"declare it in the aggregate: TABLE {node.name}(...)",
        )

    def _field(self, column: exp.Expr, fields: Fields, table: str) -> Field:
        found = next((f for f in fields if f.name.lower() == column.name.lower()), None)
        if found is None:
            raise AnalysisError(
                f"unknown column '{column.name}' in '{table}'",
                span=span_of(column),
                hint=did_you_mean(column.name, [f.name for f in fields]),
            )
        return found

    def _store(self, target: Field, given: Type, value: exp.Expr) -> None:
        self.names.open_types.meet(target.type, given, literal=is_literal(value))
        wanted = self.names.open_types.settled(target.type)
        if not stores(given, wanted):
            raise AnalysisError(
                f"'{target.name}' is {wanted} and cannot take {given}",
                span=span_of(value),
                hint="convert it with CAST",
            )
