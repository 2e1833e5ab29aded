"""Texts that stand where a number, a time or a condition is wanted.

Spark (ANSI mode) converts a text beside a number to a number, and so on. Of a text that is written out it
is known whether that can succeed: where it cannot, the query would fail with its first row.
"""

from __future__ import annotations

import re

from sqlglot import exp

from millstream.errors import AnalysisError
from millstream.syntax.positions import span_of
from millstream.types import DOUBLE, Kind, Type

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[df]?|nan|inf|infinity|0x[\da-f.]+p[+-]?\d+)", re.IGNORECASE
)
_CONDITION = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_SPECIAL_TIMES = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})


def check_literal(node: exp.Expr, wanted: Type, *, whole: bool = False) -> None:
    """Raise if a text is written here that Spark cannot convert to what stands beside it.

    With ``whole``, beside a whole number only a whole number will do.
    """
    literal = node.unnest()
    if not isinstance(literal, exp.Literal) or not literal.is_string:
        return
    noun = _cannot_be(literal.name, wanted if whole or not wanted.is_numeric else DOUBLE)
    if noun is None:
        return
    shown = literal.name if len(literal.name) <= 30 else f"{literal.name[:28]}.."
    raise AnalysisError(
        f"'{shown}' is not {noun}, but stands beside a value of type {wanted}",
        span=span_of(node),
        hint="write '2026-01-31 07:00:00'" if wanted.is_time else "a column stands without quotes",
    )


def _cannot_be(text: str, wanted: Type) -> str | None:
    """Which thing a text would have to be, and is not.

    >>> from millstream.types import BOOLEAN, DOUBLE, INT, TIMESTAMP
    >>> _cannot_be("cheap", DOUBLE), _cannot_be(" 1e3 ", DOUBLE), _cannot_be("1.5", INT), _cannot_be("7", INT)
    ('a number', None, 'a whole number', None)
    >>> _cannot_be("maybe", BOOLEAN), _cannot_be("noon", TIMESTAMP), _cannot_be("2026-01-31", TIMESTAMP)
    ('true or false', 'a time', None)
    """
    text = text.strip()
    if wanted.is_integral:
        return None if _WHOLE.fullmatch(text) else "a whole number" if _NUMBER.fullmatch(text) else "a number"
    if wanted.is_numeric:
        return None if _NUMBER.fullmatch(text) else "a number"
    if wanted.kind is Kind.BOOLEAN:
        return None if text.lower() in _CONDITION else "true or false"
    if wanted.is_time:
        # What else can be read as a time is for Spark to say.
        return None if re.search(r"\d", text) or text.lower() in _SPECIAL_TIMES else "a time"
    return None
