"""Keys of local tables, as far as the form of the statements proves them.

``INSERT INTO t VALUES (x, 0) WHERE x NOT IN (SELECT c FROM t)`` enters no value of ``c`` twice. If all rows
come in such a way, and none is changed in ``c``, there is at most one for a value, and a lookup ends with the
first row.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.catalog.functions import is_deterministic
from millstream.codegen.udas.access_paths import equated
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Call, Cast, Constant, Expr

Row = tuple[Expr, ...]


def key_of(name: str, body: typed_nodes.Body) -> frozenset[int] | None:
    """Return columns in which no two rows of a table are equal, except rows with NULLs."""
    if name == typed_nodes.INWINDOW:
        return None  # the system inserts into it
    first = _inserts(name, body.initialize)
    others = _inserts(name, body.iterate + body.terminate + body.expire)
    if any(insert.query is not None for insert in (*first, *others)):
        return None
    guards = {id(insert): guarded(name, insert) for insert in (*first, *others)}
    if not all(guards[id(insert)] for insert in others):
        return None
    key = frozenset[int]().union(*guards.values())
    rows: list[Row] = []
    for insert in first:
        for row in insert.rows:
            if not guards[id(insert)] and not all(_differ(row, other, key) for other in rows):
                return None
            rows.append(row)
    changed = (
        index
        for statement in body.statements()
        if isinstance(statement, typed_nodes.Update) and statement.scan.table == name
        for index, _ in statement.assigned
    )
    return None if key.intersection(changed) else key or None


def _inserts(name: str, statements: tuple[typed_nodes.Statement, ...]) -> list[typed_nodes.Insert]:
    return [s for s in statements if isinstance(s, typed_nodes.Insert) and s.table == name]


def guarded(name: str, insert: typed_nodes.Insert) -> frozenset[int]:
    """Return the columns in which an INSERT proves that no row has its values."""
    if len(insert.rows) != 1 or insert.where is None:
        return frozenset()
    (row,) = insert.rows
    guards = (_guard(name, condition, row) for condition in _conjuncts(insert.where))
    return next((guard for guard in guards if guard), frozenset())


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Call("and", (a, b)):
            yield from _conjuncts(a)
            yield from _conjuncts(b)
        case _:
            yield condition


def _guard(name: str, condition: Expr, row: Row) -> frozenset[int]:
    """Return the columns of which a condition says that no row has the same values."""
    match condition:
        case Call("not", (typed_nodes.Exists(query),)) if _is_plain(name, query):
            tests = query.where
        case Call("not", (typed_nodes.InQuery((value,), query),)) if (
            _is_plain(name, query) and not query.where
        ):
            tests = (Call("=", (query.outputs[0], value), condition.type),)
        case _:
            return frozenset()
    scan = query.scans[0].number
    found = [
        next((c for c, other in equated(test, scan) if _are_the_same(row[c], other)), None) for test in tests
    ]
    return frozenset() if None in found else frozenset(c for c in found if c is not None)


def _is_plain(name: str, query: typed_nodes.Query) -> bool:
    """Tell whether a query has a row for each row of the table that passes its conditions."""
    if len(query.scans) != 1 or query.scans[0].table != name or query.scans[0].on or query.scans[0].left:
        return False
    return not (query.is_grouped or query.united or query.limit is not None)


def _are_the_same(inserted: Expr, compared: Expr) -> bool:
    """Tell whether two expressions have the same value within a statement."""
    one = _whole(inserted)
    return one == _whole(compared) and all(map(_is_steady, typed_nodes.walk(one)))


def _whole(expr: Expr) -> Expr:
    """Return an integer in the type that it comes in: another one does not change it."""
    match expr:
        case Cast(argument, wanted, False) if argument.type.is_integral and wanted.is_integral:
            return _whole(argument)
    return expr


def _is_steady(part: object) -> bool:
    match part:
        case Call(name, arguments):
            return is_deterministic(name, len(arguments))
        case Constant() | typed_nodes.Parameter() | Cast() | typed_nodes.Oldest():
            return True
    return False


def _differ(one: Row, other: Row, columns: frozenset[int]) -> bool:
    """Tell whether two rows have different constants in one of the columns."""
    pairs = ((_whole(one[c]), _whole(other[c])) for c in columns)
    return any(
        isinstance(a, Constant) and isinstance(b, Constant) and a.value != b.value
        for a, b in pairs
        if a.type == b.type
    )
