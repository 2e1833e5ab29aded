"""Columns of any type as 64 bits per value, so that every loop over values is compiled once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Bytes, Integers
from millstream.kernels.core.dictionary import Dictionary

SHORT_DECIMAL = 18
"""Largest number of digits of decimals that fit 64 bits."""

_DTYPES = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.uint8(): np.uint8,
    pa.uint16(): np.uint16,
    pa.uint32(): np.uint32,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


class Column:
    """A codec between arrays of a type and integers.

    Values of 64 bits or less are themselves (doubles their bits, with one NaN for all), others the codes of a
    dictionary. NULL becomes 0.
    """

    def __init__(self, type_: pa.DataType, *, ordered: bool = True) -> None:
        check_type(type_)
        self.type = type_
        self.dictionary = Dictionary(type_, ordered=ordered) if _is_worded(type_) else None

    @property
    def words(self) -> int:
        """Number of values in the dictionary, including those no longer needed."""
        return 0 if self.dictionary is None else len(self.dictionary)

    def encode(self, column: pa.ChunkedArray | pa.Array) -> tuple[Integers, Bytes]:
        """Return the 64 bits of each value, and 1 for values, 0 for NULLs."""
        array = arrow_buffers.single(column)
        valid = arrow_buffers.validity(array)
        content = self._content(array)
        if array.null_count:
            content = np.where(valid, content, 0)
        if pa.types.is_floating(self.type):
            content = np.where(np.isnan(content), np.nan, content).astype(np.float64).view(np.int64)
        return content.astype(np.int64, copy=False), valid

    def _content(self, array: pa.Array) -> Array:
        type_ = self.type
        if self.dictionary is not None:
            return self.dictionary.codes(array)
        if pa.types.is_null(type_):
            return np.zeros(len(array), np.int64)
        if pa.types.is_boolean(type_):
            return arrow_buffers.values(array.cast(pa.uint8()), np.uint8)
        if pa.types.is_decimal(type_):
            return arrow_buffers.values(array, np.int64, words=2)[:, 0]
        return arrow_buffers.values(array, _DTYPES.get(type_, np.int64))

    def decode(self, values: Integers, valid: Array) -> pa.Array:
        """Return the array of encoded values; ``values`` must not change afterwards."""
        type_ = self.type
        if self.dictionary is not None:
            return self.dictionary.values(values, valid)
        if pa.types.is_null(type_):
            return pa.nulls(len(values))
        if pa.types.is_floating(type_):
            return arrow_buffers.build(type_, values.view(np.float64).astype(_DTYPES[type_]), valid)
        if pa.types.is_decimal(type_):
            return arrow_buffers.build(type_, np.stack([values, values >> 63], axis=1), valid)
        if pa.types.is_boolean(type_):
            return arrow_buffers.build(type_, values, valid)
        return arrow_buffers.build(type_, values.astype(_DTYPES.get(type_, np.int64)), valid)


def halves(column: pa.ChunkedArray | pa.Array) -> tuple[Integers, Integers, Bytes]:
    """Split long decimals into high and low 64 bits.

    2**63 is subtracted from the low ones to make them signed.
    """
    array = arrow_buffers.single(column)
    valid = arrow_buffers.validity(array)
    words = np.where(valid[:, None], arrow_buffers.values(array, np.int64, words=2), 0)
    return words[:, 1].copy(), words[:, 0] ^ np.int64(-(2**63)), valid


def is_long_decimal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(type_) and type_.precision > SHORT_DECIMAL)


def is_nested(type_: pa.DataType) -> bool:
    """Tell whether a type is a list, struct or map of supported types."""
    test = pa.types
    nested = (test.is_list, test.is_large_list, test.is_struct, test.is_map)
    if not any(is_(type_) for is_ in nested):
        return False
    for i in range(type_.num_fields):
        check_type(type_.field(i).type)
    return True


def check_type(type_: pa.DataType) -> None:
    """Refuse types whose values are neither 64 bits nor words of a dictionary."""
    test = pa.types
    long = (test.is_int64, test.is_timestamp, test.is_duration, test.is_time64, test.is_date64)
    plain = type_ in _DTYPES or any(is_(type_) for is_ in (*long, test.is_boolean, test.is_null))
    if not plain and not test.is_decimal128(type_) and not _is_worded(type_):
        raise NotImplementedError(f"values of type {type_} cannot be kept in windows")


def _is_worded(type_: pa.DataType) -> bool:
    test = pa.types
    words = (test.is_string, test.is_large_string, test.is_binary, test.is_large_binary)
    return any(is_(type_) for is_ in words) or is_long_decimal(type_) or is_nested(type_)
