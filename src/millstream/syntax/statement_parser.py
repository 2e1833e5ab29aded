"""Parsing of statements: streams, tables, sinks, views, EXPLAIN, SHOW, DESCRIBE, DROP and SET."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.create_aggregate_parser import AggregateParser
from millstream.syntax.tokens import Kind, Token

CREATABLE = ("STREAM", "TABLE", "SINK", "VIEW", "FUNCTION", "AGGREGATE", "WINDOW")
SHOWABLE = ("STREAMS", "TABLES", "SINKS", "VIEWS", "FUNCTIONS", "AGGREGATES", "QUERIES")
DROPPABLE = ("STREAM", "TABLE", "SINK", "VIEW", "FUNCTION", "AGGREGATE", "QUERY")
EXPLAIN_MODES = ("LOGICAL", "PHYSICAL", "CODE", "PATTERN")
DRAWINGS = ("DOT", "MERMAID")
"""Languages in which EXPLAIN PATTERN draws a pattern."""

BEGINNINGS = (
    *("SELECT", "WITH", "VALUES", "CREATE", "STREAM", "TABLE", "AGGREGATE", "WINDOW"),
    *("SPLIT", "INSERT", "UPDATE", "DELETE", "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "DROP", "SET"),
)
_INSTEAD = {
    "TRUNCATE": "DELETE FROM t removes all rows of a table",
    "MERGE": "UPDATE t SET ... WHERE, and INSERT INTO t SELECT ... WHERE NOT EXISTS (...) for the rest",
    "REPLACE": "INSERT INTO adds rows to a table",
}
"""Statements of other systems that change tables, and what to write instead."""

_STREAM_CLAUSES = (
    *("ORDER", "USING", "OPTIONS", "SOURCE", "LATE", "BAD", "AS"),
    *("SLACK", "ORDERED", "PUNCTUATED", "HEARTBEAT"),
)


class EslParser(AggregateParser):
    """The parser of ESL."""

    def statement(self) -> exp.Expr:
        first = self.current
        if self.at(")", "]", "}"):
            self.fail_closing()
        if not self.at(*BEGINNINGS, "("):
            hint = (
                "a statement is a query, CREATE, SPLIT STREAM, INSERT INTO, UPDATE, DELETE, EXPLAIN, SHOW, "
                "DESCRIBE, DROP or SET"
            )
            message = f"did not expect {self.found()} at the beginning of a statement"
            self.fail(message, hint=_INSTEAD.get(first.key) or self.similar(BEGINNINGS) or hint)
        match first.key:
            case "CREATE":
                return self._create()
            case "STREAM" | "TABLE" | "AGGREGATE" | "WINDOW":
                # The papers omit CREATE.
                return self._created(first)
            case "SPLIT":
                return self._split()
            case "INSERT":
                return self.insert(self.advance())
            case "UPDATE":
                return self.update(self.advance())
            case "DELETE":
                return self.delete(self.advance())
            case "EXPLAIN":
                return self._explain()
            case "SHOW":
                return self._show()
            case "DESCRIBE" | "DESC":
                self.advance()
                return self.spanned(nodes.DescribeEntry(this=self.name("what to describe")), first)
            case "DROP":
                return self._drop()
            case "SET":
                return self._set()
            case _:
                return self.query()

    def end_of_statement(self) -> None:
        """Check that only the next statement follows."""
        if self.at_end:
            return
        if self.at(")", "]", "}"):
            self.fail_closing()
        if self.at(*BEGINNINGS) and not self.at("WITH", "TABLE"):
            self.fail(f"did not expect {self.found()} here", hint="is a ';' missing before it?")
        self.fail_unexpected()

    @property
    def at_beginning(self) -> bool:
        """Return whether the end of a statement comes next, followed by another statement or nothing."""
        following = self.peek() if self.at(";") else self.current
        return following.kind is Kind.END or following.key in (*BEGINNINGS, "(", ";")

    # ------------------------------------------------------------ CREATE

    def _create(self) -> exp.Expr:
        first = self.advance()
        replace = self.words("OR", "REPLACE")
        node = self._created(first)
        if replace:
            node.set("replace", True)
        return node

    def _created(self, first: Token) -> exp.Expr:
        kind = self.take(*CREATABLE)
        if kind is None:
            known = "CREATE takes STREAM, TABLE, SINK, VIEW, FUNCTION, AGGREGATE or WINDOW AGGREGATE"
            self.fail(f"cannot create {self.found()}", hint=self.similar(CREATABLE) or known)
        match kind.key:
            case "STREAM":
                return self._stream_definition(first)
            case "TABLE":
                return self._table_definition(first)
            case "SINK":
                return self._sink(first)
            case "VIEW":
                exists = self.if_not_exists()
                view = nodes.CreateView(this=self.name("the view"), exists=exists)
                view.set("query", self._as_query())
                return self.spanned(view, first)
            case "FUNCTION":
                return self.function(first)
            case "WINDOW":
                self.expect("AGGREGATE")
        return self.aggregate(first, window=kind.key == "WINDOW")

    def _as_query(self) -> exp.Query:
        if not self.take("AS"):
            self.fail_expecting("AS and a query", ("AS",))
        return self.any_query()

    def _stream_definition(self, first: Token) -> nodes.CreateStream:
        exists = self.if_not_exists()
        node = nodes.CreateStream(this=self.name("the stream"), exists=exists)
        if self.at("("):
            node.set("columns", self.wrapped(lambda: self.column_declaration(collected=True)))
        while not self.at_end:
            if self.at("AS"):
                node.set("query", self._as_query())
                break
            self._stream_clause(node)
        return self.spanned(node, first)

    def _stream_clause(self, node: nodes.CreateStream) -> None:
        first = self.current
        if self.words("ORDER", "BY"):
            self.set_once(node, "order_by", self.column("the timestamp column"), first)
        elif self._source_clause(node):
            pass
        elif self.take("SOURCE"):
            self.set_once(node, "source", self.text("the source, such as 'port4445',"), first)
        elif self.take("LATE"):
            late = nodes.Late() if self.take("DROP") else self._late()
            self.set_once(node, "late", self.spanned(late, first), first)
        elif self.take("BAD"):
            self.expect("INTO")
            self.set_once(node, "bad", self.name("the stream of bad records"), first)
        else:
            node.append("clauses", self._disorder_clause())

    def _source_clause(self, node: exp.Expr) -> bool:
        """Parse ``USING format`` or ``OPTIONS (...)`` of streams, tables and sinks."""
        first = self.current
        if self.take("USING"):
            self.set_once(node, "format", self._format(), first)
        elif self.take("OPTIONS"):
            self.set_once(node, "options", self._options(), first)
        else:
            return False
        return True

    def _late(self) -> nodes.Late:
        if not self.take("INTO"):
            self.fail_expecting("INTO or DROP", ("INTO", "DROP"))
        return nodes.Late(this=self.name("the stream of late tuples"))

    def _disorder_clause(self) -> exp.Expr:
        first = self.current
        node: exp.Expr
        if self.take("SLACK"):
            node = nodes.Slack(this=self.quantity("SLACK"))
            if mode := self.take("GENEROUS", "CONSISTENT"):
                node.set("mode", mode.key)
        elif self.words("ORDERED", "PER"):
            node = nodes.OrderedPer(expressions=self.wrapped(lambda: self.column("a column")))
            if self.words("IDLE", "AFTER"):
                node.set("idle", self.quantity("IDLE AFTER"))
        elif self.words("PUNCTUATED", "BY"):
            opening = self.open("(")
            node = nodes.PunctuatedBy(this=self.condition("a predicate"))
            self.close(opening)
            if self.take("PER"):
                node.set("per", self.wrapped(lambda: self.column("a column")))
        elif self.take("HEARTBEAT"):
            node = nodes.Heartbeat()
            if not self.take("NONE"):
                node.set("this", self.quantity("HEARTBEAT"))
        else:
            self._fail_in(
                "CREATE STREAM",
                _STREAM_CLAUSES,
                "its clauses are ORDER BY, USING, OPTIONS, SOURCE, SLACK, ORDERED PER, PUNCTUATED BY, "
                "HEARTBEAT, LATE INTO, LATE DROP, BAD INTO and AS",
            )
        if self.take("ON"):
            node.set("on", self.column("an attribute"))
        return self.spanned(node, first)

    def _fail_in(self, where: str, known: tuple[str, ...], hint: str) -> NoReturn:
        self.fail(f"did not expect {self.found()} in {where}", hint=self.similar(known) or hint)

    def _table_definition(self, first: Token) -> nodes.CreateTable:
        exists = self.if_not_exists()
        node = nodes.CreateTable(this=self.name("the table"), exists=exists)
        if self.at("("):
            node.set("columns", self.wrapped(lambda: self.column_declaration(collected=True)))
        while not self.at_end:
            if self.at("AS"):
                node.set("query", self._as_query())
                break
            clause = self.current
            if self.take("REFRESH"):
                self.expect("EVERY")
                self.set_once(node, "refresh", self.quantity("REFRESH EVERY"), clause)
            elif self.words("ORDER", "BY"):
                self.set_once(node, "order_by", self.column("a column"), clause)
            elif not self._source_clause(node):
                hint = "its clauses are ORDER BY, USING format, OPTIONS (...), REFRESH EVERY and AS query"
                self._fail_in("CREATE TABLE", ("ORDER", "USING", "OPTIONS", "REFRESH", "AS"), hint)
        return self.spanned(node, first)

    def _sink(self, first: Token) -> nodes.CreateSink:
        exists = self.if_not_exists()
        node = nodes.CreateSink(this=self.name("the sink"), exists=exists)
        while not self.at_end:
            if not self._source_clause(node):
                hint = "its clauses are USING format and OPTIONS (...)"
                self._fail_in("CREATE SINK", ("USING", "OPTIONS"), hint)
        if node.args.get("format") is None:
            self.fail_expecting("USING and a format")
        return self.spanned(node, first)

    def _format(self) -> exp.Identifier:
        """Parse a Spark format: ``csv``, or the dotted name of a class."""
        first = self.current
        name = self.dotted_name("a format")
        return self.spanned(exp.to_identifier(name, quoted=first.kind is Kind.NAME), first)

    def _options(self) -> list[nodes.Option]:
        if self.at("(") and self.peek().key == ")":
            self.advance()
            self.advance()
            return []
        return self.wrapped(self._option)

    def _option(self) -> nodes.Option:
        """Parse ``path 'x.csv'``, ``header = true``, ``kafka.bootstrap.servers '...'``."""
        first = self.current
        key = self.advance().text if first.kind is Kind.TEXT else self.dotted_name("an option")
        name = self.spanned(exp.Literal.string(key), first)
        self.take("=")
        value = self._constant(f"the value of option '{key}'")
        return self.spanned(nodes.Option(this=name, value=value), first)

    def _constant(self, what: str) -> exp.Expr:
        first = self.current
        sign = "-" if self.take("-") else ""
        token = self.current
        is_word = token.kind is Kind.TEXT or self.at("TRUE", "FALSE")
        if token.kind is not Kind.NUMBER and (sign or not is_word):
            self.fail_expecting(what, hint="texts stand in 'quotes'")
        self.advance()
        return self.spanned(exp.Literal.string(sign + token.text), first)

    # ------------------------------------------------------------ other statements

    def _split(self) -> nodes.SplitStream:
        first = self.advance()
        self.expect("STREAM")
        node = nodes.SplitStream(this=self.name("the stream to split"))
        self.expect("INTO")
        node.set("branches", self.listed(self._branch))
        return self.spanned(node, first)

    def _branch(self) -> nodes.Branch:
        first = self.current
        branch = nodes.Branch(this=self.name("a branch"))
        if not self.take("AS"):
            self.fail_expecting("AS (query)", ("AS",))
        opening = self.open("(")
        branch.set("query", self.any_query())
        self.close(opening)
        return self.spanned(branch, first)

    def _explain(self) -> nodes.Explain:
        first = self.advance()
        word = self.take(*EXPLAIN_MODES)
        mode = word.key if word else None
        drawing = self.take(*DRAWINGS) if mode == "PATTERN" else None
        if drawing:
            mode = f"{mode} {drawing.key}"
        if not self.at_query() and not self.at("("):
            hint = f"EXPLAIN takes a query, with one of {', '.join(EXPLAIN_MODES)} before it or none"
            self.fail_expecting("a query", (*EXPLAIN_MODES, "SELECT"), hint=hint)
        return self.spanned(nodes.Explain(this=self.query(), mode=mode), first)

    def _show(self) -> nodes.ShowEntries:
        first = self.advance()
        kind = self.take(*SHOWABLE)
        if kind is None:
            hint = self.similar(SHOWABLE) or f"SHOW takes {', '.join(SHOWABLE)}"
            self.fail(f"cannot show {self.found()}", hint=hint)
        return self.spanned(nodes.ShowEntries(this=kind.key), first)

    def _drop(self) -> nodes.DropEntry:
        first = self.advance()
        window = self.take("WINDOW")
        kind = self.take("AGGREGATE") if window else self.take(*DROPPABLE)
        if kind is None:
            hint = self.similar(DROPPABLE) or f"DROP takes {', '.join(DROPPABLE)}"
            self.fail(f"cannot drop {self.found()}", hint=hint)
        exists = self.words("IF", "EXISTS") or None
        what = f"WINDOW {kind.key}" if window else kind.key
        return self.spanned(nodes.DropEntry(this=self.name("what to drop"), kind=what, exists=exists), first)

    def _set(self) -> nodes.SetOption:
        first = self.advance()
        key_token = self.current
        key = self.dotted_name("a setting")
        name = self.spanned(exp.Literal.string(key), key_token)
        if not self.take("="):
            self.fail_expecting("'='", hint="SET key = value")
        value = self._constant(f"the value of '{key}'")
        return self.spanned(nodes.SetOption(this=name, value=value), first)
