"""Windows that follow from conditions: joins bounded by timestamps, and groups that name the timestamp.

``a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 5 AND a.t`` pairs tuples that are at most so far apart, so
windows of that length hold all that can still be paired. ``ON a.window_end = b.window_end`` and ``GROUP BY
window_end`` are about the tuples of one instant. The result is a stream, as that of bare streams is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import facts_of, is_declared, length_on, with_window
from millstream.analysis.queries.joins.instant_columns import instant_columns
from millstream.analysis.queries.joins.time_bounds import Bound, Distances, Placed, bounds_in, equal
from millstream.analysis.queries.name_resolver import is_aggregate_call
from millstream.analysis.queries.ranking_clauses import RankingClauses
from millstream.analysis.queries.relation_kind import reads_relation, window_of
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import FromItem, JoinClause, Unmatched
from millstream.analysis.queries.scope import Scope
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.quantities import MOST
from millstream.catalog import Catalog
from millstream.catalog.entries import TimestampKind
from millstream.errors import AnalysisError
from millstream.quantity import MICROSECONDS, Distance, Duration
from millstream.types import TIMESTAMP, Kind, Type
from millstream.windows.window_spec import NowWindow, RangeWindow, Window

APART = "put the join into a query of its own: FROM (SELECT ...)"
"""A hint for what goes with the result of a join, and not with the join itself."""

_PAIRS = ("inner", "cross")
_KEEPS_LEFT, _KEEPS_RIGHT = ("left", "full"), ("right", "full")
_DOUBLES = (Kind.FLOAT, Kind.DOUBLE)
Find = Callable[[exp.Column], ColumnRef | None]
"""Finds the column that a name means; None for anything else, and for unknown names."""


@dataclass(frozen=True)
class Implied:
    """FROM with the windows that conditions imply."""

    source: FromItem
    joins: tuple[JoinClause, ...]
    instants: frozenset[ColumnRef] = frozenset()
    """The columns that hold the instant of a row; none if it is made of tuples of different instants."""
    unmatched: tuple[Unmatched, ...] = ()
    """The rows of outer joins that meet nothing, which are known when their time is up."""
    grouped: bool = False
    """Whether the rows of each instant are grouped."""


def implied_beside(
    node: exp.Select,
    source: FromItem,
    joins: Sequence[JoinClause],
    asked: Sequence[JoinClause],
    scope: Scope,
    catalog: Catalog,
) -> Implied | None:
    """Return the implied windows of FROM beside the joins for queries in expressions, which are added.

    A tuple of a stream without a window asks these at its own instant.
    """
    latest = [join for join in joins if join.asof]
    plain = [join for join in joins if not join.asof]
    if latest:
        implied = implied_beside(node, source, plain, [*latest, *asked], scope, catalog)
        return None if implied is None else _reordered(implied, [*joins, *asked])
    inner = [join.item for join in asked if facts_of(join.item) is not None]
    together = [*_streams(source, joins), *inner]
    if not inner or any(window_of(item) is None and not reads_relation(item, together) for item in inner):
        return implied_windows(node, source, [*joins, *asked], scope, catalog)
    implied = implied_windows(node, source, joins, scope, catalog)
    streams = _streams(source, joins)
    if implied is None and len(streams) == 1 and _is_bare(streams):
        changed = _with_windows(source, joins, {streams[0].alias: NowWindow()})
        implied = Implied(*changed, _instants(streams))
    if implied is None:
        return None
    if not all(isinstance(window_of(item), NowWindow) for item in _streams(implied.source, implied.joins)):
        raise error_at(node, "a query over windows in an expression beside a join of streams", hint=APART)
    return replace(implied, joins=(*implied.joins, *asked))


def _reordered(implied: Implied, joins: Sequence[JoinClause]) -> Implied:
    """Return joins in the order in which they are written."""
    places = {(join.kind, join.item.alias, join.conditions): number for number, join in enumerate(joins)}
    ordered = sorted(implied.joins, key=lambda join: places[join.kind, join.item.alias, join.conditions])
    return replace(implied, joins=tuple(ordered))


def implied_windows(
    node: exp.Select, source: FromItem, joins: Sequence[JoinClause], scope: Scope, catalog: Catalog
) -> Implied | None:
    """Return the windows that GROUP BY or the conditions of joins imply, or None."""
    named = Scope([*scope.relations, *scope.hidden], scope.merged)

    def find(column: exp.Column) -> ColumnRef | None:
        try:
            found = named.resolve(column)
        except AnalysisError:
            return None
        return None if found is None or found.fields else found.column

    keys = list(_keys(node, find))
    if len(_streams(source, joins)) == 1:
        return None if _is_running(node, catalog) else _grouped_by_instant(source, joins, keys)
    implied = _joined_by_time(source, joins, node.args.get("where"), find)
    if implied is None or implied.instants.isdisjoint(map(_lower, keys)):
        return implied
    return replace(implied, grouped=True)


def facts_of_rows(facts: StreamFacts, implied: Implied) -> StreamFacts:
    """Return the facts about joined tuples: only the columns of one instant say when they come."""
    if len(_streams(implied.source, implied.joins)) == 1:
        return facts
    if implied.instants and (facts.timestamp.column or "").lower() in {c.name for c in implied.instants}:
        return facts
    return replace(facts, timestamp=replace(facts.timestamp, column=None))


def bounds_hint(streams: Sequence[FromItem]) -> str:
    """Return the end of a hint about streams that are joined without windows: how to bound the timestamps."""
    one, other = streams[:2]
    names = [facts.timestamp.column for item in streams if (facts := facts_of(item)) is not None]
    if not _is_bare(streams) or not all(names):
        return ""
    left, right = f"{one.alias}.{names[0]}", f"{other.alias}.{names[1]}"
    if not any(is_declared(item) for item in streams):
        return f"; or join on the timestamps, too: AND {left} = {right}"
    length = length_on(one)
    reach = length if length.isdigit() else f"INTERVAL {length}"
    return f"; or bound the timestamps: AND {right} BETWEEN {left} - {reach} AND {left}"


def refuse_ranks_of_joins(node: exp.Select, ranking: RankingClauses, implied: Implied | None) -> None:
    """Refuse an order or ranks of a join of bare streams, which is a stream."""
    if implied is not None and not implied.grouped and ranking.is_asked:
        what = "ORDER BY" if ranking.top is not None else f"'{ranking.calls[0].name}'"
        raise error_at(node, f"{what} does not go with a join of streams", hint=APART)


def joined_hint(item: FromItem, implied: Implied) -> str:
    """Return a hint about an aggregate of joined streams."""
    column = next(iter(sorted(map(str, implied.instants))), None)
    instants = f"GROUP BY {column}, too, or " if column is not None else ""
    return f"{instants}{APART} [TUMBLE {length_on(item, '1 HOUR')}]"


def _keys(node: exp.Select, find: Find) -> Iterator[ColumnRef]:
    """Yield the columns of GROUP BY, where a number or an alias may stand for an item of SELECT."""
    group = node.args.get("group")
    items = node.expressions
    if group is not None and group.args.get("all"):
        columns = [item.unalias() for item in items if isinstance(item.unalias(), exp.Column)]
        yield from filter(None, map(find, columns))
        return
    for key in group.expressions if group is not None else ():
        column = find(key) if isinstance(key, exp.Column) else None
        if column is None:
            aliased = [item for item in items if isinstance(item, exp.Alias) and item.alias == key.name]
            numbered = items[int(key.name) - 1 : int(key.name)] if key.name.isdigit() else []
            item = next((one.unalias() for one in (*aliased, *numbered)), None)
            column = find(item) if isinstance(item, exp.Column) else None
        if column is not None:
            yield column


def _is_running(node: exp.Select, catalog: Catalog) -> bool:
    """Tell whether all aggregates of a SELECT give their results with every tuple."""
    calls = [call for item in node.expressions for call in item.find_all(exp.Anonymous)]
    names = [call.name for call in calls if is_aggregate_call(call, catalog)]
    own = [catalog.aggregate(name) for name in names]
    return bool(own) and all(one is not None and not one.blocking for one in own)


def _grouped_by_instant(
    source: FromItem, joins: Sequence[JoinClause], keys: Iterable[ColumnRef]
) -> Implied | None:
    """Return the window of a bare stream whose groups have tuples of one instant only."""
    streams = _streams(source, joins)
    if len(streams) != 1 or not _is_bare(streams):
        return None
    alias, known = streams[0].alias.lower(), instant_columns(streams[0])
    if not any(key.relation.lower() == alias and key.name.lower() in known for key in keys):
        return None
    changed = _with_windows(source, joins, {streams[0].alias: NowWindow()})
    return Implied(*changed, _instants(streams), grouped=True)


def _joined_by_time(
    source: FromItem, joins: Sequence[JoinClause], where: exp.Expr | None, find: Find
) -> Implied | None:
    """Return the windows of bare streams whose distances conditions bound, or None if they do not."""
    streams = _streams(source, joins)
    if len(streams) < 2 or not _is_bare(streams):
        return None
    join = _TimeJoin(source, tuple(joins), tuple(streams), find)
    return join.implied(where)


@dataclass
class _TimeJoin:
    source: FromItem
    joins: tuple[JoinClause, ...]
    streams: tuple[FromItem, ...]
    find: Find
    distances: Distances = field(default_factory=Distances)

    def implied(self, where: exp.Expr | None) -> Implied | None:
        kinds = [join.kind for join in self.joins if join.item in self.streams]
        makes_pairs = all(kind in _PAIRS for kind in kinds)
        bounds = [bound for join in self.joins for one in join.conditions for bound in self._bounds(one)]
        if where is not None and makes_pairs:
            bounds += bounds_in(where, self._place)
        self.distances = Distances.of(bounds)
        steps = [self._steps(one, other) for one, other in self._pairs()]
        if any(one is None for one in steps):
            return None
        for one, other in self._pairs():
            self._check_order(one, other)
        if not any(steps):
            windows: dict[str, Window] = {item.alias: NowWindow() for item in self.streams}
            instants = _instants(_never_null(self.streams, self.joins))
            return Implied(*_with_windows(self.source, self.joins, windows), instants)
        if makes_pairs:
            return self._all_pairs()
        if len(self.streams) > 2:
            kind = next(kind for kind in kinds if kind not in _PAIRS)
            raise AnalysisError(
                f"a {kind.upper()} join by timestamps beside other joins of streams",
                span=self.streams[-1].span,
                hint="give the streams windows, or join two of them in a query in FROM (SELECT ...)",
            )
        return self._outer(kinds[0])

    # ------------------------------------------------------------ distances

    def _pairs(self) -> Iterator[tuple[FromItem, FromItem]]:
        return ((one, other) for one in self.streams for other in self.streams if one is not other)

    def _bounds(self, condition: Expr) -> Iterator[Bound]:
        if condition.tree is not None:
            yield from bounds_in(condition.tree, self._place)
            return
        match condition.parts:
            case (ColumnRef() as one, " = ", ColumnRef() as other):  # USING
                places = self._placed(one), self._placed(other)
                if places[0] is not None and places[1] is not None:
                    yield from equal(places[0], places[1])

    def _place(self, node: exp.Column) -> Placed | None:
        column = self.find(node)
        return None if column is None else self._placed(column)

    def _placed(self, column: ColumnRef) -> Placed | None:
        """Return the timestamp that a column follows from, and its distance."""
        item = next((item for item in self.streams if item.alias.lower() == column.relation.lower()), None)
        distance = None if item is None else instant_columns(item).get(column.name.lower())
        if item is None or distance is None:
            return None
        return Placed(item.alias.lower(), distance, _type(item))

    def _steps(self, one: FromItem, other: FromItem) -> Fraction | None:
        """Return how much later than a tuple of one stream a tuple of the other can be, in steps."""
        limit = self.distances.most(other.alias.lower(), one.alias.lower())
        if limit is None:
            return None
        steps = limit.amount / _step(_type(one))
        if _type(one).kind not in _DOUBLES:
            whole = math.ceil(steps) - 1 if limit.strict else math.floor(steps)
            steps = Fraction(whole)
        return steps if abs(steps) < MOST // 4 else None

    def _check_order(self, one: FromItem, other: FromItem) -> None:
        if self._known(one, other) + self._known(other, one) < 0:
            raise AnalysisError(
                f"no tuples of '{one.alias}' and '{other.alias}' are within the bounds on their timestamps",
                span=other.span,
                hint="the lower bound is above the upper one",
            )

    # ------------------------------------------------------------ windows

    def _all_pairs(self) -> Implied:
        windows = {}
        for item in self.streams:
            reaches = [self._steps(one, other) or Fraction(0) for one, other in self._pairs() if one is item]
            windows[item.alias] = _reaching(item, max(reaches))
        return Implied(*_with_windows(self.source, self.joins, windows))

    def _outer(self, kind: str) -> Implied:
        left, right = self.streams
        self._check_types(kind)
        if kind == "semi":
            after = max(self._known(left, right), Fraction(0))
            windows = {
                left.alias: _reaching(left, after),
                right.alias: _reaching(right, self._known(right, left) + after),
            }
            return Implied(*_with_windows(self.source, self.joins, windows))
        if kind == "anti":
            unmatched = self._unmatched(left, right)
            windows = {left.alias: unmatched.kept, right.alias: unmatched.met}
            source, joins = _with_windows(self.source, self.joins, windows)
            joined = [replace(j, conditions=unmatched.conditions) if j.kind == "anti" else j for j in joins]
            return Implied(source, tuple(joined))
        kept = [(left, right)] if kind in _KEEPS_LEFT else []
        kept += [(right, left)] if kind in _KEEPS_RIGHT else []
        unmatched_rows = tuple(self._unmatched(one, other) for one, other in kept)
        return replace(self._all_pairs(), unmatched=unmatched_rows)

    def _known(self, one: FromItem, other: FromItem) -> Fraction:
        steps = self._steps(one, other)
        assert steps is not None
        return steps

    def _unmatched(self, kept: FromItem, met: FromItem) -> Unmatched:
        """Return the windows in which a tuple that has met nothing is seen when its time is up."""
        until = self._known(kept, met)
        after = max(until, Fraction(0))
        conditions = next(join.conditions for join in self.joins if join.item is self.streams[1])
        if until >= 0:
            # The windows say what conditions on the timestamps say.
            conditions = tuple(one for one in conditions if not self._is_of_timestamps(one))
        lag = None if not after else _quantity(kept, after)
        window = _reaching(met, self._known(met, kept) + after)
        return Unmatched(kept.alias, met.alias, NowWindow(lag=lag), window, conditions)

    def _is_of_timestamps(self, condition: Expr) -> bool:
        timestamps = {column for item in self.streams for column in _instants([item])}
        return any(self._bounds(condition)) and set(map(_lower, condition.columns())) <= timestamps

    def _check_types(self, kind: str) -> None:
        one, other = map(_type, self.streams)
        is_same = one == other or (one.is_integral and other.is_integral)
        if is_same and one.kind not in _DOUBLES:
            return
        raise AnalysisError(
            f"a {kind.upper()} join by timestamps of type {one if one == other else f'{one} and {other}'}",
            span=self.streams[1].span,
            hint="the end of a tuple's time must be exact: order both streams by times of one type, whole"
            " numbers or decimals, or give them windows",
        )


def _streams(source: FromItem, joins: Iterable[JoinClause]) -> list[FromItem]:
    return [item for item in (source, *(join.item for join in joins)) if facts_of(item) is not None]


def _is_bare(streams: Sequence[FromItem]) -> bool:
    """Tell whether streams have no windows, and timestamps that can be compared."""
    return not any(
        window_of(item) is not None
        or reads_relation(item, streams)
        or _facts(item).timestamp.kind is TimestampKind.LATENT
        for item in streams
    )


def _facts(item: FromItem) -> StreamFacts:
    facts = facts_of(item)
    assert facts is not None, "it is a stream"
    return facts


def _type(item: FromItem) -> Type:
    return _facts(item).timestamp.type or TIMESTAMP


def _lower(column: ColumnRef) -> ColumnRef:
    return ColumnRef(column.relation.lower(), column.name.lower())


def _instants(streams: Iterable[FromItem]) -> frozenset[ColumnRef]:
    """Return the timestamps of streams, in lower case."""
    named = ((item.alias, _facts(item).timestamp.column) for item in streams)
    return frozenset(ColumnRef(alias.lower(), name.lower()) for alias, name in named if name)


def _never_null(streams: Sequence[FromItem], joins: Iterable[JoinClause]) -> list[FromItem]:
    """Return the streams whose columns no outer join fills with NULL."""
    kept: list[FromItem] = [streams[0]]
    for join in joins:
        if join.item not in streams:
            continue
        if join.kind in _KEEPS_RIGHT:
            kept = []
        if join.kind in (*_PAIRS, "right"):
            kept.append(join.item)
    return kept


def _with_windows(
    source: FromItem, joins: Iterable[JoinClause], windows: Mapping[str, Window]
) -> tuple[FromItem, tuple[JoinClause, ...]]:
    def windowed(item: FromItem) -> FromItem:
        window = windows.get(item.alias)
        return item if window is None or facts_of(item) is None else with_window(item, window)

    return windowed(source), tuple(replace(join, item=windowed(join.item)) for join in joins)


def _reaching(item: FromItem, steps: Fraction) -> Window:
    """Return the window of the tuples that are at most so many steps old."""
    if steps <= 0:
        return NowWindow()
    longer = 2 * steps if _type(item).kind in _DOUBLES else steps + 1
    return RangeWindow(attribute=_facts(item).timestamp.column, range=_quantity(item, longer))


def _quantity(item: FromItem, steps: Fraction) -> Duration | Distance:
    amount = steps * _step(_type(item))
    if _type(item).is_time:
        return Duration(int(amount))
    return Distance(Decimal(amount.numerator) / Decimal(amount.denominator))


def _step(type_: Type) -> Fraction:
    """Return the distance of two neighbouring timestamps; doubles have none."""
    if type_.kind is Kind.DATE:
        return Fraction(MICROSECONDS["DAY"])
    return Fraction(1, 10**type_.scale) if type_.kind is Kind.DECIMAL else Fraction(1)
