"""Punctuation without a timestamp ends a stream before its input ends, under any operator.

A window above was told that everything is through, and lost what only the end completes.
"""

from __future__ import annotations

import random

import pytest

from millstream.plan.optimize import optimize
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.chains import course
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

GIVEN = [("x", 5, False, 1), ("x", 2, False, 3), ("x", 3, True, 4), ("x", 6, False, 6), ("x", 7, True, None)]
BELOW = {
    "ROWS 2 SLIDE 2": [(4, 1), (8, 1)],
    "ROWS 5 SLIDE 5": [(8, 1)],
    "START WHEN n > 1 END WHEN n < 1": [(8, 1)],
    "UNBOUNDED": [(8, 1)],
}


@pytest.mark.parametrize("window", BELOW)
def test_the_last_word_completes_open_windows_below_others(window: str) -> None:
    script = f"""CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);
        CREATE STREAM d AS SELECT count(*) AS n FROM a [{window}];
        SELECT count(*) AS n FROM d [TUMBLE 4];"""
    plan = planned(script)
    inputs = {"a": Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in GIVEN]])}
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], BELOW[window])
    for seed in range(4):
        chance = random.Random(seed)
        same(simulated.run(optimize(plan), inputs, chance, course(chance)), BELOW[window])


@pytest.mark.parametrize("window", ["UNBOUNDED SLIDE 2", "LANDMARK START AT 0 SLIDE 2"])
def test_windows_that_slide_for_ever_stop_at_the_last_word(window: str) -> None:
    """They slid on to the largest timestamp of all."""
    script = f"""CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p);
        SELECT count(*) AS n FROM a [{window}];"""
    plan = planned(script)
    inputs = {"a": Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in GIVEN]])}
    expected = [(2, 1), (4, 2), (6, 2), (8, 3)]
    same([(row.time, *row.values) for row in interpreted(plan, inputs).rows], expected)
    for seed in range(4):
        chance = random.Random(seed)
        same(simulated.run(optimize(plan), inputs, chance, course(chance)), expected)


A = "CREATE STREAM a (k STRING, n BIGINT, p BOOLEAN, t INT) ORDER BY t PUNCTUATED BY (p){per};"
B = A.replace("STREAM a", "STREAM b")
EARLY = [("x", 1, False, 1), ("y", 2, False, 3), ("x", 3, True, 4), ("y", 0, True, None)]
LATE = [("x", 5, False, 1), ("y", 6, False, 6), ("x", 7, True, 20), ("x", 8, True, None), ("x", 9, True, 30)]
SLIDING = [
    "UNBOUNDED SLIDE 2",
    "UNBOUNDED EMIT EVERY 2",
    "LANDMARK START AT 0 SLIDE 2",
    "TUMBLE 5 EMIT EVERY 2",
    "RANGE 6 SLIDE 3 EMIT EVERY 2",
    "ROWS 2 SLIDE 2",
    "SESSION GAP 3 EMIT EVERY 2",
    "START WHEN n > 1 END WHEN n < 1 EMIT EVERY 2",
]


@pytest.mark.parametrize("window", SLIDING)
@pytest.mark.parametrize("partitions", [[LATE], [EARLY, LATE], [LATE, EARLY], [LATE, EARLY[:3]]])
def test_promises_before_the_last_word_count_however_batches_are_cut(
    window: str, partitions: list[list[tuple[object, ...]]]
) -> None:
    """A promise and the last word in one micro-batch lost the promise, and in two they did not."""
    script = f"{A.format(per='')} SELECT count(*) AS n FROM a [{window}];"
    _as_interpreted(script, {"a": partitions})


@pytest.mark.parametrize("window", ["UNBOUNDED EMIT EVERY 4", "LANDMARK START AT 0 EMIT EVERY 4"])
@pytest.mark.parametrize("last", [len(LATE), len(LATE) - 2])
def test_a_window_without_end_is_complete_after_its_partial_results(window: str, last: int) -> None:
    """Nothing was complete where partial results had come after the newest tuple."""
    script = f"{A.format(per='')} SELECT count(*) AS n, complete FROM a [{window}];"
    found = _as_interpreted(script, {"a": [LATE[:last]]})
    partial = [(4, 1, False), (8, 2, False), (12, 2, False), (16, 2, False), (20, 2, False)]
    assert found == [*partial, (20, 2, True)]


def test_a_promise_before_the_last_word_slides_windows_on() -> None:
    script = f"{A.format(per='')} SELECT count(*) AS n FROM a [UNBOUNDED SLIDE 5];"
    found = _as_interpreted(script, {"a": [LATE]})
    assert found == [(5, 1), (10, 2), (15, 2), (20, 2)]


@pytest.mark.parametrize(("kind", "of"), [("INT", int), ("BIGINT", int), ("DOUBLE", float)])
def test_punctuation_without_a_time_is_the_last_word_for_timestamps_of_any_type(kind: str, of: type) -> None:
    """NULL counted as an instant where the timestamp was a BIGINT."""
    stream = A.format(per="").replace("t INT", f"t {kind}")
    rows = [(*others, None if time is None else of(time)) for *others, time in LATE]
    found = _as_interpreted(f"{stream} SELECT count(*) AS n FROM a [UNBOUNDED SLIDE 5];", {"a": [rows]})
    assert found == [(5, 1), (10, 2), (15, 2), (20, 2)]


@pytest.mark.parametrize("window", SLIDING)
@pytest.mark.parametrize("last", [len(LATE), len(LATE) - 2])
@pytest.mark.parametrize("side", ["SELECT n FROM a", "SELECT count(*) AS n FROM a [TUMBLE 1]"])
def test_a_union_does_not_wait_for_the_side_that_has_said_its_last_word(
    window: str, last: int, side: str
) -> None:
    script = f"""{A.format(per="")} {B.format(per="")}
        CREATE STREAM d AS {side} UNION ALL SELECT n FROM b;
        SELECT count(*) AS n FROM d [{window}];"""
    _as_interpreted(script, {"a": [EARLY], "b": [LATE[:last]]})


@pytest.mark.parametrize("window", SLIDING)
@pytest.mark.parametrize(
    "below", ["UNBOUNDED SLIDE 2", "UNBOUNDED EMIT EVERY 2", "TUMBLE 3", "ROWS 1 SLIDE 1"]
)
def test_windows_above_windows_know_the_promises_before_the_last_word(window: str, below: str) -> None:
    script = f"""{A.format(per="")}
        CREATE STREAM d AS SELECT count(*) AS n FROM a [{below}];
        SELECT count(*) AS n FROM d [{window}];"""
    _as_interpreted(script, {"a": [EARLY, LATE]})


@pytest.mark.parametrize("window", SLIDING)
@pytest.mark.parametrize("keys", ["", " GROUP BY k"])
def test_last_words_of_sub_streams_end_no_stream(window: str, keys: str) -> None:
    """Another sub-stream may begin, so windows stop at the last promise."""
    script = f"{A.format(per=' PER (k)')} SELECT count(*) AS n FROM a [{window}]{keys};"
    mixed = [*LATE[:3], ("y", 1, True, 9), ("y", 1, True, None), ("z", 1, False, 7), ("z", 1, True, None)]
    _as_interpreted(script, {"a": [[*mixed, LATE[3]]]})


@pytest.mark.parametrize("window", ["UNBOUNDED SLIDE 2", "LANDMARK START AT 0 SLIDE 2", "RANGE 9 SLIDE 3"])
@pytest.mark.parametrize("last", [len(LATE), len(LATE) - 2])
def test_all_of_a_window_comes_at_every_slide_that_progress_has_reached(window: str, last: int) -> None:
    """The tuples that a query does not want make progress too."""
    script = f"""{A.format(per="")} CREATE STREAM d AS SELECT n, t FROM a WHERE n < 6;
        SELECT RSTREAM n FROM d [{window}];"""
    _as_interpreted(script, {"a": [LATE[:last]]})


def _as_interpreted(
    script: str, given: dict[str, list[list[tuple[object, ...]]]]
) -> list[tuple[object, ...]]:
    """Results of the interpreter, which the engine must reproduce with any micro-batches."""
    plan = planned(script)
    inputs = {
        name: Arrivals([[Row(dict(zip("knpt", row, strict=True))) for row in part] for part in partitions])
        for name, partitions in given.items()
    }
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs).rows]
    for seed in range(8):
        chance = random.Random(seed)
        same(simulated.run(optimize(plan), inputs, chance, course(chance)), expected)
    return expected
