"""Failures of running programs, as numbers that compiled code can return."""

from __future__ import annotations

OVERFLOW, DIVISION, CONVERSION, ROWS, OUTSIDE, ATTEMPTS = 1, 2, 3, 4, 5, 6

BUDGET = 10_000
"""Limit of open attempts of a pattern in a partition."""

MESSAGES = {
    OVERFLOW: "a value does not fit its type",
    DIVISION: "division by zero",
    CONVERSION: "a value cannot be converted",
    ROWS: "a query that stands for one value has several rows",
    ATTEMPTS: f"more than {BUDGET:,} attempts are open in a partition, and no condition ends them",
}


class StoppedError(Exception):
    """Stop of a program; the failure is in its array of failure numbers."""


class OutsideError(Exception):
    """Failure of an interpreted function."""
