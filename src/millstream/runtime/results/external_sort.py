"""External sort: rows in order, when they do not fit into memory.

The order is SQL's: by the first key, then the second, ...; NULL before everything else, NaN after it, and
rows with equal keys keep their order. Only the keys are in memory all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core.sort_keys import sort_key

Load = Callable[[], pa.Table]
"""Loads a part of the rows, from memory or from a file."""


def sort(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return a table with its rows in the order of the keys."""
    if not keys or in_order(table.select(keys)):
        return table
    return table.take(argsort(table.select(keys)))


def in_order(keys: pa.Table) -> bool:
    """Return whether rows with these keys are in order.

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
        # NULL here means that a flag before has decided, or that both are NULL.
        larger = pc.fill_null(pc.less(before, after), False)
        equal = pc.fill_null(pc.equal(before, after), True)
        allowed = pc.or_(larger, pc.and_(equal, allowed))
    return bool(pc.all(allowed).as_py())


def argsort(keys: pa.Table) -> pa.Array:
    """Return the numbers of the rows in the order of their keys; stable."""
    columns = _encode(keys)
    if not columns:
        return pa.array(np.arange(keys.num_rows, dtype=np.uint64))
    names = [f"k{i}" for i in range(len(columns))]
    table = pa.table(columns, names=names).combine_chunks()
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])


def gather(parts: Sequence[Load], sizes: Sequence[int], order: pa.Array, rows: int) -> Iterator[pa.Table]:
    """Yield the rows of all parts in the order of ``order``, ``rows`` at a time.

    ``order`` has the numbers of rows, counted over all parts, whose lengths are ``sizes``. Parts are loaded
    when they are needed: one or two for each piece of output if the input was nearly in order.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    numbers = order.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    for first in range(0, len(numbers), rows):
        chunk = numbers[first : first + rows]
        part = np.searchsorted(starts, chunk, side="right") - 1
        # Row by row would be slow: take the rows of each part at once, then put the pieces in order.
        by_part = np.argsort(part, kind="stable")
        bounds = np.flatnonzero(np.diff(part[by_part])) + 1
        pieces = []
        for group in np.split(by_part, bounds):
            number = int(part[group[0]])
            pieces.append(parts[number]().take(pa.array(chunk[group] - starts[number])))
        place = np.empty(len(chunk), dtype=np.int64)
        place[by_part] = np.arange(len(chunk))
        yield (
            pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).combine_chunks().take(pa.array(place))
        )


def _encode(keys: pa.Table) -> list[pa.ChunkedArray]:
    """Return columns whose Arrow order is the order of the keys."""
    return [encoded for column in keys.itercolumns() for encoded in _encode_column(column)]


def _encode_column(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    kind = column.type
    if pa.types.is_null(kind):
        return []
    if pa.types.is_dictionary(kind):
        return _encode_column(column.cast(kind.value_type))
    flags: list[pa.ChunkedArray] = []
    if column.null_count:
        # False sorts before true, and so NULL before the rest.
        flags.append(column.is_valid())
    if pa.types.is_floating(kind):
        # Arrow would put NaN beside NULL; in SQL it is larger than any number.
        nan = pc.fill_null(pc.is_nan(column), False)
        if pc.any(nan).as_py():
            return [*flags, nan, pc.if_else(nan, pa.scalar(None, kind), column)]
        return [*flags, column]
    if pa.types.is_struct(kind):
        return [*flags, *(encoded for child in column.flatten() for encoded in _encode_column(child))]
    if pa.types.is_nested(kind):
        return [*flags, pa.chunked_array([sort_key(column)])]
    if pa.types.is_interval(kind):
        # Arrow cannot sort these types. Any deterministic order will do.
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return [*flags, pa.chunked_array([pa.array(texts, pa.string())])]
    return [*flags, column]
