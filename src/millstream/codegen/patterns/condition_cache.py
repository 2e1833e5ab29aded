"""Cache of condition outcomes for the current tuple, in generated source.

A condition on a tuple and its predecessors is evaluated once for all attempts, and not at all if its outcome
follows from other outcomes (``inference.implications``): a falling price does not rise, and a price above 10
is above 5. In the paper the matrices theta and phi give an attempt the outcomes of an older attempt; here all
attempts read one cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from millstream.codegen.patterns.pattern_scope import ElementPhase, PatternScope
from millstream.inference.condition_shape import own_tuple
from millstream.inference.implications import Known, Question, when_it_fails, when_it_holds
from millstream.ir.pattern import Pattern
from millstream.ir.typed_nodes import Expr

Conditions = tuple[Expr, ...]
"""A conjunction of conditions on a tuple; a column's scan number is the distance back to its tuple."""

UNKNOWN, FAILS, HOLDS = -1, 0, 1
"""Values of a cache variable in generated source."""


@dataclass(frozen=True)
class ElementQuestion:
    """Conditions of an element: the cached conjunction, and the rest, which each attempt evaluates.

    ``holds`` is generated source that tests the cached outcome.
    """

    question: Conditions
    rest: tuple[Expr, ...]
    holds: str


class ConditionCache:
    """Cache variables of the current tuple. With ``ops`` outcomes are also inferred from each other."""

    def __init__(self, pattern: Pattern, code: PatternScope, *, ops: bool) -> None:
        self._code, self._writer, self._ops = code, code.writer, ops
        self._names: dict[Conditions, str] = {}
        with code.at(ElementPhase.ASKED):
            questions = [self._element_question(pattern, j) for j in range(len(pattern.elements))]
        self.of = questions
        """The question of each element."""

    def _element_question(self, pattern: Pattern, j: int) -> ElementQuestion:
        """Split the conditions of an element into those that can be cached and the rest."""
        own = [(c, own_tuple(c, pattern, j)) for c in pattern.elements[j].per_tuple]
        question = tuple(o for _, o in own if o is not None and self._is_safe(o))
        rest = tuple(c for c, o in own if o is None or o not in question)
        return ElementQuestion(question, rest, self._holds(question) if question else "True")

    def _is_safe(self, condition: Expr) -> bool:
        """Return True if evaluation cannot raise an error, so the outcome can be cached for all attempts."""
        length = self._writer.length
        self._code.expressions.truth(condition)
        lines = self._writer.cut(length)
        return not any("fail" in line or "outside" in line for line in lines)

    def reset(self) -> None:
        """Emit the reset of all cache variables for a new tuple."""
        self._writer.lines(*(f"{name} = {UNKNOWN}" for name in self._names.values()))

    def find_out(self, wanted: Mapping[int, str]) -> None:
        """Emit the evaluation of elements' questions, each under the condition given for the element."""
        with self._code.at(ElementPhase.ASKED):
            for question in dict.fromkeys(one.question for one in self.of):
                tests = [test for j, test in wanted.items() if self.of[j].question == question]
                if question and tests:
                    name = self._names[question]
                    with self._writer.deeper(f"if {name} == {UNKNOWN} and ({' or '.join(tests)}):"):
                        self._answer(question, name)

    def _holds(self, question: Conditions) -> str:
        return f"{self._names.setdefault(question, f'b{len(self._names)}')} == {HOLDS}"

    def _answer(self, question: Conditions, name: str) -> None:
        """Infer an outcome from known ones, or evaluate it."""
        writer = self._writer
        known = self._known(question)
        word = "if"
        for outcome, tests in ((HOLDS, known[True]), (FAILS, known[False])):
            if tests:
                with writer.deeper(f"{word} {' or '.join(tests)}:"):
                    writer.line(f"{name} = {outcome}")
                word = "elif"
        if word == "if":
            self._ask(question, name)
            return
        with writer.deeper("else:"):
            self._ask(question, name)

    def _ask(self, question: Conditions, name: str) -> None:
        self._code.count(question)
        tests = [self._code.expressions.truth(condition) for condition in question]
        self._writer.line(f"{name} = {HOLDS} if {' and '.join(tests)} else {FAILS}")

    def _known(self, question: Conditions) -> dict[Known, list[str]]:
        """Return tests of other outcomes from which this one follows, by its outcome."""
        tests: dict[Known, list[str]] = {True: [], False: [], None: []}
        for given, name in self._others(question):
            if_it_holds, if_it_fails = relation(given, question)
            tests[if_it_holds].append(f"{name} == {HOLDS}")
            tests[if_it_fails].append(f"{name} == {FAILS}")
        return tests

    def _others(self, question: Conditions) -> Iterable[tuple[Conditions, str]]:
        return ((given, name) for given, name in self._names.items() if self._ops and given != question)


@lru_cache(maxsize=4096)
def relation(given: Conditions, wanted: Conditions) -> tuple[Known, Known]:
    """Return the inferred outcome of ``wanted`` if ``given`` holds, and if it fails."""
    one, other = Question(given), Question(wanted)
    return when_it_holds(one, other), when_it_fails(one, other)
