"""The checked form of a sequence pattern: what each element asks of a tuple, names and types settled.

Expressions are those of aggregates' bodies (``ir.typed_nodes``). A column is known by the place of its tuple,
``Column(scan, ...)`` with the number of the place; an aggregate of a star is ``GroupColumn(index)`` with the
number of its measure. Matchers, compilers and EXPLAIN read nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from millstream.ir.typed_nodes import Aggregation, Expr
from millstream.types import Field


class End(Enum):
    """Position of a tuple in an element."""

    NOW = "now"
    """The one that the element is to take, of a plain element or a star; later it is the last one taken."""

    FIRST = "first"
    """While a star grows: the first that it has taken, or the one that it is to take if there is none."""

    LAST = "last"


@dataclass(frozen=True)
class Place:
    """A tuple: one of an element, or so many before that in the partition (``previous``)."""

    element: int
    end: End = End.NOW
    back: int = 0


@dataclass(frozen=True)
class Measure:
    """An aggregate of the tuples that an element takes.

    Its arguments have columns of the tuple that is taken. A running one is known with every tuple of the
    star, that one included; a ``final`` one when the star is complete. ``rows`` is the size of a moving
    window inside the star (``OVER (ROWS n PRECEDING)`` is n + 1), None for all its tuples.
    """

    element: int
    aggregation: Aggregation
    final: bool
    rows: int | None = None


@dataclass(frozen=True)
class Element:
    """A variable with the conditions that belong to it.

    Those ``per_tuple`` are asked of every tuple that it is to take, the ``final`` ones once, when its star is
    complete. All must hold; NULL does not.
    """

    name: str
    star: bool
    per_tuple: tuple[Expr, ...] = ()
    final: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A pattern over tuples with these ``fields``; ``outputs`` are computed from a match."""

    fields: tuple[Field, ...]
    elements: tuple[Element, ...]
    places: tuple[Place, ...]
    measures: tuple[Measure, ...]
    outputs: tuple[Expr, ...]
    returns: tuple[Field, ...]
    each: bool = False
    """True if the outputs are computed with every tuple that the last star takes, and not of matches."""
