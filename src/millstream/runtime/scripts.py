"""Running a script from beginning to end: what ``millstream run`` does."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from millstream.analysis.statements import Definition, InsertQuery, RunQuery
from millstream.catalog import Catalog
from millstream.catalog.entries import Sink, Stream
from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.formats import write, write_file
from millstream.runtime.mill import Mill
from millstream.runtime.query import RunningQuery
from millstream.runtime.starting import silently
from millstream.stage.programs import Compiling

Display = Callable[[Sequence[RunningQuery]], AbstractContextManager[object]]
"""Shows how queries are doing while the context is open."""
Say = Callable[[str], None]
"""Tells the person something that is no result."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class RunOptions:
    """How a script is to be run."""

    format: str = "table"
    out: Path | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Path | None = None


class ScriptRun:
    """One run of a script.

    If all input ends, results are given out whole and in order once everything has ended. Otherwise rows are
    given out as they come, until somebody stops the run.
    """

    def __init__(
        self,
        options: RunOptions,
        *,
        say: Say,
        display: Display | None = None,
        compiling: Compiling = silently,
        stdout: BinaryIO | None = None,
    ) -> None:
        self._options = options
        self._say = say
        self._display = display or (lambda queries: nullcontext())
        self._compiling = compiling
        self._stdout = stdout or sys.stdout.buffer
        self._stopping = threading.Event()
        self._waiting = False
        self._broken: BrokenPipeError | None = None

    def run(self, text: str, name: str) -> bool:
        """Run the script; False if somebody stopped it before the end of its input.

        Input without an end is meant to be stopped.
        """
        options = self._options
        with Mill(
            master=options.master,
            settings=options.settings,
            checkpoint=options.checkpoint,
            compiling=self._compiling,
            views_at_end=True,
        ) as mill:
            statements = mill.analyse(text, name)
            meanings = [statement.meaning for statement in statements]
            asked = [m.query for m in meanings if isinstance(m, RunQuery | InsertQuery)]
            asked += [query for m in meanings if isinstance(m, Definition) for _, query in m.views]
            bounded = all(query.facts is None or query.facts.bounded for query in asked)
            self._prepare_output()
            if self._stopping.is_set():
                return not bounded
            outcomes = mill.perform_all(statements, self._collects)
            queries = [outcome for outcome in outcomes if isinstance(outcome, RunningQuery)]
            for outcome in outcomes:
                if isinstance(outcome, str):
                    self._say(outcome)
            self._waiting = True
            with self._display(queries):
                if bounded or self._options.out is not None:
                    ended = self._wait(queries, mill)
                else:
                    ended = self._follow(queries, mill)
            self._report(queries, mill.catalog)
            for table, problem in mill.stale_tables.items():
                self._say(f"warning: the last good version of table {table} was used: {problem.message}")
            if ended or not bounded:
                self._give_out(queries, whole=bounded)
            return ended or not bounded

    def stop(self) -> None:
        """End the run; called from a signal handler. Asked twice, it ends at once.

        While Spark starts it has to be waited for, or its JVM would be left behind.
        """
        if self._stopping.is_set():
            raise KeyboardInterrupt
        if not self._waiting:
            self._say("stopping, as soon as Spark has started")
        self._stopping.set()

    # ------------------------------------------------------------ waiting

    def _wait(self, queries: Sequence[RunningQuery], mill: Mill) -> bool:
        """Until all queries have ended (True) or somebody has stopped them; the first error ends them all."""
        try:
            while any(query.is_active for query in queries):
                if self._stopping.is_set():
                    return False
                for query in queries:
                    if not query.is_active:
                        query.wait()
                time.sleep(_POLL_SECONDS)
            for query in queries:
                query.wait()
            return True
        finally:
            # First those that others wait for.
            mill.stop_views()
            for query in queries:
                query.stop()

    def _follow(self, queries: Sequence[RunningQuery], mill: Mill) -> bool:
        """Give out rows as they come."""
        shown = [query for query in queries if query.log is not None]
        turn = threading.Lock()

        def follow(query: RunningQuery) -> None:
            assert query.log is not None
            tables = query.log.follow(forget=True)
            if len(shown) == 1:
                self._write(None, tables, query.schema)
                return
            for table in tables:
                with turn:
                    self._write(query.name, [table], query.schema)

        def run(query: RunningQuery) -> None:
            try:
                follow(query)
            except BrokenPipeError as error:
                # Whoever read our output has enough of it, as `head` does.
                self._broken = error
                self._stopping.set()
            except MillstreamError:
                # An error of the query is reported by whoever waits for it.
                return

        threads = [threading.Thread(target=run, args=(q,), daemon=True) for q in shown]
        for thread in threads:
            thread.start()
        ended = self._wait(queries, mill)
        for thread in threads:
            thread.join(5)
        if self._broken is not None:
            raise self._broken
        return ended

    # ------------------------------------------------------------ results

    def _collects(self, sink: Sink) -> bool:
        return self._options.out is not None

    def _prepare_output(self) -> None:
        if self._options.out is None:
            return
        try:
            self._options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExecutionError(
                f"cannot make the directory '{self._options.out}': {error.strerror or error}",
                hint="choose another one with --out",
            ) from None

    def _give_out(self, queries: Sequence[RunningQuery], *, whole: bool) -> None:
        named: dict[str, list[RunningQuery]] = {}
        for query in queries:
            if query.log is not None:
                named.setdefault(query.name, []).append(query)
        if self._options.out is not None:
            form = "json" if self._options.format == "json" else "csv"
            for name, group in named.items():
                write_file(_rows(group), _schema(group), form, self._options.out / f"{name}.{form}")
        elif whole:
            for name, group in named.items():
                self._write(name if len(named) > 1 else None, _rows(group), _schema(group))

    def _write(self, name: str | None, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
        if name is not None:
            self._stdout.write(f"-- {name}\n".encode())
        write(tables, schema, self._options.format, self._stdout)

    def _report(self, queries: Sequence[RunningQuery], catalog: Catalog) -> None:
        """What was left out must be known, whoever looks."""
        for stream, count in _most(query.progress.bad for query in queries).items():
            entry = catalog.relation(stream)
            kept = isinstance(entry, Stream) and entry.bad_into is not None
            advice = "" if kept else " (BAD INTO makes a stream of them)"
            records = "record" if count == 1 else "records"
            self._say(f"warning: {count} bad {records} in stream {stream}{advice}")
        for stream, count in _most(query.progress.late for query in queries).items():
            entry = catalog.relation(stream)
            if isinstance(entry, Stream) and (entry.late_into or entry.late_drop):
                advice = f" (now in {entry.late_into})" if entry.late_into else " (dropped)"
            else:
                advice = " (SLACK allows some disorder, LATE INTO makes a stream of them)"
            tuples = "tuple" if count == 1 else "tuples"
            self._say(f"warning: {count} late {tuples} in stream {stream}{advice}")


def _most(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """By stream, the largest count of any query: they all read the same tuples."""
    most: dict[str, int] = {}
    for by_stream in counts:
        for stream, count in by_stream.items():
            most[stream] = max(most.get(stream, 0), count)
    return most


def _rows(queries: Sequence[RunningQuery]) -> Iterator[pa.Table]:
    return itertools.chain.from_iterable(query.log.read() for query in queries if query.log is not None)


def _schema(queries: Sequence[RunningQuery]) -> pa.Schema:
    """The columns of a result; queries that share a name, as those into one sink, must agree."""
    schemas = [query.schema for query in queries]
    for schema in schemas[1:]:
        if schema != schemas[0]:
            raise ExecutionError(f"the queries into '{queries[0].name}' have different columns")
    return schemas[0]
