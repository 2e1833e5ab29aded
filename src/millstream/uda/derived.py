"""Window versions that are made of base versions, where what a tuple has added can be taken away again.

The state must be one row, which each tuple changes in ways of which the effect of the oldest can be undone:

| column | ITERATE | when the oldest tuple leaves |
| --- | --- | --- |
| sum | adds something of the tuple, and INITIALIZE sets it to the same of the first | that is subtracted |
| first | leaves it as INITIALIZE has set it | what INITIALIZE makes of the second oldest |
| last | sets it to something of the tuple | stays |

Only integers and decimals are added, and they are exact. What is added may be NULL: then the sum is NULL
while such a tuple is in the window, and what else has been added must not be lost. So there are two columns
beside such a sum: the sum of what is known, and how often it was not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.types import BIGINT, BOOLEAN, INT, Field, Kind, Type
from millstream.uda import checked
from millstream.uda.checked import Expr

_PURE = frozenset(
    {"+", "-", "*", "/", "%", "div", "pmod", "negative", "abs", "coalesce", "greatest", "least", "sqrt"}
    | {"floor", "ceil", "and", "or", "not", "isnull", "in", "=", "<>", "<", "<=", ">", ">=", "<=>"}
    | {
        "&",
        "|",
        "^",
        "length",
        "upper",
        "lower",
        "concat",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
    }
)
"""Functions that give the same whenever they are asked the same."""

_OLDEST, _NEXT_OLDEST = checked.Constant(1, INT), checked.Constant(2, INT)


@dataclass(frozen=True)
class Derived:
    """A window version, and what it was made of, in words."""

    body: checked.Body
    why: str


def derived_window_version(base: checked.Body) -> Derived | None:
    """The window version of a base version, None if it cannot be proved that there is one."""
    state = _state_of(base)
    if state is None:
        return None
    first, update = state
    table = base.tables[0]
    making = _Making(first, update, table)
    assigned = dict(update.assigned)
    for index in range(len(table.fields)):
        if not making.column(index, first.rows[0][index], assigned.get(index)):
            return None
    inwindow = checked.Table(checked.INWINDOW, base.parameters)
    body = replace(
        base,
        window=True,
        tables=(checked.Table(table.name, making.fields), inwindow),
        initialize=(making.initialize(), *base.initialize[1:], *base.terminate),
        iterate=(making.iterate(), *base.iterate[1:], *base.terminate),
        terminate=(),
        expire=making.expire(),
    )
    return Derived(body, f"EXPIRE derived: the inverse of {update.text}")


def _state_of(base: checked.Body) -> tuple[checked.Insert, checked.Update] | None:
    """How the one row of state is made and changed, if nothing else happens but that rows are returned."""
    if base.window or len(base.tables) != 1 or not base.initialize or not base.iterate:
        return None
    first, update = base.initialize[0], base.iterate[0]
    if not isinstance(first, checked.Insert) or not isinstance(update, checked.Update):
        return None
    others = (*base.initialize[1:], *base.iterate[1:], *base.terminate)
    if not all(isinstance(other, checked.Insert) and other.table is None for other in others):
        return None
    if any(isinstance(part, checked.SqlCode) for part in checked.walk(tuple(base.statements()))):
        return None
    name = base.tables[0].name
    plain = first.table == name and len(first.rows) == 1 and first.where is None and first.query is None
    return (first, update) if plain and update.scan.table == name and not update.where else None


class _Making:
    """Collects what is inserted, updated and undone, column by column."""

    def __init__(self, first: checked.Insert, update: checked.Update, table: checked.Table) -> None:
        self._first, self._update = first, update
        self._number = update.scan.number
        self._fields = list(table.fields)
        self._inserted = list(first.rows[0])
        self._assigned: list[tuple[int, Expr]] = []
        self._undone: list[tuple[int, Expr]] = []

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(self._fields)

    def initialize(self) -> checked.Insert:
        return replace(self._first, rows=(tuple(self._inserted),))

    def iterate(self) -> checked.Update:
        return replace(self._update, scan=self._scan, assigned=tuple(self._assigned))

    def expire(self) -> tuple[checked.Statement, ...]:
        if not self._undone:
            return ()
        return (replace(self._update, scan=self._scan, assigned=tuple(self._undone)),)

    @property
    def _scan(self) -> checked.Scan:
        return replace(self._update.scan, fields=self.fields)

    def column(self, index: int, first: Expr, after: Expr | None) -> bool:
        """Take a column into account; whether that is possible."""
        if after is None:
            # The first tuple has set it.
            if not _is_of_tuple(first):
                return False
            if any(isinstance(part, checked.Parameter) for part in checked.walk(first)):
                self._undone.append((index, _about_oldest(first, _NEXT_OLDEST)))
            return True
        if _is_of_tuple(after):
            # The last tuple has set it.
            self._assigned.append((index, after))
            return True
        sum_ = _sum_of(after, self._number, index)
        if sum_ is None or not _is_same(first, sum_.added):
            return False
        if isinstance(sum_.added, checked.Constant) and sum_.added.value is not None:
            self._assigned.append((index, after))
            self._undone.append((index, sum_.less(sum_.column, sum_.added)))
        else:
            self._with_nulls(index, sum_)
        return True

    def _with_nulls(self, index: int, sum_: _Sum) -> None:
        """A sum of what is known and how often it is not known, from which the column is made."""
        field = self._fields[index]
        known, missing = len(self._fields), len(self._fields) + 1
        self._fields += [Field(f"__ms_known{index}", field.type), Field(f"__ms_missing{index}", BIGINT)]
        zero, one, none = checked.Constant(0, sum_.added.type), *(checked.Constant(n, BIGINT) for n in (1, 0))
        column, count = (
            checked.Column(self._number, i, t) for i, t in ((known, field.type), (missing, BIGINT))
        )

        def parts(added: Expr) -> tuple[Expr, Expr]:
            is_missing = checked.Call("isnull", (added,), BOOLEAN)
            value = checked.Call("coalesce", (added, zero), added.type)
            return value, checked.Case(((is_missing, one),), none, BIGINT)

        def changed(total: Expr, times: Expr) -> list[tuple[int, Expr]]:
            is_known = checked.Call("=", (times, none), BOOLEAN)
            shown = checked.Case(((is_known, total),), checked.Constant(None, field.type), field.type)
            return [(index, shown), (known, total), (missing, times)]

        value, times = parts(sum_.added)
        self._inserted += [_as(value, field.type), times]
        self._assigned += changed(sum_.more(column, value), checked.Call("+", (count, times), BIGINT))
        value, times = parts(_about_oldest(sum_.added, _OLDEST))
        self._undone += changed(sum_.less(column, value), checked.Call("-", (count, times), BIGINT))


@dataclass(frozen=True)
class _Sum:
    """A column to which something is added: in which type, and what conversions are around."""

    column: checked.Column
    added: Expr
    around: Callable[[Expr], Expr]
    within: Callable[[Expr], Expr]
    type: Type

    def more(self, column: Expr, added: Expr) -> Expr:
        return self.around(checked.Call("+", (self.within(column), added), self.type))

    def less(self, column: Expr, added: Expr) -> Expr:
        added = _about_oldest(added, _OLDEST)
        return self.around(checked.Call("-", (self.within(column), added), self.type))


def _sum_of(expr: Expr, scan: int, index: int) -> _Sum | None:
    """What is added to a column, if that is all that happens to it, and exact."""
    casts = []
    while isinstance(expr, checked.Cast) and not expr.gently:
        casts.append(expr.type)
        expr = expr.argument
    if not isinstance(expr, checked.Call) or expr.name != "+" or len(expr.arguments) != 2:
        return None
    for column, added in (expr.arguments, expr.arguments[::-1]):
        inner, types = column, []
        while isinstance(inner, checked.Cast) and not inner.gently:
            types.append(inner.type)
            inner = inner.argument
        if not (isinstance(inner, checked.Column) and (inner.scan, inner.index) == (scan, index)):
            continue
        if not _is_of_tuple(added) or not _are_exact([*casts, expr.type, *types, inner.type, added.type]):
            return None
        return _Sum(inner, added, _casting(casts[::-1]), _casting(types[::-1]), expr.type)
    return None


def _casting(types: list[Type]) -> Callable[[Expr], Expr]:
    def cast(expr: Expr) -> Expr:
        for type_ in types:
            expr = checked.Cast(expr, type_)
        return expr

    return cast


def _are_exact(types: list[Type]) -> bool:
    """Whether sums in these types lose nothing: what does not fit is an error."""
    if all(type_.is_integral for type_ in types):
        return True
    decimals = [type_ for type_ in types if type_.kind is Kind.DECIMAL]
    return len(decimals) == len(types) and len({type_.scale for type_ in decimals}) == 1


def _is_of_tuple(expr: Expr) -> bool:
    """Whether a value depends on the tuple alone, and is the same whenever it is computed."""
    for part in checked.walk(expr):
        if isinstance(part, checked.Call) and part.name not in _PURE:
            return False
        if not isinstance(
            part, checked.Call | checked.Cast | checked.Case | checked.Parameter | checked.Constant
        ):
            return False
    return True


def _is_same(one: Expr, other: Expr) -> bool:
    """Whether two values are the same number, whatever type of integers it is in."""
    return _plain(one) == _plain(other)


def _plain(expr: Expr) -> Expr:
    while isinstance(expr, checked.Cast) and expr.type.is_integral and expr.argument.type.is_integral:
        expr = expr.argument
    return checked.Constant(expr.value, INT) if _is_whole(expr) else expr


def _is_whole(expr: Expr) -> bool:
    return isinstance(expr, checked.Constant) and expr.type.is_integral


def _about_oldest(expr: Expr, position: Expr) -> Expr:
    """The same of a tuple that is in the window: parameters are columns of it."""
    match expr:
        case checked.Parameter(index, type_):
            return checked.Oldest(position, index, type_)
        case checked.Call():
            return replace(expr, arguments=tuple(_about_oldest(a, position) for a in expr.arguments))
        case checked.Cast():
            return replace(expr, argument=_about_oldest(expr.argument, position))
        case checked.Case():
            branches = tuple(
                (_about_oldest(a, position), _about_oldest(b, position)) for a, b in expr.branches
            )
            otherwise = None if expr.otherwise is None else _about_oldest(expr.otherwise, position)
            return replace(expr, branches=branches, otherwise=otherwise)
    return expr


def _as(expr: Expr, type_: Type) -> Expr:
    return expr if expr.type == type_ else checked.Cast(expr, type_)
