"""Aggregates of the tuples of an element: their state in an attempt, and their updates.

Conditions read a measure that includes the tuple, which is taken only if they hold. So the state changes only
after that, in ``keep``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.udas.accumulator_emitters import ACCUMULATORS, Scalar
from millstream.ir.pattern import Measure
from millstream.ir.value_kinds import TRUTH, kind_of
from millstream.types import Type

if TYPE_CHECKING:
    from millstream.codegen.patterns.pattern_scope import PatternScope

Result = Callable[[], Value]
"""A function that emits the value of a measure."""


class MeasureEmitter(ABC):
    """One measure of the attempt ``row``."""

    has_tables = False

    def __init__(self, number: int, measure: Measure, code: PatternScope) -> None:
        self._number, self.measure, self._code = number, measure, code
        self._writer = code.writer

    @abstractmethod
    def begin(self) -> Result:
        """Emit the value with the first tuple of the element."""

    @abstractmethod
    def go_on(self) -> Result:
        """Emit the value with a further tuple."""

    @abstractmethod
    def keep(self) -> None:
        """Emit the storage of the value, after the tuple has been taken."""

    @abstractmethod
    def kept(self) -> Value:
        """Emit the stored value."""

    def end(self, *, is_kept: bool) -> Result | None:
        """Emit the end of the element; return another value if it has one then.

        The value so far is stored (``is_kept``), or in variables for an element with one tuple.
        """
        return None

    def cells(self) -> list[StateColumn] | None:
        """Return the state columns of the attempt, if there is no other state."""
        return None

    def clear(self) -> None:  # noqa: B027 # most have nothing but columns of the attempt
        """Emit the removal of state outside of the attempt's columns."""

    def _cell(self, part: int, type_: Type) -> StateColumn:
        return self._code.needs.attempt.cell(("measure", self._number, part), type_)

    def _arguments(self) -> list[Value]:
        expressions = self._code.expressions
        return [expressions.kept(expressions.value(a)) for a in self.measure.aggregation.arguments]

    def _counting(self) -> AbstractContextManager[None]:
        """Emit the test of FILTER around the body."""
        wanted = self.measure.aggregation.filter
        if wanted is None:
            return nullcontext()
        return self._writer.deeper(f"if {self._code.expressions.truth(wanted)}:")


class ScalarMeasure(MeasureEmitter):
    """A measure whose state is a few numbers."""

    def begin(self) -> Result:
        self._now = self._accumulator()
        self._now.begin()
        self._now.add()
        return self._now.result

    def go_on(self) -> Result:
        self._now = self._resumed()
        self._now.add()
        return self._now.result

    def keep(self) -> None:
        for cell, (value, _) in zip(self.cells(), self._now.state(), strict=True):
            if value.null:
                cell.put(self._writer, "row", value)
            else:
                code = f"int({value.code})" if kind_of(cell.type) == TRUTH else value.code
                self._writer.line(f"{cell.of('row')} = {code}")

    def kept(self) -> Value:
        return self._resumed().result()

    def cells(self) -> list[StateColumn]:
        return [self._cell(i, type_) for i, (_, type_) in enumerate(self._unwritten().state())]

    def _resumed(self) -> Scalar:
        accumulator = self._unwritten()
        for cell, (value, _) in zip(self.cells(), accumulator.state(), strict=True):
            kept = cell.at("row")
            self._writer.line(f"{value.code} = {kept.code}")
            if value.null:
                self._writer.line(f"{value.null} = {kept.null}")
        return accumulator

    def _unwritten(self) -> Scalar:
        """Return an accumulator with its variables, without the lines that initialize it."""
        length = self._writer.length
        accumulator = self._accumulator()
        accumulator.begin()
        self._writer.cut(length)
        return accumulator

    def _accumulator(self) -> Scalar:
        aggregation = self.measure.aggregation
        return ACCUMULATORS[aggregation.name](aggregation, self._code)
