"""What follows from the conditions of elements: the matrices theta and phi of the search.

A condition that speaks only of the tuple that is asked, of those before it and of constants comes out the
same in every attempt, so it can follow from what an earlier attempt has found. One that speaks of other
elements or of aggregates is different for each attempt. It is never known to hold, but it can be known to
fail, if something else that is asked with it does.
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
"""It holds, it fails, or (None) nobody knows."""

Matrix = tuple[tuple[Known, ...], ...]


# ---------------------------------------------------------------- conditions


def implied(given: Sequence[Expr], wanted: Sequence[Expr]) -> bool:
    """Whether conditions surely hold where others do."""
    return impossible(given, [wanted])


def excluded(given: Sequence[Expr], others: Sequence[Expr]) -> bool:
    """Whether conditions surely do not all hold where others do."""
    return impossible([*given, *others])


def impossible(holding: Sequence[Expr], failing: Sequence[Sequence[Expr]] = ()) -> bool:
    """Whether conditions surely cannot hold while one of each other list does not; NULL does not hold."""
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
    """What an element asks of a tuple, whatever the attempt; ``whole`` if it asks nothing else."""

    always: tuple[Expr, ...]
    whole: bool = True


def conditions_of(element: int, form: Pattern) -> Question:
    return _conditions(form.elements[element].per_tuple, element, form)


def left_conditions(form: Pattern) -> Question:
    """What keeps an attempt from starting behind a tuple: what a leading star asks, aggregates left out."""
    asked = [c for c in form.elements[0].per_tuple if not any(isinstance(p, GroupColumn) for p in walk(c))]
    return _conditions(asked, 0, form)


def _conditions(asked: Sequence[Expr], element: int, form: Pattern) -> Question:
    always = [made for condition in asked if (made := _about_tuple(condition, element, form)) is not None]
    return Question(tuple(always), len(always) == len(asked))


def _about_tuple(condition: Expr, element: int, form: Pattern) -> Expr | None:
    """A condition with columns known by how far their tuples are back, or None if it needs an attempt."""
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
    """What is known of a tuple by what one element has said of it.

    ``theta[j][k]`` is whether element k takes a tuple that j takes, ``phi[j][k]`` whether it takes one that j
    does not take. The last column is about the condition that keeps an attempt from starting behind a tuple
    (semantics, section 5: a leading star is maximal on the left).
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
