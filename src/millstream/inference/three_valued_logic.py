"""Conditions in three-valued logic, taken apart: the ways in which they can come out.

A way is a list of plain facts (*literals*) that hold together. If every way contradicts itself, conditions
cannot come out like that, which is how implications are proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from millstream.ir.typed_nodes import Call, Cast, Constant, Expr
from millstream.types import BOOLEAN


class Outcome(Enum):
    """The outcome of a condition; NULL is neither true nor false."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"


@dataclass(frozen=True)
class NullTest:
    """A literal: a value is NULL, or is not."""

    value: Expr
    missing: bool


@dataclass(frozen=True)
class Comparison:
    """A comparison that holds, of values that are not NULL."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class AssumedOutcome:
    """Assumed outcome of an opaque condition; two different assumptions contradict each other."""

    condition: Expr
    outcome: bool | None


Literal = NullTest | Comparison | AssumedOutcome
Way = frozenset[Literal]
Ways = frozenset[Way]

NEVER: Ways = frozenset()
ALWAYS: Ways = frozenset({frozenset()})

MANY = 256
"""The limit of ways; conditions with more are opaque."""

OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_STRICT = frozenset(
    {"+", "-", "*", "negative", "+time", "-time", "-times", "+days", "-days", "+intervals", "-intervals"}
)
"""Functions that are NULL where an argument is, and nowhere else."""

_OTHER_SIDE = {
    Outcome.TRUE: Outcome.FALSE,
    Outcome.FALSE: Outcome.TRUE,
    Outcome.NOT_TRUE: Outcome.NOT_FALSE,
    Outcome.NOT_FALSE: Outcome.NOT_TRUE,
}


class TooManyError(Exception):
    """More ways than the limit."""


def either(*alternatives: Ways) -> Ways:
    return _few(frozenset().union(*alternatives))


def both(*parts: Ways) -> Ways:
    ways: Ways = ALWAYS
    for part in parts:
        if len(ways) * len(part) > MANY:
            raise TooManyError
        ways = frozenset(one | other for one in ways for other in part)
    return ways


def _few(ways: Ways) -> Ways:
    if len(ways) > MANY:
        raise TooManyError
    return ways


def all_hold(conditions: Iterable[Expr]) -> Ways:
    return both(*(ways(condition, Outcome.TRUE) for condition in conditions))


def some_fail(conditions: Iterable[Expr]) -> Ways:
    return either(*(ways(condition, Outcome.NOT_TRUE) for condition in conditions))


def ways(condition: Expr, outcome: Outcome) -> Ways:
    """Return the ways in which a condition has an outcome."""
    match condition:
        case Constant(value):
            return ALWAYS if _fits(value, outcome) else NEVER
        case Call("not", (inner,)):
            return ways(inner, _OTHER_SIDE[outcome])
        case Call("and", (a, b)):
            whole = outcome in (Outcome.TRUE, Outcome.NOT_FALSE)
            return (both if whole else either)(ways(a, outcome), ways(b, outcome))
        case Call("or", (a, b)):
            whole = outcome in (Outcome.FALSE, Outcome.NOT_TRUE)
            return (both if whole else either)(ways(a, outcome), ways(b, outcome))
        case Call("in", (value, *others)):
            tests: Expr = Constant(False, BOOLEAN)
            for other in others:
                tests = Call("or", (tests, Call("=", (value, other), BOOLEAN)), BOOLEAN)
            return ways(tests, outcome)
        case Call("isnull", (value,)):
            return missing(value) if outcome in (Outcome.TRUE, Outcome.NOT_FALSE) else present(value)
        case Call("<=>", (a, Constant(bool() as wanted))):
            # IS TRUE and IS FALSE
            holds = outcome in (Outcome.TRUE, Outcome.NOT_FALSE)
            side = Outcome.TRUE if holds else Outcome.NOT_TRUE
            return ways(a, side if wanted else _OTHER_SIDE[side])
        case Call("<=>", (a, b)):
            same = Call("=", (a, b), BOOLEAN)
            if outcome in (Outcome.TRUE, Outcome.NOT_FALSE):
                return either(both(missing(a), missing(b)), ways(same, Outcome.TRUE))
            one = either(both(missing(a), present(b)), both(present(a), missing(b)))
            return either(one, ways(same, Outcome.FALSE))
        case Call(operator, (a, b)) if operator in OPPOSITES:
            return _comparison(operator, a, b, outcome)
    return frozenset(
        frozenset({AssumedOutcome(condition, value)})
        for value in (True, False, None)
        if _fits(value, outcome)
    )


def _fits(value: object, outcome: Outcome) -> bool:
    match outcome:
        case Outcome.TRUE:
            return value is True
        case Outcome.FALSE:
            return value is False
        case Outcome.NOT_TRUE:
            return value is not True
        case Outcome.NOT_FALSE:
            return value is not False


def _comparison(operator: str, a: Expr, b: Expr, outcome: Outcome) -> Ways:
    if outcome in (Outcome.FALSE, Outcome.NOT_TRUE):
        operator = OPPOSITES[operator]
    holds = both(present(a), present(b), frozenset({frozenset({Comparison(operator, a, b)})}))
    if outcome in (Outcome.TRUE, Outcome.FALSE):
        return holds
    return either(holds, missing(a), missing(b))


# ---------------------------------------------------------------- NULL


def missing(value: Expr) -> Ways:
    """Return the ways in which a value is NULL."""
    if isinstance(value, Constant):
        return ALWAYS if value.value is None else NEVER
    parts = _parts(value)
    if parts is None:
        return frozenset({frozenset({NullTest(value, missing=True)})})
    return either(*map(missing, parts))


def present(value: Expr) -> Ways:
    """Return the ways in which a value is not NULL."""
    if isinstance(value, Constant):
        return NEVER if value.value is None else ALWAYS
    parts = _parts(value)
    if parts is None:
        return frozenset({frozenset({NullTest(value, missing=False)})})
    return both(*map(present, parts))


def _parts(value: Expr) -> tuple[Expr, ...] | None:
    """Return the values that make another one NULL if any of them is, or None if unknown."""
    match value:
        case Call(name, arguments) if name in _STRICT:
            return arguments
        case Cast(argument, _, gently) if not gently:
            return (argument,)
    return None
