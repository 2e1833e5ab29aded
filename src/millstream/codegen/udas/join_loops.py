"""Loops over the rows that a query joins, with what it asks of them tested as early as can be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from millstream.codegen.core.expression_emitter import ExpressionEmitter
from millstream.codegen.core.value_emitter import Value
from millstream.codegen.udas.access_paths import ByHash, InOrder, access, depends_on
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Expr

if TYPE_CHECKING:
    from millstream.codegen.udas.body_emitter import BodyEmitter

Consume = Callable[[list[Value]], None]

MISSING = True
"""Stands behind a row of which there may be none: then its number is -1, and its columns are NULL."""


class JoinLoops(ABC):
    """Emitter of loops over scans."""

    def __init__(self, body: BodyEmitter) -> None:
        self._body = body
        self._writer = body.writer
        self._expressions = ExpressionEmitter(body)
        self._holding: list[Expr] = []
        """Conditions that have been tested on the way to the rows."""

    @abstractmethod
    def rows(
        self, query: typed_nodes.Query, consume: Consume, *, stop: str = "", any_order: bool = False
    ) -> None:
        """Pass every row of a query on; ``stop`` names a condition that ends the loop early."""

    def loops(
        self, query: typed_nodes.Query, inside: Callable[[], None], *, stop: str = "", any_order: bool = False
    ) -> None:
        """Write loops over the scans of a query, with each condition tested as early as possible.

        Tables of one row come first: that changes no order, and what is in them helps to find other rows.
        """
        scans = sorted(query.scans, key=lambda scan: not self._is_of_one_row(scan))
        self._loop(scans, list(query.where), frozenset(), inside, stop, any_order)

    def _is_of_one_row(self, scan: typed_nodes.Scan) -> bool:
        if scan.left or scan.query is not None:
            return False
        return not isinstance(self._body.table_of(scan), MultiRowTable)

    def _loop(
        self,
        scans: list[typed_nodes.Scan],
        conditions: list[Expr],
        known: frozenset[int],
        inside: Callable[[], None],
        stop: str,
        any_order: bool,
    ) -> None:
        outer = frozenset(self._body.positions)
        conditions = [c for c in conditions if c not in self._holding]
        ready = [c for c in conditions if depends_on(c) <= known | outer]
        rest = [c for c in conditions if c not in ready]
        opened = []
        for condition in ready:
            test = self._expressions.truth(condition)
            context = self._writer.deeper(f"if {test}:")
            context.__enter__()
            opened.append(context)
        if scans:
            self._scan(scans[0], scans[1:], rest, known, inside, stop, any_order)
        else:
            inside()
        for context in reversed(opened):
            context.__exit__(None, None, None)

    def _scan(
        self,
        scan: typed_nodes.Scan,
        others: list[typed_nodes.Scan],
        conditions: list[Expr],
        known: frozenset[int],
        inside: Callable[[], None],
        stop: str,
        any_order: bool,
    ) -> None:
        now = known | {scan.number}

        def further(matched: str = "") -> None:
            if matched:
                self._writer.line(f"{matched} = True")
            self._loop(others, conditions, now, inside, stop, any_order)

        if not scan.left:
            own = [*conditions, *scan.on]
            both = list(dict.fromkeys(own))

            def at_row() -> None:
                self._loop(others, both, now, inside, stop, any_order)

            self.scan(scan, both, known, at_row, stop=stop, any_order=any_order and not others)
            return
        way = self._way_to_partners(scan, known)
        if way is not None and way[1] is not None and way[0].tells_apart(way[1].columns):
            self._partner(scan, way[0], way[1], now, further)
            return
        matched = self._writer.name("m")
        self._writer.line(f"{matched} = False")
        if way is not None:
            self._partners(scan, way, matched, now, further, stop)
            return

        def at_partner() -> None:
            self._loop([], list(scan.on), now, lambda: further(matched), stop, any_order=False)

        self.scan(scan, scan.on, known, at_partner, stop=stop, any_order=False)
        with self._writer.deeper(f"if not {matched}:"):
            self._body.positions[scan.number] = None
            further()
            del self._body.positions[scan.number]

    def _way_to_partners(
        self, scan: typed_nodes.Scan, known: frozenset[int]
    ) -> tuple[MultiRowTable, ByHash | None] | None:
        """Return the table of a LEFT JOIN and a way through it; None if it has to be searched otherwise."""
        table = None if scan.query is not None else self._body.table_of(scan)
        if not isinstance(table, MultiRowTable):
            return None
        way = access(scan, scan.on, known | frozenset(self._body.positions), any_order=False)
        assert not isinstance(way, InOrder)
        return table, way

    def _partner(
        self,
        scan: typed_nodes.Scan,
        table: MultiRowTable,
        hashed: ByHash,
        now: frozenset[int],
        further: Callable[[], None],
    ) -> None:
        """Look up the only row that can be a partner."""
        writer, positions = self._writer, self._body.positions
        row = table.find(hashed.columns, self._values(hashed.values))
        rest = [condition for condition in scan.on if condition not in hashed.conditions]
        if rest:
            found, row = row, writer.name("r")
            writer.line(f"{row} = -1")
            with writer.deeper(f"if {found} >= 0:"):
                positions[scan.number] = (scan, found)
                self._loop([], rest, now, lambda: writer.line(f"{row} = {found}"), "", False)
        positions[scan.number] = (scan, row, MISSING)
        further()
        del positions[scan.number]

    def _partners(
        self,
        scan: typed_nodes.Scan,
        found: tuple[MultiRowTable, ByHash | None],
        matched: str,
        now: frozenset[int],
        further: Callable[[], None],
        stop: str,
    ) -> None:
        """Write a loop over the partners of a row; a row without a partner comes once.

        What is done with both stands in one place: several joins would have it many times otherwise.
        """
        writer, (table, hashed) = self._writer, found
        row, fits = writer.name("r"), writer.name("m")
        if hashed is None:
            way = table.order()
            writer.line(f"{row} = {way.first}")
        else:
            given = self._values(hashed.values)
            way = table.chain(hashed.columns, given)
            writer.line(f"{row} = {table.find(hashed.columns, given)}")
        with writer.deeper("while True:"):
            writer.line(f"{fits} = False")
            with writer.deeper(f"while {row} >= 0 and not {fits}:"):
                self._body.positions[scan.number] = (scan, row)
                self._loop([], list(scan.on), now, lambda: writer.line(f"{fits} = True"), "", False)
                with writer.deeper(f"if not {fits}:"):
                    writer.line(f"{row} = {way.following(row)}")
            with writer.deeper(f"if {row} < 0 and {matched}:"):
                writer.line("break")
            writer.line(f"{matched} = True")
            self._body.positions[scan.number] = (scan, row, MISSING)
            further()
            del self._body.positions[scan.number]
            with writer.deeper(f"if {row} < 0{f' or {stop}' if stop else ''}:"):
                writer.line("break")
            writer.line(f"{row} = {way.following(row)}")

    def scan(
        self,
        scan: typed_nodes.Scan,
        conditions: Sequence[Expr],
        known: frozenset[int],
        at_row: Callable[[], None],
        *,
        stop: str = "",
        any_order: bool = False,
    ) -> None:
        """Write a loop over the rows of one scan, and tell the body the row of the scan."""
        positions = self._body.positions

        def placed(row: str) -> None:
            positions[scan.number] = (scan, row)
            at_row()
            del positions[scan.number]

        if scan.query is not None:
            self._of_query(scan, at_row, stop)
            return
        table = self._body.table_of(scan)
        available = known | frozenset(positions)
        way = (
            access(scan, conditions, available, any_order=any_order)
            if isinstance(table, MultiRowTable)
            else None
        )
        match way:
            case ByHash(columns, values, tested):
                assert isinstance(table, MultiRowTable)
                before = len(self._holding)
                self._holding += tested if table.tells_apart(columns) else ()
                table.probe(columns, self._values(values), placed, stop)
                del self._holding[before:]
            case InOrder(column, ascending, condition):
                assert isinstance(table, MultiRowTable)

                def along(row: str, over: str) -> None:
                    positions[scan.number] = (scan, row)
                    test = self._expressions.truth(condition)
                    with self._writer.deeper(f"if not {test}:"):
                        self._writer.line(f"{over} = True")
                    with self._writer.deeper("else:"):
                        self._holding.append(condition)
                        at_row()
                        self._holding.remove(condition)
                    del positions[scan.number]

                table.walk(column, ascending, along, stop)
            case _:
                table.scan(placed, stop)

    def _of_query(self, scan: typed_nodes.Scan, at_row: Callable[[], None], stop: str) -> None:
        assert scan.query is not None

        def each(values: list[Value]) -> None:
            self._body.positions[scan.number] = (scan, values)
            at_row()
            del self._body.positions[scan.number]

        self.rows(scan.query, each, stop=stop)

    def _values(self, exprs: Sequence[Expr]) -> list[Value]:
        return [self._expressions.kept(self._expressions.value(expr)) for expr in exprs]
