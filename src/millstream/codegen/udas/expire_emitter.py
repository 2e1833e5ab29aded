"""Programs of aggregates over sliding windows: EXPIRE for tuples that have left, then INITIALIZE or ITERATE.

With ACTIVE EXPIRATION a tuple leaves at its own instant, and the rows that EXPIRE returns are results.
"""

from __future__ import annotations

from millstream.codegen.udas.program_emitter import AGAIN, RANGE, ROWS, ProgramEmitter
from millstream.codegen.udas.window_queue import Queue, Ring
from millstream.ir import typed_nodes


class WindowProgramEmitter(ProgramEmitter):
    """Writes the loop over the tuples of windows that slide."""

    def _functions(self) -> None:
        self._window()
        if self._mode == RANGE:
            self._sweep()

    def _window(self) -> None:
        writer = self._writer
        self._start("run", "count, codes, places, bounds, reach, slide")
        table = self._code.window
        if isinstance(table, Queue):
            with writer.deeper():
                table.begin()
        with writer.deeper(), self._tuples():
            if self._mode == ROWS:
                writer.lines(f"place = {self._of('seen')}", f"{self._of('seen')} = place + 1")
                if not isinstance(table, Ring):
                    writer.line("bound = place - reach")
            else:
                writer.lines("place = places[i]", "bound = bounds[i]")
            parameters = self._parameters()
            if isinstance(table, Ring):
                self._expire()
            else:
                with writer.deeper(f"if {self._of('alive')} != 0:"):
                    self._expire()
            table.insert(parameters, "place")
            if self._mode != ROWS:
                writer.line(f"{self._of('latest')} = place")
            writer.line("mark = out")
            if self._mode == AGAIN:
                with writer.deeper("if (place + 1) % slide == 0:"):
                    self._what_is_left()
            self._came(parameters)
            if self._mode == ROWS:
                # With SLIDE only the last tuple of a slot is heard.
                with writer.deeper("if slide > 1 and (place + 1) % slide != 0:"):
                    writer.line("out = mark")
        if isinstance(table, Queue):
            with writer.deeper():
                table.end_of_call()
        writer.lines("    return out, returned", "")

    def _expire(self) -> None:
        """Write EXPIRE for tuples before the bound; with the last one the instance is forgotten."""
        writer, table = self._writer, self._code.window
        table.expire(lambda row: self._code.block("EXPIRE", [], oldest=row))
        # In a window of rows the last tuple is always the one before this one.
        with writer.deeper("if reach == 0:" if self._mode == ROWS else f"if {self._of('latest')} < bound:"):
            self._code.clear()
            writer.line(f"{self._of('alive')} = 0")

    def _sweep(self) -> None:
        """Write the function that expires tuples without new ones."""
        writer = self._writer
        self._start("sweep", "count, codes, bounds")
        with writer.deeper(), self._tuples():
            writer.line("bound = bounds[i]")
            with writer.deeper(f"if {self._of('alive')} != 0:"):
                self._expire()
        writer.line("    return out, returned")

    def _what_is_left(self) -> None:
        """Compute the aggregate of the remaining tuples from the beginning."""
        writer, table = self._writer, self._code.window
        inner = self._code.called(self._left or self._body, self._returned)
        writer.lines("mark = out", "beginning = True")
        inner.clear()

        def each(row: str) -> None:
            given = [table.column(row, i) for i in range(len(self._body.parameters))]
            kept = [self._code.expressions.kept(value) for value in given]
            writer.line("out = mark")
            self._enter(inner, kept)
            with writer.deeper("if beginning:"):
                writer.line("beginning = False")
                inner.block("INITIALIZE", kept)
            with writer.deeper("else:"):
                inner.block("ITERATE", kept)

        table.scan(each)
        with writer.deeper("if not beginning:"):
            inner.block("TERMINATE", [])


class ActiveProgramEmitter(WindowProgramEmitter):
    """Writes the loop over tuples and expiries of windows with ACTIVE EXPIRATION."""

    def _functions(self) -> None:
        self._active()

    def _active(self) -> None:
        """Write the loop over tuples and expiries in time; an expiry follows the tuples of its instant.

        The queue has what is to leave: when, of which instance, in which row and under which number.
        """
        writer = self._writer
        self._start("run", "count, codes, places, leaving, upto, span")
        with writer.deeper():
            writer.lines("i = 0", "first, last = span[0], span[1]")
            with writer.deeper("while True:"):
                writer.line("until = places[i] if i < count else upto")
                with writer.deeper("if first < last and q_when[first] < until:"):
                    self._leave()
                with writer.deeper("elif i < count:"):
                    self._join()
                with writer.deeper("else:"):
                    writer.line("break")
                # In one place: the loops of the user's own are long, and so is their compilation.
                if self._is_following or self._is_silent:
                    with writer.deeper("if changed:"):
                        self._what_is_left()
            writer.lines("span[0] = first", "span[1] = last")
        writer.line("    return out, returned")

    @property
    def _is_silent(self) -> bool:
        """True if EXPIRE returns nothing, so that the remaining tuples give the result."""
        return not any(isinstance(s, typed_nodes.Insert) and s.table is None for s in self._body.expire)

    def _join(self) -> None:
        writer, table = self._writer, self._code.window
        self._trace()
        writer.lines("k = codes[i]", "source = i", "now = places[i]")
        parameters = self._parameters()
        table.insert(parameters, "now")
        writer.lines(
            f"row = {table.name('tail')}[k]",
            f"number = {table.name('id')}[row]",
            "q_when[last] = leaving[i]",
            "q_code[last] = k",
            "q_row[last] = row",
            "q_id[last] = number",
            "last += 1",
            "latest[k] = number",
        )
        self._came(parameters)
        writer.lines(f"changed = {self._is_following}", "i += 1")

    def _leave(self) -> None:
        writer, table = self._writer, self._code.window
        writer.lines(
            "k = q_code[first]",
            "row = q_row[first]",
            "number = q_id[first]",
            "now = q_when[first]",
            "source = -1 - number",
            "first += 1",
        )
        # A tuple that the body has deleted does not leave once more.
        writer.line(f"changed = row >= 0 and {table.name('id')}[row] == number")
        with writer.deeper("if changed:"):
            self._code.block("EXPIRE", [])
            with writer.deeper(f"if {table.name('id')}[row] == number:"):
                table.remove("row")
            writer.line(f"changed = {self._is_silent}")
        with writer.deeper("if latest[k] == number:"):
            self._code.clear()
            writer.line("alive[k] = 0")
