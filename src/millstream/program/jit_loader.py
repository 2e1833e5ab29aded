"""Loader of programs: compiled, with compiled code cached on disk, or interpreted."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from millstream.jit import njit
from millstream.program import (
    jit_registry,
    raw_arrays,
    row_lists,
    row_sorting,
    row_treap,
    spark_arithmetic,
    spark_hash,
)
from millstream.program.program import Program
from millstream.program.program_cache import CacheEntry, cache_entry, entry_of_text, text_of

Functions = Mapping[str, Callable[..., Any]]
"""Functions of a program, which take their arrays as ``ProgramArguments``."""

_OPTIONS: dict[str, Any] = {"no_cfunc_wrapper": True}
"""Compiler options: programs are called from Python only."""

HELPERS = (row_sorting, spark_hash, spark_arithmetic, raw_arrays, row_lists, row_treap)
"""Modules that register helpers of programs when they are imported."""


COMPILES: ContextVar[bool] = ContextVar("compiles", default=True)
"""False where programs that are not in the cache are run as Python runs them: compiling takes seconds."""


def functions(program: Program, outside: Mapping[str, Callable[..., Any]] | None = None) -> Functions:
    """Return the functions of a program; ``outside`` are the interpreted functions that it calls."""
    if program.is_compiled and (COMPILES.get() or _is_cached(program)):
        return _compiled(program.name, program.source)
    return plain_functions(program, outside or {})


def _is_cached(program: Program) -> bool:
    entry = cache_entry(program)
    return entry is not None and entry.is_compiled


def plain_functions(program: Program, outside: Mapping[str, Callable[..., Any]]) -> Functions:
    """Return the functions of a program as Python runs them."""
    names: dict[str, Any] = {**jit_registry.PLAIN, **outside, "np": np}
    exec(compile(program.source, f"<aggregate {program.name}>", "exec"), names)
    return {name: _without_warnings(names[name]) for name in _defined(program.source)}


def _without_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    def quiet(*arguments: Any) -> Any:
        *others, handed = arguments
        with np.errstate(all="ignore"):  # integers wrap around, as they do in compiled code
            return function(*others, handed.themselves())

    return quiet


@lru_cache(maxsize=256)
def _compiled(name: str, source: str) -> Functions:
    text = text_of(name, source)
    place = entry_of_text(text)
    module: ModuleType | None = None
    if place is not None:
        try:
            place.write(text)
            module = _imported(place)
        except OSError:
            # The disk is full, for one. It will be compiled all the same.
            module = None
    is_kept = module is not None
    if module is None:
        module = ModuleType("millstream_aggregate")
        exec(compile(text, f"<aggregate {name}>", "exec"), vars(module))
    return {name: _Compiled(getattr(module, name), kept=is_kept) for name in _defined(source)}


def _defined(source: str) -> list[str]:
    """Return the functions of a program that are called from outside."""
    lines = ["", *source.splitlines()]
    return [
        line[4 : line.index("(")]
        for before, line in pairwise(lines)
        if line.startswith("def ") and before != "@apart"
    ]


def _imported(place: CacheEntry) -> ModuleType:
    """Import the source from its file: Numba's cache works only for functions in files."""
    name = f"millstream_{place.path.stem}"
    spec = importlib.util.spec_from_file_location(name, place.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _Compiled:
    """A compiled function, cached if there is a directory for it."""

    def __init__(self, function: Callable[..., Any], *, kept: bool) -> None:
        self.compiled: Any = njit(cache=kept, **_OPTIONS)(function)

    def __call__(self, *arguments: Any) -> Any:
        *others, handed = arguments
        return self.compiled(*others, handed.addresses())
