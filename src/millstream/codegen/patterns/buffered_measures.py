"""Measures with a buffer of tuples: windows inside a star, and aggregates that need all values."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.patterns.measure_emitters import MeasureEmitter, Result
from millstream.codegen.udas.accumulator_emitters import ACCUMULATORS, Accumulator, CalledUda
from millstream.codegen.udas.body_emitter import BodyEmitter, ProgramContext
from millstream.codegen.udas.local_table_emitter import TableRequirements
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.ir import typed_nodes
from millstream.ir.pattern import Measure
from millstream.ir.value_kinds import kind_of, zero
from millstream.program.content_aggregate import ContentAggregate
from millstream.program.program import InterpretedCall, TableLayout
from millstream.types import BOOLEAN, Field

if TYPE_CHECKING:
    from millstream.codegen.patterns.pattern_scope import PatternScope


class _Listed(Accumulator):
    """Makes a list of the values, and lets a function compute the result that is not compiled."""

    takes_any_order = False

    def __init__(self, content: ContentAggregate, body: BodyEmitter) -> None:
        super().__init__(content, body)
        types = tuple(argument.type for argument in content.arguments)
        call = InterpretedCall(content.name, types, content.type, replace(content, arguments=()))
        self._function = body.called_outside(call)

    def begin(self) -> None:
        self._name = self._writer.name("v")
        self._writer.line(f"{self._name} = []")

    def take(self, arguments: list[Value]) -> None:
        given = ", ".join(f"{value.code}, {value.null or False}" for value in arguments)
        self._writer.line(f"{self._name}.append(({given}))")

    def result(self) -> Value:
        value, null = self._writer.name("v"), self._writer.name("n")
        self._writer.line(f"{value}, {null} = {self._function}({self._name})")
        return Value(value, null)


class _OfLastTuple(CalledUda):
    """The result of the last tuple of a window; the results of the others are discarded."""

    def take(self, arguments: list[Value]) -> None:
        self._writer.lines(f"{self._name} = {zero(kind_of(self.aggregate.type))}", f"{self._null} = True")
        super().take(arguments)


class MovingMeasure(MeasureEmitter):
    """A window that moves inside a star: its tuples are kept, and looked at again with each that comes."""

    has_tables = True

    def __init__(self, number: int, measure: Measure, code: PatternScope, shared: ProgramContext) -> None:
        super().__init__(number, measure, code)
        types = [argument.type for argument in measure.aggregation.arguments]
        types += [BOOLEAN] if self._is_filtered else []
        fields = tuple(Field(f"a{i}", type_) for i, type_ in enumerate(types))
        prefix = f"m{number}"
        shared.layouts[prefix] = TableLayout(f"window{number}", prefix, fields, False, bound=None)
        table = typed_nodes.Table(f"window{number}", fields)
        needs = TableRequirements(nullable=set(range(len(fields))))
        self._table = MultiRowTable(table, prefix, code.writer, "row", needs, grows=True, placed=False)
        self._now: list[Value] = []
        self._ended: Value | None = None

    @property
    def _is_filtered(self) -> bool:
        return self.measure.aggregation.filter is not None

    @property
    def _is_full(self) -> str:
        return "False" if self.measure.rows is None else f"{self._table.count} >= {self.measure.rows}"

    def begin(self) -> Result:
        return self._with_tuple(past=False)

    def go_on(self) -> Result:
        return self._with_tuple(past=True)

    def _with_tuple(self, *, past: bool) -> Result:
        accumulator = self._accumulator()
        self._now = self._values()
        accumulator.begin()
        if past:
            skipped = self._writer.name("m")
            self._writer.line(f"{skipped} = {self._is_full}")

            def each(row: str) -> None:
                with self._writer.deeper(f"if {skipped}:"):
                    self._writer.line(f"{skipped} = False")
                with self._writer.deeper("else:"):
                    self._take(accumulator, self._columns(row))

            self._table.scan(each)
        self._take(accumulator, self._now)
        value = self._code.expressions.kept(accumulator.result())
        return lambda: value

    def _values(self) -> list[Value]:
        """Return the arguments of the tuple; with FILTER also its outcome, and NULLs where it fails."""
        if not self._is_filtered:
            return self._arguments()
        types = [argument.type for argument in self.measure.aggregation.arguments]
        values = [Value(self._writer.name("v"), self._writer.name("n")) for _ in types]
        counts = self._writer.name("m")
        for value, type_ in zip(values, types, strict=True):
            self._writer.lines(f"{value.code} = {zero(kind_of(type_))}", f"{value.null} = True")
        self._writer.line(f"{counts} = False")
        with self._counting():
            for value, now in zip(values, self._arguments(), strict=True):
                self._writer.lines(f"{value.code} = {now.code}", f"{value.null} = {now.null or False}")
            self._writer.line(f"{counts} = True")
        return [*values, Value(counts)]

    def _take(self, accumulator: Accumulator, values: list[Value]) -> None:
        if not self._is_filtered:
            accumulator.take(values)
            return
        *arguments, counts = values
        with self._writer.deeper(f"if {counts.code}:"):
            accumulator.take(arguments)

    def _accumulator(self) -> Accumulator:
        aggregation = self.measure.aggregation
        if isinstance(aggregation, ContentAggregate):
            return _Listed(aggregation, self._code)
        if aggregation.user is not None:
            return _OfLastTuple(aggregation, self._code)
        return ACCUMULATORS[aggregation.name](aggregation, self._code)

    def _columns(self, row: str) -> list[Value]:
        given = [self._table.column(row, i) for i in range(len(self._table.table.fields))]
        return [self._code.expressions.kept(value) for value in given]

    def keep(self) -> None:
        with self._writer.deeper(f"if {self._is_full}:"):
            oldest = self._writer.name("r")
            self._writer.line(f"{oldest} = {self._table.name('head')}[row]")
            self._table.remove(oldest)
        self._table.insert(self._now)

    def kept(self) -> Value:
        accumulator = self._accumulator()
        accumulator.begin()
        self._table.scan(lambda row: self._take(accumulator, self._columns(row)))
        return accumulator.result()

    def clear(self) -> None:
        self._table.clear()


class WholeMeasure(MovingMeasure):
    """A final one that needs all values of a star: when that is complete, only the result is kept."""

    def begin(self) -> Result:
        self._now, self._ended = self._values(), None
        return self._of_now

    def go_on(self) -> Result:
        return self.begin()

    def _of_now(self) -> Value:
        raise AssertionError("the value is read only after the star is complete")

    def keep(self) -> None:
        if self._ended is None:
            with self._writer.deeper(f"if {self._now[-1].code}:") if self._is_filtered else nullcontext():
                self._table.insert(self._now)
        else:
            self._result_cell.put(self._writer, "row", self._ended)

    def end(self, *, is_kept: bool) -> Result:
        accumulator = self._accumulator()
        accumulator.begin()
        if is_kept:
            self._table.scan(lambda row: self._take(accumulator, self._columns(row)))
            self._table.clear()
        else:
            self._take(accumulator, self._now)
        value = self._code.expressions.kept(accumulator.result())
        if is_kept:
            self._result_cell.put(self._writer, "row", value)
        else:
            self._ended = value
        return lambda: value

    def kept(self) -> Value:
        return self._result_cell.at("row")

    @property
    def _result_cell(self) -> StateColumn:
        return self._cell(0, self.measure.aggregation.type)
