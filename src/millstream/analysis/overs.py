"""Windows over an aggregate call: the rules of OVER on streams."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from millstream.analysis.calls import AggregateCall, Frame, OverCall
from millstream.analysis.quantities import positive, positive_on, quantity
from millstream.analysis.resolver import Resolver
from millstream.analysis.windows import StreamFacts
from millstream.catalog.entries import TimestampKind
from millstream.errors import AnalysisError
from millstream.quantity import Distance, Duration, Quantity, Rows
from millstream.syntax import nodes
from millstream.syntax.positions import span_of
from millstream.types import TIMESTAMP, UNKNOWN, Type


def analyse_over(node: exp.Window, call: AggregateCall, facts: StreamFacts, resolver: Resolver) -> OverCall:
    """``call OVER (...)``; the call itself has been analysed."""
    spec = node.args.get("spec")
    if not isinstance(spec, nodes.OverSpec):
        raise AnalysisError(
            f"the window of '{call.name}' does not say how far it reaches back",
            span=span_of(node),
            hint="write ROWS n PRECEDING, RANGE INTERVAL t PRECEDING or ROWS UNBOUNDED PRECEDING",
        )
    _check_order(node, facts, resolver)
    frame = _frame(spec, facts)
    slide = _step(spec, "slide", "SLIDE", facts)
    active = bool(spec.args.get("active"))
    emit = _step(spec, "emit", "EMIT EVERY", facts)
    _check_combination(node, frame, slide, active, emit)
    return OverCall(
        call,
        tuple(resolver.resolve(e) for e in node.args.get("partition_by") or ()),
        frame,
        slide,
        active,
        emit,
    )


def check_together(calls: Sequence[OverCall]) -> None:
    """The OVER calls of one SELECT: the same SLIDE or none, and ACTIVE EXPIRATION by itself."""
    for call in calls:
        if call.active_expiration and len(calls) > 1:
            raise AnalysisError(
                "a call with ACTIVE EXPIRATION stands alone in its SELECT",
                span=call.call.span,
                hint="its rows also come when a tuple leaves: write the other calls as a query of their own",
            )
        if call.slide != calls[0].slide:
            raise AnalysisError(
                "all OVER windows of a SELECT have the same SLIDE or none",
                span=call.call.span,
                hint="write a query for each SLIDE",
            )
        if call.emit_every != calls[0].emit_every:
            raise AnalysisError(
                "all OVER windows of a SELECT have the same EMIT EVERY or none",
                span=call.call.span,
                hint="write a query for each EMIT EVERY",
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
            raise AnalysisError(
                "a window over a stream is ordered by the stream's timestamp",
                span=span_of(ordered),
                hint=f"write ORDER BY {wanted}, or leave it out" if wanted else "leave ORDER BY out",
            )


def _frame(spec: nodes.OverSpec, facts: StreamFacts) -> Frame:
    kind = str(spec.args.get("kind", "")).upper()
    start, side = spec.args.get("start"), str(spec.args.get("start_side") or "").upper()
    end, end_side = spec.args.get("end"), str(spec.args.get("end_side") or "").upper()
    if end != "CURRENT ROW" or side == "FOLLOWING" or end_side == "FOLLOWING":
        raise AnalysisError(
            "a window over a stream ends at the current tuple",
            span=span_of(spec),
            hint="write n PRECEDING, or BETWEEN n PRECEDING AND CURRENT ROW",
        )
    if kind not in ("ROWS", "RANGE"):
        raise AnalysisError("a window counts ROWS or measures a RANGE", span=span_of(spec))
    rows = kind == "ROWS"
    if start == "UNBOUNDED":
        return Frame(rows, None)
    if start == "CURRENT ROW":
        return Frame(rows, Rows(0) if rows else Duration())
    assert isinstance(start, exp.Expr)
    if side != "PRECEDING":
        raise AnalysisError("expected PRECEDING after the size of the window", span=span_of(start))
    return Frame(rows, _rows_preceding(start) if rows else _range_preceding(start, facts))


def _rows_preceding(node: exp.Expr) -> Rows:
    amount = quantity(node)
    if isinstance(amount, Distance) and amount.value == int(amount.value) and amount.value >= 0:
        return Rows(int(amount.value))
    if isinstance(amount, Rows) and amount.count >= 0:
        return amount
    raise AnalysisError(
        f"ROWS counts tuples and cannot be {amount}",
        span=span_of(node),
        hint="write RANGE for an interval" if isinstance(amount, Duration) else None,
    )


def _range_preceding(node: exp.Expr, facts: StreamFacts) -> Duration | Distance:
    return positive_on(node, "RANGE", *_timestamp(facts))


def _timestamp(facts: StreamFacts) -> tuple[str, Type]:
    timestamp = facts.timestamp
    type_ = TIMESTAMP if timestamp.kind is TimestampKind.LATENT else timestamp.type or UNKNOWN
    return timestamp.column or "the timestamp", type_


def _step(spec: nodes.OverSpec, clause: str, what: str, facts: StreamFacts) -> Rows | Duration | None:
    """SLIDE and EMIT EVERY: so many tuples, or so much time."""
    node = spec.args.get(clause)
    if node is None:
        return None
    amount = positive(node, what)
    if isinstance(amount, Distance):
        if amount.value != int(amount.value):
            raise AnalysisError(f"{what} counts tuples and must be whole", span=span_of(node))
        return Rows(int(amount.value))
    if isinstance(amount, Duration):
        positive_on(node, what, *_timestamp(facts))
        if amount.months:
            raise AnalysisError(
                f"{what} {amount} has no fixed length", span=span_of(node), hint="write it in DAYS"
            )
    return amount


def _check_combination(
    node: exp.Window, frame: Frame, slide: Quantity | None, active: bool, emit: Quantity | None
) -> None:
    if active and slide is not None:
        raise AnalysisError(
            "SLIDE and ACTIVE EXPIRATION exclude each other",
            span=span_of(node),
            hint="a window gives results every so often, or also when a tuple leaves",
        )
    if active and (frame.rows or frame.preceding is None):
        raise AnalysisError(
            "ACTIVE EXPIRATION needs a RANGE window",
            span=span_of(node),
            hint="from a ROWS window a tuple leaves only when another comes",
        )
    if emit is not None and slide is None:
        raise AnalysisError(
            "EMIT EVERY needs SLIDE",
            span=span_of(node),
            hint="without SLIDE there is a result for every tuple anyway",
        )
    if emit is not None and isinstance(emit, Duration) is not isinstance(slide, Duration):
        raise AnalysisError(
            "EMIT EVERY and SLIDE both count tuples, or both are intervals",
            span=span_of(node),
            hint="SLIDE 100 EMIT EVERY 10, or SLIDE INTERVAL 1 MINUTE EMIT EVERY 1 SECOND",
        )
