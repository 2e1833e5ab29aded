"""UNION, INTERSECT and EXCEPT: columns that fit, an order for the result, windows where they are needed."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import facts_of, with_bracket
from millstream.analysis.queries.output_order import common_order
from millstream.analysis.queries.relation_kind import has_content, takes_relations
from millstream.analysis.queries.resolved_query import InstantColumn, Query, Select, SetOperation
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.coercion import common_type
from millstream.catalog.entries import Timestamp, TimestampKind
from millstream.errors import AnalysisError
from millstream.syntax.spans import span_of
from millstream.types import Field


def united(node: exp.SetOperation, left: tuple[Field, ...], right: tuple[Field, ...]) -> tuple[Field, ...]:
    kind = node.key.upper()
    if len(left) != len(right):
        raise error_at(node.expression, f"{kind} of {len(left)} columns with {len(right)}")
    fields = []
    for a, b in zip(left, right, strict=True):
        type_ = common_type(a.type, b.type)
        if type_ is None:
            raise error_at(
                node.expression,
                f"{kind} of column '{a.name}' of type {a.type} with '{b.name}' of type {b.type}",
                hint="CAST one of them",
            )
        fields.append(Field(a.name, type_))
    return tuple(fields)


def united_facts(
    node: exp.SetOperation, left: Query, right: Query, *, maintained: bool
) -> StreamFacts | None:
    """Return the facts about a merge by timestamp; a latent input makes it latent (semantics, section 1).

    Where contents of windows are ``maintained``, tuples of a latent stream have the time of their arrival.
    """
    if left.facts is None or right.facts is None:
        return None
    a, b = left.facts, right.facts
    if a.stored != b.stored:
        raise error_at(
            node,
            "one side is a stream and the other has windows on tables",
            hint="read the table as a stream: CREATE STREAM ... ORDER BY column USING ...",
        )
    bounded = a.bounded and b.bounded
    if TimestampKind.LATENT in (a.timestamp.kind, b.timestamp.kind) and not maintained:
        return StreamFacts(Timestamp(TimestampKind.LATENT), frozenset(), bounded, a.stored)
    type_ = common_order([a, b], span_of(node), maintained=maintained)
    # Rows enter an INTERSECT or EXCEPT when the other side has, or loses, as many of them.
    names = [f.name.lower() for f in left.fields or ()]
    others = [f.name.lower() for f in right.fields or ()]
    column = None
    if a.timestamp.column and b.timestamp.column and isinstance(node, exp.Union):
        position = names.index(a.timestamp.column.lower())
        same = others.index(b.timestamp.column.lower()) == position
        column = a.timestamp.column if same else None
    timestamp = Timestamp(a.timestamp.kind, column, type_)
    promised = {column.lower()} if column else set()
    if not node.args.get("distinct"):
        # Tuples pass as they come, and with them what both sides promise about a column.
        promised |= {x for x, y in zip(names, others, strict=True) if x in a.promised and y in b.promised}
    return StreamFacts(timestamp, frozenset(promised), bounded, a.stored)


def without_keyword(query: Query) -> tuple[Query, str | None]:
    """Split a query into the relation and the operator that makes a stream of it."""
    match query:
        case Select(to_stream=str() as kind, instant=InstantColumn(name=name)):
            raise AnalysisError(
                f"'{name}' is no column of the sides of a set operation, whose rows come and go together",
                span=query.span,
                hint=f"put the set operation into FROM, with SELECT {kind} outside",
            )
        case Select(to_stream=str() as kind) | SetOperation(to_stream=str() as kind):
            return replace(query, to_stream=None), kind
        case _:
            return query, None


def require_windows(query: Query, what: str) -> None:
    """Refuse a stream where the contents of windows are combined."""
    match query:
        case SetOperation():
            require_windows(query.left, what)
            require_windows(query.right, what)
        case Select() if query.facts is not None:
            if not takes_relations(query) or query.implied:
                raise AnalysisError(
                    f"{what} of contents of windows takes no stream of tuples",
                    span=query.span,
                    hint="OVER, patterns, running aggregates and joins by timestamps give streams: make one "
                    "with CREATE STREAM, and put a window on it",
                )
            for item in query.items():
                if facts_of(item) is not None and not has_content(item):
                    raise AnalysisError(
                        f"{what} needs a window on '{item.alias}'",
                        span=item.span,
                        hint=f"without one all of it would have to be kept: {with_bracket(item)}",
                    )
