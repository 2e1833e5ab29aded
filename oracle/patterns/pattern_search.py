"""Sequence patterns (semantics, section 8): every attempt is made, one after the other, on whole histories.

A match has the timestamp and place of its last tuple, even if a trailing star was completed by a much later
tuple. It is unknown until then, and so nothing is promised about matches beyond the tuples that may still be
the last of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog import Catalog
from millstream.plan import nodes
from millstream.plan.pattern_parts import is_searched
from millstream.plan.time_attributes import timestamps
from oracle.patterns.pattern_facts import Facts, Taken
from oracle.relations import (
    TIMESTAMP_ITSELF,
    Attribute,
    Frontier,
    Record,
    Relation,
    attribute_of,
    in_order,
    is_final,
)
from oracle.values.values import order_key, same_key

MATCH = ColumnRef("", "match")
"""The column of matches: the tuples that the elements have taken."""

Condition = Callable[[Taken], bool]


def matches(node: nodes.PatternMatch, relation: Relation, catalog: Catalog) -> Relation:
    """Return the matches in a stream or a table, as records of one column."""
    tuples = _sequence(node, relation)
    facts = Facts(node.pattern, relation.schema, (), catalog)
    search = _Search(
        [
            _Element(e.star, [*map(facts.holds, e.per_tuple)], [*map(facts.holds, e.final)])
            for e in node.pattern.elements
        ],
        [facts.holds(c) for c in node.pattern.elements[0].per_tuple if not facts.has_aggregate(c)],
        node.pattern.each,
    )
    placed: list[tuple[int, Taken]] = []
    waiting: list[Record] = []
    before_the_end = relation.before_end()
    for positions in _partitions(node, tuples, relation):
        history = [tuples[i] for i in positions]
        taken, _ = search.run(history, ended=relation.ended)
        for match in taken:
            rows = _growing(match) if node.pattern.each else (match,)
            placed += [(positions[row.elements[-1][-1]], row) for row in rows]
        if relation.time_type is not None:
            known = [record for record in history if is_final(record, before_the_end)]
            _, possible = search.run(known, ended=False)
            waiting += [known[i] for i in possible]
    records = [replace(tuples[i], values=(match,)) for i, match in sorted(placed, key=lambda one: one[0])]
    return relation.promising(()).held_back(waiting).changed(records, (MATCH,))


def returned(node: nodes.PatternMatch, relation: Relation, catalog: Catalog) -> Relation:
    """Return the outputs of matches, which may have been joined with tables."""
    place = relation.schema.index(MATCH)
    searched = next(below for below in node.input.walk() if is_searched(below, node))
    facts = Facts(node.pattern, searched.schema, relation.schema, catalog)
    conditions = [facts.holds(condition) for condition in node.pattern.after_match]
    outputs = [facts.compiled(output.expr) for output in node.outputs]
    records = []
    for record in relation.records:
        match = replace(record.values[place], beside=record.values)
        if all(condition(match) for condition in conditions):
            records.append(replace(record, values=tuple(output(match) for output in outputs)))
    frontiers: dict[Attribute, Frontier] = dict(relation.frontiers)
    if TIMESTAMP_ITSELF in frontiers:
        frontiers |= {attribute_of(c): frontiers[TIMESTAMP_ITSELF] for c in timestamps(node)}
    return replace(relation.changed(records, node.schema), frontiers=frontiers)


def _sequence(node: nodes.PatternMatch, relation: Relation) -> list[Record]:
    """Return the tuples in the order of the search; rows of a table that tie stay in place."""
    if relation.time_type is not None:
        return [r for r in in_order(relation) if not r.is_late and is_final(r, relation)]
    tuples = list(relation.records)
    for name in reversed(node.pattern.sequence_by):
        position = relation.column(name)
        tuples.sort(key=lambda record, position=position: order_key(record.values[position]))  # type: ignore[misc]
    return tuples


def _partitions(
    node: nodes.PatternMatch, tuples: Sequence[Record], relation: Relation
) -> Iterable[list[int]]:
    """Return the positions of tuples by partition."""
    columns = [relation.column(name) for name in node.pattern.partition_by]
    partitions: dict[object, list[int]] = defaultdict(list)
    for i, record in enumerate(tuples):
        partitions[same_key(record.values[column] for column in columns)].append(i)
    return partitions.values()


def _growing(match: Taken) -> Iterable[Taken]:
    """Return a match as it was with each tuple of its last star."""
    *before, last = match.elements
    return (replace(match, elements=(*before, range(last.start, end + 1))) for end in last)


# ---------------------------------------------------------------- the search


@dataclass(frozen=True)
class _Element:
    star: bool
    per_tuple: Sequence[Condition]
    final: Sequence[Condition]


class _Outcome(Enum):
    MATCH = "match"
    FAILED = "failed"
    OPEN = "open"
    """Outcome that depends on tuples that are still to come."""


@dataclass(frozen=True)
class _Search:
    """Attempts by definition; ``before`` must not hold for a tuple before a leading star."""

    elements: Sequence[_Element]
    before: Sequence[Condition]
    each: bool
    """Whether rows of the last star are given out while it grows."""

    def run(self, history: Sequence[Record], *, ended: bool) -> tuple[list[Taken], list[int]]:
        """Return the matches in a partition, and the positions of tuples that may still be the last of one.

        While an attempt is open, later matches are unknown. But the candidates among the present tuples are
        those that exist if it fails.
        """
        complete: list[Taken] = []
        possible: list[int] = []
        start = consumed = 0
        is_open = False
        while start < len(history):
            outcome, taken = _Outcome.FAILED, Taken(history, ())
            if start == consumed or not self._goes_on(history, start):
                outcome, taken = self._attempt(history, start, ended)
            last = taken.elements[-1] if len(taken.elements) == len(self.elements) else range(0)
            is_open |= outcome is _Outcome.OPEN
            if self.each and last and outcome is _Outcome.OPEN:
                complete.append(taken)  # it can only grow
                return complete, possible
            if outcome is not _Outcome.FAILED:
                possible += last[-1:] if is_open else []
            if outcome is _Outcome.MATCH:
                complete += [] if is_open else [taken]
                start = consumed = last.stop
            else:
                start += 1
        return complete, possible

    def _goes_on(self, history: Sequence[Record], start: int) -> bool:
        """Return whether a leading star that starts here is not maximal on the left."""
        before = Taken(history, (range(start - 1, start),))
        return self.elements[0].star and all(condition(before) for condition in self.before)

    def _attempt(self, history: Sequence[Record], start: int, ended: bool) -> tuple[_Outcome, Taken]:
        taken = Taken(history, ())
        for element in self.elements:
            positions = _positions(element, taken, start)
            taken = Taken(history, (*taken.elements, positions))
            start = positions.stop
            if start == len(history) and not ended and (element.star or not positions):
                return _Outcome.OPEN, taken
            if not positions or not all(condition(taken) for condition in element.final):
                return _Outcome.FAILED, taken
        return _Outcome.MATCH, taken


def _positions(element: _Element, before: Taken, start: int) -> range:
    """Return the positions that an element takes, after those taken before it."""
    stop = start
    while stop < len(before.history) and (element.star or stop == start):
        with_it = Taken(before.history, (*before.elements, range(start, stop + 1)))
        if not all(condition(with_it) for condition in element.per_tuple):
            break
        stop += 1
    return range(start, stop)
