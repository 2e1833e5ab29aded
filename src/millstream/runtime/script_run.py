"""Run of a script from beginning to end, as ``millstream run`` does it."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError

from millstream.analysis.definitions.statement_analyzer import Definition, InsertQuery, RunQuery
from millstream.analysis.notes import note_on_setting, notes_of
from millstream.catalog.entries import Sink
from millstream.errors import ExecutionError, MillstreamError
from millstream.runtime.connection import Mill
from millstream.runtime.queries.query_starter import ignore_message
from millstream.runtime.queries.rejection_warnings import RejectionWarnings
from millstream.runtime.queries.running_query import RunningQuery
from millstream.runtime.results.output_formats import ByteSink, encode, write, write_file
from millstream.stage.program_discovery import Compiling

Display = Callable[[Sequence[RunningQuery]], AbstractContextManager[object]]
"""Shows the progress of queries while the context is open."""
Say = Callable[[str], None]
"""Shows a message that is no result."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class RunOptions:
    """Options of a run."""

    format: str = "table"
    out: Path | None = None
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Path | None = None


class RunEnd(Enum):
    """End of a run that did not fail."""

    COMPLETE = "complete"
    """All input was read, or the run was stopped and its input is unbounded."""
    STOPPED = "stopped"
    """The run was stopped before the end of its input."""
    ALL_BAD = "all bad"
    """No record of a stream could be read."""


class Interrupted(BaseException):
    """Signal to end the run at once. py4j would report a KeyboardInterrupt on standard error."""


class ScriptRun:
    """One run of a script.

    If all input is bounded, results are written whole and in order once everything has ended. Otherwise rows
    are written as they come, until the run is stopped.
    """

    def __init__(
        self,
        options: RunOptions,
        *,
        say: Say,
        display: Display | None = None,
        starting: Callable[[], AbstractContextManager[object]] = nullcontext,
        compiling: Compiling = ignore_message,
        stdout: ByteSink | None = None,
    ) -> None:
        self._options = options
        self._say = say
        self._display = display or (lambda queries: nullcontext())
        self._starting = starting
        self._compiling = compiling
        self._stdout = stdout or sys.stdout.buffer
        self._stopping = threading.Event()
        self._waiting = False
        self._bounded = True
        self._broken: BrokenPipeError | None = None
        self._reported: set[str] = set()
        """Streams of which a bad record was shown during the run."""
        self._corrupt_files = 0

    def run(self, text: str, name: str) -> RunEnd:
        """Run the script to the end of its input, or until it is stopped."""
        options = self._options
        with (
            Mill(
                master=options.master,
                settings=options.settings,
                checkpoint=options.checkpoint,
                compiling=self._compiling,
                views_at_end=True,
                warns=False,
            ) as mill,
            self._at_once(mill),
        ):
            for setting in filter(None, map(note_on_setting, options.settings)):
                self._say(f"warning: {setting}")
            statements = mill.analyse(text, name)
            for note in itertools.chain.from_iterable(map(notes_of, statements)):
                self._say(f"warning: {note.place}: {note}")
            meanings = [statement.meaning for statement in statements]
            queries_of_script = [m.query for m in meanings if isinstance(m, RunQuery | InsertQuery)]
            queries_of_script += [
                query for m in meanings if isinstance(m, Definition) for _, query in m.maintained
            ]
            self._bounded = bounded = all(
                query.facts is None or query.facts.bounded for query in queries_of_script
            )
            self._prepare_output()
            with self._starting():
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
            self._report_corrupt_files(mill)
            rejects = _rejects(queries, mill)
            self._report(rejects)
            for table, problem in mill.stale_tables.items():
                self._say(f"warning: the last good version of table {table} was used: {problem.message}")
            for warning in mill.port_warnings:
                self._say(f"warning: {warning}")
            if ended or not bounded:
                self._give_out(queries, whole=bounded)
            if bounded and not ended:
                return RunEnd.STOPPED
            return RunEnd.ALL_BAD if rejects.all_bad() else RunEnd.COMPLETE
        # Interrupted while it started.
        for warning in mill.dropped_lines:  # type: ignore[unreachable]
            self._say(f"warning: {warning}")
        return RunEnd.STOPPED if self._bounded else RunEnd.COMPLETE

    @contextmanager
    def _at_once(self, mill: Mill) -> Iterator[None]:
        """End everything when the run is interrupted; a run that was still starting has not failed."""
        try:
            yield
        except Interrupted:
            mill.abandon()
            if self._waiting:
                raise
        except BrokenPipeError:
            raise
        except (ConnectionError, Py4JError) as error:
            from millstream.spark.errors.error_chain import translate

            # A call to a JVM that has died.
            raise translate(error) from None

    def stop(self) -> None:
        """End the run, from a signal handler; at once if it is still starting, or on the second call."""
        at_once = self._stopping.is_set() or not self._waiting
        self._stopping.set()
        if at_once:
            raise Interrupted

    # ------------------------------------------------------------ waiting

    def _wait(self, queries: Sequence[RunningQuery], mill: Mill) -> bool:
        """Wait until all queries have ended (True) or the run is stopped; the first error ends them all."""
        try:
            while any(query.is_active for query in queries):
                if self._stopping.is_set():
                    return False
                for query in queries:
                    if not query.is_active:
                        query.wait()
                if not all(query.is_bounded for query in queries):
                    self._report_first(_rejects(queries, mill))
                self._report_corrupt_files(mill)
                time.sleep(_POLL_SECONDS)
            for query in queries:
                query.wait()
            return True
        finally:
            # Views first, because queries may wait for them.
            mill.stop_views()
            for query in queries:
                query.stop()

    def _follow(self, queries: Sequence[RunningQuery], mill: Mill) -> bool:
        """Write rows as they come, under the name of their query if there are several."""
        shown = [query for query in queries if query.log is not None]
        turn = threading.Lock()
        last: list[RunningQuery] = []

        def follow(query: RunningQuery) -> None:
            assert query.log is not None
            for piece in encode(query.log.follow(forget=True), query.schema, self._options.format):
                with turn:
                    if len(shown) > 1 and last != [query]:
                        self._stdout.write(f"-- {query.name}\n".encode())
                        last[:] = [query]
                    self._stdout.write(piece)
                    self._stdout.flush()

        def run(query: RunningQuery) -> None:
            try:
                follow(query)
            except BrokenPipeError as error:
                # The reader of the output has closed it, as `head` does.
                self._broken = error
                self._stopping.set()
            except MillstreamError:
                # The thread that waits for the query reports its error.
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

    def _report_corrupt_files(self, mill: Mill) -> None:
        """Report each skipped file as soon as it is known."""
        for name in mill.corrupt_files[self._corrupt_files :]:
            self._corrupt_files += 1
            self._say(
                f"warning: {name} is corrupt: the rest of it was skipped ({self._corrupt_files} so far)"
            )

    def _report(self, rejected: RejectionWarnings) -> None:
        """Warn about bad records and late tuples."""
        for warning in rejected.warnings(shown=self._reported):
            self._say(f"warning: {warning}")

    def _report_first(self, rejected: RejectionWarnings) -> None:
        """Show the first bad record of a stream at once, because an unbounded run has no end."""
        for stream in rejected.bad_streams():
            if stream not in self._reported and (example := rejected.example(stream)):
                self._reported.add(stream)
                self._say(f"warning: a bad record in stream {stream}\n  {example}")


def _rejects(queries: Sequence[RunningQuery], mill: Mill) -> RejectionWarnings:
    return RejectionWarnings(tuple(query.progress for query in queries), mill.catalog.relation)


def _rows(queries: Sequence[RunningQuery]) -> Iterator[pa.Table]:
    return itertools.chain.from_iterable(query.log.read() for query in queries if query.log is not None)


def _schema(queries: Sequence[RunningQuery]) -> pa.Schema:
    """Return the columns of a result; queries of one name, as those into one sink, must agree."""
    schemas = [query.schema for query in queries]
    for schema in schemas[1:]:
        if schema != schemas[0]:
            raise ExecutionError(f"the queries into '{queries[0].name}' have different columns")
    return schemas[0]
