"""Parsing of ORDER BY and of OVER, with ESL's additions to a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.primary_parser import PrimaryParser
from millstream.syntax.tokens import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.syntax.tokens import Token

_SIDES = ("PRECEDING", "FOLLOWING")
_PARTS = ("PARTITION", "DISTRIBUTE", "ORDER", "SORT", "ROWS", "RANGE", "SLIDE", "ACTIVE", "EMIT")
_HINT = (
    "a window is PARTITION BY ..., ORDER BY ..., ROWS or RANGE ... PRECEDING, "
    "and then SLIDE, ACTIVE EXPIRATION or EMIT EVERY"
)


class OverParser(PrimaryParser):
    """Parser of OVER."""

    def order(self, value: Callable[[], exp.Expr] | None = None) -> exp.Order:
        """Parse ORDER BY; ``value`` parses a key, by default an expression."""
        first = self.advance()
        self.expect("BY")
        return self.spanned(exp.Order(expressions=self.listed(lambda: self.ordered(value))), first)

    def ordered(self, value: Callable[[], exp.Expr] | None = None) -> exp.Ordered:
        first = self.current
        node = self.expression() if value is None else value()
        direction = self.take("ASC", "DESC")
        descending = direction.key == "DESC" if direction else None
        # As in Spark, NULL is the smallest value by default.
        nulls_first = not descending
        if self.take("NULLS"):
            position = self.take("FIRST", "LAST")
            if position is None:
                self.fail_expecting("FIRST or LAST", ("FIRST", "LAST"))
            nulls_first = position.key == "FIRST"
        return self.spanned(exp.Ordered(this=node, desc=descending, nulls_first=nulls_first), first)

    def over(self, node: exp.Expr, first: Token) -> exp.Window:
        if not self.at("(") and not self.at_name:
            self.fail_expecting("'(' or the name of a window")
        if not self.at("("):
            return self.spanned(exp.Window(this=node, alias=self.name("a window"), over="OVER"), first)
        window = self.window_definition(node)
        window.set("over", "OVER")
        return self.spanned(window, first)

    def window_definition(self, node: exp.Expr) -> exp.Window:
        """Parse ``([name] [PARTITION BY ...] [ORDER BY ...] [frame])``."""
        opening = self.open("(")
        window = exp.Window(this=node)
        if self.at_name and not self.at(*_PARTS):
            window.set("alias", self.name("a window"))
        if self.take("PARTITION", "DISTRIBUTE"):
            self.expect("BY")
            window.set("partition_by", self.listed(self.expression))
        if self.at("ORDER", "SORT"):
            window.set("order", self.order())
        if self.at("ROWS", "RANGE"):
            window.set("spec", self._frame())
        elif self.at("SLIDE", "ACTIVE", "EMIT"):
            hint = "for instance: ROWS 49 PRECEDING SLIDE 10"
            self.fail(f"{self.found()} needs ROWS or RANGE before it", hint=hint)
        if not self.at(")") and not self.at_end:
            self.fail_expecting("')' or more of the window", _PARTS, hint=_HINT)
        self.close(opening)
        return window

    def _frame(self) -> nodes.OverSpec:
        first = self.advance()
        between = self.take("BETWEEN")
        start, start_side = self._bound()
        # `n PRECEDING` is short for BETWEEN n PRECEDING AND CURRENT ROW; the tree has one form.
        end: exp.Expr | str = "CURRENT ROW"
        end_side: str | None = None
        if between:
            self.expect("AND")
            end, end_side = self._bound()
        spec = nodes.OverSpec(kind=first.key, start=start, start_side=start_side, end=end, end_side=end_side)
        while self.at("SLIDE", "ACTIVE", "EMIT"):
            self._frame_clause(spec)
        return self.spanned(spec, first)

    def _frame_clause(self, spec: nodes.OverSpec) -> None:
        clause = self.advance()
        match clause.key:
            case "SLIDE":
                self.set_once(spec, "slide", self._slide("SLIDE"), clause)
            case "ACTIVE":
                self.expect("EXPIRATION")
                self.set_once(spec, "active", True, clause)
            case _:
                self.expect("EVERY")
                self.set_once(spec, "emit", self._slide("EMIT EVERY"), clause)

    def _slide(self, what: str) -> exp.Expr:
        """Parse an amount of tuples or time, or ``RANGE 10``: a distance along a numeric timestamp."""
        along = self.take("RANGE")
        amount = self.quantity(what)
        return amount if along is None else self.spanned(nodes.Along(this=amount), along)

    def _bound(self) -> tuple[exp.Expr | str, str | None]:
        if self.words("CURRENT", "ROW"):
            return "CURRENT ROW", None
        value: exp.Expr | str
        if self.take("UNBOUNDED"):
            value = "UNBOUNDED"
        elif self.current.kind is Kind.NUMBER or self.at("INTERVAL", "-"):
            value = self.quantity("the window")
        else:
            value = self.value()
        side = self.take(*_SIDES)
        if side is None:
            self.fail_expecting("PRECEDING or FOLLOWING", _SIDES)
        return value, side.key
