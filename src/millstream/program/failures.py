"""What can go wrong while a program runs, as numbers that compiled code can leave behind."""

from __future__ import annotations

OVERFLOW, DIVISION, CONVERSION, ROWS, OUTSIDE, ATTEMPTS = 1, 2, 3, 4, 5, 6

BUDGET = 10_000
"""So many attempts of a pattern may be open in a partition."""

MESSAGES = {
    OVERFLOW: "a value does not fit its type",
    DIVISION: "division by zero",
    CONVERSION: "a value cannot be converted",
    ROWS: "a query that stands for one value has several rows",
    ATTEMPTS: f"more than {BUDGET:,} attempts are open in a partition, and no condition ends them",
}


class UnsupportedError(Exception):
    """Something that a body may say cannot be compiled yet; the message names it."""


class StoppedError(Exception):
    """A program cannot go on; what is wrong stands where it leaves such numbers."""


class OutsideError(Exception):
    """A function that is not compiled could not do its work."""
