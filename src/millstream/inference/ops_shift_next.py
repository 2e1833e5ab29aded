"""Tables shift and next of the OPS search: the attempts to skip after a failure (ESL-TS section 6).

The paper's shift(j) is the distance from an attempt that failed at element j to the next one, and next(j) the
element at which that one resumes, because all before it is known to hold. With stars the number of tuples of
an element is unknown, so positions are counted in elements: a *spot* is the first tuple offered to an element
of the failed attempt, or the one after it.

Known of a tuple are the element that took it, the element that refused it, and the implications of both
(``inference.implications``). An attempt is simulated on this knowledge, with both outcomes where one is
unknown. If all branches fail before an unseen tuple, the attempt is skipped.

EXPLAIN PATTERN prints the tables. The generated search (``codegen/patterns/matcher_emitter.py``) uses what
they are made of: it does not begin attempts that are known to fail, and ``condition_cache`` keeps outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.inference.implications import Implications, Known, implications
from millstream.ir.pattern import Pattern


@dataclass(frozen=True, order=True)
class TuplePosition:
    """A tuple of the failed attempt: the first offered to an element, or ``after`` tuples later.

    The tuple of the failure has a position too: the element that refused it, or the element after a star
    whose final conditions failed.
    """

    element: int
    after: int = 0


@dataclass(frozen=True)
class Failure:
    """The point of a failure: an element refuses a tuple, or final conditions of a star fail."""

    element: int
    final: bool = False

    @property
    def spot(self) -> TuplePosition:
        """The last tuple seen."""
        return TuplePosition(self.element + self.final)


@dataclass(frozen=True)
class ResumePoint:
    """The next attempt, as far as it is known.

    ``starts`` are the first tuples of its elements up to the current one, and ``offered`` is the tuple to
    evaluate next. The tuples between belong to the current element, a star, which is ``complete`` if it is
    known to refuse the tuple.
    """

    starts: tuple[TuplePosition, ...]
    offered: TuplePosition
    complete: bool = False
    may_start: bool = False
    """True if a leading star is known not to reach further to the left."""

    @property
    def shift(self) -> int:
        """The number of elements of the failed attempt before the next one, whole or in part."""
        return self.starts[0].element + min(self.starts[0].after, 1)

    @property
    def next(self) -> int:
        """The element to evaluate."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class PatternFacts:
    """The shape of a pattern, and the implications between its conditions."""

    stars: tuple[bool, ...]
    finals: tuple[bool, ...]
    known: Implications

    def failures(self) -> Iterator[Failure]:
        """Yield the points at which attempts can fail."""
        for element, final in enumerate(self.finals):
            yield Failure(element)
            if final:
                yield Failure(element, final=True)


def facts_of(form: Pattern) -> PatternFacts:
    stars = tuple(element.star for element in form.elements)
    return PatternFacts(stars, tuple(bool(element.final) for element in form.elements), implications(form))


def resumes(facts: PatternFacts) -> dict[Failure, ResumePoint]:
    """Return the resume point after each failure: the tables shift and next."""
    return {failure: resume(failure, facts) for failure in facts.failures()}


def resume(failure: Failure, facts: PatternFacts) -> ResumePoint:
    """Return the resume point after a failure."""
    history = _History(failure, facts)
    for start in history.starts():
        if not history.cannot_start(start) and history.can_succeed(start):
            return history.resumed(start)
    return ResumePoint((history.beyond,), history.beyond)


class _History:
    """The knowledge of a failed attempt about the tuples that it has seen.

    Spots stand for kinds of tuples here: ``TuplePosition(e, 1)`` is any tuple but the first that star e has
    taken.
    """

    def __init__(self, failure: Failure, facts: PatternFacts) -> None:
        self._facts = facts
        self._failed = failure.spot
        self.beyond = TuplePosition(self._failed.element, 1)
        self._refused = () if failure.final else (failure.element,)

    def starts(self) -> Iterator[TuplePosition]:
        """Yield the starts of later attempts, in order."""
        for element in range(self._failed.element):
            if element:
                yield TuplePosition(element)
            if self._facts.stars[element]:
                yield TuplePosition(element, 1)
        if self._failed.element:
            yield self._failed

    def fertile(self) -> Iterator[TuplePosition]:
        """Yield the tuples of the failed attempt with which an attempt that may succeed can start."""
        return (start for start in self.starts() if start != self._failed and self.can_succeed(start))

    def _after(self, position: TuplePosition) -> list[TuplePosition]:
        """Return the tuples that may come next."""
        if position == self._failed:
            return [self.beyond]
        following = [TuplePosition(position.element + 1)]
        return (
            [TuplePosition(position.element, 1), *following]
            if self._facts.stars[position.element]
            else following
        )

    def _before(self, position: TuplePosition) -> list[TuplePosition]:
        """Return the tuples that may have come before."""
        element = position.element if position.after else position.element - 1
        return (
            [TuplePosition(element), TuplePosition(element, 1)]
            if self._facts.stars[element]
            else [TuplePosition(element)]
        )

    def _holds(self, position: TuplePosition, wanted: int) -> Known:
        """Return the known outcome of an element for a tuple; the last column is that of the leading star."""
        theta, phi = self._facts.known.theta, self._facts.known.phi
        said = [] if position == self._failed else [theta[position.element][wanted]]
        refused = list(self._refused) if position == self._failed else []
        if position.element and not position.after and self._facts.stars[position.element - 1]:
            refused.append(position.element - 1)
        said += [phi[element][wanted] for element in refused]
        return next((known for known in said if known is not None), None)

    # ------------------------------------------------------------ whether

    def cannot_start(self, position: TuplePosition) -> bool:
        """Return True if a leading star provably starts further to the left."""
        return self._left(position) == {True}

    def _left(self, position: TuplePosition) -> set[Known]:
        if not self._facts.stars[0]:
            return {False}
        return {self._holds(before, len(self._facts.stars)) for before in self._before(position)}

    def can_succeed(self, start: TuplePosition) -> bool:
        """Return True if an attempt may reach an unseen tuple or its end."""
        open_, seen = [(start, 0, False)], set()
        while open_:
            state = open_.pop()
            if state in seen:
                continue
            seen.add(state)
            spot, element, taken = state
            if spot == self.beyond or element == len(self._facts.stars):
                return True
            star, known = self._facts.stars[element], self._holds(spot, element)
            if known is not False:
                open_ += [(after, element + (not star), star) for after in self._after(spot)]
            if known is not True and taken:
                open_.append((spot, element + 1, False))
        return False

    # ------------------------------------------------------------ how

    def resumed(self, start: TuplePosition) -> ResumePoint:
        """Return an attempt as far as it is known, with the last element to be evaluated."""
        stars, last = self._facts.stars, len(self._facts.stars) - 1
        may_start = self._left(start) == {False}
        starts, spot, element = [start], start, 0
        while spot != self.beyond and not spot.after:
            known = self._holds(spot, element)
            if known and stars[element] and self._whole(spot, element):
                spot = self._after(spot)[-1]
            elif known and not stars[element] and element < last:
                # Of a star only the first tuple: whichever comes next, it is the one after that.
                spot = self._after(spot)[0]
                element += 1
                starts.append(spot)
            elif known is False and (self._facts.finals[element] or element == last):
                return ResumePoint(tuple(starts), spot, complete=True, may_start=may_start)
            elif known is False:
                element += 1
                starts.append(spot)
            else:
                break
        return ResumePoint(tuple(starts), spot, may_start=may_start)

    def _whole(self, position: TuplePosition, element: int) -> bool:
        """Return True if a star takes all tuples of an element of the failed attempt."""
        star = position != self._failed and self._facts.stars[position.element]
        return not star or self._holds(TuplePosition(position.element, 1), element) is True


def barren(facts: PatternFacts) -> frozenset[TuplePosition]:
    """Return the tuples of an attempt with which no match can start if the attempt fails.

    The rule that a leading star is maximal on the left is not used: a match may have taken the tuple before.
    """
    spots = {
        TuplePosition(element, after) for element, star in enumerate(facts.stars) for after in range(1 + star)
    }
    histories = [_History(failure, facts) for failure in facts.failures()]
    return frozenset(spots) - {start for history in histories for start in history.fertile()}


def kept_from(element: int, facts: PatternFacts, table: dict[Failure, ResumePoint]) -> TuplePosition | None:
    """Return the first tuple with which a later attempt may start during an element, or None.

    Tuples before it are needed only by conditions and results that refer to them.
    """
    later = [
        resume.starts[0]
        for failure, resume in table.items()
        if failure.element > element
        or (failure.element == element and (failure.final or resume.starts[0] < failure.spot))
    ]
    first = min(later, default=TuplePosition(len(facts.stars)))
    grows = facts.stars[element] and first.element == element
    return first if first < TuplePosition(element) or grows else None
