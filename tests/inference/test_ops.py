"""Shift and next: the paper's example, and random patterns whose conditions are tables of truth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.inference.implications import Implications, Known
from millstream.inference.ops_shift_next import (
    Failure,
    PatternFacts,
    ResumePoint,
    TuplePosition,
    barren,
    kept_from,
    resume,
    resumes,
)

# ---------------------------------------------------------------- elements that ask for a letter


def letters(pattern: str) -> PatternFacts:
    """A pattern that asks for one letter after the other, as text search does; ``*`` before a star."""
    asked = [part for part in pattern if part != "*"]
    starred = [i > 0 and pattern[i - 1] == "*" for i in range(len(pattern)) if pattern[i] != "*"]
    wanted = [*asked, asked[0]]
    theta = tuple(tuple(a == b for b in wanted) for a in asked)
    phi = tuple(tuple(False if a == b else None for b in wanted) for a in asked)
    return PatternFacts(tuple(starred), (False,) * len(asked), Implications(theta, phi))


PAPER = "abcabcacab"
TEXT = "babcbabcabcaabcabcabcacabc"


def test_the_first_mismatch_of_the_paper() -> None:
    """t1..t3 are abc and t4 is not a: no attempt at t2, t3, and (KMP would ask) none at t4."""
    found = resume(Failure(3), letters(PAPER))
    assert (found.shift, found.next) == (4, 0)


def test_the_second_mismatch_of_the_paper() -> None:
    """The eighth letter fails; the first four are known to be there three further: p5 is compared next."""
    found = resume(Failure(7), letters(PAPER))
    assert (found.shift, found.next) == (3, 4)
    assert found.offered == Failure(7).spot


def test_all_of_the_paper() -> None:
    """OPS is ahead of KMP where the failure itself says something. The paper counts elements from 1."""
    table = resumes(letters(PAPER))
    assert [table[Failure(j)].shift for j in range(10)] == [1, 1, 2, 4, 4, 5, 7, 3, 9, 9]
    assert [table[Failure(j)].next for j in range(10)] == [0, 0, 0, 0, 0, 0, 0, 4, 0, 0]


def test_a_failure_that_satisfies_the_element_before_it_is_not_asked_again() -> None:
    """Of two tuples the second was no d but anything, which is what X wants: Y is asked of the third."""
    known = Implications(((True, None, True), (True, True, True)), ((True, None, True), (True, False, True)))
    found = resume(Failure(1), PatternFacts((False, False), (False, False), known))
    assert (found.starts, found.offered) == ((TuplePosition(1), TuplePosition(1, 1)), TuplePosition(1, 1))


# ---------------------------------------------------------------- stars


def falling_and_rising(stars: str, *, strictly: bool, finals: bool) -> PatternFacts:
    """``*W`` falls and ``*X`` rises: v and ^ for each element; <= and >= if not strictly."""
    wanted = [*stars, stars[0]]
    other = False if strictly else None
    theta = tuple(tuple(True if a == b else other for b in wanted) for a in stars)
    phi = tuple(tuple(False if a == b else None for b in wanted) for a in stars)
    return PatternFacts((True,) * len(stars), (finals,) * len(stars), Implications(theta, phi))


def test_a_double_bottom_goes_on_with_its_second_fall_as_the_first() -> None:
    facts = falling_and_rising("v^v^", strictly=True, finals=True)
    found = resume(Failure(3, final=True), facts)
    assert found == ResumePoint((TuplePosition(2),), TuplePosition(3), complete=True, may_start=True)
    # A fall that is too short: its end is where a rise begins, and nothing before can be the first fall.
    assert resume(Failure(2, final=True), facts) == ResumePoint(
        (TuplePosition(2),), TuplePosition(3), complete=True, may_start=True
    )
    assert resume(Failure(0, final=True), facts).starts == (TuplePosition(1, 1),)


def test_where_a_price_may_stay_both_falls_and_rises_may_begin_inside_a_rise() -> None:
    facts = falling_and_rising("v^v^", strictly=False, finals=True)
    assert resume(Failure(3, final=True), facts).starts == (TuplePosition(1, 1),)


def test_of_a_double_bottom_only_the_second_fall_and_what_follows_is_kept() -> None:
    facts = falling_and_rising("v^v^", strictly=True, finals=True)
    table = resumes(facts)
    assert [kept_from(element, facts, table) for element in range(4)] == [
        None,
        None,
        TuplePosition(2),
        TuplePosition(2),
    ]


def test_a_star_that_is_followed_by_its_opposite_keeps_nothing() -> None:
    """Example 1.2: pages that are no d, then a d."""
    known = Implications(
        ((True, False, True), (False, True, False)), ((False, None, False), (None, False, None))
    )
    facts = PatternFacts((True, False), (True, False), known)
    table = resumes(facts)
    assert table[Failure(0, final=True)].starts == (TuplePosition(1, 1),)
    assert [kept_from(element, facts, table) for element in range(2)] == [None, None]


def test_what_is_known_of_the_first_tuple_of_a_star_is_not_known_of_the_others() -> None:
    """``*A`` falls, ``*B`` does not, ``*C`` takes anything: its first tuple has ended B, and so falls."""
    theta = ((True, False, True, True), (False, True, True, False), (None, None, True, None))
    phi = ((False, True, True, False), (True, False, True, True), (False, False, False, False))
    facts = PatternFacts((True, True, True), (False, False, True), Implications(theta, phi))
    assert resume(Failure(2, final=True), facts) == ResumePoint(
        (TuplePosition(2),), TuplePosition(2), may_start=True
    )


# ---------------------------------------------------------------- tuples with which nothing begins


def test_where_no_letter_comes_twice_no_match_begins_inside_an_attempt() -> None:
    assert barren(letters("abc")) == {TuplePosition(0), TuplePosition(1), TuplePosition(2)}
    assert barren(letters("abac")) == {TuplePosition(0), TuplePosition(1), TuplePosition(3)}
    stars = {TuplePosition(element, after) for element in range(2) for after in range(2)}
    assert barren(letters("*a*bc")) == {*stars, TuplePosition(2)}


def test_no_double_bottom_begins_where_an_attempt_rises() -> None:
    """One may begin at any tuple of a fall: a match may have taken those before it."""
    rises = {TuplePosition(1), TuplePosition(1, 1), TuplePosition(3), TuplePosition(3, 1)}
    assert barren(falling_and_rising("v^v^", strictly=True, finals=True)) == {TuplePosition(0), *rises}
    assert barren(falling_and_rising("v^v^", strictly=False, finals=True)) == {
        TuplePosition(0),
        TuplePosition(1),
        TuplePosition(3),
    }


def test_nothing_begins_in_what_the_last_element_takes_if_that_makes_a_match() -> None:
    everything = Implications(((True, True, True),) * 2, ((False, False, False),) * 2)
    assert barren(PatternFacts((False, True), (False, False), everything)) == {
        TuplePosition(0),
        TuplePosition(1),
        TuplePosition(1, 1),
    }
    assert barren(PatternFacts((False, True), (False, True), everything)) == {TuplePosition(0)}


# ---------------------------------------------------------------- a search that uses them


@dataclass
class Searched:
    """A pattern over tuples of a few kinds.

    ``takes[e][kind]`` is what element e asks of a kind of tuple. ``whims`` are conditions that depend on the
    attempt, as aggregates and other elements do: by element, from the tuple, the start of the attempt, and
    how many tuples the star has.
    """

    stars: Sequence[bool]
    takes: Sequence[Sequence[bool]]
    whims: dict[int, Callable[[int, int, int], bool]]
    finals: dict[int, Callable[[int, int], bool]]
    tuples: Sequence[int]
    asked: int = 0
    matches: list[tuple[int, ...]] = field(default_factory=list)

    def takes_tuple(self, element: int, position: int, start: int, taken: int) -> bool:
        self.asked += 1
        whim = self.whims.get(element)
        local = self.takes[element][self.tuples[position]]
        return local and (whim is None or whim(position, start, taken))

    def reaches_left(self, start: int, consumed: int) -> bool:
        if not self.stars[0] or start <= consumed:
            return False
        self.asked += 1
        return self.takes[0][self.tuples[start - 1]]

    def search(self, table: dict[Failure, ResumePoint] | None = None) -> None:
        """All matches, each as the positions at which its elements start, and the one behind it."""
        size, consumed = len(self.tuples), 0
        resumed: tuple[list[int], int, bool, bool] = ([0], 0, False, False)
        while resumed[0][0] < size:
            starts, at, complete, may_start = resumed
            start = starts[0]
            if not may_start and self.reaches_left(start, consumed):
                resumed = ([start + 1], start + 1, False, False)
                continue
            failure = self.attempt(starts, at, complete)
            if failure is None:
                self.matches.append(tuple(starts))
                consumed = starts[-1]
                resumed = ([consumed], consumed, False, False)
            elif table is None:
                resumed = ([start + 1], start + 1, False, False)
            else:
                plan = table[failure]
                spots = [starts[spot.element] + spot.after for spot in (*plan.starts, plan.offered)]
                resumed = (spots[:-1], spots[-1], plan.complete, plan.may_start)

    def attempt(self, starts: list[int], at: int, complete: bool) -> Failure | None:
        """Go on with an attempt; ``starts`` grows, and has the tuple that was seen last in the end."""
        element = len(starts) - 1
        while element < len(self.stars):
            if not complete:
                while at < len(self.tuples) and self.takes_tuple(
                    element, at, starts[0], at - starts[element]
                ):
                    at += 1
                    if not self.stars[element]:
                        break
            complete = False
            if at == starts[element] or (not self.stars[element] and at > len(self.tuples)):
                return Failure(element)
            starts.append(at)
            final = self.finals.get(element)
            if final is not None:
                self.asked += 1
                if not final(starts[element], at):
                    return Failure(element, final=True)
            element += 1
        return None


def facts_of(searched: Searched, forgotten: Callable[[], bool]) -> PatternFacts:
    """Return the implications of the tables; some are dropped, as not all can be proved."""
    size, kinds = len(searched.stars), range(len(searched.takes[0]))
    wanted = [*searched.takes, searched.takes[0]]

    def known(given: list[int], other: int) -> Known:
        outcomes = {wanted[other][kind] for kind in given}
        whimsical = other in searched.whims
        if forgotten():
            return None
        if outcomes <= {False}:
            return False
        return True if outcomes == {True} and not whimsical else None

    theta, phi = [], []
    for element in range(size):
        taken = [kind for kind in kinds if searched.takes[element][kind]]
        refused = [kind for kind in kinds if not searched.takes[element][kind] or element in searched.whims]
        theta.append(tuple(known(taken, other) for other in range(size + 1)))
        phi.append(tuple(known(refused, other) for other in range(size + 1)))
    finals = tuple(element in searched.finals for element in range(size))
    return PatternFacts(tuple(searched.stars), finals, Implications(tuple(theta), tuple(phi)))


def a_whim(seed: int) -> Callable[[int, int, int], bool]:
    return lambda position, start, taken: random.Random(f"{seed} {position} {start} {taken}").random() < 0.7


def a_final(seed: int) -> Callable[[int, int], bool]:
    return lambda start, end: random.Random(f"{seed} {start} {end}").random() < 0.5


def drawn(dice: random.Random) -> tuple[Searched, PatternFacts]:
    """A pattern, tuples, and what is known of it."""
    kinds, size = dice.randint(2, 3), dice.randint(1, 5)
    stars = [dice.random() < 0.6 for _ in range(size)]
    takes = [[dice.random() < 0.6 for _ in range(kinds)] for _ in range(size)]
    whims = {e: a_whim(e) for e in range(size) if dice.random() < 0.2}
    finals = {e: a_final(e) for e in range(size) if stars[e] and dice.random() < 0.5}
    runs = [[dice.randrange(kinds)] * dice.choice([1, 1, 2, 3]) for _ in range(dice.randint(0, 30))]
    searched = Searched(stars, takes, whims, finals, [kind for run in runs for kind in run])
    forgotten = dice.choice([0, 0, 0.3])
    return searched, facts_of(searched, lambda: dice.random() < forgotten)


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32))
def test_the_search_finds_what_the_naive_search_finds_and_asks_no_more(seed: int) -> None:
    naive, facts = drawn(random.Random(seed))
    clever = Searched(naive.stars, naive.takes, naive.whims, naive.finals, naive.tuples)
    naive.search()
    clever.search(resumes(facts))
    assert clever.matches == naive.matches
    assert clever.asked <= naive.asked


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**32))
def test_no_match_begins_with_a_barren_tuple_of_an_attempt_that_fails(seed: int) -> None:
    searched, facts = drawn(random.Random(seed))
    nothing = barren(facts)
    attempts = [[start] for start in range(len(searched.tuples))]
    failures = [searched.attempt(starts, starts[0], complete=False) for starts in attempts]
    for starts, failure in zip(attempts, failures, strict=True):
        for element, (first, end) in enumerate(pairwise(starts) if failure else ()):
            for position in range(max(first, starts[0] + 1), end):
                if TuplePosition(element, min(position - first, 1)) in nothing:
                    assert failures[position] is not None


def test_the_search_asks_much_less_of_the_papers_text() -> None:
    takes = [[letter == wanted for letter in "abc"] for wanted in PAPER]
    tuples = ["abc".index(letter) for letter in TEXT]
    naive = Searched([False] * 10, takes, {}, {}, tuples)
    clever = Searched([False] * 10, takes, {}, {}, tuples)
    naive.search()
    clever.search(resumes(letters(PAPER)))
    assert clever.matches == naive.matches == [tuple(range(15, 26))]
    assert (naive.asked, clever.asked) == (48, 29)
