"""Queries over tables with aggregates of the user's: what Spark does for other queries is done here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.queries.resolved_query import Arrangement, Output, SortedBy
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.catalog.entries import Timestamp, TimestampKind
from millstream.errors import AnalysisError, did_you_mean
from millstream.syntax.spans import span_of
from millstream.syntax.spark_only_queries import is_plain_spark

_APART = "put the aggregate into a query of its own: FROM (SELECT ...)"
_REFUSED = {
    "qualify": "QUALIFY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "connect": "CONNECT BY",
}


_EXOTIC = (
    exp.Window,
    exp.Lateral,
    exp.Pivot,
    exp.Values,
    exp.Unnest,
    exp.Qualify,
    exp.Rollup,
    exp.Cube,
    exp.Aliases,
)
"""Parts of SQL that, on tables, are left to Spark without a check of our own."""
_SIMPLE = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "kind"})


def is_checked(node: exp.Select) -> bool:
    """Tell whether a query over tables is of a shape that is checked before Spark."""
    tables = list(node.find_all(exp.Table))
    return (
        not is_plain_spark(node)
        and not node.args.get("with_")
        and node.find(*_EXOTIC) is None
        and all(isinstance(table.this, exp.Identifier) and not table.db for table in tables)
        and not any(alias.args.get("columns") for alias in node.find_all(exp.TableAlias))
    )


def is_simple(node: exp.Select) -> bool:
    """Tell whether a query only filters and projects one table, and orders its rows."""
    given = {name for name, value in node.args.items() if value}
    clause = node.args.get("from_")
    if not given <= _SIMPLE or clause is None or not isinstance(clause.this, exp.Table):
        return False
    table = clause.this
    others = ("joins", "laterals", "pivots", "sample", "when", "version", "pattern", "window")
    return not any(table.args.get(name) for name in others) and not any(
        isinstance(part, exp.Window | exp.Explode | exp.AggFunc)
        or (isinstance(part, exp.Query) and part is not node)
        for part in node.walk()
    )


def refuse_beside_own(node: exp.Select) -> None:
    """Refuse clauses of Spark beside constructs that only ESL has."""
    for argument, clause in _REFUSED.items():
        part = node.args.get(argument)
        if part:
            part = part[0] if isinstance(part, list) else part
            raise AnalysisError(
                f"{clause} does not go with an aggregate of your own",
                span=span_of(part) or span_of(node),
                hint=_APART,
            )


def order_of_window(node: exp.Window, name: str, resolver: Resolver) -> tuple[ColumnRef, StreamFacts]:
    """Return the column by which OVER orders a table, and the table as a stream."""
    order = node.args.get("order")
    if order is None:
        raise error_at(
            node,
            f"'{name}' goes along an order, and a table has none",
            hint="name it: OVER (ORDER BY column ROWS 9 PRECEDING)",
        )
    ordered = order.expressions[0]
    column = resolver.resolve(ordered.this).column
    if column is None or len(order.expressions) > 1 or ordered.args.get("desc"):
        raise error_at(
            order.expressions[-1],
            f"the order of '{name}' is that of one column, upwards",
            hint="compute the column in a query in FROM (SELECT ...)",
        )
    if not column.type.is_ordered:
        raise error_at(ordered, f"'{name}' cannot go along '{column.name}', which is of type {column.type}")
    timestamp = Timestamp(TimestampKind.EXTERNAL, column.name, column.type)
    return column, StreamFacts(timestamp, frozenset(), bounded=True)


def refuse_other_windows(node: exp.Select, is_own: Callable[[exp.Window], bool]) -> None:
    """Refuse Spark's windows beside those of the user's aggregates."""
    windows = [window for item in node.expressions for window in item.find_all(exp.Window)]
    others = [window for window in windows if not is_own(window)]
    if others and (len(others) < len(windows) or node.args.get("windows")):
        raise error_at(
            others[0],
            "OVER with a built-in beside OVER with an aggregate of your own, on a table",
            hint="compute one of them in a query in FROM (SELECT ...)",
        )


def arrangement(
    node: exp.Expr, outputs: Sequence[Output], written: Callable[[exp.Expr], str]
) -> Arrangement | None:
    """Return ORDER BY, LIMIT and OFFSET of a result that is a table."""
    order = node.args.get("order")
    keys = tuple(_key(part, outputs, written) for part in (order.expressions if order else ()))
    limit, offset = (_count(node.args.get(name), name.upper()) for name in ("limit", "offset"))
    if not keys and limit is None and offset is None:
        return None
    return Arrangement(keys, limit, offset or 0)


def _key(part: exp.Expr, outputs: Sequence[Output], written: Callable[[exp.Expr], str]) -> SortedBy:
    wanted = part.this
    descending = bool(part.args.get("desc"))
    names = [output.name.lower() for output in outputs]
    if isinstance(wanted, exp.Literal) and wanted.name.isdigit() and 1 <= int(wanted.name) <= len(outputs):
        at = int(wanted.name) - 1
    else:
        name = wanted.name if isinstance(wanted, exp.Column) else written(wanted)
        if name.lower() not in names:
            raise error_at(
                wanted,
                "with an aggregate of your own, ORDER BY names a column of SELECT",
                hint=did_you_mean(name, [output.name for output in outputs])
                or "select it, or sort outside: SELECT ... FROM (SELECT ...) ORDER BY ...",
            )
        at = names.index(name.lower())
    return SortedBy(at, descending, bool(part.args.get("nulls_first", not descending)))


def _count(node: exp.Expr | None, what: str) -> int | None:
    if node is None:
        return None
    value = node.expression
    if not isinstance(value, exp.Literal) or not value.name.isdigit():
        raise error_at(value, f"{what} is a whole number here", hint=_APART)
    return int(value.name)
