"""Windows over an aggregate call: the rules of OVER on streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import AggregateCall, Frame, OverCall
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.quantities import as_rows, positive, positive_on, quantity
from millstream.catalog.entries import TimestampKind
from millstream.errors import AnalysisError
from millstream.quantity import Distance, Duration, Rows, negative, size
from millstream.syntax import nodes
from millstream.types import TIMESTAMP, UNKNOWN, Kind


def analyse_over(node: exp.Window, call: AggregateCall, facts: StreamFacts, resolver: Resolver) -> OverCall:
    """Analyse ``call OVER (...)``, whose call has been analysed."""
    spec = node.args.get("spec")
    check_order(node, facts, resolver)
    partition = tuple(resolver.resolve(e) for e in node.args.get("partition_by") or ())
    if not isinstance(spec, nodes.OverSpec):
        return OverCall(call, partition, Frame(rows=False, preceding=None))
    frame = frame_of(spec, facts)
    slide = _slide(spec, facts)
    active = bool(spec.args.get("active"))
    _check_combination(node, frame, slide, active, bool(spec.args.get("emit")))
    return OverCall(call, partition, frame, slide, active, _emit(spec, slide, facts))


def emits_early(items: Iterable[exp.Expr]) -> bool:
    """Tell whether a window in some expressions has EMIT EVERY."""
    specs = (spec for item in items for spec in item.find_all(nodes.OverSpec))
    return any(spec.args.get("emit") is not None for spec in specs)


def refuse_on_table(node: exp.Window) -> None:
    """Refuse the frames of ESL on tables; plain OVER on tables is Spark's."""
    spec = node.args.get("spec")
    clauses = {"slide": "SLIDE", "active": "ACTIVE EXPIRATION", "emit": "EMIT EVERY"}
    for name, clause in clauses.items():
        if isinstance(spec, nodes.OverSpec) and spec.args.get(name):
            raise error_at(
                node,
                f"{clause} in OVER is for streams",
                hint="declare the order of the table: CREATE TABLE t (...) ORDER BY column USING ...",
            )


def check_together(calls: Sequence[OverCall]) -> None:
    """Check that the OVER calls of a SELECT have one SLIDE or none, and ACTIVE EXPIRATION by itself."""
    for call in calls:
        if call.active_expiration and len(calls) > 1:
            raise AnalysisError(
                "a call with ACTIVE EXPIRATION stands alone in its SELECT",
                span=call.call.span,
                hint="its rows also come when a tuple leaves: write the other calls as a query of their own",
            )
        if call.slide != calls[0].slide or call.emit_every != calls[0].emit_every:
            what = "SLIDE" if call.slide != calls[0].slide else "EMIT EVERY"
            raise AnalysisError(
                f"all OVER windows of a SELECT have the same {what} or none",
                span=call.call.span,
                hint=f"write a query for each {what}",
            )
        if call.slide is not None and call.partition_by != calls[0].partition_by:
            raise AnalysisError(
                "all OVER windows of a SELECT with SLIDE have the same PARTITION BY",
                span=call.call.span,
                hint="each partition has slots of its own: write a query for each PARTITION BY",
            )


def check_order(node: exp.Window, facts: StreamFacts, resolver: Resolver) -> None:
    """Check that ORDER BY names the timestamp, if it is there."""
    order = node.args.get("order")
    for ordered in order.expressions if order else ():
        column = resolver.resolve(ordered.this).column
        wanted = facts.timestamp.column
        if (
            column is None
            or wanted is None
            or column.name.lower() != wanted.lower()
            or ordered.args.get("desc")
        ):
            raise error_at(
                ordered,
                "a window over a stream is ordered by the stream's timestamp",
                hint=f"write ORDER BY {wanted}, or leave it out" if wanted else "leave ORDER BY out",
            )


def frame_of(spec: nodes.OverSpec, facts: StreamFacts) -> Frame:
    """Return the frame of a window."""
    kind = str(spec.args.get("kind", "")).upper()
    if kind not in ("ROWS", "RANGE"):
        raise error_at(spec, "a window counts ROWS or measures a RANGE")
    rows = kind == "ROWS"
    preceding, until = (_bound(spec, which, facts, rows=rows) for which in ("start", "end"))
    if preceding is not None and size(preceding) < (0 if until is None else size(until)):
        raise error_at(spec, "this window ends before it begins", hint="the earlier bound comes first")
    current = until is not None and size(until) == 0
    return Frame(rows, preceding, None if current or spec.args.get("end") == "CURRENT ROW" else until)


def _bound(
    spec: nodes.OverSpec, which: str, facts: StreamFacts, *, rows: bool
) -> Rows | Duration | Distance | None:
    """Return the distance of a bound before the current row; None is unbounded."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
    if value == "CURRENT ROW":
        return Rows(0) if rows else Duration()
    if value == "UNBOUNDED":
        if side == "FOLLOWING" and which == "end":
            raise error_at(
                spec,
                "a window over a stream cannot wait for all rows that follow: a stream has no last one",
                hint="write n FOLLOWING, or a bracket for reports of whole windows: FROM s [TUMBLE 1 HOUR]",
            )
        if side == "FOLLOWING" or which == "end":
            raise error_at(spec, f"a window cannot {which} at UNBOUNDED {side}")
        return None
    assert isinstance(value, exp.Expr)
    distance = rows_preceding(value) if rows else _range_preceding(value, facts)
    return negative(distance) if side == "FOLLOWING" else distance


def rows_preceding(node: exp.Expr) -> Rows:
    amount = quantity(node)
    if isinstance(amount, Distance) and amount.value == int(amount.value) and amount.value >= 0:
        return as_rows(amount, node)
    if isinstance(amount, Rows) and amount.count >= 0:
        return amount
    raise error_at(
        node,
        f"ROWS counts tuples and cannot be {amount}",
        hint="write RANGE for an interval" if isinstance(amount, Duration) else None,
    )


def _range_preceding(node: exp.Expr, facts: StreamFacts, what: str = "RANGE") -> Duration | Distance:
    timestamp = facts.timestamp
    type_ = TIMESTAMP if timestamp.kind is TimestampKind.LATENT else timestamp.type or UNKNOWN
    return positive_on(node, what, timestamp.column or "the timestamp", type_)


def _slide(spec: nodes.OverSpec, facts: StreamFacts) -> Rows | Duration | Distance | None:
    node = spec.args.get("slide")
    return None if node is None else _rows_or_time(node, "SLIDE", facts)


def _emit(
    spec: nodes.OverSpec, slide: Rows | Duration | Distance | None, facts: StreamFacts
) -> Rows | Duration | Distance | None:
    node = spec.args.get("emit")
    if node is None:
        return None
    emit = _rows_or_time(node, "EMIT EVERY", facts)
    if isinstance(emit, Rows) != isinstance(slide, Rows):
        raise error_at(
            node,
            f"SLIDE {slide} does not go with EMIT EVERY {emit}",
            hint="both count tuples, or both are lengths along the timestamp",
        )
    return emit


def _rows_or_time(node: exp.Expr, what: str, facts: StreamFacts) -> Rows | Duration | Distance:
    """Return an amount of time or tuples; a number counts tuples, unless RANGE is before it."""
    if isinstance(node, nodes.Along):
        type_ = facts.timestamp.type or UNKNOWN
        distance = _range_preceding(node.this, facts, what)
        if type_.kind in (Kind.FLOAT, Kind.DOUBLE):
            raise error_at(
                node,
                f"{what} RANGE along '{facts.timestamp.column or 'the timestamp'}', which is of type {type_}",
                hint="slots need a timestamp of whole steps: an integer, a decimal or a time",
            )
        return distance
    amount = positive(node, what)
    if isinstance(amount, Duration):
        return _range_preceding(node, facts, what)
    if isinstance(amount, Distance):
        if amount.value != int(amount.value):
            raise error_at(
                node,
                f"{what} counts tuples and must be whole",
                hint=f"write {what} RANGE {amount} for a length",
            )
        return as_rows(amount, node)
    return amount


def _check_combination(
    node: exp.Window,
    frame: Frame,
    slide: Rows | Duration | Distance | None,
    active: bool,
    emit: bool,
) -> None:
    if (slide is not None or active) and frame.follows:
        raise error_at(
            node,
            f"{'ACTIVE EXPIRATION' if active else 'SLIDE'} does not go with FOLLOWING",
            hint="compute the window in a query in FROM (SELECT ...)",
        )
    if slide is not None and frame.until is not None and frame.preceding is None:
        raise error_at(
            node,
            "SLIDE does not go with a window without a beginning that ends before the current tuple",
            hint="compute the window in a query in FROM (SELECT ...), and slide outside",
        )
    if active and frame.until is not None:
        raise error_at(
            node,
            "ACTIVE EXPIRATION needs a window that ends at the current tuple",
            hint="write RANGE INTERVAL 5 MINUTES PRECEDING ACTIVE EXPIRATION",
        )
    if active and slide is not None:
        raise error_at(
            node,
            "SLIDE and ACTIVE EXPIRATION exclude each other",
            hint="a window gives results every so often, or also when a tuple leaves",
        )
    if active and (frame.rows or frame.preceding is None):
        raise error_at(
            node,
            "ACTIVE EXPIRATION needs a RANGE window",
            hint="from a ROWS window a tuple leaves only when another comes",
        )
    if emit and slide is None:
        raise error_at(
            node, "EMIT EVERY needs SLIDE", hint="without SLIDE there is a result for every tuple anyway"
        )
