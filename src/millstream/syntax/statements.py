"""Parsing of statements: which one it is, and the ones about streams, tables, sinks and housekeeping."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from millstream.syntax import nodes
from millstream.syntax.aggregates import AggregateParser

SHOWABLE = ("STREAMS", "TABLES", "SINKS", "VIEWS", "FUNCTIONS", "AGGREGATES", "QUERIES")
DROPPABLE = ("STREAM", "TABLE", "SINK", "VIEW", "FUNCTION", "AGGREGATE", "QUERY")
EXPLAIN_MODES = ("LOGICAL", "PHYSICAL", "CODE", "PATTERN")
_STATEMENTS = (
    "a statement is a query, CREATE, SPLIT STREAM, INSERT INTO, EXPLAIN, SHOW, DESCRIBE, DROP or SET"
)
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)


class EslParser(AggregateParser):
    """The parser of ESL."""

    OPERATION_MODIFIERS = {"ISTREAM", "DSTREAM", "RSTREAM", "CHANGES"}

    def _match_texts(self, texts: Any, advance: bool = True) -> bool | None:
        # A column may be called istream: it is a modifier only where another expression follows.
        if texts is self.OPERATION_MODIFIERS and not self._modifier_ahead():
            return None
        return super()._match_texts(texts, advance=advance)

    def _modifier_ahead(self) -> bool:
        following = self._tokens[self._index + 1] if self._index + 1 < len(self._tokens) else None
        if following is None or following.token_type in _AFTER_A_COLUMN:
            return False
        if following.token_type is TokenType.STAR:
            after = self._tokens[self._index + 2 : self._index + 3]
            return bool(after) and after[0].token_type in (TokenType.FROM, TokenType.COMMA)
        return True

    def _parse_statement(self) -> exp.Expr | None:
        first = self._curr
        if not first:
            return None
        if self._match_set(_QUERY_STARTS, advance=False):
            return self.query()
        if self._match(TokenType.CREATE):
            return self._parse_create_statement(first)
        # The papers leave CREATE out.
        if self._curr.text.upper() in ("STREAM", "TABLE", "AGGREGATE", "WINDOW"):
            return self._parse_created(first)
        if self.words("SPLIT"):
            return self._parse_split(first)
        if self._match(TokenType.INSERT):
            return self.parse_insert(first)
        if self.words("EXPLAIN"):
            return self._parse_explain(first)
        if self.words("SHOW"):
            return self._parse_show(first)
        if self.words("DESCRIBE") or self.words("DESC"):
            return self.spanned(nodes.DescribeEntry(this=self.name("what to describe")), first)
        if self.words("DROP"):
            return self._parse_dropped(first)
        if self.words("SET"):
            return self._parse_option_setting(first)
        self.fail(f"did not expect {self.found()} at the beginning of a statement", hint=_STATEMENTS)

    # ------------------------------------------------------------ CREATE

    def _parse_create_statement(self, first: Token) -> exp.Expr:
        replace = self.words("OR", "REPLACE")
        node = self._parse_created(first)
        if replace:
            node.set("replace", True)
        return node

    def _parse_created(self, first: Token) -> exp.Expr:
        if self.words("STREAM"):
            return self._parse_stream_definition(first)
        if self.words("TABLE"):
            return self._parse_table_definition(first)
        if self.words("SINK"):
            return self._parse_sink(first)
        if self.words("VIEW"):
            exists = self._parse_if_not_exists()
            view = nodes.CreateView(this=self.name("the view"), exists=exists)
            view.set("query", self._parse_as_query())
            return self.spanned(view, first)
        if self.words("FUNCTION"):
            return self.parse_function(first)
        window = self.words("WINDOW")
        if self.words("AGGREGATE"):
            return self.parse_aggregate(first, window)
        self.fail(
            f"cannot create {self.found()}",
            hint="CREATE takes STREAM, TABLE, SINK, VIEW, FUNCTION, AGGREGATE or WINDOW AGGREGATE",
        )

    def _parse_if_not_exists(self) -> bool | None:
        return self.words("IF", "NOT", "EXISTS") or None

    def _parse_as_query(self) -> exp.Query:
        if not self._match(TokenType.ALIAS):
            self.fail(f"expected AS and a query but found {self.found()}")
        return self.query()

    def _parse_stream_definition(self, first: Token) -> nodes.CreateStream:
        exists = self._parse_if_not_exists()
        node = nodes.CreateStream(this=self.name("the stream"), exists=exists)
        if self._match(TokenType.L_PAREN, advance=False):
            node.set("columns", self.wrapped(self.column_declaration))
        while self._curr:
            if self._match(TokenType.ALIAS, advance=False):
                node.set("query", self._parse_as_query())
                break
            self._parse_stream_clause(node)
        return self.spanned(node, first)

    def _parse_stream_clause(self, node: nodes.CreateStream) -> None:
        first = self._curr
        if self._match(TokenType.ORDER_BY):
            self._set_once(node, "order_by", self.column("the timestamp column"), first)
        elif self._match(TokenType.USING):
            self._set_once(node, "format", self._parse_format(), first)
        elif self.words("OPTIONS"):
            self._set_once(node, "options", self._parse_options(), first)
        elif self.words("SOURCE"):
            self._set_once(node, "source", self.string("the source, such as 'port4445',"), first)
        elif self.words("LATE"):
            late = nodes.Late() if self.words("DROP") else self._parse_late()
            self._set_once(node, "late", self.spanned(late, first), first)
        elif self.words("BAD"):
            self.expect("INTO")
            self._set_once(node, "bad", self.name("the stream of bad records"), first)
        else:
            node.append("clauses", self._parse_disorder_clause())

    def _parse_late(self) -> nodes.Late:
        self.expect("INTO")
        return nodes.Late(this=self.name("the stream of late tuples"))

    def _parse_disorder_clause(self) -> exp.Expr:
        first = self._curr
        node: exp.Expression
        if self.words("SLACK"):
            node = nodes.Slack(this=self.quantity("SLACK"))
            if self._match_texts(("GENEROUS", "CONSISTENT")):
                node.set("mode", self._prev.text.upper())
        elif self.words("ORDERED", "PER"):
            node = nodes.OrderedPer(expressions=self.wrapped(lambda: self.column("a column")))
            if self.words("IDLE", "AFTER"):
                node.set("idle", self.quantity("IDLE AFTER"))
        elif self.words("PUNCTUATED", "BY"):
            self.expect_token(TokenType.L_PAREN, "(")
            node = nodes.PunctuatedBy(this=self.condition("a predicate"))
            self.expect_token(TokenType.R_PAREN, ")")
            if self.words("PER"):
                node.set("per", self.wrapped(lambda: self.column("a column")))
        elif self.words("HEARTBEAT"):
            node = nodes.Heartbeat(this=self.quantity("HEARTBEAT"))
        else:
            self.fail(
                f"did not expect {self.found()} in CREATE STREAM",
                hint="its clauses are ORDER BY, USING, OPTIONS, SOURCE, SLACK, ORDERED PER, PUNCTUATED BY, "
                "HEARTBEAT, LATE INTO, LATE DROP, BAD INTO and AS",
            )
        if self._match(TokenType.ON):
            node.set("on", self.column("an attribute"))
        return self.spanned(node, first)

    def _set_once(self, node: exp.Expression, argument: str, value: Any, first: Token) -> None:
        if node.args.get(argument) is not None:
            self.fail(f"{argument.upper().replace('_', ' ')} is given twice", first)
        node.set(argument, value)

    def _parse_table_definition(self, first: Token) -> nodes.CreateTable:
        exists = self._parse_if_not_exists()
        node = nodes.CreateTable(this=self.name("the table"), exists=exists)
        if self._match(TokenType.L_PAREN, advance=False):
            node.set("columns", self.wrapped(self.column_declaration))
        while self._curr:
            clause = self._curr
            if self._match(TokenType.ALIAS, advance=False):
                node.set("query", self._parse_as_query())
                break
            if self._match(TokenType.USING):
                self._set_once(node, "format", self._parse_format(), clause)
            elif self.words("OPTIONS"):
                self._set_once(node, "options", self._parse_options(), clause)
            else:
                self.fail(
                    f"did not expect {self.found()} in CREATE TABLE",
                    hint="its clauses are USING format, OPTIONS (...) and AS query",
                )
        return self.spanned(node, first)

    def _parse_sink(self, first: Token) -> nodes.CreateSink:
        exists = self._parse_if_not_exists()
        node = nodes.CreateSink(this=self.name("the sink"), exists=exists)
        self.expect("USING")
        node.set("format", self._parse_format())
        if self.words("OPTIONS"):
            node.set("options", self._parse_options())
        return self.spanned(node, first)

    def _parse_format(self) -> exp.Identifier:
        """A Spark format: ``csv``, or the dotted name of a class."""
        first = self._curr
        parts = [self.name("a format").name]
        while self._match(TokenType.DOT):
            parts.append(self.name("a format").name)
        return self.spanned(exp.to_identifier(".".join(parts)), first)

    def _parse_options(self) -> list[nodes.Option]:
        if self._match_pair(TokenType.L_PAREN, TokenType.R_PAREN):
            return []
        return self.wrapped(self._parse_option)

    def _parse_option(self) -> nodes.Option:
        """``path 'x.csv'``, ``header = true``, ``kafka.bootstrap.servers '...'``."""
        first = self._curr
        if self._match(TokenType.STRING):
            key = self._prev.text
        else:
            parts = [self.name("an option").name]
            while self._match(TokenType.DOT):
                parts.append(self.name("an option").name)
            key = ".".join(parts)
        self._match(TokenType.EQ)
        value = self._parse_constant(f"the value of option '{key}'")
        return self.spanned(nodes.Option(this=exp.Literal.string(key), value=value), first)

    def _parse_constant(self, what: str) -> exp.Expr:
        first = self._curr
        negative = bool(self._match(TokenType.DASH))
        if self._match(TokenType.NUMBER):
            text = f"-{self._prev.text}" if negative else self._prev.text
            return self.spanned(exp.Literal.string(text), first)
        if not negative and self._match_set((TokenType.STRING, TokenType.TRUE, TokenType.FALSE)):
            return self.spanned(exp.Literal.string(self._prev.text), first)
        self.fail(f"expected {what} but found {self.found()}", hint="texts stand in 'quotes'")

    # ------------------------------------------------------------ the rest

    def _parse_split(self, first: Token) -> nodes.SplitStream:
        self.expect("STREAM")
        node = nodes.SplitStream(this=self.name("the stream to split"))
        self.expect("INTO")
        node.set("branches", self.listed(self._parse_branch))
        return self.spanned(node, first)

    def _parse_branch(self) -> nodes.Branch:
        first = self._curr
        branch = nodes.Branch(this=self.name("a branch"))
        if not self._match(TokenType.ALIAS):
            self.fail(f"expected AS (query) but found {self.found()}")
        self.expect_token(TokenType.L_PAREN, "(")
        branch.set("query", self.query())
        self.expect_token(TokenType.R_PAREN, ")")
        return self.spanned(branch, first)

    def _parse_explain(self, first: Token) -> nodes.Explain:
        mode = self._prev.text.upper() if self._match_texts(EXPLAIN_MODES) else None
        return self.spanned(nodes.Explain(this=self.query(), mode=mode), first)

    def _parse_show(self, first: Token) -> nodes.ShowEntries:
        if not self._match_texts(SHOWABLE):
            self.fail(f"cannot show {self.found()}", hint=f"SHOW takes {', '.join(SHOWABLE)}")
        return self.spanned(nodes.ShowEntries(this=self._prev.text.upper()), first)

    def _parse_dropped(self, first: Token) -> nodes.DropEntry:
        window = self.words("WINDOW")
        if not self._match_texts(("AGGREGATE",) if window else DROPPABLE):
            self.fail(f"cannot drop {self.found()}", hint=f"DROP takes {', '.join(DROPPABLE)}")
        kind = f"WINDOW {self._prev.text.upper()}" if window else self._prev.text.upper()
        exists = self.words("IF", "EXISTS") or None
        return self.spanned(nodes.DropEntry(this=self.name("what to drop"), kind=kind, exists=exists), first)

    def _parse_option_setting(self, first: Token) -> nodes.SetOption:
        parts = [self.name("a setting").name]
        while self._match(TokenType.DOT):
            parts.append(self.name("a setting").name)
        if not self._match(TokenType.EQ):
            self.fail(f"expected '=' but found {self.found()}", hint="SET key = value")
        key = ".".join(parts)
        value = self._parse_constant(f"the value of '{key}'")
        return self.spanned(nodes.SetOption(this=exp.Literal.string(key), value=value), first)


_AFTER_A_COLUMN = frozenset(
    {
        *(TokenType.COMMA, TokenType.DOT, TokenType.FROM, TokenType.ALIAS, TokenType.R_PAREN),
        *(TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.MOD, TokenType.EQ, TokenType.NEQ),
        *(TokenType.LT, TokenType.GT, TokenType.LTE, TokenType.GTE, TokenType.DPIPE, TokenType.IS),
        *(TokenType.IN, TokenType.LIKE, TokenType.BETWEEN, TokenType.AND, TokenType.OR, TokenType.L_BRACKET),
    }
)
