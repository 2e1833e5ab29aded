"""Parsing of operands: literals, columns, parentheses, CASE."""

from __future__ import annotations

import re
from abc import abstractmethod
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax.interval_parser import IntervalParser
from millstream.syntax.parser_base import RESERVED
from millstream.syntax.tokens import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUFFIXES = {
    "L": exp.DType.BIGINT,
    "S": exp.DType.SMALLINT,
    "Y": exp.DType.TINYINT,
    "D": exp.DType.DOUBLE,
    "F": exp.DType.FLOAT,
}
_NUMBER = re.compile(r"([0-9.]+(?:E[+-]?[0-9]+)?)(L|S|Y|D|F|BD)?", re.IGNORECASE)
_TYPED_LITERALS = {
    "DATE": exp.DType.DATE,
    "TIME": exp.DType.TIME,
    "TIMESTAMP": exp.DType.TIMESTAMPTZ,
    "TIMESTAMP_LTZ": exp.DType.TIMESTAMPLTZ,
    "TIMESTAMP_NTZ": exp.DType.TIMESTAMPNTZ,
}
_MAX_PRECISION = 38


class PrimaryParser(IntervalParser):
    """Parser of expressions without operators."""

    @abstractmethod
    def call(self, name: list[exp.Identifier], first: Token) -> exp.Expr:
        """Parse a call of a function; the cursor is at its parenthesis."""

    def primary(self) -> exp.Expr:
        first = self.current
        node = self._primary()
        while True:
            if first.kind is not Kind.NUMBER and self.take("."):
                node = self.spanned(exp.Dot(this=node, expression=self.field()), first)
            elif self.at("["):
                opening = self.advance()
                index = self.expression()
                self.close(opening)
                node = self.spanned(exp.Bracket(this=node, expressions=[index]), first)
            elif self.take("::"):
                node = self.spanned(exp.Cast(this=node, to=self.datatype()), first)
            elif self.take("COLLATE"):
                node = self.spanned(exp.Collate(this=node, expression=self.name("a collation")), first)
            else:
                return node

    def field(self) -> exp.Identifier:
        """Parse a name after a dot; any word is allowed."""
        if self.current.kind not in (Kind.WORD, Kind.NAME):
            self.fail_expecting(f"a name after {self.found(self.previous)}")
        return self.identifier()

    def _primary(self) -> exp.Expr:
        token = self.current
        match token.kind:
            case Kind.NUMBER:
                return self.number()
            case Kind.TEXT:
                return self._texts()
            case Kind.HEX:
                return self._binary_text()
            case Kind.NAME:
                return self._named()
            case Kind.WORD:
                return self._from_word()
        if token.key == "(":
            return self._parenthesized()
        if token.key == "*":
            hint = "it stands alone in SELECT, or in a call such as count(*)"
            self.fail("did not expect '*' here", hint=hint)
        return self._missing()

    def _missing(self) -> exp.Expr:
        before = f" after {self.found(self.previous)}" if self._index else ""
        self.fail_expecting(f"an expression{before}")

    # ------------------------------------------------------------ literals

    def number(self) -> exp.Expr:
        token = self.advance()
        match = _NUMBER.fullmatch(token.text)
        assert match is not None
        digits, suffix = match[1], (match[2] or "").upper()
        digits = f"0{digits}" if digits.startswith(".") else digits
        if suffix == "BD":
            return self.spanned(self._decimal(digits, token), token)
        literal = self.spanned(exp.Literal.number(digits), token)
        if not suffix:
            return literal
        kind = exp.DataType(this=_SUFFIXES[suffix], nested=False)
        return self.spanned(exp.Cast(this=literal, to=kind), token)

    def _decimal(self, digits: str, token: Token) -> exp.Cast:
        _, figures, exponent = Decimal(digits).as_tuple()
        assert isinstance(exponent, int)
        scale = max(0, -exponent)
        precision = max(len(figures) + max(0, exponent), scale)
        if precision > _MAX_PRECISION:
            self.fail(f"a decimal has at most {_MAX_PRECISION} digits", token)
        sizes = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in (precision, scale)]
        kind = exp.DataType(this=exp.DType.DECIMAL, expressions=sizes, nested=False)
        return exp.Cast(this=self.spanned(exp.Literal.string(digits), token), to=kind)

    def _texts(self) -> exp.Literal:
        """Parse adjacent texts as one."""
        first = self.current
        text = ""
        while self.current.kind is Kind.TEXT:
            text += self.advance().text
        return self.spanned(exp.Literal.string(text), first)

    def _binary_text(self) -> exp.HexString:
        token = self.advance()
        if not re.fullmatch("[0-9a-fA-F]*", token.text):
            self.fail("expected hexadecimal digits, 0 to 9 and A to F", token)
        return self.spanned(exp.HexString(this=token.text), token)

    # ------------------------------------------------------------ words

    def _from_word(self) -> exp.Expr:
        token = self.current
        following = self.peek()
        match token.key:
            case "NULL":
                self.advance()
                return self.spanned(exp.Null(), token)
            case "TRUE" | "FALSE":
                self.advance()
                return self.spanned(exp.Boolean(this=token.key == "TRUE"), token)
            case "CASE":
                return self._case()
            case "INTERVAL" if self.at_interval:
                return self.interval()
        if token.key in _TYPED_LITERALS and following.kind is Kind.TEXT:
            self.advance()
            literal = self.spanned(exp.Literal.string(self.advance().text), following)
            kind = exp.DataType(this=_TYPED_LITERALS[token.key], nested=False)
            return self.spanned(exp.Cast(this=literal, to=kind), token)
        # Functions may be called like and regexp.
        is_function = following.key == "(" and token.key in ("LIKE", "ILIKE", "RLIKE", "REGEXP")
        if (token.key in RESERVED and not is_function) or self.at_values():
            return self._missing()
        return self._named()

    def _named(self) -> exp.Expr:
        """Parse a column or a call, qualified or not."""
        first = self.current
        parts = [self.identifier()]
        while self.at("."):
            if self.peek().key == "*":
                self.fail("did not expect '*' here", self.peek(), hint="name a column")
            self.advance()
            parts.append(self.field())
        if self.at("("):
            return self.call(parts, first)
        node: exp.Expr = self.column_of(parts[:4], first)
        for part in parts[4:]:
            node = exp.Dot(this=node, expression=part)
            self.spanned(node, first)
        return node

    def column_of(self, parts: Sequence[exp.Expr], first: Token) -> exp.Column:
        """Build a column from its parts, the innermost last."""
        names = dict(zip(("this", "table", "db", "catalog"), reversed(parts), strict=False))
        return self.spanned(exp.Column(**names), first)

    # ------------------------------------------------------------ parentheses

    def _parenthesized(self) -> exp.Expr:
        opening = self.open("(")
        if self.at_query():
            node: exp.Expr = exp.Subquery(this=self.query())
        else:
            items = self.listed(self._row_item)
            query = self.continued_query(items)
            if query is not None:
                node = exp.Subquery(this=query)
            elif len(items) > 1 or isinstance(items[0], exp.Alias):
                node = exp.Tuple(expressions=items)
            else:
                node = exp.Paren(this=items[0])
        self.close(opening)
        return self.spanned(node, opening)

    def _row_item(self) -> exp.Expr:
        first = self.current
        node = self.expression()
        if self.take("AS"):
            return self.spanned(exp.Alias(this=node, alias=self.name("a field")), first)
        return node

    # ------------------------------------------------------------ CASE

    def _case(self) -> exp.Expr:
        first = self.advance()
        subject = None if self.at("WHEN") else self.expression()
        branches = []
        while self.at("WHEN"):
            when = self.advance()
            condition = self.expression()
            self.expect("THEN")
            branches.append(self.spanned(exp.If(this=condition, true=self.expression()), when))
        if not branches:
            self.fail_expecting("WHEN", ("WHEN",))
        default = self.expression() if self.take("ELSE") else None
        if not self.take("END"):
            self.fail_expecting("WHEN, ELSE or END", ("WHEN", "ELSE", "END"))
        return self.spanned(exp.Case(this=subject, ifs=branches, default=default), first)
