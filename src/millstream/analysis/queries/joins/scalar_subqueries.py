"""Queries that give one value: an aggregate, with equalities that tie it to the query outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call
from millstream.analysis.queries.window_bounds import aggregates_in
from millstream.catalog import Catalog

_COUNTS = frozenset({"count", "count_if", "regr_count", "approx_count_distinct"})
_STRICT = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.Paren,
    exp.Cast,
    exp.Literal,
    exp.DataType,
)
"""Operators with NULL for NULL, so that the value over no rows is NULL, as that of the LEFT join is."""


@dataclass(frozen=True)
class Scalar:
    """A query whose last column is the value; the columns before it are equal to expressions outside."""

    query: exp.Expr
    outside: tuple[tuple[str, exp.Expr], ...]
    """Names of columns with the expressions of the query outside that they are equal to."""
    is_count: bool
    """Whether the value over no rows is 0, and not NULL."""


def scalar(
    query: exp.Expr, catalog: Catalog, outside: Callable[[exp.Select], Callable[[exp.Column], bool]]
) -> Scalar:
    """Return a query in an expression with groups in the place of its correlated conditions."""
    if not isinstance(query, exp.Select) or not _is_one_row(query, catalog):
        raise error_at(
            query,
            "a query in an expression gives one value over a stream or view",
            hint="use an aggregate without GROUP BY: (SELECT max(x) FROM ...), or join the query in FROM",
        )
    value = query.expressions[0].unalias()
    is_count = is_aggregate_call(value, catalog) and aggregate_name(value).lower() in _COUNTS
    if not is_count and not _is_strict(value, catalog):
        raise error_at(
            value,
            "this value is not NULL over no rows, where that of the join is",
            hint="compute with the value outside: coalesce((SELECT max(x) FROM ...), 0)",
        )
    is_outside = outside(query)
    where = query.args.get("where")
    conditions = list(conjuncts(where.this)) if where is not None else []
    tied = [number for number, one in enumerate(conditions) if any(map(is_outside, one.find_all(exp.Column)))]
    if not tied:
        return Scalar(query, (), is_count)
    pairs = [_sides(conditions[number], is_outside) for number in tied]
    changed = query.copy()
    rest = list(conjuncts(changed.args["where"].this))
    kept = [one for number, one in enumerate(rest) if number not in tied]
    changed.set("where", exp.Where(this=reduce(both, kept)) if kept else None)
    names = [f"__key{number}" for number in range(len(pairs))]
    keys = [_named(inner.copy(), name) for (inner, _), name in zip(pairs, names, strict=True)]
    changed.set("expressions", [*keys, _named(changed.expressions[0].unalias().copy(), "__value")])
    changed.set("group", exp.Group(expressions=[inner.copy() for inner, _ in pairs]))
    return Scalar(changed, tuple((n, out) for n, (_, out) in zip(names, pairs, strict=True)), is_count)


def _is_one_row(query: exp.Select, catalog: Catalog) -> bool:
    """Tell whether a query has one column and one row."""
    grouped = any(
        query.args.get(name) for name in ("group", "having", "distinct", "limit", "offset", "qualify")
    )
    if grouped or query.args.get("from_") is None or len(query.expressions) != 1:
        return False
    return aggregates_in(query.expressions[0], catalog)


def _is_strict(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether the value over no rows is NULL: arithmetic with aggregates that skip NULL."""
    if is_aggregate_call(node, catalog):
        name = aggregate_name(node).lower()
        return name not in _COUNTS and not name.startswith(
            ("collect", "array_agg", "histogram", "approx_top_k")
        )
    return isinstance(node, _STRICT) and all(_is_strict(child, catalog) for child in node.iter_expressions())


def _sides(condition: exp.Expr, is_outside: Callable[[exp.Column], bool]) -> tuple[exp.Expr, exp.Expr]:
    """Return the inner and the outer side of an equality."""
    equal = condition.unnest()
    if isinstance(equal, exp.EQ):
        for inner, outer in ((equal.left, equal.right), (equal.right, equal.left)):
            names = list(outer.find_all(exp.Column))
            if isinstance(inner, exp.Column) and not is_outside(inner) and all(map(is_outside, names)):
                return inner, outer
    raise error_at(
        condition,
        "a query in an expression is tied to the query outside by equalities",
        hint="write column = value, with a column of the inner query; otherwise join the query in FROM",
    )


def _named(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=node, alias=exp.to_identifier(name))


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions between the ANDs of one."""
    inside = node.unnest()
    if isinstance(inside, exp.And):
        yield from conjuncts(inside.left)
        yield from conjuncts(inside.right)
    else:
        yield node


def both(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """Return two conditions as one."""
    return exp.And(this=one, expression=other)
