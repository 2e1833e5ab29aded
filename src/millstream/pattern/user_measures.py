"""Measures with rows of their own: aggregates of the user's, and windows that move inside a star."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.pattern.form import Measure
from millstream.pattern.measures import MeasureCode, Result, ScalarMeasure
from millstream.types import BIGINT, Field
from millstream.uda import checked
from millstream.uda.accumulators import ACCUMULATORS, Accumulator, User
from millstream.uda.bodies import BodyCode, Shared
from millstream.uda.compiler import with_window
from millstream.uda.emitting import Value
from millstream.uda.failures import UnsupportedError
from millstream.uda.kinds import kind_of, zero
from millstream.uda.program import TableLayout
from millstream.uda.tables import ManyRows, Needs

if TYPE_CHECKING:
    from millstream.pattern.surroundings import PatternCode


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
        body = measure.aggregation.user
        body = with_window(body) if measure.rows is not None else body
        self._body = BodyCode(body, shared, "row", self._returned, crowded=True)
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
        self._now = Value(writer.name("v"), writer.name("n"))  # what EXPIRE returns is not heard
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
        """Where the last tuple is in the star."""
        return self._cell(1, BIGINT).of("row")


class _OfLastTuple(User):
    """Of what the tuples of a window return, only the last one's counts."""

    def take(self, arguments: list[Value]) -> None:
        self._writer.lines(f"{self._name} = {zero(kind_of(self.aggregate.type))}", f"{self._null} = True")
        super().take(arguments)


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
        accumulator = self._accumulator()
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

    def _accumulator(self) -> Accumulator:
        aggregation = self.measure.aggregation
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
    if measure.rows is not None and aggregation.user is not None and aggregation.user.window:
        return WindowMeasure(number, measure, code, shared)
    if measure.rows is not None:
        return MovingMeasure(number, measure, code, shared)
    return (
        ScalarMeasure(number, measure, code)
        if aggregation.user is None
        else UserMeasure(number, measure, code, shared)
    )
