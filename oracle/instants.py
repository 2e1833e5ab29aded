"""Windowed relational operators (semantics, section 9), computed from scratch at every instant.

The state of a window at an instant is a multiset of rows, and the result of a query is the relational
operator on the states of its inputs. Insertions and deletions turn the result into a stream. A row is
identified by its origin: a tuple, a pair of tuples, a value, or a group with its values. So a tuple enters
also if an equal one leaves at the same instant.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.types.coercion import common_type
from millstream.plan import nodes
from millstream.plan.join_conditions import joined as joined_windows
from millstream.plan.maintained_relations import of_tuples
from millstream.plan.relation_variance import CHANGES, DSTREAM, ISTREAM, RSTREAM, VIEW
from millstream.types import STRING, Type
from oracle.errors import NotInterpreted
from oracle.lifetimes import Slides, Varying, is_final_at
from oracle.relations import BEGINNING, TIMESTAMP_ITSELF, Record, Relation, slowest
from oracle.values.casts import cast
from oracle.values.expressions import compiled, holds
from oracle.values.points import EVERYTHING, Instant, Point, before_last_word
from oracle.values.values import Value, same_key

_FIRST_DAY = -62_135_596_800_000_000
"""The first day of the year 1, in microseconds."""

Values = tuple[Value, ...]
Row = tuple[Any, Values]
"""The origin of a row, which identifies it, and its values."""
Rows = list[Row]
Aggregate = Callable[[nodes.WindowAggregate, Sequence[Values], Sequence[ColumnRef]], list[Values]]


@dataclass(frozen=True)
class States:
    """Inputs of a varying result: windows and tables."""

    windows: Mapping[int, Varying]
    """Windows by the identity of their nodes, as the same window may be used twice."""
    tables: Mapping[int, Rows]
    aggregate: Aggregate

    def at(self, node: nodes.Node, instant: Point) -> Rows:
        """Return the rows of a node at an instant."""
        if id(node) in self.windows:
            bounds = (None,) * (len(node.schema) - len(node.inputs[0].schema))  # bounds of windows that end
            state = self.windows[id(node)].state(instant)
            # A record is its own identity: reports of windows and other results may have equal places and
            # values.
            return [((_moments(r), r.order, id(r)), (*r.values, *bounds)) for r in state]
        if id(node) in self.tables:
            return self.tables[id(node)]
        match node:
            case nodes.Rename():
                return self.at(node.input, instant)
            case nodes.Filter():
                conditions = [holds(condition, node.input.schema) for condition in node.conditions]
                below = self.at(node.input, instant)
                return [(what, row) for what, row in below if all(c(row) for c in conditions)]
            case nodes.Project():
                outputs = [compiled(output.expr, node.input.schema) for output in node.outputs]
                return [(what, tuple(o(row) for o in outputs)) for what, row in self.at(node.input, instant)]
            case nodes.Distinct():
                return list({same_key(r): (same_key(r), r) for _, r in self.at(node.input, instant)}.values())
            case nodes.TableJoin() | nodes.WindowJoin():
                return joined(node, self.at(node.left, instant), self.at(node.right, instant))
            case nodes.WindowSetOperation():
                left, right = (_aligned(self.at(side, instant), side, node) for side in node.inputs)
                return combined(node, left, right)
            case nodes.WindowAggregate():
                content = [row for _, row in self.at(node.input, instant)]
                return _numbered(self.aggregate(node, content, node.input.schema))
            case _:
                raise NotInterpreted(f"{type(node).__name__} over windows")


def _numbered(rows: Iterable[Values]) -> Rows:
    """Number rows of groups, identified by their values; an aggregate may return equal ones."""
    seen: Counter[Any] = Counter()
    numbered: Rows = []
    for row in rows:
        key = same_key(row)
        numbered.append(((key, seen[key]), row))
        seen[key] += 1
    return numbered


def joined(node: nodes.TableJoin | nodes.WindowJoin, left: Rows, right: Rows) -> Rows:
    """Return a join of two multisets. A pair is identified by its rows."""
    schema = (*node.left.schema, *node.right.schema)
    condition = None if node.condition is None else holds(node.condition, schema)
    pairs = [
        (i, j)
        for i, j in itertools.product(range(len(left)), range(len(right)))
        if condition is None or condition((*left[i][1], *right[j][1]))
    ]
    met_left, met_right = {i for i, _ in pairs}, {j for _, j in pairs}
    match node.kind:
        case "semi":
            return [row for i, row in enumerate(left) if i in met_left]
        case "anti":
            return [row for i, row in enumerate(left) if i not in met_left]
    rows = [((left[i][0], right[j][0]), (*left[i][1], *right[j][1])) for i, j in pairs]
    if node.kind in ("left", "full"):
        nulls = (None,) * len(node.right.schema)
        rows += [((w, None), (*row, *nulls)) for i, (w, row) in enumerate(left) if i not in met_left]
    if node.kind in ("right", "full"):
        nulls = (None,) * len(node.left.schema)
        rows += [((None, w), (*nulls, *row)) for j, (w, row) in enumerate(right) if j not in met_right]
    return rows


def combined(node: nodes.WindowSetOperation, left: Rows, right: Rows) -> Rows:
    """Combine by multiplicity: k1 + k2, min(k1, k2) and max(0, k1 - k2); without ALL, each row once.

    UNION ALL has the rows of both. For the others, the first, second, third copy of a row is in the result or
    not.
    """
    if node.kind == "UNION" and node.all:
        return [(("left", w), row) for w, row in left] + [(("right", w), row) for w, row in right]
    one, other = (Counter(same_key(row) for _, row in side) for side in (left, right))
    if not node.all:
        one, other = (Counter(dict.fromkeys(side, 1)) for side in (one, other))
    match node.kind:
        case "UNION":
            counts = one | other
        case "INTERSECT":
            counts = one & other
        case _:
            counts = one - other
    shown = {same_key(row): row for _, row in (*right, *left)}
    return [((key, copy), shown[key]) for key, count in counts.items() for copy in range(count)]


def _aligned(rows: Rows, side: nodes.Node, node: nodes.WindowSetOperation) -> Rows:
    types = [(column.type, field.type) for column, field in zip(side.schema, node.fields, strict=True)]
    return [(what, tuple(cast(v, a, b) for v, (a, b) in zip(row, types, strict=True))) for what, row in rows]


# ---------------------------------------------------------------- relation to stream


def to_stream(
    node: nodes.Node, kind: str, states: States, time_type: Type, source: int, *, ended: bool
) -> Relation:
    """Return the stream of a varying result: insertions, deletions, both, or the whole result every time.

    It begins when the result is not what it is while all windows are empty; a VIEW has that result from the
    beginning on, and then its changes. After the end of the input it is evaluated until it no longer changes.
    """
    windows = list(states.windows.values())
    final = min((window.final for window in windows), default=EVERYTHING)
    sliding = [window.slides for window in windows if window.slides is not None]
    changes = sorted(set().union(*(window.changes() for window in windows)))
    in_order = _order(nodes.RelationToStream(node, kind), is_sliding=bool(sliding))
    records: list[Record] = []
    unchanged: list[Record] = []
    beginning = -(10**30) if time_type.is_numeric else _FIRST_DAY
    initial = dict(states.at(node, beginning))
    has_begun = kind == VIEW
    before: dict[Any, Values] = initial if has_begun else {}
    records += [Record(("+", *row), beginning, (-1, i)) for i, row in enumerate(before.values())]
    reached = slowest((window.reached, ()) for window in windows) if windows else BEGINNING
    before_end = before_last_word(reached[0])
    for instant in _instants(changes, sliding, final, before_end):
        now = dict(states.at(node, instant))
        has_begun = has_begun or now.keys() != initial.keys()
        if not has_begun:
            continue
        entered = in_order([(what, row) for what, row in now.items() if what not in before])
        left = in_order([(what, row) for what, row in before.items() if what not in now])
        rows: list[Values] = entered
        if kind == DSTREAM:
            rows = left
        elif kind == RSTREAM:
            rows = in_order([*now.items()]) if sliding or entered or left else []
        elif kind in (CHANGES, VIEW):
            rows = [("-", *row) for row in left] + [("+", *row) for row in entered]
        unchanged += [Record(row, instant, (source, number)) for number, row in enumerate(rows)]
        if entered or left or is_final_at(instant, before_end):
            records += unchanged
            unchanged = []
        before = now
    schema = (ColumnRef("", "op", STRING), *node.schema) if kind in (CHANGES, VIEW) else node.schema
    return Relation(schema, records, time_type, ended=ended, frontiers={TIMESTAMP_ITSELF: reached})


def _order(node: nodes.RelationToStream, *, is_sliding: bool) -> Callable[[Rows], list[Values]]:
    """Return the order of rows of one instant: that of their values.

    Tuples that only pass, and pairs of such tuples, keep their own order: a pair has the place of its later
    tuple.
    """
    passes = node.kind == ISTREAM and not is_sliding and of_tuples(node.input) is not None
    pairs = joined_windows(node) is not None

    def place(row: Row) -> Any:
        what, values = row
        return what if passes else sorted(what, reverse=True) if pairs else same_key(values)

    return lambda rows: [values for _, values in sorted(rows, key=place)]


def _moments(record: Record) -> tuple[Point, ...]:
    """Return the timestamp of a record; a latent one may have none."""
    known = record.time if record.time is not None else record.stamp
    return () if known is None else (known,)


def _instants(
    changes: Sequence[Point], sliding: Sequence[Slides], final: Instant, reached: Instant
) -> Iterator[Point]:
    """Yield the instants of evaluation: whenever an input changes or, if any window slides, at slides.

    The first slide at or after the last change sees it, and nothing changes after that. Slides go on as far
    as progress had been made before the input ended.
    """
    if not changes:
        return
    instants: Iterable[Point] = changes
    if sliding:
        first, last = changes[0], changes[-1]
        behind = min(
            (point for slides in sliding if (point := slides.following(last)) is not None), default=last
        )
        last = max(behind, reached[1]) if reached[0] == 0 else behind
        candidates = {point for slides in sliding for point in slides.between(first, last)}
        instants = sorted(point for point in candidates if point <= behind or is_final_at(point, reached))
    yield from (instant for instant in instants if is_final_at(instant, final))


def common_time(types: Iterable[Type]) -> Type:
    """Return the type of the instants of windows on several streams."""
    first, *rest = types
    for other in rest:
        common = common_type(first, other)
        if common is None:
            raise NotInterpreted(f"a join of windows on {first} and {other}")
        first = common
    return first
