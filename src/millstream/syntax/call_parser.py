"""Parsing of calls: arguments, and calls with a syntax of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.over_parser import OverParser
from millstream.syntax.spans import set_span, span_of
from millstream.syntax.tokens import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.syntax.tokens import Token


class CallParser(OverParser):
    """Parser of calls of functions and aggregates."""

    def call(self, parts: list[exp.Identifier], first: Token) -> exp.Expr:
        name = parts[-1]
        opening = self.open("(")
        special = None if len(parts) > 1 or name.quoted else _SPECIAL_CALLS.get(first.key)
        if first.key in ("ANY", "SOME", "ALL") and self.at_query():
            special = CallParser._quantified
        if special is not None:
            node = special(self, name.name)
            self.close(opening)
            return self.spanned(node, first)
        arguments = self._arguments(name)
        self.close(opening)
        if len(parts) == 1:
            arguments = _with_unit(name.name, arguments)
        node = exp.Anonymous(this=name if name.quoted else name.name, expressions=arguments)
        node = self.spanned(node, name)
        # sqlglot represents a qualified function as dots that lead to the call.
        if len(parts) > 1:
            node = exp.Dot.build([*parts[:-1], node])
        return self._tail(self.spanned(node, first), first)

    # ------------------------------------------------------------ arguments

    def _arguments(self, name: exp.Identifier) -> list[exp.Expr]:
        if self.at(")"):
            return []
        first = self.current
        if self.take("DISTINCT"):
            arguments = self.listed(self._perhaps_starred)
            return [self.spanned(exp.Distinct(expressions=arguments), first)]
        if self.at("ALL") and self.peek().key not in (")", ",", "."):
            self.advance()
        aliased = name.name.upper() == "STRUCT"
        return self.listed(lambda: self._argument(aliased))

    def _argument(self, aliased: bool) -> exp.Expr:
        first = self.current
        if star := self.star():
            return star
        if starred := self._starred():
            return starred
        if self.is_name(first) and self.peek().key == "->":
            return self._lambda([self.identifier()], first)
        if self._at_parameters():
            return self._lambda(self.wrapped(lambda: self.name("a parameter")), first)
        if first.kind is Kind.WORD and self.peek().key == "=>":
            key = self.spanned(exp.Var(this=self.advance().text), first)
            self.advance()
            return self.spanned(exp.Kwarg(this=key, expression=self.expression()), first)
        node = self.expression()
        if aliased and self.take("AS"):
            return self.spanned(exp.Alias(this=node, alias=self.name("a field")), first)
        return self._nulls(node, first)

    def _starred(self) -> exp.Expr | None:
        """Parse ``*Y``, ``*Y.price`` or ``*Y.price - Y.cost``, the argument of a final aggregate."""
        first = self.current
        if not self.at("*") or not self.is_name(self.peek()):
            return None
        self.advance()
        return self.spanned(nodes.Starred(this=self.expression()), first)

    def _perhaps_starred(self) -> exp.Expr:
        return self._starred() or self.expression()

    def star(self) -> exp.Expr | None:
        """Parse ``*``, ``* EXCEPT (a, b)`` or ``t.*`` for all columns."""
        first = self.current
        distance = 0
        while self.is_name(self.peek(distance)) and self.peek(distance + 1).key == ".":
            distance += 2
        following = self.peek(distance + 1)
        if self.peek(distance).key != "*" or (not distance and self.is_name(following)):
            return None
        parts: list[exp.Expr] = []
        while not self.at("*"):
            parts.append(self.identifier())
            self.advance()
        if len(parts) > 3:
            self.fail("a table has at most a catalog and a schema before its name", first)
        star = exp.Star()
        token = self.advance()
        if self.at("EXCEPT") and self.peek().key == "(" and self.is_name(self.peek(2)):
            self.advance()
            star.set("except_", self.wrapped(lambda: self.column("a column")))
        self.spanned(star, token)
        return self.column_of([*parts, star], first) if parts else star

    def _at_parameters(self) -> bool:
        """Return whether the parameters of a lambda come next: ``(x, y) ->``."""
        distance = 0
        while self.peek(distance).key == ("," if distance else "(") and self.is_name(self.peek(distance + 1)):
            distance += 2
        return distance > 2 and self.peek(distance).key == ")" and self.peek(distance + 1).key == "->"

    def _lambda(self, parameters: list[exp.Identifier], first: Token) -> exp.Lambda:
        self.advance()
        names = {parameter.name.lower() for parameter in parameters}
        body = self.expression().transform(lambda node: _bound(node, names), copy=False)
        return self.spanned(exp.Lambda(this=body, expressions=parameters), first)

    # ------------------------------------------------------------ clauses after a call

    def _tail(self, node: exp.Expr, first: Token) -> exp.Expr:
        if self.words("WITHIN", "GROUP"):
            opening = self.open("(")
            if not self.at_words("ORDER", "BY"):
                self.fail_expecting("ORDER BY")
            node = exp.WithinGroup(this=node, expression=self.order(self._perhaps_starred))
            self.close(opening)
            self.spanned(node, first)
        if self.at("FILTER") and self.peek().key == "(":
            self.advance()
            opening = self.open("(")
            where = self.current
            self.expect("WHERE")
            condition = self.spanned(exp.Where(this=self.expression()), where)
            self.close(opening)
            node = self.spanned(exp.Filter(this=node, expression=condition), first)
        node = self._nulls(node, first)
        if self.take("OVER"):
            node = self.over(node, first)
        return node

    def _nulls(self, node: exp.Expr, first: Token) -> exp.Expr:
        if self.words("IGNORE", "NULLS"):
            return self.spanned(exp.IgnoreNulls(this=node), first)
        if self.words("RESPECT", "NULLS"):
            return self.spanned(exp.RespectNulls(this=node), first)
        return node

    # ------------------------------------------------------------ calls with a syntax of their own

    def _quantified(self, name: str) -> exp.Expr:
        """Parse ``> ALL (SELECT ...)``, which Spark does not have either; analysis explains it."""
        query = exp.Subquery(this=self.query())
        return exp.All(this=query) if name.upper() == "ALL" else exp.Any(this=query)

    def _cast(self, name: str) -> exp.Expr:
        return exp.Cast(**self._cast_arguments())

    def _try_cast(self, name: str) -> exp.Expr:
        return exp.TryCast(**self._cast_arguments(), safe=True)

    def _cast_arguments(self) -> dict[str, exp.Expr]:
        node = self.expression()
        if not self.take("AS"):
            self.fail_expecting("AS and a type", ("AS",))
        return {"this": node, "to": self.datatype()}

    def _extract(self, name: str) -> exp.Expr:
        token = self.current
        if token.kind is not Kind.WORD:
            self.fail_expecting("a part of a date or time, such as YEAR")
        self.advance()
        part = self.spanned(exp.Var(this=token.text.upper()), token)
        self.expect("FROM")
        return exp.Extract(this=part, expression=self.value())

    def _position(self, name: str) -> exp.Expr:
        needle = None if self.at(")") else self.value()
        if self.take("IN"):
            return exp.StrPosition(this=self.value(), substr=needle)
        return self._plain(name, needle, exp.StrPosition, ("substr", "this", "position"))

    def _substring(self, name: str) -> exp.Expr:
        text = None if self.at(")") else self.value()
        if not self.take("FROM"):
            return self._plain(name, text, exp.Substring, ("this", "start", "length"))
        node = exp.Substring(this=text, start=self.value())
        if self.take("FOR"):
            node.set("length", self.value())
        return node

    def _overlay(self, name: str) -> exp.Expr:
        text = None if self.at(")") else self.value()
        if not self.take("PLACING"):
            return self._plain(name, text, exp.Overlay, ("this", "expression", "from_", "for_"))
        node = exp.Overlay(this=text, expression=self.value())
        self.expect("FROM")
        node.set("from_", self.value())
        if self.take("FOR"):
            node.set("for_", self.value())
        return node

    def _trim(self, name: str) -> exp.Expr:
        side = self.take("BOTH", "LEADING", "TRAILING") if self.peek().key not in (")", ",", ".") else None
        first = None if self.at("FROM", ")") else self.value()
        if not side and not self.at("FROM"):
            # In Spark the characters to trim come first in both spellings.
            names = ("expression", "this") if self.at(",") else ("this",)
            return self._plain(name, first, exp.Trim, names)
        self.expect("FROM")
        return exp.Trim(this=self.value(), expression=first, position=side.key if side else None)

    def _plain(
        self, name: str, first: exp.Expr | None, kind: type[exp.Expr], keys: tuple[str, ...]
    ) -> exp.Expr:
        """Build the node from a plain list of arguments; analysis reports a wrong number of them."""
        arguments = [] if first is None else [first]
        while self.take(","):
            arguments.append(self.expression())
        required = sum(kind.arg_types[key] or key in _REQUIRED for key in keys)
        if required <= len(arguments) <= len(keys):
            return kind(**dict(zip(keys, arguments, strict=False)))
        return exp.Anonymous(this=name, expressions=arguments)


# sqlglot supports systems in which a substring needs no start.
_REQUIRED = ("start",)
_SPECIAL_CALLS: dict[str, Callable[[CallParser, str], exp.Expr]] = {
    "CAST": CallParser._cast,
    "TRY_CAST": CallParser._try_cast,
    "EXTRACT": CallParser._extract,
    "POSITION": CallParser._position,
    "SUBSTR": CallParser._substring,
    "SUBSTRING": CallParser._substring,
    "OVERLAY": CallParser._overlay,
    "TRIM": CallParser._trim,
}


_OF_UNITS = frozenset(("DATEADD", "DATE_ADD", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"))
"""Functions of three arguments of which the first is a unit of time."""
_UNITS = frozenset(
    {
        *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"),
        *("DAY", "DAYOFYEAR", "WEEK", "MONTH", "QUARTER", "YEAR"),
    }
)


def _with_unit(name: str, arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Make the first argument of ``datediff(MINUTE, a, b)`` a keyword, as in Spark, not a column."""
    if name.upper() not in _OF_UNITS or len(arguments) != 3:
        return arguments
    unit, *others = arguments
    if not isinstance(unit, exp.Column) or unit.table or unit.this.args.get("quoted"):
        return arguments
    if unit.name.upper() not in _UNITS:
        return arguments
    keyword = exp.Var(this=unit.name)
    set_span(keyword, span_of(unit) or (0, 0))
    return [keyword, *others]


def _bound(node: exp.Expr, names: set[str]) -> exp.Expr:
    """Turn the columns in a lambda that name its parameters into plain names."""
    if not isinstance(node, exp.Column) or node.parts[0].name.lower() not in names:
        return node
    bound = node.to_dot() if node.table else node.this
    set_span(bound, span_of(node) or (0, 0))
    return bound
