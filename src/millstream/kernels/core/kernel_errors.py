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


class GapError(Exception):
    """A gap of so many empty windows that reports of all are not wanted.

    >>> print(GapError(20_000_000, 10_000_000))
    EMIT EMPTY would report 20,000,000 windows at once, and the limit is 10,000,000
    """

    def __str__(self) -> str:
        count, limit = self.args
        return f"EMIT EMPTY would report {count:,} windows at once, and the limit is {limit:,}"


def sql_name(type_: pa.DataType) -> str:
    """Return the name of a type that can overflow, as users write it."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    names = {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}
    return names.get(type_, "interval day to second" if pa.types.is_duration(type_) else str(type_))


def hint_for(error: str, message: str) -> str | None:
    """Return the remedy for an error of a kernel, by the name of its class.

    >>> hint_for("UserAggregateError", "aggregate 'f': division by zero")
    'guard against it in the body with WHERE or CASE'
    """
    if error == "PatternError" and "attempts are open" in message:
        return "let a condition end the star, as ccount(Y) <= 100, or say PARTITION BY more columns"
    return _HINTS.get(error)


_HINTS = {
    "KernelError": "use a wider type, as DECIMAL or DOUBLE, or a smaller window",
    "UserAggregateError": "guard against it in the body with WHERE or CASE",
    "GapError": "remove the tuple whose timestamp is far from the others, or use a longer SLIDE",
    "PatternError": "guard against it in the condition with CASE",
}
