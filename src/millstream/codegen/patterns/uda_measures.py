"""Measures that are aggregates of the user's: each attempt has an instance with tables of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.patterns.measure_emitters import MeasureEmitter, Result
from millstream.codegen.udas.body_emitter import BodyEmitter, ProgramContext
from millstream.codegen.udas.uda_compiler import with_window
from millstream.ir.pattern import Measure
from millstream.ir.value_kinds import kind_of, zero
from millstream.types import BIGINT

if TYPE_CHECKING:
    from millstream.codegen.patterns.pattern_scope import PatternScope


class UserMeasure(MeasureEmitter):
    """A user-defined aggregate: an instance for each attempt, and its last result.

    If a tuple is not taken, the star is complete or the attempt has failed. So its traces in local tables do
    not matter.
    """

    has_tables = True

    def __init__(self, number: int, measure: Measure, code: PatternScope, shared: ProgramContext) -> None:
        super().__init__(number, measure, code)
        assert measure.aggregation.user is not None
        self._type = measure.aggregation.type
        body = measure.aggregation.user
        body = with_window(body) if measure.rows is not None else body
        self._body = BodyEmitter(body, shared, "row", self._returned, crowded=True)
        self._now, self._seen = Value(""), ""

    def _returned(self, values: list[Value]) -> None:
        value = values[self.measure.aggregation.column]
        self._writer.lines(f"{self._now.code} = {value.code}", f"{self._now.null} = {value.null or False}")

    def begin(self) -> Result:
        return self._block("INITIALIZE") if self.measure.aggregation.filter is None else self._filtered(None)

    def go_on(self) -> Result:
        if self.measure.aggregation.filter is None:
            return self._block("ITERATE")
        return self._filtered(self._seen_cell)

    def _filtered(self, seen: StateColumn | None) -> Result:
        """Emit the update under FILTER; tuples that fail it change nothing."""
        writer = self._writer
        before = Value(zero(kind_of(self._type)), "True") if seen is None else self.kept()
        self._now, self._seen = Value(writer.name("v"), writer.name("n")), writer.name("m")
        writer.lines(f"{self._now.code} = {before.code}", f"{self._now.null} = {before.null}")
        writer.line(f"{self._seen} = {'0' if seen is None else seen.of('row')}")
        with self._counting():
            arguments = self._arguments()
            writer.lines(f"{self._now.code} = {zero(kind_of(self._type))}", f"{self._now.null} = True")
            with writer.deeper(f"if {self._seen} == 0:"):
                writer.line(f"{self._seen} = 1")
                self._body.block("INITIALIZE", arguments)
            if seen is not None:
                with writer.deeper("else:"):
                    self._body.block("ITERATE", arguments)
        return self._result

    @property
    def _seen_cell(self) -> StateColumn:
        """The column that marks that a tuple has passed FILTER."""
        return self._cell(1, BIGINT)

    def _block(self, name: str) -> Result:
        arguments = self._arguments()
        self._now = Value(self._writer.name("v"), self._writer.name("n"))
        self._writer.lines(f"{self._now.code} = {zero(kind_of(self._type))}", f"{self._now.null} = True")
        self._body.block(name, arguments)
        return self._result

    def _result(self) -> Value:
        return self._now

    def keep(self) -> None:
        self._cell(0, self._type).put(self._writer, "row", self._now)
        if self.measure.aggregation.filter is not None:
            self._writer.line(f"{self._seen_cell.of('row')} = {self._seen}")

    def kept(self) -> Value:
        return self._cell(0, self._type).at("row")

    def end(self, *, is_kept: bool) -> Result | None:
        if not self.measure.final or not self._body.body.terminate:
            return None
        if is_kept:
            before = self.kept()
            self._now = Value(self._writer.name("v"), self._writer.name("n"))
            self._writer.lines(f"{self._now.code} = {before.code}", f"{self._now.null} = {before.null}")
        if self.measure.aggregation.filter is None:
            self._body.block("TERMINATE", [])
        else:
            if is_kept:
                self._seen = self._seen_cell.of("row")
            with self._writer.deeper(f"if {self._seen} != 0:"):
                self._body.block("TERMINATE", [])
        if is_kept:
            self._cell(0, self._type).put(self._writer, "row", self._now)
        return self._result

    def clear(self) -> None:
        self._body.clear()


class WindowMeasure(UserMeasure):
    """The window version of an aggregate of the user's, over the last tuples of a star."""

    def begin(self) -> Result:
        self._body.window.insert(self._arguments(), "0")
        self._writer.line(f"{self._place} = 0")
        return super().begin()

    def go_on(self) -> Result:
        assert self.measure.rows is not None
        writer, table, place = self._writer, self._body.window, self._writer.name("x")
        writer.line(f"{place} = {self._place} + 1")
        self._now = Value(writer.name("v"), writer.name("n"))  # results of EXPIRE are discarded
        oldest = writer.name("r")
        writer.line(f"{oldest} = {table.name('head')}[row]")
        bound = f"{place} - {self.measure.rows - 1}"
        with writer.deeper(f"while {oldest} >= 0 and {table.name('place')}[{oldest}] < {bound}:"):
            self._body.block("EXPIRE", [])
            table.leave(oldest)
            writer.line(f"{oldest} = {table.name('head')}[row]")
        writer.line(f"{self._place} = {place}")
        if self.measure.rows == 1:
            # All that was in the window has left, and the instance with it.
            self._body.clear()
        table.insert(self._arguments(), place)
        return self._block("INITIALIZE" if self.measure.rows == 1 else "ITERATE")

    @property
    def _place(self) -> str:
        """The place of the last tuple in the star."""
        return self._cell(1, BIGINT).of("row")
