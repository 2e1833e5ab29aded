"""Sequence patterns end to end: the paper's queries, and operators below, beside and above a pattern."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import ExecutionError
from millstream.testing import Streams, table

CLICKS = """
    SessNo | ClickTime           | PageNo | PageType
    1      | 2026-01-01 10:00:00 | 10     | a
    2      | 2026-01-01 10:01:00 | 20     | a
    1      | 2026-01-01 10:02:00 | 11     | d
    2      | 2026-01-01 10:03:00 | 21     | c
    2      | 2026-01-01 10:04:00 | 22     | d
    1      | 2026-01-01 10:05:00 | 12     | p
    2      | 2026-01-01 10:06:00 | 23     | p
    1      | 2026-01-01 10:07:00 | 13     | a
    1      | 2026-01-01 10:08:00 | 14     | a
    1      | 2026-01-01 10:09:00 | 15     | d
    1      | 2026-01-01 10:10:00 | 16     | p
"""
CLICK = "(SessNo INT, ClickTime TIMESTAMP, PageNo INT, PageType STRING)"
PURCHASES = """
    SELECT Y.PageNo, Z.ClickTime FROM {0} AS (X, Y, Z)
    WHERE X.PageType = 'a' AND Y.PageType = 'd' AND Z.PageType = 'p';
"""
VISITS = """
    SELECT SessNo, count(*A) AS clicks FROM {0} AS (*A, B)
    WHERE A.PageType <> 'd' AND B.PageType = 'd' AND count(*A) < 20;
"""

VALUES = """
    k | v | t
    a | 1 | 1
    a | 2 | 2
    b | 5 | 3
    a | 4 | 4
    b | 6 | 5
    a | 3 | 6
    b | 2 | 12
    a | 5 | 13
    a | 7 | 14
    b | 9 | 22
    a | 1 | 25
"""
RISES = "X.v AS low, LAST(Y).v AS high, count(*Y) AS steps FROM {0} AS (X, *Y) WHERE Y.v > Y.previous.v"


def test_examples_1_1_and_1_2_on_a_stream_and_on_a_table(streams: Streams) -> None:
    streams.add(f"CREATE STREAM Sessions {CLICK} ORDER BY ClickTime", CLICKS)
    streams.add(f"CREATE TABLE Stored {CLICK}", CLICKS)
    stream, stored = "Sessions PARTITION BY SessNo", "Stored PARTITION BY SessNo SEQUENCE BY ClickTime"
    on_stream = streams.run_all(PURCHASES.format(stream) + VISITS.format(stream))
    assert on_stream == [
        table("""
            PageNo | ClickTime
            11     | 2026-01-01 10:05:00
            15     | 2026-01-01 10:10:00
        """),
        table("""
            SessNo | clicks
            1      | 1
            2      | 2
            1      | 3
        """),
    ]
    on_table = streams.run_all(PURCHASES.format(stored) + VISITS.format(stored))
    assert [sorted(rows) for rows in on_table] == [sorted(rows) for rows in on_stream]


def test_example_1_3_with_a_table_and_partitions_by_two_columns(local: Streams) -> None:
    local.add(
        "CREATE TABLE stations (stationId INT, location STRING)",
        """
        stationId | location
        1         | Exit 111
        3         | Exit 113
        """,
    )
    local.add(
        "CREATE STREAM speed (road STRING, stationId INT, speed DOUBLE, speedTime INT) ORDER BY speedTime",
        """
        road | stationId | speed | speedTime
        A1   | 1         | 60    | 0
        A1   | 2         | 60    | 0
        B2   | 1         | 99    | 0
        A1   | 1         | 50    | 1
        B2   | 1         | 20    | 1
        A1   | 2         | 9     | 1
        A1   | 1         | 30    | 2
        A1   | 1         | 15    | 3
        B2   | 1         | 25    | 3
        A1   | 1         | 40    | 4
        """,
    )
    # The road is part of a partition: 60, 99, 50, 20 are not one run. The place of station 2 is unknown.
    assert local.run("""
        SELECT road, upper(A.location) AS place, LAST(Y).speedTime
        FROM stations AS A, speed PARTITION BY road, stationId AS (X, *Y)
        WHERE X.speed > 50 AND Y.speed < Y.previous.speed AND LAST(*Y).speed < 0.3 * X.speed
          AND ccount(Y) <= 6 AND X.stationId = A.stationId AND A.location LIKE 'Exit%'
    """) == table("""
        road | place    | speedTime
        B2   | EXIT 111 | 1
        A1   | EXIT 111 | 3
    """)


def test_matches_are_a_stream_for_windows_and_for_patterns(local: Streams) -> None:
    local.add("CREATE STREAM S (k STRING, v INT, t INT) ORDER BY t", VALUES)
    local.engine.execute(f"""
        CREATE STREAM Rises AS SELECT k, {RISES.format("S PARTITION BY k")};
        CREATE STREAM Tens AS SELECT k, sum(v) AS v FROM S [TUMBLE 10] GROUP BY k;
    """)
    rises, tens = local.run_all("""
        SELECT * FROM Rises;
        SELECT window_end, count(*) AS rises, max(high) AS highest FROM Rises [TUMBLE 10];
    """)
    pairs, of_windows = local.run_all(f"""
        SELECT A.high AS one, B.high AS other FROM Rises AS (A, B) WHERE B.high > A.high;
        SELECT k, {RISES.format("Tens PARTITION BY k")};
    """)
    # In the order of the last tuple of each: 4, 5, 14 and 22.
    assert rises == table("""
        k | low | high | steps
        a | 1   | 4    | 2
        b | 5   | 6    | 1
        a | 3   | 7    | 2
        b | 2   | 9    | 1
    """)
    assert tens == table("""
        window_end | rises | highest
        10         | 2     | 6
        20         | 1     | 7
        30         | 1     | 9
    """)
    assert pairs == table("""
        one | other
        4   | 6
        7   | 9
    """)
    # The sums are 10, 12, 1 for a and 11, 2, 9 for b.
    assert of_windows == table("""
        k | low | high | steps
        a | 10  | 12   | 1
        b | 2   | 9    | 1
    """)


def test_a_table_is_searched_in_the_order_of_several_columns(local: Streams) -> None:
    local.add(
        "CREATE TABLE T (day INT, hour INT, v INT)",
        """
        day | hour | v
        2   | 1    | 5
        1   | 2    | 3
        1   |      | 1
            | 9    | 0
        1   | 2    | 4
        2   | 0    | 9
        """,
    )
    # NULL comes first, as everywhere in Spark, and what ties stays as it is: 0, 1, 3, 4, 9, 5.
    assert local.run(f"SELECT {RISES.format('T SEQUENCE BY day, hour')}") == table("""
        low | high | steps
        0   | 9    | 4
    """)


@pytest.mark.parametrize(
    "stream", ["(v INT)", "(v INT, current_time TIMESTAMP) ORDER BY current_time"], ids=["latent", "internal"]
)
def test_streams_without_a_timestamp_of_their_own(streams: Streams, stream: str) -> None:
    streams.add(f"CREATE STREAM S {stream}", "v\n3\n1\n2\n4\n0\n", "v\n5\n5\n6\n")
    assert streams.run(f"SELECT {RISES.format('S')}") == table("""
        low | high | steps
        1   | 4    | 2
        0   | 5    | 1
        5   | 6    | 1
    """)


def test_a_pattern_may_be_asked_nothing_or_the_same_in_capitals(local: Streams) -> None:
    local.add("CREATE STREAM S (k STRING, v INT, t INT) ORDER BY t", VALUES)
    nothing, twice = local.run_all("""
        SELECT 1 AS one FROM S PARTITION BY k AS (X, *Y) WHERE Y.v > Y.previous.v;
        SELECT count(*Y), COUNT(*Y), X.v, X.previous.v AS before
        FROM S PARTITION BY k AS (X, *Y) WHERE Y.v > Y.previous.v AND X.v > 2;
    """)
    assert nothing == [("one",), *[("1",)] * 4]
    assert twice == table("""
        count(*Y) | COUNT(*Y) | v | before
        1         | 1         | 5 |
        2         | 2         | 3 | 4
    """)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("10 / X.v < Y.v", "division by zero, for the tuple (v 3)"),
        ("Y.v + 2147483647 > X.v", "a value does not fit its type, for the tuple (v 1)"),
    ],
)
def test_what_a_condition_cannot_be_computed_for_is_shown(
    local: Streams, condition: str, reason: str
) -> None:
    local.add("CREATE STREAM S (v INT, t INT) ORDER BY t", "v | t\n2 | 1\n0 | 2\n3 | 3\n1 | 4\n")
    with pytest.raises(ExecutionError) as raised:
        local.run(f"SELECT X.v FROM S AS (X, Y) WHERE {condition}")
    assert raised.value.message == f"pattern (X, Y): {reason}, in {condition}"
    assert raised.value.hint == "guard against it in the condition with CASE"
    assert raised.value.place is not None


def test_how_a_pattern_is_run_can_be_read(local: Streams) -> None:
    local.add("CREATE STREAM S (k STRING, v INT, t INT) ORDER BY t", VALUES)
    query = f"SELECT k, {RISES.format('S PARTITION BY k')}"
    assert local.engine.explain(query).startswith(
        "PatternMatch PARTITION BY k AS (X, *Y) WHERE Y.v > Y.previous.v RETURNING S.k, X.v AS low"
    )
    physical = local.engine.explain(query, "physical")
    assert "Stage 1  partition by S.k (STRING, hash)" in physical
    assert "│  PatternMatch\n" in physical
    assert "program (X, *Y) " in physical
    code = local.engine.explain(query, "code")
    assert "# pattern    (X, *Y) of (v int, k string)" in code
    assert max(map(len, code.splitlines())) <= 110
    compile(code, "<code>", "exec")


def test_a_search_goes_on_after_an_interruption(spark: SparkSession, tmp_path: Path) -> None:
    """The rise of a is on its way when the query is stopped, and another condition is another query."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("a,1,1\nb,9,2\na,2,3\n")
    script = f"""
        CREATE STREAM s (k STRING, v INT, t INT) ORDER BY t
          USING csv OPTIONS (path '{source}', follow 'true');
        SELECT k, X.v AS low, LAST(Y).v AS high, count(*Y) AS steps
        FROM s PARTITION BY k AS (X, *Y) WHERE Y.v > Y.previous.v;
    """
    for expected in ([], [{"k": "a", "low": 1, "high": 3, "steps": 2}]):
        with ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill:
            [query] = mill.execute(script)
            query.streaming.processAllAvailable()  # type: ignore[union-attr]
            query.stop()
            assert query.collect().to_pylist() == expected
        (source / "2.csv").write_text("a,3,4\na,0,5\n")
    with (
        ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill,
        pytest.raises(ExecutionError, match=r"it was '.*Y\.v > Y\.previous\.v"),
    ):
        mill.execute(script.replace("Y.v > Y.previous.v", "Y.v >= Y.previous.v"))


def test_patterns_of_a_script_read_their_stream_once(streams: Streams) -> None:
    streams.add("CREATE STREAM s (k STRING, v INT, t INT) ORDER BY t", VALUES)
    queries = streams.engine.execute(f"""
        SELECT k, {RISES.format("s PARTITION BY k")};
        SELECT {RISES.format("s")};
        SELECT count(*) AS n FROM s [TUMBLE 100];
    """)
    try:
        assert len({query.streaming.id for query in queries}) == 1  # type: ignore[union-attr]
        assert [query.collect().num_rows for query in queries] == [4, 3, 1]
    finally:
        for query in queries:
            query.close()
