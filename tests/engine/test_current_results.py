"""The materialized result of a query agrees with the oracle at every instant.

Changes come out of the engine's own plan, lowering and kernels, through several shards; rows that leave are
found again by their identities. A row that took the identity of another one would be lost.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millstream.analysis.definitions.statement_analyzer import Definition, RunQuery, analyse
from millstream.catalog import Catalog
from millstream.kernels.column_names import ID, ID2, OP
from millstream.kernels.core import state_chunks
from millstream.plan import nodes
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from millstream.plan.relation_variance import VIEW
from millstream.plan.views import build_view
from millstream.runtime.results.materialized_result import MaterializedResult
from millstream.spark.sources.hidden_columns import TIME, hidden, sort_keys
from millstream.syntax import parse_script
from oracle import Arrivals, Input, Row
from oracle import run as interpreted
from oracle.values.values import same_key
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import SEEDS, STREAMS, arrivals, planned, runnable
from tests.oracle.generate import Case


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def compare(
    view: nodes.RelationToStream,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: simulated.Course | None = None,
) -> None:
    """Applies the changes of a view, and compares the result after each instant."""
    asked = interpreted(replace(view, kind=VIEW), inputs)
    changes = simulated.changes(optimize(view) if chance.random() < 0.6 else view, inputs, chance, course)
    kept = MaterializedResult(
        changes.schema, sort_keys(changes.column_names), (OP, ID, ID2), hidden(changes.column_names)
    )
    expected: dict[Any, Counter[Any]] = {}
    rows: Counter[Any] = Counter()
    values: dict[Any, tuple[Any, ...]] = {}
    initial: Counter[Any] = Counter()
    """Rows that are there before the first instant."""
    for row in asked.rows:
        op, *columns = row.values
        key = same_key(columns)
        values[key] = tuple(columns)
        rows[key] += 1 if op == "+" else -1
        if row.order[0] >= 0:
            expected[row.time] = +rows
        else:
            initial[key] += 1
    times = sorted({*expected, *changes[TIME].to_pylist()})
    before = initial
    for number, time in enumerate(times):
        kept.apply(number, changes.filter(pc.equal(changes[TIME], pa.scalar(time, changes[TIME].type))))
        before = expected.get(time, before)
        shown = kept.snapshot()
        same(
            list(zip(*(column.to_pylist() for column in shown.columns), strict=True)),
            [values[key] for key in before.elements()],
        )


def view_of(script: str) -> nodes.RelationToStream:
    """The plan of the view, or of the query, that a script ends with."""
    catalog = Catalog()
    found = None
    for statement in parse_script(script):
        meaning = analyse(statement, catalog).meaning
        match meaning:
            case RunQuery(query):
                found = build_view(query)
            case Definition() as definition:
                for _, query in definition.maintained:
                    found = build_view(query)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if runnable(seed) is not None])
def test_drawn_queries(seed: int) -> None:
    found = runnable(seed)
    assert found is not None
    case, plan = found
    if not isinstance(plan, nodes.RelationToStream):
        pytest.skip("its rows are a stream")
    view = replace(plan, kind=VIEW)
    if why_not(view) or why_not(optimize(view)):
        pytest.skip("its result is not maintained")
    compare(view, case.inputs, random.Random(seed))


# ---------------------------------------------------------------- queries by hand

RETURNING = """
CREATE AGGREGATE highest(x INT) : INT {
    TABLE seen(v INT);
    INITIALIZE : { INSERT INTO seen VALUES (x); }
    ITERATE    : { INSERT INTO seen VALUES (x); }
    TERMINATE  : { INSERT INTO RETURN SELECT v FROM seen WHERE v > 0 ORDER BY v DESC LIMIT 3; }
}
"""
"""An aggregate that returns up to three rows, of which some may be equal, or none."""

QUERIES = (
    # Identities of pairs of different shards were the same.
    "SELECT x.v, y.w FROM {0} x JOIN {1} y ON x.k = y.k",
    "SELECT x.v, y.w FROM {0} x JOIN {1} y ON x.k = y.k AND x.v < y.w",
    "SELECT x.k, x.v, y.w, z.v AS u FROM {0} x JOIN {1} y ON x.k = y.k JOIN a [ROWS 3] z ON y.v = z.v",
    "SELECT x.v, y.w FROM {0} x LEFT JOIN {1} y ON x.k = y.k",
    "SELECT x.v, y.w FROM {0} x RIGHT JOIN {1} y ON x.k = y.k",
    "SELECT x.v, y.w FROM {0} x FULL JOIN {1} y ON x.k = y.k AND x.v < y.w",
    "SELECT x.v, n FROM {0} x JOIN (SELECT k, count(*) AS n FROM b [RANGE 4] GROUP BY k) d ON x.k = d.k",
    "SELECT x.v, n FROM {0} x LEFT JOIN (SELECT k, max(w) AS n FROM b [RANGE 4] GROUP BY k) d ON x.k = d.k",
    "SELECT d.k, n, w FROM (SELECT k, sum(v) AS n FROM a [RANGE 4] GROUP BY k) d JOIN {1} y ON d.k = y.k",
    "SELECT x.k, x.v FROM {0} x LEFT SEMI JOIN {1} y ON x.k = y.k",
    "SELECT x.k, x.v FROM {0} x LEFT ANTI JOIN {1} y ON x.k = y.k AND x.v < y.w",
    "SELECT DISTINCT x.v FROM {0} x JOIN {1} y ON x.k = y.k",
    "SELECT k, v FROM {0} x EXCEPT ALL SELECT k, w FROM {1} y",
    "SELECT k, v FROM {0} x INTERSECT ALL SELECT k, w FROM {1} y",
    "SELECT k, v FROM {0} x UNION ALL SELECT k, w FROM {1} y",
    "SELECT x.k, count(*) AS n, sum(y.w) AS s FROM {0} x LEFT JOIN {1} y ON x.k = y.k GROUP BY x.k",
    "SELECT x.v, y.w FROM {0} x, {1} y WHERE x.v < y.w",
    # Rows that an aggregate had returned for a group were taken for one.
    "SELECT k, highest(v) AS h FROM {0} x GROUP BY k",
    "SELECT highest(v) AS h, count(*) AS n FROM {0} x",
    "SELECT x.k, highest(y.w) AS h FROM {0} x JOIN {1} y ON x.k = y.k GROUP BY x.k",
    "SELECT y.w, h FROM (SELECT k, highest(v) AS h FROM a [RANGE 4] GROUP BY k) x JOIN {1} y ON x.k = y.k",
    "SELECT DISTINCT h FROM (SELECT k, highest(v) AS h FROM a [RANGE 4] GROUP BY k) x JOIN {1} y ON true",
    "SELECT k, highest(v) AS h, highest(v + 1) AS g FROM {0} x GROUP BY k",
    # There is a row if there are no tuples.
    "SELECT count(*) AS n, sum(v) AS s FROM {0} x WHERE v > 2",
    "SELECT w, n FROM {1} y FULL JOIN (SELECT count(*) AS n FROM a [RANGE 2] WHERE v > 2) x ON w > n",
)
WINDOWS = (
    ("a [UNBOUNDED]", "b [UNBOUNDED]"),
    ("a [RANGE 3]", "b [ROWS 2]"),
    ("a [RANGE 4 SLIDE 2]", "b [LANDMARK START AT 2 END AT 6]"),
    ("a [ROWS 2 PATTR k]", "b [NOW]"),
)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("windows", WINDOWS, ids=" ".join)
@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str, windows: tuple[str, str]) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
        case = Case(STREAMS, (RETURNING,), (query.format(*windows),), given)
        compare(view_of(case.script), case.inputs, chance)


@pytest.mark.parametrize("seed", [0, 44])
def test_rows_that_are_shown_until_the_next_slide(seed: int) -> None:
    """They were dropped from the state when they had left their window."""
    chance = random.Random(seed)
    query = "SELECT k, v FROM a [RANGE 2] UNION ALL SELECT k, v FROM b [ROWS 1 SLIDE 7]"
    given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt")}
    case = Case(STREAMS, (), (query,), given)
    compare(view_of(case.script), case.inputs, chance)


def test_a_row_over_an_empty_stream() -> None:
    query = "SELECT count(*) AS n, sum(v) AS s, collect_list(v) AS l FROM a [RANGE 2]"
    case = Case(STREAMS[:1], (), (query,), {"a": Arrivals([[]])})
    changes = simulated.changes(view_of(case.script), case.inputs, random.Random(0))
    assert [(row["n"], row["s"], row["l"]) for row in changes.to_pylist()] == [(0, None, [])]


def test_a_returned_row_that_stays_is_not_told_again() -> None:
    given = [(1, 5, 1), (1, 7, 2), (2, 7, 2), (1, 0, 3), (1, 7, 4), (1, 9, 5)]
    rows = [Row(dict(zip("kvt", row, strict=True))) for row in given]
    query = "SELECT CHANGES k, highest(v) AS h FROM a [UNBOUNDED] GROUP BY k"
    case = Case(STREAMS[:1], (RETURNING,), (query,), {"a": Arrivals([rows])})
    plan = planned(case.script)
    expected = [
        (1, "+", 1, 5),
        (2, "+", 1, 7),
        (2, "+", 2, 7),
        (4, "+", 1, 7),
        (5, "-", 1, 5),
        (5, "+", 1, 9),
    ]
    same(simulated.run(plan, case.inputs, random.Random(3)), expected)
    same([(row.time, *row.values) for row in interpreted(plan, case.inputs).rows], expected)
