"""Windows with a name: ``WINDOW w AS (...)``, used as ``OVER w`` or ``OVER (w ROWS 9 PRECEDING)``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.errors import Span, did_you_mean
from millstream.syntax.spans import span_of
from millstream.syntax.spark_only_queries import is_plain_spark

_PARTS = {"partition_by": "PARTITION BY", "order": "ORDER BY", "spec": "a frame"}


def with_windows(select: exp.Select) -> exp.Select:
    """Return a SELECT in which every OVER has its whole window in the place of a name."""
    if not select.args.get("windows") and not any(window.args.get("alias") for window in _windows(select)):
        return select
    select = select.copy()
    named: dict[str, exp.Window] = {}
    for definition in select.args.get("windows") or ():
        name = definition.this.name
        if name.lower() in named:
            raise error_at(definition, f"there are two windows '{name}'")
        named[name.lower()] = _whole(definition, named)
    for window in list(_windows(select)):
        _whole(window, named)
    return select


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    """Yield the windows of a SELECT, not those of queries inside it."""
    for window in select.find_all(exp.Window):
        if window.find_ancestor(exp.Select) is select:
            yield window


def written_out(query: exp.Expr, text: str) -> list[tuple[Span, str]]:
    """Return places in the text of a query, and the texts to put there for Spark.

    Spark takes the name of a window alone, with nothing beside it. ``text`` is that of the whole script.
    """
    return [
        (_span(window.args["alias"]), _inside(_base(window), text))
        for window in (() if is_plain_spark(query) else query.find_all(exp.Window))
        if window.args.get("alias") is not None and any(window.args.get(part) for part in _PARTS)
    ]


def _base(window: exp.Window) -> exp.Window:
    """Return the window that a window names."""
    select = window.find_ancestor(exp.Select)
    definitions = (select.args.get("windows") or ()) if select is not None else ()
    named = {definition.this.name.lower(): definition for definition in definitions}
    return _found(window, named)


def _inside(definition: exp.Window, text: str) -> str:
    """Return what stands in the parentheses of a definition."""
    start, end = _span(definition)
    first = text.index("(", start) + 1
    alias = definition.args.get("alias")
    if alias is None:
        return text[first:end]
    (before, after), inside = _span(alias), _inside(_base(definition), text)
    return text[first:before] + inside + text[after + 1 : end]


def _span(node: exp.Expr) -> Span:
    span = span_of(node)
    assert span is not None, "it was parsed"
    return span


def _whole(window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    """Put the parts of a window in the place of its name."""
    if window.args.get("alias") is None:
        return window
    base = _found(window, named)
    for part, clause in _PARTS.items():
        given = base.args.get(part)
        if not given:
            continue
        if window.args.get(part):
            raise error_at(
                window,
                f"the window '{base.this.name}' has {clause} already",
                hint="write the whole window in OVER (...)",
            )
        window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())
    window.set("alias", None)
    return window


def _found(window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    name = window.args["alias"].name
    base = named.get(name.lower())
    if base is None:
        known = [definition.this.name for definition in named.values()]
        hint = did_you_mean(name, known) or f"define it: ... WINDOW {name} AS (PARTITION BY ...)"
        raise error_at(window, f"there is no window '{name}'", hint=hint)
    return base
