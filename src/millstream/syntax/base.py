"""What the parts of the ESL parser share: errors with places, spans, quantities, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from millstream.errors import Span
from millstream.syntax import nodes
from millstream.syntax.positions import set_span

Node = TypeVar("Node", bound=exp.Expr)

INTERVAL_UNITS = frozenset(
    unit + plural
    for unit in (*("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"),)
    for plural in ("", "S")
)

# Calls whose arguments are not just separated by commas. Every other call stays as it was written (an
# exp.Anonymous): ESL is not translated between dialects, so nothing is gained by knowing more.
_CALLS_WITH_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "OVERLAY")


class EslParseError(ParseError):
    """A syntax error with its span, as a ParseError so that sqlglot can still backtrack over it."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint


class BaseParser(SparkParser):
    """Spark's parser made strict, with spans."""

    FUNCTIONS: dict[str, Callable[..., Any]] = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in _CALLS_WITH_SYNTAX}
    # current_date and the like are columns if there is such a column, as in Spark; analysis decides.
    NO_PAREN_FUNCTIONS: dict[TokenType, Any] = {}
    # Braces belong to aggregate bodies, not to struct literals or query parameters.
    BRACKETS = frozenset({TokenType.L_BRACKET})
    PLACEHOLDER_PARSERS = {
        token: parser
        for token, parser in SparkParser.PLACEHOLDER_PARSERS.items()
        if token is not TokenType.L_BRACE
    }

    _in_body = False

    # ------------------------------------------------------------ the way in

    def parse_tokens(
        self, tokens: list[Token], sql: str, method: Callable[[Any], exp.Expr | None]
    ) -> exp.Expr | None:
        """One statement or expression, to its very end; sqlglot itself would cut at every semicolon."""
        self.reset()
        self.sql = sql
        self._chunks = [tokens]
        self._advance_chunk()
        tree = method(self)
        if self._curr:
            self.fail(f"did not expect {self.found()} here")
        return tree

    def position(self) -> Span:
        """Where the parser is, for errors that come without a token."""
        token = self._curr or self._prev
        return (token.start, token.end) if token else (0, 0)

    # ------------------------------------------------------------ errors

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        """Stop with an error at a token, by default the current one."""
        token = token or self._curr or self._prev
        span = (token.start, token.end) if token else (0, 0)
        raise EslParseError(message, span, hint)

    def raise_error(self, message: str, token: Token | None = None) -> None:  # type: ignore[override]
        """Say in our words what sqlglot says tersely."""
        self.fail(_reworded(message, self.found(token)), token or None)

    def found(self, token: Token | None = None) -> str:
        token = token or self._curr
        return f"'{token.text}'" if token else "the end of the statement"

    # ------------------------------------------------------------ spans

    def spanned(self, node: Node, first: Token) -> Node:
        """Give a node the span from its first token to the token just read."""
        set_span(node, (first.start, self._prev.end))
        return node

    def _parse_disjunction(self) -> exp.Expr | None:
        first = self._curr
        node = super()._parse_disjunction()
        return self.spanned(node, first) if node is not None and first else node

    # ------------------------------------------------------------ strictness

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """A list in which nothing is missing; sqlglot takes ``a,, b`` for ``a, b``."""
        item = parse_method()
        items = [] if item is None else [item]
        while self._match(sep):
            item = parse_method()
            if item is None:
                self.fail(f"expected something between ',' and {self.found()}")
            items.append(item)
        return items

    # ------------------------------------------------------------ words, names, lists

    def words(self, *words: str) -> bool:
        """Read these keywords if they come next, all of them or none."""
        return bool(self._match_text_seq(*words))

    def ahead(self, *words: str) -> bool:
        return bool(self._match_text_seq(*words, advance=False))

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.words(word):
                self.fail(f"expected {word} but found {self.found()}")

    def expect_token(self, token: TokenType, text: str) -> None:
        if not self._match(token):
            self.fail(f"expected '{text}' but found {self.found()}")

    def name(self, what: str) -> exp.Identifier:
        """An identifier; any keyword will do where only a name can stand."""
        token = self._curr
        if not token or token.token_type in _NEVER_A_NAME:
            self.fail(f"expected the name of {what} but found {self.found()}")
        identifier = self._parse_id_var(any_token=True)
        if not isinstance(identifier, exp.Identifier):
            self.fail(f"expected the name of {what} but found {self.found(token)}", token)
        return identifier

    def column(self, what: str) -> exp.Column:
        first = self._curr
        parts = [self.name(what)]
        while self._match(TokenType.DOT):
            parts.append(self.name(what))
        if len(parts) > 2:
            self.fail(f"expected the name of {what}, at most qualified by a stream", first)
        table = parts[0] if len(parts) == 2 else None
        return self.spanned(exp.Column(this=parts[-1], table=table), first)

    def listed(self, item: Callable[[], Node]) -> list[Node]:
        items = [item()]
        while self._match(TokenType.COMMA):
            items.append(item())
        return items

    def wrapped(self, item: Callable[[], Node]) -> list[Node]:
        """A list in parentheses."""
        self.expect_token(TokenType.L_PAREN, "(")
        items = self.listed(item)
        self.expect_token(TokenType.R_PAREN, ")")
        return items

    def condition(self, what: str) -> exp.Expr:
        node = self._parse_disjunction()
        if node is None:
            self.fail(f"expected {what} but found {self.found()}")
        return node

    def query(self) -> exp.Query:
        first = self._curr
        if not self._match_set((TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN), advance=False):
            self.fail(f"expected a query but found {self.found()}")
        node = self._parse_select(nested=True, parse_subquery_alias=False)
        node = self._parse_set_operations(node) if node else node
        if not isinstance(node, exp.Query):
            self.fail("expected a query", first)
        return self.spanned(node, first)

    # ------------------------------------------------------------ quantities

    def quantity(self, what: str) -> exp.Expr:
        """``INTERVAL '5' MINUTE``, ``5 MINUTES``, ``1 HOUR 30 MINUTES``, ``100 ROWS``, ``-2.5``."""
        first = self._curr
        if self._match(TokenType.INTERVAL, advance=False):
            interval = self._parse_interval()
            if interval is None:
                self.fail(f"expected an interval for {what}, such as INTERVAL 5 SECONDS", first)
            return self.spanned(interval, first)
        number = self._signed_number(what)
        if self._match_texts(("ROW", "ROWS")):
            return self.spanned(nodes.RowCount(this=number), first)
        if not self._at_unit():
            return self.spanned(number, first)
        node: exp.Expr = self._interval(number)
        while self._match(TokenType.NUMBER, advance=False) and self._next.text.upper() in INTERVAL_UNITS:
            node = exp.Add(this=node, expression=self._interval(self._signed_number(what)))
        return self.spanned(node, first)

    def _at_unit(self) -> bool:
        return bool(self._curr) and self._curr.text.upper() in INTERVAL_UNITS

    def _interval(self, number: exp.Expr) -> exp.Interval:
        self._advance()
        value = number.this if isinstance(number, exp.Literal) else f"-{number.name}"
        return exp.Interval(this=exp.Literal.string(value), unit=exp.var(self._prev.text.upper()))

    def _signed_number(self, what: str) -> exp.Expr:
        first = self._curr
        negative = self._match(TokenType.DASH)
        if not self._match(TokenType.NUMBER):
            self.fail(f"expected a number, an interval or n ROWS for {what} but found {self.found()}")
        number = self.spanned(exp.Literal.number(self._prev.text), first)
        return self.spanned(exp.Neg(this=number), first) if negative else number

    def _parse_factor(self, parse_mod: bool = True) -> exp.Expr | None:
        """The papers write ``btime + num_min minutes`` in aggregate bodies."""
        node = super()._parse_factor(parse_mod=parse_mod)
        follows_sign = self._in_body and isinstance(node, exp.Column | exp.Literal | exp.Paren)
        if follows_sign and self._at_unit() and node is not None:
            self._advance()
            return exp.Interval(this=node, unit=exp.var(self._prev.text.upper()))
        return node


_NEVER_A_NAME = frozenset(
    {
        *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.L_BRACKET, TokenType.R_BRACKET),
        *(TokenType.L_BRACE, TokenType.R_BRACE, TokenType.COMMA, TokenType.SEMICOLON, TokenType.DOT),
        *(TokenType.NUMBER, TokenType.STRING, TokenType.STAR, TokenType.COLON, TokenType.EQ),
        *(TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY),
    }
)


def _reworded(message: str, found: str) -> str:
    if message.startswith("Expecting "):
        return f"expected '{message.removeprefix('Expecting ')}' but found {found}"
    if message.startswith("Expected "):
        return f"expected {message.removeprefix('Expected ')} but found {found}"
    if message.startswith("Required keyword"):
        return f"something is missing before {found}"
    if message.startswith("Invalid expression"):
        return f"did not expect {found} here"
    return f"{message[:1].lower()}{message[1:]} (at {found})"
