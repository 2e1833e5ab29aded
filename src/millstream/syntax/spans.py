"""Spans of syntax nodes in the source text.

The parser stores the span of every node that it makes. A node that is built later from parsed ones covers the
spans below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.errors import Span

_SPAN = "esl_span"


def set_span(node: exp.Expr, span: Span) -> None:
    """Store the span of a node."""
    node.meta[_SPAN] = span


def span_of(node: exp.Expr) -> Span | None:
    """Return the first and last character of a node, or None for a node that was not parsed.

    >>> from millstream.syntax import parse_expression
    >>> span_of(parse_expression("1 + upper(x)"))
    (0, 11)
    """
    if node._meta and _SPAN in node._meta:
        span: Span = node._meta[_SPAN]
        return span
    starts, ends = [], []
    for part in node.walk():
        meta = part._meta
        if meta and _SPAN in meta:
            starts.append(meta[_SPAN][0])
            ends.append(meta[_SPAN][1])
    return (min(starts), max(ends)) if starts else None
