"""Amounts that measure windows: rows, durations, and distances on a numeric attribute."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
MONTHS = {"MONTH": 1, "YEAR": 12}


@dataclass(frozen=True)
class Rows:
    """A number of tuples."""

    count: int

    def __str__(self) -> str:
        return f"{self.count} ROW{'' if self.count == 1 else 'S'}"


@dataclass(frozen=True)
class Duration:
    """A length of time. Months have no fixed length, so they are counted separately.

    >>> print(Duration(microseconds=90_000_000), Duration(months=14), Duration(microseconds=86_400_000_000))
    90 SECONDS 14 MONTHS 1 DAY
    """

    microseconds: int = 0
    months: int = 0

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.microseconds + other.microseconds, self.months + other.months)

    def __str__(self) -> str:
        parts = [_with_unit(self.months, "MONTH")] if self.months else []
        if self.microseconds or not parts:
            # The largest unit in which the duration is a whole number.
            unit = "SECOND"
            for name in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"):
                if self.microseconds and self.microseconds % MICROSECONDS[name] == 0:
                    unit = name
                    break
            parts.append(_with_unit(self.microseconds // MICROSECONDS[unit], unit))
        return " ".join(parts)


@dataclass(frozen=True)
class Distance:
    """A difference of two values of a numeric attribute."""

    value: Decimal

    def __str__(self) -> str:
        return str(self.value)


Quantity = Rows | Duration | Distance


def is_positive(quantity: Quantity) -> bool:
    match quantity:
        case Rows(count):
            return count > 0
        case Duration(microseconds, months):
            return microseconds >= 0 and months >= 0 and microseconds + months > 0
        case Distance(value):
            return value > 0


def size(quantity: Quantity) -> Decimal:
    """Return an amount as a number, to compare it with others of its kind; a month counts as 30 days.

    >>> size(Duration(months=1)) < size(Duration(microseconds=31 * MICROSECONDS["DAY"]))
    True
    """
    match quantity:
        case Rows(count):
            return Decimal(count)
        case Duration(microseconds, months):
            return Decimal(microseconds + months * 30 * MICROSECONDS["DAY"])
        case Distance(value):
            return value


def negative(quantity: Quantity) -> Quantity:
    """Return an amount in the other direction."""
    match quantity:
        case Rows(count):
            return Rows(-count)
        case Duration(microseconds, months):
            return Duration(-microseconds, -months)
        case Distance(value):
            return Distance(-value)


def _with_unit(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 'S'}"
