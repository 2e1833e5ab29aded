"""Functions that generated source may call, compiled for compiled programs and as they are for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

Function = Callable[..., Any]

COMPILED: dict[str, Function] = {}
PLAIN: dict[str, Function] = {}


def for_programs(function: Function) -> Function:
    """Known to programs of either kind; gives the compiled one."""
    PLAIN[function.__name__] = function
    compiled: Function = njit(cache=True)(function)
    COMPILED[function.__name__] = compiled
    return compiled


def for_plain_programs(function: Function) -> Function:
    """Where integers wrap around in compiled code and do not in Python: the version for Python."""
    PLAIN[function.__name__.removeprefix("plain_")] = function
    return function
