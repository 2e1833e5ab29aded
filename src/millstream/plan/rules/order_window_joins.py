"""Join order: joins of several windows begin with the smallest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.nodes import Filter, Node, Project, TableJoin, WindowAggregate, WindowJoin
from millstream.plan.relation_variance import windows_in
from millstream.quantity import size
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, RowWindow, Window

_INNER = ("inner", "cross")


def order_window_joins(node: Node) -> Node:
    """``(a JOIN b) JOIN c`` in the order of their windows, so that the state of the first join is small.

    Inner joins commute and associate (Patroumpas and Sellis, section 5). Reordering changes the order of the
    columns, so it is done below nodes that name their columns.
    """
    return node.map_inputs(_ordered) if isinstance(node, Project | WindowAggregate) else node


def _ordered(node: Node) -> Node:
    if isinstance(node, Filter | TableJoin):
        return node.map_inputs(_ordered)
    if not isinstance(node, WindowJoin):
        return node
    if node.kind not in _INNER:
        return node.map_inputs(_ordered)
    joined = [_ordered(side) for side in _joined(node)]
    conditions = list(_conditions(node))
    if len(joined) < 3 or not all(condition.movable for condition in conditions):
        return node
    return _joined_again(_by_size(joined, conditions), conditions)


def _joined(node: Node) -> list[Node]:
    if isinstance(node, WindowJoin) and node.kind in _INNER:
        return [*_joined(node.left), *_joined(node.right)]
    return [node]


def _conditions(node: Node) -> Iterable[Expr]:
    if isinstance(node, WindowJoin) and node.kind in _INNER:
        yield from _conditions(node.left)
        yield from _conditions(node.right)
        yield from node.conditions


def _by_size(joined: Sequence[Node], conditions: Sequence[Expr]) -> list[Node]:
    """Order windows: the smallest first, then always the smallest that an equality relates to those before.

    Without an equality, any other condition is better than all pairs. Equal sizes keep the written order.
    """
    pending = sorted(joined, key=_size)
    ordered = [pending.pop(0)]
    equalities = [condition for condition in conditions if _is_equality(condition)]
    while pending:
        before = _relations(ordered)
        related = (
            one
            for relating in (equalities, conditions)
            for one in pending
            if any(_relates(condition, before, _relations([one])) for condition in relating)
        )
        following = next(related, pending[0])
        pending.remove(following)
        ordered.append(following)
    return ordered


def _is_equality(condition: Expr) -> bool:
    match condition.parts:
        case (ColumnRef(), str() as text, ColumnRef()):
            return text.strip() == "="
        case _:
            return False


def _relates(condition: Expr, before: frozenset[str], other: frozenset[str]) -> bool:
    used = _lower(condition.relations())
    return used <= before | other and not used.isdisjoint(before) and not used.isdisjoint(other)


def _joined_again(ordered: Sequence[Node], conditions: Sequence[Expr]) -> Node:
    """Join in this order; a condition goes to the first join that has all of its columns."""
    first, *others = ordered
    plan, pending = first, list(conditions)
    for other in others:
        available = _relations([plan, other])
        now = tuple(condition for condition in pending if _lower(condition.relations()) <= available)
        pending = [condition for condition in pending if condition not in now]
        plan = WindowJoin(plan, other, "inner" if now else "cross", now)
    return plan


def _relations(nodes: Iterable[Node]) -> frozenset[str]:
    return _lower(column.relation for node in nodes for column in node.schema)


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _size(node: Node) -> tuple[int, Decimal]:
    return max(map(_window_size, windows_in(node)))


def _window_size(window: Window) -> tuple[int, Decimal]:
    """Return a sort key: kind, then extent.

    The rates of streams are unknown when a plan is made. So windows of n tuples come before windows of time,
    which come before n tuples of an unknown number of partitions; windows that only grow come last.
    """
    match window:
        case NowWindow():
            return 0, Decimal(0)
        case RowWindow(range=reach, partition_by=()):
            return 1, size(reach)
        case RangeWindow(range=reach):
            return 2, size(reach)
        case RowWindow(range=reach):
            return 3, size(reach)
        case LandmarkWindow():
            return 4, Decimal(0)
        case _:
            raise AssertionError(f"{window} has no content at an instant and cannot be joined")
