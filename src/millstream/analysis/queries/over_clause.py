"""Windows over an aggregate call: the rules of OVER on streams."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.call_nodes import AggregateCall, Frame, OverCall
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.quantities import as_rows, positive, positive_on, quantity
from millstream.catalog.entries import TimestampKind
from millstream.errors import AnalysisError
from millstream.quantity import Distance, Duration, Rows
from millstream.syntax import nodes
from millstream.types import TIMESTAMP, UNKNOWN


def analyse_over(node: exp.Window, call: AggregateCall, facts: StreamFacts, resolver: Resolver) -> OverCall:
    """Analyse ``call OVER (...)``, whose call has been analysed."""
    spec = node.args.get("spec")
    if not isinstance(spec, nodes.OverSpec):
        raise error_at(
            node,
            f"the window of '{call.name}' does not say how far it reaches back",
            hint="write ROWS n PRECEDING, RANGE INTERVAL t PRECEDING or ROWS UNBOUNDED PRECEDING",
        )
    _check_order(node, facts, resolver)
    frame = _frame(spec, facts)
    slide = _slide(spec, facts)
    active = bool(spec.args.get("active"))
    latent = facts.timestamp.kind is TimestampKind.LATENT
    _check_combination(node, frame, slide, active, bool(spec.args.get("emit")), latent)
    return OverCall(
        call,
        tuple(resolver.resolve(e) for e in node.args.get("partition_by") or ()),
        frame,
        slide,
        active,
        _emit(spec, slide, facts),
    )


def refuse_on_table(node: exp.Window) -> None:
    """Refuse the frames of ESL on tables; plain OVER on tables is Spark's."""
    spec = node.args.get("spec")
    clauses = {"slide": "SLIDE", "active": "ACTIVE EXPIRATION", "emit": "EMIT EVERY"}
    for name, clause in clauses.items():
        if isinstance(spec, nodes.OverSpec) and spec.args.get(name):
            raise error_at(
                node,
                f"{clause} in OVER is for streams",
                hint="CREATE STREAM with ORDER BY reads the same files in order",
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


def _check_order(node: exp.Window, facts: StreamFacts, resolver: Resolver) -> None:
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


def _frame(spec: nodes.OverSpec, facts: StreamFacts) -> Frame:
    kind = str(spec.args.get("kind", "")).upper()
    start, side = spec.args.get("start"), str(spec.args.get("start_side") or "").upper()
    end, end_side = spec.args.get("end"), str(spec.args.get("end_side") or "").upper()
    if end != "CURRENT ROW" or side == "FOLLOWING" or end_side == "FOLLOWING":
        raise error_at(
            spec,
            "a window over a stream ends at the current tuple",
            hint="write n PRECEDING, or BETWEEN n PRECEDING AND CURRENT ROW",
        )
    if kind not in ("ROWS", "RANGE"):
        raise error_at(spec, "a window counts ROWS or measures a RANGE")
    rows = kind == "ROWS"
    if start == "UNBOUNDED":
        return Frame(rows, None)
    if start == "CURRENT ROW":
        return Frame(rows, Rows(0) if rows else Duration())
    assert isinstance(start, exp.Expr)
    if side != "PRECEDING":
        raise error_at(start, "expected PRECEDING after the size of the window")
    return Frame(rows, rows_preceding(start) if rows else _range_preceding(start, facts))


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


def _slide(spec: nodes.OverSpec, facts: StreamFacts) -> Rows | Duration | None:
    node = spec.args.get("slide")
    return None if node is None else _rows_or_time(node, "SLIDE", facts)


def _emit(spec: nodes.OverSpec, slide: Rows | Duration | None, facts: StreamFacts) -> Rows | Duration | None:
    node = spec.args.get("emit")
    if node is None:
        return None
    emit = _rows_or_time(node, "EMIT EVERY", facts)
    if isinstance(emit, Rows) != isinstance(slide, Rows):
        raise error_at(
            node,
            f"SLIDE {slide} does not go with EMIT EVERY {emit}",
            hint="both count tuples, or both are intervals",
        )
    return emit


def _rows_or_time(node: exp.Expr, what: str, facts: StreamFacts) -> Rows | Duration:
    """Return an amount of time or tuples; a number counts tuples."""
    amount = positive(node, what)
    if isinstance(amount, Duration):
        _range_preceding(node, facts, what)
        return amount
    if isinstance(amount, Distance):
        if amount.value != int(amount.value):
            raise error_at(node, f"{what} counts tuples and must be whole")
        return as_rows(amount, node)
    return amount


def _check_combination(
    node: exp.Window, frame: Frame, slide: Rows | Duration | None, active: bool, emit: bool, latent: bool
) -> None:
    if active and slide is not None:
        raise error_at(
            node,
            "SLIDE and ACTIVE EXPIRATION exclude each other",
            hint="a window gives results every so often, or also when a tuple leaves",
        )
    if active and latent:
        raise error_at(
            node,
            "ACTIVE EXPIRATION needs a timestamp: on a latent stream nothing would expire while it is silent",
            hint="declare the stream with current_time TIMESTAMP, ORDER BY current_time and"
            " HEARTBEAT INTERVAL 1 SECOND",
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
