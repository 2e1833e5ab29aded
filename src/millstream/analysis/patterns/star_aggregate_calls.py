"""Calls of aggregates in patterns as they are written: what stands around the function and its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from millstream.analysis.types.expression_types import OF_GROUP

SORTED = (*OF_GROUP, "listagg", "string_agg")
"""Aggregates to which it makes a difference in what order they see values."""


@dataclass(frozen=True)
class WrittenCall:
    """A function with its arguments, and what FILTER, WITHIN GROUP, IGNORE NULLS and OVER add to it."""

    call: exp.Expr
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()
    ignore_nulls: bool | None = None
    """None if nothing is said."""

    window: exp.Window | None = None

    @property
    def sorted_by(self) -> list[exp.Expr]:
        """The values that WITHIN GROUP orders by."""
        return [ordered.this for ordered in self.order]

    @property
    def has_more(self) -> bool:
        """Whether there is anything but arguments, OVER aside."""
        return self.condition is not None or bool(self.order) or self.ignore_nulls is not None


def written_call(node: exp.Expr) -> WrittenCall:
    """Take a call apart."""
    window = node if isinstance(node, exp.Window) else None
    call = node if window is None else window.this
    condition: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()
    ignore_nulls: bool | None = None
    while isinstance(call, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(call, exp.Filter):
            condition = call.expression.this
        elif isinstance(call, exp.WithinGroup):
            order = tuple(call.expression.expressions)
        else:
            ignore_nulls = isinstance(call, exp.IgnoreNulls)
        call = call.this
    return WrittenCall(call, condition, order, ignore_nulls, window)
