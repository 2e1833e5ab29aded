"""Results of pattern queries: aggregates, joins with tables, timestamps, and input of further queries."""

import pytest

from oracle import Arrivals, Row, answer
from tests.oracle.little import ask, shown, table
from tests.oracle.test_pattern_rules import STREAM, found, numbers

AGGREGATES = """
    CREATE AGGREGATE total(Next INT) : INT {
        TABLE state(s INT);
        INITIALIZE : { INSERT INTO state VALUES (Next); }
        ITERATE    : { UPDATE state SET s = s + Next; }
        TERMINATE  : { INSERT INTO RETURN SELECT s FROM state; }
    };
    CREATE AGGREGATE decay(Next DOUBLE) : DOUBLE {
        TABLE state(v DOUBLE);
        INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
        ITERATE    : { UPDATE state SET v = 0.5 * v + 0.5 * Next; INSERT INTO RETURN SELECT v FROM state; }
    };
    CREATE AGGREGATE every_other(Next INT) : INT {
        TABLE state(n INT);
        INITIALIZE : { INSERT INTO state VALUES (1); }
        ITERATE    : { UPDATE state SET n = n + 1;
                       INSERT INTO RETURN SELECT Next FROM state WHERE n % 2 = 0; }
    };
    CREATE AGGREGATE extent(Next INT) : (least INT, most INT) {
        TABLE state(a INT, b INT);
        INITIALIZE : { INSERT INTO state VALUES (Next, Next); }
        ITERATE    : { UPDATE state SET a = Next WHERE Next < a; UPDATE state SET b = Next WHERE Next > b; }
        TERMINATE  : { INSERT INTO RETURN SELECT a, b FROM state; }
    };
    CREATE WINDOW AGGREGATE moving(Next INT) : INT {
        TABLE inwindow(wnext INT);
        INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
        ITERATE    : { INSERT INTO RETURN SELECT sum(wnext) FROM inwindow; }
        EXPIRE     : { }
    };
    CREATE AGGREGATE mysum(x INT) : INT LANGUAGE PYTHON AS 'tests.python_aggregates:MySum';
    CREATE AGGREGATE ends(x INT) : (low INT, high INT) LANGUAGE PYTHON AS 'tests.python_aggregates:Range';
"""


def of_aggregates(select: str, pattern: str, where: str, *values: int | None) -> list[tuple[object, ...]]:
    query = f"SELECT {select} FROM s AS ({pattern}){f' WHERE {where}' if where else ''}"
    script = f"{AGGREGATES} {STREAM}; {query}"
    rows = [Row({"k": None, "v": value, "t": t}) for t, value in enumerate(values, start=1)]
    return answer(script, {"s": Arrivals([rows])}).values


# ---------------------------------------------------------------- columns of a match


def test_a_star_variable_means_its_last_tuple() -> None:
    select = "A.v, FIRST(A).v, LAST(*A).v, A.previous.v, Z.v"
    assert found(select, "*A, Z", "A.v > 0", 3, 4, 5, 0) == [("4", "5", "3", "5", "4", "0")]


def test_all_columns_of_a_variable() -> None:
    assert found("Z.*", "A, Z", "", 3, 4) == [("2", "x", "4", "2")]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("count(*A)", 5),
        ("count(*A.v)", 4),
        ("ccount(*A)", 5),
        ("sum(*A.v)", 11),
        ("avg(*A.v)", 2.75),
        ("csum(*A.v) + cmin(*A.v)", 12),
        ("last(A.v * 2)", 10),
        ("max(*A.v) - min(*A.v)", 4),
        ("median(*A.v)", 2.5),
        ("percentile(*A.v, 1.0)", 5.0),
        ("first(*A.v)", None),
        ("first(*A.v, true)", 1),
        ("last(A.v)", 5),
        ("max_by(*A.t, *A.v)", 5),
        ("collect_list(*A.v)", [1, 2, 3, 5]),
        ("last(A.previous.v)", 3),
        ("count(*A.previous)", 4),
        ("total(*A.t)", 15),
        ("decay(*A.t)", 4.0625),
        ("every_other(*A.t)", None),
        ("extent(*A.t).most", 5),
        ("mysum(*A.v)", 11),
        ("ends(*A.v).low", 1),
    ],
)
def test_any_aggregate_is_final_with_a_star(call: str, result: object) -> None:
    where = "(A.v < 9) IS NOT FALSE"
    ((returned, _),) = of_aggregates(f"{call}, Z.v", "*A, Z", where, None, 1, 2, 3, 5, 9)
    assert returned == result


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("decay(A.v) < 4", 3),  # 1, 2, 3, 5
        ("every_other(A.v) IS NULL OR every_other(A.v) < 7", 3),
        ("avg(A.v) OVER (ROWS 1 PRECEDING) < 4", 2),  # 1, 2, 4
        ("sum(A.v) OVER (ROWS 0 PRECEDING) < 7", 3),
        ("csum(A.v + coalesce(A.previous.v, 0)) < 14", 3),
        ("total(A.v) OVER (ROWS 1 PRECEDING) < 12", 3),
        ("moving(A.v) OVER (ROWS 1 PRECEDING) < 12", 3),
        ("mysum(A.v) OVER (ROWS 1 PRECEDING) < 12", 3),
        ("sum(A.v) OVER (ROWS UNBOUNDED PRECEDING) < 16", 3),
    ],
)
def test_non_blocking_aggregates_and_moving_windows_run_along_a_star(condition: str, count: int) -> None:
    assert of_aggregates("count(*A), Z.v", "*A, Z", condition, 1, 3, 5, 7, 9)[0][0] == count


def test_a_moving_window_begins_with_its_star() -> None:
    where = "A.v = 9 AND sum(B.v) OVER (ROWS 2 PRECEDING) < 5 AND Z.v = 4"
    assert of_aggregates("count(*B), Z.v", "A, *B, Z", where, 9, 1, 1, 1, 2, 4) == [(4, 4)]


# ---------------------------------------------------------------- tables


STATIONS = f"{STREAM}; CREATE TABLE places (k STRING, place STRING, least INT)"
HERE_AND_THERE = """
    k | place | least
    x | here  | 5
    x | there | 1
    y | far   | 1
"""


def test_joins_with_tables_apply_to_the_matched_rows() -> None:
    """A match that meets no row has consumed its tuples all the same."""
    result = ask(
        f"""
        {STATIONS};
        SELECT p.place, A.t, Z.t FROM s PARTITION BY k AS (A, Z), places AS p
        WHERE A.v > 0 AND Z.v > 0 AND A.k = p.k AND Z.v > p.least
        """,
        places=HERE_AND_THERE,
        s="""
        k | v | t
        x | 1 | 1
        x | 3 | 2
        x | 4 | 3
        x | 1 | 4
        x | 7 | 5
        x | 8 | 6
        z | 1 | 7
        z | 2 | 8
        """,
    )
    assert shown(result) == table("""
        time | place | t | t
        2    | there | 1 | 2
        6    | here  | 5 | 6
        6    | there | 5 | 6
    """)


def test_conditions_on_tables_only() -> None:
    query = "SELECT p.place, count(*A) FROM places AS p, s AS (*A) WHERE p.least = 5 AND count(*A) > p.least"
    assert ask(f"{STATIONS}; {query}", places=HERE_AND_THERE, s=numbers(1, 2, 3, 4, 5)).values == []
    six = ask(f"{STATIONS}; {query}", places=HERE_AND_THERE, s=numbers(1, 2, 3, 4, 5, 6))
    assert six.values == [("here", 6)]


def test_conditions_on_the_partition_alone_choose_among_matches() -> None:
    query = "SELECT k, A.v FROM s PARTITION BY k AS (A) WHERE k = 'x'"
    assert ask(f"{STREAM}; {query}", s="k | v | t\nx | 1 | 1\ny | 2 | 2").values == [("x", 1)]


def test_a_left_join_keeps_matches() -> None:
    query = "SELECT A.v, p.place FROM s AS (A) LEFT JOIN places AS p ON p.least > 9"
    assert ask(f"{STATIONS}; {query}", places=HERE_AND_THERE, s=numbers(1)).values == [(1, None)]


def test_a_table_is_searched_along_its_columns_and_ties_stay_as_they_are() -> None:
    result = ask(
        """
        CREATE TABLE r (k STRING, d DATE, n INT, v INT);
        SELECT k, A.v, B.v, C.v FROM r PARTITION BY k SEQUENCE BY d, n AS (A, B, C)
        """,
        r="""
        k | d          | n | v
        x | 2026-01-02 | 1 | 4
        x | 2026-01-01 | 2 | 2
        x | 2026-01-01 | 2 | 3
        x | 2026-01-01 |   | 1
        y |            | 1 | 1
        y | 2026-01-01 | 1 | 2
        y | 2026-01-01 | 1 | 3
        """,
    )
    assert sorted(result.values) == [("x", 1, 2, 3), ("y", 1, 2, 3)]
    assert all(row.time is None for row in result.rows)


# ---------------------------------------------------------------- time


def test_matches_come_in_the_order_of_their_last_tuples() -> None:
    result = ask(
        f"{STREAM}; SELECT k, A.t FROM s PARTITION BY k AS (A, *Z) WHERE A.v = 0 AND Z.v > 0",
        s="""
        k | v | t
        x | 0 | 1
        y | 0 | 2
        x | 1 | 3
        y | 1 | 4
        y | 0 | 5
        x | 0 | 6
        """,
    )
    # The match of y was known first.
    assert shown(result) == table("""
        time | k | t
        3    | x | 1
        4    | y | 2
    """)


SUMS = f"""
    {STREAM};
    CREATE STREAM m AS SELECT k, count(*Z) AS n, Z.t
        FROM s PARTITION BY k AS (A, *Z) WHERE A.v = 0 AND Z.v > 0;
    SELECT window_end, sum(n) AS n FROM m [RANGE 10 SLIDE 10%s]
"""


@pytest.mark.parametrize("attribute", ["", " WATTR t"])
def test_a_window_over_matches_waits_for_those_that_are_still_open(attribute: str) -> None:
    script, arrivals = SUMS % attribute, "k | v | t\nx | 0 | 1\nx | 1 | 2\ny | 0 | 3\ny | 1 | 4\ny | 0 | 5"
    for later, known in [
        ("y | 1 | 25", []),  # the match of x may have ended at 2
        ("x | 1 | 8\ny | 1 | 25", []),  # or at 8
        ("x | 0 | 25", [("10", "2")]),
        ("x | 1 | 12\nx | 1 | 25", [("10", "1")]),  # it does not end before 25
    ]:
        result = ask(script, s=f"{arrivals}\n{later}", ended=False)
        assert shown(result, time=False)[1:] == known, later


def test_a_window_over_matches_waits_for_those_behind_attempts_that_are_still_open() -> None:
    script = f"""
        {STREAM};
        CREATE STREAM m AS SELECT A.v, Z.t
            FROM s PARTITION BY k AS (A, *B, Z) WHERE A.v < 9 AND B.v > A.v AND Z.v <= 4;
        SELECT window_end, sum(v) AS v FROM m [RANGE 10 SLIDE 10]
    """
    # Of x, 3 5 2 is a match if the attempt that begins with 1 fails.
    known = (
        "k | v | t\nx | 1 | 1\nx | 3 | 2\nx | 5 | 3\nx | 2 | 4\ny | 3 | 5\ny | 4 | 6\ny | 1 | 7\nx | 6 | 8"
    )
    assert ask(script, s=f"{known}\ny | 9 | 25", ended=False).values == []
    assert ask(script, s=f"{known}\nx | 1 | 25", ended=False).values == [(10, 3)]
    assert ask(script, s=f"{known}\nx | 0 | 9\ny | 9 | 25", ended=False).values == [(10, 4)]


def test_what_is_plain_is_final_with_its_last_tuple() -> None:
    query = "CREATE STREAM m AS SELECT A.v FROM s AS (A, Z); SELECT sum(v) FROM m [RANGE 10 SLIDE 10]"
    arrivals = "k | v | t\n| 1 | 1\n| 2 | 2\n| 3 | 10"
    assert ask(f"{STREAM}; {query}", s=arrivals, ended=False).values == [(1,)]


def test_patterns_over_matches_of_patterns() -> None:
    result = ask(
        f"""
        {STREAM};
        CREATE STREAM rises AS SELECT FIRST(A).v AS low, Z.v AS high, Z.t AS t
            FROM s AS (*A, Z) WHERE (A.v > A.previous.v) IS NOT FALSE AND Z.v < Z.previous.v;
        SELECT X.t AS since, Y.t, Y.low FROM rises AS (X, Y) WHERE Y.low > X.low
        """,
        s=numbers(1, 5, 2, 4, 6, 3, 7, 5),
    )
    assert shown(result) == table("""
        time | since | t | low
        6    | 3     | 6 | 4
    """)


def test_disorder_within_the_slack_gives_the_matches_of_the_sorted_input_and_late_tuples_are_in_none() -> (
    None
):
    result = ask(
        f"{STREAM} SLACK 4; SELECT A.v, Z.v FROM s AS (A, Z)",
        s="k | v | t\n| 3 | 3\n| 1 | 1\n| 2 | 2\n| 9 | 9\n| 4 | 4\n| 7 | 7",
    )
    assert result.values == [(1, 2), (3, 7)]
    assert [values[1] for values in result.late["s"]] == [4]


def test_matches_of_a_latent_stream_are_latent() -> None:
    result = ask(
        "CREATE STREAM e (v INT); SELECT A.v, Z.v FROM e AS (A, Z) WHERE Z.v > A.v", e="v\n1\n1\n2\n3"
    )
    assert [(row.time, row.values) for row in result.rows] == [(None, (1, 2))]
