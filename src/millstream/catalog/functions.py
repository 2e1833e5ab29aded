"""Spark's built-in functions, described without starting Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from millstream.catalog.builtin_aggregates import TABLE

UNKNOWN_RESULT = "unknown"

NON_DETERMINISTIC = frozenset(
    {
        *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle"),
        *(
            "now",
            "current_timestamp",
            "current_date",
            "curdate",
            "current_time",
            "localtime",
            "localtimestamp",
        ),
        *("monotonically_increasing_id", "spark_partition_id"),
        *("input_file_name", "input_file_block_start", "input_file_block_length"),
        *("java_method", "reflect", "try_reflect"),
    }
)
"""Functions whose result may differ when a query is run again on the same rows."""

BARE_FUNCTIONS = frozenset(
    {
        *("current_date", "current_timestamp", "current_time", "localtime"),
        *("current_user", "session_user", "user"),
    }
)
"""Functions that may be called without parentheses, if no column has that name."""


class FunctionKind(StrEnum):
    """Kinds of functions, by the rows that they are computed from."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATOR = "generator"
    OPERATOR = "operator"
    """Listed by Spark among its functions, but only ever written as an operator."""


@dataclass(frozen=True)
class BuiltinFunction:
    """A built-in function; without a signature it takes any arguments and its result is unknown.

    ``parameters`` and ``result`` are in the notation explained at the top of ``signatures.txt``. Signatures
    of aggregates are in the table of built-in aggregates.
    """

    name: str
    kind: FunctionKind
    min_args: int = 0
    max_args: int | None = None
    result: str = UNKNOWN_RESULT
    parameters: tuple[str, ...] = ()

    def parameter(self, index: int) -> str:
        """Return the type of an argument; the last parameter stands for all that follow it."""
        if not self.parameters:
            return "any"
        return self.parameters[min(index, len(self.parameters) - 1)]

    @property
    def arity(self) -> str:
        """Return the number of arguments in words.

        >>> builtin("substr").arity, builtin("pi").arity, builtin("coalesce").arity
        ('2 to 3 arguments', 'no arguments', 'at least 1 argument')
        """
        least, most = self.min_args, self.max_args
        if most == 0:
            return "no arguments"
        if most is None:
            return f"at least {least} argument{'s' * (least != 1)}"
        return f"{least} argument{'s' * (least != 1)}" if least == most else f"{least} to {most} arguments"


def builtin(name: str) -> BuiltinFunction | None:
    """Return a built-in function by its name, in any case.

    >>> builtin("SUM").kind
    <FunctionKind.AGGREGATE: 'aggregate'>
    """
    return _builtins().get(name.lower())


def builtin_names() -> frozenset[str]:
    """Return the names of all built-in functions, in lower case."""
    return frozenset(_builtins())


def is_deterministic(name: str, arguments: int) -> bool:
    """Return whether a call with so many arguments depends on its arguments alone."""
    name = name.lower()
    return name not in NON_DETERMINISTIC and not (name == "unix_timestamp" and arguments == 0)


@cache
def _builtins() -> dict[str, BuiltinFunction]:
    aggregates = [f"{', '.join(row.names)}{row.signature}" for row in TABLE if row.signature]
    lines = [*_lines("signatures.txt"), *aggregates]
    signatures = dict(pair for line in lines for pair in _signatures(line))
    functions = {}
    for line in _lines("spark_functions.txt"):
        name, kind = line.split()
        functions[name] = BuiltinFunction(name, FunctionKind(kind), *signatures.get(name, ()))
    return functions


def _lines(file: str) -> list[str]:
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


_Signature = tuple[int, int | None, str, tuple[str, ...]]


def _signatures(line: str) -> list[tuple[str, _Signature]]:
    """Return the functions of a line, all with one signature."""
    call, result = line.split(" -> ")
    names, _, inside = call[:-1].partition("(")
    written = re.split(r", (?![^<]*>)", inside) if inside else []
    types = tuple(text.rstrip("?*") for text in written)
    least = sum(not text.endswith(("?", "*")) for text in written)
    most = None if written and written[-1].endswith("*") else len(written)
    return [(name, (least, most, result, types)) for name in names.split(", ")]
