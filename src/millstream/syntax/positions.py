"""Where a node stands in the source text.

sqlglot keeps positions on identifiers, most literals, calls and stars. Our parser adds a span to whole
expressions and to its own nodes; for anything else the span covers what is known below it.
"""

from __future__ import annotations

from sqlglot import exp

from millstream.errors import Span

_SPAN = "esl_span"


def set_span(node: exp.Expr, span: Span) -> None:
    """Remember the text of a node; the first span given is the innermost and stays."""
    node.meta.setdefault(_SPAN, span)


def span_of(node: exp.Expr) -> Span | None:
    """First and last character of a node, or None for a node that was not parsed.

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
        if not meta:
            continue
        if _SPAN in meta:
            starts.append(meta[_SPAN][0])
            ends.append(meta[_SPAN][1])
        elif "start" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"])
    return (min(starts), max(ends)) if starts else None
