"""ORDER BY, LIMIT and OFFSET of rows in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from millstream.analysis.queries.resolved_query import Arrangement


def arranged(table: pa.Table, wanted: Arrangement) -> pa.Table:
    """Return the rows of a table in an order, and only those of LIMIT and OFFSET.

    >>> from millstream.analysis.queries.resolved_query import SortedBy
    >>> wanted = Arrangement((SortedBy(0, descending=True, nulls_first=False),), limit=2)
    >>> arranged(pa.table({"x": [1, None, 3, 2]}), wanted).to_pydict()
    {'x': [3, 2]}
    """
    keys = [table.column(key.column) for key in wanted.keys]
    return table.take(pa.array(places(table.num_rows, keys, wanted), pa.int64()))


def places(count: int, keys: Sequence[pa.Array | pa.ChunkedArray], wanted: Arrangement) -> list[int]:
    """Return the numbers of the rows of a result; ``keys`` are the columns that order it."""
    ways = [(key.descending, key.nulls_first) for key in wanted.keys]
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    return in_order(count, keys, ways)[wanted.offset : end]


def in_order(
    count: int, keys: Sequence[pa.Array | pa.ChunkedArray], ways: Sequence[tuple[bool, bool]]
) -> list[int]:
    """Return the numbers of rows in the order of keys, each with (descending, NULLs first); stable."""
    numbers = list(range(count))
    for key, (descending, nulls_first) in reversed(list(zip(keys, ways, strict=True))):
        values = [None if value is None else (value != value, value) for value in key.to_pylist()]
        nulls = [number for number in numbers if values[number] is None]
        others = [number for number in numbers if values[number] is not None]
        others.sort(key=values.__getitem__, reverse=descending)  # type: ignore[arg-type]
        numbers = [*nulls, *others] if nulls_first else [*others, *nulls]
    return numbers
