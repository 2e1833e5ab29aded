"""Generated source for attempts as rows of a table: their start, their removal, and their failures."""

from __future__ import annotations

from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.program.failures import ATTEMPTS, BUDGET
from millstream.program.row_layout import META

LINKS = ("head", "tail", "count", "next", "prev")

NO_ATTEMPT, NEW = -2, -1
"""Attempt ids in evaluation errors: NO_ATTEMPT for none, NEW for one about to start."""


class AttemptEmitter:
    """The attempts of the partition ``k``, linked in order of start.

    An attempt with an evaluation error is ``broken``. The error is raised only if the attempt becomes the
    oldest: otherwise the definition does not evaluate it. So the tuple is processed again, from the attempt
    after it.
    """

    def __init__(self, code: PatternScope, shared: ProgramContext) -> None:
        self._code, self._shared, self._writer = code, shared, code.writer
        self._cells = code.needs.attempt
        self._broken = len(code.pattern.elements)

    @property
    def state(self) -> StateColumn:
        """The column with the state of an attempt."""
        return self._cells.cell("state")

    @property
    def full(self) -> str:
        """The test that there is no room for another attempt."""
        return f"at_meta[{META['free']}] < 0 and at_meta[{META['size']}] >= at_meta[{META['room']}]"

    def allocate(self) -> None:
        """Emit the start of an attempt, in the variable ``row``."""
        writer = self._writer
        with writer.deeper(f"if at_count[k] >= {BUDGET}:"):
            writer.lines(f"fail[0] = {ATTEMPTS}", "fail[1] = 0", "fail[2] = i", f"span[1] = {NO_ATTEMPT}")
            writer.line("return out, returned")
        writer.lines(
            "row = take_row(at_meta, at_next)",
            "at_owner[row] = k",
            "number_row(row, at_meta, at_id)",
            f"link_row(row, k, {', '.join(f'at_{name}' for name in LINKS)})",
        )
        # A string code that is saved before it is set must not be looked up in the dictionary.
        writer.lines(*(f"{cell.null_of('row')} = 1" for cell in self._cells.words()))
        self.touch()

    def touch(self) -> None:
        self._writer.line("touch_row(row, at_meta, at_mark, at_touched)")

    def drop(self) -> None:
        """Emit the removal of the attempt ``row``."""
        for measure in self._code.measures:
            measure.clear()
        arrays = ", ".join(f"at_{name}" for name in ("meta", "id", "mark", "gone", *LINKS))
        self._writer.line(f"drop_row(row, k, {arrays})")

    # ------------------------------------------------------------ evaluation errors

    def blame(self, whom: str, *, begins: bool = False) -> None:
        """Attribute evaluation errors in the source that follows to this attempt.

        An attempt that ``begins`` with the tuple does not start again when the tuple is processed again.
        """
        self._shared.failed = f"span[1] = {whom}; span[2] = {int(begins)}; return out, returned"

    def break_one(self) -> None:
        """Emit the continuation after an evaluation error: mark the attempt, and go on with the next one."""
        writer = self._writer
        writer.line("begins = True")
        with writer.deeper(f"if span[1] != {NO_ATTEMPT}:"):
            writer.lines("row = span[1]", "begins = span[2] == 0")
            with writer.deeper(f"if row == {NEW}:"):
                self.allocate()
            writer.line(f"{self.state.of('row')} = {self._broken}")
            for cell, at in zip(self._failure(), ("span[3]", "span[4]"), strict=True):
                writer.line(f"{cell.of('row')} = {at}")
            self.touch()
            writer.lines("row = at_next[row]", f"span[1] = {NO_ATTEMPT}")

    def _failure(self) -> tuple[StateColumn, StateColumn]:
        """Return the columns with the error and its place in the text."""
        return self._cells.cell(("failure", 0)), self._cells.cell(("failure", 1))

    def fail_if_broken(self) -> None:
        """Emit the failure of the search if ``row``, the oldest attempt, is broken."""
        failure, text = self._failure()
        with self._writer.deeper(f"if row >= 0 and {self.state.of('row')} == {self._broken}:"):
            self._writer.lines(
                f"fail[0] = {failure.of('row')}", f"fail[1] = {text.of('row')}", "fail[2] = -1"
            )
            self._writer.lines(f"span[1] = {NO_ATTEMPT}", "return out, returned")
