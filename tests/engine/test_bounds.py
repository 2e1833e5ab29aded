"""Bounds of windows: decimals on doubles, narrow types, extreme values, tuples without a time."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.little import check, stream
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

TENTHS = [(i + 1, i / 10) for i in range(8)]
LARGEST = 1.7976931348623157e308

# ---------------------------------------------------------------- doubles


def doubles(query: str, expected, rows=TENTHS, type_: str = "DOUBLE") -> None:
    check(f"CREATE STREAM d (v INT, x {type_}) ORDER BY x; {query}", {"d": stream("v x", rows)}, expected)


def test_bounds_on_doubles_are_the_decimals_as_written() -> None:
    ends = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    doubles("SELECT window_end, sum(v) FROM d [TUMBLE 0.1]", [(end, i + 1) for i, end in enumerate(ends)])
    doubles(
        "SELECT window_end, count(*), sum(v) FROM d [RANGE 0.3 SLIDE 0.1]",
        [
            *((0.1, 1, 1), (0.2, 2, 3), (0.3, 3, 6), (0.4, 3, 9), (0.5, 3, 12)),
            *((0.6, 3, 15), (0.7, 3, 18), (0.8, 3, 21), (0.9, 2, 15), (1.0, 1, 8)),
        ],
    )


def test_origin_is_the_decimal_as_written() -> None:
    doubles(
        "SELECT window_start, window_end, sum(v) FROM d [TUMBLE 0.3 ORIGIN -0.1]",
        [(-0.1, 0.2, 3), (0.2, 0.5, 12), (0.5, 0.8, 21)],
    )


def test_values_below_zero() -> None:
    rows = [(1, -0.7), (2, -0.3), (3, -0.1), (4, 0.0)]
    doubles(
        "SELECT window_start, window_end, wid, sum(v) FROM d [TUMBLE 0.1]",
        [(-0.7, -0.6, -7, 1), (-0.3, -0.2, -3, 2), (-0.1, 0.0, -1, 3), (0.0, 0.1, 0, 4)],
        rows,
    )


def test_slides_of_landmarks_on_doubles() -> None:
    doubles(
        "SELECT window_end, count(*) FROM d [LANDMARK START AT 0.1 END AT 0.7 SLIDE 0.3]",
        [(0.3, 2), (0.6, 5), (0.7, 6)],
    )


def test_partial_results_on_doubles() -> None:
    """The instants of emission are the multiples of the decimal, too."""
    doubles(
        "SELECT window_end, complete, count(*) FROM d [TUMBLE 0.6 EMIT EVERY 0.3]",
        [(0.6, False, 3), (0.6, True, 6), (1.2, True, 2)],
    )
    doubles(
        "SELECT window_end, complete, count(*) FROM d [TUMBLE 1 EMIT EVERY 0.5]",
        [(1.0, False, 5), (1.0, True, 8)],
    )


def test_bounds_on_floats_are_the_nearest_floats() -> None:
    """0.7 as a FLOAT is below the decimal; its window begins with it all the same."""
    rows = [(1, 0.10000000149011612), (2, 0.699999988079071)]
    doubles(
        "SELECT window_start, wid, sum(v) FROM d [TUMBLE 0.1]",
        [(0.10000000149011612, 1, 1), (0.699999988079071, 7, 2)],
        rows,
        "FLOAT",
    )


@pytest.mark.parametrize("type_", ["DOUBLE", "FLOAT", "DECIMAL(6, 2)"])
@pytest.mark.parametrize("seed", range(8))
def test_windows_on_a_grid_of_decimals(type_: str, seed: int) -> None:
    """Drawn sizes, slides and origins, with values on bounds and beside them."""
    chance = random.Random(f"{type_} {seed}")
    size, slide, origin = (Decimal(chance.randint(1, 30)).scaleb(-chance.choice([1, 2])) for _ in range(3))
    window = chance.choice(
        [
            f"RANGE {size} SLIDE {slide}",
            f"TUMBLE {slide} ORIGIN {chance.choice(['', '-'])}{origin}",
            f"RANGE {size} SLIDE {slide} ORIGIN {origin}",
            f"LANDMARK START AT {origin} SLIDE {slide}",
            f"TUMBLE {slide * 4} EMIT EVERY {slide}",
            f"SESSION GAP {slide}",
            f"RANGE {size} RATTR x SLIDE 2 ROWS SATTR rank(x)",
        ]
    )
    values = sorted(Decimal(chance.randint(-150, 300)).scaleb(-2) for _ in range(30))
    kinds = {"DOUBLE": float, "FLOAT": _single, "DECIMAL(6, 2)": Decimal}
    rows = [(i, kinds[type_](value)) for i, value in enumerate(values)]
    script = (
        f"CREATE STREAM d (v INT, x {type_}) ORDER BY x; "
        f"SELECT window_start, window_end, count(*), sum(v) FROM d [{window}]"
    )
    _agree(script, {"d": stream("v x", rows)}, chance)


def _single(value: Decimal) -> float:
    import numpy as np

    return float(np.float32(float(value)))


def _agree(script: str, inputs, chance: random.Random) -> None:
    plan = planned(script)
    assert why_not(plan) is None, why_not(plan)
    expected = [(row.time, *row.values) for row in interpreted(plan, inputs).rows]
    same(simulated.run(optimize(plan), inputs, chance), expected)


# ---------------------------------------------------------------- narrow types, extreme values

EXTREMES = {
    "TINYINT": (-128, 0, 126, 127),
    "SMALLINT": (-(2**15), 0, 2**15 - 2, 2**15 - 1),
    "INT": (-(2**31), 0, 2**31 - 2, 2**31 - 1),
    "DECIMAL(4, 2)": (Decimal("-99.99"), Decimal("0.00"), Decimal("99.98"), Decimal("99.99")),
}


@pytest.mark.parametrize("type_", EXTREMES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM c [TUMBLE 10]", [(1,), (1,), (2,)]),
        ("SELECT count(*) FROM c [SESSION GAP 5]", [(1,), (1,), (2,)]),
        ("SELECT count(*) FROM c [RANGE 5 RATTR t SLIDE 1 ROW SATTR row_num]", [(1,), (1,), (1,), (2,)]),
        ("SELECT count(*) FROM c [RANGE 5 RATTR t SLIDE 2 ROWS SATTR rank(t)]", [(1,), (2,)]),
        ("SELECT count(*) FROM c [NOW]", [(1,), (1,), (1,), (1,)]),
        ("SELECT count(*) FROM c [START WHEN v = 2 END WHEN v = 4]", [(3,)]),
        ("SELECT count(*) FROM c [LANDMARK START AT 0]", [(3,)]),
        ("SELECT DSTREAM v FROM c [RANGE 10]", [(1,), (2,), (3,), (4,)]),
        ("SELECT CHANGES v FROM c [RANGE 10] WHERE v > 3", [("+", 4), ("-", 4)]),
    ],
)
def test_bounds_and_stamps_go_beyond_the_type_of_the_attribute(type_: str, query: str, expected) -> None:
    rows = [(i + 1, value) for i, value in enumerate(EXTREMES[type_])]
    check(f"CREATE STREAM c (v INT, t {type_}) ORDER BY t; {query}", {"c": stream("v t", rows)}, expected)


def test_a_window_may_be_longer_than_its_attribute_can_be() -> None:
    rows = [(1, 1), (2, 3), (3, 25)]
    check(
        "CREATE STREAM c (v INT, t INT) ORDER BY t; "
        "SELECT window_start, window_end, count(*) FROM c [TUMBLE 5000000000]",
        {"c": stream("v t", rows)},
        [(0, 5_000_000_000, 3)],
    )


def test_windows_over_results_whose_stamps_no_narrow_type_has() -> None:
    check(
        "CREATE STREAM c (v INT, t TINYINT) ORDER BY t; "
        "CREATE STREAM w AS SELECT window_end AS e, sum(v) AS s FROM c [TUMBLE 10]; "
        "SELECT window_end, sum(s) FROM w [TUMBLE 100]",
        {"c": stream("v t", [(1, 5), (2, 15), (3, 127)])},
        [(100, 3), (200, 3)],
    )


def test_the_last_instant_of_all_is_a_timestamp_like_others() -> None:
    """It was taken for the end of the input."""
    most = 2**63 - 2
    rows = [(1, most - 1), (2, most), (3, most), (4, most)]
    script = "CREATE STREAM c (v INT, t BIGINT) ORDER BY t; SELECT window_end, count(*) FROM c [TUMBLE 10]"
    check(script, {"c": stream("v t", rows)}, [(most + 1, 4)], seeds=8)


def test_sessions_of_huge_doubles() -> None:
    """The gap is less than the distance of two neighbours; the end of the input is behind all of them."""
    rows = [(1, -1e300), (2, 0.0), (3, 1e300), (4, LARGEST)]
    doubles("SELECT count(*) FROM d [SESSION GAP 10]", [(1,), (1,), (1,), (1,)], rows)


@pytest.mark.parametrize("query", ["[TUMBLE 1e300]", "[RANGE 1e300 SLIDE 1e300]"])
def test_windows_at_the_ends_of_doubles(query: str) -> None:
    rows = [(1, -LARGEST), (2, 0.0), (3, LARGEST)]
    doubles(f"SELECT count(*) FROM d {query}", [(1,), (1,), (1,)], rows)
    doubles("SELECT DSTREAM v FROM d [RANGE 10]", [(1,), (2,), (3,)], rows)


# ---------------------------------------------------------------- late tuples of landmarks


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("LANDMARK START AT 0 END AT 7", [(7, 3)]),
        ("LANDMARK START AT 0 END AT 9", [(9, 12)]),
        ("LANDMARK START AT 0 END AT 20", [(20, 28)]),
        ("LANDMARK END AT 7 SLIDE 5", [(5, 1), (7, 3)]),
    ],
)
def test_generous_landmarks_do_not_count_what_comes_after_their_end(window: str, expected) -> None:
    rows = [(1, 1), (2, 5), (3, 10), (4, 3), (5, 6), (6, 12), (7, 4)]
    script = f"""CREATE STREAM g (v INT, t INT) ORDER BY t SLACK 2 GENEROUS;
        SELECT window_end, sum(v) FROM g [{window}]"""
    check(script, {"g": stream("v t", rows)}, expected, seeds=8)


# ---------------------------------------------------------------- latent streams


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT CHANGES v FROM l [ROWS 2]", "+10 +20 -10 +30 -20 +40"),
        ("SELECT CHANGES sum(v) FROM l [ROWS 2]", "+10 -10 +30 -30 +50 -50 +70"),
        ("SELECT CHANGES v FROM l [ROWS 2 SLIDE 2]", "+10 +20 -10 -20 +30 +40"),
        ("SELECT CHANGES v FROM l [ROWS 2] WHERE v > 10", "+20 +30 -20 +40"),
        ("SELECT ISTREAM v FROM l [ROWS 2]", "10 20 30 40"),
        ("SELECT DSTREAM v FROM l [ROWS 1]", "10 20 30"),
        ("SELECT RSTREAM v FROM l [ROWS 2]", "10 10 20 20 30 30 40"),
    ],
)
def test_tuples_of_latent_streams_have_instants_of_their_own(query: str, expected: str) -> None:
    """They had that of their micro-batch, and rows that came and went within one were not seen."""
    inputs = {"l": stream("id v", [(1, 10), (2, 20), (3, 30), (4, 40)])}
    plan = planned(f"CREATE STREAM l (id INT, v INT); {query}")
    assert " ".join("".join(map(str, row)) for row in interpreted(plan, inputs).values) == expected
    for seed in range(6):
        found = simulated.run(optimize(plan), inputs, random.Random(seed))
        assert " ".join("".join(map(str, row[1:])) for row in found) == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", range(10))
def test_drawn_row_windows_over_latent_streams(seed: int) -> None:
    chance = random.Random(seed)
    asked = chance.choice(["CHANGES", "ISTREAM", "DSTREAM", "RSTREAM"])
    what = chance.choice(["k, v", "v", "k, sum(v) AS s", "count(*) AS n, max(v) AS m", "DISTINCT k"])
    size = chance.randint(1, 4)
    window = chance.choice(
        [f"ROWS {size}", f"ROWS {size} PATTR k", f"ROWS {size} SLIDE {chance.randint(2, 3)}"]
    )
    where = chance.choice(["", "WHERE v > 1"])
    by = "GROUP BY k" if "k, sum" in what else ""
    rows = [(chance.randint(1, 3), chance.randint(0, 5)) for _ in range(12)]
    plan = planned(f"CREATE STREAM l (k INT, v INT); SELECT {asked} {what} FROM l [{window}] {where} {by}")
    if why_not(plan) is not None:
        pytest.skip("cannot be run")
    inputs = {"l": stream("k v", rows)}
    expected = interpreted(plan, inputs).values
    same([row[1:] for row in simulated.run(optimize(plan), inputs, chance)], expected)


# ---------------------------------------------------------------- early results over joins

JOINED = (
    "SELECT x.id AS i FROM a [RANGE 10] x JOIN b [RANGE 10] y ON x.k = y.k",
    "SELECT x.id AS i FROM a [ROWS 2] x LEFT JOIN b [RANGE 10 SLIDE 4] y ON x.k = y.k",
    "SELECT DSTREAM id AS i FROM a [RANGE 3]",
    "SELECT sum(id) AS i FROM a [RANGE 3]",
)


@pytest.mark.parametrize("window", ["TUMBLE 20 EMIT EVERY 5", "SESSION GAP 3 EMIT EVERY 2"])
@pytest.mark.parametrize("query", JOINED)
def test_early_results_over_what_is_maintained(query: str, window: str) -> None:
    inputs = {
        "a": stream("id k t", [(1, "x", 1), (2, "y", 3), (3, "x", 11), (4, "y", 12), (5, "x", 25)]),
        "b": stream("id k t", [(11, "x", 2), (12, "y", 9), (13, "x", 14), (14, "z", 21)]),
    }
    script = f"""CREATE STREAM a (id INT, k STRING, t INT) ORDER BY t;
        CREATE STREAM b (id INT, k STRING, t INT) ORDER BY t;
        CREATE STREAM j AS {query};
        SELECT window_end, complete, count(*) FROM j [{window}]"""
    expected = interpreted(planned(script), inputs).values
    assert any(not row[1] for row in expected)
    check(script, inputs, expected)
