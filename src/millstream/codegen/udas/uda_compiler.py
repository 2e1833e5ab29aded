"""Compiler of an aggregate to a program: one function, with the blocks written into its loop.

There is a way to run an aggregate for each row of the table "which version runs" of the semantics:

| mode | what is run for each tuple |
| --- | --- |
| base | INITIALIZE or ITERATE; what they return goes out |
| running | the same, then TERMINATE |
| rows, range | EXPIRE for the tuples that have left, then INITIALIZE or ITERATE |
| active | the same, but EXPIRE runs when a tuple leaves, and what it returns goes out too |
| again | what has left goes, then the base version sees all that is in the window |
| tumble | of each slot the last tuples: INITIALIZE, ITERATE for each further one, and at the end TERMINATE |
| pane | INITIALIZE for the first tuple of a pane, ITERATE for others, and after its last one TERMINATE |
| content | for a whole window: INITIALIZE, ITERATE for each further tuple, TERMINATE |
| whole | the same for a group of a table, where all counts that is returned, and not only at the end |
"""

from __future__ import annotations

from dataclasses import replace

from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.codegen.udas.expire_emitter import ActiveProgramEmitter, WindowProgramEmitter
from millstream.codegen.udas.program_emitter import (
    ACTIVE,
    AGAIN,
    BASE,
    CONTENT,
    PANE,
    RANGE,
    ROWS,
    RUNNING,
    TUMBLE,
    WHOLE_TABLE,
    WINDOWS,
    ProgramEmitter,
)
from millstream.ir import typed_nodes
from millstream.program.program import Program

__all__ = [
    "ACTIVE",
    "AGAIN",
    "BASE",
    "CONTENT",
    "PANE",
    "RANGE",
    "ROWS",
    "RUNNING",
    "TUMBLE",
    "WHOLE_TABLE",
    "compile_uda",
    "with_window",
]


def compile_uda(body: typed_nodes.Body, mode: str, left: typed_nodes.Body | None = None) -> Program:
    """Return the program of an aggregate in a mode.

    ``left`` is what is run over what is left when a tuple has left and EXPIRE itself says nothing. Without a
    window version the base version sees what is in the window whenever that has changed.
    """
    following = mode == AGAIN or (mode == ACTIVE and not body.window)
    if following:
        body, left = _follower(body), body
    if mode in WINDOWS:
        body = with_window(body)
    shared = ProgramContext(SourceWriter())
    while True:
        learnt = shared.learnt
        code = _emitter(mode)(body, mode, shared, left, following=following)
        program = code.program()
        if shared.learnt == learnt:
            return program
        shared = shared.again()


def _emitter(mode: str) -> type[ProgramEmitter]:
    match mode:
        case "base" | "running":
            return _BaseProgramEmitter
        case "rows" | "range" | "again":
            return WindowProgramEmitter
        case "active":
            return ActiveProgramEmitter
        case "tumble":
            return _TumbleProgramEmitter
        case "pane":
            return _PaneProgramEmitter
        case _:
            return _ContentProgramEmitter


def _follower(body: typed_nodes.Body) -> typed_nodes.Body:
    """Return a window version that does nothing itself but know the tuples of its window."""
    return replace(body, window=True, tables=(), initialize=(), iterate=(), terminate=(), expire=())


def with_window(body: typed_nodes.Body) -> typed_nodes.Body:
    """Add inwindow to a body that does not declare it."""
    if any(table.name == typed_nodes.INWINDOW for table in body.tables):
        return body
    return replace(body, tables=(*body.tables, typed_nodes.Table(typed_nodes.INWINDOW, body.parameters)))


class _BaseProgramEmitter(ProgramEmitter):
    """Writes the loop over the tuples of a stream."""

    def _functions(self) -> None:
        writer = self._writer
        self._start("run", "count, codes")
        with writer.deeper(), self._tuples():
            self._came(self._parameters())
            if self._mode == RUNNING:
                self._code.block("TERMINATE", [])
        writer.line("    return out, returned")


class _TumbleProgramEmitter(ProgramEmitter):
    """Writes the loop over the tuples of slots, each of which begins anew."""

    def _functions(self) -> None:
        """Write the loop of a tumble, in which tuples before the window of their slot are only counted.

        What is returned bears the number of its slot. An instance may be forgotten after each of them, if
        these numbers are not needed.
        """
        writer = self._writer
        self._start("run", "count, codes, size, slide, forget")
        alive, seen = self._of("alive"), self._of("seen")
        with writer.deeper(), self._tuples():
            writer.lines(f"now = {seen} // slide", f"place = {seen} % slide")
            writer.lines(f"{seen} += 1", f"{alive} = 1")
            with writer.deeper("if place >= slide - size:"):
                writer.line("mark = out")
                parameters = self._parameters()
                self._enter(self._code, parameters)
                with writer.deeper("if place == slide - size:"):
                    self._code.block("INITIALIZE", parameters)
                with writer.deeper("else:"):
                    self._code.block("ITERATE", parameters)
                with writer.deeper("if place < slide - 1:"):
                    writer.line("out = mark")
                with writer.deeper("else:"):
                    self._code.block("TERMINATE", [])
                    self._code.clear()
                    with writer.deeper("if forget:"):
                        writer.lines(f"{alive} = 0", f"{seen} = 0")
        writer.line("    return out, returned")


class _PaneProgramEmitter(ProgramEmitter):
    """Writes the loop over the tuples of panes, whose last tuples are known."""

    def _functions(self) -> None:
        writer = self._writer
        self._start("run", "count, codes, lasts")
        with writer.deeper(), self._tuples():
            writer.line("mark = out")
            parameters = self._parameters()
            self._enter(self._code, parameters)
            self._came(parameters)
            with writer.deeper("if lasts[i] == 0:"):
                writer.line("out = mark")
            with writer.deeper("else:"):
                self._code.block("TERMINATE", [])
                self._code.clear()
                writer.line(f"{self._of('alive')} = 0")
        writer.line("    return out, returned")


class _ContentProgramEmitter(ProgramEmitter):
    """Writes the loop over whole windows, and over the groups of a table."""

    def _functions(self) -> None:
        writer = self._writer
        self._start("run", "count, starts, ends")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.line("mark = out")
            self._code.clear()
            with writer.deeper("for at in range(starts[i], ends[i]):"):
                if self._mode == CONTENT:
                    # Of what tuples return, only the last one's counts.
                    writer.line("out = mark")
                parameters = self._parameters("at")
                self._enter(self._code, parameters)
                with writer.deeper("if at == starts[i]:"):
                    self._code.block("INITIALIZE", parameters)
                with writer.deeper("else:"):
                    self._code.block("ITERATE", parameters)
            with writer.deeper("if starts[i] < ends[i]:"):
                self._code.block("TERMINATE", [])
        writer.line("    return out, returned")
