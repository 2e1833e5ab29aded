"""What concerns only a tuple and those before it is asked once for all attempts, and not if it is known.

Of two conditions one may say something about the other (``inference.implications``): a price that falls does
not rise, and one above 10 is above 5. So what has been answered of a tuple may answer the next condition. In
the paper's search the matrices theta and phi do this for one attempt by what an older one has found; here
attempts stand side by side, and all look at the same answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from millstream.codegen.patterns.pattern_scope import ElementPhase, PatternScope
from millstream.inference.condition_shape import own_tuple
from millstream.inference.implications import Known, Question, when_it_fails, when_it_holds
from millstream.ir.pattern import Pattern
from millstream.ir.typed_nodes import Expr

Conditions = tuple[Expr, ...]
"""What is asked of a tuple together; a column says how far back its tuple is."""

UNKNOWN, FAILS, HOLDS = -1, 0, 1
"""What the name of an answer has."""


@dataclass(frozen=True)
class ElementQuestion:
    """What an element asks: a question of its own, and the conditions that are no part of it.

    ``holds`` is a condition of generated source, once there is an answer.
    """

    question: Conditions
    rest: tuple[Expr, ...]
    holds: str


class ConditionCache(ABC):
    """What is known of the tuple at hand, in generated source."""

    def __init__(self, pattern: Pattern, code: PatternScope) -> None:
        self._code, self._writer = code, code.writer
        with code.at(ElementPhase.ASKED):
            asked = [self._asked(pattern, j) for j in range(len(pattern.elements))]
        self.of = asked
        """What each element asks."""

    def _asked(self, pattern: Pattern, j: int) -> ElementQuestion:
        """The part that concerns the tuple and its predecessors only, and cannot fail, is a question."""
        own = [(c, own_tuple(c, pattern, j)) for c in pattern.elements[j].per_tuple]
        question = tuple(o for _, o in own if o is not None and self._is_safe(o))
        rest = tuple(c for c, o in own if o is None or o not in question)
        return ElementQuestion(question, rest, self._holds(question) if question else "True")

    def _is_safe(self, condition: Expr) -> bool:
        """Whether a condition comes out the same whoever asks: if it could fail, it would be somebody's."""
        length = self._writer.length
        self._code.expressions.truth(condition)
        lines = self._writer.cut(length)
        return not any("fail" in line or "outside" in line for line in lines)

    def find_out(self, wanted: Mapping[int, str]) -> None:
        """There are to be answers for elements, each if a condition holds."""
        with self._code.at(ElementPhase.ASKED):
            for question in dict.fromkeys(asked.question for asked in self.of):
                tests = [test for j, test in wanted.items() if self.of[j].question == question]
                if question and tests:
                    self._find_out(question, " or ".join(tests))

    @abstractmethod
    def begin(self) -> None:
        """Tuples are to come."""

    @abstractmethod
    def look_up(self) -> None:
        """Another tuple comes."""

    @abstractmethod
    def put_down(self) -> None:
        """The tuple has been looked at."""

    @abstractmethod
    def _holds(self, question: Conditions) -> str:
        """A condition, once there is an answer."""

    @abstractmethod
    def _find_out(self, question: Conditions, wanted: str) -> None:
        """There is to be an answer, if a condition holds."""


class OwnConditionCache(ConditionCache):
    """The answers of a search by itself: each has a name. With ``ops`` one may give another."""

    def __init__(self, pattern: Pattern, code: PatternScope, *, ops: bool) -> None:
        self._ops = ops
        self._names: dict[Conditions, str] = {}
        super().__init__(pattern, code)

    def begin(self) -> None:
        """Names are enough."""

    def put_down(self) -> None:
        """Nobody else wants to know."""

    def look_up(self) -> None:
        self._writer.lines(*(f"{name} = {UNKNOWN}" for name in self._names.values()))

    def _holds(self, question: Conditions) -> str:
        return f"{self._names.setdefault(question, f'b{len(self._names)}')} == {HOLDS}"

    def _find_out(self, question: Conditions, wanted: str) -> None:
        name = self._names[question]
        with self._writer.deeper(f"if {name} == {UNKNOWN} and ({wanted}):"):
            self._answer(question, name)

    def _answer(self, question: Conditions, name: str) -> None:
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
        """By which answers a question is known to hold, and by which to fail."""
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
    """What is known of conditions if others hold, and if they do not."""
    one, other = Question(given), Question(wanted)
    return when_it_holds(one, other), when_it_fails(one, other)
