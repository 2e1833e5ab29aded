"""Parsing of operators and predicates, with the precedence that Spark SQL gives them."""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from millstream.syntax.parser_base import BaseParser
from millstream.syntax.spans import set_span, span_of
from millstream.syntax.tokens import Kind

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token


class _Operator(NamedTuple):
    signs: tuple[str, ...]  # adjacent signs form the operators << >> >>>
    precedence: int
    node: type[exp.Binary]


_OPERATORS = [
    *(
        _Operator((sign,), 1, node)
        for sign, node in {
            "=": exp.EQ,
            "==": exp.EQ,
            "<>": exp.NEQ,
            "!=": exp.NEQ,
            "<=>": exp.NullSafeEQ,
            "<": exp.LT,
            "<=": exp.LTE,
            ">": exp.GT,
            ">=": exp.GTE,
        }.items()
    ),
    _Operator(("|",), 2, exp.BitwiseOr),
    _Operator(("^",), 3, exp.BitwiseXor),
    _Operator(("&",), 4, exp.BitwiseAnd),
    _Operator((">", ">", ">"), 5, exp.BitwiseRightShift),
    _Operator(("<", "<"), 5, exp.BitwiseLeftShift),
    _Operator((">", ">"), 5, exp.BitwiseRightShift),
    _Operator(("+",), 6, exp.Add),
    _Operator(("-",), 6, exp.Sub),
    _Operator(("||",), 6, exp.DPipe),
    _Operator(("*",), 7, exp.Mul),
    _Operator(("/",), 7, exp.Div),
    _Operator(("%",), 7, exp.Mod),
    _Operator(("DIV",), 7, exp.IntDiv),
]
_BY_FIRST_SIGN = {
    sign: sorted((o for o in _OPERATORS if o.signs[0] == sign), key=lambda o: -len(o.signs))
    for sign in {o.signs[0] for o in _OPERATORS}
}
_UNARY = {"-": exp.Neg, "~": exp.BitwiseNot}
_PREDICATES = ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
# A longer chain of ANDs or ORs becomes a balanced tree, which is equivalent and not deep.
_LONG_CHAIN = 32


class OperatorParser(BaseParser):
    """Parser of expressions from OR down to unary minus."""

    @abstractmethod
    def primary(self) -> exp.Expr:
        """Parse an operand: a literal, a column, a call, parentheses."""

    @abstractmethod
    def query(self) -> exp.Query:
        """Parse a query, not in parentheses."""

    @abstractmethod
    def continued_query(self, items: list[exp.Expr]) -> exp.Query | None:
        """Parse the rest of a query that begins with the parenthesized query just read, if there is any."""

    def at_query(self, distance: int = 0) -> bool:
        """Return whether a query begins there; VALUES may also be a name."""
        return self.peek(distance).key in ("SELECT", "WITH") or self.at_values(distance)

    def at_values(self, distance: int = 0) -> bool:
        following = self.peek(distance + 1)
        begins_row = following.key == "(" or following.kind in (Kind.NUMBER, Kind.TEXT)
        return self.peek(distance).key == "VALUES" and begins_row

    # ------------------------------------------------------------ AND, OR, NOT

    def expression(self) -> exp.Expr:
        self.enter()
        operands = [self._conjunction()]
        while self.take("OR"):
            operands.append(self._conjunction())
        self.leave()
        return _chained(exp.Or, operands)

    def condition(self, what: str) -> exp.Expr:
        """Parse an expression; if it is missing, the message asks for ``what``."""
        if self.at_end:
            self.fail_expecting(what)
        return self.expression()

    def _conjunction(self) -> exp.Expr:
        operands = [self._negation()]
        while self.take("AND"):
            operands.append(self._negation())
        return _chained(exp.And, operands)

    def _negation(self) -> exp.Expr:
        negations = []
        while token := self.take("NOT", "!"):
            negations.append(token)
        node = self._predicate()
        for token in reversed(negations):
            node = self.spanned(exp.Not(this=node), token)
        return node

    # ------------------------------------------------------------ predicates

    def _predicate(self) -> exp.Expr:
        """Parse a value and at most one predicate; a second one needs parentheses, as in Spark."""
        if self._at_exists():
            return self._exists()
        node = self.value()
        if self.take("IS"):
            return self._is(node)
        negated = self.at("NOT") and self.peek().key in _PREDICATES
        if negated:
            self.advance()
        keyword = self.take(*_PREDICATES)
        if keyword is None:
            return node
        match keyword.key:
            case "BETWEEN":
                predicate = self._between(node)
            case "IN":
                predicate = self._in(node)
            case "LIKE" | "ILIKE":
                return self._like(node, keyword, negated)
            case _:
                predicate = self.spanned(exp.RegexpLike(this=node, expression=self.value()), node)
        return self.spanned(exp.Not(this=predicate), node) if negated else predicate

    def _at_exists(self) -> bool:
        """Return whether EXISTS and a query come next; there is also a function of that name, for arrays."""
        distance = 1
        while self.at("EXISTS") and self.peek(distance).key == "(":
            distance += 1
        return distance > 1 and self.at_query(distance)

    def _exists(self) -> exp.Exists:
        first = self.advance()
        opening = self.open("(")
        query = self.query()
        self.close(opening)
        return self.spanned(exp.Exists(this=query), first)

    def _is(self, node: exp.Expr) -> exp.Expr:
        negated = bool(self.take("NOT"))
        first = self.current
        if self.words("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.spanned(kind(this=node, expression=self.value()), node)
        value: exp.Expr
        if self.take("NULL", "UNKNOWN"):
            value = exp.Null()
        elif self.take("TRUE", "FALSE"):
            value = exp.Boolean(this=first.key == "TRUE")
        else:
            self.fail_expecting(
                "NULL, TRUE, FALSE or DISTINCT FROM",
                ("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT"),
                hint="two values are compared with =",
            )
        predicate = self.spanned(exp.Is(this=node, expression=self.spanned(value, first)), node)
        return self.spanned(exp.Not(this=predicate), node) if negated else predicate

    def _between(self, node: exp.Expr) -> exp.Expr:
        low = self.value()
        self.expect("AND")
        return self.spanned(exp.Between(this=node, low=low, high=self.value()), node)

    def _in(self, node: exp.Expr) -> exp.Expr:
        opening = self.open("(")
        if self.at(")"):
            self.fail("IN needs at least one value", opening)
        values = [] if self.at_query() else self.listed(self.expression)
        query = self.query() if self.at_query() else self.continued_query(values)
        self.close(opening)
        if query is not None:
            subquery = self.spanned(exp.Subquery(this=query), opening)
            return self.spanned(exp.In(this=node, query=subquery), node)
        return self.spanned(exp.In(this=node, expressions=values), node)

    def _like(self, node: exp.Expr, keyword: Token, negated: bool) -> exp.Expr:
        first = self.current
        quantifier = self.take("ANY", "SOME", "ALL") if self.peek().key == "(" else None
        if quantifier:
            patterns = self._patterns()
            kind = exp.All if quantifier.key == "ALL" else exp.Any
            pattern: exp.Expr = self.spanned(kind(this=patterns), first)
        else:
            pattern = self.value()
        like = exp.Like if keyword.key == "LIKE" else exp.ILike
        predicate: exp.Expr = like(this=node, expression=pattern, negate=negated or None)
        predicate = self.spanned(predicate, node)
        if not quantifier and self.take("ESCAPE"):
            predicate = exp.Escape(this=predicate, expression=self.text("the escape character"))
            return self.spanned(predicate, node)
        return predicate

    def _patterns(self) -> exp.Expr:
        first = self.current
        patterns = self.wrapped(self.expression)
        many = len(patterns) > 1
        return self.spanned(exp.Tuple(expressions=patterns) if many else exp.Paren(this=patterns[0]), first)

    # ------------------------------------------------------------ operators

    def value(self, precedence: int = 0) -> exp.Expr:
        """Parse operators that bind tighter than the precedence, from left to right."""
        node = self._unary()
        while (operator := self._operator()) and operator.precedence > precedence:
            sign = self.current
            for _ in operator.signs:
                self.advance()
            right = self.value(operator.precedence)
            if self.in_body and sign.key in ("+", "-"):
                right = self.old_interval(right)
            node = self.spanned(_binary(operator, node, right), node)
        return node

    @abstractmethod
    def old_interval(self, node: exp.Expr) -> exp.Expr:
        """Parse the papers' ``btime + num_min minutes``."""

    def _operator(self) -> _Operator | None:
        for operator in _BY_FIRST_SIGN.get(self.current.key, ()):
            tokens = [self.peek(i) for i in range(len(operator.signs))]
            touch = all(a.end + 1 == b.start for a, b in pairwise(tokens))
            if touch and tuple(token.key for token in tokens) == operator.signs:
                return operator
        return None

    def _unary(self) -> exp.Expr:
        signs = []
        while token := self.take("-", "+", "~"):
            signs.append(token)
        node = self.primary()
        for sign in reversed(signs):
            if sign.key in _UNARY:
                node = self.spanned(_UNARY[sign.key](this=node), sign)
        return node


def _binary(operator: _Operator, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    if len(operator.signs) == 3:
        # sqlglot has no node for >>>, but Spark has a function.
        return exp.Anonymous(this="shiftrightunsigned", expressions=[left, right])
    node = operator.node(this=left, expression=right)
    # The attributes that sqlglot sets for division and concatenation in Spark's dialect.
    if isinstance(node, exp.Div):
        node.set("typed", False)
        node.set("safe", True)
    elif isinstance(node, exp.DPipe):
        node.set("safe", True)
    return node


def _chained(connector: type[exp.Connector], operands: list[exp.Expr]) -> exp.Expr:
    if len(operands) > _LONG_CHAIN:
        middle = len(operands) // 2
        halves = [_chained(connector, operands[:middle]), _chained(connector, operands[middle:])]
        return _connected(connector, *halves)
    node = operands[0]
    for operand in operands[1:]:
        node = _connected(connector, node, operand)
    return node


def _connected(connector: type[exp.Connector], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    node = connector(this=left, expression=right)
    first, last = span_of(left), span_of(right)
    if first and last:
        set_span(node, (first[0], last[1]))
    return node
