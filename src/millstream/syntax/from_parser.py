"""Parsing of FROM: tables, streams with their windows and patterns, joins, subqueries, lateral views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.foreign_syntax import RELATIONS
from millstream.syntax.tokens import Kind
from millstream.syntax.window_parser import WindowParser

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token

_SIDES = ("LEFT", "RIGHT", "FULL")
_KINDS = ("INNER", "CROSS", "OUTER", "SEMI", "ANTI")
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET")
# Other words that may follow an expression or a relation. A misspelt one is first taken for an alias.
_CONTINUATIONS = (
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "CROSS", "LATERAL", "PARTITION", "SEQUENCE"),
    *("AND", "ASC", "DESC", "NULLS", "BETWEEN", "LIKE", "OVER", "FILTER", "WITHIN"),
)
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "IS", "IN", "BETWEEN", "LIKE", "RLIKE")


class RelationParser(WindowParser):
    """Parser of the FROM clause."""

    def _from(self, select: exp.Select) -> None:
        first = self.advance()
        select.set("from_", self.spanned(exp.From(this=self._relation()), first))
        self._joins(select)
        while self.at_words("LATERAL", "VIEW"):
            select.append("laterals", self._lateral_view())

    def _joins(self, node: exp.Expr) -> None:
        while True:
            if self.take(","):
                join = exp.Join(this=self._relation(), kind="CROSS")
                node.append("joins", self.spanned(join, join.this))
            elif self._join_length():
                node.append("joins", self._join())
            else:
                return

    # ------------------------------------------------------------ joins

    def _join_length(self) -> int:
        """Return the number of words that introduce the next join; 0 if there is none."""
        length = 0
        while self.peek(length).key in ("NATURAL", "ASOF", *_SIDES, *_KINDS) and length < 4:
            length += 1
        return length + 1 if self.peek(length).key == "JOIN" else 0

    def _join(self) -> exp.Join:
        first = self.current
        method = self.take("NATURAL", "ASOF")
        side = self.take(*_SIDES)
        method = method or self.take("ASOF")
        kind = self.take(*_KINDS)
        self._check_join(side, kind)
        self.expect("JOIN")
        join = exp.Join(this=self._relation())
        for argument, token in (("method", method), ("side", side), ("kind", kind)):
            if token:
                join.set(argument, token.key)
        if method and method.key == "ASOF" and self.take("MATCH_CONDITION"):
            opening = self.open("(")
            join.set("match_condition", self.expression())
            self.close(opening)
        if self.take("ON"):
            join.set("on", self.expression())
        elif self.take("USING"):
            join.set("using", self.wrapped(lambda: self.name("a column")))
        return self.spanned(join, first)

    def _check_join(self, side: Token | None, kind: Token | None) -> None:
        if kind is None:
            return
        outer = kind.key == "OUTER"
        takes_side = outer or (kind.key in ("SEMI", "ANTI") and side is not None and side.key == "LEFT")
        if (side is not None and not takes_side) or (outer and side is None):
            words = f"{side.key} {kind.key}" if side else kind.key
            hint = "joins are [INNER], CROSS, LEFT, RIGHT and FULL [OUTER], [LEFT] SEMI and [LEFT] ANTI"
            self.fail(f"there is no {words} JOIN", side or kind, hint)

    # ------------------------------------------------------------ relations

    def _relation(self) -> exp.Expr:
        first = self.current
        if self.at("LATERAL") and "(" in (self.peek().key, self.peek(2).key):
            return self._lateral()
        if self.at("("):
            return self._parenthesized_relation()
        if self.at_values():
            return self.values()
        if self.at_words("TABLE", "(") and self.is_name(self.peek(2)) and self.peek(3).key == "(":
            return self._with_alias(self._called_table(), first)
        if self.at_words("UNNEST", "("):
            return self._unnest()
        if not self.at_name:
            self.fail_expecting(f"a stream or a table after {self.found(self.previous)}")
        parts = [self.name("a stream or table")]
        while self.take("."):
            parts.append(self.field())
        if len(parts) > 3:
            self.fail("a table has at most a catalog and a schema before its name", first)
        if self.at("("):
            if parts[-1].name.lower() in RELATIONS:
                self.fail(f"{parts[-1].name}(...) cannot be read", first)
            return self._with_alias(exp.Table(this=self.call(parts, first)), first)
        names: dict[str, Any] = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
        if self.at("[") or self.at_pattern:
            return self._stream(nodes.StreamTable(**names), first)
        table = exp.Table(**names)
        if self.at("TABLESAMPLE"):
            table.set("sample", self._sample())
        return self._with_alias(table, first)

    def _stream(self, table: nodes.StreamTable | nodes.StreamSubquery, first: Token) -> exp.Expr:
        if self.at("["):
            table.set("window", self.stream_window())
        if self.at_pattern:
            table.set("pattern", self.pattern())
            return self.spanned(table, first)
        return self._with_alias(table, first)

    def _with_alias(self, node: exp.Expr, first: Token) -> exp.Expr:
        alias = self._table_alias()
        if alias is not None:
            node.set("alias", alias)
        if alias is not None and self.at("["):
            self.fail("a window stands before the alias", hint="write: stream [window] AS alias")
        return self.spanned(node, first)

    def _table_alias(self) -> exp.TableAlias | None:
        first = self.current
        if self.take("AS"):
            alias = exp.TableAlias(this=self.name("the alias"))
        elif self.at_alias:
            alias = exp.TableAlias(this=self.identifier())
        else:
            return None
        if self.at("("):
            alias.set("columns", self.wrapped(lambda: self.name("a column")))
        return self.spanned(alias, first)

    def _parenthesized_relation(self) -> exp.Expr:
        opening = self.open("(")
        self.enter()
        inner: exp.Expr
        if self.at("SELECT", "WITH"):
            inner = self.query()
        else:
            inner = self._relation()
            # VALUES, or a query in parentheses, may be the first operand of a longer query.
            inner = self.continued_query([inner]) or inner
            if self.at(",") or self._join_length():
                inner = inner if "joins" in inner.arg_types else self.spanned(exp.Table(this=inner), inner)
                self._joins(inner)
        self.close(opening)
        self.leave()
        if isinstance(inner, exp.Values) and inner.args.get("alias") is None:
            return self._with_alias(inner, opening)
        if isinstance(inner, exp.Query) and (self.at("[") or self.at_pattern):
            return self._stream(nodes.StreamSubquery(this=inner), opening)
        return self._with_alias(exp.Subquery(this=inner), opening)

    def values(self) -> exp.Values:
        """Parse ``VALUES (1, 'a'), (2, 'b') AS t(n, s)``."""
        first = self.current
        self.expect("VALUES")
        values = exp.Values(expressions=self.listed(self._values_row))
        alias = self._table_alias()
        if alias is not None:
            values.set("alias", alias)
        return self.spanned(values, first)

    def _values_row(self) -> exp.Tuple:
        first = self.current
        node = self.expression()
        if isinstance(node, exp.Tuple):
            return node
        items = [node.this if isinstance(node, exp.Paren) else node]
        return self.spanned(exp.Tuple(expressions=items), first)

    # ------------------------------------------------------------ LATERAL, TABLESAMPLE

    def _lateral(self) -> exp.Expr:
        first = self.advance()
        if self.at("("):
            opening = self.advance()
            query = self.query()
            self.close(opening)
            this: exp.Expr = self.spanned(exp.Subquery(this=query), opening)
        elif self.at_words("TABLE", "("):
            this = self._called_table()
        elif self.at_words("UNNEST", "("):
            this = self._unnest()
        else:
            this = self._table_function()
        return self._with_alias(exp.Lateral(this=this), first)

    def _called_table(self) -> nodes.TableCall:
        """Parse ``TABLE(f(x))``."""
        first = self.advance()
        opening = self.open("(")
        call = self._table_function()
        self.close(opening)
        return self.spanned(nodes.TableCall(this=call), first)

    def _unnest(self) -> exp.Unnest:
        """Parse ``UNNEST(a) [WITH ORDINALITY] AS q(x, n)`` or ``UNNEST(a) AS x [WITH OFFSET [AS n]]``."""
        first = self.advance()
        opening = self.open("(")
        node = exp.Unnest(expressions=self.listed(self.expression))
        self.close(opening)
        if self.at_words("WITH", "ORDINALITY"):
            self.advance()
            node.set("offset", self.advance().key)
        alias = self._table_alias()
        if alias is not None:
            node.set("alias", alias)
        if self.at_words("WITH", "OFFSET"):
            self.advance()
            node.set("offset", self.advance().key)
            if self.take("AS") or self.at_alias:
                node.set("offset", self.name("the column of places"))
        return self.spanned(node, first)

    def _table_function(self) -> exp.Expr:
        first = self.current
        name = self.name("a function")
        if not self.at("("):
            self.fail_expecting("'('")
        return self.call([name], first)

    def _lateral_view(self) -> exp.Lateral:
        first = self.advance()
        self.advance()
        outer = bool(self.take("OUTER"))
        function = self._table_function()
        token = self.current
        alias = exp.TableAlias(this=self.name("the view"))
        if self.take("AS"):
            alias.set("columns", self.listed(lambda: self.name("a column")))
        alias = self.spanned(alias, token)
        return self.spanned(exp.Lateral(this=function, view=True, outer=outer, alias=alias), first)

    def _sample(self) -> exp.TableSample:
        first = self.advance()
        opening = self.open("(")
        sample = exp.TableSample()
        if self.current.kind is not Kind.NUMBER:
            self.fail_expecting("a number of PERCENT or ROWS")
        size = self.number()
        unit = self.take("PERCENT", "ROWS")
        if unit is None:
            self.fail_expecting("PERCENT or ROWS", ("PERCENT", "ROWS"))
        sample.set("percent" if unit.key == "PERCENT" else "size", size)
        self.close(opening)
        return self.spanned(sample, first)

    # ------------------------------------------------------------ aliases

    @property
    def at_clause(self) -> bool:
        """Return whether the next word begins a clause after a list of items or a relation."""
        following = self.peek()
        match self.current.key:
            case "OFFSET":
                return following.kind is Kind.NUMBER
            case "CLUSTER" | "DISTRIBUTE" | "SORT" | "SEQUENCE" | "PARTITION":
                return following.key == "BY"
            case "LATERAL":
                return following.key == "VIEW"
            case "WINDOW":
                return self.at_named_window
            case "QUALIFY":
                return self.at_qualify
            case "MINUS":
                return self.at_query(1) or following.key in ("ALL", "DISTINCT", "(")
            case "TABLESAMPLE":
                return following.key == "("
        return False

    @property
    def at_alias(self) -> bool:
        """Return whether a name comes next that can only be an alias without AS."""
        return (
            self.at_name
            and not self.at_clause
            and not self._join_length()
            and not self.at_words("MATCH_CONDITION", "(")
        )

    @property
    def at_named_window(self) -> bool:
        """Return whether ``WINDOW w AS (`` comes next; otherwise WINDOW may be a name."""
        return self.at("WINDOW") and self.is_name(self.peek()) and self.peek(2).key == "AS"

    @property
    def at_qualify(self) -> bool:
        """Return whether QUALIFY and a condition come next; otherwise QUALIFY may be a name."""
        following = self.peek()
        begins = self.is_name(following) or following.kind in (Kind.NUMBER, Kind.TEXT)
        return self.at("QUALIFY") and (begins or following.key in ("(", "NOT", "CASE", "-"))

    def fail_unexpected(self, hint: str | None = None) -> NoReturn:
        """Report a token that is not allowed here; the word before it may be misspelt."""
        known = (*_CLAUSES, *_CONTINUATIONS)
        if self.previous.key in ("PARTITION", "SEQUENCE", "SORT", "CLUSTER", "DISTRIBUTE"):
            self.fail_expecting("BY")
        token = self.current
        misspelt = self.similar(known)
        if misspelt is None and self.is_name(self.previous) and not self.at_phrase:
            misspelt = self.similar(known, self.previous)
            token = self.previous if misspelt else token
        if self.at(*_CLAUSES):
            hint = (
                "the order is FROM, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT,"
                " each once at most"
            )
        elif self.at(*_COMPARISONS):
            hint = "put the condition before it in parentheses"
        self.fail(f"did not expect {self.found(token)} here", token, hint=misspelt or hint)
