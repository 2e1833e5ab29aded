"""Names that a statement defines, read from its tokens, even if it cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from millstream.errors import EslSyntaxError
from millstream.syntax.statement_parser import BEGINNINGS, CREATABLE
from millstream.syntax.tokens import Kind, Token, tokenize

_FUNCTIONS = ("FUNCTION", "AGGREGATE", "WINDOW")
_BEFORE_NAMES = ("AGGREGATE", "IF", "NOT", "EXISTS")
_HEAD = 3
"""Number of words that may contain the kind of a definition, as in MATERIALIZED VIEW of other systems."""


class DefinedName(NamedTuple):
    """A name, with a flag for names of functions and aggregates."""

    name: str
    is_function: bool


def defined_names(text: str) -> list[DefinedName]:
    """Return the names that a statement would define.

    >>> [d.name for d in defined_names("CREATE STREAM s (a INT) LATE INTO l BAD INTO b")]
    ['s', 'l', 'b']
    >>> defined_names("CREATE OR REPLACE WINDOW AGGREGATE f(x INT) : INT { TABLE state(s INT); }")
    [DefinedName(name='f', is_function=True)]
    >>> [d.name for d in defined_names("SPLIT STREAM s INTO a AS (SELECT x FROM s), b AS (SELECT y FROM s)")]
    ['a', 'b']
    """
    try:
        tokens = _outside_braces(tokenize(text))
    except EslSyntaxError:
        return []
    return list(_defined(tokens))


def _defined(tokens: Sequence[Token]) -> Iterator[DefinedName]:
    depth, splits = 0, False
    for index, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        splits = splits or (token.key == "SPLIT" and _key(tokens, index + 1) == "STREAM")
        begins = index == 0 and (token.key in CREATABLE or token.key not in BEGINNINGS)
        if token.key == "CREATE" or begins:
            yield from _created(tokens[index if token.key in CREATABLE else index + 1 :])
        if token.key in ("LATE", "BAD") and _key(tokens, index + 1) == "INTO":
            yield from _named(tokens[index + 2 :], is_function=False)
        # The AS of a branch may be missing.
        following = index + 2 if _key(tokens, index + 1) == "AS" else index + 1
        if splits and depth == 0 and _key(tokens, following) == "(" and token.key != "AS":
            yield from _named(tokens[index:], is_function=False)


def _created(tokens: Sequence[Token]) -> Iterator[DefinedName]:
    """Yield the name after CREATE and a kind, which may be misspelt or missing."""
    tokens = tokens[2:] if _key(tokens, 0) == "OR" else tokens
    kind = next((i for i, token in enumerate(tokens[:_HEAD]) if token.key in CREATABLE), 0)
    rest = tokens[kind + 1 :]
    while _key(rest, 0) in _BEFORE_NAMES:
        rest = rest[1:]
    known, is_function = _key(tokens, kind) in CREATABLE, _key(tokens, kind) in _FUNCTIONS
    if known:
        yield from _named(rest, is_function=is_function)
        return
    for one in (rest, tokens):
        yield from _named(one, is_function=True)
        yield from _named(one, is_function=False)


def _named(tokens: Sequence[Token], *, is_function: bool) -> Iterator[DefinedName]:
    if tokens and tokens[0].kind in (Kind.WORD, Kind.NAME):
        yield DefinedName(tokens[0].text, is_function)


def _key(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].key if index < len(tokens) else ""


def _outside_braces(tokens: Sequence[Token]) -> list[Token]:
    """Drop the bodies of aggregates, whose tables are local."""
    remaining, depth = [], 0
    for token in tokens:
        depth = max(0, depth - (token.key == "}"))
        if depth == 0:
            remaining.append(token)
        depth += token.key == "{"
    return remaining
