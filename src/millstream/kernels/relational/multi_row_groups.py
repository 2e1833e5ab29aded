"""Changes of groups with table-valued aggregates: each returned row enters and leaves by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Integers
from millstream.kernels.relational.incremental_relation import mixed
from millstream.kernels.result_types import result_fields
from millstream.kernels.specs import USER, AggregateSpec

Identities = tuple[Integers, Integers]


@dataclass(frozen=True)
class ExpandedRows:
    """Returned rows, one by one, with the position of the change of each."""

    columns: pa.Table
    changes: Array
    values: Integers
    """A hash of the results of each row and of the number of equal rows before it."""

    def unequal(self, events: Array, identities: Identities) -> Array:
        """Return the rows that do not both leave and enter at one event."""
        at = events[self.changes], *identities
        order = np.lexsort(at[::-1])
        again = np.ones(max(len(order) - 1, 0), np.bool_)
        for key in at:
            again &= key[order][1:] == key[order][:-1]
        stays = np.ones(len(order), np.bool_)
        stays[order[1:][again]] = False
        stays[order[:-1][again]] = False
        return np.flatnonzero(stays)


def expand_rows(rows: pa.Table, aggregates: Sequence[AggregateSpec]) -> ExpandedRows:
    """Return one row for each returned row; of several aggregates the cross product."""
    changes: Array = np.arange(rows.num_rows)
    for spec in aggregates:
        if spec.function != USER:
            continue
        lists = arrow_buffers.single(rows[spec.result])
        parents = pc.list_parent_indices(lists).to_numpy()
        returned = pc.list_flatten(lists)
        changes = changes[parents]
        others = [name for name in rows.column_names if name != spec.result]
        columns = dict(zip(others, rows.select(others).take(pa.array(parents)).columns, strict=True))
        # Only together: a table without columns would have no rows.
        columns |= zip((one.name for one in result_fields(spec)), returned.flatten(), strict=True)
        rows = pa.table(columns)
    results = (one.name for spec in aggregates for one in result_fields(spec))
    values = mixed(*(_hashed(arrow_buffers.single(rows[name])) for name in results))
    return ExpandedRows(rows, changes, mixed(values, _copies(changes, values)))


def _copies(changes: Array, values: Integers) -> Integers:
    """Count the equal rows of the same change before each."""
    order = np.lexsort((values, changes))
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (np.diff(values[order]) != 0) | (np.diff(changes[order]) != 0)
    places = np.arange(len(order))
    copies = np.empty(len(order), np.int64)
    copies[order] = places - np.maximum.accumulate(np.where(starts, places, 0))
    return copies


def _hashed(column: pa.Array) -> Integers:
    """Return hashes of values, equal in every shard and after every restart."""
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # there are two zeros
    try:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        values, indices = encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
    except pa.ArrowNotImplementedError:
        values, indices = column.to_pylist(), np.arange(len(column))
    digests = (hashlib.blake2b(repr(value).encode(), digest_size=8).digest() for value in values)
    numbers = np.frombuffer(b"".join(digests), np.int64)
    return numbers[indices] if len(indices) else np.zeros(0, np.int64)
