"""A plan as data, in a form that is independent of names in the code.

A checkpoint belongs to one plan. Kinds of operators and their properties have stable names in this file
alone, so that classes, fields and labels of EXPLAIN can be renamed; expressions are tokens, so that spaces,
comments and capitals do not matter. Absent properties are omitted: a property added later does not change the
identity of old queries that lack it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from typing import Any, TypeVar

from millstream.analysis.queries.call_nodes import (
    AggregateCall,
    Bodies,
    Frame,
    OrderKey,
    OverCall,
    Panes,
    RankCall,
    RankFrame,
    SortKey,
    ranks_along,
)
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import (
    Arrangement,
    GroupKey,
    Output,
    PatternClause,
    PatternElement,
    SortedBy,
)
from millstream.catalog import entries
from millstream.ir.python_aggregate import Functions, PythonBody
from millstream.ir.typed_nodes import Body
from millstream.masking import masked
from millstream.plan import nodes
from millstream.program.program import Program
from millstream.quantity import Distance, Duration, Rows
from millstream.syntax.canonical_text import canonical_text
from millstream.types import Field, Type
from millstream.windows import window_spec

T = TypeVar("T")
Properties = dict[str, Any]
Kind = tuple[str, Callable[[Any], Properties]]

KINDS: dict[type, Kind] = {}
"""Stable name of each class, and its properties. The names stay when classes are renamed."""


def described(plan: nodes.Node, *, exact_names: bool = False) -> tuple[str, ...]:
    """Return a line of JSON for each operator, an operator before its inputs.

    With ``exact_names``, the spelling of columns without an alias matters.
    """
    return tuple(_line(node, exact_names=exact_names) for node in plan.walk())


def function_described(function: entries.ScalarFunction) -> str:
    """Return the line for a user-defined function, which expressions only name."""
    return _json(["function", 0, _written(function)])


def modes_described(programs: Iterable[Program]) -> list[str]:
    """Return lines for the modes of user-defined aggregates, as each mode has its own state."""
    modes = {(program.name.lower(), program.mode) for program in programs if program.mode != "pattern"}
    return [_json(["run", 0, {"name": name, "mode": mode}]) for name, mode in sorted(modes)]


def functions_in(
    lines: Iterable[str], find: Callable[[str], entries.ScalarFunction | None]
) -> Iterator[entries.ScalarFunction]:
    """Yield the user-defined functions that are called in lines, and by one another."""
    seen: set[str] = set()
    pending = list(lines)
    while pending:
        for name in _called(pending.pop()) - seen:
            seen.add(name)
            function = find(name)
            if function is not None:
                yield function
                pending.append(canonical_text(function.body or ""))


def _called(line: str) -> set[str]:
    words = line.split(" ")
    return {before.split('"')[-1].lower() for before, sign in pairwise(words) if sign == "("}


def _line(node: nodes.Node, *, exact_names: bool) -> str:
    name, properties = KINDS[type(node)]
    own = _present(properties(node))
    if exact_names and isinstance(node, nodes.Project):
        own["names"] = [output.name for output in node.outputs]
    return _json([name, len(node.inputs), own])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _present(properties: Properties) -> Properties:
    return {
        name: _written(value)
        for name, value in properties.items()
        if value is not None and value is not False and value != ()
    }


def _written(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case Expr() | ColumnRef():
            return canonical_text(value.sql)
        case Type():
            return str(value)
        case Field():
            return f"{value.name.lower()} {value.type}"
        case Decimal():
            return format(value.normalize(), "f")
        case Enum():
            return value.value
        case tuple() | list():
            return [_written(one) for one in value]
        case dict():
            return _present(value)
        case _:
            name, properties = KINDS[type(value)]
            return {"kind": name, **_present(properties(value))}


def _known(class_: type[T], name: str, properties: Callable[[T], Properties]) -> None:
    KINDS[class_] = (name, properties)


def _lower(name: str | None) -> str | None:
    return None if name is None else name.lower()


def _all_lower(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


# ---------------------------------------------------------------- operators (inputs are other lines)

_known(nodes.StreamScan, "stream", lambda n: {"of": n.stream, "as": n.alias.lower()})
_known(nodes.TableScan, "table", lambda n: {"of": n.table, "as": n.alias.lower()})
_known(
    nodes.Generate,
    "generate",
    lambda n: {"items": n.items, "place": n.position is not None, "outer": n.outer},
)
_known(nodes.Extend, "extend", lambda n: {"alias": n.alias.lower(), "outputs": n.outputs})
_known(nodes.SparkQuery, "query", lambda n: {"sql": canonical_text(n.text)})
_known(nodes.Rename, "rename", lambda n: {"as": n.alias.lower()})
_known(nodes.Filter, "filter", lambda n: {"where": n.conditions})
_known(nodes.Project, "project", lambda n: {"outputs": n.outputs})
_known(nodes.TableJoin, "join with table", lambda n: {"type": n.kind, "on": n.condition})
_known(nodes.InOrder, "in order", lambda n: {"by": n.column})
_known(nodes.TableStream, "table as a stream", lambda n: {"by": n.column})
_known(nodes.Arranged, "sort", lambda n: {"by": n.arrangement})
_known(
    nodes.StreamUnion, "union of streams", lambda n: {"fields": n.fields, "all": n.all, "latent": n.latent}
)
_known(
    nodes.Windowed,
    "window",
    lambda n: {"of": n.window, "as": n.alias.lower(), "bounds": n.edge.type},
)
_known(
    nodes.WindowAggregate,
    "aggregate windows",
    lambda n: {"keys": n.group_by, "calls": n.aggregates, "current": n.current},
)
_known(nodes.GroupingSets, "grouping sets", lambda n: {"count": n.count})
_known(nodes.WindowRows, "rows of windows", lambda n: {})
_known(nodes.OverAggregate, "aggregate over", lambda n: {"calls": n.calls, "first": n.first})
_known(
    nodes.WindowRank,
    "rank windows",
    lambda n: {
        "report": n.report,
        "calls": n.calls,
        "order": n.order_by,
        "limit": n.limit,
        "offset": n.offset or None,
    },
)
_known(nodes.StreamLimit, "limit", lambda n: {"limit": n.limit, "offset": n.offset or None})
_known(nodes.BaseAggregate, "aggregate stream", lambda n: {"keys": n.group_by, "calls": n.aggregates})
_known(nodes.PatternMatch, "match pattern", lambda n: {"pattern": n.pattern, "outputs": n.outputs})
_known(nodes.WindowJoin, "join windows", lambda n: {"type": n.kind, "on": n.conditions})
_known(nodes.Distinct, "distinct", lambda n: {})
_known(
    nodes.WindowSetOperation,
    "set operation",
    lambda n: {"type": n.kind, "all": n.all, "fields": n.fields},
)
_known(nodes.RelationToStream, "to stream", lambda n: {"type": n.kind, "instant": n.instant})

# ---------------------------------------------------------------- parts of operators

_known(Output, "column", lambda o: {"name": _name_of(o), "is": o.expr, "type": o.expr.type})
_known(GroupKey, "key", lambda k: {"name": k.name.lower(), "is": k.expr, "type": k.expr.type})
_known(SortedBy, "by", lambda s: {"column": s.column, "desc": s.descending, "nulls first": s.nulls_first})
_known(Arrangement, "order", lambda a: {"by": a.keys, "limit": a.limit, "offset": a.offset or None})
_known(OrderKey, "order by", lambda k: {"is": k.expr, "desc": k.descending, "nulls first": k.nulls_first})
_known(RankFrame, "frame of rows", lambda f: {"rows": f.rows, "from": f.start, "to": f.end})
_known(
    RankCall,
    "rank",
    lambda c: {
        "name": c.name,
        "of": c.argument,
        "default": c.default,
        "number": c.number,
        "ignore nulls": c.ignore_nulls,
        "partition": c.partition_by,
        "order": c.order_by,
        "frame": c.frame,
        "type": c.type,
        "result": c.result,
    },
)
_known(SortKey, "within", lambda k: {"desc": k.descending, "nulls first": k.nulls_first})
_known(
    PatternElement,
    "element",
    lambda e: {"name": e.name.lower(), "star": e.star, "each": e.per_tuple, "complete": e.final},
)
_known(
    PatternClause,
    "pattern",
    lambda p: {
        "as": p.alias.lower(),
        "partition": _all_lower(p.partition_by),
        "sequence": _all_lower(p.sequence_by),
        "elements": p.elements,
        "after": p.after_match,
        "each": p.each,
        "computed": p.computed,
        "calls": _called_by(p.form),
    },
)
_known(
    AggregateCall,
    "call",
    lambda c: {
        "of": c.name.lower(),
        "arguments": c.arguments,
        "types": tuple(argument.type for argument in c.arguments),
        "type": c.type,
        "result": c.result,
        "distinct": c.distinct,
        "filter": c.filter,
        "ignore nulls": c.ignore_nulls,
        "within": c.within,
        "user": c.user,
        "bodies": c.bodies,
        "number": c.constants[0] if ranks_along(c) and c.constants else None,
    },
)
_known(Bodies, "bodies", lambda b: {"base": b.base, "window": b.window, "panes": b.panes})
_known(Panes, "panes", lambda p: {"pane": p.pane, "combined": p.combined})
_known(
    Body,
    "body",
    lambda b: {
        "name": b.name.lower(),
        "window": b.window,
        "parameters": b.parameters,
        "returns": b.returns,
        "tables": tuple((table.name.lower(), table.fields) for table in (*b.tables, *b.given)),
        "initialize": tuple(canonical_text(statement.text) for statement in b.initialize),
        "iterate": tuple(canonical_text(statement.text) for statement in b.iterate),
        "terminate": tuple(canonical_text(statement.text) for statement in b.terminate),
        "expire": tuple(canonical_text(statement.text) for statement in b.expire),
        "calls": _called_by(b),
    },
)
_known(
    PythonBody,
    "python",
    lambda b: {
        "name": b.name.lower(),
        "parameters": b.parameters,
        "returns": b.returns,
        "is": _qualified(b.python.subject),
        "form": b.python.form,
        "way": b.python.way,
    },
)
_known(Frame, "frame", lambda f: {"rows": f.rows, "back": f.preceding, "until": f.until})
_known(
    OverCall,
    "over",
    lambda o: {
        "call": o.call,
        "partition": o.partition_by,
        "frame": o.frame,
        "slide": o.slide,
        "active": o.active_expiration,
        "emit": o.emit_every,
        "along": o.along,
    },
)

_known(Rows, "rows", lambda q: {"count": q.count})
_known(Duration, "time", lambda q: {"us": q.microseconds, "months": q.months or None})
_known(Distance, "distance", lambda q: {"value": q.value})


def _window(window: window_spec.Window, **own: Any) -> Properties:
    return {
        "on": _lower(window.attribute),
        "partition": _all_lower(window.partition_by),
        "emit": window.emit_every,
        **own,
    }


def _reports(window: window_spec.RangeWindow) -> Properties:
    cases = tuple((when or "else", reach) for when, reach in window.cases)
    return {"last": window.stamp_last, "empty": window.emit_empty, "cases": cases}


_known(
    window_spec.RangeWindow,
    "range",
    lambda w: _window(w, range=w.range, slide=w.slide, origin=w.origin, lag=w.lag, **_reports(w)),
)
_known(
    window_spec.RowWindow,
    "rows window",
    lambda w: _window(w, range=w.range, slide=w.slide, arrival=w.by_arrival),
)
_known(
    window_spec.TupleSlideWindow,
    "tuple slide",
    lambda w: _window(w, range=w.range, every=w.every, rank=w.by_rank),
)
_known(window_spec.NowWindow, "now", lambda w: _window(w, lag=w.lag))
_known(
    window_spec.LandmarkWindow,
    "landmark",
    lambda w: _window(w, start=w.start, end=w.end, slide=w.slide, inclusive=w.inclusive),
)
_known(window_spec.SessionWindow, "session", lambda w: _window(w, gap=w.gap))
_known(window_spec.PredicateWindow, "predicate", lambda w: _window(w, start=w.start_when, end=w.end_when))

# ---------------------------------------------------------------- entries of the catalog

_known(
    entries.Stream,
    "declared stream",
    lambda s: {
        "name": s.name.lower(),
        "columns": s.schema,
        "from": s.origin,
        "time": s.timestamp,
        "promises": tuple(p for p in s.promises if not getattr(p, "implied", False)),
        "computed": s.computed,
        "selection": s.selection,
    },
)
_known(entries.Selection, "selection", lambda s: {"of": s.stream, "steps": s.steps})
_known(
    entries.SelectStep,
    "step",
    lambda s: {"as": s.alias.lower(), "where": s.conditions, "columns": s.columns, "types": s.schema},
)
_known(
    entries.Table,
    "declared table",
    lambda t: {
        "name": t.name.lower(),
        "columns": t.schema,
        "from": t.origin,
        "refresh": t.refresh,
        "computed": t.computed,
    },
)
_known(entries.ComputedColumn, "computed column", lambda c: {"name": c.name.lower(), "is": c.expr})
_known(entries.View, "declared view", lambda v: {"name": v.name.lower(), "columns": v.schema})
_known(
    entries.Timestamp,
    "timestamp",
    lambda t: {"kind of": t.kind, "column": _lower(t.column), "type": t.type},
)
_known(
    entries.SlackPromise,
    "slack",
    lambda p: {"amount": p.amount, "generous": p.generous, "on": _lower(p.on)},
)
_known(
    entries.OrderedPerPromise,
    "ordered per",
    lambda p: {"columns": _all_lower(p.columns), "idle": p.idle_after, "on": _lower(p.on)},
)
_known(
    entries.PunctuationPromise,
    "punctuation",
    lambda p: {"when": p.predicate, "per": _all_lower(p.per), "on": _lower(p.on)},
)
_known(entries.HeartbeatPromise, "heartbeat", lambda p: {"every": p.every, "on": _lower(p.on)})
_known(entries.Reader, "reader", lambda r: {"format": r.format.lower(), "options": _meaningful(r.options)})
_known(entries.Port, "port", lambda p: {"number": p.number})
_known(entries.Registered, "frame of the caller", lambda r: {"ends": r.is_bounded})
_known(entries.Stored, "stored", lambda s: {})
_known(entries.Derived, "derived", lambda d: {})
_known(entries.Rejected, "rejected", lambda r: {"by": r.stream.lower(), "as": r.reason})
_known(
    entries.Aggregate,
    "aggregate",
    lambda a: {
        "name": a.name.lower(),
        "parameters": a.parameters,
        "returns": a.returns,
        "window": a.window,
        "partial": _lower(a.partial),
        "final": _lower(a.final),
    },
)
_known(
    entries.ScalarFunction,
    "scalar",
    lambda f: {
        "name": f.name.lower(),
        "parameters": f.parameters,
        "returns": f.returns,
        "sql": None if f.body is None else canonical_text(f.body),
        "python": f.python,
    },
)

_ABOUT_SPEED = (
    "pertrigger",
    "maxfileage",
    "maxcachedfiles",
    "minpartitions",
    "cleansource",
    "sourcearchivedir",
)
"""Suffixes of options that concern the speed of reading and the treatment of files afterwards."""

_ABOUT_ACCESS = ("kafka.", "fs.", "user")
"""Prefixes of options that concern access to a source. Secrets are ignored too."""


def _meaningful(options: entries.Options) -> tuple[tuple[str, str], ...]:
    """Return the options of a source that affect its content."""
    return tuple(
        sorted(
            (name, masked(value))
            for name, value in ((name.lower(), value) for name, value in options)
            if not name.endswith(_ABOUT_SPEED)
            and not name.startswith(_ABOUT_ACCESS)
            and masked(f"{name} '{value}'") == f"{name} '{masked(value)}'"
        )
    )


def _name_of(output: Output) -> str:
    """Return the name of a column, in canonical form if it is the text of an expression."""
    return output.name if output.name.isidentifier() else canonical_text(output.name)


def _called_by(part: Any) -> tuple[Body | PythonBody, ...]:
    """Return the user-defined aggregates that are called anywhere in a body or in a pattern."""
    bodies: list[Body | PythonBody] = []
    pending = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, Body | PythonBody) and one is not part:
            bodies.append(one)
        elif isinstance(one, tuple | list):
            pending += reversed(one)
        elif is_dataclass(one) and not isinstance(one, Type):
            pending += reversed([getattr(one, field.name) for field in fields(one)])
    return tuple(bodies)


def _qualified(subject: Any) -> Any:
    if isinstance(subject, Functions):
        return {name: _qualified(function) for name, function in sorted(vars(subject).items())}
    named = subject if inspect.isclass(subject) or hasattr(subject, "__qualname__") else type(subject)
    return f"{named.__module__}:{named.__qualname__}"
