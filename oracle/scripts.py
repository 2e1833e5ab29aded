"""Scripts for tests: declarations and queries as text, answers by name."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.analysis.definitions.statement_analyzer import InsertQuery, RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.syntax import parse_script
from oracle.inputs import Input
from oracle.interpreter import Answer, run


def answers(script: str, inputs: Mapping[str, Input], *, ended: bool = True) -> dict[str, Answer]:
    """Return the answer to each query of a script, from its unoptimized plan.

    Bare SELECTs are called q1, q2, ... in order; queries into a sink are named after the sink.
    """
    catalog = Catalog()
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(script)]
    results: dict[str, Answer] = {}
    bare = 0
    for meaning in meanings:
        if not isinstance(meaning, RunQuery | InsertQuery):
            continue
        bare += isinstance(meaning, RunQuery)
        name = meaning.sink.name if isinstance(meaning, InsertQuery) else f"q{bare}"
        results[name] = run(build(meaning.query), inputs, ended=ended, catalog=catalog)
    return results


def answer(script: str, inputs: Mapping[str, Input], *, ended: bool = True) -> Answer:
    """Return the answer to the only query of a script.

    >>> from oracle import Arrivals, Row
    >>> bids = Arrivals([[Row({"price": 9, "t": 1}), Row({"price": 4, "t": 2}), Row({"price": 7, "t": 2})]])
    >>> answer('''
    ...     CREATE STREAM bid (price INT, t INT) ORDER BY t;
    ...     SELECT price, sum(price) OVER (ROWS 1 PRECEDING) FROM bid;
    ... ''', {"bid": bids}).values
    [(9, 9), (4, 13), (7, 11)]
    """
    [only] = answers(script, inputs, ended=ended).values()
    return only
