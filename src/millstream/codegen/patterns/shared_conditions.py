"""What several patterns ask in common: their questions as bits, and what an answer tells of the others.

Questions of different patterns are equal if they ask the same of the same columns, and one may follow from
another (``inference.implications``), whosever they are. So an answer is told with all that it says about the
questions of every pattern, which then need not be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from millstream.codegen.patterns.condition_cache import Conditions
from millstream.inference.condition_shape import with_columns
from millstream.inference.implications import Known, excluded, implied, impossible
from millstream.ir.typed_nodes import Column, walk

MOST = 31
"""So many questions fit a number with two bits for each."""

Questions = Sequence[Conditions]
"""What a pattern asks of tuples; columns have numbers that are the same for all patterns."""

Table = Sequence[Sequence[tuple[Known, Known]]]
"""What a question tells of each other one if it fails, and if it holds."""


@dataclass(frozen=True)
class SharedConditions:
    """The place of a pattern among those that have answers in common.

    There may be several such groups, if there are too many questions for one. ``numbers`` are those that its
    questions have in the ``group``. ``told`` has two numbers for each question of the group: what is known if
    it fails, and if it holds. Two bits of these say of a question that there is an answer, and that it holds.
    """

    group: int
    numbers: tuple[int, ...]
    told: tuple[int, ...]


def renumbered(questions: Questions, numbers: Mapping[int, int]) -> list[Conditions]:
    """Questions with other numbers for their columns."""
    return [
        with_columns(question, lambda column: replace(column, index=numbers[column.index]))
        for question in questions
    ]


def shared_conditions(patterns: Sequence[Questions], *, ops: bool = True) -> list[SharedConditions | None]:
    """For each of some patterns what it has in common with others, None if that is nothing.

    Without ``ops`` nothing is made of what follows from conditions; equal ones are asked once all the same.
    """
    found: list[SharedConditions | None] = [None] * len(patterns)
    for group, members in enumerate(_groups(patterns)):
        asked = _different(patterns[member] for member in members)
        table = follows(asked, ops=ops)
        told = _told(table)
        numbers = {
            member: tuple(asked.index(question) for question in patterns[member]) for member in members
        }
        for member, own in numbers.items():
            others = {number for other, theirs in numbers.items() if other != member for number in theirs}
            if any(table[a][b] != (None, None) for x in own for y in others for a, b in ((x, y), (y, x))):
                found[member] = SharedConditions(group, own, told)
    return found


def _different(patterns: Iterable[Questions]) -> list[Conditions]:
    return list(dict.fromkeys(question for questions in patterns for question in questions))


def _groups(patterns: Sequence[Questions]) -> list[list[int]]:
    """As many patterns in a group as there is room for their questions."""
    groups: list[tuple[list[int], set[Conditions]]] = []
    for number, questions in enumerate(patterns):
        fitting = (group for group in groups if len(group[1].union(questions)) <= MOST)
        members, asked = next(fitting, ([], set()))
        if not members and len(set(questions)) <= MOST:
            groups.append((members, asked))
        members.append(number)
        asked.update(questions)
    return [members for members, _ in groups]


# ---------------------------------------------------------------- what an answer tells


def follows(questions: Questions, *, ops: bool = True) -> Table:
    """What is known of each question if another fails, and if it holds."""
    table: list[list[tuple[Known, Known]]] = [[(None, None)] * len(questions) for _ in questions]
    for a, one in enumerate(questions):
        table[a][a] = False, True
        for b, other in enumerate(questions[:a]):
            table[a][b], table[b][a] = _both_ways(one, other, ops=ops)
    return table


def _both_ways(
    one: Conditions, other: Conditions, *, ops: bool
) -> tuple[tuple[Known, Known], tuple[Known, Known]]:
    """What one question tells of another if it fails and if it holds, and the other of the one."""
    # Without a column in common nothing follows, or it follows from nothing.
    is_near = ops and bool(_columns(one) & _columns(other))
    # Of what is asked together each must hold, however long the proof would be.
    implies = set(other) <= set(one) or (is_near and implied(one, other))
    is_implied = set(one) <= set(other) or (is_near and implied(other, one))
    one_fails = is_near and excluded(one, other)
    one_holds = is_near and impossible((), [one, other])

    def told(if_it_fails: bool, if_it_holds: bool) -> tuple[Known, Known]:
        fails: Known = False if if_it_fails else True if one_holds else None
        holds: Known = True if if_it_holds else False if one_fails else None
        return fails, holds

    return told(is_implied, implies), told(implies, is_implied)


def _columns(question: Conditions) -> set[int]:
    return {part.index for condition in question for part in walk(condition) if isinstance(part, Column)}


def _told(table: Table) -> tuple[int, ...]:
    told = []
    for question in range(len(table)):
        for outcome in (False, True):
            known = _all_known(question, outcome, table)
            told.append(sum((1 + 2 * holds) << 2 * number for number, holds in known.items()))
    return tuple(told)


def _all_known(question: int, outcome: bool, table: Table) -> dict[int, bool]:
    """By an answer, by what follows from it, and so on: a proof that is not found may have a detour."""
    known, fresh = {question: outcome}, [question]
    while fresh:
        given = fresh.pop()
        for other, told in enumerate(table[given]):
            found = told[known[given]]
            if found is not None and other not in known:
                known[other] = found
                fresh.append(other)
    return known
