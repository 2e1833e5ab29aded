"""Errors of kernels at a tuple or window, for which the layers above find the statement."""

from __future__ import annotations

import pyarrow as pa


class KernelError(Exception):
    """Overflow of an aggregate at some tuple or window.

    ``position`` is (time, origin, number) of the tuple, or (time, window id) of the window.

    >>> print(KernelError("sum", "price", pa.int64(), (12, 0, 3)))
    sum(price) does not fit its type bigint
    """

    def __init__(
        self, function: str, argument: str | None, type_: pa.DataType, position: tuple[int | float, ...]
    ) -> None:
        super().__init__(function, argument, type_, position)
        self.function = function
        self.argument = argument
        self.type = type_
        self.position = position

    def __str__(self) -> str:
        return f"{self.function}({self.argument or '*'}) does not fit its type {sql_name(self.type)}"


def sql_name(type_: pa.DataType) -> str:
    """Return the name of a type that can overflow, as users write it."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    names = {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}
    return names.get(type_, "interval day to second" if pa.types.is_duration(type_) else str(type_))
