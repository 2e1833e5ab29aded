"""Compilation of the program of a UDA before there are tuples."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from millstream.kernels.core.buffers import NO_BYTES, NO_CODES, NO_INTEGERS, Array, frozen
from millstream.kernels.udas.compiled_machine import CompiledMachine
from millstream.program.program import Program
from millstream.program.program_cache import cache_entry

_prepared: set[str] = set()
"""Sources of programs that this process has in memory."""


def precompile_program(program: Program) -> None:
    """Compile a program, or load it if that has been done before.

    Its functions are called as kernels call them, on no tuples: then they are in memory, and in the cache.
    """
    if not program.is_compiled or program.source in _prepared:
        return
    place = cache_entry(program)
    alone = nullcontext() if place is None or place.is_compiled else place.compiling()
    with alone:
        machine = CompiledMachine(program)
        machine.reserve(1, 0)
        for function, arguments, more in _CALLS[program.mode]():
            machine.call(function, 0, arguments, {**machine.nothing(), **more})
    _prepared.add(program.source)


_Call = tuple[str, tuple[Any, ...], dict[str, Array]]


def _base() -> list[_Call]:
    return [("run", (NO_CODES.copy(),), {})]


def _window() -> list[_Call]:
    none = frozen(NO_INTEGERS)
    codes = NO_CODES.copy()
    return [
        ("run", (codes, none, none, np.int64(0), np.int64(1)), {}),
        ("sweep", (codes, none), {}),
    ]


def _tumble() -> list[_Call]:
    return [("run", (NO_CODES.copy(), np.int64(1), np.int64(1), np.int64(0)), {})]


def _pane() -> list[_Call]:
    return [("run", (NO_CODES.copy(), frozen(NO_BYTES)), {})]


def _active() -> list[_Call]:
    none = frozen(NO_INTEGERS)
    queue: dict[str, Array] = {
        name: np.zeros(16, dtype)
        for name, dtype in (("q_when", "i8"), ("q_code", "i4"), ("q_row", "i4"), ("q_id", "i8"))
    }
    return [("run", (NO_CODES.copy(), none, none, np.int64(0), np.zeros(2, np.int64)), queue)]


def _content() -> list[_Call]:
    none = frozen(NO_INTEGERS)
    return [("run", (none, none), {})]


def _pattern() -> list[_Call]:
    none, codes = frozen(NO_INTEGERS), NO_CODES.copy()
    more: dict[str, Array] = {name: np.zeros(16, np.int64) for name in ("o_origin", "o_number")}
    span = np.zeros(5, np.int64)
    return [
        ("run", (codes, none, frozen(NO_CODES), none, span), more),
        ("finish", (codes, span), more),
    ]


_CALLS: dict[str, Callable[[], list[_Call]]] = {
    "base": _base,
    "running": _base,
    "rows": lambda: _window()[:1],
    "range": _window,
    "again": lambda: _window()[:1],
    "tumble": _tumble,
    "pane": _pane,
    "active": _active,
    "content": _content,
    "whole": _content,
    "pattern": _pattern,
}
"""Calls of the functions of a program in each mode."""
