"""Rewritten plans over windows give the oracle's results, on random windows and streams."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.plan.nodes import Node, RelationToStream
from millstream.plan.optimize import STAGES, Stage, optimize
from millstream.plan.relation_variance import CHANGES, DSTREAM, ISTREAM, RSTREAM
from millstream.plan.rules.order_window_joins import order_window_joins
from millstream.plan.rules.push_condition_to_join_side import push_condition_to_join_side
from millstream.plan.rules.push_filter_below_window import push_filter_below_window
from millstream.plan.rules.push_filter_into_window_join import push_filter_into_window_join
from millstream.plan.rules.union_of_windows import union_of_windows
from oracle import Arrivals, Row, run
from tests.oracle.lives import Tuple, planned, tuples

WINDOWS = (
    "RANGE 4",
    "RANGE 5 SLIDE 2",
    "TUMBLE 3",
    "NOW",
    "UNBOUNDED",
    "UNBOUNDED SLIDE 2",
    "LANDMARK START AT 2 END AT 9",
    "ROWS 2",
    "TUMBLE 2 ROWS",
    "PARTITION BY k ROWS 1",
)
RULES = (
    order_window_joins,
    push_condition_to_join_side,
    push_filter_below_window,
    push_filter_into_window_join,
    union_of_windows,
)
QUERIES = (
    "SELECT k, id FROM a [{0}] WHERE id > 1 AND k = 'x'",
    "SELECT DISTINCT k FROM a [{0}] WHERE id <> 2",
    "SELECT ISTREAM k, count(*) AS n FROM a [{0}] WHERE id > 1 GROUP BY k",
    "SELECT a.id, b.id AS i FROM a [{0}], b [{1}] WHERE a.k = b.k AND a.id < 4 AND b.id > 101",
    *(
        f"SELECT a.id, b.id AS i FROM a [{{0}}] {kind} JOIN b [{{1}}] "
        "ON a.k = b.k AND a.id > 0 AND b.id < 104 WHERE a.id < 4 AND b.id IS NULL OR a.k = 'x'"
        for kind in ("LEFT", "RIGHT", "FULL")
    ),
    *(
        f"SELECT a.id, b.id AS i FROM a [{{0}}] {kind} JOIN b [{{1}}] "
        "ON a.k = b.k AND a.id > 0 AND b.id < 104 WHERE a.id < 4 AND b.id > 100"
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    ),
    *(
        f"SELECT a.id FROM a [{{0}}] {kind} JOIN b [{{1}}] "
        "ON a.k = b.k AND a.id > 0 AND b.id < 104 WHERE a.id < 4"
        for kind in ("SEMI", "ANTI")
    ),
    """SELECT a.k, count(*) AS n, max(b.id) AS m FROM a [{0}], b [{1}]
       WHERE a.k = b.k AND b.id > 101 GROUP BY a.k""",
    """SELECT a.id, b.id AS i, c.id AS j FROM a [{0}], b [{1}], a [{2}] AS c
       WHERE a.k = b.k AND b.k = c.k AND c.id > 0 AND a.t < c.t""",
    "SELECT k, id FROM a [{0}] WHERE id > 1 UNION ALL SELECT k, id FROM b [{0}] WHERE k = 'x'",
    "SELECT id, t FROM a [{0}] UNION ALL SELECT id, t FROM b [{1}] UNION ALL SELECT t, id FROM b [{0}]",
    "SELECT k FROM a [{0}] WHERE id > 1 EXCEPT ALL SELECT k FROM b [{1}] WHERE id > 101",
)


@pytest.mark.parametrize("rule", [*RULES, None], ids=lambda rule: rule.__name__ if rule else "all")
@settings(max_examples=150, deadline=None)
@given(st.data(), tuples(), tuples(100))
def test_a_rule_changes_no_result(rule: Any, data: st.DataObject, a: list[Tuple], b: list[Tuple]) -> None:
    windows = data.draw(st.lists(st.sampled_from(WINDOWS), min_size=3, max_size=3))
    written = planned(data.draw(st.sampled_from(QUERIES)).format(*windows))
    assert isinstance(written, RelationToStream)
    kind = data.draw(st.sampled_from([written.kind, ISTREAM, DSTREAM, RSTREAM, CHANGES]))
    plan = RelationToStream(written.input, kind)
    changed = optimize(plan, STAGES if rule is None else [Stage("test", (rule,))])
    ended = data.draw(st.booleans())
    assert results(changed, a, b, ended) == results(plan, a, b, ended)


def results(plan: Node, a: list[Tuple], b: list[Tuple], ended: bool) -> Counter[tuple[Any, ...]]:
    """Return the results; those of one instant have no order."""
    inputs = {"a": Arrivals([[*map(Row, a)]]), "b": Arrivals([[*map(Row, b)]])}
    return Counter((row.time, *row.values) for row in run(plan, inputs, ended=ended).rows)


@pytest.mark.parametrize("kind", [ISTREAM, DSTREAM, RSTREAM, CHANGES])
@pytest.mark.parametrize("window", WINDOWS)
def test_slides_go_on_to_the_last_tuple_wanted_or_not(window: str, kind: str) -> None:
    written = planned(f"SELECT id FROM a [{window}] WHERE k = 'x'")
    assert isinstance(written, RelationToStream)
    a = [{"k": "x", "id": 0, "t": 2}, {"k": "y", "id": 1, "t": 11}]
    plan = RelationToStream(written.input, kind)
    assert results(optimize(plan), a, [], True) == results(plan, a, [], True)
