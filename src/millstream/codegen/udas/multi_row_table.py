"""Tables of several rows as generated source: how rows are found, added, changed and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from millstream.codegen.core.array_binding import larger
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import Value, is_simple
from millstream.codegen.udas.local_table_emitter import Consume, LocalTableEmitter, TableRequirements
from millstream.ir.typed_nodes import Table
from millstream.ir.value_kinds import DOUBLE, TRUTH, kind_of
from millstream.program.program import TableLayout
from millstream.program.row_layout import ENDS, META, NODE


@dataclass(frozen=True)
class LookupKey:
    """Key of a lookup in a table: values of columns."""

    table: str
    columns: tuple[int, ...]
    values: tuple[Value, ...]

    @property
    def can_be_known(self) -> bool:
        """True if the values stay what they are where they are written again."""
        return all(is_simple(value.code) for value in self.values)

    def is_in(self, row: Sequence[Value]) -> bool:
        """Tell whether a row surely has these values, or NULLs."""
        return all(row[c].code == v.code for c, v in zip(self.columns, self.values, strict=True))

    def is_apart_from(self, row: Sequence[Value]) -> bool:
        """Tell whether a row surely has others."""
        pairs = ((row[c].code, v.code) for c, v in zip(self.columns, self.values, strict=True))
        return any(a.isdigit() and b.isdigit() and int(a) != int(b) for a, b in pairs)


class LookupCache:
    """The names that have rows of one table, by what was looked for. They hold until the table changes."""

    def __init__(self, table: str, writer: SourceWriter) -> None:
        self._table, self._writer = table, writer

    def recall(self, key: LookupKey) -> str | None:
        name: str | None = self._writer.recall(key)
        return name

    def remember(self, key: LookupKey, name: str) -> None:
        if key.can_be_known:
            self._writer.remember(key, name)

    def __iter__(self) -> Iterator[tuple[LookupKey, str]]:
        return iter([pair for pair in self._writer.remembered(LookupKey) if pair[0].table == self._table])

    def forget(self, *columns: int) -> None:
        """Forget lookups by columns that have changed, or (without any) all of them."""
        for sought, _ in self:
            if not columns or set(columns) & set(sought.columns):
                self._writer.forget(sought)


@dataclass(frozen=True)
class RowIteration:
    """Iteration over rows: texts with a hole for the row, -1 at the end."""

    first: str
    next: str

    def following(self, row: str) -> str:
        return self.next.replace("{row}", row)


class MultiRowTable(LocalTableEmitter):
    """Rows of all instances in the same arrays, those of an instance linked in order."""

    def __init__(
        self,
        table: Table,
        prefix: str,
        writer: SourceWriter,
        instance: str,
        needs: TableRequirements,
        *,
        grows: bool,
        placed: bool,
        passing: bool = False,
        key: frozenset[int] | None = None,
    ) -> None:
        super().__init__(table, prefix, writer, instance, needs)
        self._grows, self._placed, self._passing, self._key = grows, placed, passing, key
        self.found = LookupCache(prefix, writer)

    def scan(self, consume: Consume, stop: str = "") -> None:
        way, row, after = self.order(), self._writer.name("r"), self._writer.name("s")
        self._writer.line(f"{row} = {way.first}")
        more = f" and not {stop}" if stop else ""
        with self._writer.deeper(f"while {row} >= 0{more}:"):
            self._writer.line(f"{after} = {way.following(row)}")
            consume(row)
            self._writer.line(f"{row} = {after}")

    def tells_apart(self, columns: tuple[int, ...]) -> bool:
        """Tell whether no two rows have the same values in the columns."""
        return self._key is not None and self._key <= set(columns)

    def probe(self, columns: tuple[int, ...], values: Sequence[Value], consume: Consume, stop: str) -> None:
        """Write a loop over the rows whose columns may equal the values; the consumer compares them.

        If these tell rows apart there is no loop, and nothing to look at.
        """
        first = self.find(columns, values)
        if self.tells_apart(columns):
            with self._writer.deeper(f"if {first} >= 0:"):
                consume(first)
            return
        way, row = self.chain(columns, values), self._writer.name("r")
        self._writer.line(f"{row} = {first}")
        with self._writer.deeper(f"while {row} >= 0:"):
            consume(row)
            if stop:
                with self._writer.deeper(f"if {stop}:"):
                    self._writer.line("break")
            self._writer.line(f"{row} = {way.following(row)}")

    def find(self, columns: tuple[int, ...], values: Sequence[Value]) -> str:
        """Return the name that has the first row whose columns may equal the values, -1 if there is none.

        If these tell rows apart it is the one that does.
        """
        sought = LookupKey(self.prefix, columns, tuple(values))
        known = self.found.recall(sought)
        if known is not None:
            return known
        writer, row = self._writer, self._writer.name("f")
        nulls = [f"not {value.null}" for value in values if value.null]
        way = self.chain(columns, values)
        if nulls:
            writer.line(f"{row} = -1")
        with writer.deeper(f"if {' and '.join(nulls)}:") if nulls else nullcontext():
            writer.line(f"{row} = {way.first}")
            if self.tells_apart(columns):
                equal = [self._equals(row, c, value.code) for c, value in zip(columns, values, strict=True)]
                with writer.deeper(f"while {row} >= 0 and not ({' and '.join(equal)}):"):
                    writer.line(f"{row} = {way.following(row)}")
        self.found.remember(sought, row)
        return row

    def _equals(self, row: str, index: int, value: str) -> str:
        own = self.column(row, index).code
        is_double = kind_of(self.table.fields[index].type) == DOUBLE
        return f"f_equal({own}, {value})" if is_double else f"{own} == {value}"

    def order(self) -> RowIteration:
        """Iterate in the order of insertion."""
        return RowIteration(self.head, f"{self.name('next')}[{{row}}]")

    @property
    def head(self) -> str:
        """The first row, -1 if there is none."""
        return f"{self.name('head')}[{self.instance}]"

    def chain(self, columns: tuple[int, ...], values: Sequence[Value]) -> RowIteration:
        """Iterate over the rows whose columns may equal the values."""
        index = self.needs.hash(columns)
        code = self._code(columns, values)
        heads, chain = self.name(f"heads{index}"), self.name(f"chain{index}")
        return RowIteration(
            f"chain_first({code}, {self.instance}, {heads}, {chain})",
            f"chain_next({{row}}, {code}, {self.instance}, {chain})",
        )

    def walk(self, column: int, ascending: bool, consume: Callable[[str, str], None], stop: str) -> None:
        """Write a loop along the order of a column; the consumer sets a name to end it."""
        row, after, over = (self._writer.name(prefix) for prefix in ("r", "s", "e"))
        nodes, side = self.name(f"nodes{self.needs.tree(column)}"), NODE["right" if ascending else "left"]
        self._writer.line(f"{row} = {self._end(column, ascending)}")
        self._writer.line(f"{over} = False")
        more = f" and not {stop}" if stop else ""
        with self._writer.deeper(f"while {row} >= 0 and not {over}{more}:"):
            self._writer.line(f"{after} = tree_beside({row}, {side}, {nodes})")
            consume(row, over)
            self._writer.line(f"{row} = {after}")

    def end(self, column: int, ascending: bool) -> str:
        """Return the row with the least or the greatest value of a column, -1 if there is none."""
        name = self._writer.name("r")
        self._writer.line(f"{name} = {self._end(column, ascending)}")
        return name

    def _end(self, column: int, ascending: bool) -> str:
        ends = self.name(f"ends{self.needs.tree(column)}")
        return f"{ends}[{len(ENDS)} * {self.instance} + {ENDS['first' if ascending else 'last']}]"

    # ------------------------------------------------------------ changes

    def insert(self, values: Sequence[Value], place: str = "") -> None:
        writer = self._writer
        if self._grows:
            self._grow()
        row = writer.name("r")
        names = ("meta", "id", "owner", "head", "tail", "count", "next", "prev")
        writer.line(f"{row} = new_row({self.instance}, {', '.join(map(self.name, names))})")
        for index, value in enumerate(values):
            self._store(row, index, value)
        if place:
            writer.line(f"{self.name('place')}[{row}] = {place}")
        self._touch(row)
        self._enter(row, values)

    def _enter(self, row: str, values: Sequence[Value]) -> None:
        """Enter a row into the indexes of those columns that are not NULL."""
        entries: dict[tuple[str, ...], list[Callable[[], None]]] = {}

        def enter(columns: tuple[int, ...], entry: Callable[..., None], *given: Any) -> None:
            nulls = (values[c].null for c in columns if c in self.needs.nullable)
            known = tuple(sorted({f"not {null}" for null in nulls if null not in ("", "False")}))
            entries.setdefault(known, []).append(partial(entry, *given))

        for index in self.needs.counted:
            enter((index,), self._count_one, index, "+")
        for number, columns in enumerate(self.needs.hashes):
            enter(columns, self._add_to_hash, row, number, values)
        for number, index in enumerate(self.needs.ordered):
            enter((index,), self._change_tree, "tree_add", row, number, f"c{index}", "id")
        for sought, name in self.found:
            if sought.is_in(values):
                enter(sought.columns, self._find_one, name, row)
            elif not sought.is_apart_from(values):
                self.found.forget(*sought.columns)
        for known, own in entries.items():
            with self._writer.deeper(f"if {' and '.join(known)}:") if known else nullcontext():
                for entry in own:
                    entry()

    def _find_one(self, name: str, row: str) -> None:
        """Remember a new row for cached lookups that had no row."""
        with self._writer.deeper(f"if {name} < 0:"):
            self._writer.line(f"{name} = {row}")

    def expire(self, leaving: Consume) -> None:
        """Remove the tuples of a window before the bound; ``leaving`` writes what is done before."""
        writer = self._writer
        writer.lines("mark = out", f"row = {self.head}")
        with writer.deeper(f"while row >= 0 and {self.name('place')}[row] < bound:"):
            leaving("row")
            self.leave("row")
            writer.lines("out = mark", f"row = {self.head}")

    def leave(self, row: str) -> None:
        """Remove the first row, unless the body has deleted it."""
        with self._writer.deeper(f"if {self.head} == {row}:"):
            self.remove(row)

    def _grow(self) -> None:
        meta = self.name("meta")
        changed = (array for array in self.layout().arrays() if array.per in ("row", "bucket"))
        arrays = {self.name(array.name): array.dtype for array in changed}
        size, free, room = (f"{meta}[{META[name]}]" for name in ("size", "free", "room"))
        with self._writer.deeper(f"if {free} < 0 and {size} == {room}:"):
            self._writer.lines(*larger(arrays))

    def layout(self) -> TableLayout:
        return TableLayout(
            self.table.name,
            self.prefix,
            self.table.fields,
            False,
            tuple(self.needs.hashes),
            tuple(self.needs.ordered),
            tuple(self.needs.counted),
            None,
            self._placed,
            self._passing,
            certain=self.needs.certain(len(self.table.fields)),
        )

    def assign(self, row: str, values: dict[int, Value]) -> None:
        hashes = [n for n, columns in enumerate(self.needs.hashes) if set(columns) & set(values)]
        trees = [n for n, column in enumerate(self.needs.ordered) if column in values]
        self.found.forget(*values)
        for number in hashes:
            self._remove_from_hash(row, number)
        for number in trees:
            self._remove_from_tree(row, number)
        for index, value in values.items():
            self._count(row, index, "-")
            self._store(row, index, value)
            self._count(row, index, "+")
        self._touch(row)
        for number in hashes:
            with self._known(row, *self.needs.hashes[number]):
                self._add_to_hash(row, number)
        for number in trees:
            column = self.needs.ordered[number]
            with self._known(row, column):
                self._change_tree("tree_add", row, number, f"c{column}", "id")

    def remove(self, row: str) -> None:
        self.found.forget()
        for number in range(len(self.needs.hashes)):
            self._remove_from_hash(row, number)
        for number in range(len(self.needs.ordered)):
            self._remove_from_tree(row, number)
        for index in range(len(self.table.fields)):
            self._count(row, index, "-")
        names = ("meta", "id", "mark", "gone", "head", "tail", "count", "next", "prev")
        links = ", ".join(self.name(n) for n in names)
        self._writer.line(f"drop_row({row}, {self.instance}, {links})")

    def clear(self) -> None:
        self.scan(self.remove)

    def _touch(self, row: str) -> None:
        if not self._passing:
            names = ", ".join(self.name(n) for n in ("meta", "mark", "touched"))
            self._writer.line(f"touch_row({row}, {names})")

    def _count(self, row: str, index: int, sign: str) -> None:
        if index in self.needs.counted:
            with self._known(row, index):
                self._count_one(index, sign)

    def _count_one(self, index: int, sign: str) -> None:
        self._writer.line(f"{self.name(f'known{index}')}[{self.instance}] {sign}= 1")

    def _known(self, row: str, *columns: int) -> AbstractContextManager[None]:
        """Return a block for a row that has values in all of the columns."""
        null = self.null(row, *columns)
        return self._writer.deeper(f"if not {null}:") if null else nullcontext()

    # ------------------------------------------------------------ indexes

    def _code(self, columns: tuple[int, ...], values: Sequence[Value]) -> str:
        """Return the name that has the hash of values, computed once if they stay what they are."""
        hashed = f"chain_code({self._hashed(columns, [value.code for value in values])})"
        code: str | None = self._writer.recall(hashed)
        if code is None:
            code = self._writer.name("h")
            self._writer.line(f"{code} = {hashed}")
            if all(is_simple(value.code) for value in values):
                self._writer.remember(hashed, code)
        return code

    def _hashed(self, columns: tuple[int, ...], values: Sequence[str]) -> str:
        code = f"hash_start({self.instance})"
        for column, value in zip(columns, values, strict=True):
            kind = kind_of(self.table.fields[column].type)
            function = "hash_double" if kind == DOUBLE else "hash_integer"
            number = f"int({value})" if kind == TRUTH else value
            code = f"{function}({code}, {number})"
        return code

    def _add_to_hash(self, row: str, number: int, values: Sequence[Value] = ()) -> None:
        """Add a row to a hash index; with given values their hash may be known."""
        columns = self.needs.hashes[number]
        given = [values[c] for c in columns] if values else []
        if not given or not all(is_simple(value.code) for value in given):
            given = [Value(f"{self.name(f'c{column}')}[{row}]") for column in columns]
        code = self._code(columns, given)
        arrays = self._hash_arrays(number)
        self._writer.line(f"chain_add({row}, {self.instance}, {code}, {arrays}, {self.name('id')})")

    def _remove_from_hash(self, row: str, number: int) -> None:
        with self._known(row, *self.needs.hashes[number]):
            self._writer.line(f"chain_remove({row}, {self._hash_arrays(number)})")

    def _hash_arrays(self, number: int) -> str:
        return ", ".join(self.name(f"{n}{number}") for n in ("heads", "tails", "chain"))

    def _remove_from_tree(self, row: str, number: int) -> None:
        with self._known(row, self.needs.ordered[number]):
            self._change_tree("tree_remove", row, number)

    def _change_tree(self, function: str, row: str, number: int, *known: str) -> None:
        arrays = ", ".join(self.name(n) for n in (*known, f"ends{number}", f"nodes{number}"))
        self._writer.line(f"{function}({row}, {self.instance}, {arrays})")

    @property
    def count(self) -> str:
        return f"{self.name('count')}[{self.instance}]"

    def known(self, column: int) -> str:
        """Return the number of rows that have a value in a column."""
        self.needs.count(column)
        return f"{self.name(f'known{column}')}[{self.instance}]"
