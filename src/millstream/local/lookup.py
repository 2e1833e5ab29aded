"""Joins of rows with a table, by hash where the condition has equalities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.types.coercion import common_type
from millstream.kernels.column_names import OP
from millstream.local.expressions import compile_expression
from millstream.local.frame import Frame
from millstream.physical.nodes import Lookup
from millstream.stage.pipeline import MARK
from millstream.syntax import parse_expression

_BLOCK = 100_000
"""Pairs of rows on which a condition is evaluated at once."""


def looked_up(node: Lookup, left: Frame, right: Frame) -> Frame:
    """Return the rows of a join; rows of a stage's report and retractions pass as they are."""
    rows, table = (left, right) if node.stream_is_left else (right, left)
    table = table.without_hidden(lambda name: True)
    marks = rows.hidden[MARK].is_valid().to_pylist() if node.marked else [False] * rows.count
    if node.signed:
        ops = rows.hidden[OP].to_pylist()
        marks = [mark or op < 0 for mark, op in zip(marks, ops, strict=True)]
    matches: list[list[int]] = [[] for _ in range(rows.count)]
    for one, other in _matching(rows, table, node.condition):
        if not marks[one]:
            matches[one].append(other)
    if node.kind in ("semi", "anti"):
        wanted = node.kind == "semi"
        return rows.take([i for i in range(rows.count) if marks[i] or bool(matches[i]) == wanted])
    outer = node.kind in ("left", "right")
    pairs: list[tuple[int, int | None]] = []
    for number, found in enumerate(matches):
        pairs += [(number, other) for other in found]
        if not found and (outer or marks[number]):
            pairs.append((number, None))
    own = rows.take([one for one, _ in pairs])
    others = table.take([other for _, other in pairs])
    sides = (own.pairs, others.pairs) if node.stream_is_left else (others.pairs, own.pairs)
    return Frame.of([*sides[0], *sides[1]], len(pairs))


def _matching(rows: Frame, table: Frame, condition: Expr | None) -> Iterator[tuple[int, int]]:
    """Yield the numbers of rows and of rows of the table for which a condition holds."""
    candidates = _candidates(rows, table, condition)
    if condition is None:
        yield from candidates
        return
    refs = (*rows.refs, *table.refs)
    holds = compile_expression(condition, refs)
    while block := [pair for _, pair in zip(range(_BLOCK), candidates, strict=False)]:
        own = rows.take([one for one, _ in block])
        others = table.take([other for _, other in block])
        outcomes = holds((*own.columns, *others.columns), len(block)).to_pylist()
        yield from (pair for pair, outcome in zip(block, outcomes, strict=True) if outcome)


def _candidates(rows: Frame, table: Frame, condition: Expr | None) -> Iterator[tuple[int, int]]:
    """Yield pairs that agree in the equalities of a condition; without any, all pairs."""
    keys = _equalities(rows, table, condition)
    if not keys:
        yield from ((one, other) for one in range(rows.count) for other in range(table.count))
        return
    index: dict[tuple[Any, ...], list[int]] = {}
    for number, key in enumerate(_values([of_table for _, of_table in keys], table)):
        index.setdefault(key, []).append(number)
    for number, key in enumerate(_values([of_rows for of_rows, _ in keys], rows)):
        yield from ((number, other) for other in index.get(key, ()))


def _equalities(rows: Frame, table: Frame, condition: Expr | None) -> list[tuple[ColumnRef, ColumnRef]]:
    """Return equal columns, of rows and of the table; only those whose types need no conversion."""
    if condition is None:
        return []
    tree = parse_expression(condition.sql)
    conjuncts = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    found = []
    for conjunct in conjuncts:
        if not isinstance(conjunct, exp.EQ):
            continue
        sides = [conjunct.left, conjunct.right]
        for one, other in (sides, sides[::-1]):
            of_rows, of_table = _column(one, rows), _column(other, table)
            if of_rows is not None and of_table is not None and of_rows.type == of_table.type:
                found.append((of_rows, of_table))
                break
    return [(one, other) for one, other in found if common_type(one.type, other.type) == one.type]


def _column(node: exp.Expr, frame: Frame) -> ColumnRef | None:
    node = node.unnest()
    if not isinstance(node, exp.Column) or len(node.parts) != 2:
        return None
    names = tuple(part.name.lower() for part in node.parts)
    return next((r for r in frame.refs if (r.relation.lower(), r.name.lower()) == names), None)


def _values(columns: Sequence[ColumnRef], frame: Frame) -> list[tuple[Any, ...]]:
    """Return the values of columns row by row; NULL equals nothing, so it has no key."""
    lists = [_hashable(frame.columns[frame.refs.index(column)]) for column in columns]
    return list(zip(*lists, strict=True))


def _hashable(column: pa.Array) -> list[Any]:
    values: list[Any] = (
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    ).to_pylist()
    if pa.types.is_floating(column.type):
        # NaN equals NaN in SQL; the condition itself is asked afterwards.
        return ["NaN" if value != value else value for value in values]
    return values
