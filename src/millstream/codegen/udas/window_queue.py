"""Windows whose tuples leave in the order in which they came, as generated source."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.udas.local_table_emitter import Consume
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.program.row_layout import META


class Queue(MultiRowTable):
    """Rows that leave in the order in which they came, and are found in no other way.

    What has left is what lies before the first row of its instance, so that nothing has to be noted of rows.
    Every tuple of a call adds one, and so its number follows from that of the tuple.
    """

    @property
    def _next_number(self) -> str:
        return f"{self.name('meta')}[{META['next_id']}]"

    def begin(self) -> None:
        """Write what precedes the first tuple of a call."""
        self._writer.line(f"numbered = {self._next_number}")

    def end_of_call(self) -> None:
        self._writer.line(f"{self._next_number} = numbered + count")

    def insert(self, values: Sequence[Value], place: str = "") -> None:
        row = self._writer.name("r")
        arrays = ", ".join(map(self.name, ("meta", "owner", "place", "head", "tail", "count", "next")))
        self._writer.line(f"{row} = new_in_queue({self.instance}, {place}, {arrays})")
        self._fill(row, values)

    def _fill(self, row: str, values: Sequence[Value]) -> None:
        self._writer.line(f"{self.name('id')}[{row}] = numbered + i")
        for index, value in enumerate(values):
            self._store(row, index, value)
        for index in range(len(self.table.fields)):
            self._count(row, index, "+")

    def leave(self, row: str) -> None:
        for index in range(len(self.table.fields)):
            self._count(row, index, "-")
        names = ("meta", "head", "tail", "count", "next")
        self._writer.line(f"leave_queue({row}, {self.instance}, {', '.join(map(self.name, names))})")

    def clear(self) -> None:
        for name in ("head", "tail"):
            self._writer.line(f"{self.name(name)}[{self.instance}] = -1")
        self._writer.line(f"{self.name('count')}[{self.instance}] = 0")
        self._count_none()

    def _count_none(self) -> None:
        for index in self.needs.counted:
            self._writer.line(f"{self.name(f'known{index}')}[{self.instance}] = 0")


class Ring(Queue):
    """A window of so many rows. Once it is full, one leaves for each that comes and takes its place.

    So the rows that there are follow from the place of the tuple, and where it is written is in the
    processor's cache. Which are the first and the last is in variables while the instance is at hand.
    """

    @property
    def head(self) -> str:
        return f"{self.prefix}_first"

    @property
    def _tail(self) -> str:
        return f"{self.prefix}_last"

    def hold(self) -> None:
        for variable, array in ((self.head, "head"), (self._tail, "tail")):
            self._writer.line(f"{variable} = {self.name(array)}[{self.instance}]")

    def let_go(self) -> None:
        for variable, array in ((self.head, "head"), (self._tail, "tail")):
            self._writer.line(f"{self.name(array)}[{self.instance}] = {variable}")

    def expire(self, leaving: Consume) -> None:
        writer = self._writer
        writer.line("row = -1")
        with writer.deeper("if place > reach:"):
            writer.lines("mark = out", f"row = {self.head}")
            leaving("row")
            self.leave("row")
            writer.line("out = mark")

    def insert(self, values: Sequence[Value], place: str = "") -> None:
        writer, following = self._writer, self.name("next")
        with writer.deeper("if row < 0:"):
            writer.line(f"row = take_row({self.name('meta')}, {following})")
            writer.line(f"{self.name('owner')}[row] = {self.instance}")
        with writer.deeper(f"if {self.head} < 0:"):
            writer.line(f"{self.head} = row")
        with writer.deeper("else:"):
            writer.line(f"{following}[{self._tail}] = row")
        writer.lines(f"{self._tail} = row", f"{following}[row] = -1")
        self._fill("row", values)

    def leave(self, row: str) -> None:
        for index in range(len(self.table.fields)):
            self._count(row, index, "-")
        self._writer.line(f"{self.head} = {self.name('next')}[{row}]")

    def clear(self) -> None:
        self._writer.lines(f"{self.head} = -1", f"{self._tail} = -1")
        self._count_none()

    @property
    def count(self) -> str:
        return "(min(place, reach) + 1)"
