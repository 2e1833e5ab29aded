"""Generated queries are ESL and can be interpreted, and the definitions are consistent."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.syntax import parse_script
from oracle import Answer, Arrivals, Input, Overflow, Row, answers, run
from oracle.values.values import same_key
from tests.oracle.generate import ALL_TIME_TYPES, Case, StreamDeclaration, script_and_inputs
from tests.oracle.queries import KINDS, PATTERN_KINDS

ALL_KINDS = (*KINDS, *PATTERN_KINDS)

# A fifth of the profile's examples, since each of them is a whole script.
SOME = settings(
    max_examples=max(1, settings.default.max_examples // 5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def interpreted(
    case: Case, inputs: dict[str, Input] | None = None, *, ended: bool = True
) -> dict[str, Answer]:
    """The answers to a case, unless a value is too large for it."""
    try:
        return answers(case.script, case.inputs if inputs is None else inputs, ended=ended)
    except Overflow:
        assume(False)
        raise


def rows(answer: Answer) -> Counter[object]:
    return Counter((row.time, same_key(row.values)) for row in answer.rows)


@SOME
@given(script_and_inputs(kinds=ALL_KINDS, everything=True, time_types=ALL_TIME_TYPES))
def test_everything_generated_is_analysed_and_interpreted(case: Case) -> None:
    try:
        found = answers(case.script, case.inputs)
    except Overflow:
        return
    assert list(found) == [f"q{i + 1}" for i in range(len(case.queries))]
    for answer in found.values():
        assert [row.time is None for row in answer.rows].count(True) in (0, len(answer.rows))
        if answer.rows and answer.rows[0].time is not None:
            places = [(row.time, row.order) for row in answer.rows]
            assert places == sorted(places)


@SOME
@given(script_and_inputs(kinds=ALL_KINDS, everything=True, time_types=ALL_TIME_TYPES), st.data())
def test_what_is_final_never_changes(case: Case, data: st.DataObject) -> None:
    """The answer to a beginning of the input that has not ended is part of the answer to all of it."""
    beginning = dict(case.inputs)
    for name, given_ in case.inputs.items():
        if isinstance(given_, Arrivals):
            cuts = [data.draw(st.integers(0, len(partition))) for partition in given_.partitions]
            beginning[name] = Arrivals([p[:cut] for p, cut in zip(given_.partitions, cuts, strict=True)])
    whole = interpreted(case)
    for name, part in interpreted(case, beginning, ended=False).items():
        assert rows(part) <= rows(whole[name])


@SOME
@given(
    script_and_inputs(
        kinds=["chain", "union", "join", "pattern chain"], everything=True, time_types=ALL_TIME_TYPES
    )
)
def test_rewrites_change_nothing(case: Case) -> None:
    written = interpreted(case)
    catalog = Catalog()
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(case.script)]
    queries = [meaning.query for meaning in meanings if isinstance(meaning, RunQuery)]
    for query, answer in zip(queries, written.values(), strict=True):
        rewritten = run(optimize(build(query)), case.inputs, catalog=catalog)
        assert [(r.time, same_key(r.values), r.order) for r in rewritten.rows] == [
            (r.time, same_key(r.values), r.order) for r in answer.rows
        ]


@SOME
@given(script_and_inputs(kinds=["transducer"], promises=["none", "slack", "slack rows", "ordered per"]))
def test_every_tuple_goes_somewhere(case: Case) -> None:
    script = f"{case.declarations[0].text()}; SELECT k FROM s"
    [answer] = answers(script, case.inputs).values()
    arrivals = case.inputs["s"]
    assert isinstance(arrivals, Arrivals)
    tuples = [a for partition in arrivals.partitions for a in partition if hasattr(a, "values")]
    assert len(answer.rows) + len(answer.late["s"]) + len(answer.bad["s"]) == len(tuples)


@SOME
@given(script_and_inputs(kinds=["pattern table"], time_types=ALL_TIME_TYPES))
def test_a_table_gives_what_its_rows_give_as_a_stream(case: Case) -> None:
    query = re.sub("SEQUENCE BY [tv, ]+ AS", "SEQUENCE BY t AS", case.queries[0])
    rows = [row for row in case.inputs["s"] if isinstance(row, dict) and row["t"] is not None]
    on_table = interpreted(replace(case, queries=(query,)), {"s": rows})["q1"]
    stream = StreamDeclaration("s", case.declarations[0].columns, "ORDER BY t", "")
    arrivals = [Row(row) for row in sorted(rows, key=lambda row: row["t"])]
    on_stream = answers(f"{stream.text()}; {query}", {"s": Arrivals([arrivals])})["q1"]
    assert Counter(map(same_key, on_stream.values)) == Counter(map(same_key, on_table.values))


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_each_kind_of_query_gives_rows(kind: str, everything: bool) -> None:
    """A generator that only made empty answers would prove nothing."""
    seen = Counter[bool]()

    # Many patterns are never found.
    some = 200 if kind in PATTERN_KINDS else 10

    @settings(max_examples=some, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(script_and_inputs(kinds=[kind], everything=everything))
    def count(case: Case) -> None:
        if seen[True]:
            return
        found = interpreted(case)
        seen[any(answer.rows for answer in found.values())] += 1

    count()
    assert seen[True] > 0
