"""From text to trees and back: scripts, single expressions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from millstream.errors import EslSyntaxError, Source
from millstream.syntax.dialect import Esl
from millstream.syntax.plain_spark import parse_plain_spark
from millstream.syntax.positions import span_of
from millstream.syntax.statements import EslParser
from millstream.syntax.tokens import Kind, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.errors import Span

Result = TypeVar("Result")

_DIALECT = Esl()
# A sum of so many terms is a tree of that depth. Whatever walks through trees by recursion can rely on it.
MAX_DEPTH = 1_200
# Frames of Python that trees of that depth need. They take little of the C stack: C calls few of them.
_FRAMES = 20_000


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

    def statements(parser: EslParser) -> list[ParsedStatement]:
        parsed = []
        while parser.current.kind is not Kind.END:
            if parser.take(";"):
                continue
            start = parser.current.start
            tree = _statement(parser, source)
            _check_depth(tree)
            parsed.append(ParsedStatement(tree, source, (start, parser.previous.end)))
        return parsed

    return _parsed(source, statements)


def _statement(parser: EslParser, source: Source) -> exp.Expr:
    """One statement: of ESL, or a query over tables that only Spark understands."""
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
    """A single scalar expression."""

    def expression(parser: EslParser) -> exp.Expression:
        tree = parser.expression()
        assert isinstance(tree, exp.Expression)
        if parser.current.kind is not Kind.END:
            parser.fail_unexpected()
        _check_depth(tree)
        return tree

    return _parsed(Source("<expression>", text), expression)


def to_sql(tree: exp.Expr) -> str:
    """The text of a tree, in ESL."""
    return tree.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE)


def _parsed(source: Source, method: Callable[[EslParser], Result]) -> Result:
    # All work on trees begins here, so nothing that follows has to make room again.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))
    try:
        parser = EslParser(tokenize(source.text))
        try:
            return method(parser)
        except RecursionError:
            parser.fail("this is nested too deeply", hint="split it up, for instance with WITH")
    except EslSyntaxError as error:
        raise error.locate(source) from None


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
