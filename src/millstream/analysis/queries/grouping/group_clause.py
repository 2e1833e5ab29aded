"""GROUP BY: keys, GROUP BY ALL, and the grouping sets of GROUPING SETS, ROLLUP and CUBE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import GroupKey
from millstream.syntax.spans import span_of
from millstream.types import BIGINT, INT, TINYINT, Type

SET = ColumnRef("", "__set", INT)
"""The number of the grouping set for which a copy of a tuple is."""

Sets = tuple[tuple[int, ...], ...]

_SEVERAL = exp.Rollup | exp.Cube | exp.GroupingSets

_MOST = 128
"""Limit of grouping sets: each tuple is aggregated once for each."""


@dataclass(frozen=True)
class Groupings:
    """The keys of GROUP BY, and the sets of keys by their places; there are none in a plain GROUP BY."""

    keys: tuple[exp.Expr, ...]
    sets: Sets = ()


def groupings(group: exp.Group, items: Sequence[exp.Expr], is_key: Callable[[exp.Expr], bool]) -> Groupings:
    """Return the keys of GROUP BY and its grouping sets; ``is_key`` tells what GROUP BY ALL groups by."""
    if group.args.get("all"):
        star = next((item for item in items if item.is_star), None)
        if star is not None:
            raise error_at(group, "GROUP BY ALL does not go with *", hint="name the columns in SELECT")
        return Groupings(tuple(item.unalias() for item in items if is_key(item.unalias())))
    elements: list[exp.Expr] = list(group.expressions)
    for argument, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(argument):  # WITH ROLLUP
            elements = [kind(expressions=elements)]
    elements = list(group.args.get("grouping_sets") or elements)
    if not any(isinstance(element, _SEVERAL) for element in elements):
        return Groupings(tuple(elements))
    count = 1
    for element in elements:
        count *= _count(element)
    if count > _MOST:
        raise error_at(
            group,
            f"GROUP BY has {count} grouping sets, and the limit is {_MOST}",
            hint="name those that are needed: GROUPING SETS ((a, b), (a), ())",
        )
    sets = [tuple(itertools.chain(*parts)) for parts in itertools.product(*map(_sets, elements))]
    keys: list[exp.Expr] = []
    for key in itertools.chain(*sets):
        keys += [] if key in keys else [key]
    return Groupings(tuple(keys), tuple(tuple(dict.fromkeys(map(keys.index, one))) for one in sets))


def _count(element: exp.Expr) -> int:
    match element:
        case exp.GroupingSets():
            return sum(map(_count, element.expressions))
        case exp.Rollup():
            return len(element.expressions) + 1
        case exp.Cube():
            return int(2 ** min(len(element.expressions), 64))
        case _:
            return 1


def _sets(element: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    """Return the sets of keys that an element of GROUP BY stands for, the largest first."""
    if isinstance(element, exp.GroupingSets):
        return [one for part in element.expressions for one in _sets(part)]
    units = [_unit(part) for part in element.expressions] if isinstance(element, _SEVERAL) else []
    match element:
        case exp.Rollup():
            return [tuple(itertools.chain(*units[:n])) for n in range(len(units), -1, -1)]
        case exp.Cube():
            chosen = itertools.product((True, False), repeat=len(units))
            return [tuple(itertools.chain(*itertools.compress(units, one))) for one in chosen]
        case _:
            return [_unit(element)]


def _unit(element: exp.Expr) -> tuple[exp.Expr, ...]:
    inner = element.unnest()
    if isinstance(inner, _SEVERAL):
        raise error_at(
            element,
            "ROLLUP and CUBE contain keys and lists of keys",
            hint="GROUPING SETS can contain ROLLUP and CUBE",
        )
    return tuple(inner.expressions) if isinstance(inner, exp.Tuple) else (inner,)


def without_copies(keys: Sequence[GroupKey], sets: Sets) -> tuple[list[GroupKey], Sets]:
    """Return different keys, with the sets by their places."""
    different = list(dict.fromkeys(key.expr for key in keys))
    places = [different.index(key.expr) for key in keys]
    kept = [next(key for key in keys if key.expr == expr) for expr in different]
    return kept, tuple(tuple(dict.fromkeys(places[i] for i in one)) for one in sets)


def grouping_calls(
    nodes: Iterable[exp.Expr], keys: Sequence[GroupKey], sets: Sets, resolve: Callable[[exp.Expr], Expr]
) -> Iterator[tuple[exp.Expr, Expr]]:
    """Yield the calls of grouping and grouping_id, with the value of each by the number of the set."""
    for call in (call for node in nodes for call in node.find_all(exp.Anonymous)):
        name = call.name.lower()
        if name not in ("grouping", "grouping_id"):
            continue
        if not sets:
            raise error_at(call, f"'{name}' needs GROUPING SETS, ROLLUP or CUBE in GROUP BY")
        places = [_place(argument, keys, resolve, name) for argument in call.expressions]
        places = places or list(range(len(keys)))
        # The bit of a key is set where it is not in the set; the last key has the lowest bit.
        values = [sum((i not in one) << n for n, i in enumerate(reversed(places))) for one in sets]
        yield call, _by_set(values, TINYINT if name == "grouping" else BIGINT, call)


def _place(
    argument: exp.Expr, keys: Sequence[GroupKey], resolve: Callable[[exp.Expr], Expr], name: str
) -> int:
    expr = resolve(argument)
    found = next((i for i, key in enumerate(keys) if key.expr == expr), None)
    if found is None:
        raise error_at(argument, f"the argument of '{name}' is a key of GROUP BY")
    return found


def _by_set(values: Sequence[int], type_: Type, call: exp.Expr) -> Expr:
    cases = " ".join(f"WHEN {number} THEN {value}" for number, value in enumerate(values))
    return Expr(("CAST(CASE ", SET, f" {cases} END AS {type_})"), type_, span=span_of(call))
