"""Window versions that are made of base versions, where that can be proved to give the same.

The state must be one row, which nothing but one UPDATE for each tuple changes. Each of its columns is one of

| column | ITERATE | in the window version |
| --- | --- | --- |
| sum | adds something of the tuple; INITIALIZE has set it to the same of the first | EXPIRE subtracts it |
| extreme | keeps the greater (smaller) of it and an argument; INITIALIZE has set it to that | from inwindow |
| first | leaves it as INITIALIZE has set it, to an argument or a constant | that of the second oldest |
| last | sets it to something of the tuple | stays |

Only integers and decimals are added, and they are exact. What is added may be NULL: then the sum is NULL
while such a tuple is in the window, and what else has been added must not be lost. So there are two columns
beside such a sum: the sum of what is known, and how often it was not. What goes beyond its type is an error;
as tuples leave one by one, that may also be the sum of some of those that a window has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.codegen.udas.body_facts import unsupported
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Expr
from millstream.types import BIGINT, BOOLEAN, INT, Field, Kind, Type

_PURE = frozenset(
    {"+", "-", "*", "/", "%", "div", "pmod", "negative", "abs", "coalesce", "greatest", "least", "sqrt"}
    | {"floor", "ceil", "and", "or", "not", "isnull", "in", "=", "<>", "<", "<=", ">", ">=", "<=>"}
    | {"&", "|", "^", "length", "upper", "lower", "concat", "year", "month", "day", "hour"}
)
"""Functions that give the same whenever they are asked the same."""

_OLDEST, _NEXT_OLDEST = typed_nodes.Constant(1, INT), typed_nodes.Constant(2, INT)


@dataclass(frozen=True)
class DerivedVersion:
    """A window version, and what it was made of, in words."""

    body: typed_nodes.Body
    why: str


def derived_window_version(base: typed_nodes.Body) -> DerivedVersion | None:
    """Derive the window version of a base version; None if it cannot be proved that there is one."""
    state = _state_of(base)
    if state is None:
        return None
    first, update = state
    table = base.tables[0]
    making = _VersionBuilder(first, update, table, _next_scan(base))
    assigned = dict(update.assigned)
    for index in range(len(table.fields)):
        if not making.column(index, first.rows[0][index], assigned.get(index)):
            return None
    inwindow = typed_nodes.Table(typed_nodes.INWINDOW, base.parameters)
    body = replace(
        base,
        window=True,
        tables=(typed_nodes.Table(table.name, making.fields), inwindow),
        initialize=(making.initialize(), *base.initialize[1:], *base.terminate),
        iterate=(making.iterate(), *base.iterate[1:], *base.terminate),
        terminate=(),
        expire=making.expire(),
    )
    if unsupported(body) is not None:
        return None
    return DerivedVersion(
        body, f"derived: EXPIRE undoes {update.text}" if body.expire else f"derived of {update.text}"
    )


def _state_of(base: typed_nodes.Body) -> tuple[typed_nodes.Insert, typed_nodes.Update] | None:
    """Return the INSERT and the UPDATE of a one-row state, if other statements only return rows."""
    if base.window or len(base.tables) != 1 or not base.initialize or not base.iterate:
        return None
    first, update = base.initialize[0], base.iterate[0]
    if not isinstance(first, typed_nodes.Insert) or not isinstance(update, typed_nodes.Update):
        return None
    others = (*base.initialize[1:], *base.iterate[1:], *base.terminate)
    if not all(isinstance(other, typed_nodes.Insert) and other.table is None for other in others):
        return None
    if any(isinstance(part, typed_nodes.SqlCode) for part in typed_nodes.walk(tuple(base.statements()))):
        return None
    name = base.tables[0].name
    plain = first.table == name and len(first.rows) == 1 and first.where is None and first.query is None
    return (first, _always(update)) if plain and update.scan.table == name else None


def _next_scan(base: typed_nodes.Body) -> int:
    """Return a number that no scan of the body has: columns are told apart by the numbers of their scans."""
    parts = typed_nodes.walk(tuple(base.statements()))
    return 1 + max((part.number for part in parts if isinstance(part, typed_nodes.Scan)), default=0)


def _always(update: typed_nodes.Update) -> typed_nodes.Update:
    """Turn an UPDATE with WHERE into one of all rows, in which other rows keep their values."""
    if not update.where:
        return update
    assigned = []
    for index, value in update.assigned:
        own = typed_nodes.Column(update.scan.number, index, update.scan.fields[index].type)
        chosen = value
        for condition in reversed(update.where):
            chosen = typed_nodes.Case(((condition, chosen),), own, own.type)
        assigned.append((index, chosen))
    return replace(update, assigned=tuple(assigned), where=())


class _VersionBuilder:
    """Builder of the statements of a window version, column by column."""

    def __init__(
        self, first: typed_nodes.Insert, update: typed_nodes.Update, table: typed_nodes.Table, next_scan: int
    ) -> None:
        self._first, self._update = first, update
        self._next_scan = next_scan
        self._number = update.scan.number
        self._fields = list(table.fields)
        self._inserted = list(first.rows[0])
        self._assigned: list[tuple[int, Expr]] = []
        self._undone: list[tuple[int, Expr]] = []

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(self._fields)

    def initialize(self) -> typed_nodes.Insert:
        return replace(self._first, rows=(tuple(self._inserted),))

    def iterate(self) -> typed_nodes.Update:
        return replace(self._update, scan=self._scan, assigned=tuple(self._assigned))

    def expire(self) -> tuple[typed_nodes.Statement, ...]:
        if not self._undone:
            return ()
        return (replace(self._update, scan=self._scan, assigned=tuple(self._undone)),)

    @property
    def _scan(self) -> typed_nodes.Scan:
        return replace(self._update.scan, fields=self.fields)

    def column(self, index: int, first: Expr, after: Expr | None) -> bool:
        """Take a column into account; whether that is possible."""
        if after is None:
            # The first tuple has set it.
            if not isinstance(first, typed_nodes.Parameter | typed_nodes.Constant):
                return False
            if isinstance(first, typed_nodes.Parameter):
                self._undone.append((index, _about_oldest(first, _NEXT_OLDEST)))
            return True
        if _is_of_tuple(after):
            # The last tuple has set it.
            self._assigned.append((index, after))
            return True
        extreme = _extreme_of(after, typed_nodes.Column(self._number, index, self._fields[index].type))
        if extreme is not None and extreme.argument == first:
            self._assigned.append((index, extreme.of_window(self._next_scan)))
            self._next_scan += 1
            return True
        sum_ = _sum_of(after, self._number, index)
        if sum_ is None or not _is_same(first, sum_.added):
            return False
        if isinstance(sum_.added, typed_nodes.Constant) and sum_.added.value is not None:
            self._assigned.append((index, after))
            self._undone.append((index, sum_.less(sum_.column, sum_.added)))
        else:
            self._with_nulls(index, sum_)
        return True

    def _with_nulls(self, index: int, sum_: _Sum) -> None:
        """Add two columns, the sum of values that are not NULL and the number of NULLs."""
        field = self._fields[index]
        wide = BIGINT if field.type.is_integral else field.type
        known, missing = len(self._fields), len(self._fields) + 1
        self._fields += [Field(f"__ms_known{index}", wide), Field(f"__ms_missing{index}", BIGINT)]
        column, count = (
            typed_nodes.Column(self._number, known, wide),
            typed_nodes.Column(self._number, missing, BIGINT),
        )
        one, none = typed_nodes.Constant(1, BIGINT), typed_nodes.Constant(0, BIGINT)

        def parts(added: Expr) -> tuple[Expr, Expr]:
            is_missing = typed_nodes.Call("isnull", (added,), BOOLEAN)
            value = typed_nodes.Call("coalesce", (added, typed_nodes.Constant(0, added.type)), added.type)
            return value, typed_nodes.Case(((is_missing, one),), none, BIGINT)

        def changed(operator: str, added: Expr) -> list[tuple[int, Expr]]:
            value, is_missing = parts(added)
            times = typed_nodes.Call(operator, (count, is_missing), BIGINT)
            if wide == BIGINT:
                total: Expr = typed_nodes.Call(operator, (column, _as(value, wide)), wide)
            else:
                total = sum_.computed(operator, column, value)
            is_known = typed_nodes.Call("=", (times, none), BOOLEAN)
            nothing = typed_nodes.Constant(None, field.type)
            shown = typed_nodes.Case(((is_known, _as(total, field.type)),), nothing, field.type)
            # Results are not read while tuples leave.
            return [*([(index, shown)] if operator == "+" else []), (known, total), (missing, times)]

        value, is_missing = parts(sum_.added)
        self._inserted += [_as(value, wide), is_missing]
        self._assigned += changed("+", sum_.added)
        self._undone += changed("-", _about_oldest(sum_.added, _OLDEST))


@dataclass(frozen=True)
class _Sum:
    """A column to which something is added: in which type, and what conversions are around."""

    column: typed_nodes.Column
    added: Expr
    around: Callable[[Expr], Expr]
    within: Callable[[Expr], Expr]
    type: Type

    def computed(self, operator: str, column: Expr, added: Expr) -> Expr:
        return self.around(typed_nodes.Call(operator, (self.within(column), added), self.type))

    def less(self, column: Expr, added: Expr) -> Expr:
        return self.computed("-", column, _about_oldest(added, _OLDEST))


@dataclass(frozen=True)
class _Extreme:
    """The greatest or the least of an argument; of windows whose first has none there may be none at all."""

    argument: typed_nodes.Parameter
    greatest: bool
    skips_nulls: bool

    def of_window(self, scan: int) -> Expr:
        index, type_ = self.argument.index, self.argument.type
        value = typed_nodes.Column(scan, index, type_)
        rows = typed_nodes.Scan(scan, typed_nodes.INWINDOW)
        found = typed_nodes.Aggregation("max" if self.greatest else "min", (value,), type_)
        query = typed_nodes.Query(
            (rows,),
            (),
            (typed_nodes.GroupColumn(0, type_),),
            ("extreme",),
            is_grouped=True,
            aggregates=(found,),
        )
        all_ = typed_nodes.Scalar(query, type_)
        if self.skips_nulls:
            return all_
        is_missing = typed_nodes.Call("isnull", (typed_nodes.Oldest(_OLDEST, index, type_),), BOOLEAN)
        return typed_nodes.Case(((is_missing, typed_nodes.Constant(None, type_)),), all_, type_)


def _extreme_of(expr: Expr, column: typed_nodes.Column) -> _Extreme | None:
    """Tell whether a column keeps the greater or the smaller of itself and an argument.

    ``greatest(c, x)`` takes NULL for nothing, CASE WHEN x > c THEN x ELSE c END for the end of it.
    """
    match expr:
        case typed_nodes.Call("greatest" | "least", (one, other)) if column in (one, other):
            argument = other if one == column else one
            if isinstance(argument, typed_nodes.Parameter) and argument.type == column.type:
                return _Extreme(argument, expr.name == "greatest", skips_nulls=True)
        case typed_nodes.Case(
            ((typed_nodes.Call(name, (one, other)), typed_nodes.Parameter() as argument),), otherwise
        ):
            greater = {">": one == argument, "<": one == column}.get(name.rstrip("="))
            compared = {one, other} == {argument, column} and otherwise == column
            if greater is not None and compared and argument.type == column.type:
                return _Extreme(argument, greater, skips_nulls=False)
    return None


def _sum_of(expr: Expr, scan: int, index: int) -> _Sum | None:
    """Return the value added to a column, if the column is an exact sum."""
    casts = []
    while isinstance(expr, typed_nodes.Cast) and not expr.gently:
        casts.append(expr.type)
        expr = expr.argument
    if not isinstance(expr, typed_nodes.Call) or expr.name != "+" or len(expr.arguments) != 2:
        return None
    for column, added in (expr.arguments, expr.arguments[::-1]):
        inner, types = column, []
        while isinstance(inner, typed_nodes.Cast) and not inner.gently:
            types.append(inner.type)
            inner = inner.argument
        if not (isinstance(inner, typed_nodes.Column) and (inner.scan, inner.index) == (scan, index)):
            continue
        if not _is_of_tuple(added) or not _are_exact([*casts, expr.type, *types, inner.type, added.type]):
            return None
        return _Sum(inner, added, _casting(casts[::-1]), _casting(types[::-1]), expr.type)
    return None


def _casting(types: list[Type]) -> Callable[[Expr], Expr]:
    def cast(expr: Expr) -> Expr:
        for type_ in types:
            expr = typed_nodes.Cast(expr, type_)
        return expr

    return cast


def _are_exact(types: list[Type]) -> bool:
    """Tell whether sums in these types lose nothing: what does not fit is an error."""
    if all(type_.is_integral for type_ in types):
        return True
    decimals = [type_ for type_ in types if type_.kind is Kind.DECIMAL]
    return len(decimals) == len(types) and len({type_.scale for type_ in decimals}) == 1


def _is_of_tuple(expr: Expr) -> bool:
    """Tell whether a value depends on the tuple alone, and is the same whenever it is computed."""
    for part in typed_nodes.walk(expr):
        if isinstance(part, typed_nodes.Call) and part.name not in _PURE:
            return False
        if not isinstance(
            part,
            typed_nodes.Call
            | typed_nodes.Cast
            | typed_nodes.Case
            | typed_nodes.Parameter
            | typed_nodes.Constant,
        ):
            return False
    return True


def _is_same(one: Expr, other: Expr) -> bool:
    """Tell whether two values are the same number, whatever type of integers or decimals it is in."""
    return _plain(one) == _plain(other)


def _plain(expr: Expr) -> Expr:
    while isinstance(expr, typed_nodes.Cast) and _are_exact([expr.type, expr.argument.type]):
        expr = expr.argument
    if isinstance(expr, typed_nodes.Constant) and expr.type.is_integral:
        return typed_nodes.Constant(expr.value, INT)
    return expr


def _about_oldest(expr: Expr, position: Expr) -> Expr:
    """Replace parameters by columns of a tuple in the window."""
    match expr:
        case typed_nodes.Parameter(index, type_):
            return typed_nodes.Oldest(position, index, type_)
        case typed_nodes.Call():
            return replace(expr, arguments=tuple(_about_oldest(a, position) for a in expr.arguments))
        case typed_nodes.Cast():
            return replace(expr, argument=_about_oldest(expr.argument, position))
        case typed_nodes.Case():
            branches = tuple(
                (_about_oldest(a, position), _about_oldest(b, position)) for a, b in expr.branches
            )
            otherwise = None if expr.otherwise is None else _about_oldest(expr.otherwise, position)
            return replace(expr, branches=branches, otherwise=otherwise)
    return expr


def _as(expr: Expr, type_: Type) -> Expr:
    return expr if expr.type == type_ else typed_nodes.Cast(expr, type_)
