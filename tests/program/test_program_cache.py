"""Programs are compiled before there are tuples, once for a machine, whatever becomes of the cache."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.code_cache import code_directory
from millstream.codegen.udas.uda_compiler import compile_uda
from millstream.kernels.aggregates.content_aggregates import Elements
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.specs import OverUdaSpec, UdaSpec
from millstream.kernels.udas import precompile_program
from millstream.kernels.udas.active_uda import ActiveUda
from millstream.kernels.udas.over_uda import OverUda
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.program import jit_loader, program_cache
from millstream.program.program import Program
from millstream.stage.program_discovery import compile_programs, programs
from millstream.syntax import parse_script
from millstream.types import DOUBLE, STRING

BODY = """
CREATE WINDOW AGGREGATE latest(v DOUBLE, w STRING) : (v DOUBLE, w STRING, n BIGINT) {
    TABLE inwindow(x DOUBLE, y STRING);
    TABLE seen(y STRING, n INT);
    INITIALIZE : { INSERT INTO seen VALUES (w, 1); }
    ITERATE : {
        INSERT INTO seen VALUES (w, 0) WHERE w NOT IN (SELECT y FROM seen);
        UPDATE seen SET n = n + 1 WHERE y = w;
        INSERT INTO RETURN SELECT v, w, n FROM seen WHERE y = w;
    }
    EXPIRE : { DELETE FROM seen WHERE n < 0; }
};
"""


LITTLE = """
CREATE WINDOW AGGREGATE latest(v DOUBLE, w STRING) : DOUBLE {
    TABLE inwindow(x DOUBLE, y STRING);
    INITIALIZE : { INSERT INTO RETURN VALUES (v); }
    ITERATE : { INSERT INTO RETURN VALUES (v + 1); }
    EXPIRE : { }
};
"""


def program(mode: str, text: str = LITTLE) -> Program:
    catalog = Catalog()
    for statement in parse_script(text):
        analyse(statement, catalog)
    entry = catalog.aggregate("latest", window=True)
    assert entry is not None
    return compile_uda(checked_body(entry, [DOUBLE, STRING], catalog), mode)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(precompile_program, "_prepared", set())
    jit_loader._compiled.cache_clear()
    directory = code_directory()
    assert directory is not None
    return directory / "programs"


def tuples(*, keyed: bool, nulls: bool, is_float: bool = False) -> Tuples:
    numbers = np.arange(40)
    mask = numbers % 3 == 0 if nulls else None
    columns = {
        "v": pa.array(numbers / 2, mask=mask),
        "w": pa.array([str(n % 5) for n in numbers], mask=mask),
    }
    if keyed:
        columns[KEY] = pa.array(numbers % 4, mask=mask)
    times = numbers.astype(np.float64 if is_float else np.int64)
    return Tuples(pa.table(columns), times, np.zeros(40, np.int32), numbers)


def kernel(mode: str) -> Any:
    spec = UdaSpec(program(mode, BODY), ("v", "w"), ("a", "b", "c"))
    match mode:
        case "base":
            return BaseAggregate([spec])
        case "active":
            return ActiveUda(OverUdaSpec(spec, range=3))
        case "running":
            return OverUda([OverUdaSpec(spec)])
        case _:
            return OverUda([OverUdaSpec(spec, **{mode: 3})])


def silent(name: str, seconds: float | None) -> None:
    pass


def test_a_program_is_compiled_once_and_people_are_told(cache: Path) -> None:
    told: list[tuple[str, bool]] = []

    def tell(name: str, seconds: float | None) -> None:
        told.append((name, seconds is None))

    wanted = [program("rows"), program("rows")]
    compile_programs(programs(wanted), tell)
    assert told == [("latest", True), ("latest", False)]
    compile_programs(programs(wanted), tell)
    assert len(told) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["base", "running", "rows", "range", "active"])
def test_nothing_is_compiled_when_tuples_come(cache: Path, mode: str) -> None:
    compile_programs([program(mode, BODY)], silent)
    jit_loader._compiled.cache_clear()
    precompile_program._prepared.clear()
    for keyed, nulls, is_float in product((False, True), repeat=3):
        running = kernel(mode)
        batch = tuples(keyed=keyed, nulls=nulls, is_float=is_float)
        for frontier in (Frontier(20, 0), Frontier(60, 0), END):
            running.process(batch, frontier)
            change = running.snapshot()
            again = kernel(mode)
            again.restore(change.meta, change.added)
            batch = batch.take(np.zeros(0, np.int64))
    for function in jit_loader.functions(program(mode, BODY)).values():
        assert isinstance(function, jit_loader._Compiled)
        assert len(function.compiled.signatures) <= 1
        assert not function.compiled.stats.cache_misses


def test_nothing_is_compiled_when_windows_end(cache: Path) -> None:
    from millstream.kernels.core.column_codec import Column
    from millstream.kernels.udas.content_uda import ContentUda

    compile_programs([program("content")], silent)
    jit_loader._compiled.cache_clear()
    precompile_program._prepared.clear()
    batch = tuples(keyed=False, nulls=True)
    columns = [Column(pa.float64()), Column(pa.string())]
    encoded = [c.encode(batch.columns[n]) for c, n in zip(columns, ("v", "w"), strict=True)]
    windows = np.arange(40) // 10
    ContentUda(program("content"))(
        Elements(windows, 4, columns, [e[0] for e in encoded], [e[1] for e in encoded])
    )
    run = jit_loader.functions(program("content"))["run"]
    assert isinstance(run, jit_loader._Compiled)
    assert len(run.compiled.signatures) == 1
    assert not run.compiled.stats.cache_misses


def test_where_nothing_can_be_written_it_is_compiled_all_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_cache, "code_directory", lambda: None)
    compile_programs([program("rows")], silent)
    assert not cache.exists()


def test_a_full_disk_stops_nobody(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import IndexDataCacheFile

    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    precompile_program.precompile_program(program("rows"))
    monkeypatch.setattr(program_cache.tempfile, "mkstemp", full)
    jit_loader._compiled.cache_clear()
    precompile_program._prepared.clear()
    precompile_program.precompile_program(program("rows", LITTLE.replace("+ 1", "+ 2")))


def test_broken_files_are_not_believed(cache: Path) -> None:
    wanted = program("rows")
    precompile_program.precompile_program(wanted)
    for path in cache.glob("*.nbi"):
        path.write_bytes(b"")
    jit_loader._compiled.cache_clear()
    precompile_program._prepared.clear()
    precompile_program.precompile_program(wanted)


@pytest.mark.slow
def test_several_processes_may_begin_at_once(cache: Path) -> None:
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "from tests.program.test_program_cache import program\n"
        "from millstream.kernels.udas.precompile_program import precompile_program\n"
        "from millstream.program.jit_loader import functions\n"
        "precompile_program(program('rows'))\n"
        "print(sum(sum(f.compiled.stats.cache_misses.values()) for f in functions(program('rows')).values()))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    compiled_by = [int(process.communicate()[0]) for process in running]
    assert sorted(compiled_by) == [0, 0, 1]
