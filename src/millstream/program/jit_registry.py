"""Functions that generated source may call, compiled for compiled programs and as they are for the others."""

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
"""Nobody calls them from C."""

_WITHOUT_VALUE: Any = types.unliteral  # Numba says nothing of its types


def for_programs(function: Function) -> Function:
    """Known to programs of either kind; gives the compiled one.

    It neither makes arrays nor gives any back. Then Numba need not count who holds those that it is given,
    which in a loop takes longer than all else (four fifths of the time of an average with EXPIRE).
    """
    # Numba knows the last option, but its types do not.
    return _known(function, {**_OPTIONS, "_nrt": False})


def for_each_constant(function: Function) -> Function:
    """The same, compiled anew for each constant: dividing by one that is known is multiplying."""
    return _known(function, {**_OPTIONS, "_nrt": False}, alike=False)


def for_programs_with_new_arrays(function: Function) -> Function:
    """The same for those that make arrays."""
    return _known(function, _OPTIONS)


def _known(function: Function, options: dict[str, Any], *, alike: bool = True) -> Function:
    compiled: Function = njit(**options)(function)
    if alike:
        _take_all_integers_alike(compiled)
    PLAIN[function.__name__] = function
    COMPILED[function.__name__] = compiled
    return compiled


def _take_all_integers_alike(compiled: Any) -> None:
    """Else it would be compiled for each constant, a type of its own to Numba, and for short integers."""
    resolve = compiled.get_call_template

    def resolved(arguments: Any, named: Any) -> Any:
        return resolve([_alike(a) for a in arguments], {name: _alike(a) for name, a in named.items()})

    compiled.get_call_template = resolved


def _alike(type_: Any) -> Any:
    plain = _WITHOUT_VALUE(type_)
    return types.int64 if plain == types.int32 else plain


def for_plain_programs(function: Function) -> Function:
    """Where integers wrap around in compiled code and do not in Python: the version for Python."""
    PLAIN[function.__name__.removeprefix("plain_")] = function
    return function


COMPILED["StoppedError"] = PLAIN["StoppedError"] = StoppedError
