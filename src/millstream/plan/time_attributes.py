"""Origin of columns: the stream's timestamp, and attributes of the sources.

A promise about an attribute holds while tuples pass unchanged: through conditions, projections, renaming, and
UNION ALL. Every other operator preserves only the promise about the timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from millstream.analysis.queries.call_nodes import OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog.entries import OrderedPerPromise, Promise, PunctuationPromise, Stream
from millstream.plan import nodes
from millstream.plan.relation_variance import ISTREAM, windows_in
from millstream.quantity import Distance, Duration
from millstream.syntax import nodes as syntax
from millstream.types import Kind
from millstream.windows.window_properties import is_stamped_apart, slides
from millstream.windows.window_spec import NowWindow, RangeWindow


def attribute_beside_time(node: nodes.Windowed) -> ColumnRef | None:
    """Return the attribute of a window over a stream, if it is not the stream's timestamp."""
    name = node.window.attribute
    if not node.streaming or name is None:
        return None
    column = next(c for c in node.input.schema if c.name.lower() == name.lower())
    return None if column in timestamps(node.input) else column


def timestamps(node: nodes.Node) -> frozenset[ColumnRef]:
    """Return the columns of a node that are the stream's timestamp."""
    match node:
        case nodes.StreamScan():
            order = node.stream.timestamp.column
            return frozenset(c for c in node.schema if order and c.name.lower() == order.lower())
        case nodes.TableStream():
            return frozenset({node.column})
        case nodes.Project():
            below = timestamps(node.input)
            return frozenset(
                c for c, o in zip(node.schema, node.outputs, strict=True) if o.expr.column in below
            )
        case nodes.Rename() | nodes.StreamUnion():
            # Column by column as in the input; in a union, as in all inputs.
            places = [
                {i for i, c in enumerate(child.schema) if c in timestamps(child)} for child in node.inputs
            ]
            return frozenset(node.schema[i] for i in set.intersection(*places))
        case nodes.WindowAggregate() | nodes.WindowRows():
            windowed = next(nodes.windows_seen(node.input), None)
            if windowed is None:
                return frozenset()
            if is_stamped_apart(windowed.window):
                return frozenset()  # bounds are numbers of rows, or not the instant of a report
            ends = {bound for bound in windowed.bounds if bound.name == "window_end"}
            if isinstance(windowed.window, NowWindow) and isinstance(node, nodes.WindowAggregate):
                # All tuples of an instant have its timestamp.
                ends |= timestamps(node.input) & {key.expr.column for key in node.group_by}
            return frozenset(ends)
        case nodes.WindowJoin() | nodes.RelationToStream() | nodes.Windowed():
            return _instants(node)
        case nodes.WindowSetOperation():
            return frozenset()
        case nodes.PatternMatch():
            # A match has the timestamp of its last tuple.
            last = node.pattern.elements[-1].name
            names = {c.name.lower() for c in timestamps(node.input) if c.relation == node.pattern.alias}
            stamped = [_of_last_tuple(o.expr.tree, last) in names for o in node.outputs]
            columns = [c for c, is_timestamp in zip(node.schema, stamped, strict=True) if is_timestamp]
            return frozenset(c for c in columns if node.schema.count(c) == 1)
        case nodes.OverAggregate(calls=(OverCall(emit_every=Duration() | Distance()), *_)):
            return frozenset()  # partial results have the timestamps of their emission
        case nodes.OverAggregate(calls=(OverCall(active_expiration=True),)):
            return frozenset()  # the result for an expired tuple has the timestamp of the expiry
        case _:
            schema = set(node.schema)
            return frozenset(c for child in node.inputs for c in timestamps(child) if c in schema)


def _instants(node: nodes.WindowJoin | nodes.RelationToStream | nodes.Windowed) -> frozenset[ColumnRef]:
    """Return the columns with the instant at which a row enters, which is that of a tuple of NOW only."""
    match node:
        case nodes.Windowed():
            is_now = isinstance(node.window, NowWindow) and node.window.lag is None
            return timestamps(node.input) if is_now else frozenset()
        case nodes.WindowJoin():
            filled = ("right", "full"), ("left", "full")
            kept = [side for side, kinds in zip(node.inputs, filled, strict=True) if node.kind not in kinds]
            return frozenset(c for side in kept for c in timestamps(side) if c in set(node.schema))
        case _:
            instant = frozenset(node.schema[-1:]) if node.instant is not None else frozenset()
            moves = node.kind == ISTREAM and not any(map(slides, windows_in(node.input)))
            return instant | (timestamps(node.input) if moves else frozenset())


def _of_last_tuple(node: exp.Expr | None, variable: str) -> str | None:
    """Return the column, if an output of a pattern is ``Z.c`` or ``LAST(Z).c``."""
    if isinstance(node, exp.Column):
        whole = [part.name for part in node.parts[:-1]]
    elif isinstance(node, exp.Dot) and node.this.name.lower() == "last" and node.this.expressions:
        star = node.this.expressions[0]
        whole = [(star.this if isinstance(star, syntax.Starred) else star).name]
    else:
        return None
    return node.name.lower() if [name.lower() for name in whole] == [variable.lower()] else None


def arrives(node: nodes.Node) -> bool:
    """Return whether tuples pass unchanged from the sources."""
    return all(
        isinstance(below, nodes.StreamScan | nodes.Filter | nodes.Project | nodes.Rename)
        or (isinstance(below, nodes.StreamUnion) and below.all)
        for below in node.walk()
    )


def is_apart(stream: Stream | None, windowed: nodes.Windowed, keys: Iterable[ColumnRef]) -> bool:
    """Tell whether groups belong to sub-streams with promises of their own, so that each can go by its own.

    They do if what tells sub-streams apart is among what tells groups apart.
    """
    window = windowed.window
    if stream is None or not isinstance(window, RangeWindow) or window.emit_every is not None:
        return False
    own = {c.name.lower(): c for c in windowed.input.schema}
    if not arrives(windowed.input):
        return False
    grouped = {
        sources_of(windowed.input, own[key.name.lower()])[0] for key in keys if key.name.lower() in own
    }
    # Two zeros are one group and two sub-streams.
    plain = {f.name.lower() for f in stream.schema if f.type.kind not in (Kind.FLOAT, Kind.DOUBLE)}
    return any(per and per <= grouped & plain for per in map(_told_apart, stream.promises))


def _told_apart(promise: Promise) -> set[str]:
    """Return what tells apart the sub-streams of a promise about the timestamp."""
    match promise:
        case OrderedPerPromise(columns=columns, on=None) | PunctuationPromise(per=columns, on=None):
            return {name.lower() for name in columns}
    return set()


def sources_of(node: nodes.Node, column: ColumnRef) -> tuple[str | None, ...]:
    """Return the attribute that a column is in each of the streams that a node reads, from left to right.

    It is the name in lower case, or None for a computed column. Tuples must pass unchanged.
    """
    match node:
        case nodes.StreamScan():
            return (column.name.lower(),)
        case nodes.Project():
            below = next(o.expr.column for c, o in zip(node.schema, node.outputs, strict=True) if c == column)
            if below is None:
                return (None,) * sum(isinstance(n, nodes.StreamScan) for n in node.walk())
            inputs = (c for c in node.input.schema if _key(c) == _key(below))
            return sources_of(node.input, next(inputs))
        case _:
            at = node.schema.index(column)
            return tuple(name for child in node.inputs for name in sources_of(child, child.schema[at]))


def _key(column: ColumnRef) -> tuple[str, str]:
    return column.relation.lower(), column.name.lower()
