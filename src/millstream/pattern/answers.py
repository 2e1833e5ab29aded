"""What concerns only a tuple and those before it is asked once for all attempts, and not if it is known.

Of two conditions one may say something about the other (``pattern.implications``): a price that falls does
not rise, and one above 10 is above 5. So what has been answered of a tuple answers the next condition, or
leaves less of it to be asked. In the paper's search the matrices theta and phi do this for one attempt by
what an older one has found; here attempts stand side by side, and all look at the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from millstream.pattern.conditions import own_tuple
from millstream.pattern.form import Pattern
from millstream.pattern.implications import Known, Question, implied, when_it_fails, when_it_holds
from millstream.pattern.surroundings import Doing, PatternCode
from millstream.uda.checked import Expr

Conditions = tuple[Expr, ...]
"""What is asked of a tuple together; a column says how far back its tuple is."""


@dataclass(frozen=True)
class Asked:
    """What an element asks: the name of the answer to one part, and conditions that are no part of it."""

    name: str
    rest: tuple[Expr, ...]


class Answers:
    """Names of generated source that say whether conditions hold for the tuple at hand.

    With ``ops`` what follows from earlier answers is not asked.
    """

    def __init__(self, code: PatternCode, *, ops: bool) -> None:
        self._code, self._writer, self._ops = code, code.writer, ops
        self._names: dict[Conditions, str] = {}

    def write(self, pattern: Pattern) -> list[Asked]:
        """Answer what the elements ask; what the first one does not ask only if there are attempts."""
        with self._code.at(Doing.ASKED):
            parts = [self._parted(pattern, j) for j in range(len(pattern.elements))]
            wanted = list(dict.fromkeys(plain for plain, _ in parts if plain))
            first = [plain for plain in wanted if plain == parts[0][0]]
            later = sorted((plain for plain in wanted if plain not in first), key=len)
            for plain in first:
                self._answer(plain)
            if later:
                self._writer.lines(*(f"b{len(first) + i} = False" for i in range(len(later))))
                with self._writer.deeper("if at_head[k] >= 0:"):
                    for plain in later:
                        self._answer(plain)
        return [Asked(self._names.get(plain, ""), rest) for plain, rest in parts]

    def _parted(self, pattern: Pattern, j: int) -> tuple[Conditions, tuple[Expr, ...]]:
        """What concerns the tuple and its predecessors only and cannot fail, and what else there is."""
        own = [(c, own_tuple(c, pattern, j)) for c in pattern.elements[j].per_tuple]
        plain = tuple(o for _, o in own if o is not None and self._is_safe(o))
        return plain, tuple(c for c, o in own if o is None or o not in plain)

    def _is_safe(self, condition: Expr) -> bool:
        """Whether a condition can be asked though nobody may want to know."""
        length = self._writer.length
        self._code.expressions.truth(condition)
        lines = self._writer.cut(length)
        return not any("fail[" in line or "outside" in line for line in lines)

    # ------------------------------------------------------------ one answer

    def _answer(self, plain: Conditions) -> None:
        writer, name = self._writer, f"b{len(self._names)}"
        holds, fails = self._known(plain)
        left = [c for c in plain if not any(follows(given, c) for given in self._given(plain))]
        self._names[plain] = name
        if set(holds) & {_opposite(test) for test in fails}:
            writer.line(f"{name} = {holds[0]}")
            return
        if not (holds or fails):
            writer.line(f"{name} = {self._asked(left)}")
            return
        writer.line(f"{name} = {' or '.join(holds) or 'False'}")
        with writer.deeper(f"if not ({' or '.join((*holds, *fails))}):"):
            writer.line(f"{name} = {self._asked(left)}")

    def _asked(self, conditions: Sequence[Expr]) -> str:
        return " and ".join(self._code.expressions.truth(c) for c in conditions) or "True"

    def _known(self, plain: Conditions) -> tuple[list[str], list[str]]:
        """By which answers conditions are known to hold, and by which to fail."""
        tests: dict[Known, list[str]] = {True: [], False: [], None: []}
        for given, name in self._names.items() if self._ops else ():
            if_it_holds, if_it_fails = relation(given, plain)
            tests[if_it_holds].append(name)
            tests[if_it_fails].append(_opposite(name))
        return tests[True], tests[False]

    def _given(self, plain: Conditions) -> Iterator[Conditions]:
        """Conditions that hold where it is asked: if they did not, the answer would be known."""
        for given in self._names if self._ops else ():
            if relation(given, plain)[1] is not None:
                yield given


def _opposite(test: str) -> str:
    return test.removeprefix("not ") if test.startswith("not ") else f"not {test}"


@lru_cache(maxsize=4096)
def relation(given: Conditions, wanted: Conditions) -> tuple[Known, Known]:
    """What is known of conditions if others hold, and if they do not."""
    one, other = Question(given), Question(wanted)
    return when_it_holds(one, other), when_it_fails(one, other)


@lru_cache(maxsize=4096)
def follows(given: Conditions, condition: Expr) -> bool:
    return implied(given, (condition,))
