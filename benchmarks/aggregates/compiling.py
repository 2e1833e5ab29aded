"""Compilation time of every aggregate of the library, cold and from the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.experiments.section import Claim, Figures, Section, Size
from millstream.analysis.definitions.library_aggregates import library_aggregate
from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.catalog import Catalog
from millstream.codegen.udas import uda_compiler
from millstream.ir.typed_nodes import Body
from millstream.library import bundled_aggregates
from millstream.program.program import Program
from millstream.types import STRING

ROWS, REPEATS = 0, 1
COLD, CACHED = 10, 0.5
ABOUT = """\
Seconds of a core until the program of each version of each aggregate of the library is ready to run, in a
process that finds empty caches, and then in another that finds what the first one left. The first of each
also loads Numba and compiles the helpers of all programs; so the slowest one is compiled once more as the
very first of a machine. Aggregates that are not compiled are left out."""


def measure(size: Size, directory: Path) -> Section:
    with tempfile.TemporaryDirectory(prefix="compiling-") as cache:
        cold, cached = _in_a_process(cache), _in_a_process(cache)
    names = sorted(cold, key=cold.__getitem__, reverse=True)
    with tempfile.TemporaryDirectory(prefix="compiling-") as cache:
        first = _in_a_process(cache, names[0])[names[0]]
    table = [["aggregate", "cold, s", "from the cache, s"]]
    table += [[name, f"{cold[name]:.2f}", f"{cached[name]:.2f}"] for name in names]
    slowest = max(cached, key=cached.__getitem__)
    claims = [
        Claim(f"cold, the largest takes less than {COLD} s", f"{cold[names[0]]:.1f} s, {names[0]}",
              cold[names[0]] < COLD),
        Claim(f"as the first program of a machine, less than {COLD} s too", f"{first:.1f} s, {names[0]}",
              first < COLD),
        Claim(f"from the cache, less than {CACHED} s", f"{cached[slowest]:.2f} s, {slowest}",
              cached[slowest] < CACHED),
    ]  # fmt: skip
    return Section("Compiling the library", ABOUT, claims, [Figures("", table)])


def _in_a_process(cache: str, *names: str) -> dict[str, float]:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-m", "benchmarks.aggregates.compiling", *names]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def seconds(names: Sequence[str]) -> dict[str, float]:
    """Return the seconds for the programs of these names, or for all."""
    from millstream.kernels.udas.precompile_program import precompile_program

    found = {}
    for name, program in list(_programs()):
        if program.is_compiled and (not names or name in names):
            started = time.process_time()
            precompile_program(program)
            found[name] = time.process_time() - started
    return found


def _programs() -> Iterator[tuple[str, Program]]:
    """Every version of every aggregate as queries mostly call it, under a name that says so."""
    catalog = Catalog()
    catalog.ship(library_aggregate, bundled_aggregates.names)
    for name in bundled_aggregates.names():
        entries = library_aggregate(name)
        types = [p.type if p.type.is_known else STRING for p in entries[0].parameters]
        bodies = bodies_of(name, types, catalog)
        if isinstance(bodies.base, Body):
            blocking = any(entry.blocking for entry in entries if not entry.window)
            mode = uda_compiler.CONTENT if blocking else uda_compiler.BASE
            yield name, uda_compiler.compile_uda(bodies.base, mode)
        if isinstance(bodies.window, Body):
            yield f"{name} OVER", uda_compiler.compile_uda(bodies.window, uda_compiler.ROWS)


if __name__ == "__main__":
    print(json.dumps(seconds(sys.argv[1:])))
