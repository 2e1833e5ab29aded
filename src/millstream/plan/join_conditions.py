"""Conditions of joins of windows: those of one side alone, equal columns, and the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import Output
from millstream.analysis.types.coercion import common_type
from millstream.plan import nodes
from millstream.plan.relation_variance import ISTREAM, maintained
from millstream.plan.rules.push_filter_below_window import is_askable_below
from millstream.plan.time_attributes import attribute_beside_time
from millstream.types import BOOLEAN, Type
from millstream.windows.window_properties import is_contextual, is_of_time, slides
from millstream.windows.window_spec import LandmarkWindow


@dataclass(frozen=True)
class EqualColumns:
    """Columns of the left and the right side that must be equal, compared as values of a type."""

    left: ColumnRef
    right: ColumnRef
    type: Type


@dataclass(frozen=True)
class JoinConditions:
    """Conditions of a join: those that concern the left or the right side alone, equal columns, the rest."""

    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    equal: tuple[EqualColumns, ...]
    rest: tuple[Expr, ...]

    @property
    def with_keys(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        """The conditions of both sides, and that there is a value to compare: what is NULL equals nothing."""
        return (
            (*self.left, *(_is_present(one.left) for one in self.equal)),
            (*self.right, *(_is_present(one.right) for one in self.equal)),
        )


def join_conditions(conditions: Iterable[Expr], left: nodes.Node, right: nodes.Node) -> JoinConditions:
    """Divide the conditions of a join."""
    own: tuple[list[Expr], list[Expr]] = [], []
    equal, rest = [], []
    for condition in conditions:
        at = [i for i, side in enumerate((left, right)) if _concerns(condition, side)]
        if at and condition.movable:
            own[at[0]].append(condition)
        elif (same := _equality(condition, left, right)) is not None:
            equal.append(same)
        else:
            rest.append(condition)
    return JoinConditions(tuple(own[0]), tuple(own[1]), tuple(equal), tuple(rest))


def equal_columns(
    conditions: Iterable[Expr], left: nodes.Node, right: nodes.Node
) -> tuple[tuple[EqualColumns, ...], tuple[Expr, ...]]:
    """Divide conditions that are all asked of pairs into equal columns and the rest."""
    found = [(condition, _equality(condition, left, right)) for condition in conditions]
    equal = tuple(same for _, same in found if same is not None)
    return equal, tuple(condition for condition, same in found if same is None)


# ---------------------------------------------------------------- sides of a join in a logical plan


def divided(
    conditions: Iterable[Expr], join: nodes.WindowJoin, sides: Collection[str]
) -> tuple[dict[str, list[Expr]], list[Expr]]:
    """Return the conditions that one of the sides (``left``, ``right``) takes in, by side, and all others."""
    own: dict[str, list[Expr]] = {"left": [], "right": []}
    others: list[Expr] = []
    for condition in conditions:
        side = next((side for side in sides if _takes(getattr(join, side), condition)), None)
        (others if side is None else own[side]).append(condition)
    return own, others


def with_conditions(
    join: nodes.WindowJoin, own: dict[str, list[Expr]], conditions: Iterable[Expr]
) -> nodes.WindowJoin:
    """Return the join with other conditions, and those of its sides asked there."""
    left, right = nodes.filtered(join.left, own["left"]), nodes.filtered(join.right, own["right"])
    conditions = tuple(conditions)
    kind = "inner" if join.kind == "cross" and conditions else join.kind
    return nodes.WindowJoin(left, right, kind, conditions)


def _takes(side: nodes.Node, condition: Expr) -> bool:
    """Tell whether a side takes in a condition: of several relations, or one that its window lets through."""
    used = {relation.lower() for relation in condition.relations()}
    if not condition.movable or not used or not used <= {c.relation.lower() for c in side.schema}:
        return False
    windows = [
        node
        for node in maintained(side)
        if isinstance(node, nodes.Windowed) and not used.isdisjoint(c.relation.lower() for c in node.schema)
    ]
    return len(used) > 1 or all(is_askable_below(condition, window) for window in windows)


# ---------------------------------------------------------------- joins of windows that do not slide


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: its window, and the conditions on this side alone.

    The conditions are tested before the window, which is equivalent for windows of time.
    """

    windowed: nodes.Windowed
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class WindowJoinParts:
    """An append-only join of two windows, which emits pairs as they enter."""

    left: JoinSide
    right: JoinSide
    equal: tuple[EqualColumns, ...]
    rest: tuple[Expr, ...]
    outputs: tuple[Output, ...]

    def wanted(self) -> list[ColumnRef]:
        """Return the columns of a pair that conditions or outputs use."""
        exprs = (*self.rest, *(output.expr for output in self.outputs))
        return list(dict.fromkeys(column for expr in exprs for column in expr.columns()))


def joined(node: nodes.RelationToStream) -> WindowJoinParts | None:
    """Return the parts of a result that is an append-only join of two windows, else None."""
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
    parts = join_conditions([*conditions, *below.conditions], *sides)
    left, right = (_side(side, own) for side, own in zip(sides, parts.with_keys, strict=True))
    return WindowJoinParts(left, right, parts.equal, parts.rest, project.outputs)


def _fits(side: nodes.Node) -> bool:
    """Return whether tuples enter a side one by one and leave it in the order of their entry."""
    if not isinstance(side, nodes.Windowed):
        return False
    is_plain = not is_contextual(side.window) and attribute_beside_time(side) is None
    return is_plain and is_of_time(side.window) and not slides(side.window)


def _side(side: nodes.Node, conditions: Iterable[Expr]) -> JoinSide:
    assert isinstance(side, nodes.Windowed)
    return JoinSide(side, (*conditions, *bounds(side)))


def bounds(side: nodes.Windowed) -> Iterable[Expr]:
    """Yield the bounds of a landmark window as conditions on its attribute."""
    window = side.window
    if not isinstance(window, LandmarkWindow):
        return
    until = "<=" if window.inclusive else "<"
    for bound, comparison in ((window.start, ">="), (window.end, until)):
        if bound is not None:
            attribute = next(c for c in side.input.schema if c.name == window.attribute)
            yield Expr((attribute, f" {comparison} {bound}"), BOOLEAN)


def _concerns(condition: Expr, side: nodes.Node) -> bool:
    columns = list(condition.columns())
    return bool(columns) and set(columns) <= set(side.schema)


def _equality(condition: Expr, left: nodes.Node, right: nodes.Node) -> EqualColumns | None:
    """Return the columns of a condition that only compares a column of each side, else None."""
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


def _is_present(column: ColumnRef) -> Expr:
    return Expr((column, " IS NOT NULL"), BOOLEAN)
