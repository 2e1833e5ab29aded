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
| content | for a whole window: INITIALIZE, ITERATE for each further tuple, TERMINATE |
| whole | the same for a group of a table, where all counts that is returned, and not only at the end |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from millstream.codegen.core.array_binding import larger, room, with_arrays
from millstream.codegen.core.source_writer import SourceWriter
from millstream.codegen.core.value_emitter import Value, truth
from millstream.codegen.udas.body_emitter import BodyEmitter, ProgramContext
from millstream.codegen.udas.body_facts import most_added
from millstream.codegen.udas.window_queue import Queue, Ring
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import TRUTH, kind_of
from millstream.program.program import CatalogRows, Program, dtype_of

BASE, RUNNING, ROWS, RANGE, ACTIVE, CONTENT = "base", "running", "rows", "range", "active", "content"
WHOLE_TABLE, AGAIN, TUMBLE = "whole", "again", "tumble"
_WINDOWS = (ROWS, RANGE, ACTIVE, AGAIN)
_GATHERED = (CONTENT, WHOLE_TABLE)
_HELD = {
    BASE: ("alive",),
    RUNNING: ("alive",),
    ROWS: ("alive", "seen"),
    RANGE: ("alive", "latest"),
    AGAIN: ("alive", "latest"),
    TUMBLE: ("alive", "seen"),
}
"""The modes whose loops look at one instance after the other, and what is then at hand besides its tables."""


def compile_uda(body: typed_nodes.Body, mode: str, left: typed_nodes.Body | None = None) -> Program:
    """Return the program of an aggregate in a mode.

    ``left`` is what is run over what is left when a tuple has left and EXPIRE itself says nothing. Without a
    window version the base version sees what is in the window whenever that has changed.
    """
    following = mode == AGAIN or (mode == ACTIVE and not body.window)
    if following:
        body, left = _follower(body), body
    if mode in _WINDOWS:
        body = with_window(body)
    shared = ProgramContext(SourceWriter())
    while True:
        learnt = shared.learnt
        code = _Code(body, mode, shared, left, following=following)
        program = code.program()
        if shared.learnt == learnt:
            return program
        shared = shared.again()


def _follower(body: typed_nodes.Body) -> typed_nodes.Body:
    """Return a window version that does nothing itself but know the tuples of its window."""
    return replace(body, window=True, tables=(), initialize=(), iterate=(), terminate=(), expire=())


def with_window(body: typed_nodes.Body) -> typed_nodes.Body:
    """Add inwindow to a body that does not declare it."""
    if any(table.name == typed_nodes.INWINDOW for table in body.tables):
        return body
    return replace(body, tables=(*body.tables, typed_nodes.Table(typed_nodes.INWINDOW, body.parameters)))


_QUEUE = {"q_when": "int64", "q_code": "int32", "q_row": "int32", "q_id": "int64"}


class _Code:
    def __init__(
        self,
        body: typed_nodes.Body,
        mode: str,
        shared: ProgramContext,
        left: typed_nodes.Body | None,
        *,
        following: bool,
    ) -> None:
        self._body, self._mode, self._shared, self._left = body, mode, shared, left
        self._is_following = following
        self._writer = shared.writer
        shared.failed = "raise StoppedError"
        self._code = BodyEmitter(
            body,
            shared,
            "0" if mode in _GATHERED else "k",
            self._returned,
            passing=mode in _GATHERED,
            sliding=mode in (ROWS, RANGE, AGAIN),
            one_by_one=mode == ROWS,
            held=mode in _HELD,
        )

    def program(self) -> Program:
        self._functions()
        # The arrays that the loops need are known only now.
        arrays = self._arrays()
        source = self._writer.text()
        source = with_arrays(source, arrays)
        return Program(
            self._body.name,
            self._mode,
            self._body.parameters,
            self._body.returns,
            tuple(self._shared.layouts.values()),
            source,
            tuple(self._shared.texts),
            tuple(self._shared.words),
            tuple(self._shared.labelled),
            tuple(self._shared.hashed),
            tuple(self._shared.outside),
            returned=self._bound,
            arrays=arrays,
            grows=self._grows,
            given=tuple(CatalogRows(t.name, t.fields) for t in self._shared.layouts.values() if t.given),
        )

    # ------------------------------------------------------------ arrays

    def _arrays(self) -> dict[str, str]:
        """Return the arrays of the loops with their types."""
        arrays: dict[str, str] = {}
        for i, parameter in enumerate(self._body.parameters):
            arrays |= {f"p{i}": dtype_of(parameter.type), f"pn{i}": "uint8"}
        arrays["words"] = "int64"
        arrays |= {f"labels{i}": "int64" for i in range(len(self._shared.labelled))}
        arrays |= {f"hashes{i}": "int64" for i in range(len(self._shared.hashed))}
        arrays |= self._outputs()
        arrays |= {} if self._mode in _GATHERED else {"alive": "uint8"}
        arrays |= {"latest": "int64"} if self._mode in _WINDOWS and self._mode != ROWS else {}
        arrays |= {"seen": "int64"} if self._mode in (*_WINDOWS, TUMBLE) else {}
        arrays |= _QUEUE if self._mode == ACTIVE else {}
        for layout in self._shared.layouts.values():
            arrays |= {f"{layout.prefix}_{array.name}": array.dtype for array in layout.arrays()}
        return arrays

    def _outputs(self) -> dict[str, str]:
        """Return the arrays of what is returned."""
        arrays = {"o_src": "int64"}
        for i, column in enumerate(self._body.returns):
            arrays |= {f"o_c{i}": dtype_of(column.type), f"o_n{i}": "uint8"}
        return arrays | ({"o_time": "int64"} if self._mode in (ACTIVE, TUMBLE) else {})

    @property
    def _grows(self) -> bool:
        layouts = self._shared.layouts.values()
        return self._bound is None or any(not t.single and t.bound is None for t in layouts)

    @property
    def _bound(self) -> int | None:
        """Number of rows that a tuple (or a window) can return, None if unbounded."""
        if self._mode == WHOLE_TABLE:
            return None
        own = most_added(None, self._body)
        left = 0 if self._left is None else most_added(None, self._left)
        return None if own is None or left is None else max(own, left)

    # ------------------------------------------------------------ returned rows

    def _returned(self, values: Sequence[Value]) -> None:
        writer = self._writer
        if self._bound is None:
            with writer.deeper(f"if out == {room()}:"):
                writer.lines(*larger(self._outputs()))
        writer.line("o_src[out] = source" if self._mode == ACTIVE else "o_src[out] = i")
        if self._mode in (ACTIVE, TUMBLE):
            writer.line("o_time[out] = now")
        for i, (value, column) in enumerate(zip(values, self._body.returns, strict=True)):
            code = f"int({value.code})" if kind_of(column.type) == TRUTH else value.code
            writer.lines(f"o_c{i}[out] = {code}", f"o_n{i}[out] = {truth(value.null)}")
        writer.line("out += 1")

    def _parameters(self, at: str = "i") -> list[Value]:
        values = []
        for i, parameter in enumerate(self._body.parameters):
            code = f"p{i}[{at}] != 0" if kind_of(parameter.type) == TRUTH else f"p{i}[{at}]"
            self._writer.lines(f"a{i} = {code}", f"z{i} = pn{i}[{at}] != 0")
            values.append(Value(f"a{i}", f"z{i}"))
        return values

    # ------------------------------------------------------------ functions

    def _functions(self) -> None:
        match self._mode:
            case "base" | "running":
                self._base()
            case "rows" | "again":
                self._window()
            case "range":
                self._window()
                self._sweep()
            case "active":
                self._active()
            case "tumble":
                self._tumble()
            case _:
                self._content()

    def _start(self, name: str, arguments: str) -> None:
        self._writer.line(f"def {name}({arguments}, fail, arrays):")
        self._writer.lines("    UNPACK", "    out = 0")

    def _base(self) -> None:
        writer = self._writer
        self._start("run", "count, codes")
        with writer.deeper(), self._tuples():
            self._came(self._parameters())
            if self._mode == RUNNING:
                self._code.block("TERMINATE", [])
        writer.line("    return out, returned")

    @contextmanager
    def _tuples(self) -> Iterator[None]:
        """Write a loop over tuples; an instance is held until a tuple of another one comes."""
        writer = self._writer
        with writer.deeper("if count == 0:"):
            writer.line("return out, returned")
        self._hold("0")
        with writer.deeper("for i in range(count):"):
            self._trace()
            with writer.deeper("if codes[i] != k:"):
                self._let_go()
                self._hold("i")
            yield
        self._let_go()

    def _hold(self, at: str) -> None:
        self._writer.lines(f"k = codes[{at}]", *(f"{self._of(name)} = {name}[k]" for name in self._held))
        self._code.hold()

    def _let_go(self) -> None:
        self._writer.lines(*(f"{name}[k] = {self._of(name)}" for name in self._held))
        self._code.let_go()

    @property
    def _held(self) -> tuple[str, ...]:
        """Arrays of the held instance besides its tables."""
        return _HELD.get(self._mode, ())

    def _of(self, name: str) -> str:
        """Return the variable for ``alive``, ``seen`` or ``latest`` of the instance."""
        return f"{name}_now" if name in self._held else f"{name}[k]"

    def _trace(self) -> None:
        """Note the tuple for errors that interpreted functions raise."""
        if self._shared.outside:
            self._writer.line("fail[2] = i")

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

    def _came(self, parameters: list[Value]) -> None:
        """Write INITIALIZE or ITERATE for a tuple."""
        with self._writer.deeper(f"if {self._of('alive')} == 0:"):
            self._writer.line(f"{self._of('alive')} = 1")
            self._code.block("INITIALIZE", parameters)
        with self._writer.deeper("else:"):
            self._code.block("ITERATE", parameters)

    def _tumble(self) -> None:
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

    def _enter(self, code: BodyEmitter, parameters: list[Value]) -> None:
        """Insert a tuple into inwindow for a window version that sees a window from the beginning."""
        if typed_nodes.INWINDOW in code.tables:
            code.tables[typed_nodes.INWINDOW].insert(parameters, "0")

    def _content(self) -> None:
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
