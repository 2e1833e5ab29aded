"""The programs of users' aggregates in stages: found, and compiled before the stages start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from millstream.program.program import Program

Compiling = Callable[[str, float | None], None]
"""A callback with the name of an aggregate before its compilation, and again with the seconds after it."""


def programs(parts: Any) -> list[Program]:
    """Return the distinct programs reachable from kernel factories."""
    return list({program.digest: program for program in every_program(parts)}.values())


def every_program(part: Any) -> Iterator[Program]:
    """Yield every program reachable from kernel factories."""
    match part:
        case Program():
            yield part
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
    """Compile programs that are not in the code cache, so that no micro-batch waits for it.

    Workers load them from the cache. Workers on machines with another disk compile them again.
    """
    from millstream.program.program_cache import cache_entry  # explain does without

    for program in wanted:
        place = cache_entry(program)
        if not program.is_compiled or (place is not None and place.is_compiled):
            continue
        compiling(program.name, None)
        began = time.perf_counter()
        # Numba is slow to load, and may not be needed.
        from millstream.kernels.udas.precompile_program import precompile_program

        precompile_program(program)
        compiling(program.name, time.perf_counter() - began)
