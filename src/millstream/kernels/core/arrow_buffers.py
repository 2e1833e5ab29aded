"""Access to Arrow arrays through their buffers: NULLs never turn integers into doubles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millstream.kernels.core.buffers import Array, Bytes


def single(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array; no copy if it is one already."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def plain(table: pa.Table) -> pa.Table:
    """Return a table with all columns nullable.

    Only tables of equal schemas can be joined.
    """
    return pa.table(table.columns, names=table.column_names)


def validity(array: pa.Array) -> Bytes:
    """Return 1 for values and 0 for NULLs."""
    if array.null_count == 0:
        return np.ones(len(array), np.uint8)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.uint8)
    end = array.offset + len(array)
    bits = np.frombuffer(array.buffers()[0], np.uint8, (end + 7) // 8)
    return np.unpackbits(bits, count=end, bitorder="little")[array.offset :]


def values(array: pa.Array, dtype: npt.DTypeLike, words: int = 1) -> Array:
    """Return the memory of an array of fixed width, without a copy; NULLs have undefined content.

    With more than one word to a value the result has a row for each.
    """
    end = (array.offset + len(array)) * words
    data = array.buffers()[1]
    if data is None:  # an empty array need not have memory
        return np.zeros((0, words) if words > 1 else 0, dtype)
    content = np.frombuffer(data, dtype, end)[array.offset * words :]
    return content.reshape(-1, words) if words > 1 else content


def build(type_: pa.DataType, content: Array, valid: Array | None = None) -> pa.Array:
    """Return an array of fixed width around memory that must not change afterwards."""
    count = len(content)
    mask = None
    if valid is not None and not valid.all():
        mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    if pa.types.is_boolean(type_):
        content = np.packbits(content != 0, bitorder="little")
    return pa.Array.from_buffers(type_, count, [mask, pa.py_buffer(np.ascontiguousarray(content))])
