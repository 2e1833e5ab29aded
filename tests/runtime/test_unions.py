"""Unions of derived streams, and bounds of windows by name, end to end."""

import pytest

from millstream.testing import Streams, table

A = """
    id | k | v  | t
    1  | x | 10 | 1
    2  | y | 5  | 3
    3  | x | 20 | 11
    4  | y | 2  | 12
    5  | x | 7  | 25
"""
B = """
    id | k | v | t
    11 | x | 1 | 2
    12 | y | 3 | 9
    13 | x | 4 | 14
    14 | z | 9 | 21
"""


def add_streams(streams: Streams) -> Streams:
    streams.add("CREATE STREAM a (id INT, k STRING, v INT, t INT) ORDER BY t", A)
    streams.add("CREATE STREAM b (id INT, k STRING, v INT, t INT) ORDER BY t", B)
    streams.engine.execute("""
        CREATE STREAM tens AS SELECT window_end, k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k;
        CREATE STREAM pairs AS SELECT x.k AS k, x.v + y.v AS n
        FROM a [RANGE 10] x JOIN b [RANGE 10] y ON x.k = y.k;
        CREATE STREAM numbers AS SELECT max(k) AS k, count(*) AS n FROM b [TUMBLE 10] GROUP BY id
    """)
    return streams


@pytest.fixture
def both(local: Streams) -> Streams:
    return add_streams(local)


def test_derived_streams_are_merged_by_timestamp(both: Streams) -> None:
    """Groups of the sides have different types, and give the order of results with the same time."""
    assert both.run("""
        SELECT k, n FROM tens UNION ALL SELECT k, n FROM numbers UNION ALL SELECT k, v FROM b WHERE v > 3
    """) == table("""
        k | n
        x | 10
        y | 5
        x | 1
        y | 1
        x | 4
        x | 20
        y | 2
        x | 1
        z | 9
        x | 7
        z | 1
    """)


def test_operators_above_a_union(streams: Streams) -> None:
    assert add_streams(streams).run("""
        SELECT k, n, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS i
        FROM (SELECT k, n FROM pairs WHERE n > 10 UNION ALL SELECT k, n FROM tens
              UNION ALL SELECT k, v FROM b)
    """) == table("""
        k | n  | i
        x | 11 | 1
        x | 1  | 2
        y | 3  | 3
        x | 10 | 4
        y | 5  | 5
        x | 21 | 6
        x | 24 | 7
        x | 4  | 8
        x | 20 | 9
        y | 2  | 10
        z | 9  | 11
        x | 7  | 12
    """)


def test_a_column_called_window_end_in_a_join(both: Streams) -> None:
    assert both.run("""
        SELECT p.window_end, p.n, q.n AS m FROM tens [NOW] p JOIN tens [NOW] q
        ON p.window_end = q.window_end AND p.k < q.k
    """) == table("""
        window_end | n  | m
        10         | 10 | 5
        20         | 20 | 2
    """)


def test_bounds_in_group_by(both: Streams) -> None:
    assert both.run("""
        SELECT window_start, window_end, count(*) AS n FROM a [TUMBLE 5] GROUP BY window_start, window_end
    """) == table("""
        window_start | window_end | n
        0            | 5          | 2
        10           | 15         | 2
        25           | 30         | 1
    """)
