"""INSERT, UPDATE and DELETE as generated source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.udas.access_paths import InOrder, access
from millstream.codegen.udas.body_facts import reads
from millstream.codegen.udas.key_inference import guarded
from millstream.codegen.udas.local_table_emitter import LocalTableEmitter, SingleRow
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.codegen.udas.query_emitter import QueryEmitter
from millstream.ir import typed_nodes
from millstream.types import BIGINT

if TYPE_CHECKING:
    from millstream.codegen.udas.body_emitter import BodyEmitter

Returned = Callable[[list[Value]], None]


class StatementEmitter:
    """Emitter of statements; ``returned`` writes returned rows."""

    def __init__(self, body: BodyEmitter, queries: QueryEmitter, returned: Returned) -> None:
        self._body, self._queries, self._returned = body, queries, returned
        self._writer = body.writer

    def write(self, statement: typed_nodes.Statement, *, is_asked_about: bool) -> None:
        """Write a statement; ``sqlcode`` tells the next one whether it changed or returned a row."""
        changed = ""
        if is_asked_about:
            changed = self._writer.name("d")
            self._writer.line(f"{changed} = 0")
        match statement:
            case typed_nodes.Insert():
                self._insert(statement, changed)
            case typed_nodes.Update():
                self._update(statement, changed)
            case typed_nodes.Delete():
                self._delete(statement, changed)
        if is_asked_about:
            self._writer.line(f"sqlcode = 0 if {changed} > 0 else 100")

    def _note(self, changed: str) -> None:
        if changed:
            self._writer.line(f"{changed} += 1")

    def _put(self, table: str | None, values: list[Value], changed: str) -> None:
        if table is None:
            self._returned(values)
        else:
            self._body.tables[table].insert(values)
        self._note(changed)

    def _insert(self, statement: typed_nodes.Insert, changed: str) -> None:
        if statement.query is not None:
            query = statement.query
            if statement.table is not None and statement.table in reads(query):
                # What is inserted must not be seen by the query that inserts it.
                types = [output.type for output in query.outputs]
                arrays, count, add = self._queries.gathered(types)
                self._queries.rows(query, add)
                row = self._writer.name("j")
                with self._writer.deeper(f"for {row} in range({count}):"):
                    values = [
                        self._queries.gathered_value(a, row, t) for a, t in zip(arrays, types, strict=True)
                    ]
                    self._put(statement.table, values, changed)
            else:
                self._queries.rows(query, lambda values: self._put(statement.table, values, changed))
            return

        def rows() -> None:
            # All rows are computed before the first is there.
            all_values = [self._values(row) for row in statement.rows]
            for values in all_values:
                self._put(statement.table, values, changed)

        if statement.where is None:
            rows()
        else:
            self._look_ahead(statement)
            with self._writer.deeper(f"if {self._body.expressions.truth(statement.where)}:"):
                rows()

    def _look_ahead(self, statement: typed_nodes.Insert) -> None:
        """Look up the row that an INSERT guards against, so that the next statements reuse the lookup."""
        table = self._body.tables.get(statement.table or "")
        columns = tuple(sorted(guarded(statement.table or "", statement)))
        if isinstance(table, MultiRowTable) and table.tells_apart(columns):
            values = [statement.rows[0][column] for column in columns]
            if all(isinstance(value, typed_nodes.Parameter | typed_nodes.Constant) for value in values):
                table.find(columns, self._values(values))

    def _update(self, statement: typed_nodes.Update, changed: str) -> None:
        table = self._body.tables[statement.scan.table or ""]
        indexes = [index for index, _ in statement.assigned]
        way = access(statement.scan, statement.where, frozenset(), any_order=True)
        moves = isinstance(way, InOrder) and way.column in indexes
        moves |= way is not None and not isinstance(way, InOrder) and bool(set(way.columns) & set(indexes))
        if isinstance(table, SingleRow):
            moves = False
        if not moves and statement.scan.table not in reads((statement.where, statement.assigned)):

            def at_row() -> None:
                values = self._assigned(statement)
                self._assign(table, self._row(statement.scan), values, changed)

            self._where(statement.scan, statement.where, at_row)
            return
        # Every row is looked at as it was before the statement.
        types = [expr.type for _, expr in statement.assigned]
        arrays, count, add = self._queries.gathered([BIGINT, *types])

        def gather() -> None:
            row = self._row(statement.scan)
            add([Value(row), *self._assigned(statement).values()])

        self._where(statement.scan, statement.where, gather)
        at = self._writer.name("j")
        with self._writer.deeper(f"for {at} in range({count}):"):
            row = self._writer.name("r")
            self._writer.line(f"{row} = {arrays[0][0]}[{at}]")
            given = {
                index: self._queries.gathered_value(pair, at, type_)
                for index, pair, type_ in zip(indexes, arrays[1:], types, strict=True)
            }
            self._assign(table, row, given, changed)

    def _assigned(self, statement: typed_nodes.Update) -> dict[int, Value]:
        indexes, values = zip(*statement.assigned, strict=True)
        return dict(zip(indexes, self._values(values), strict=True))

    def _values(self, exprs: Iterable[typed_nodes.Expr]) -> list[Value]:
        expressions = self._body.expressions
        return [expressions.kept(expressions.value(expr)) for expr in exprs]

    def _row(self, scan: typed_nodes.Scan) -> str:
        """Return the name that has the row at which a scan is."""
        row: str = self._body.positions[scan.number][1]
        return row

    def _assign(self, table: LocalTableEmitter, row: str, values: dict[int, Value], changed: str) -> None:
        table.assign(row, values)
        self._note(changed)

    def _delete(self, statement: typed_nodes.Delete, changed: str) -> None:
        table = self._body.tables[statement.scan.table or ""]
        if statement.scan.table in reads(statement.where):
            arrays, count, add = self._queries.gathered([BIGINT])
            number = statement.scan.number
            self._where(
                statement.scan, statement.where, lambda: add([Value(self._body.positions[number][1])])
            )
            at = self._writer.name("j")
            with self._writer.deeper(f"for {at} in range({count}):"):
                row = self._writer.name("r")
                self._writer.line(f"{row} = {arrays[0][0]}[{at}]")
                table.remove(row)
                self._note(changed)
            return

        def remove() -> None:
            table.remove(self._row(statement.scan))
            self._note(changed)

        self._where(statement.scan, statement.where, remove)

    def _where(
        self, scan: typed_nodes.Scan, where: tuple[typed_nodes.Expr, ...], at_row: Callable[[], None]
    ) -> None:
        """Write a loop over the rows of a table for which conditions hold."""
        query = typed_nodes.Query((scan,), where, (), ())
        self._queries.loops(query, at_row, any_order=True)
