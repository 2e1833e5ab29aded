"""The programs of users' aggregates in stages: found, and compiled before the stages start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

from millstream.program.program import Program
from millstream.program.program_cache import cache_entry

Compiling = Callable[[str, float | None], None]
"""Is told the name of an aggregate when its compilation begins, and again, with the seconds, when it ends."""


def programs(parts: Any) -> list[Program]:
    """The different programs anywhere in what kernels are made of."""
    return list({program.digest: program for program in every_program(parts)}.values())


def every_program(part: Any) -> Iterator[Program]:
    """All of them."""
    match part:
        case Program():
            yield part
        case partial():
            yield from every_program((part.args, part.keywords))
        case Mapping():
            yield from every_program(tuple(part.values()))
        case tuple() | list():
            for element in part:
                yield from every_program(element)
        case _ if is_dataclass(part):
            # Aggregates that share the program of their window do not run their own.
            yield from every_program(
                [getattr(part, field.name) for field in fields(part) if field.name != "members"]
            )


def compile_programs(wanted: Iterable[Program], compiling: Compiling = lambda name, seconds: None) -> None:
    """Compile what has not been compiled before on this machine, so that no micro-batch has to wait for it.

    Workers find it in the cache. On machines with another disk they compile it themselves.
    """
    for program in wanted:
        place = cache_entry(program)
        if not program.is_compiled or (place is not None and place.is_compiled):
            continue
        compiling(program.name, None)
        began = time.perf_counter()
        # Numba takes a while to load, and whether it is needed can be told without it.
        from millstream.kernels.udas.precompile_program import precompile_program

        precompile_program(program)
        compiling(program.name, time.perf_counter() - began)
