"""Implications between the conditions of elements: the matrices theta and phi of the paper.

A condition on the current tuple, its predecessors and constants has the same outcome in every attempt, so it
can follow from the outcomes of an earlier attempt. A condition on other elements or on aggregates depends on
the attempt. It is never known to hold, but it is known to fail if another condition of its element fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from millstream.inference import linear_constraints, order_constraints
from millstream.inference.three_valued_logic import (
    AssumedOutcome,
    Comparison,
    NullTest,
    TooManyError,
    Way,
    all_hold,
    both,
    some_fail,
)
from millstream.ir.pattern import End, Pattern
from millstream.ir.typed_nodes import Call, Case, Cast, Column, Expr, GroupColumn, walk

Known = bool | None
"""A known outcome: True for holds, False for fails, None for unknown."""

Matrix = tuple[tuple[Known, ...], ...]


# ---------------------------------------------------------------- conditions


def implied(given: Sequence[Expr], wanted: Sequence[Expr]) -> bool:
    """Return True if ``given`` provably implies ``wanted``."""
    return impossible(given, [wanted])


def excluded(given: Sequence[Expr], others: Sequence[Expr]) -> bool:
    """Return True if ``given`` and ``others`` provably cannot all hold."""
    return impossible([*given, *others])


def impossible(holding: Sequence[Expr], failing: Sequence[Sequence[Expr]] = ()) -> bool:
    """Return True if conditions cannot all hold while one of each list of ``failing`` fails; NULL fails."""
    try:
        ways = both(all_hold(holding), *map(some_fail, failing))
    except TooManyError:
        return False
    return all(map(_contradicts_itself, ways))


def _contradicts_itself(way: Way) -> bool:
    missing = {literal.value: literal.missing for literal in way if isinstance(literal, NullTest)}
    said = {literal.condition: literal.outcome for literal in way if isinstance(literal, AssumedOutcome)}
    for literal in way:
        if isinstance(literal, NullTest) and missing[literal.value] != literal.missing:
            return True
        if isinstance(literal, AssumedOutcome) and said[literal.condition] is not literal.outcome:
            return True
    compared = [literal for literal in way if isinstance(literal, Comparison)]
    exact = [c for c in compared if linear_constraints.is_exact(c.left.type)]
    return linear_constraints.contradict(exact) or any(
        order_constraints.contradict(c for c in compared if c.left.type == type_)
        for type_ in {c.left.type for c in compared if order_constraints.is_ordered(c.left.type)}
    )


# ---------------------------------------------------------------- elements


@dataclass(frozen=True)
class Question:
    """The conditions of an element that do not depend on the attempt; ``whole`` if it has no others."""

    always: tuple[Expr, ...]
    whole: bool = True


def conditions_of(element: int, form: Pattern) -> Question:
    return _conditions(form.elements[element].per_tuple, element, form)


def left_conditions(form: Pattern) -> Question:
    """Return the conditions of a leading star without aggregates: no attempt starts after its tuples."""
    asked = [c for c in form.elements[0].per_tuple if not any(isinstance(p, GroupColumn) for p in walk(c))]
    return _conditions(asked, 0, form)


def _conditions(asked: Sequence[Expr], element: int, form: Pattern) -> Question:
    always = [made for condition in asked if (made := _about_tuple(condition, element, form)) is not None]
    return Question(tuple(always), len(always) == len(asked))


def _about_tuple(condition: Expr, element: int, form: Pattern) -> Expr | None:
    """Return a condition with the distances back as scan numbers, or None if it depends on the attempt."""
    for part in walk(condition):
        if isinstance(part, GroupColumn):
            return None
        if isinstance(part, Column):
            place = form.places[part.scan]
            if place.element != element or place.end is not End.NOW:
                return None
    made: Expr = _renumbered(condition, [place.back for place in form.places])
    return made


def _renumbered(part: Any, numbers: list[int]) -> Any:
    if isinstance(part, Column):
        return replace(part, scan=numbers[part.scan])
    if isinstance(part, tuple):
        return tuple(_renumbered(inner, numbers) for inner in part)
    if isinstance(part, Call | Cast | Case):
        return replace(part, **{f.name: _renumbered(getattr(part, f.name), numbers) for f in fields(part)})
    return part


# ---------------------------------------------------------------- matrices


@dataclass(frozen=True)
class Implications:
    """Known outcomes of elements for a tuple, given the outcome of one element.

    ``theta[j][k]``: whether element k takes a tuple that j takes; ``phi[j][k]``: whether it takes a tuple
    that j refuses. The last column is for the conditions of a leading star, which is maximal on the left
    (semantics, section 8): they keep an attempt from starting after a tuple.
    """

    theta: Matrix
    phi: Matrix


def implications(form: Pattern) -> Implications:
    elements = [conditions_of(i, form) for i in range(len(form.elements))]
    wanted = [*elements, left_conditions(form)]
    return Implications(
        tuple(tuple(when_it_holds(given, other) for other in wanted) for given in elements),
        tuple(tuple(when_it_fails(given, other) for other in wanted) for given in elements),
    )


def when_it_holds(given: Question, other: Question) -> Known:
    if other.whole and implied(given.always, other.always):
        return True
    return False if excluded(given.always, other.always) else None


def when_it_fails(given: Question, other: Question) -> Known:
    if not given.whole:
        return None
    if implied(other.always, given.always):
        return False
    return True if other.whole and impossible((), [given.always, other.always]) else None
