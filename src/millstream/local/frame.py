"""Rows of a node in memory: Arrow columns, with the relation and the type of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.expressions import compile_expression
from millstream.physical.node import Guard
from millstream.stage.hidden_columns import is_hidden
from millstream.types import BOOLEAN, Type

BATCH = "__ms_batch"
"""The micro-batch of a row: it travels beside all other columns, and no node drops it."""


@dataclass(frozen=True)
class Frame:
    """Rows as columns; hidden columns stand behind the others."""

    refs: tuple[ColumnRef, ...]
    columns: tuple[pa.Array, ...]
    count: int

    @staticmethod
    def of(columns: Iterable[tuple[ColumnRef, pa.Array]], count: int) -> Frame:
        """Return a frame with hidden columns put behind the others."""
        pairs = sorted(columns, key=lambda pair: is_hidden(pair[0].name))
        return Frame(tuple(ref for ref, _ in pairs), tuple(column for _, column in pairs), count)

    @property
    def pairs(self) -> list[tuple[ColumnRef, pa.Array]]:
        return list(zip(self.refs, self.columns, strict=True))

    @property
    def shown(self) -> list[tuple[ColumnRef, pa.Array]]:
        return [pair for pair in self.pairs if not is_hidden(pair[0].name)]

    @cached_property
    def hidden(self) -> dict[str, pa.Array]:
        """The hidden columns by name."""
        return {ref.name: column for ref, column in self.pairs if is_hidden(ref.name)}

    # ------------------------------------------------------------ rows

    def where(self, mask: pa.Array) -> Frame:
        """Return the rows for which a mask is true."""
        if pc.all(mask).as_py() is not False and not mask.null_count:
            return self
        columns = tuple(column.filter(mask) for column in self.columns)
        return Frame(self.refs, columns, pc.sum(mask).as_py() or 0)

    def take(self, numbers: Sequence[int | None]) -> Frame:
        """Return rows by their numbers; None is a row of NULLs."""
        places = pa.array(numbers, pa.int64())
        return Frame(self.refs, tuple(column.take(places) for column in self.columns), len(numbers))

    # ------------------------------------------------------------ columns

    def alias(self, relation: str) -> Frame:
        """Return the rows under the name of a relation."""
        refs = (r if is_hidden(r.name) else ColumnRef(relation, r.name, r.type) for r in self.refs)
        return Frame(tuple(refs), self.columns, self.count)

    def with_hidden(self, name: str, type_: Type, column: pa.Array) -> Frame:
        """Return the rows with a hidden column set."""
        others = [pair for pair in self.pairs if pair[0].name != name]
        return Frame.of([*others, (ColumnRef("", name, type_), column)], self.count)

    def without_hidden(self, is_dropped: Callable[[str], bool]) -> Frame:
        """Return the rows without some hidden columns."""
        kept = [p for p in self.pairs if not (is_hidden(p[0].name) and is_dropped(p[0].name))]
        return Frame.of(kept, self.count)

    # ------------------------------------------------------------ expressions

    def evaluate(self, expr: Expr, guard: Guard = Guard.NONE, type_: Type | None = None) -> pa.Array:
        """Evaluate an expression where the guard holds; elsewhere it is NULL."""
        mask = None if guard is Guard.NONE else self.holds(Expr((guard.value,), BOOLEAN))
        function = compile_expression(expr, self.refs)
        target = arrow_type(type_ if type_ is not None and type_.is_known else function.type)
        if mask is None or pc.all(mask).as_py() is not False:
            return function(self.columns, self.count).cast(target)
        there = self.where(mask)
        values = function(there.columns, there.count).cast(target)
        places = pc.if_else(mask, pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1), None)
        return values.take(places)

    def holds(self, condition: Expr) -> pa.Array:
        """Tell for each row whether a condition is true, and neither false nor NULL."""
        outcomes = compile_expression(condition, self.refs)(self.columns, self.count)
        return pc.fill_null(outcomes.cast(pa.bool_()), False)


def concatenated(frames: Sequence[Frame]) -> Frame:
    """Return rows of several frames: shown columns by position, and every hidden column of any of them."""
    first = frames[0]
    names = {r.name: r for frame in frames for r in frame.refs if is_hidden(r.name)}
    pairs: list[tuple[ColumnRef, pa.Array]] = []
    for i, (ref, column) in enumerate(first.shown):
        pieces = [column, *(frame.shown[i][1].cast(column.type) for frame in frames[1:])]
        pairs.append((ref, _whole(pieces)))
    for name, ref in names.items():
        type_ = next(frame.hidden[name].type for frame in frames if name in frame.hidden)
        pieces = [
            frame.hidden[name].cast(type_) if name in frame.hidden else pa.nulls(frame.count, type_)
            for frame in frames
        ]
        pairs.append((ref, _whole(pieces)))
    return Frame.of(pairs, sum(frame.count for frame in frames))


def _whole(pieces: Sequence[pa.Array]) -> pa.Array:
    whole = pa.chunked_array(pieces).combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def from_table(table: pa.Table, refs: Sequence[ColumnRef]) -> Frame:
    """Return a table as a frame whose columns are these, in their order."""
    columns = [_whole(c.chunks) if c.num_chunks else pa.nulls(0, c.type) for c in table.columns]
    return Frame.of(zip(refs, columns, strict=True), table.num_rows)


def to_table(pairs: Sequence[tuple[ColumnRef, pa.Array]]) -> pa.Table:
    """Return columns as a table of Arrow; two of them may have the same name."""
    return pa.table([column for _, column in pairs], names=[ref.name for ref, _ in pairs])
