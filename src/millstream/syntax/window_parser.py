"""Parsing of windows over a stream and of sequence patterns: ``[RANGE ...]`` and ``AS (X, *Y, Z)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.call_parser import CallParser
from millstream.syntax.foreign_syntax import ELEMENTS
from millstream.syntax.tokens import Kind
from millstream.syntax.type_parser import INTERVAL_UNITS

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token

_KINDS = ("RANGE", "ROWS", "TUMBLE", "NOW", "UNBOUNDED", "LANDMARK", "SESSION")
_CLAUSES = (
    *("SLIDE", "LAG", "WATTR", "RATTR", "SATTR", "PATTR", "START", "END", "GAP", "ORIGIN", "STAMP", "EMIT"),
)
_BEGINNINGS = "a window begins with RANGE, ROWS, TUMBLE, NOW, UNBOUNDED, LANDMARK, SESSION GAP or START WHEN"


class WindowParser(CallParser):
    """Parser of windows and patterns after the name of a stream in FROM."""

    def quantity(self, what: str) -> exp.Expr:
        """Parse an amount; a quarter is three months."""
        if self.current.kind is not Kind.NUMBER or self.peek().key not in ("QUARTER", "QUARTERS"):
            return super().quantity(what)
        first = self.advance()
        self.advance()
        if not first.text.isdigit():
            self.fail("expected a whole number of quarters", first)
        count = self.spanned(exp.Literal.string(str(3 * int(first.text))), first)
        return self.spanned(exp.Interval(this=count, unit=exp.Var(this="MONTH")), first)

    # ------------------------------------------------------------ brackets

    def stream_window(self) -> nodes.StreamWindow:
        """Parse a window in brackets; the cursor is at the bracket."""
        opening = self.open("[")
        window = nodes.StreamWindow(kind="")
        while not self.at("]") and not self.at_end:
            self._window_clause(window)
        self.close(opening)
        if not window.kind:
            self.fail("this bracket does not say which window it is", opening, hint=_BEGINNINGS)
        return self.spanned(window, opening)

    def _window_clause(self, window: nodes.StreamWindow) -> None:
        clause = self.current
        if self.take(*_KINDS):
            self._window_kind(window, clause)
        elif self.words("PARTITION", "BY") or self.take("PATTR"):
            columns = self.listed(lambda: self.column("a partitioning attribute"))
            self.set_once(window, "pattr", columns, clause)
        elif self.take("SLIDE", "GAP", "LAG"):
            self.set_once(window, clause.key.lower(), self.quantity(clause.key), clause)
        elif self.take("WATTR", "RATTR"):
            self.set_once(window, clause.key.lower(), self.column("the window attribute"), clause)
        elif self.take("SATTR"):
            value = self.condition("the slide attribute, row_num or rank(a),")
            self.set_once(window, "sattr", value, clause)
        elif self.take("START", "END"):
            self._boundary(window, clause)
        elif self.take("ORIGIN"):
            self.set_once(window, "origin", self._instant("ORIGIN"), clause)
        elif self.take("STAMP"):
            self.expect("LAST")
            self.set_once(window, "stamp", self.spanned(exp.Var(this="LAST"), clause), clause)
        elif self.take("EMIT"):
            self._emission(window, clause)
        elif not window.kind:
            hint = self.similar((*_KINDS, *_CLAUSES)) or _BEGINNINGS
            self.fail(f"did not expect {self.found()} in a window", hint=hint)
        else:
            units = (*INTERVAL_UNITS, "ROWS") if self.previous.kind is Kind.NUMBER else ()
            hint = f"clauses are {', '.join(_CLAUSES)}"
            known = ("PARTITION", *_CLAUSES, *units)
            self.fail_expecting("']' or another clause of the window", known, hint)

    def _window_kind(self, window: nodes.StreamWindow, token: Token) -> None:
        if window.kind:
            self.fail(f"a window is either {window.kind} or {token.key}, not both", token)
        window.set("kind", token.key)
        if token.key in ("RANGE", "ROWS", "TUMBLE"):
            varies = token.key == "RANGE" and self.at("CASE")
            window.set("range", self.expression() if varies else self.quantity(token.key))
        elif token.key == "SESSION" and self.current.kind is Kind.NUMBER:
            unit = self.peek().text if self.peek().key in INTERVAL_UNITS else "MINUTES"
            self.fail_expecting("GAP behind SESSION", hint=f"write SESSION GAP {self.current.text} {unit}")

    def _emission(self, window: nodes.StreamWindow, clause: Token) -> None:
        if self.take("EMPTY"):
            self.set_once(window, "emit_empty", self.spanned(exp.Var(this="EMPTY"), clause), clause)
        elif self.take("EVERY"):
            self.set_once(window, "emit", self.quantity("EMIT EVERY"), clause)
        else:
            self.fail_expecting("EVERY or EMPTY behind EMIT", ("EVERY", "EMPTY"))

    def _boundary(self, window: nodes.StreamWindow, clause: Token) -> None:
        side = clause.key.lower()
        if self.take("AT"):
            self.set_once(window, f"{side}_at", self._instant(f"{clause.key} AT"), clause)
            inclusive = self.take("INCLUSIVE") if side == "end" else None
            if inclusive:
                window.set("inclusive", self.spanned(exp.Var(this="INCLUSIVE"), inclusive))
            return
        if not self.take("WHEN"):
            self.fail_expecting(f"AT or WHEN behind {clause.key}", ("AT", "WHEN"))
        if not window.kind:
            window.set("kind", "PREDICATE")
        elif window.kind != "PREDICATE":
            self.fail(f"{clause.key} WHEN does not go with a {window.kind} window", clause)
        self.set_once(window, f"{side}_when", self.condition("a condition"), clause)

    def _instant(self, what: str) -> exp.Expr:
        """Parse a constant of the window attribute's type: a number, a text, TIMESTAMP '...'."""
        if self.at("]") or self.at_end:
            self.fail_expecting(f"a constant after {what}")
        return self.value()

    # ------------------------------------------------------------ patterns

    @property
    def at_pattern(self) -> bool:
        # Without a name after AS this cannot be a list of column aliases.
        return (
            self.at_words("PARTITION", "BY")
            or self.at_words("SEQUENCE", "BY")
            or (self.at("AS") and self.peek().key == "(")
        )

    def pattern(self) -> nodes.Pattern:
        first = self.current
        pattern = nodes.Pattern()
        if self.words("PARTITION", "BY"):
            pattern.set("partition_by", self.listed(lambda: self.column("a partitioning column")))
        if self.words("SEQUENCE", "BY"):
            pattern.set("sequence_by", self.listed(lambda: self.column("a sequencing column")))
        if not self.take("AS"):
            self.fail_expecting(
                "the pattern, AS (...),",
                ("AS", "SEQUENCE"),
                hint="a sequence pattern reads: stream PARTITION BY key AS (X, *Y, Z)",
            )
        if self.at("(") and self.peek().key == ")":
            self.fail("this pattern is empty", hint="name its tuples: AS (X, *Y, Z)")
        pattern.set("elements", self.wrapped(self._element))
        return self.spanned(pattern, first)

    def _element(self) -> nodes.Element:
        first = self.current
        self._refuse_sign("!", "NOT")
        star = bool(self.take("*"))
        element = self.spanned(nodes.Element(this=self.name("a pattern variable"), star=star), first)
        self._refuse_sign(*ELEMENTS)
        return element

    def _refuse_sign(self, *signs: str) -> None:
        """Refuse signs of other pattern languages before or after a variable."""
        if self.at(*signs):
            message, hint = ELEMENTS[self.current.key]
            self.fail(message, hint=hint)
