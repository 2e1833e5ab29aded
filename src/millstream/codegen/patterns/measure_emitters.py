"""Aggregates of the tuples that an element takes: what an attempt keeps of them, and how they go on.

Conditions are asked about a measure that has the tuple already, which is taken only if they hold. So nothing
that is needed afterwards may change before: ``keep`` comes when that is decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.udas.accumulator_emitter import Scalar
from millstream.codegen.udas.compiled_aggregates import ACCUMULATORS
from millstream.ir.pattern import Measure
from millstream.ir.value_kinds import TRUTH, kind_of
from millstream.types import Type

if TYPE_CHECKING:
    from millstream.codegen.patterns.pattern_scope import PatternScope

Result = Callable[[], Value]
"""Writes what gives the value of a measure."""


class MeasureEmitter(ABC):
    """One measure, of the attempt whose number the name ``row`` has."""

    has_tables = False

    def __init__(self, number: int, measure: Measure, code: PatternScope) -> None:
        self._number, self.measure, self._code = number, measure, code
        self._writer = code.writer

    @abstractmethod
    def begin(self) -> Result:
        """The first tuple of the element comes."""

    @abstractmethod
    def go_on(self) -> Result:
        """A further one comes."""

    @abstractmethod
    def keep(self) -> None:
        """It is taken."""

    @abstractmethod
    def kept(self) -> Value:
        """The value that the attempt has."""

    def end(self, *, is_kept: bool) -> Result | None:
        """The element is complete; gives another value if that makes one.

        What has been so far is kept, or (of an element with one tuple) in names.
        """
        return None

    def cells(self) -> list[StateColumn] | None:
        """What an attempt keeps, if that is all in columns of its own."""
        return None

    def clear(self) -> None:  # noqa: B027 # most have nothing but columns of the attempt
        """The attempt is gone."""

    def _cell(self, part: int, type_: Type) -> StateColumn:
        return self._code.needs.attempt.cell(("measure", self._number, part), type_)

    def _arguments(self) -> list[Value]:
        expressions = self._code.expressions
        return [expressions.kept(expressions.value(a)) for a in self.measure.aggregation.arguments]

    def _counting(self) -> AbstractContextManager[None]:
        """What is written inside is done for tuples that the FILTER wants."""
        wanted = self.measure.aggregation.filter
        if wanted is None:
            return nullcontext()
        return self._writer.deeper(f"if {self._code.expressions.truth(wanted)}:")


class ScalarMeasure(MeasureEmitter):
    """One that a few numbers are enough for."""

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
        """An accumulator that has its names, without the lines that begin it."""
        length = self._writer.length
        accumulator = self._accumulator()
        accumulator.begin()
        self._writer.cut(length)
        return accumulator

    def _accumulator(self) -> Scalar:
        aggregation = self.measure.aggregation
        return ACCUMULATORS[aggregation.name](aggregation, self._code)
