"""Access paths of a scan: by a hash index, along an order, or one row after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Call, Cast, Expr
from millstream.ir.value_kinds import DOUBLE, INTEGER, WORD, kind_of


@dataclass(frozen=True)
class ByHash:
    """Rows whose columns equal these values."""

    columns: tuple[int, ...]
    values: tuple[Expr, ...]
    conditions: tuple[Expr, ...] = ()
    """Conditions that equate them."""


@dataclass(frozen=True)
class InOrder:
    """Rows along the order of a column, for as long as the condition holds."""

    column: int
    ascending: bool
    condition: Expr


Access = ByHash | InOrder | None


def access(scan: typed_nodes.Scan, conditions: Sequence[Expr], known: Set[int], *, any_order: bool) -> Access:
    """Return the best way to the rows of a scan for which conditions hold, given the scans ``known`` before.

    Along an order rows come in that order, not in which they were inserted; so that must not matter.
    """
    equal: dict[int, tuple[Expr, Expr]] = {}
    for condition in conditions:
        for column, other in equated(condition, scan.number):
            if depends_on(other) <= known:
                equal.setdefault(column, (other, condition))
    if equal:
        columns = tuple(sorted(equal))
        values, tested = zip(*(equal[column] for column in columns), strict=True)
        return ByHash(columns, values, tested)
    for condition in conditions if any_order else ():
        match condition:
            case Call("<" | "<=" | ">" | ">=" as operator, (a, b)):
                for own, other, below in ((a, b, operator[0] == "<"), (b, a, operator[0] == ">")):
                    found = _monotone(own, scan, known)
                    if found is not None and depends_on(other) <= known:
                        column, rises = found
                        return InOrder(column, below == rises, condition)
    return None


def depends_on(part: object) -> frozenset[int]:
    """Return the scans whose rows an expression looks at, those inside its own queries left out."""
    inside = frozenset(scan.number for scan in typed_nodes.walk(part) if isinstance(scan, typed_nodes.Scan))
    used = frozenset(
        column.scan for column in typed_nodes.walk(part) if isinstance(column, typed_nodes.Column)
    )
    return used - inside


def equated(condition: Expr, scan: int) -> Iterator[tuple[int, Expr]]:
    """Yield the columns of a scan that a condition equates, with the other side."""
    match condition:
        case Call("=", (a, b)):
            for own, other in ((a, b), (b, a)):
                column = _column(own, scan)
                if column is not None:
                    yield column, other


def _column(expr: Expr, scan: int) -> int | None:
    """Return the column of a scan that an expression is; a wider integer is as good."""
    match expr:
        case typed_nodes.Column(number, index) if number == scan:
            return index
        case Cast(typed_nodes.Column(number, index, type_), wanted) if number == scan:
            return index if type_.is_integral and wanted.is_integral else None
    return None


def _monotone(expr: Expr, scan: typed_nodes.Scan, known: Set[int]) -> tuple[int, bool] | None:
    """Return the column with which an expression rises (or falls), everything else in it being known."""
    match expr:
        case typed_nodes.Column(number, index, type_) if number == scan.number and kind_of(type_) in (
            INTEGER,
            DOUBLE,
        ):
            return index, True
        case _ if kind_of(expr.type) == DOUBLE:
            return None  # infinities that cancel out are in no order
        case Cast(argument, wanted) if WORD not in (kind_of(argument.type), kind_of(wanted)):
            if not (wanted.is_numeric and argument.type.is_numeric) or argument.type.kind is wanted.kind:
                return None
            return _monotone(argument, scan, known)
        case Call("+" | "+time" | "+days" | "+intervals", (a, b)):
            for own, other in ((a, b), (b, a)):
                if depends_on(other) <= known:
                    return _monotone(own, scan, known)
        case Call("-" | "-time" | "-days" | "-times" | "-intervals", (a, b)):
            if depends_on(b) <= known:
                return _monotone(a, scan, known)
            if depends_on(a) <= known:
                found = _monotone(b, scan, known)
                return None if found is None else (found[0], not found[1])
    return None
