"""Programs as functions: compiled, with what was compiled kept on disk, or as they are written."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
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
from millstream.program.program_cache import CacheEntry, entry_of_text, text_of

Functions = Mapping[str, Callable[..., Any]]
"""They take their arrays as ``ProgramArguments``."""

_OPTIONS: dict[str, Any] = {"no_cfunc_wrapper": True}
"""Programs are called from Python only."""

HELPERS = (row_sorting, spark_hash, spark_arithmetic, raw_arrays, row_lists, row_treap)
"""Modules that enter what programs call into the registry when they are imported."""


def functions(program: Program, outside: Mapping[str, Callable[..., Any]] | None = None) -> Functions:
    """The functions of a program; ``outside`` are those that it calls and that are not compiled."""
    if program.is_compiled:
        return _compiled(program.name, program.source)
    return plain_functions(program, outside or {})


def plain_functions(program: Program, outside: Mapping[str, Callable[..., Any]]) -> Functions:
    """The functions of a program as Python runs them."""
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
    """The functions of a program that are called from outside."""
    lines = ["", *source.splitlines()]
    return [
        line[4 : line.index("(")]
        for before, line in pairwise(lines)
        if line.startswith("def ") and before != "@apart"
    ]


def _imported(place: CacheEntry) -> ModuleType:
    """The source from its file: only for what stands in a file can Numba find what it compiled before."""
    name = f"millstream_{place.path.stem}"
    spec = importlib.util.spec_from_file_location(name, place.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _Compiled:
    """A compiled function, kept if there is a place for it."""

    def __init__(self, function: Callable[..., Any], *, kept: bool) -> None:
        self.compiled: Any = njit(cache=kept, **_OPTIONS)(function)

    def __call__(self, *arguments: Any) -> Any:
        *others, handed = arguments
        return self.compiled(*others, handed.addresses())
