"""Equivalent attempts: of two with the same future, the older one is enough."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.inference.condition_shape import at_least, measures_in
from millstream.ir import typed_nodes
from millstream.ir.pattern import End, Pattern
from millstream.ir.typed_nodes import Expr


def differences(j: int, code: PatternScope) -> list[StateColumn] | None:
    """Return the state columns of attempts at an element that later conditions read.

    If two attempts at one tuple agree in them, the younger one fails if the older one does, and is dropped if
    that matches. None where the columns are not known, or where there are never two attempts.
    """
    pattern = code.pattern
    first_star = next(
        (e for e, element in enumerate(pattern.elements) if element.star), len(pattern.elements)
    )
    if j < max(first_star, 1):
        return None
    cells: dict[StateColumn, None] = {}
    for condition, is_own_final in _asked_after(j, pattern):
        for part in typed_nodes.walk(condition):
            if isinstance(part, typed_nodes.Column):
                place = pattern.places[part.scan]
                is_first = pattern.elements[place.element].star and place.end is End.FIRST
                if place.element < j or (place.element == j and is_first):
                    cells[code.tuple_cell(place.element, is_first, part.index, place.back)] = None
        large = at_least(condition, pattern) if is_own_final else None
        for m in measures_in(condition):
            # Of a count in the same star, the older attempt has at least as much.
            if m == large and pattern.measures[m].element == j:
                continue
            if pattern.measures[m].element <= j:
                own = code.measures[m].cells()
                if own is None:
                    return None
                cells.update(dict.fromkeys(own))
    return list(cells)


def _asked_after(j: int, pattern: Pattern) -> Iterator[tuple[Expr, bool]]:
    """Yield the later conditions of an attempt at an element, and whether they are its final ones."""
    if pattern.elements[j].star:
        yield from ((condition, False) for condition in pattern.elements[j].per_tuple)
        yield from ((condition, True) for condition in pattern.elements[j].final)
    for later in pattern.elements[j + 1 :]:
        yield from ((condition, False) for condition in (*later.per_tuple, *later.final))
