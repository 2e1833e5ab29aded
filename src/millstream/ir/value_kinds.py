"""Kinds of values at run time: integers, doubles, truth values, or words of a dictionary."""

from __future__ import annotations

from millstream.types import Kind, Type

INTEGER, DOUBLE, TRUTH, WORD = "integer", "double", "truth", "word"

SHORT_DECIMAL = 18
"""Decimals of so many digits are integers of 64 bits."""

_INTEGERS = frozenset(
    {
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INT,
        Kind.BIGINT,
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMP_NTZ,
        Kind.DAY_TIME_INTERVAL,
        Kind.NULL,
    }
)


def kind_of(type_: Type) -> str:
    """Return the kind of the values of a type; what does not fit 64 bits is a word.

    >>> from millstream.types import INT, STRING, decimal
    >>> kind_of(INT), kind_of(STRING), kind_of(decimal(20, 2))
    ('integer', 'word', 'word')
    """
    if type_.kind in _INTEGERS or (type_.kind is Kind.DECIMAL and type_.precision <= SHORT_DECIMAL):
        return INTEGER
    if type_.kind in (Kind.DOUBLE, Kind.FLOAT):
        return DOUBLE
    return TRUTH if type_.kind is Kind.BOOLEAN else WORD


def zero(kind: str) -> str:
    """Return a value to begin with, in generated code."""
    return {DOUBLE: "0.0", TRUTH: "False"}.get(kind, "0")


LIMITS = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
