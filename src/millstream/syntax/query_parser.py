"""Parsing of queries: SELECT, set operations, WITH, ORDER BY and LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax.foreign_syntax import WINDOW_FUNCTIONS
from millstream.syntax.from_parser import RelationParser
from millstream.syntax.tokens import Kind

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token

MODIFIERS = ("ISTREAM", "DSTREAM", "RSTREAM", "CHANGES", "EACH")
_SET_OPERATIONS = {
    "UNION": exp.Union,
    "EXCEPT": exp.Except,
    "MINUS": exp.Except,
    "INTERSECT": exp.Intersect,
}
_ORDERINGS = {
    "ORDER": exp.Order,
    "SORT": exp.Sort,
    "CLUSTER": exp.Cluster,
    "DISTRIBUTE": exp.Distribute,
}
# Words that make the word before them a column: `SELECT istream IS NULL` has no modifier.
_PREDICATES = ("IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
_BEHIND_A_COLUMN = ("FROM", "AS", "IS", "AND", "OR", "DIV", *_PREDICATES)


class QueryParser(RelationParser):
    """Parser of queries."""

    def query(self) -> exp.Query:
        first = self.current
        self.enter()
        with_ = self._with() if self.at("WITH") else None
        node = self._set_operations(self._operand())
        self._organization(node)
        if with_ is not None:
            node.set("with_", with_)
        self.leave()
        return self.spanned(node, first)

    def any_query(self, what: str = "a query") -> exp.Query:
        """Parse a query, in parentheses or not."""
        if not self.at_query() and not self.at("("):
            self.fail_expecting(what, ("SELECT", "WITH"))
        return self.query()

    def continued_query(self, items: list[exp.Expr]) -> exp.Query | None:
        first = items[0]
        if len(items) > 1 or not self.at(*_SET_OPERATIONS, *_ORDERINGS, "LIMIT", "OFFSET"):
            return None
        if isinstance(first, exp.Values):
            first = self._all_of(first)
        if not isinstance(first, exp.Subquery | exp.Select):
            return None
        node = self._set_operations(first)
        self._organization(node)
        return self.spanned(node, first)

    # ------------------------------------------------------------ WITH

    def _with(self) -> exp.With:
        first = self.advance()
        recursive = bool(self.at("RECURSIVE") and self.is_name(self.peek()) and self.advance())
        expressions = self.listed(self._common_table)
        return self.spanned(exp.With(expressions=expressions, recursive=recursive or None), first)

    def _common_table(self) -> exp.CTE:
        first = self.current
        alias = exp.TableAlias(this=self.name("a query in WITH"))
        if self.at("(") and not self.at_query(1):
            alias.set("columns", self.wrapped(lambda: self.name("a column")))
        self.spanned(alias, first)
        if not self.take("AS"):
            self.fail_expecting("AS (query)", ("AS",))
        opening = self.open("(")
        query = self.any_query()
        self.close(opening)
        return self.spanned(exp.CTE(this=query, alias=alias), first)

    # ------------------------------------------------------------ set operations

    def _set_operations(self, node: exp.Query, tight: bool = False) -> exp.Query:
        """Parse set operations from left to right, but INTERSECT before the others."""
        while operation := self.take("INTERSECT") if tight else self.take(*_SET_OPERATIONS):
            quantifier = self.take("ALL", "DISTINCT")
            kind = _SET_OPERATIONS[operation.key]
            right = self._operand()
            if kind is not exp.Intersect and self.at("INTERSECT"):
                inner = self._set_operations(right, tight=True)
                right = self.spanned(exp.Subquery(this=inner), inner)
            distinct = quantifier is None or quantifier.key == "DISTINCT"
            node = self.spanned(kind(this=node, expression=right, distinct=distinct), node)
        return node

    def _operand(self) -> exp.Query:
        if self.at("SELECT"):
            return self._select()
        if self.at_values():
            return self._all_of(self.values())
        if not self.at("("):
            self.fail_expecting(f"a query after {self.found(self.previous)}", ("SELECT", "VALUES"))
        opening = self.advance()
        query = self.any_query()
        self.close(opening)
        return self.spanned(exp.Subquery(this=query), opening)

    def _all_of(self, values: exp.Values) -> exp.Select:
        """Return VALUES as a query for all columns of its rows."""
        if values.args.get("alias") is None:
            values.set("alias", exp.TableAlias(this=exp.to_identifier("_values")))
        return self.spanned(exp.Select(expressions=[exp.Star()], from_=exp.From(this=values)), values)

    # ------------------------------------------------------------ SELECT

    def _select(self) -> exp.Select:
        first = self.advance()
        select = exp.Select()
        if self.current.kind is Kind.HINT:
            hint = self.advance()
            select.set("hint", self.spanned(exp.Hint(expressions=[exp.Var(this=hint.text)]), hint))
        self._quantifiers(select)
        select.set("expressions", self.listed(self._item))
        self._check_item_end()
        if self.at("FROM"):
            self._from(select)
        if self.at("WHERE"):
            select.set("where", self.where())
        if self.at("GROUP"):
            select.set("group", self._group())
        if self.at("HAVING"):
            having = self.advance()
            select.set("having", self.spanned(exp.Having(this=self.expression()), having))
        self._qualify(select)
        if self.at_named_window:
            self.advance()
            select.set("windows", self.listed(self._named_window))
        self._qualify(select)
        return self.spanned(select, first)

    def _qualify(self, select: exp.Select) -> None:
        """Parse QUALIFY, which stands before or after WINDOW."""
        if self.at_qualify:
            first = self.current
            self.advance()
            self.set_once(select, "qualify", self.spanned(exp.Qualify(this=self.expression()), first), first)

    def _quantifiers(self, select: exp.Select) -> None:
        """Parse DISTINCT or ALL, and ISTREAM or another modifier, in either order."""
        quantifier = modifier = None
        while True:
            token = self.current
            if self.at("DISTINCT") or (self.at("ALL") and self._is_modifier()):
                if quantifier:
                    self.fail(f"{token.key} does not go with {quantifier.key}")
                quantifier = self.advance()
                if token.key == "DISTINCT":
                    select.set("distinct", self.spanned(exp.Distinct(), token))
            elif self.at(*MODIFIERS) and self._is_modifier():
                if modifier:
                    self.fail(f"{token.key} does not go with {modifier.key}")
                modifier = self.advance()
                select.set("operation_modifiers", [self.spanned(exp.Var(this=token.key), token)])
            else:
                return

    def _begins_item(self, token: Token) -> bool:
        return token.kind in (Kind.TEXT, Kind.NUMBER, Kind.HEX, Kind.NAME) or (
            token.kind is Kind.WORD and token.key not in _BEHIND_A_COLUMN
        )

    def _is_modifier(self) -> bool:
        """Return whether a modifier comes next: a column may be called istream unless an item follows."""
        following, second = self.peek(), self.peek(2)
        if following.key == "*":
            return second.key in ("FROM", ",", "EXCEPT", ")", ";") or second.kind is Kind.END
        if following.key == "NOT":
            return second.key not in _PREDICATES
        return following.key == "(" or self._begins_item(following)

    def _item(self) -> exp.Expr:
        first = self.current
        if star := self.star():
            return star
        node = self.expression()
        if self.take("AS"):
            if self.at("("):
                names = self.wrapped(lambda: self.name("a column"))
                return self.spanned(exp.Aliases(this=node, expressions=names), first)
            return self.spanned(exp.Alias(this=node, alias=self.name("a column")), first)
        if self.at_alias:
            return self.spanned(exp.Alias(this=node, alias=self.identifier()), first)
        return node

    def _check_item_end(self) -> None:
        """Report anything but a clause after the items, with a hint."""
        if self.comma_hint() and not self.at_clause:
            self.fail_unexpected(self.comma_hint())

    def where(self) -> exp.Where:
        first = self.advance()
        return self.spanned(exp.Where(this=self.expression()), first)

    # ------------------------------------------------------------ GROUP BY, WINDOW

    def _group(self) -> exp.Group:
        first = self.advance()
        self.expect("BY")
        group = exp.Group()
        if self.at("ALL") and not self.is_name(self.peek()):
            self.advance()
            group.set("all", True)
        else:
            group.set("expressions", self.listed(self._grouping))
            self._refuse_name(group.expressions[-1])
        if self.at("WITH") and self.peek().key in ("ROLLUP", "CUBE"):
            self.advance()
            token = self.advance()
            kind = exp.Rollup if token.key == "ROLLUP" else exp.Cube
            group.set(token.key.lower(), [self.spanned(kind(), token)])
        elif self.at_words("GROUPING", "SETS"):
            group.set("grouping_sets", [self._grouping()])
        return self.spanned(group, first)

    def _refuse_name(self, key: exp.Expr) -> None:
        """Refuse AS after a key; most often the key is a window function of Spark."""
        if not self.at("AS"):
            return
        window = WINDOW_FUNCTIONS.get(key.name.lower()) if isinstance(key, exp.Anonymous) else None
        if window is not None:
            self.fail_at(f"{key.name}(...) is not part of ESL", key, hint=window)
        self.fail("a key of GROUP BY has no name", hint="name it in SELECT: SELECT a + b AS c ... GROUP BY c")

    def _grouping(self) -> exp.Expr:
        first = self.current
        if self.words("GROUPING", "SETS"):
            return self.spanned(exp.GroupingSets(expressions=self.wrapped(self._grouping)), first)
        if self.at("ROLLUP", "CUBE") and self.peek().key == "(":
            kind = exp.Rollup if self.advance().key == "ROLLUP" else exp.Cube
            return self.spanned(kind(expressions=self.wrapped(self._grouping)), first)
        if self.at("(") and self.peek().key == ")":
            self.advance()
            self.advance()
            return self.spanned(exp.Tuple(), first)
        return self.expression()

    def _named_window(self) -> exp.Window:
        first = self.current
        name = self.name("a window")
        self.expect("AS")
        return self.spanned(self.window_definition(name), first)

    # ------------------------------------------------------------ ORDER BY, LIMIT

    def _organization(self, node: exp.Query) -> None:
        while self.at(*_ORDERINGS, "LIMIT", "OFFSET"):
            first = self.advance()
            clause: exp.Expr
            match first.key:
                case "LIMIT":
                    clause = exp.Limit(expression=self._limit())
                case "OFFSET":
                    clause = exp.Offset(expression=self.value())
                case "ORDER" | "SORT":
                    self.expect("BY")
                    clause = _ORDERINGS[first.key](expressions=self.listed(self.ordered))
                case _:
                    self.expect("BY")
                    clause = _ORDERINGS[first.key](expressions=self.listed(self.expression))
            self.set_once(node, first.key.lower(), self.spanned(clause, first), first)
        if self.at(*_SET_OPERATIONS):
            self.fail(f"did not expect {self.found()} here", hint="put the query before it in parentheses")

    def _limit(self) -> exp.Expr:
        token = self.take("ALL")
        return self.spanned(exp.Var(this="ALL"), token) if token else self.value()
