"""Searches as the papers have them: one attempt after the other over tuples that are all at hand.

The naive one begins again a tuple after the attempt that failed. OPS (ESL-TS section 6) goes on as the tables
shift and next say. Both are compiled loops over bare arrays of one partition, which they may go back in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from millstream.inference.ops_shift_next import Failure, facts_of, resumes
from millstream.ir import typed_nodes
from millstream.ir.pattern import End, Pattern, Place
from millstream.ir.typed_nodes import Expr
from millstream.types import DOUBLE

Columns = tuple[npt.NDArray[Any], ...]
Codes = dict[str, int]
"""Texts are numbers here: which one stands for which."""

_OPERATORS = {
    "=": "==",
    "<>": "!=",
    "and": "and",
    "or": "or",
    **{name: name for name in ("<", "<=", ">", ">=", "+", "-", "*")},
}


class Sequential:
    """Searches for a pattern; returns the bounds of matches, and the number of evaluations."""

    def __init__(self, form: Pattern, codes: Codes) -> None:
        self._functions = _functions(form, tuple(codes.items()))
        self._stars = np.array([element.star for element in form.elements])
        self._finals = np.array([bool(element.final) for element in form.elements])
        self._tables = _tables(form)

    def search(self, columns: Columns, *, ops: bool) -> tuple[npt.NDArray[np.int64], int]:
        asked = np.zeros(1, np.int64)
        found = np.empty((len(columns[0]) + 1, 2), np.int64)
        count = _search(
            columns, self._stars, self._finals, ops, *self._tables, found, asked, *self._functions
        )
        return found[:count], int(asked[0])


@lru_cache
def _functions(form: Pattern, codes: tuple[tuple[str, int], ...]) -> tuple[Callable[..., bool], ...]:
    """Compiled once, however often the pattern is searched for."""
    return _Source(form, dict(codes)).functions()


@numba.njit
def _search(columns, stars, finals, ops, spots, sizes, flags, found, asked, takes, completes, leads):  # type: ignore[no-untyped-def]  # pragma: no cover
    size, count = len(stars), len(columns[0])
    starts, others = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    # The present attempt: its elements so far, the next tuple, and known outcomes.
    known, at, is_complete, may_start = 1, 0, False, False
    free, matches = 0, 0
    while starts[0] < count:
        start = starts[0]
        left = stars[0] and not may_start and start > free
        failed = -2 if left and leads(columns, start - 1, asked) else -1
        element = known - 1
        while failed == -1 and element < size:
            if not is_complete:
                while at < count and takes(element, columns, starts, at, asked):
                    at += 1
                    if not stars[element]:
                        break
            is_complete = False
            if at == starts[element]:
                failed = 2 * element
                break
            starts[element + 1] = at
            if finals[element] and not completes(element, columns, starts, asked):
                failed = 2 * element + 1
                break
            element += 1
        known, is_complete, may_start = 1, False, False
        if failed == -1:
            found[matches, 0], found[matches, 1] = start, at
            matches += 1
            free = at
            starts[0] = at
        elif failed == -2 or not ops:
            at = start + 1
            starts[0] = at
        else:
            known = sizes[failed]
            for i in range(known + 1):
                others[i] = starts[spots[failed, i, 0]] + spots[failed, i, 1]
            starts[:known] = others[:known]
            at = others[known]
            is_complete, may_start = flags[failed, 0], flags[failed, 1]
    return matches


def _tables(form: Pattern) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Shift and next by failures: first tuples of elements, the tuple to test, and known outcomes."""
    count = 2 * len(form.elements)
    spots, sizes = np.zeros((count, len(form.elements) + 2, 2), np.int64), np.zeros(count, np.int64)
    flags = np.zeros((count, 2), np.bool_)
    for failure, resume in resumes(facts_of(form)).items():
        row = _number(failure)
        for i, spot in enumerate((*resume.starts, resume.offered)):
            spots[row, i] = spot.element, spot.after
        sizes[row] = len(resume.starts)
        flags[row] = resume.complete, resume.may_start
    return spots, sizes, flags


def _number(failure: Failure) -> int:
    return 2 * failure.element + failure.final


class _Source:
    """Conditions as Python that Numba compiles: comparisons of numbers, texts as codes, and counts.

    NULL comes only as the ``previous`` of a partition's first tuple, where a comparison does not hold.
    """

    def __init__(self, form: Pattern, codes: Codes) -> None:
        self._form, self._codes = form, codes
        self._element, self._final = 0, False

    def functions(self) -> tuple[Callable[..., bool], ...]:
        elements = self._form.elements
        lines = ["def takes(element, c, starts, at, asked):"]
        lines += self._cases([element.per_tuple for element in elements], final=False)
        lines += ["def completes(element, c, starts, asked):"]
        lines += self._cases([element.final for element in elements], final=True)
        lines += ["def leads(c, at, asked):"]
        leading = [c for c in elements[0].per_tuple if not _has_measures(c)]
        self._element, self._final = 0, False
        lines += [*self._tests(leading, "    "), "    return True"]
        made: dict[str, Any] = {}
        exec("\n".join(lines), made)
        return tuple(numba.njit(made[name]) for name in ("takes", "completes", "leads"))

    def _cases(self, conditions: list[tuple[Expr, ...]], *, final: bool) -> list[str]:
        lines = []
        for self._element, of_element in enumerate(conditions):
            self._final = final
            lines.append(f"    if element == {self._element}:")
            lines += [*self._tests(of_element, "        "), "        return True"]
        return [*lines, "    return True"]

    def _tests(self, conditions: Sequence[Expr], indent: str) -> list[str]:
        """Count conditions on the tuple and its predecessors as one evaluation, and the rest as another."""
        plain = [condition for condition in conditions if self._is_plain(condition)]
        lines = []
        for question in (plain, [condition for condition in conditions if condition not in plain]):
            if question:
                tests = " and ".join(f"({self._condition(condition)})" for condition in question)
                lines += [f"{indent}asked[0] += 1", f"{indent}if not ({tests}):"]
                lines.append(f"{indent}    return False")
        return lines

    def _is_plain(self, condition: Expr) -> bool:
        places = [self._form.places[column.scan] for column in _columns(condition)]
        own = all(place.element == self._element and place.end is End.NOW for place in places)
        return own and not self._final and not _has_measures(condition)

    def _condition(self, condition: Expr) -> str:
        places = {self._form.places[column.scan] for column in _columns(condition)}
        known = [f"{self._position(place)} >= 0" for place in sorted(places, key=str) if place.back]
        return " and ".join([*known, self._value(condition)])

    def _value(self, expr: Expr) -> str:
        match expr:
            case typed_nodes.Constant(str() as text):
                return str(self._codes.get(text, -1))
            case typed_nodes.Constant(Decimal() as number):
                return repr(float(number))
            case typed_nodes.Constant(number):
                return repr(number)
            case typed_nodes.Column(scan, index):
                return f"c[{index}][{self._position(self._form.places[scan])}]"
            case typed_nodes.Cast(argument, type_):
                value = self._value(argument)
                return f"float({value})" if type_ == DOUBLE else value
            case typed_nodes.GroupColumn(index):
                return self._counted(index)
            case typed_nodes.Call(name, (a, b)) if name in _OPERATORS:
                return f"({self._value(a)} {_OPERATORS[name]} {self._value(b)})"
        raise NotImplementedError(f"{expr} is not in the patterns of the papers")

    def _position(self, place: Place) -> str:
        element = place.element
        if place.end is End.FIRST:
            at = f"starts[{element}]"
        elif element == self._element and not self._final:
            at = "at"
        else:
            at = f"starts[{element + 1}] - 1"
        return f"{at} - {place.back}" if place.back else at

    def _counted(self, index: int) -> str:
        measure = self._form.measures[index]
        if measure.aggregation.name != "count":
            raise NotImplementedError(f"{measure.aggregation.name} is not in the patterns of the papers")
        element = measure.element
        if element == self._element and not self._final:
            return f"(at - starts[{element}] + 1)"
        return f"(starts[{element + 1}] - starts[{element}])"


def _columns(condition: Expr) -> list[typed_nodes.Column]:
    return [part for part in typed_nodes.walk(condition) if isinstance(part, typed_nodes.Column)]


def _has_measures(condition: Expr) -> bool:
    return any(isinstance(part, typed_nodes.GroupColumn) for part in typed_nodes.walk(condition))
