"""Parsing of amounts: intervals of time, and quantities such as ``5 MINUTES``, ``100 ROWS`` or ``2.5``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.spans import set_span, span_of
from millstream.syntax.tokens import Kind
from millstream.syntax.type_parser import INTERVAL_UNITS, DataTypeParser

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token

_COUNT = re.compile(r"\s*[+-]?[0-9]*\.?[0-9]+\s*")
_AMOUNT = re.compile(r"\s*([+-]?\s*[0-9]*\.?[0-9]+)\s*([A-Za-z]+)\s*")


class IntervalParser(DataTypeParser):
    """Parser of intervals and quantities."""

    @property
    def at_interval(self) -> bool:
        """Return whether an interval comes next: INTERVAL is a column's name unless an amount follows."""
        following = self.peek()
        if following.kind in (Kind.TEXT, Kind.NUMBER):
            return True
        distance = 2
        if following.key in ("-", "+"):
            distance = 3 if self.peek(2).kind is Kind.NUMBER else 1
        elif following.key == "(":
            distance = self._behind_parenthesis(2)
        elif not self.is_name(following):
            return False
        while self.peek(distance).key == ".":
            distance += 2
        return self.peek(distance).key in INTERVAL_UNITS

    def _behind_parenthesis(self, distance: int) -> int:
        depth = 1
        while depth and self.peek(distance).kind is not Kind.END:
            depth += {"(": 1, ")": -1}.get(self.peek(distance).key, 0)
            distance += 1
        return distance

    def interval(self) -> exp.Expr:
        """Parse ``INTERVAL 5 MINUTES``; several amounts are a sum, in parentheses as it would be printed."""
        first = self.current
        amounts = self.amounts()
        if len(amounts) == 1:
            return self.spanned(amounts[0], first)
        return self.spanned(exp.Paren(this=self.summed(amounts, first)), first)

    def summed(self, amounts: list[exp.Interval], first: Token) -> exp.Expr:
        node: exp.Expr = amounts[0]
        for amount in amounts[1:]:
            node = exp.Add(this=node, expression=amount)
        return self.spanned(node, first)

    def amounts(self) -> list[exp.Interval]:
        """Parse ``INTERVAL '5' MINUTE``, ``INTERVAL 1 HOUR 30 MINUTES``, ``INTERVAL '1 hour 30 minutes'``."""
        self.expect("INTERVAL")
        amounts = self._first_amount()
        while self.current.kind in (Kind.TEXT, Kind.NUMBER) and self.peek().key in INTERVAL_UNITS:
            amounts.append(self._amount(self._count()))
        return amounts

    def _first_amount(self) -> list[exp.Interval]:
        token = self.current
        if token.kind is Kind.TEXT:
            self.advance()
            if self.at_unit:
                return [self._amount(self.spanned(exp.Literal.string(token.text), token))]
            return self._amounts_in_text(token)
        if token.kind is Kind.NUMBER or token.key in ("-", "+"):
            return [self._amount(self._count())]
        return [self._amount(self.primary())]

    def _count(self) -> exp.Literal:
        first = self.current
        sign = "-" if self.at("-") else ""
        self.take("-", "+")
        token = self.current
        if token.kind is not Kind.NUMBER and (sign or token.kind is not Kind.TEXT):
            self.fail_expecting("a number")
        if token.kind is Kind.NUMBER and not token.text[-1].isdigit():
            self.fail(f"did not expect {self.found()} as an amount of time", hint="write a plain number")
        self.advance()
        return self.spanned(exp.Literal.string(f"{sign}{token.text}"), first)

    def _amount(self, count: exp.Expr) -> exp.Interval:
        unit = self.unit_span() if count.is_string else self.unit()
        if count.is_string and isinstance(unit, exp.Var) and not _COUNT.fullmatch(count.name):
            self.fail_at(f"expected a number of {unit.name} but found '{count.name}'", count)
        return self.spanned(exp.Interval(this=count, unit=unit), count)

    def _amounts_in_text(self, token: Token) -> list[exp.Interval]:
        amounts = []
        rest = token.text
        while match := _AMOUNT.match(rest):
            if match[2].upper() not in INTERVAL_UNITS:
                break
            count = exp.Literal.string("".join(match[1].split()).removeprefix("+"))
            amounts.append(exp.Interval(this=count, unit=exp.Var(this=match[2].upper())))
            rest = rest[match.end() :]
        if rest or not amounts:
            self.fail(
                f"{self.found(token)} is not an interval",
                token,
                hint="write INTERVAL '5' MINUTE or INTERVAL '1 hour 30 minutes'",
            )
        return [self.spanned(amount, token) for amount in amounts]

    def old_interval(self, node: exp.Expr) -> exp.Expr:
        if not self.at_unit or node.is_string or not isinstance(node, exp.Column | exp.Literal | exp.Paren):
            return node
        count: exp.Expr = node
        if isinstance(node, exp.Literal):
            count = exp.Literal.string(node.name)
            set_span(count, span_of(node) or (0, 0))
        return self._amount(count)

    # ------------------------------------------------------------ quantities

    def quantity(self, what: str) -> exp.Expr:
        """Parse ``INTERVAL '5' MINUTE``, ``5 MINUTES``, ``1 HOUR 30 MINUTES``, ``100 ROWS``, ``-2.5``."""
        first = self.current
        if self.at("INTERVAL"):
            amounts = self.amounts()
            while self.at("+") and self.peek().key == "INTERVAL":
                self.advance()
                amounts += self.amounts()
            return self.summed(amounts, first)
        if first.kind is not Kind.NUMBER and not (self.at("-") and self.peek().kind is Kind.NUMBER):
            self.fail_expecting(f"a number, an interval or n ROWS for {what}")
        if self.peek(1 + self.at("-")).key in INTERVAL_UNITS:
            amounts = [self._amount(self._count())]
            while self.current.kind is Kind.NUMBER and self.peek().key in INTERVAL_UNITS:
                amounts.append(self._amount(self._count()))
            return self.summed(amounts, first)
        number = self._signed_number()
        if self.take("ROW", "ROWS"):
            return self.spanned(nodes.RowCount(this=number), first)
        return number

    def _signed_number(self) -> exp.Expr:
        first = self.current
        negative = self.take("-")
        token = self.advance()
        if not token.text[-1].isdigit() and token.text[-1] != ".":
            self.fail(f"did not expect {self.found(token)} as a quantity", token, hint="write a plain number")
        number = self.spanned(exp.Literal.number(token.text), token)
        return self.spanned(exp.Neg(this=number), first) if negative else number
