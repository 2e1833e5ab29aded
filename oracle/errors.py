"""Refusals of the interpreter, and errors that stop a query."""

from __future__ import annotations

from millstream.errors import ExecutionError, NotExecutableError


class NotInterpreted(NotExecutableError):  # noqa: N818 (it is no fault of the query's)
    """A part of the language that the interpreter does not support; the message names it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the reference interpreter does not know {what}")
        self.what = what


class Failure(ExecutionError):  # noqa: N818 (the names below say what happened)
    """A run-time error on a tuple, as Spark raises it in ANSI mode."""


class Overflow(Failure):
    """A result that is not a value of its type."""


class DivisionByZero(Failure):
    """A quotient or remainder by zero."""


class NotConvertible(Failure):
    """A value that CAST cannot convert."""
