"""Joins of windows in the form in which they are run: two streams, what must be equal, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.types.coercion import common_type
from millstream.plan import nodes
from millstream.plan.relation_variance import ISTREAM
from millstream.types import BOOLEAN, Type
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, slides


@dataclass(frozen=True)
class JoinSide:
    """One of the two: its window, and conditions that concern it alone.

    They are asked before the window, which for windows of time is the same.
    """

    windowed: nodes.Windowed
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class EqualColumns:
    """Columns of the left and the right side that must be equal, compared as values of a type."""

    left: ColumnRef
    right: ColumnRef
    type: Type


@dataclass(frozen=True)
class WindowJoinParts:
    """A join of two windows that gives pairs as they enter."""

    left: JoinSide
    right: JoinSide
    equal: tuple[EqualColumns, ...]
    rest: tuple[Expr, ...]
    outputs: tuple[Output, ...]

    def wanted(self) -> list[ColumnRef]:
        """The columns of a pair that somebody asks for."""
        exprs = (*self.rest, *(output.expr for output in self.outputs))
        return list(dict.fromkeys(column for expr in exprs for column in expr.columns()))


def joined(node: nodes.RelationToStream) -> WindowJoinParts | None:
    """The form of a result that can be run at all, if it is such a join."""
    project = node.input
    if node.kind != ISTREAM or not isinstance(project, nodes.Project):
        return None
    conditions: list[Expr] = []
    below = project.input
    while isinstance(below, nodes.Filter):
        conditions += below.conditions
        below = below.input
    if not isinstance(below, nodes.WindowJoin) or below.kind not in ("inner", "cross"):
        return None
    sides = below.left, below.right
    if not all(map(_fits, sides)):
        return None
    conditions += below.conditions
    own: tuple[list[Expr], list[Expr]] = [], []
    equal, rest = [], []
    for condition in conditions:
        at = [i for i, side in enumerate(sides) if condition.movable and _concerns(condition, side)]
        if at:
            own[at[0]].append(condition)
        elif (same := equality(condition, *sides)) is not None:
            equal.append(same)
        else:
            rest.append(condition)
    for one in equal:
        # What is NULL equals nothing.
        own[0].append(_is_there(one.left))
        own[1].append(_is_there(one.right))
    left, right = (_side(side, mine) for side, mine in zip(sides, own, strict=True))
    return WindowJoinParts(left, right, tuple(equal), tuple(rest), project.outputs)


def _fits(side: nodes.Node) -> bool:
    """Whether tuples enter a side one by one, and leave it in the order in which they entered."""
    if not isinstance(side, nodes.Windowed):
        return False
    return isinstance(side.window, NowWindow | LandmarkWindow | RangeWindow) and not slides(side.window)


def _side(side: nodes.Node, conditions: Sequence[Expr]) -> JoinSide:
    assert isinstance(side, nodes.Windowed)
    return JoinSide(side, (*conditions, *bounds(side)))


def bounds(side: nodes.Windowed) -> Iterable[Expr]:
    """A landmark window as conditions on its attribute."""
    window = side.window
    if not isinstance(window, LandmarkWindow):
        return
    for bound, comparison in ((window.start, ">="), (window.end, "<")):
        if bound is not None:
            attribute = next(c for c in side.input.schema if c.name == window.attribute)
            yield Expr((attribute, f" {comparison} {bound}"), BOOLEAN)


def _concerns(condition: Expr, side: nodes.Node) -> bool:
    columns = list(condition.columns())
    return bool(columns) and set(columns) <= set(side.schema)


def equality(condition: Expr, left: nodes.Node, right: nodes.Node) -> EqualColumns | None:
    """A condition that is nothing but the equality of a column on each side."""
    match condition.parts:
        case (ColumnRef() as one, str() as text, ColumnRef() as other) if text.strip() == "=":
            if one in right.schema and other in left.schema:
                one, other = other, one
            if one not in left.schema or other not in right.schema:
                return None
            type_ = common_type(_typed(one, left), _typed(other, right))
            return None if type_ is None else EqualColumns(one, other, type_)
    return None


def _typed(column: ColumnRef, side: nodes.Node) -> Type:
    return next(c.type for c in side.schema if c == column)


def _is_there(column: ColumnRef) -> Expr:
    return Expr((*of_column(column).parts, " IS NOT NULL"), BOOLEAN)
