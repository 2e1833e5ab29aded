"""``run --engine local``: a script over files in one process, without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

from millstream.analysis.notes import notes_of
from millstream.cli.run_command import EXIT_CODES
from millstream.errors import ExecutionError
from millstream.runtime.local_engine import LocalEngine, LocalQuery
from millstream.runtime.results.output_formats import write, write_file
from millstream.runtime.script_run import RunEnd


def run_script_locally(text: str, name: str, form: str, out: Path | None) -> int:
    """Run a script, print or write its results, and return the exit code."""
    # Aggregates in Python that the script names may stand beside it.
    sys.path.insert(0, str(Path(name).resolve().parent))
    engine = LocalEngine()
    statements = engine.analyse(text, name)
    for statement in statements:
        for note in notes_of(statement):
            _say(f"warning: {note.place}: {note}")
    _say("local engine: one process, bounded input, no checkpoints")
    outcomes = list(engine.perform(statements))
    queries = [outcome for outcome in outcomes if isinstance(outcome, LocalQuery)]
    for outcome in outcomes:
        if isinstance(outcome, str):
            _say(outcome)
    rejects = engine.rejects(queries)
    for warning in rejects.warnings():
        _say(f"warning: {warning}")
    _write(queries, form, out)
    return EXIT_CODES[RunEnd.ALL_BAD if rejects.all_bad() else RunEnd.COMPLETE]


def _write(queries: list[LocalQuery], form: str, out: Path | None) -> None:
    if out is None:
        for query in queries:
            if len(queries) > 1:
                sys.stdout.buffer.write(f"-- {query.name}\n".encode())
            write([query.rows], query.rows.schema, form, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExecutionError(
            f"cannot make the directory '{out}': {error.strerror or error}",
            hint="choose another one with --out",
        ) from None
    form = "json" if form == "json" else "csv"
    for query in queries:
        write_file([query.rows], query.rows.schema, form, out / f"{query.name}.{form}")


def _say(message: str) -> None:
    print(message, file=sys.stderr)  # noqa: T201
