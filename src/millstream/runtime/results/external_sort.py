"""Rows in order, when there are more of them than fit into memory.

Order is SQL's: by the first key, then the second, ...; NULL before everything else, NaN after it, and
rows with equal keys stay as they came. Only the keys are ever held all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Load = Callable[[], pa.Table]
"""Fetches a part of the rows, from memory or from a file."""


def sort(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """A table with its rows in the order of the keys."""
    if not keys or in_order(table.select(keys)):
        return table
    return table.take(argsort(table.select(keys)))


def in_order(keys: pa.Table) -> bool:
    """Whether rows with these keys are in order already.

    >>> in_order(pa.table({"t": [None, 1, 1, 2], "k": ["b", "b", "c", "a"]}))
    True
    """
    if keys.num_rows < 2:
        return True
    # From the last key to the first: a row may follow another if its key is larger, or if it is equal
    # and the keys after it allow it.
    allowed: pa.ChunkedArray | pa.Scalar = pa.scalar(True)
    for column in reversed(_encode(keys)):
        before, after = column.slice(0, len(column) - 1), column.slice(1)
        # NULL here means that a flag before has decided, or else that both are NULL.
        larger = pc.fill_null(pc.less(before, after), False)
        equal = pc.fill_null(pc.equal(before, after), True)
        allowed = pc.or_(larger, pc.and_(equal, allowed))
    return bool(pc.all(allowed).as_py())


def argsort(keys: pa.Table) -> pa.Array:
    """The numbers of the rows in the order of their keys; stable."""
    columns = _encode(keys)
    if not columns:
        return pa.array(np.arange(keys.num_rows, dtype=np.uint64))
    names = [f"k{i}" for i in range(len(columns))]
    table = pa.table(columns, names=names).combine_chunks()
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])


def gather(parts: Sequence[Load], sizes: Sequence[int], order: pa.Array, rows: int) -> Iterator[pa.Table]:
    """The rows of all parts in the given order, so many at a time.

    `order` has the numbers of rows counted over all parts, whose sizes are given. Parts are loaded when
    they are needed: where the input was nearly in order, one or two for each piece of output.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    numbers = order.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    for first in range(0, len(numbers), rows):
        wanted = numbers[first : first + rows]
        part = np.searchsorted(starts, wanted, side="right") - 1
        # Row by row would be slow: take what is wanted of each part, then put the pieces in order.
        by_part = np.argsort(part, kind="stable")
        bounds = np.flatnonzero(np.diff(part[by_part])) + 1
        pieces = []
        for group in np.split(by_part, bounds):
            number = int(part[group[0]])
            pieces.append(parts[number]().take(pa.array(wanted[group] - starts[number])))
        place = np.empty(len(wanted), dtype=np.int64)
        place[by_part] = np.arange(len(wanted))
        yield (
            pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).combine_chunks().take(pa.array(place))
        )


def _encode(keys: pa.Table) -> list[pa.ChunkedArray]:
    """Columns in which Arrow's own order is the one wanted."""
    return [encoded for column in keys.itercolumns() for encoded in _encode_column(column)]


def _encode_column(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    kind = column.type
    if pa.types.is_null(kind):
        return []
    if pa.types.is_dictionary(kind):
        return _encode_column(column.cast(kind.value_type))
    flags: list[pa.ChunkedArray] = []
    if column.null_count:
        # false comes before true, and so NULL before the rest.
        flags.append(column.is_valid())
    if pa.types.is_floating(kind):
        # Arrow would put NaN beside NULL; in SQL it is larger than any number.
        nan = pc.fill_null(pc.is_nan(column), False)
        if pc.any(nan).as_py():
            return [*flags, nan, pc.if_else(nan, pa.scalar(None, kind), column)]
        return [*flags, column]
    if pa.types.is_struct(kind):
        return [*flags, *(encoded for child in column.flatten() for encoded in _encode_column(child))]
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        # Arrow cannot sort these. Any order will do as long as it is always the same.
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return [*flags, pa.chunked_array([pa.array(texts, pa.string())])]
    return [*flags, column]
