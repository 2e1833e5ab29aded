"""A body as generated source: its tables, its statements, and where its expressions find things."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.codegen.core.expression_emitter import ExpressionEmitter
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import EmitterScope, Value, either, truth
from millstream.codegen.udas.accumulator_emitters import ACCUMULATORS, Accumulator, CalledUda
from millstream.codegen.udas.body_facts import is_always_there, is_single, most_added
from millstream.codegen.udas.key_inference import key_of
from millstream.codegen.udas.local_table_emitter import (
    CachedVariables,
    LocalTableEmitter,
    SingleRow,
    TableRequirements,
    if_there,
)
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.codegen.udas.query_emitter import QueryEmitter
from millstream.codegen.udas.statement_emitter import Returned, StatementEmitter
from millstream.codegen.udas.window_queue import Queue, Ring
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import DOUBLE, TRUTH, kind_of, zero
from millstream.program.interpreted_functions import is_known
from millstream.program.program import InterpretedCall, TableLayout
from millstream.types import Type


@dataclass
class ProgramContext:
    """State shared by all bodies of a program, and what is learnt while they are written."""

    writer: SourceWriter
    needs: dict[str, TableRequirements] = field(default_factory=dict)
    layouts: dict[str, TableLayout] = field(default_factory=dict)
    words: list[tuple[object, Type]] = field(default_factory=list)
    labelled: list[Type] = field(default_factory=list)
    hashed: list[tuple[str, Type]] = field(default_factory=list)
    outside: list[InterpretedCall] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    given: list[typed_nodes.Table] = field(default_factory=list)
    bodies: Any = field(default_factory=itertools.count)
    failed: str = "return"
    """The line that leaves the program."""

    @property
    def learnt(self) -> int:
        return sum(needs.size for needs in self.needs.values()) + len(self.outside)

    def again(self) -> ProgramContext:
        """Return a context for another draft, with what has been learnt."""
        return ProgramContext(
            SourceWriter(), self.needs, outside=self.outside, given=self.given, failed=self.failed
        )


class BodyEmitter(EmitterScope):
    """The statements of one aggregate, for the instance that ``instance`` names.

    ``returned`` writes what happens to a returned row. Tables of a ``passing`` body live only for the call.
    The window of one that is ``sliding`` loses its oldest tuples only, and ``one_by_one`` if as many leave as
    come. ``held`` says that all that is done with an instance stands between ``hold`` and ``let_go``. Of a
    ``crowded`` one a tuple may
    concern many instances, so the number of rows it adds is unbounded, as for one that is ``called``.
    """

    def __init__(
        self,
        body: typed_nodes.Body,
        shared: ProgramContext,
        instance: str,
        returned: Returned,
        *,
        passing: bool = False,
        sliding: bool = False,
        one_by_one: bool = False,
        held: bool = False,
        crowded: bool = False,
        called: bool = False,
    ) -> None:
        self.body, self.writer, self._shared = body, shared.writer, shared
        self.instance = instance
        self._number = next(shared.bodies)
        self._is_crowded, self._is_called = crowded, called
        self._is_sliding = sliding and not body.deletes_from_window
        self._is_one_by_one, self._is_held = one_by_one, held
        self._is_steady = not passing and not body.deletes_from_window
        self._oldest: dict[int, Value] = {}
        """Columns of the oldest tuple, where it stays the same throughout the block."""
        self.positions: dict[int, Any] = {}
        self.group: list[Value] = []
        self._parameters: list[Value] = []
        self.tables: dict[str, LocalTableEmitter] = {}
        for i, table in enumerate(body.tables):
            self.tables[table.name] = self._table(table, f"u{self._number}t{i}", passing)
        self.expressions = ExpressionEmitter(self)
        self._queries = QueryEmitter(self)
        self._statements = StatementEmitter(self, self._queries, returned)

    # ------------------------------------------------------------ tables

    def _table(self, table: typed_nodes.Table, prefix: str, passing: bool) -> LocalTableEmitter:
        needs = self._shared.needs.setdefault(prefix, TableRequirements())
        placed = table.name == typed_nodes.INWINDOW
        single = is_single(table.name, self.body) and not self._is_crowded
        bound = 1 if placed else most_added(table.name, self.body)
        bound = None if self._is_crowded or self._is_called else bound
        queue = placed and self._is_sliding and not (needs.hashes or needs.ordered)
        ring = queue and self._is_one_by_one
        self._shared.layouts[prefix] = TableLayout(
            table.name,
            prefix,
            table.fields,
            single,
            tuple(needs.hashes),
            tuple(needs.ordered),
            tuple(needs.counted),
            bound,
            placed,
            passing,
            queue=queue,
            ring=ring,
            certain=needs.certain(len(table.fields)),
        )
        if single:
            return SingleRow(table, prefix, self.writer, self.instance, needs, held=self._is_held)
        kind = Ring if ring else Queue if queue else MultiRowTable
        return kind(
            table,
            prefix,
            self.writer,
            self.instance,
            needs,
            grows=bound is None,
            placed=placed,
            passing=passing,
            key=key_of(table.name, self.body),
        )

    @property
    def window(self) -> MultiRowTable:
        table = self.tables[typed_nodes.INWINDOW]
        assert isinstance(table, MultiRowTable)
        return table

    def table_of(self, scan: typed_nodes.Scan) -> LocalTableEmitter:
        assert scan.table is not None
        return self.tables.get(scan.table) or self._given(scan.table)

    def _given(self, name: str) -> MultiRowTable:
        """Return a table of the catalog, which all bodies of a program share."""
        table = next(table for table in self.body.given if table.name == name)
        given = self._shared.given
        if table not in given:
            given.append(table)
        prefix = f"given{given.index(table)}"
        needs = self._shared.needs.setdefault(
            prefix, TableRequirements(nullable=set(range(len(table.fields))))
        )
        self._shared.layouts[prefix] = TableLayout(
            name,
            prefix,
            table.fields,
            False,
            tuple(needs.hashes),
            tuple(needs.ordered),
            tuple(needs.counted),
            bound=0,
            given=True,
        )
        return MultiRowTable(table, prefix, self.writer, "0", needs, grows=False, placed=False)

    def clear(self) -> None:
        """Forget the instance."""
        for table in self.tables.values():
            table.clear()

    def hold(self) -> None:
        """Load the instance into variables; it stays the same until ``let_go``."""
        for table in self._held:
            table.hold()

    def let_go(self) -> None:
        for table in self._held:
            table.let_go()

    @property
    def _held(self) -> list[CachedVariables]:
        tables = self.tables.values() if self._is_held else ()
        return [table for table in tables if isinstance(table, CachedVariables)]

    def called(self, body: typed_nodes.Body, returned: Returned) -> BodyEmitter:
        """Return the emitter of a called aggregate, whose one instance starts anew with each call."""
        return BodyEmitter(body, self._shared, "0", returned, passing=True, called=True)

    # ------------------------------------------------------------ surroundings

    def parameter(self, index: int) -> Value:
        return self._parameters[index]

    def column(self, column: typed_nodes.Column) -> Value:
        place = self.positions[column.scan]
        if place is None:
            return Value(zero(kind_of(column.type)), "True")
        scan, row, *missing = place
        if isinstance(row, list):
            known: Value = row[column.index]
            return known
        value = self.table_of(scan).column(row, column.index)
        return if_there(row, value, column.type) if missing else value

    def settled(self, part: typed_nodes.Parameter | typed_nodes.Column | typed_nodes.Oldest) -> Value | None:
        match part:
            case typed_nodes.Parameter(index):
                return self._parameters[index]
            case typed_nodes.Column(scan) if scan in self.positions:
                return self.column(part)
            case typed_nodes.Oldest() if _is_first(part):
                return self._oldest.get(part.index)
        return None

    def oldest(self, position: Value, index: int, type_: Type) -> Value:
        if position.code == "1" and index in self._oldest:
            return self._oldest[index]
        table = self.window
        row = self.writer.name("r")
        self.writer.line(f"{row} = {table.head}")
        if position.code != "1":
            with self.writer.deeper(f"if {either(*filter(None, (position.null, f'{position.code} < 1')))}:"):
                self.writer.line(f"{row} = -1")
            step = self.writer.name("j")
            walk = self.writer.deeper(f"for {step} in range(1, {position.code}):")
            with walk, self.writer.deeper(f"if {row} >= 0:"):
                self.writer.line(f"{row} = {table.name('next')}[{row}]")
        return self.expressions.kept(if_there(row, table.column(row, index), type_))

    def grouped(self, index: int) -> Value:
        return self.group[index]

    def scalar(self, query: typed_nodes.Query) -> Value:
        return self._queries.scalar(query)

    def exists(self, query: typed_nodes.Query) -> str:
        return self._queries.exists(query)

    def among(self, values: tuple[Value, ...], node: typed_nodes.InQuery) -> tuple[str, str]:
        return self._queries.among(values, node)

    def word(self, value: object, type_: Type) -> str:
        known = self._shared.words
        if (value, type_) not in known:
            known.append((value, type_))
        return f"words[{known.index((value, type_))}]"

    def labels(self, type_: Type) -> str:
        if type_ not in self._shared.labelled:
            self._shared.labelled.append(type_)
        return f"labels{self._shared.labelled.index(type_)}"

    def hashes(self, function: str, type_: Type) -> str:
        if (function, type_) not in self._shared.hashed:
            self._shared.hashed.append((function, type_))
        return f"hashes{self._shared.hashed.index((function, type_))}"

    def outside(self, name: str, types: tuple[Type, ...], result: Type) -> str:
        assert is_known(name), f"the function '{name}' of {', '.join(map(str, types))}"
        return self.called_outside(InterpretedCall(name, types, result))

    def called_outside(self, call: InterpretedCall) -> str:
        if call not in self._shared.outside:
            self._shared.outside.append(call)
        return f"outside{self._shared.outside.index(call)}"

    def fail(self, failure: int) -> None:
        statement = len(self._shared.texts) - 1
        self.writer.lines(f"note_failure(fail, {failure}, {statement}, i)", self._shared.failed)

    # ------------------------------------------------------------ aggregates of queries

    def accumulator(self, aggregate: typed_nodes.Aggregation) -> Accumulator:
        if aggregate.user is not None:
            return CalledUda(aggregate, self)
        return ACCUMULATORS[aggregate.name](aggregate, self)

    def group_accumulator(
        self,
        aggregate: typed_nodes.Aggregation,
        arrays: Sequence[tuple[str, str]],
        types: Sequence[Type],
        chosen: tuple[str, str] | None,
        groups: tuple[str, str, str],
        keys: Callable[..., str],
    ) -> Callable[[str], Value]:
        """Return an aggregate of rows put aside: gives the text of its value in a group."""
        assert aggregate.user is None, f"'{aggregate.name}' with GROUP BY or DISTINCT"
        of_row, number, count = groups
        kind = kind_of(aggregate.type)
        values, nulls = self.writer.name("g"), self.writer.name("b")
        made = "zero_doubles" if kind == DOUBLE else "zero_integers"
        self.writer.lines(f"{values} = {made}({number})", f"{nulls} = zero_bytes({number})")
        firsts = ""
        if aggregate.distinct and arrays:
            # Of equal values of a group only the first counts.
            pairs = [(pair, type_, False, True) for pair, type_ in zip(arrays, types, strict=True)]
            own = keys(pairs, count)
            firsts = self.writer.name("q")
            self.writer.line(f"{firsts} = are_first_of_groups({own}, {of_row}, {count})")
        row, group = self.writer.name("j"), self.writer.name("x")
        # One value for each group instead of one in all: the names stand for elements of arrays.
        accumulator = ACCUMULATORS[aggregate.name](aggregate, self)
        with self.writer.deeper(f"for {group} in range({number}):"):
            accumulator.begin()
            with self.writer.deeper(f"for {row} in range({count}):"):
                tests = [f"{of_row}[{row}] == {group}"]
                tests += [f"{firsts}[{row}] != 0"] if firsts else []
                tests += [f"{chosen[0]}[{row}] != 0 and {chosen[1]}[{row}] == 0"] if chosen else []
                with self.writer.deeper(f"if {' and '.join(tests)}:"):
                    given = [
                        Value(
                            f"({v}[{row}] != 0)" if kind_of(t) == TRUTH else f"{v}[{row}]",
                            f"({n}[{row}] != 0)",
                        )
                        for (v, n), t in zip(arrays, types, strict=True)
                    ]
                    accumulator.take(given)
            result = accumulator.result()
            code = f"int({result.code})" if kind == TRUTH else result.code
            self.writer.line(f"{values}[{group}] = {code}")
            self.writer.line(f"{nulls}[{group}] = {truth(result.null)}")

        def value(at: str) -> Value:
            code = f"{values}[{at}]"
            return Value(f"({code} != 0)" if kind == TRUTH else code, f"({nulls}[{at}] != 0)")

        return value

    # ------------------------------------------------------------ statements

    def block(self, name: str, parameters: Sequence[Value], oldest: str = "") -> None:
        """Write the statements of a block for a tuple; ``oldest`` is the row of the oldest tuple if known."""
        self._parameters = list(parameters)
        statements = self.body.blocks[name]
        self._look_at_oldest(statements, oldest)
        for table in self.tables.values():
            if isinstance(table, SingleRow):
                table.is_there = name != "INITIALIZE" and is_always_there(table.table.name, self.body)
        asks = [
            any(isinstance(part, typed_nodes.SqlCode) for part in typed_nodes.walk(s)) for s in statements
        ]
        if any(asks[:1]):
            self.writer.line("sqlcode = 0")
        for statement, is_asked_about in zip(statements, [*asks, False][1:], strict=True):
            self._shared.texts.append(statement.text)
            self.writer.line(f"# {statement.text}")
            if self._shared.outside:
                self.writer.line(f"fail[1] = {len(self._shared.texts) - 1}")
            self._statements.write(statement, is_asked_about=is_asked_about)
        for table in self.tables.values():
            if isinstance(table, MultiRowTable):
                table.found.forget()  # the next block may be about another instance
        self._parameters = []
        self._oldest = {}

    def _look_at_oldest(self, statements: Sequence[typed_nodes.Statement], row: str) -> None:
        """Load the oldest tuple, which stays in the window until the end of the block."""
        parts = (part for part in typed_nodes.walk(statements) if isinstance(part, typed_nodes.Oldest))
        columns = dict.fromkeys(part.index for part in parts if _is_first(part))
        if self._is_steady and columns:
            if not row:
                row = self.writer.name("r")
                self.writer.line(f"{row} = {self.window.head}")
            self._oldest = {i: self.expressions.kept(self.window.column(row, i)) for i in columns}


def _is_first(part: typed_nodes.Oldest) -> bool:
    return isinstance(part.position, typed_nodes.Constant) and part.position.value == 1
