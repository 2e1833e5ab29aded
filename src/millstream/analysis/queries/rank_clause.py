"""Ranking functions OVER the rows of a report, and ORDER BY, LIMIT and OFFSET of each report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import OrderKey, RankCall, RankFrame
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name, is_call
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import Output, TopRows
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.constants import NotConstantError, constant_value
from millstream.errors import AnalysisError
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import Kind, Type

_RANKS = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
_OTHER_ROWS = frozenset({"lag", "lead"})
_VALUES = {"first": "first_value", "last": "last_value"}
_OF_FRAMES = frozenset({"first_value", "last_value", "nth_value", *_VALUES})
UNORDERED = frozenset({Kind.MAP, Kind.VARIANT})


def is_ranking(node: exp.Window, resolver: Resolver) -> bool:
    """Tell whether a call with OVER is a ranking function or returns a value of another row."""
    name = aggregate_name(node)
    return name.lower() in _RANKS | _OTHER_ROWS | _OF_FRAMES and not resolver.catalog.has_aggregate(name)


def is_of_instants(node: exp.Window, facts: StreamFacts | None, resolver: Resolver) -> bool:
    """Tell whether PARTITION BY names the timestamp: then a partition has rows of one instant only.

    Without ORDER BY only a value of the whole instant needs all its rows; all else goes along the stream.
    """
    timestamp = facts.timestamp.column if facts is not None else None
    framed = node.args.get("spec") is not None or isinstance(node.this, exp.Filter)
    along = framed or aggregate_name(node).lower() not in _OF_FRAMES
    if timestamp is None or (node.args.get("order") is None and along):
        return False
    columns = (resolver.resolve(part).column for part in node.args.get("partition_by") or ())
    return any(column is not None and column.name.lower() == timestamp.lower() for column in columns)


@dataclass(frozen=True)
class RankArguments:
    """A ranking function before OVER, with its arguments as they are written, and its distance or place."""

    name: str
    inner: exp.Expr
    value: exp.Expr | None
    default: exp.Expr | None
    number: int
    ignore_nulls: bool

    @classmethod
    def of(cls, node: exp.Window) -> RankArguments:
        written = aggregate_name(node).lower()
        name = _VALUES.get(written, written)
        inner, ignore_nulls = _call_of(node)
        arguments = list(inner.expressions)
        if name in ("first_value", "last_value"):
            ignore_nulls |= any(isinstance(flag, exp.Boolean) and bool(flag.this) for flag in arguments[1:])
        if arguments and isinstance(arguments[0], exp.IgnoreNulls | exp.RespectNulls):
            ignore_nulls |= isinstance(arguments[0], exp.IgnoreNulls)
            arguments[0] = arguments[0].this
        default = arguments[2] if name in _OTHER_ROWS and len(arguments) > 2 else None
        value = arguments[0] if name not in _RANKS else None
        return cls(name, inner, value, default, _number(name, arguments), ignore_nulls)


def rank_call(
    node: exp.Window, type_: Type, resolver: Resolver, result: str, text: Callable[[exp.Expr], str]
) -> RankCall:
    """Resolve a ranking function with its window; the name of the ``result`` is that of its column."""
    given = RankArguments.of(node)
    order = node.args.get("order")
    if order is None and given.name not in _OF_FRAMES:
        raise error_at(
            node,
            f"'{given.inner.name.lower()}' needs an order",
            hint=f"write {text(given.inner)} OVER (ORDER BY ... DESC)",
        )
    return RankCall(
        given.name,
        type_,
        ColumnRef("", result, type_),
        tuple(resolver.resolve(part) for part in node.args.get("partition_by") or ()),
        tuple(order_key(part, resolver) for part in (order.expressions if order is not None else ())),
        None if given.value is None else resolver.resolve(given.value),
        None if given.default is None else resolver.resolve(given.default),
        given.number,
        given.ignore_nulls,
        _frame(node, given.name, ordered=order is not None),
        text(node),
        span_of(node),
    )


def order_key(part: exp.Expr, resolver: Resolver) -> OrderKey:
    """Resolve a key of ORDER BY."""
    expr = resolver.resolve(part.this)
    if expr.type.kind in UNORDERED:
        raise error_at(part, f"values of type {expr.type} have no order")
    return OrderKey(expr, bool(part.args.get("desc")), bool(part.args.get("nulls_first")))


def top_rows(
    node: exp.Select, outputs: Sequence[Output], resolver: Resolver, along: frozenset[str]
) -> TopRows | None:
    """Return the order of rows and how many of them are kept; ``along`` names the columns of their time.

    Rows come in the order of time anyway, so that keys about time before all others say nothing.
    """
    order = node.args.get("order")
    keys: list[OrderKey] = []
    for part in order.expressions if order is not None else ():
        with resolver.collected():
            key = _selected(part, outputs) or order_key(part, resolver)
            column = key.expr.column
            if column is not None and column.name.lower() in along and not keys:
                if key.descending:
                    raise error_at(
                        part,
                        "a stream can only be ordered by its timestamp upwards",
                        hint="windows come in the order of their ends; leave DESC out",
                    )
                continue
            keys.append(key)
    limit, offset = (count_of(node, clause) for clause in ("limit", "offset"))
    if not keys and limit is None and not offset:
        return None
    return TopRows(tuple(keys), limit, offset or 0)


def count_of(node: exp.Expr, clause: str) -> int | None:
    """Return the number of LIMIT or OFFSET, or None."""
    part = node.args.get(clause)
    if part is None or (isinstance(part.expression, exp.Var) and part.expression.name == "ALL"):
        return None
    value = _whole(part.expression)
    if value is None or value < 0:
        raise error_at(part.expression, f"{clause.upper()} is a whole number that is not negative")
    return value


def _selected(part: exp.Expr, outputs: Sequence[Output]) -> OrderKey | None:
    """Return the column of SELECT that a key names, by its name or its position."""
    wanted = part.this
    found = None
    if isinstance(wanted, exp.Literal) and not wanted.is_string:
        if not wanted.name.isdigit() or not 1 <= int(wanted.name) <= len(outputs):
            raise error_at(part, f"ORDER BY {wanted.name} names no column of SELECT")
        found = outputs[int(wanted.name) - 1]
    elif isinstance(wanted, exp.Column) and not wanted.table:
        found = next((o for o in outputs if o.name.lower() == wanted.name.lower()), None)
    if found is None:
        return None
    if found.expr.type.kind in UNORDERED:
        raise error_at(part, f"values of type {found.expr.type} have no order")
    expr = replace(found.expr, span=span_of(part))
    return OrderKey(expr, bool(part.args.get("desc")), bool(part.args.get("nulls_first")))


def _call_of(node: exp.Window) -> tuple[exp.Expr, bool]:
    """Return the call before OVER, and whether IGNORE NULLS stands behind it."""
    inner, ignore_nulls = node.this, False
    while not is_call(inner):
        if isinstance(inner, exp.Filter):
            raise error_at(node, f"FILTER does not go with '{aggregate_name(node)}'")
        ignore_nulls |= isinstance(inner, exp.IgnoreNulls)
        inner = inner.this
    return inner, ignore_nulls


def _number(name: str, arguments: Sequence[exp.Expr]) -> int:
    at = 0 if name == "ntile" else 1
    if name not in ("ntile", "lag", "lead", "nth_value") or len(arguments) <= at:
        return 1
    what = {"ntile": "the number of buckets", "nth_value": "the place"}.get(name, "the distance")
    value = _whole(arguments[at])
    if value is None:
        raise error_at(arguments[at], f"{what} of '{name}' is a whole number")
    if value < 1 and name in ("ntile", "nth_value"):
        raise error_at(arguments[at], f"{what} of '{name}' is at least 1")
    return value


def _frame(node: exp.Window, name: str, *, ordered: bool) -> RankFrame:
    """Return the frame of a value; without ORDER BY all rows are peers."""
    spec = node.args.get("spec")
    if spec is None:
        return RankFrame(rows=False, start=None, end=0 if ordered else None)
    for argument, clause in {"slide": "SLIDE", "active": "ACTIVE EXPIRATION", "emit": "EMIT EVERY"}.items():
        if spec.args.get(argument):
            raise error_at(spec, f"{clause} does not go with the rows of a report")
    if name not in _OF_FRAMES:
        raise error_at(spec, f"'{name}' has no frame", hint="it looks at all rows of its partition")
    rows = str(spec.args.get("kind", "")).upper() == "ROWS"
    start, end = (_bound(spec, side, rows=rows) for side in ("start", "end"))
    return RankFrame(rows, start, end)


def _bound(spec: nodes.OverSpec, which: str, *, rows: bool) -> int | None:
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
    if value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        if (side == "FOLLOWING") != (which == "end"):
            raise error_at(spec, f"a frame does not {which} at UNBOUNDED {side}")
        return None
    count = _whole(value) if rows and isinstance(value, exp.Expr) else None
    if count is None:
        raise error_at(
            spec,
            "a frame over the rows of a report counts ROWS, or has no bounds",
            hint="write ROWS BETWEEN n PRECEDING AND m FOLLOWING, or UNBOUNDED PRECEDING",
        )
    return -count if side == "PRECEDING" else count


def _whole(node: exp.Expr) -> int | None:
    """Return the value of a whole number, or None."""
    try:
        value = constant_value(node)
    except NotConstantError:
        return None
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else None


def refuse_change_words(word: str | None, what: str, node: exp.Expr) -> None:
    """Refuse ISTREAM, DSTREAM and CHANGES beside an order: a rank changes with every other row."""
    if word in ("ISTREAM", "DSTREAM", "CHANGES"):
        raise AnalysisError(
            f"{what} does not go with {word}",
            span=span_of(node),
            hint="the content of a window is ranked as a whole: leave the word out, or write RSTREAM",
        )
