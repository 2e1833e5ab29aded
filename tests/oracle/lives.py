"""Lifetimes of rows in a result, as seen from outside: by the rows that enter and leave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

from hypothesis import strategies as st

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.nodes import Node, RelationToStream
from millstream.plan.relation_variance import CHANGES
from millstream.syntax import parse_script
from oracle import Arrivals, Row, run

SCRIPT = """
    CREATE STREAM a (k STRING, id INT, t INT) ORDER BY t;
    CREATE STREAM b (k STRING, id INT, t INT) ORDER BY t;
"""
Tuple = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Life:
    """A row of a result; what never leaves does so at the end of time."""

    row: tuple[Any, ...]
    enters: float
    leaves: float = inf


def tuples(first: int = 0) -> st.SearchStrategy[list[Tuple]]:
    """A small stream with ties and equal keys; its tuples are numbered from so many on."""
    steps = st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 3)), max_size=7)

    def numbered(drawn: list[tuple[str, int]]) -> list[Tuple]:
        time, made = 0, []
        for number, (key, step) in enumerate(drawn, first):
            time += step
            made.append({"k": key, "id": number, "t": time})
        return made

    return steps.map(numbered)


@cache
def planned(query: str) -> Node:
    """The plan of a query as it was written."""
    catalog = Catalog()
    *_, meaning = [analyse(statement, catalog).meaning for statement in parse_script(SCRIPT + query)]
    assert isinstance(meaning, RunQuery)
    return build(meaning.query)


def lives(query: str, a: Iterable[Tuple], b: Iterable[Tuple] = ()) -> list[Life]:
    """The lives of all rows of a query over windows."""
    inputs = {"a": Arrivals([[*map(Row, a)]]), "b": Arrivals([[*map(Row, b)]])}
    plan = planned(query)
    assert isinstance(plan, RelationToStream)
    begun: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    ended = []
    for result in run(RelationToStream(plan.input, CHANGES), inputs).rows:
        op, *values = result.values
        row, time = tuple(values), result.time
        assert isinstance(time, int)
        if op == "+":
            begun[row].append(time)
        else:
            # Of equal rows it does not matter which is which.
            ended.append(Life(row, begun[row].pop(0), time))
    return sorted([*ended, *(Life(row, time) for row, times in begun.items() for time in times)])


def spells(found: Iterable[Life], columns: int = 1) -> list[Life]:
    """From when to when there is any row that begins with the same values."""
    together: list[Life] = []
    for life in sorted(Life(life.row[:columns], life.enters, life.leaves) for life in found):
        if together and together[-1].row == life.row and life.enters <= together[-1].leaves:
            last = together[-1]
            together[-1] = Life(last.row, last.enters, max(last.leaves, life.leaves))
        else:
            together.append(life)
    return together


def until(time: float, *streams: Sequence[Tuple]) -> list[list[Tuple]]:
    """Streams as they were at an instant."""
    return [[one for one in stream if one["t"] <= time] for stream in streams]
