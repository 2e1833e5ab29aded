"""What concerns only a tuple and those before it is asked once for all attempts, and not if it is known.

Of two conditions one may say something about the other (``pattern.implications``): a price that falls does
not rise, and one above 10 is above 5. So what has been answered of a tuple may answer the next condition. In
the paper's search the matrices theta and phi do this for one attempt by what an older one has found; here
attempts stand side by side, and all look at the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from millstream.pattern.conditions import own_tuple
from millstream.pattern.form import Pattern
from millstream.pattern.implications import Known, Question, when_it_fails, when_it_holds
from millstream.pattern.surroundings import Doing, PatternCode
from millstream.uda.checked import Expr

Conditions = tuple[Expr, ...]
"""What is asked of a tuple together; a column says how far back its tuple is."""

_UNKNOWN, _FAILS, _HOLDS = -1, 0, 1


@dataclass(frozen=True)
class Asked:
    """What an element asks: one part by the name of its answer, and the conditions that are no part of it."""

    name: str
    rest: tuple[Expr, ...]

    @property
    def holds(self) -> str:
        """A condition, once there is an answer."""
        return f"{self.name} == {_HOLDS}" if self.name else "True"


class Answers:
    """Names of generated source that have what is known of the tuple at hand.

    With ``ops`` one answer may give another.
    """

    def __init__(self, pattern: Pattern, code: PatternCode, *, ops: bool) -> None:
        self._code, self._writer, self._ops = code, code.writer, ops
        self._names: dict[Conditions, str] = {}
        with code.at(Doing.ASKED):
            asked = [self._asked(pattern, j) for j in range(len(pattern.elements))]
        self.of = asked
        """What each element asks."""

    def _asked(self, pattern: Pattern, j: int) -> Asked:
        """The part that concerns the tuple and its predecessors only, and cannot fail, has a name."""
        own = [(c, own_tuple(c, pattern, j)) for c in pattern.elements[j].per_tuple]
        plain = tuple(o for _, o in own if o is not None and self._is_safe(o))
        name = self._names.setdefault(plain, f"b{len(self._names)}") if plain else ""
        return Asked(name, tuple(c for c, o in own if o is None or o not in plain))

    def _is_safe(self, condition: Expr) -> bool:
        """Whether a condition comes out the same whoever asks: if it could fail, it would be somebody's."""
        length = self._writer.length
        self._code.expressions.truth(condition)
        lines = self._writer.cut(length)
        return not any("fail" in line or "outside" in line for line in lines)

    # ------------------------------------------------------------ asking

    def forget(self) -> None:
        """Another tuple comes."""
        self._writer.lines(*(f"{name} = {_UNKNOWN}" for name in self._names.values()))

    def find_out(self, wanted: Mapping[int, str]) -> None:
        """There are to be answers for elements, each if a condition holds."""
        with self._code.at(Doing.ASKED):
            for plain, name in self._names.items():
                tests = [test for j, test in wanted.items() if self.of[j].name == name]
                if tests:
                    with self._writer.deeper(f"if {name} == {_UNKNOWN} and ({' or '.join(tests)}):"):
                        self._answer(plain, name)

    def _answer(self, plain: Conditions, name: str) -> None:
        writer = self._writer
        known = self._known(plain)
        word = "if"
        for outcome, tests in ((_HOLDS, known[True]), (_FAILS, known[False])):
            if tests:
                with writer.deeper(f"{word} {' or '.join(tests)}:"):
                    writer.line(f"{name} = {outcome}")
                word = "elif"
        if word == "if":
            self._ask(plain, name)
            return
        with writer.deeper("else:"):
            self._ask(plain, name)

    def _ask(self, plain: Conditions, name: str) -> None:
        self._code.count(plain)
        tests = [self._code.expressions.truth(condition) for condition in plain]
        self._writer.line(f"{name} = {_HOLDS} if {' and '.join(tests)} else {_FAILS}")

    def _known(self, plain: Conditions) -> dict[Known, list[str]]:
        """By which answers conditions are known to hold, and by which to fail."""
        tests: dict[Known, list[str]] = {True: [], False: [], None: []}
        for given, name in self._others(plain):
            if_it_holds, if_it_fails = relation(given, plain)
            tests[if_it_holds].append(f"{name} == {_HOLDS}")
            tests[if_it_fails].append(f"{name} == {_FAILS}")
        return tests

    def _others(self, plain: Conditions) -> Iterable[tuple[Conditions, str]]:
        return ((given, name) for given, name in self._names.items() if self._ops and given != plain)


@lru_cache(maxsize=4096)
def relation(given: Conditions, wanted: Conditions) -> tuple[Known, Known]:
    """What is known of conditions if others hold, and if they do not."""
    one, other = Question(given), Question(wanted)
    return when_it_holds(one, other), when_it_fails(one, other)
