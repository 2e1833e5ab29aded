"""From the checked form of an aggregate to a program: one function, with the blocks written into its loop.

There is a way to run an aggregate for each row of the table "which version runs" of the semantics:

| mode | what is run for each tuple |
| --- | --- |
| base | INITIALIZE or ITERATE; what they return goes out |
| running | the same, then TERMINATE |
| rows, range | EXPIRE for the tuples that have left, then INITIALIZE or ITERATE |
| content | for a whole window: INITIALIZE, ITERATE for each further tuple, TERMINATE |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.uda import checked
from millstream.uda.bodies import BodyCode, Shared, most_added
from millstream.uda.expressions import Value
from millstream.uda.kinds import TRUTH, kind_of
from millstream.uda.program import Program
from millstream.uda.writer import Writer

BASE, RUNNING, ROWS, RANGE, CONTENT = "base", "running", "rows", "range", "content"


def compiled(body: checked.Body, mode: str) -> Program:
    """The program of an aggregate in a mode."""
    if body.window and mode in (ROWS, RANGE):
        body = _with_window(body)
    shared = Shared(Writer())
    while True:
        learnt = shared.learnt
        code = _Code(body, mode, shared)
        program = code.program()
        if shared.learnt == learnt:
            return program
        shared = shared.again()


def _with_window(body: checked.Body) -> checked.Body:
    """What leaves has to be known even where the body does not look at it."""
    if any(table.name == checked.INWINDOW for table in body.tables):
        return body
    return replace(body, tables=(*body.tables, checked.Table(checked.INWINDOW, body.parameters)))


class _Code:
    def __init__(self, body: checked.Body, mode: str, shared: Shared) -> None:
        self._body, self._mode, self._shared = body, mode, shared
        self._writer = shared.writer
        shared.failed = "return out, returned"
        self._code = BodyCode(
            body, shared, "0" if mode == CONTENT else "k", self._returned, passing=mode == CONTENT
        )

    def program(self) -> Program:
        self._functions()
        # The arrays that the loops need are known only now.
        arrays = self._arrays()
        source = self._writer.text()
        unpacked = f"    ({', '.join(arrays)},) = arrays"
        growing = [name for name in arrays if self._grows(name)]
        source = source.replace("    UNPACK", unpacked)
        source = source.replace("return out, returned", f"return ({', '.join([*growing, 'out'])},)")
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
            tuple(self._shared.outside),
            returned=self._bound,
            arrays=tuple(arrays),
            growing=tuple(growing),
        )

    # ------------------------------------------------------------ arrays

    def _arrays(self) -> list[str]:
        names = [f"{p}{i}" for i in range(len(self._body.parameters)) for p in ("p", "pn")]
        names += ["words", *(f"labels{i}" for i in range(len(self._shared.labelled)))]
        names += ["o_src", *(f"{p}{i}" for i in range(len(self._body.returns)) for p in ("o_c", "o_n"))]
        names += [] if self._mode == CONTENT else ["alive"]
        names += ["latest", "seen"] if self._mode in (ROWS, RANGE) else []
        for layout in self._shared.layouts.values():
            names += [f"{layout.prefix}_{array.name}" for array in layout.arrays()]
        return names

    def _grows(self, name: str) -> bool:
        if name.startswith("o_"):
            return self._bound is None
        for layout in self._shared.layouts.values():
            if name.startswith(f"{layout.prefix}_") and not layout.single and layout.bound is None:
                array = name.removeprefix(f"{layout.prefix}_")
                return any(a.name == array and a.per == "row" for a in layout.arrays())
        return False

    @property
    def _bound(self) -> int | None:
        """How many rows a tuple can return."""
        blocks = [most_added(None, self._body, block) for block in self._body.blocks]
        if None in blocks:
            return None
        initialize, iterate, terminate, expire = (block or 0 for block in blocks)
        return max(initialize, iterate) + terminate + expire

    # ------------------------------------------------------------ what is returned

    def _returned(self, values: Sequence[Value]) -> None:
        writer = self._writer
        if self._bound is None:
            with writer.deeper("if out == len(o_src):"):
                for name in ("o_src", *(f"{p}{i}" for i in range(len(values)) for p in ("o_c", "o_n"))):
                    writer.line(f"{name} = grown({name})")
        writer.line("o_src[out] = i")
        for i, (value, column) in enumerate(zip(values, self._body.returns, strict=True)):
            code = f"int({value.code})" if kind_of(column.type) == TRUTH else value.code
            null = {"": "0", "True": "1", "False": "0"}.get(value.null, f"1 if {value.null} else 0")
            writer.lines(f"o_c{i}[out] = {code}", f"o_n{i}[out] = {null}")
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
            case "rows" | "range":
                self._window()
                self._sweep()
            case _:
                self._content()

    def _start(self, name: str, arguments: str) -> None:
        self._writer.line(f"def {name}({arguments}, fail, arrays):")
        self._writer.lines("    UNPACK", "    out = 0")

    def _base(self) -> None:
        writer = self._writer
        self._start("run", "count, codes")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.line("k = codes[i]")
            parameters = self._parameters()
            with writer.deeper("if alive[k] == 0:"):
                writer.line("alive[k] = 1")
                self._code.block("INITIALIZE", parameters)
            with writer.deeper("else:"):
                self._code.block("ITERATE", parameters)
            if self._mode == RUNNING:
                self._code.block("TERMINATE", [])
        writer.lines("    return out, returned", "")
        self._start("finish", "count, codes")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.line("k = codes[i]")
            self._code.block("TERMINATE", [])
        writer.line("    return out, returned")

    def _trace(self) -> None:
        """Functions outside raise: then it must be known at which tuple."""
        if self._shared.outside:
            self._writer.line("fail[2] = i")

    def _window(self) -> None:
        writer = self._writer
        self._start("run", "count, codes, places, bounds, gives, reach")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.line("k = codes[i]")
            if self._mode == ROWS:
                writer.lines("place = seen[k]", "bound = place - reach", "seen[k] = place + 1")
            else:
                writer.lines("place = places[i]", "bound = bounds[i]")
            parameters = self._parameters()
            with writer.deeper("if alive[k] != 0:"):
                self._expire()
            self._code.tables[checked.INWINDOW].insert(parameters, "place")
            writer.lines("latest[k] = place", "mark = out")
            with writer.deeper("if alive[k] == 0:"):
                writer.line("alive[k] = 1")
                self._code.block("INITIALIZE", parameters)
            with writer.deeper("else:"):
                self._code.block("ITERATE", parameters)
            with writer.deeper("if gives[i] == 0:"):
                writer.line("out = mark")
        writer.lines("    return out, returned", "")

    def _expire(self) -> None:
        """What lies before the bound leaves; with the last tuple the instance is forgotten."""
        writer, table = self._writer, self._code.tables[checked.INWINDOW]
        head, place = table.name("head"), table.name("place")
        writer.lines("mark = out", f"row = {head}[k]")
        with writer.deeper(f"while row >= 0 and {place}[row] < bound:"):
            self._code.block("EXPIRE", [])
            with writer.deeper(f"if {head}[k] == row:"):
                table.remove("row")
            writer.lines("out = mark", f"row = {head}[k]")
        with writer.deeper("if latest[k] < bound:"):
            self._code.clear()
            writer.line("alive[k] = 0")

    def _sweep(self) -> None:
        """What has become too old leaves, though no tuple comes."""
        writer = self._writer
        self._start("sweep", "count, codes, bounds")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.lines("k = codes[i]", "bound = bounds[i]")
            with writer.deeper("if alive[k] != 0:"):
                self._expire()
        writer.line("    return out, returned")

    def _content(self) -> None:
        writer = self._writer
        self._start("run", "count, starts, ends")
        with writer.deeper(), writer.deeper("for i in range(count):"):
            self._trace()
            writer.line("mark = out")
            self._code.clear()
            with writer.deeper("for at in range(starts[i], ends[i]):"):
                # Of what tuples return, only the last one's counts.
                writer.line("out = mark")
                parameters = self._parameters("at")
                with writer.deeper("if at == starts[i]:"):
                    self._code.block("INITIALIZE", parameters)
                with writer.deeper("else:"):
                    self._code.block("ITERATE", parameters)
            with writer.deeper("if starts[i] < ends[i]:"):
                self._code.block("TERMINATE", [])
        writer.line("    return out, returned")
