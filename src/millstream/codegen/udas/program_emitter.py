"""Parts of the program of any user-defined aggregate: arrays, returned rows, the loop over tuples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from millstream.codegen.core.array_binding import larger, room, with_arrays
from millstream.codegen.core.value_emitter import Value, truth
from millstream.codegen.udas.body_emitter import BodyEmitter, ProgramContext
from millstream.codegen.udas.body_facts import most_added
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import TRUTH, kind_of
from millstream.program.program import CatalogRows, Program, dtype_of

BASE, RUNNING, ROWS, RANGE, ACTIVE, CONTENT = "base", "running", "rows", "range", "active", "content"
WHOLE_TABLE, AGAIN, TUMBLE, PANE = "whole", "again", "tumble", "pane"
WINDOWS = (ROWS, RANGE, ACTIVE, AGAIN)
_GATHERED = (CONTENT, WHOLE_TABLE)
_HELD = {
    BASE: ("alive",),
    RUNNING: ("alive",),
    ROWS: ("alive", "seen"),
    RANGE: ("alive", "latest"),
    AGAIN: ("alive", "latest"),
    TUMBLE: ("alive", "seen"),
    PANE: ("alive",),
}
"""The modes whose loops look at one instance after the other, and what is then at hand besides its tables."""


_QUEUE = {"q_when": "int64", "q_code": "int32", "q_row": "int32", "q_id": "int64"}


class ProgramEmitter(ABC):
    """Writes the program of an aggregate in one mode; a subclass writes its functions.

    ``left`` is the body that sees the remaining tuples when a tuple has left. ``following`` is true if the
    body itself does nothing but know the tuples of its window.
    """

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
        arrays |= {"latest": "int64"} if self._mode in WINDOWS and self._mode != ROWS else {}
        arrays |= {"seen": "int64"} if self._mode in (*WINDOWS, TUMBLE) else {}
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

    @abstractmethod
    def _functions(self) -> None:
        """Write the functions of the program."""

    def _start(self, name: str, arguments: str) -> None:
        self._writer.line(f"def {name}({arguments}, fail, arrays):")
        self._writer.lines("    UNPACK", "    out = 0")

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

    def _came(self, parameters: list[Value]) -> None:
        """Write INITIALIZE or ITERATE for a tuple."""
        with self._writer.deeper(f"if {self._of('alive')} == 0:"):
            self._writer.line(f"{self._of('alive')} = 1")
            self._code.block("INITIALIZE", parameters)
        with self._writer.deeper("else:"):
            self._code.block("ITERATE", parameters)

    def _enter(self, code: BodyEmitter, parameters: list[Value]) -> None:
        """Insert a tuple into inwindow for a window version that sees a window from the beginning."""
        if typed_nodes.INWINDOW in code.tables:
            code.tables[typed_nodes.INWINDOW].insert(parameters, "0")
