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
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core import caching

from millstream.code_cache import PACKAGE, code_directory, is_up_to_date, locked

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")

# Numba says nothing of their types.
_NUMBA_FILES: Any = caching.CompileResultCacheImpl
_NUMBA_CACHE: Any = caching.FunctionCache

_BROKEN = (OSError, EOFError, ValueError, LookupError, pickle.UnpicklingError)
"""Failures to read a file that is not as it was written."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function when it is first called; with ``cache``, only the first process does that."""

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        dispatcher: Any = numba.njit(**options)(function)
        directory = code_directory() if cache else None
        if directory is not None:
            dispatcher._cache = _Cache(function, directory)
        return dispatcher  # type: ignore[no-any-return]

    return compiled


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
