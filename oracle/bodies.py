"""Bodies of aggregates by definition: tables are lists of rows, statements follow SQL.

Nothing is indexed, maintained or compiled: every query scans all rows, in the order of their insertion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Expr
from millstream.types import Kind, Type
from oracle.errors import Failure, NotInterpreted
from oracle.values.arithmetic import absolute, compute, negated
from oracle.values.casts import cast, try_cast
from oracle.values.logic import both, compared, either, negation
from oracle.values.values import EPOCH, EXACT, MICROSECOND, Value, exact_sum, fitted, order_key, same_key

Row = list[Value]


class SeveralRows(Failure):
    """A scalar subquery with several rows."""


@dataclass
class Instance:
    """The tables of a running aggregate; ``given`` are the rows of the tables of the catalog."""

    body: typed_nodes.Body
    given: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = {table.name: [list(row) for row in self.given[table.name]] for table in self.body.given}
        self.tables |= {table.name: [] for table in self.body.tables}

    def run(self, block: str, arguments: Sequence[Value] = ()) -> list[tuple[Value, ...]]:
        """Run the statements of a block, and return the rows that they return."""
        return _Block(self, arguments).run(self.body.blocks[block])


def converted(arguments: Sequence[Value], types: Sequence[Type], body: typed_nodes.Body) -> list[Value]:
    """Convert the arguments of a call to the types of the parameters."""
    return [cast(v, t, p.type) for v, t, p in zip(arguments, types, body.parameters, strict=True)]


def of_content(
    body: typed_nodes.Body,
    content: Sequence[Sequence[Value]],
    given: Mapping[str, Sequence[Row]] | None = None,
) -> list[tuple[Value, ...]]:
    """Return the rows of the last tuple and of TERMINATE for a finite content.

    A window version has the tuples so far in its window.
    """
    return list(itertools.chain(*_ends(body, content, given or {})))


def only_row(
    body: typed_nodes.Body, content: Sequence[Sequence[Value]], given: Mapping[str, Sequence[Row]]
) -> Value:
    """Return the result of a nested call: the row of TERMINATE, else that of the last tuple."""
    last, terminated = _ends(body, content, given)
    returned = terminated or last
    if len(returned) > 1:
        raise SeveralRows("a query that stands for one value has several rows")
    return returned[0][0] if returned else None


def every_row(
    body: typed_nodes.Body, content: Sequence[Sequence[Value]], given: Mapping[str, Sequence[Row]]
) -> list[tuple[Value, ...]]:
    """Return all rows: those that tuples return, and those of TERMINATE."""
    instance, returned = Instance(body, given), []
    for i, arguments in enumerate(content):
        if typed_nodes.INWINDOW in instance.tables:
            instance.tables[typed_nodes.INWINDOW].append(list(arguments))
        returned += instance.run("INITIALIZE" if i == 0 else "ITERATE", arguments)
    return [*returned, *(instance.run("TERMINATE") if content else [])]


def _ends(
    body: typed_nodes.Body, content: Sequence[Sequence[Value]], given: Mapping[str, Sequence[Row]]
) -> tuple[list[tuple[Value, ...]], list[tuple[Value, ...]]]:
    """Return the rows of the last tuple and those of TERMINATE."""
    if not content:
        return [], []
    instance = Instance(body, given)
    returned: list[tuple[Value, ...]] = []
    for i, arguments in enumerate(content):
        if typed_nodes.INWINDOW in instance.tables:
            instance.tables[typed_nodes.INWINDOW].append(list(arguments))
        returned = instance.run("INITIALIZE" if i == 0 else "ITERATE", arguments)
    return returned, instance.run("TERMINATE")


class _Block:
    """One run of a block."""

    def __init__(self, instance: Instance, arguments: Sequence[Value]) -> None:
        self._instance, self._arguments = instance, arguments
        self._code = 0
        self._returned: list[tuple[Value, ...]] = []

    def run(self, statements: Sequence[typed_nodes.Statement]) -> list[tuple[Value, ...]]:
        for statement in statements:
            match statement:
                case typed_nodes.Insert():
                    changed = self._insert(statement)
                case typed_nodes.Update():
                    changed = self._update(statement)
                case _:
                    changed = self._delete(statement)
            self._code = 0 if changed else 100
        return self._returned

    # ------------------------------------------------------------ statements

    def _insert(self, statement: typed_nodes.Insert) -> int:
        if statement.query is not None:
            rows = self.query(statement.query, {})
        elif statement.where is not None and self.value(statement.where, {}) is not True:
            rows = []
        else:
            rows = [tuple(self.value(value, {}) for value in row) for row in statement.rows]
        if statement.table is None:
            self._returned += rows
        else:
            self._instance.tables[statement.table] += [list(row) for row in rows]
        return len(rows)

    def _chosen(self, scan: typed_nodes.Scan, where: Sequence[Expr]) -> list[Row]:
        table = self._instance.tables[scan.table or ""]
        return [row for row in table if all(self.value(c, {scan.number: row}) is True for c in where)]

    def _update(self, statement: typed_nodes.Update) -> int:
        rows = self._chosen(statement.scan, statement.where)
        number = statement.scan.number
        fresh = [[self.value(expr, {number: row}) for _, expr in statement.assigned] for row in rows]
        for row, values in zip(rows, fresh, strict=True):
            for (index, _), value in zip(statement.assigned, values, strict=True):
                row[index] = value
        return len(rows)

    def _delete(self, statement: typed_nodes.Delete) -> int:
        gone = self._chosen(statement.scan, statement.where)
        table = self._instance.tables[statement.scan.table or ""]
        table[:] = [row for row in table if not any(row is other for other in gone)]
        return len(gone)

    # ------------------------------------------------------------ queries

    def query(self, query: typed_nodes.Query, around: Mapping[int, Any]) -> list[tuple[Value, ...]]:
        rows = self._select(query, around)
        for other in query.united:
            rows += self._select(other, around)
        return rows

    def _select(self, query: typed_nodes.Query, around: Mapping[int, Any]) -> list[tuple[Value, ...]]:
        places = [dict(around) for _ in range(1)]
        for scan in query.scans:
            places = [after for place in places for after in self._scanned(scan, place)]
        places = [place for place in places if all(self.value(c, place) is True for c in query.where)]
        found = self._groups(query, places) if query.is_grouped else [(place, None) for place in places]
        rows = []
        for place, group in found:
            if query.having is None or self.value(query.having, place, group) is True:
                output = tuple(self.value(o, place, group) for o in query.outputs)
                keys = [self.value(key.expr, place, group) for key in query.order]
                rows.append((output, keys))
        if query.distinct:
            firsts: dict[Any, tuple[tuple[Value, ...], list[Value]]] = {}
            for row in rows:
                firsts.setdefault(same_key(row[0]), row)
            rows = list(firsts.values())
        for i, key in reversed([*enumerate(query.order)]):
            known = [row for row in rows if row[1][i] is not None]
            missing = [row for row in rows if row[1][i] is None]
            known.sort(key=lambda row: order_key(row[1][i]), reverse=key.descending)
            rows = [*missing, *known] if key.nulls_first else [*known, *missing]
        outputs = [output for output, _ in rows]
        if query.limit is not None:
            most = self.value(query.limit, around)
            outputs = outputs[: max(most or 0, 0)]
        return outputs

    def _scanned(self, scan: typed_nodes.Scan, place: dict[int, Any]) -> Iterator[dict[int, Any]]:
        if scan.query is not None:
            rows: Sequence[Sequence[Value]] = self.query(scan.query, {})
        else:
            rows = list(self._instance.tables[scan.table or ""])
        partners = [{**place, scan.number: row} for row in rows]
        partners = [one for one in partners if all(self.value(c, one) is True for c in scan.on)]
        if not partners and scan.left:
            partners = [{**place, scan.number: [None] * len(scan.fields)}]
        yield from partners

    def _groups(
        self, query: typed_nodes.Query, places: list[dict[int, Any]]
    ) -> list[tuple[dict[int, Any], list[Value]]]:
        groups: dict[Any, tuple[list[Value], list[dict[int, Any]]]] = {}
        for place in places:
            key = [self.value(k, place) for k in query.keys]
            groups.setdefault(same_key(key), (key, []))[1].append(place)
        if not query.keys and not groups:
            groups[()] = ([], [])
        if any(aggregate.every for aggregate in query.aggregates):
            return [({}, row) for row in self._every_row(query, next(iter(groups.values()))[1])]
        return [
            (members[0] if members else {}, [*key, *(self._aggregate(a, members) for a in query.aggregates)])
            for key, members in groups.values()
        ]

    def _every_row(self, query: typed_nodes.Query, places: list[dict[int, Any]]) -> list[list[Value]]:
        """Return all rows of the one aggregate of the user's that a query calls."""
        call = query.aggregates[0]
        assert call.user is not None
        if call.filter is not None:
            places = [place for place in places if self.value(call.filter, place) is True]
        rows = [[self.value(argument, place) for argument in call.arguments] for place in places]
        returned = every_row(call.user, rows, self._instance.given)
        return [[row[aggregate.column] for aggregate in query.aggregates] for row in returned]

    def _aggregate(self, aggregate: typed_nodes.Aggregation, places: list[dict[int, Any]]) -> Value:
        if aggregate.filter is not None:
            places = [place for place in places if self.value(aggregate.filter, place) is True]
        rows = [[self.value(argument, place) for argument in aggregate.arguments] for place in places]
        if aggregate.distinct:
            rows = list({same_key(row): row for row in reversed(rows)}.values())[::-1]
        if aggregate.user is not None:
            return only_row(aggregate.user, rows, self._instance.given)
        if aggregate.name == "count":
            return sum(all(value is not None for value in row) for row in rows)
        values = [row[0] for row in rows]
        if aggregate.name in ("first", "any_value", "last"):
            return (values[-1] if aggregate.name == "last" else values[0]) if values else None
        known = [value for value in values if value is not None]
        if not known:
            return None
        match aggregate.name:
            case "min":
                return min(known, key=order_key)
            case "max":
                return max(known, key=order_key)
            case "sum" if aggregate.type.kind in (Kind.DOUBLE, Kind.FLOAT):
                return exact_sum(known)
            case "sum":
                return (
                    fitted(sum(map(Fraction, known)), aggregate.type, "a sum")
                    if _is_exact(known)
                    else sum(known[1:], known[0])
                )
            case _:
                return self._average(known, aggregate)

    def _average(self, known: list[Value], aggregate: typed_nodes.Aggregation) -> Value:
        given = aggregate.arguments[0].type
        if given.kind is Kind.DECIMAL:
            total = sum(map(Fraction, known)) / len(known)
            return fitted(total, aggregate.type, "an average")
        return exact_sum([float(value) for value in known]) / len(known)

    # ------------------------------------------------------------ values

    def value(self, expr: Expr, place: Mapping[int, Any], group: list[Value] | None = None) -> Value:
        """Evaluate an expression at the current rows of the scans."""

        def part(inner: Expr) -> Value:
            return self.value(inner, place, group)

        match expr:
            case typed_nodes.Constant(value, type_):
                return _constant(value, type_)
            case typed_nodes.Parameter(index):
                return self._arguments[index]
            case typed_nodes.Column(scan, index):
                return place[scan][index]
            case typed_nodes.SqlCode():
                return self._code
            case typed_nodes.Oldest(position, index):
                rows, at = self._instance.tables[typed_nodes.INWINDOW], part(position)
                return rows[at - 1][index] if at is not None and 1 <= at <= len(rows) else None
            case typed_nodes.GroupColumn(index):
                assert group is not None
                return group[index]
            case typed_nodes.Cast(argument, type_, gently):
                return (try_cast if gently else cast)(part(argument), argument.type, type_)
            case typed_nodes.Case(branches, otherwise):
                for condition, branch in branches:
                    if part(condition) is True:
                        return part(branch)
                return None if otherwise is None else part(otherwise)
            case typed_nodes.Scalar(query):
                found = self.query(query, place)
                if len(found) > 1:
                    raise SeveralRows("a query that stands for one value has several rows")
                return found[0][0] if found else None
            case typed_nodes.Exists(query):
                return bool(self.query(query, place))
            case typed_nodes.InQuery(values, query):
                return self._among([part(value) for value in values], self.query(query, place))
            case typed_nodes.Call():
                return self._call(expr, part)
        raise AssertionError(expr)

    def _among(self, values: list[Value], rows: list[tuple[Value, ...]]) -> bool | None:
        tests = [
            _all(compared(_equal, one, other) for one, other in zip(values, row, strict=True)) for row in rows
        ]
        return True if True in tests else None if None in tests else False

    def _call(self, expr: typed_nodes.Call, part: Callable[[Expr], Value]) -> Value:
        match expr.name, expr.arguments:
            case "and", (a, b):
                return False if (first := part(a)) is False else both(first, part(b))
            case "or", (a, b):
                return True if (first := part(a)) is True else either(first, part(b))
            case "not", (a,):
                return negation(part(a))
            case "isnull", (a,):
                return part(a) is None
            case "in", (a, *others):
                return self._among([part(a)], [(part(other),) for other in others])
            case "<=>", (a, b):
                return order_key(part(a)) == order_key(part(b))
            case "coalesce", arguments:
                return next((v for a in arguments if (v := part(a)) is not None), None)
            case (("greatest" | "least"), arguments):
                known = [v for a in arguments if (v := part(a)) is not None]
                best = max if expr.name == "greatest" else min
                return best(known, key=order_key) if known else None
        values = [part(argument) for argument in expr.arguments]
        if expr.name in _TESTS:
            return compared(_TESTS[expr.name], values[0], values[1])
        if None in values:
            return None
        types = tuple(argument.type for argument in expr.arguments)
        return _computed(expr.name, values, types, expr.type)


def _computed(name: str, values: list[Value], types: tuple[Type, ...], result: Type) -> Value:
    if name in ("+", "-", "*", "/", "%", "div"):
        return compute(name, values[0], values[1], (types[0], types[1]), result)
    if name in _TIMES:
        return _TIMES[name](*values)
    if name == "negative":
        return negated(values[0], result)
    if name == "abs":
        return absolute(values[0], result)
    if name == "pmod":
        rest = compute("%", values[0], values[1], (types[0], types[1]), result)
        return compute("%", rest + values[1], values[1], (types[0], types[1]), result) if rest < 0 else rest
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*values)
    raise NotInterpreted(f"the function '{name}' inside an aggregate")


def _parts(text: str, separator: str, number: int) -> str:
    if number == 0:
        raise Failure("split_part has no part 0")
    parts = ["", *text.split(separator)] if number > 0 else ["", *text.split(separator)[::-1]]
    return parts[abs(number)] if abs(number) < len(parts) else ""


def _constant(value: Any, type_: Type) -> Value:
    """Convert a constant to this package's representation."""
    if value is None:
        return None
    match type_.kind:
        case Kind.DECIMAL:
            return Decimal(value).scaleb(-type_.scale, EXACT)
        case Kind.DAY_TIME_INTERVAL:
            return value * MICROSECOND
        case Kind.TIMESTAMP:
            return EPOCH + value * MICROSECOND
        case Kind.DATE:
            return date(1970, 1, 1) + timedelta(days=value)
        case _:
            return value


def _all(tests: Iterator[bool | None]) -> bool | None:
    found = list(tests)
    return False if False in found else None if None in found else True


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _is_exact(values: list[Value]) -> bool:
    return all(isinstance(value, int | Decimal) for value in values)


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}

_TIMES: dict[str, Callable[..., Value]] = {
    "+time": lambda a, b: a + b,
    "-time": lambda a, b: a - b,
    "-times": lambda a, b: a - b,
    "-dates": lambda a, b: a - b,
    "+intervals": lambda a, b: a + b,
    "-intervals": lambda a, b: a - b,
    "+days": lambda a, b: a + timedelta(days=b),
    "-days": lambda a, b: a - timedelta(days=b),
    "interval": lambda count, unit: count * (unit if isinstance(unit, timedelta) else unit * MICROSECOND),
}

_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "concat": lambda *parts: "".join(parts),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "split_part": _parts,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "floor": math.floor,
    "ceil": math.ceil,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "year": lambda t: t.year,
    "month": lambda t: t.month,
    "day": lambda t: t.day,
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "dayofyear": lambda t: t.timetuple().tm_yday,
    "quarter": lambda t: (t.month - 1) // 3 + 1,
    "dayofweek": lambda t: t.isoweekday() % 7 + 1,
}
