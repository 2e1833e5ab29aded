"""Conditions that concern one side of a join of windows, and may be asked there."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from millstream.analysis.queries.resolved_expression import Expr
from millstream.plan.nodes import Node, Windowed, WindowJoin, filtered
from millstream.plan.relation_variance import maintained
from millstream.plan.rules.push_filter_below_window import is_askable_below


def divided(
    conditions: Iterable[Expr], join: WindowJoin, sides: Collection[str]
) -> tuple[dict[str, list[Expr]], list[Expr]]:
    """The conditions that one of the sides (``left``, ``right``) takes in, by side, and all others."""
    own: dict[str, list[Expr]] = {"left": [], "right": []}
    others: list[Expr] = []
    for condition in conditions:
        side = next((side for side in sides if _takes(getattr(join, side), condition)), None)
        (others if side is None else own[side]).append(condition)
    return own, others


def with_conditions(join: WindowJoin, own: dict[str, list[Expr]], conditions: Iterable[Expr]) -> WindowJoin:
    """The join with other conditions, and those of its sides asked there."""
    left, right = filtered(join.left, own["left"]), filtered(join.right, own["right"])
    conditions = tuple(conditions)
    kind = "inner" if join.kind == "cross" and conditions else join.kind
    return WindowJoin(left, right, kind, conditions)


def _takes(side: Node, condition: Expr) -> bool:
    """A window takes in what it lets through to its stream; what concerns several is for their join."""
    used = {relation.lower() for relation in condition.relations()}
    if not condition.movable or not used or not used <= {c.relation.lower() for c in side.schema}:
        return False
    windows = [
        node
        for node in maintained(side)
        if isinstance(node, Windowed) and not used.isdisjoint(c.relation.lower() for c in node.schema)
    ]
    return len(used) > 1 or all(is_askable_below(condition, window) for window in windows)
