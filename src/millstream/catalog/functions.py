"""What is known of Spark's built-in functions without starting Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

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
"""Functions that may answer differently when a query is run again on the same rows."""

BARE_FUNCTIONS = frozenset(
    {
        *("current_date", "current_timestamp", "current_time", "localtime"),
        *("current_user", "session_user", "user"),
    }
)
"""Functions that may be called without parentheses, where there is no column of that name."""


class FunctionKind(StrEnum):
    """What a function is computed from."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"
    GENERATOR = "generator"
    OPERATOR = "operator"
    """Listed by Spark among its functions, but only ever written as an operator."""


@dataclass(frozen=True)
class BuiltinFunction:
    """A built-in function; without a signature any arguments will do and the result is unknown.

    ``parameters`` and ``result`` are in the notation explained at the top of ``signatures.txt``.
    """

    name: str
    kind: FunctionKind
    min_args: int = 0
    max_args: int | None = None
    result: str = UNKNOWN_RESULT
    parameters: tuple[str, ...] = ()

    def parameter(self, index: int) -> str:
        """The type of an argument; the last parameter stands for all that follow it."""
        if not self.parameters:
            return "any"
        return self.parameters[min(index, len(self.parameters) - 1)]

    @property
    def arity(self) -> str:
        """The number of arguments in words.

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
    """A built-in function by its name, in any case.

    >>> builtin("SUM").kind
    <FunctionKind.AGGREGATE: 'aggregate'>
    """
    return _builtins().get(name.lower())


def builtin_names() -> frozenset[str]:
    """The names of all built-in functions, in lower case."""
    return frozenset(_builtins())


def is_deterministic(name: str, arguments: int) -> bool:
    """Whether a call with so many arguments depends on nothing else."""
    name = name.lower()
    return name not in NON_DETERMINISTIC and not (name == "unix_timestamp" and arguments == 0)


@cache
def _builtins() -> dict[str, BuiltinFunction]:
    signatures = dict(pair for line in _lines("signatures.txt") for pair in _signatures(line))
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
    """The functions of a line, all with the same signature."""
    call, result = line.split(" -> ")
    names, _, inside = call[:-1].partition("(")
    written = re.split(r", (?![^<]*>)", inside) if inside else []
    types = tuple(text.rstrip("?*") for text in written)
    least = sum(not text.endswith(("?", "*")) for text in written)
    most = None if written and written[-1].endswith("*") else len(written)
    return [(name, (least, most, result, types)) for name in names.split(", ")]
