"""Attempts as rows of a table, in generated source: how they begin, are forgotten, and cannot go on."""

from __future__ import annotations

from millstream.codegen.patterns.attempt_state import StateColumn
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.program.failures import ATTEMPTS, BUDGET
from millstream.program.row_layout import META

LINKS = ("head", "tail", "count", "next", "prev")

NOBODY, NEW = -2, -1
"""Whose condition could not be computed: nobody's in particular, or that of an attempt that would begin."""


class AttemptEmitter:
    """The attempts of the partition ``k``, linked in the order in which they began.

    One for which something could not be computed is ``broken``. That matters only if it becomes the oldest:
    otherwise nobody would have asked. So the tuple is looked at again, from the attempt after it.
    """

    def __init__(self, code: PatternScope, shared: ProgramContext) -> None:
        self._code, self._shared, self._writer = code, shared, code.writer
        self._cells = code.needs.attempt
        self._broken = len(code.pattern.elements)

    @property
    def state(self) -> StateColumn:
        """What the attempt is at."""
        return self._cells.cell("state")

    @property
    def full(self) -> str:
        """A condition: there is no room for another one."""
        return f"at_meta[{META['free']}] < 0 and at_meta[{META['size']}] >= at_meta[{META['room']}]"

    def allocate(self) -> None:
        """Another one, which gets the name ``row``."""
        writer = self._writer
        with writer.deeper(f"if at_count[k] >= {BUDGET}:"):
            writer.lines(f"fail[0] = {ATTEMPTS}", "fail[1] = 0", "fail[2] = i", f"span[1] = {NOBODY}")
            writer.line("return out, returned")
        writer.lines(
            "row = take_row(at_meta, at_next)",
            "at_owner[row] = k",
            "number_row(row, at_meta, at_id)",
            f"link_row(row, k, {', '.join(f'at_{name}' for name in LINKS)})",
        )
        # What is written down before it is known must not be looked up in a dictionary.
        writer.lines(*(f"{cell.null_of('row')} = 1" for cell in self._cells.words()))
        self.touch()

    def touch(self) -> None:
        self._writer.line("touch_row(row, at_meta, at_mark, at_touched)")

    def drop(self) -> None:
        """Forget the one that the name ``row`` has."""
        for measure in self._code.measures:
            measure.clear()
        arrays = ", ".join(f"at_{name}" for name in ("meta", "id", "mark", "gone", *LINKS))
        self._writer.line(f"drop_row(row, k, {arrays})")

    # ------------------------------------------------------------ what cannot be computed

    def blame(self, whom: str, *, begins: bool = False) -> None:
        """If something cannot be computed from here on, this attempt is said to be the one.

        It may be one that ``begins`` with the tuple, so that none will when the tuple is looked at again.
        """
        self._shared.failed = f"span[1] = {whom}; span[2] = {int(begins)}; return out, returned"

    def break_one(self) -> None:
        """The tuple has been here before, and an attempt could not go on: begin with the one after it."""
        writer = self._writer
        writer.line("begins = True")
        with writer.deeper(f"if span[1] != {NOBODY}:"):
            writer.lines("row = span[1]", "begins = span[2] == 0")
            with writer.deeper(f"if row == {NEW}:"):
                self.allocate()
            writer.line(f"{self.state.of('row')} = {self._broken}")
            for cell, at in zip(self._failure(), ("span[3]", "span[4]"), strict=True):
                writer.line(f"{cell.of('row')} = {at}")
            self.touch()
            writer.lines("row = at_next[row]", f"span[1] = {NOBODY}")

    def _failure(self) -> tuple[StateColumn, StateColumn]:
        """What could not be done, and where that is said."""
        return self._cells.cell(("failure", 0)), self._cells.cell(("failure", 1))

    def fail_if_broken(self) -> None:
        """The one that the name ``row`` has is the oldest."""
        failure, text = self._failure()
        with self._writer.deeper(f"if row >= 0 and {self.state.of('row')} == {self._broken}:"):
            self._writer.lines(
                f"fail[0] = {failure.of('row')}", f"fail[1] = {text.of('row')}", "fail[2] = -1"
            )
            self._writer.lines(f"span[1] = {NOBODY}", "return out, returned")
