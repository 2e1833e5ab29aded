"""Matches in generated source: their results, and the tuple by which they are stamped."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.patterns.attempt_state import StateColumn, null_number
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.ir.value_kinds import TRUTH, kind_of

STAMP = ("time", "origin", "number")


class MatchEmitter:
    """The results of a match, emitted at once, or stored in the attempt until older attempts have failed."""

    def __init__(self, code: PatternScope) -> None:
        self._code, self._pattern, self._writer = code, code.pattern, code.writer

    def results(self) -> list[Value]:
        self._code.about("the results of a match")
        expressions = self._code.expressions
        return [expressions.kept(expressions.value(output)) for output in self._pattern.outputs]

    def stamp(self, *, star: bool) -> list[str]:
        """Return time, origin and number of the last tuple; for a star that is the previous tuple."""
        if star:
            return [self._code.needs.partition.cell(("stamp", name)).of("k") for name in STAMP]
        return ["instants[i]", "origins[i]", "numbers[i]"]

    def remember_stamp(self) -> None:
        """Emit the storage of the stamp of a tuple that may be the last of a star."""
        for kept, now in zip(self.stamp(star=True), self.stamp(star=False), strict=True):
            self._writer.line(f"{kept} = {now}")

    def emit(self, values: Sequence[Value], stamp: Sequence[str]) -> None:
        writer = self._writer
        writer.line("o_src[out] = i")
        for name, code in zip(STAMP, stamp, strict=True):
            writer.line(f"o_{name}[out] = {code}")
        for i, (value, column) in enumerate(zip(values, self._pattern.returns, strict=True)):
            code = f"int({value.code})" if kind_of(column.type) == TRUTH else value.code
            writer.lines(f"o_c{i}[out] = {code}", f"o_n{i}[out] = {null_number(value)}")
        writer.line("out += 1")

    def put_aside(self, values: Sequence[Value], stamp: Sequence[str]) -> None:
        for i, value in enumerate(values):
            self._result(i).put(self._writer, "row", value)
        for cell, code in zip(self._kept_stamp(), stamp, strict=True):
            self._writer.line(f"{cell.of('row')} = {code}")

    def emit_aside(self) -> None:
        values = [self._result(i).at("row") for i in range(len(self._pattern.returns))]
        self.emit(values, [cell.of("row") for cell in self._kept_stamp()])

    def _result(self, i: int) -> StateColumn:
        return self._code.needs.attempt.cell(("result", i), self._pattern.returns[i].type)

    def _kept_stamp(self) -> list[StateColumn]:
        return [self._code.needs.attempt.cell(("stamp", name)) for name in STAMP]
