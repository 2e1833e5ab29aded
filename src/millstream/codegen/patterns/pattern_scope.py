"""Scope of a pattern's expressions: the tuples and measures of an attempt at an element."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import AttemptRequirements, StateColumn
from millstream.codegen.patterns.measure_emitters import Result
from millstream.codegen.patterns.measure_selection import measure_code
from millstream.codegen.udas.body_emitter import BodyEmitter, ProgramContext
from millstream.ir import typed_nodes
from millstream.ir.pattern import End, Pattern
from millstream.ir.typed_nodes import Expr

ASKED = "asked"
"""The column of a partition with the number of evaluations, if they are counted."""


class ElementPhase(Enum):
    """Phases of an element in an attempt."""

    ASKED = "asked"
    """Conditions are evaluated for all attempts at once; scan numbers are distances back."""

    BEGUN = "begun"
    """The tuple is offered as its first."""

    GOING_ON = "going on"
    """The tuple is offered as a further one of its star."""

    COMPLETE = "complete"
    """Its star ended with the previous tuple."""


@dataclass(frozen=True)
class Moment:
    doing: ElementPhase
    element: int = -1
    row: str = ""
    """The variable with the number of the attempt."""


class PatternScope(BodyEmitter):
    """The scope of conditions, of arguments of measures, and of results."""

    def __init__(
        self,
        pattern: Pattern,
        shared: ProgramContext,
        needs: AttemptRequirements,
        name: str,
        *,
        counted: bool = False,
    ) -> None:
        super().__init__(
            typed_nodes.Body(name, False, (), pattern.returns, (), (), ()), shared, "k", lambda _: None
        )
        self.pattern, self.needs, self.is_counted = pattern, needs, counted
        self._moment = Moment(ElementPhase.ASKED)
        self._live: dict[int, Result] = {}
        """Measures whose current values are in variables, and not in the attempt."""

        self.measures = [measure_code(m, one, self, shared) for m, one in enumerate(pattern.measures)]

    @contextmanager
    def at(self, phase: ElementPhase, element: int = -1, row: str = "") -> Iterator[None]:
        before = self._moment, self._live
        self._moment, self._live = Moment(phase, element, row), {}
        yield
        self._moment, self._live = before

    # ------------------------------------------------------------ tuples

    def column(self, column: typed_nodes.Column) -> Value:
        moment = self._moment
        if moment.doing is ElementPhase.ASKED:
            return self.now(column.index, column.scan)
        place = self.pattern.places[column.scan]
        star = self.pattern.elements[place.element].star
        is_first = star and place.end is End.FIRST
        if place.element == moment.element:
            if moment.doing is ElementPhase.BEGUN or (moment.doing is ElementPhase.GOING_ON and not is_first):
                return self.now(column.index, place.back)
            if moment.doing is ElementPhase.COMPLETE and not is_first:
                return self.before(column.index, place.back + 1)
        return self.tuple_cell(place.element, is_first, column.index, place.back).at(moment.row)

    def now(self, index: int, back: int) -> Value:
        """Return a column of the current tuple, or of one before it."""
        if back:
            return self.before(index, back)
        number = self.needs.column(index)
        return Value(f"a{number}", f"z{number}")

    def before(self, index: int, back: int) -> Value:
        """Return a column of an earlier tuple of the partition."""
        self.needs.column(index)
        self.needs.back[index] = max(self.needs.back.get(index, 0), back)
        return self.history(index, back).at("k")

    def history(self, index: int, back: int) -> StateColumn:
        return self.needs.partition.cell(("back", index, back), self.pattern.fields[index].type)

    def tuple_cell(self, element: int, first: bool, index: int, back: int) -> StateColumn:
        """Return the state column with a column of the first or the last tuple of an element."""
        what = ("first" if first else "last", element, index, back)
        return self.needs.attempt.cell(what, self.pattern.fields[index].type)

    def keep_tuple(self, element: int, row: str, *, first: bool) -> None:
        """Emit the storage of the first or the last tuple of an element, as far as it is read later."""
        name = "first" if first else "last"
        for what in list(self.needs.attempt.fields):
            match what:
                case (str(known), int(owner), int(index), int(back)) if (known, owner) == (name, element):
                    complete = self._moment.doing is ElementPhase.COMPLETE
                    value = self.before(index, back + 1) if complete else self.now(index, back)
                    self.tuple_cell(element, first, index, back).put(self.writer, row, value)

    # ------------------------------------------------------------ measures

    def grouped(self, index: int) -> Value:
        live = self._live.get(index)
        return self.expressions.kept(live() if live is not None else self.measures[index].kept())

    def measures_of(self, element: int) -> list[int]:
        return [m for m, measure in enumerate(self.pattern.measures) if measure.element == element]

    def begin_measure(self, index: int) -> None:
        self._live[index] = self.measures[index].begin()

    def go_on_with_measure(self, index: int) -> None:
        self._live[index] = self.measures[index].go_on()

    def end_measures(self, element: int) -> None:
        for index in self.measures_of(element):
            value = self.measures[index].end(is_kept=self._moment.doing is ElementPhase.COMPLETE)
            if value is not None:
                self._live[index] = value

    # ------------------------------------------------------------ questions

    def count(self, conditions: Collection[Expr]) -> None:
        """Emit the count of one evaluation of these conditions together."""
        if self.is_counted and conditions:
            self.writer.line(f"{self.needs.partition.cell(ASKED).of('k')} += 1")

    # ------------------------------------------------------------ failures

    def about(self, text: str) -> None:
        """Name the part of the pattern that the following source evaluates."""
        self._shared.texts.append(text)
        self.writer.line(f"# {text}")
        if self._shared.outside:
            self.writer.line(f"fail[1] = {len(self._shared.texts) - 1}")
