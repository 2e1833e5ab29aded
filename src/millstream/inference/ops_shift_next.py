"""After a failure: which attempts need not be made, and what need not be asked again (OPS, ESL-TS section 6).

The paper's shift(j) says how far the next attempt starts behind one that has failed at element j, and next(j)
at which element it goes on, because everything before is known to hold. With stars nobody knows how many
tuples an element has taken, so positions are counted in elements here: a *spot* is the first tuple that was
offered to an element of the failed attempt, or the one after it.

What is known of a tuple is which element has taken it, which one has refused it, and what follows from that
(``inference.implications``). An attempt is tried out on this knowledge: wherever something is not known, both
ways are followed. If all of them fail before they come to a tuple that has not been seen, the attempt is not
made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.inference.implications import Implications, Known, implications
from millstream.ir.pattern import Pattern


@dataclass(frozen=True, order=True)
class TuplePosition:
    """A tuple by the failed attempt: the first that was offered to an element, or so many after it.

    The tuple at which the attempt failed has a spot too: it was offered to the element that did not take it,
    or it has ended the star whose final conditions failed, and so was the first for the element after it.
    """

    element: int
    after: int = 0


@dataclass(frozen=True)
class Failure:
    """Where an attempt fails: an element does not take a tuple, or a complete star is not as wanted."""

    element: int
    final: bool = False

    @property
    def spot(self) -> TuplePosition:
        """The tuple that was seen last."""
        return TuplePosition(self.element + self.final)


@dataclass(frozen=True)
class ResumePoint:
    """How the search goes on: the next attempt, as far as it is known already.

    ``starts`` are the first tuples of its elements, up to the one that is asked next, and ``offered`` is the
    tuple to ask about. What lies between has been taken by that element, a star, which is ``complete`` if it
    is known that it does not take the tuple.
    """

    starts: tuple[TuplePosition, ...]
    offered: TuplePosition
    complete: bool = False
    may_start: bool = False
    """It is known that no leading star reaches further to the left: it need not be asked."""

    @property
    def shift(self) -> int:
        """Elements of the failed attempt that lie before the next one, whole or in part."""
        return self.starts[0].element + min(self.starts[0].after, 1)

    @property
    def next(self) -> int:
        """The element that is asked."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class PatternFacts:
    """What the search may know of a pattern: its shape, and what follows from the conditions."""

    stars: tuple[bool, ...]
    finals: tuple[bool, ...]
    known: Implications

    def failures(self) -> Iterator[Failure]:
        """Where attempts can fail."""
        for element, final in enumerate(self.finals):
            yield Failure(element)
            if final:
                yield Failure(element, final=True)


def facts_of(form: Pattern) -> PatternFacts:
    stars = tuple(element.star for element in form.elements)
    return PatternFacts(stars, tuple(bool(element.final) for element in form.elements), implications(form))


def resumes(facts: PatternFacts) -> dict[Failure, ResumePoint]:
    """The tables shift and next: how the search goes on after each failure."""
    return {failure: resume(failure, facts) for failure in facts.failures()}


def resume(failure: Failure, facts: PatternFacts) -> ResumePoint:
    """How the search goes on after a failure."""
    history = _History(failure, facts)
    for start in history.starts():
        if not history.cannot_start(start) and history.can_succeed(start):
            return history.resumed(start)
    return ResumePoint((history.beyond,), history.beyond)


class _History:
    """What a failed attempt knows of the tuples that it has seen.

    Spots stand for kinds of tuples here: ``TuplePosition(e, 1)`` is any tuple but the first that star e has
    taken.
    """

    def __init__(self, failure: Failure, facts: PatternFacts) -> None:
        self._facts = facts
        self._failed = failure.spot
        self.beyond = TuplePosition(self._failed.element, 1)
        self._refused = () if failure.final else (failure.element,)

    def starts(self) -> Iterator[TuplePosition]:
        """Where later attempts start, in their order."""
        for element in range(self._failed.element):
            if element:
                yield TuplePosition(element)
            if self._facts.stars[element]:
                yield TuplePosition(element, 1)
        if self._failed.element:
            yield self._failed

    def fertile(self) -> Iterator[TuplePosition]:
        """Tuples that the failed attempt has taken, with which one can begin that may succeed."""
        return (start for start in self.starts() if start != self._failed and self.can_succeed(start))

    def _after(self, position: TuplePosition) -> list[TuplePosition]:
        """Which tuples may come next."""
        if position == self._failed:
            return [self.beyond]
        following = [TuplePosition(position.element + 1)]
        return (
            [TuplePosition(position.element, 1), *following]
            if self._facts.stars[position.element]
            else following
        )

    def _before(self, position: TuplePosition) -> list[TuplePosition]:
        """Which tuples may have come before."""
        element = position.element if position.after else position.element - 1
        return (
            [TuplePosition(element), TuplePosition(element, 1)]
            if self._facts.stars[element]
            else [TuplePosition(element)]
        )

    def _holds(self, position: TuplePosition, wanted: int) -> Known:
        """Whether an element takes a tuple, or (the last column) no attempt starts behind it."""
        theta, phi = self._facts.known.theta, self._facts.known.phi
        said = [] if position == self._failed else [theta[position.element][wanted]]
        refused = list(self._refused) if position == self._failed else []
        if position.element and not position.after and self._facts.stars[position.element - 1]:
            refused.append(position.element - 1)
        said += [phi[element][wanted] for element in refused]
        return next((known for known in said if known is not None), None)

    # ------------------------------------------------------------ whether

    def cannot_start(self, position: TuplePosition) -> bool:
        """Whether a leading star would surely have to start further to the left."""
        return self._left(position) == {True}

    def _left(self, position: TuplePosition) -> set[Known]:
        if not self._facts.stars[0]:
            return {False}
        return {self._holds(before, len(self._facts.stars)) for before in self._before(position)}

    def can_succeed(self, start: TuplePosition) -> bool:
        """Whether an attempt may come to a tuple that nobody has seen, or to its end."""
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
        """An attempt as far as everything is known, its last element left to be asked."""
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
        """Whether a star takes all tuples that an element of the failed attempt has taken."""
        star = position != self._failed and self._facts.stars[position.element]
        return not star or self._holds(TuplePosition(position.element, 1), element) is True


def barren(facts: PatternFacts) -> frozenset[TuplePosition]:
    """Tuples of an attempt with which no match can begin, however the attempt will fail.

    That a leading star is maximal on the left is no reason here: a match may have taken the tuple before.
    """
    spots = {
        TuplePosition(element, after) for element, star in enumerate(facts.stars) for after in range(1 + star)
    }
    histories = [_History(failure, facts) for failure in facts.failures()]
    return frozenset(spots) - {start for history in histories for start in history.fertile()}


def kept_from(element: int, facts: PatternFacts, table: dict[Failure, ResumePoint]) -> TuplePosition | None:
    """The first tuple seen that a later attempt may start with, while an element is asked, or None.

    Tuples before it are no longer needed, but for what conditions and results say of them.
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
