"""Numba's compiler, with compiled code in the directory of the present sources.

Functions may call each other across files: no code is found in that directory that was compiled from other
sources. Numba's own places for code have no such guarantee, so ``njit`` comes from here and not from Numba.
"""

from __future__ import annotations

import contextlib
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numba
from numba import types
from numba.core import caching
from numba.extending import overload_method

from millstream.code_cache import PACKAGE, code_directory, is_up_to_date, locked

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)

# Numba says nothing of their types.
_NUMBA_FILES: Any = caching.CompileResultCacheImpl
_NUMBA_CACHE: Any = caching.FunctionCache
_OVERLOAD_METHOD: Any = overload_method

_BROKEN = (OSError, EOFError, ValueError, LookupError, pickle.UnpicklingError)
"""Failures to read a file that is not as it was written."""


_BORROWING = {"_nrt": False}
"""Numba's option for functions that do not count references to arrays."""


def njit(
    *, cache: bool = False, allocates: bool = True, **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function when it is first called; with ``cache``, only the first process does that.

    A function that neither creates nor returns arrays may say so (``allocates=False``). Numba then does not
    count references to the arrays of its arguments, which in a loop can take longer than all else.
    """

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        chosen: dict[str, Any] = options if allocates else {**options, **_BORROWING}
        dispatcher: Any = numba.njit(**chosen)(function)
        directory = code_directory() if cache else None
        if directory is not None:
            dispatcher._cache = _Cache(function, directory)
        return dispatcher  # type: ignore[no-any-return]

    return compiled


_methods: dict[str, dict[type, Function]] = {}
"""Implementations of each method name by the class of the named tuple."""


def compiled_methods(cls: T) -> T:
    """Let compiled functions call the public methods of a NamedTuple class.

    Numba chooses the method by the type of the tuple when it compiles the caller, so one loop serves many
    classes and is still read from the cache, which never holds functions that get functions as arguments.
    Methods of one name have the same parameters in all classes, and none creates or returns arrays.
    """
    for name in dir(cls):
        method = getattr(cls, name)
        if isinstance(method, FunctionType) and not name.startswith("_"):
            if name not in _methods:
                _methods[name] = {}
                _overload(name, method)
            _methods[name][cls] = method
    return cls


def _overload(name: str, method: Function) -> None:
    def chosen(*arguments: Any) -> Function | None:
        return _methods[name].get(arguments[0].instance_class)

    # Numba reads the names of parameters from it; if strict, it would compare their annotations too.
    chosen.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    _OVERLOAD_METHOD(types.BaseNamedTuple, name, strict=False, jit_options=_BORROWING)(chosen)


class _Place:
    """The files of a function, as Numba asks for them."""

    def __init__(self, function: Function, directory: Path) -> None:
        source = Path(inspect.getfile(function)).resolve()
        inside = source.parent.relative_to(PACKAGE) if source.is_relative_to(PACKAGE) else Path("programs")
        self._path = directory / inside
        self._line = function.__code__.co_firstlineno
        self._py_file = str(source)

    def ensure_cache_path(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        """Return nothing in particular: the directory has the name of the sources."""
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(_NUMBA_FILES):  # type: ignore[misc]
    """Numba's form of compiled code, in a place of ours whatever the environment names for other code."""

    def __init__(self, directory: Path, function: Function) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function, directory)
        module = Path(self._locator._py_file).stem
        self._filename_base = self.get_filename_base(f"{module}.{function.__qualname__}", "")


class _Cache(_NUMBA_CACHE):  # type: ignore[misc]
    """Compiled code of a function: of each signature in a file, with an index of them.

    The compiler does without where the disk is full, or what is on it is broken.
    """

    def __init__(self, function: Function, directory: Path) -> None:
        self._impl_class = partial(_Files, directory)
        self._lock = directory / "saving.lock"
        super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except _BROKEN:
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write code unless the sources have changed since the digest was made, one process at a time.

        Two that write an index at once would give the same name to the code of two signatures.
        """
        if not is_up_to_date():
            return
        with contextlib.suppress(*_BROKEN), locked(self._lock):
            super().save_overload(sig, data)
