"""Answers that searches in the same tuples have in common, in generated source.

What searches have found out about a tuple stands in a number, with two bits for each question that any of
them asks: whether there is an answer, and whether it holds. The next search begins with that. Which bits are
its own, and which answers follow from one (``pattern.common``), are numbers that it is told when it runs, so
that it is not compiled again for every set of queries.

Every condition is a question of its own here, also where an element asks several together: another search may
ask only one of them.
"""

from __future__ import annotations

from contextlib import ExitStack

from millstream.pattern.answers import Answers, Conditions
from millstream.pattern.form import Pattern
from millstream.pattern.surroundings import PatternCode

QUESTIONS, TOLD, ANSWERED = "questions", "told", "answered"
"""Arrays: the numbers of the questions, what follows from answers, and what is known of each tuple."""

ARRAYS = dict.fromkeys((QUESTIONS, TOLD, ANSWERED), "int64")


class CommonAnswers(Answers):
    """The name ``known`` has the bits of the tuple at hand."""

    def __init__(self, pattern: Pattern, code: PatternCode) -> None:
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

    def put_down(self) -> None:
        self._writer.line(f"{ANSWERED}[i] = known")

    def _number(self, question: Conditions) -> int:
        if question not in self.questions:
            self.questions.append(question)
        return self.questions.index(question)

    def _holds(self, question: Conditions) -> str:
        for condition in question:
            self._number((condition,))
        return f"known & holds{self._number(question)} != 0"

    def _find_out(self, question: Conditions, wanted: str) -> None:
        numbers = [self._number((condition,)) for condition in question]
        whole, is_several = self._number(question), len(question) > 1
        with self._writer.deeper(f"if known & is_known{whole} == 0 and ({wanted}):"), ExitStack() as stack:
            if self._code.is_counted:
                unknown = " or ".join(f"known & is_known{number} == 0" for number in numbers)
                with self._writer.deeper(f"if {unknown}:"):
                    self._code.count(question)
            # One after the other, as long as they hold; if one fails it is told that the question does.
            for number, condition in zip(numbers, question, strict=True):
                with self._writer.deeper(f"if known & is_known{number} == 0:"):
                    self._note(number, self._code.expressions.truth(condition))
                if is_several:
                    stack.enter_context(self._writer.deeper(f"if known & holds{number} != 0:"))
            if is_several:
                self._note(whole, "True")

    def _note(self, number: int, holds: str) -> None:
        self._writer.line(f"known |= {TOLD}[place{number} + (1 if {holds} else 0)]")
