"""Instants in the clauses of windows: checks of their form, and values that can be compared."""

from __future__ import annotations

import re
from datetime import datetime, time
from decimal import Decimal

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.instants import instant
from millstream.analysis.types.literal_checks import check_literal
from millstream.analysis.types.quantities import quantity
from millstream.errors import NotExecutableError
from millstream.quantity import Distance
from millstream.syntax import to_sql
from millstream.types import Kind, Type
from millstream.windows.months import first_instant, month_of
from millstream.windows.window_properties import is_time_of_day


def check_time(node: exp.Expr, what: str, type_: Type) -> None:
    """Refuse a text that is no time, or a time of day whose day Spark would take from the clock."""
    if isinstance(node, exp.Literal) and not is_time_of_day(to_sql(node)):
        check_literal(node, type_)
        if re.match(r"\s*T?\d{1,2}:", node.name):
            raise error_at(
                node,
                f"{what} '{node.name}' is a time of day in a form that names no day",
                hint="write '07:00:00' for one on the day of the first tuple, or a date and a time",
            )
        if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE):
            try:
                instant(node.name, type_)
            except NotExecutableError as error:
                raise error_at(node, error.message, hint=error.hint) from None


def begins_month(node: exp.Expr, type_: Type) -> bool:
    if isinstance(node, exp.Cast):
        node = node.this
    try:
        moment = instant(node.name, type_)
    except NotExecutableError:
        return False
    return first_instant(month_of(moment)) == moment


def comparable(node: exp.Expr) -> Decimal | datetime | time | None:
    """Return a bound of a landmark as a value that Python can compare; None where that is left to Spark."""
    if isinstance(node, exp.Cast):
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        amount = quantity(node)
        return amount.value if isinstance(amount, Distance) else None
    for read in (time.fromisoformat, datetime.fromisoformat):
        try:
            return read(node.name.strip())
        except ValueError:
            pass
    return None
