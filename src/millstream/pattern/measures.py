"""Aggregates of the tuples that an element takes: what an attempt keeps of them, and how they go on.

Conditions are asked about a measure that has the tuple already, which is taken only if they hold. So nothing
that is needed afterwards may change before: ``keep`` comes when that is decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from millstream.pattern.cells import Cell
from millstream.pattern.form import Measure
from millstream.types import Field, Type
from millstream.uda import checked
from millstream.uda.accumulators import ACCUMULATORS, Scalar
from millstream.uda.bodies import BodyCode, Shared
from millstream.uda.emitting import Value
from millstream.uda.failures import UnsupportedError
from millstream.uda.kinds import TRUTH, kind_of, zero
from millstream.uda.program import TableLayout
from millstream.uda.tables import ManyRows, Needs

if TYPE_CHECKING:
    from millstream.pattern.surroundings import PatternCode

Result = Callable[[], Value]
"""Writes what gives the value of a measure."""


class MeasureCode(ABC):
    """One measure, of the attempt whose number the name ``row`` has."""

    has_tables = False

    def __init__(self, number: int, measure: Measure, code: PatternCode) -> None:
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

    def cells(self) -> list[Cell] | None:
        """What an attempt keeps, if that is all in columns of its own."""
        return None

    def clear(self) -> None:  # noqa: B027 # most have nothing but columns of the attempt
        """The attempt is gone."""

    def _cell(self, part: int, type_: Type) -> Cell:
        return self._code.needs.attempt.cell(("measure", self._number, part), type_)

    def _arguments(self) -> list[Value]:
        expressions = self._code.expressions
        return [expressions.kept(expressions.value(a)) for a in self.measure.aggregation.arguments]


class ScalarMeasure(MeasureCode):
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

    def cells(self) -> list[Cell]:
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


class UserMeasure(MeasureCode):
    """An aggregate of the user's: an instance of it for each attempt, and what it has returned last.

    Where a tuple is not taken after all the star is complete, or the attempt is gone. So it does not matter
    that local tables have seen it.
    """

    has_tables = True

    def __init__(self, number: int, measure: Measure, code: PatternCode, shared: Shared) -> None:
        super().__init__(number, measure, code)
        assert measure.aggregation.user is not None
        self._type = measure.aggregation.type
        self._body = BodyCode(measure.aggregation.user, shared, "row", self._returned, crowded=True)
        self._now = Value("")

    def _returned(self, values: list[Value]) -> None:
        self._writer.lines(
            f"{self._now.code} = {values[0].code}", f"{self._now.null} = {values[0].null or False}"
        )

    def begin(self) -> Result:
        return self._block("INITIALIZE")

    def go_on(self) -> Result:
        return self._block("ITERATE")

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

    def kept(self) -> Value:
        return self._cell(0, self._type).at("row")

    def end(self, *, is_kept: bool) -> Result | None:
        if not self.measure.final or not self._body.body.terminate:
            return None
        if is_kept:
            before = self.kept()
            self._now = Value(self._writer.name("v"), self._writer.name("n"))
            self._writer.lines(f"{self._now.code} = {before.code}", f"{self._now.null} = {before.null}")
        self._body.block("TERMINATE", [])
        if is_kept:
            self.keep()
        return self._result

    def clear(self) -> None:
        self._body.clear()


class MovingMeasure(MeasureCode):
    """A window that moves inside a star: its tuples are kept, and looked at again with each that comes."""

    has_tables = True

    def __init__(self, number: int, measure: Measure, code: PatternCode, shared: Shared) -> None:
        super().__init__(number, measure, code)
        aggregation = measure.aggregation
        fields = tuple(Field(f"a{i}", a.type) for i, a in enumerate(aggregation.arguments))
        prefix = f"m{number}"
        shared.layouts[prefix] = TableLayout(f"window{number}", prefix, fields, False, bound=None)
        table = checked.Table(f"window{number}", fields)
        self._table = ManyRows(table, prefix, code.writer, "row", Needs(), grows=True, placed=False)
        self._now: list[Value] = []

    @property
    def _is_full(self) -> str:
        return f"{self._table.count} >= {self.measure.rows}"

    def begin(self) -> Result:
        return self._with_tuple(past=False)

    def go_on(self) -> Result:
        return self._with_tuple(past=True)

    def _with_tuple(self, *, past: bool) -> Result:
        accumulator = self._code.accumulator(self.measure.aggregation)
        self._now = self._arguments()
        accumulator.begin()
        if past:
            skipped = self._writer.name("m")
            self._writer.line(f"{skipped} = {self._is_full}")

            def each(row: str) -> None:
                with self._writer.deeper(f"if {skipped}:"):
                    self._writer.line(f"{skipped} = False")
                with self._writer.deeper("else:"):
                    accumulator.take(self._columns(row))

            self._table.scan(each)
        accumulator.take(self._now)
        value = self._code.expressions.kept(accumulator.result())
        return lambda: value

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
        accumulator = self._code.accumulator(self.measure.aggregation)
        accumulator.begin()
        self._table.scan(lambda row: accumulator.take(self._columns(row)))
        return accumulator.result()

    def clear(self) -> None:
        self._table.clear()


def measure_code(number: int, measure: Measure, code: PatternCode, shared: Shared) -> MeasureCode:
    """The way of a measure."""
    aggregation = measure.aggregation
    if aggregation.distinct:
        raise UnsupportedError(f"'{aggregation.name}' with DISTINCT in a pattern")
    if aggregation.user is None and aggregation.name not in ACCUMULATORS:
        raise UnsupportedError(f"'{aggregation.name}' of a pattern")
    if aggregation.filter is not None and (aggregation.user is not None or measure.rows is not None):
        raise UnsupportedError(f"'{aggregation.name}' with FILTER in a pattern")
    if measure.rows is not None:
        return MovingMeasure(number, measure, code, shared)
    return (
        ScalarMeasure(number, measure, code)
        if aggregation.user is None
        else UserMeasure(number, measure, code, shared)
    )
