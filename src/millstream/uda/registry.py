"""Functions that generated source may call, compiled for compiled programs and as they are for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from millstream.uda.failures import StoppedError

Function = Callable[..., Any]

COMPILED: dict[str, Function] = {}
PLAIN: dict[str, Function] = {}


_OPTIONS: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
"""Nobody calls them from C."""


def for_programs(function: Function) -> Function:
    """Known to programs of either kind; gives the compiled one.

    It neither makes arrays nor gives any back. Then Numba need not count who holds those that it is given,
    which in a loop takes longer than all else (four fifths of the time of an average with EXPIRE).
    """
    options = {**_OPTIONS, "_nrt": False}  # known to Numba, but not to its types
    return _known(function, njit(**options)(function))


def for_programs_with_new_arrays(function: Function) -> Function:
    """The same for those that make arrays."""
    return _known(function, njit(**_OPTIONS)(function))


def _known(function: Function, compiled: Function) -> Function:
    PLAIN[function.__name__] = function
    COMPILED[function.__name__] = compiled
    return compiled


def for_plain_programs(function: Function) -> Function:
    """Where integers wrap around in compiled code and do not in Python: the version for Python."""
    PLAIN[function.__name__.removeprefix("plain_")] = function
    return function


COMPILED["StoppedError"] = PLAIN["StoppedError"] = StoppedError
