"""Registry of functions that generated source may call, compiled and interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from millstream.jit import njit
from millstream.program.failures import StoppedError

Function = Callable[..., Any]

COMPILED: dict[str, Function] = {}
PLAIN: dict[str, Function] = {}


_OPTIONS: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
"""Compiler options: the functions are never called from C."""

_WITHOUT_VALUE: Any = types.unliteral  # Numba says nothing of its types


def for_programs(function: Function) -> Function:
    """Register a function for programs of either kind; return the compiled one.

    It neither creates nor returns arrays. Counting references to its arguments would take four fifths of the
    time of an average with EXPIRE.
    """
    return _known(function, {**_OPTIONS, "allocates": False})


def for_each_constant(function: Function) -> Function:
    """Register a function that is compiled for each constant: dividing by one becomes multiplying."""
    return _known(function, {**_OPTIONS, "allocates": False}, alike=False)


def for_programs_with_new_arrays(function: Function) -> Function:
    """Register a function that creates arrays."""
    return _known(function, _OPTIONS)


def _known(function: Function, options: dict[str, Any], *, alike: bool = True) -> Function:
    compiled: Function = njit(**options)(function)
    if alike:
        _take_all_integers_alike(compiled)
    PLAIN[function.__name__] = function
    COMPILED[function.__name__] = compiled
    return compiled


def _take_all_integers_alike(compiled: Any) -> None:
    """Avoid compilation for each constant, which has a type of its own in Numba, and for short integers."""
    resolve = compiled.get_call_template

    def resolved(arguments: Any, named: Any) -> Any:
        return resolve([_alike(a) for a in arguments], {name: _alike(a) for name, a in named.items()})

    compiled.get_call_template = resolved


def _alike(type_: Any) -> Any:
    plain = _WITHOUT_VALUE(type_)
    return types.int64 if plain == types.int32 else plain


def for_plain_programs(function: Function) -> Function:
    """Register the interpreted version of a function whose integers wrap around when compiled."""
    PLAIN[function.__name__.removeprefix("plain_")] = function
    return function


COMPILED["StoppedError"] = PLAIN["StoppedError"] = StoppedError
