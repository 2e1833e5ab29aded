"""Patterns at random: plain elements and stars, with conditions of every sort."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from millstream.ir.pattern import Pattern
from millstream.types import BIGINT
from tests.codegen.patterns.forms import Patterns, Term, Variable

_COMPARED = ("<", "<=", ">", ">=", "=", "<>")


def compared(operator: str, a: Any, b: Any) -> Term:
    match operator:
        case "<":
            made = a < b
        case "<=":
            made = a <= b
        case ">":
            made = a > b
        case ">=":
            made = a >= b
        case "=":
            made = a == b
        case _:
            made = a != b
    return made  # type: ignore[no-any-return]


_OF_STARS = (
    "count",
    "running count",
    "sum",
    "running max",
    "ends",
    "first",
    "running later",
    "different",
    "turned",
    "moving",
    "filtered",
    "filtered",
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    stars = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    made = Patterns(" ".join(f"{'*' if s else ''}E{i}" for i, s in enumerate(stars)), v=BIGINT, w=BIGINT)
    variables = made.variables()
    where: list[Term] = []
    for i in range(len(variables)):
        count = draw(st.sampled_from((0, 1, 1, 1, 1, 2, 2)))
        where += [draw(_condition(made, variables, i, stars)) for _ in range(count)]
    select: list[Term] = []
    for variable, star in zip(variables, stars, strict=True):
        select += [variable.first.v, variable.last.w, variable.previous.v]
        if star or draw(st.booleans()):
            select.append(made.measure("count", variable))
            name = draw(st.sampled_from(("sum", "min", "max", "avg", "first", "different", "turned")))
            select.append(made.measure(name, variable, "w"))
            name = draw(st.sampled_from(("sum", "count", "avg", "first", "different", "turned")))
            select.append(made.measure(name, variable, "v", where=draw(_wanted(variable))))
    return made.made(where, draw(st.permutations(select)))


@st.composite
def related_patterns(draw: st.DrawFn) -> Pattern:
    """Patterns in which much follows: mostly falling and rising, above and below, seldom anything else."""
    stars = draw(st.lists(st.booleans(), min_size=2, max_size=5))
    made = Patterns(" ".join(f"{'*' if s else ''}E{i}" for i, s in enumerate(stars)), v=BIGINT, w=BIGINT)
    variables = made.variables()
    where: list[Term] = []
    for i, own in enumerate(variables):
        for kind in draw(st.sampled_from(("v", "v", "v", "c", "c", "vc", "cc", "v+", "c+", "+"))):
            operator = draw(st.sampled_from(_COMPARED))
            if kind == "+":
                where.append(draw(_condition(made, variables, i, stars)))
            else:
                other = own.previous.v if kind == "v" else draw(st.integers(0, 1))
                where.append(compared(operator, own.v, other))
    return made.made(where, [term for one in variables for term in (one.first.w, one.last.w)])


@st.composite
def _condition(draw: st.DrawFn, made: Patterns, variables: list[Variable], i: int, stars: list[bool]) -> Term:
    own = variables[i]
    operator = draw(st.sampled_from(_COMPARED))
    number = draw(st.integers(-1, 2))
    kinds = ["constant", "constant", "previous", "previous", "w", "or"]
    kinds += ["earlier", "earlier", "earlier first", "earlier measure"] if i else []
    kinds += [*_OF_STARS] * stars[i]
    match draw(st.sampled_from(kinds)):
        case "constant":
            return compared(operator, own.v, number)
        case "previous":
            back = own.previous.v if draw(st.booleans()) else own.previous.previous.v
            return compared(operator, own.v, back)
        case "w":
            return compared(operator, own.w - own.v, number)
        case "or":
            return compared(operator, own.v, number) | compared(">", own.w, own.previous.w)
        case "earlier":
            other = variables[draw(st.integers(0, i - 1))]
            return compared(operator, own.v, draw(st.sampled_from((other.v, other.last.w, other.previous.v))))
        case "earlier first":
            return compared(operator, own.v, variables[draw(st.integers(0, i - 1))].first.v + number)
        case "earlier measure":
            other = variables[draw(st.integers(0, i - 1))]
            measure = made.measure(draw(st.sampled_from(("sum", "max", "count"))), other, "v")
            return compared(operator, own.v, measure)
        case "count":
            return compared(operator, made.measure("count", own), number + 1)
        case "running count":
            return compared("<=", made.measure("count", own, running=True), number + 2)
        case "sum":
            return compared(operator, made.measure("sum", own, "v"), number)
        case "running max":
            return compared(operator, made.measure("max", own, "w", running=True), number)
        case "ends":
            return compared(operator, own.first.v, own.last.v)
        case "different":
            return compared(operator, made.measure("different", own, "v"), number)
        case "turned":
            return compared(operator, made.measure("turned", own, "v", running=True), number)
        case "moving":
            name = draw(st.sampled_from(("sum", "max", "count", "turned", "different", "ends")))
            moving = made.measure(name, own, "v", running=True, rows=draw(st.integers(1, 3)))
            return compared(operator, own.w, moving)
        case "filtered":
            name, where = draw(st.sampled_from(("sum", "max", "count", "turned"))), draw(_wanted(own))
            rows = draw(st.sampled_from((None, None, 2, 3)))
            running = rows is not None or draw(st.booleans())
            measure = made.measure(name, own, "v", running=running, rows=rows, where=where)
            return compared(operator, measure, number)
        case "first":
            return compared(operator, own.v, own.first.v)
        case _:
            return compared(operator, own.w, made.measure("sum", own, "v", running=True))


@st.composite
def _wanted(draw: st.DrawFn, own: Variable) -> Term:
    """A FILTER: which tuples of a star count."""
    other = draw(st.sampled_from((own.previous.v, own.v, 0, 1)))
    return compared(draw(st.sampled_from(_COMPARED)), own.w, other)


@st.composite
def failing_patterns(draw: st.DrawFn) -> Pattern:
    """A division by zero may be asked for by each element."""
    stars = [False, *draw(st.lists(st.booleans(), max_size=2))]
    made = Patterns(" ".join(f"{'*' if s else ''}E{i}" for i, s in enumerate(stars)), v=BIGINT, w=BIGINT)
    variables = made.variables()
    where = []
    for i, own in enumerate(variables):
        other = draw(st.sampled_from((own.w, own.previous.w, *(variables[0].v for _ in range(i)))))
        where.append(
            compared(draw(st.sampled_from(_COMPARED)), own.v / other, float(draw(st.integers(-1, 2))))
        )
    return made.made(where, [variables[-1].v / draw(st.sampled_from((variables[-1].w + 1, variables[0].v)))])


def stream(chance: random.Random, length: int = 40) -> list[dict[str, Any]]:
    """Rows of two partitions, most of the first: values that walk a little, and now and then none."""
    rows, v = [], 0
    for _ in range(length):
        v = max(min(v + chance.choice((-1, 0, 0, 1, 1, -1, 2)), 3), -1)
        rows.append(
            {
                "v": None if chance.random() < 0.04 else v,
                "w": None if chance.random() < 0.04 else chance.randint(-1, 2),
                "key": int(chance.random() < 0.1),
            }
        )
    return rows
