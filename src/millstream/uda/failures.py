"""What can go wrong while a program runs, as numbers that compiled code can leave behind."""

from __future__ import annotations

OVERFLOW, DIVISION, CONVERSION, ROWS, OUTSIDE = 1, 2, 3, 4, 5

MESSAGES = {
    OVERFLOW: "a value does not fit its type",
    DIVISION: "division by zero",
    CONVERSION: "a value cannot be converted",
    ROWS: "a query that stands for one value has several rows",
}


class UnsupportedError(Exception):
    """Something that a body may say cannot be compiled yet; the message names it."""


class OutsideError(Exception):
    """A function that is not compiled could not do its work."""
