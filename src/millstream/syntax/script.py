"""From text to trees: scripts, single queries, single expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from millstream.errors import EslSyntaxError, Source, Span
from millstream.syntax.base import EslParseError
from millstream.syntax.dialect import Esl
from millstream.syntax.statements import EslParser

Tree = TypeVar("Tree")

_DIALECT = Esl()
_MODIFIERS = EslParser.OPERATION_MODIFIERS


@dataclass(frozen=True)
class ParsedStatement:
    """A statement of a script: its tree, and where it stands."""

    tree: exp.Expr
    source: Source
    span: Span

    @property
    def text(self) -> str:
        return self.source.text[self.span[0] : self.span[1] + 1]


def parse_script(text: str, name: str = "<script>") -> list[ParsedStatement]:
    """All statements of a script; the first mistake raises an EslSyntaxError with its place.

    >>> [s.text for s in parse_script("SELECT a FROM s; SHOW STREAMS;")]
    ['SELECT a FROM s', 'SHOW STREAMS']
    """
    source = Source(name, text)
    return [
        ParsedStatement(
            _parse(tokens, source, EslParser._parse_statement), source, (tokens[0].start, tokens[-1].end)
        )
        for tokens in _statements(_tokenize(source))
    ]


def parse_expression(text: str) -> exp.Expression:
    """A single scalar expression."""
    source = Source("<expression>", text)
    tree = _parse(_tokenize(source), source, EslParser._parse_disjunction)
    assert isinstance(tree, exp.Expression)
    return tree


def to_sql(tree: exp.Expr) -> str:
    """The text of a tree, in ESL."""
    return tree.sql(dialect=_DIALECT)


def _tokenize(source: Source) -> list[Token]:
    try:
        return _DIALECT.tokenize(source.text)
    except TokenError as error:
        # The tokenizer tells only how far it came: an opening quote or comment without its end.
        raise EslSyntaxError(
            "a quoted text, name or comment is not closed", span=_open_quote(source.text, error)
        ).locate(source) from None


def _open_quote(text: str, error: TokenError) -> Span:
    for size in range(len(text) - 1, -1, -1):
        if text[size] in "'\"`*":
            try:
                _DIALECT.tokenize(text[:size])
            except TokenError:
                continue
            return (size, len(text) - 1)
    return (0, max(0, len(text) - 1))


def _statements(tokens: list[Token]) -> Iterator[list[Token]]:
    """Cut at the semicolons that stand outside the braces of aggregate bodies."""
    statement: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {TokenType.L_BRACE: 1, TokenType.R_BRACE: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.SEMICOLON and depth <= 0:
            if statement:
                yield _distinct_first(statement)
            statement, depth = [], 0
        else:
            statement.append(token)
    if statement:
        yield _distinct_first(statement)


def _distinct_first(tokens: list[Token]) -> list[Token]:
    """Sqlglot wants SELECT DISTINCT ISTREAM; SELECT ISTREAM DISTINCT reads better."""
    for i in range(len(tokens) - 2):
        select, modifier, distinct = tokens[i : i + 3]
        if (
            select.token_type is TokenType.SELECT
            and modifier.text.upper() in _MODIFIERS
            and distinct.token_type is TokenType.DISTINCT
        ):
            tokens[i + 1], tokens[i + 2] = distinct, modifier
    return tokens


def _parse(tokens: list[Token], source: Source, method: Callable[[EslParser], exp.Expr | None]) -> exp.Expr:
    parser = EslParser(error_level=ErrorLevel.IMMEDIATE, dialect=_DIALECT)
    try:
        tree = parser.parse_tokens(tokens, source.text, method)
    except EslParseError as error:
        raise EslSyntaxError(error.message, hint=error.hint, span=error.span).locate(source) from None
    except RecursionError:
        raise EslSyntaxError(
            "this is nested too deeply", span=parser.position(), hint="split the expression"
        ).locate(source) from None
    except (ParseError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError):
        # sqlglot stumbles over some nonsense with Python's own errors: to the user it is all the same.
        raise EslSyntaxError("cannot make sense of this", span=parser.position()).locate(source) from None
    if tree is None:
        raise EslSyntaxError("something is missing here", span=parser.position()).locate(source)
    return tree
