"""How long it takes to compile the aggregates of the library, cold and from the cache.

    python -m benchmarks.library_compile

It is done twice, in two processes that share nothing but the cache on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator


def programs() -> Iterator[tuple[str, object]]:
    """Every version of every aggregate as queries mostly call it, under a name that says so."""
    from millstream.analysis.bodies import bodies_of
    from millstream.analysis.shipped import shipped
    from millstream.catalog import Catalog
    from millstream.library import shelf
    from millstream.types import STRING
    from millstream.uda.compiler import BASE, CONTENT, ROWS, compiled

    catalog = Catalog()
    catalog.ship(shipped, shelf.names)
    for name in shelf.names():
        entries = shipped(name)
        types = [p.type if p.type.is_known else STRING for p in entries[0].parameters]
        bodies = bodies_of(name, types, catalog)
        if bodies.base is not None:
            blocking = any(entry.blocking for entry in entries if not entry.window)
            yield name, compiled(bodies.base, CONTENT if blocking else BASE)
        if bodies.window is not None:
            yield f"{name} OVER", compiled(bodies.window, ROWS)


def measure() -> dict[str, float]:
    """Seconds of one core until each program has run on nothing."""
    import numpy as np
    import pyarrow as pa

    from millstream.kernels.arrays import NO_CODES, NO_INTEGERS, frozen
    from millstream.kernels.typed import arrow_type
    from millstream.kernels.user_machine import Machine
    from millstream.uda.program import Program

    found = {}
    every = list(programs())
    for name, program in every:
        assert isinstance(program, Program)
        if not program.is_compiled:
            continue
        started = time.process_time()
        machine = Machine(program)
        machine.reserve(1, 1)
        names = [f"a{i}" for i in range(len(program.parameters))]
        table = pa.table(
            {n: pa.array([], arrow_type(p.type)) for n, p in zip(names, program.parameters, strict=True)}
        )
        nothing = frozen(NO_INTEGERS)
        arguments: tuple[object, ...] = (NO_CODES,)
        if program.mode == "content":
            arguments = nothing, nothing
        elif program.mode == "rows":
            arguments = NO_CODES, nothing, nothing, np.int64(1), np.int64(1)
        machine.call("run", 0, arguments, machine.encoded(table, names))
        found[name] = time.process_time() - started
    return found


def main() -> None:
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measure()))
        return
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "XDG_CACHE_HOME": directory}
        command = [sys.executable, "-m", "benchmarks.library_compile", "measure"]
        cold, cached = (
            json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
            for _ in range(2)
        )
    print(f"{'aggregate':<24}{'cold':>8}{'cached':>8}   seconds")
    for name in sorted(cold, key=cold.__getitem__, reverse=True):
        print(f"{name:<24}{cold[name]:>8.2f}{cached[name]:>8.2f}")


if __name__ == "__main__":
    main()
