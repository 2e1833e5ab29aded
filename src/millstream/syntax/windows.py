"""Parsing of windows and patterns: brackets after a stream, frames of OVER, ``AS (X, *Y, Z)``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from millstream.syntax import nodes
from millstream.syntax.base import BaseParser, Node

_KINDS = {
    "RANGE": "RANGE",
    "ROWS": "ROWS",
    "TUMBLE": "TUMBLE",
    "NOW": "NOW",
    "UNBOUNDED": "UNBOUNDED",
    "LANDMARK": "LANDMARK",
    "SESSION": "SESSION",
}
_CLAUSES = "RANGE, SLIDE, WATTR, RATTR, SATTR, PATTR, START, END, GAP, ORIGIN or EMIT"


class WindowParser(BaseParser):
    """The FROM clause and the OVER clause of ESL."""

    # ------------------------------------------------------------ FROM

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        if not schema and not is_db_reference:
            stream = self._parse_stream_table()
            if stream is not None:
                for join in self._parse_joins(alias_tokens=alias_tokens) if joins else ():
                    stream.append("joins", join)
                return stream
        return super()._parse_table(
            schema=schema,
            joins=joins,
            alias_tokens=alias_tokens,
            parse_bracket=parse_bracket,
            is_db_reference=is_db_reference,
            parse_partition=parse_partition,
            consume_pipe=consume_pipe,
        )

    def _parse_stream_table(self) -> nodes.StreamTable | None:
        """A name with a window or a pattern; anything else is left to sqlglot."""
        first, start = self._curr, self._index
        if not first or first.token_type not in self.ID_VAR_TOKENS | {TokenType.VAR, TokenType.IDENTIFIER}:
            return None
        name = self._parse_id_var(any_token=False)
        if name is None or not self._at_window_or_pattern():
            self._retreat(start)
            return None
        table = nodes.StreamTable(this=name)
        if self._match(TokenType.L_BRACKET, advance=False):
            table.set("window", self._parse_stream_window())
        if self._at_pattern():
            table.set("pattern", self._parse_pattern())
        else:
            table.set("alias", self._parse_table_alias())
        return self.spanned(table, first)

    def _at_window_or_pattern(self) -> bool:
        return bool(self._match(TokenType.L_BRACKET, advance=False)) or self._at_pattern()

    def _at_pattern(self) -> bool:
        # Without a name after AS this can be no list of column aliases.
        return (
            bool(self._match(TokenType.PARTITION_BY, advance=False))
            or self.ahead("SEQUENCE", "BY")
            or bool(self._match_pair(TokenType.ALIAS, TokenType.L_PAREN, advance=False))
        )

    def _parse_subquery(self, this: exp.Expr | None, parse_alias: bool = True) -> exp.Subquery | None:
        """A query in FROM may have a window too."""
        if this is None or not parse_alias or not self._match(TokenType.L_BRACKET, advance=False):
            return super()._parse_subquery(this, parse_alias=parse_alias)
        window = self._parse_stream_window()
        return nodes.WindowedSubquery(this=this, window=window, alias=self._parse_table_alias())

    # ------------------------------------------------------------ brackets

    def _parse_stream_window(self) -> nodes.StreamWindow:
        first = self._curr
        self.expect_token(TokenType.L_BRACKET, "[")
        window = nodes.StreamWindow(kind="")
        while not self._match(TokenType.R_BRACKET):
            self._parse_window_clause(window)
        if not window.kind:
            self.fail(
                "this bracket does not say which window it is",
                first,
                hint="begin with RANGE, ROWS, TUMBLE, NOW, UNBOUNDED, LANDMARK, SESSION GAP or START WHEN",
            )
        return self.spanned(window, first)

    def _parse_window_clause(self, window: nodes.StreamWindow) -> None:
        word = self._curr.text.upper() if self._curr else ""
        if word in _KINDS:
            self._advance()
            if window.kind:
                self.fail(f"a window is either {window.kind} or {word}, not both", self._prev)
            window.set("kind", _KINDS[word])
            if word in ("RANGE", "ROWS", "TUMBLE"):
                window.set("range", self.quantity(word))
            return
        if self._match(TokenType.PARTITION_BY):
            self._once(window, "pattr", self.listed(lambda: self.column("a partitioning attribute")))
            return
        match word:
            case "SLIDE":
                self._advance()
                self._once(window, "slide", self.quantity("SLIDE"))
            case "WATTR" | "RATTR":
                self._advance()
                self._once(window, word.lower(), self.column("the window attribute"))
            case "SATTR":
                self._advance()
                self._once(window, "sattr", self.condition("the slide attribute, row_num or rank(a)"))
            case "PATTR":
                self._advance()
                self._once(window, "pattr", self.listed(lambda: self.column("a partitioning attribute")))
            case "START" | "END":
                self._advance()
                self._parse_boundary(window, word.lower())
            case "GAP":
                self._advance()
                self._once(window, "gap", self.quantity("GAP"))
            case "ORIGIN":
                self._advance()
                self._once(window, "origin", self._parse_instant("ORIGIN"))
            case "EMIT":
                self._advance()
                self.expect("EVERY")
                self._once(window, "emit", self.quantity("EMIT EVERY"))
            case _:
                self.fail(f"expected {_CLAUSES} or ']' but found {self.found()}")

    def _parse_boundary(self, window: nodes.StreamWindow, side: str) -> None:
        if self.words("AT"):
            self._once(window, f"{side}_at", self._parse_instant(f"{side.upper()} AT"))
            return
        self.expect("WHEN")
        if not window.kind:
            window.set("kind", "PREDICATE")
        elif window.kind != "PREDICATE":
            self.fail(f"{side.upper()} WHEN does not go with a {window.kind} window", self._prev)
        self._once(window, f"{side}_when", self.condition("a condition"))

    def _parse_instant(self, what: str) -> exp.Expr:
        """A constant of the window attribute's type: a number, a string, TIMESTAMP '...'."""
        first = self._curr
        node = self._parse_unary()
        if node is None:
            self.fail(f"expected a constant after {what} but found {self.found()}")
        return self.spanned(node, first)

    def _once(self, window: nodes.StreamWindow, argument: str, value: Any) -> None:
        if window.args.get(argument) is not None:
            self.fail(f"{argument.upper().replace('_', ' ')} is given twice", self._prev)
        window.set(argument, value)

    # ------------------------------------------------------------ patterns

    def _parse_pattern(self) -> nodes.Pattern:
        first = self._curr
        pattern = nodes.Pattern()
        if self._match(TokenType.PARTITION_BY):
            pattern.set("partition_by", self.listed(lambda: self.column("a partitioning column")))
        if self.words("SEQUENCE", "BY"):
            pattern.set("sequence_by", self.listed(lambda: self.column("a sequencing column")))
        if not self._match(TokenType.ALIAS):
            self.fail(
                f"expected the pattern, AS (...), but found {self.found()}",
                hint="a sequence pattern reads: stream PARTITION BY key AS (X, *Y, Z)",
            )
        pattern.set("elements", self.wrapped(self._parse_element))
        return self.spanned(pattern, first)

    def _parse_element(self) -> nodes.Element:
        first = self._curr
        star = bool(self._match(TokenType.STAR))
        return self.spanned(nodes.Element(this=self.name("a pattern variable"), star=star), first)

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """``count(*Y)`` and ``avg(*Y.price)``: an aggregate over a complete star."""
        first, start = self._curr, self._index
        if self._match(TokenType.STAR) and self._match_set(self.ID_VAR_TOKENS, advance=False):
            return self.spanned(nodes.Starred(this=self.column("a pattern variable")), first)
        self._retreat(start)
        return super()._parse_lambda(alias=alias)

    # ------------------------------------------------------------ OVER

    def expression(self, instance: Node, *args: Any, **kwargs: Any) -> Node:
        """Sqlglot has no hook behind a frame, but makes the frame's node just there."""
        if type(instance) is exp.WindowSpec:
            instance = self._parse_over_clauses(instance)  # type: ignore[assignment]
        return super().expression(instance, *args, **kwargs)

    def _parse_over_clauses(self, spec: exp.WindowSpec) -> exp.WindowSpec:
        extra: dict[str, Any] = {}
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            if self.words("SLIDE"):
                extra["slide"] = self.quantity("SLIDE")
            elif self.words("ACTIVE", "EXPIRATION"):
                extra["active"] = True
            elif self.words("EMIT", "EVERY"):
                extra["emit"] = self.quantity("EMIT EVERY")
            else:
                self.fail(
                    f"did not expect {self.found()} in a window",
                    hint="after the frame may follow SLIDE, ACTIVE EXPIRATION and EMIT EVERY",
                )
        if spec.args.get("end") is None:
            # `n PRECEDING` is short for BETWEEN n PRECEDING AND CURRENT ROW; one form is kept.
            extra["end"], extra["end_side"] = "CURRENT ROW", None
        return nodes.OverSpec(**{**spec.args, **extra})

    def _parse_window_spec(self) -> dict[str, Any]:
        """A bound may be written ``5 MINUTES`` as well as ``INTERVAL 5 MINUTES``."""
        self._match(TokenType.BETWEEN)
        if self._match(TokenType.NUMBER, advance=False):
            value: exp.Expr = self.quantity("the window")
            return {"value": value, "side": self._prev.text if self._match_texts(self.WINDOW_SIDES) else None}
        return super()._parse_window_spec()
