"""Answers that searches in the same tuples have in common, in generated source.

What searches have found out about a tuple stands in a number, with two bits for each question that any of
them asks: whether there is an answer, and whether it holds. The next search begins with that. Which bits are
its own, and which answers follow from one (``codegen.patterns.shared_conditions``), are numbers that it is
told when it runs, so that it is not compiled again for every set of queries.

Every condition is a question of its own here, also where an element asks several together: another search may
ask only one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from millstream.codegen.patterns.condition_cache import FAILS, HOLDS, UNKNOWN, ConditionCache, Conditions
from millstream.codegen.patterns.pattern_scope import PatternScope
from millstream.ir.pattern import Pattern

QUESTIONS, TOLD, ANSWERED = "questions", "told", "answered"
"""Arrays: the numbers of the questions, what follows from answers, and what is known of each tuple."""

ARRAYS = dict.fromkeys((QUESTIONS, TOLD, ANSWERED), "int64")


class SharedConditionEmitter(ConditionCache):
    """The name ``known`` has the bits of the tuple at hand.

    Answers that the search has used have names of their own besides: what is found out can be used at once,
    before it is told.
    """

    def __init__(self, pattern: Pattern, code: PatternScope) -> None:
        self.questions: list[Conditions] = []
        super().__init__(pattern, code)

    def begin(self) -> None:
        for number in range(len(self.questions)):
            self._writer.lines(
                f"place{number} = 2 * {QUESTIONS}[{number}]",
                f"is_known{number} = 1 << place{number}",
                f"holds{number} = 2 << place{number}",
            )

    def look_up(self) -> None:
        self._writer.line(f"known = {ANSWERED}[i]")
        self._writer.lines(*(f"b{number} = {UNKNOWN}" for number in range(len(self.questions))))

    def put_down(self) -> None:
        self._writer.line(f"{ANSWERED}[i] = known")

    def _number(self, question: Conditions) -> int:
        if question not in self.questions:
            self.questions.append(question)
        return self.questions.index(question)

    def _holds(self, question: Conditions) -> str:
        for condition in question:
            self._number((condition,))
        return f"b{self._number(question)} == {HOLDS}"

    def _find_out(self, question: Conditions, wanted: str) -> None:
        number = self._number(question)
        with self._writer.deeper(f"if b{number} == {UNKNOWN} and ({wanted}):"):
            self._unless_known(number, partial(self._ask, number))

    def _unless_known(self, number: int, ask: Callable[[], None]) -> None:
        writer = self._writer
        with writer.deeper(f"if known & is_known{number} != 0:"):
            writer.line(f"b{number} = {HOLDS} if known & holds{number} != 0 else {FAILS}")
        with writer.deeper("else:"):
            ask()

    def _ask(self, number: int) -> None:
        """One condition after the other, as long as they hold; if one fails it is told that all do."""
        question = self.questions[number]
        numbers = [self._number((condition,)) for condition in question]
        if self._code.is_counted:
            unknown = " or ".join(f"known & is_known{part} == 0" for part in numbers)
            with self._writer.deeper(f"if {unknown}:"):
                self._code.count(question)
        if numbers == [number]:
            self._evaluate(number)
            return
        self._writer.line(f"b{number} = {FAILS}")
        with ExitStack() as stack:
            for part in numbers:
                with self._writer.deeper(f"if b{part} == {UNKNOWN}:"):
                    self._unless_known(part, partial(self._evaluate, part))
                stack.enter_context(self._writer.deeper(f"if b{part} == {HOLDS}:"))
            self._writer.lines(f"b{number} = {HOLDS}", f"known |= {TOLD}[place{number} + {HOLDS}]")

    def _evaluate(self, number: int) -> None:
        (condition,) = self.questions[number]
        holds = self._code.expressions.truth(condition)
        self._writer.line(f"b{number} = {HOLDS} if {holds} else {FAILS}")
        self._writer.line(f"known |= {TOLD}[place{number} + b{number}]")
