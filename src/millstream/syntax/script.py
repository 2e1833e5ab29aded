"""Parsing and printing of scripts and single expressions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from millstream.errors import EslSyntaxError, Source
from millstream.syntax.dialect import Esl
from millstream.syntax.spans import span_of
from millstream.syntax.spark_only_queries import parse_plain_spark
from millstream.syntax.statement_parser import EslParser
from millstream.syntax.tokens import Kind, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.errors import Span
    from millstream.syntax.tokens import Token

Result = TypeVar("Result")

_DIALECT = Esl()
# A sum of so many terms is a tree of that depth. Recursion over trees can rely on the limit.
MAX_DEPTH = 1_200
# Python frames that trees of that depth need. They use little of the C stack: few of them call C code.
_FRAMES = 20_000
_SPLIT_UP = "split it up, for instance with WITH"


@dataclass(frozen=True)
class ParsedStatement:
    """A statement of a script: its tree and its place."""

    tree: exp.Expr
    source: Source
    span: Span

    @property
    def text(self) -> str:
        return self.source.text[self.span[0] : self.span[1] + 1]


@dataclass(frozen=True)
class BrokenStatement:
    """A statement of a script that cannot be parsed, with its error."""

    error: EslSyntaxError
    source: Source
    span: Span

    @property
    def text(self) -> str:
        return self.source.text[self.span[0] : self.span[1] + 1]


def parse_script(text: str, name: str = "<script>") -> list[ParsedStatement]:
    """Parse all statements of a script; raise an EslSyntaxError with the place of the first mistake.

    >>> [s.text for s in parse_script("SELECT a FROM s; SHOW STREAMS;")]
    ['SELECT a FROM s', 'SHOW STREAMS']
    """
    parsed: list[ParsedStatement] = []
    errors: list[EslSyntaxError] = []
    for statement in parse_statements(text, name):
        if isinstance(statement, ParsedStatement):
            parsed.append(statement)
        else:
            errors.append(statement.error)
    if errors:
        first, *others = errors
        first.more = tuple(others)
        raise first
    return parsed


def parse_statements(text: str, name: str = "<script>") -> list[ParsedStatement | BrokenStatement]:
    """Parse all statements of a script, including those with errors.

    After an error, parsing continues with the next statement if its beginning is certain.

    >>> [type(s).__name__ for s in parse_statements("SELECT FROM s; SHOW STREAMS; SELECT a b c")]
    ['BrokenStatement', 'ParsedStatement', 'BrokenStatement']
    """
    source = Source(name, text)
    _make_room()
    try:
        tokens = tokenize(text)
    except EslSyntaxError as error:
        return _before(error, source)
    return list(_statements(EslParser(tokens), source))


def _before(error: EslSyntaxError, source: Source) -> list[ParsedStatement | BrokenStatement]:
    """Return the statements before a character that begins no token, and that error."""
    at = error.span[0] if error.span else 0
    end = _last_end(tokenize(source.text[:at]))
    # An unclosed quote may belong to another one far before it, so errors between them may be spurious.
    quotes = source.text[at] in "'\"`"
    statements = _statements(EslParser(tokenize(source.text[:end])), source, goes_on=not quotes)
    rest = BrokenStatement(error.locate(source), source, (end, len(source.text) - 1))
    return [*statements, rest]


def _statements(
    parser: EslParser, source: Source, *, goes_on: bool = True
) -> Iterator[ParsedStatement | BrokenStatement]:
    while parser.current.kind is not Kind.END:
        if parser.take(";"):
            continue
        start, first = parser.current.start, parser.mark()
        try:
            tree = _statement(parser, source)
            _check_depth(tree)
        except RecursionError:
            error = EslSyntaxError("this is nested too deeply", span=parser.current.span, hint=_SPLIT_UP)
        except EslSyntaxError as raised:
            error = raised
        else:
            yield ParsedStatement(tree, source, (start, parser.previous.end))
            continue
        parser.skip_statement(first)
        yield BrokenStatement(error.locate(source), source, (start, parser.previous.end))
        if not goes_on or not parser.at_beginning:
            return


def _last_end(tokens: Sequence[Token]) -> int:
    """Return the position after the last ';' that ends a statement."""
    end = depth = 0
    for token in tokens:
        depth = max(0, depth + (token.key == "{") - (token.key == "}"))
        if token.key == ";" and depth == 0:
            end = token.end + 1
    return end


def _statement(parser: EslParser, source: Source) -> exp.Expr:
    """Parse one statement: of ESL, or a query over tables that only Spark understands."""
    first = parser.mark()
    try:
        tree = parser.statement()
        parser.end_of_statement()
    except EslSyntaxError as error:
        start, end = parser.whole_statement(first)
        plain = parse_plain_spark(source.text[start : end + 1], start)
        if plain is None:
            raise parser.foreign_phrase(first, error) or error from None
        return plain
    return tree


def parse_expression(text: str) -> exp.Expression:
    """Parse a single scalar expression."""

    def expression(parser: EslParser) -> exp.Expression:
        tree = parser.expression()
        assert isinstance(tree, exp.Expression)
        if parser.current.kind is not Kind.END:
            parser.fail_unexpected()
        _check_depth(tree)
        return tree

    return _parsed(Source("<expression>", text), expression)


def to_sql(tree: exp.Expr) -> str:
    """Return the ESL text of a tree."""
    return tree.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE)


def _parsed(source: Source, method: Callable[[EslParser], Result]) -> Result:
    _make_room()
    try:
        parser = EslParser(tokenize(source.text))
        try:
            return method(parser)
        except RecursionError:
            parser.fail("this is nested too deeply", hint=_SPLIT_UP)
    except EslSyntaxError as error:
        raise error.locate(source) from None


def _make_room() -> None:
    """Raise the recursion limit; all work on trees begins with parsing, so it is raised once."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))


def _check_depth(tree: exp.Expr) -> None:
    level, depth = [tree], 0
    while level:
        if depth == MAX_DEPTH:
            raise EslSyntaxError(
                "this is nested too deeply",
                span=next(filter(None, map(span_of, level)), span_of(tree)),
                hint=f"split it up: at most {MAX_DEPTH} operators can follow one another",
            )
        level = [child for node in level for child in node.iter_expressions()]
        depth += 1
