"""Windows over a call that slide, and that emit early, end to end (semantics, section 2)."""

import pytest

from millstream.errors import AnalysisError
from millstream.testing import Streams, table

pytestmark = pytest.mark.spark


@pytest.fixture
def bids(streams: Streams) -> Streams:
    streams.add(
        "CREATE STREAM Bid (item INT, price DOUBLE, t INT) ORDER BY t",
        """
        item | price | t
        1    | 10    | 1
        2    | 5     | 2
        1    | 20    | 3
        2    |       | 4
        1    | 30    | 6
        1    | 40    | 7
        2    | 7     | 8
        1    | 50    | 9
        """,
    )
    return streams


@pytest.fixture
def readings(streams: Streams) -> Streams:
    streams.add(
        "CREATE STREAM Reading (k STRING, v INT, t TIMESTAMP) ORDER BY t",
        """
        k | v  | t
        a | 1  | 2026-01-01 10:00:01
        b | 2  | 2026-01-01 10:00:03
        a | 4  | 2026-01-01 10:00:08
        """,
        """
        k | v  | t
        a | 8  | 2026-01-01 10:00:11
        b | 16 | 2026-01-01 10:00:25
        """,
    )
    return streams


def test_the_last_tuple_of_every_slot_of_its_partition_gives_a_row(bids: Streams) -> None:
    assert bids.run("""
        SELECT item, t, sum(price) OVER (PARTITION BY item ROWS 2 PRECEDING SLIDE 2) AS last_three,
               count(*) OVER (PARTITION BY item RANGE 3 PRECEDING SLIDE 2) AS recent,
               max(price) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING SLIDE 2) AS highest
        FROM Bid
    """) == table("""
        item | t | last_three | recent | highest
        1    | 3 | 30.0       | 2      | 20.0
        2    | 4 | 5.0        | 2      | 5.0
        1    | 7 | 90.0       | 2      | 40.0
    """)


def test_a_tumble_is_about_the_end_of_its_slot_only(bids: Streams) -> None:
    assert bids.run("SELECT t, sum(price) OVER (ROWS 1 PRECEDING SLIDE 4) AS s FROM Bid") == table("""
        t | s
        4 | 20.0
        9 | 57.0
    """)


def test_the_last_tuple_of_a_slot_of_time_gives_a_row(readings: Streams) -> None:
    assert readings.run("""
        SELECT k, v, sum(v) OVER (
            PARTITION BY k RANGE INTERVAL 5 SECONDS PRECEDING SLIDE INTERVAL 10 SECONDS
        ) AS s FROM Reading
    """) == table("""
        k | v  | s
        b | 2  | 2
        a | 4  | 4
        a | 8  | 12
        b | 16 | 16
    """)


def test_partial_results_every_so_many_tuples(bids: Streams) -> None:
    assert bids.run("""
        SELECT t, count(*) OVER (ROWS UNBOUNDED PRECEDING SLIDE 4 EMIT EVERY 3) AS n, complete FROM Bid
    """) == table("""
        t | n | complete
        3 | 3 | false
        4 | 4 | true
        7 | 6 | false
        9 | 8 | true
    """)


def test_partial_results_every_so_often_are_stamped_when_they_are_given_out(readings: Streams) -> None:
    # At :24 the slot has no tuple yet, and time does not come to :28 before the end.
    assert readings.run("""
        SELECT complete, k, v, sum(v) OVER (
            RANGE UNBOUNDED PRECEDING SLIDE INTERVAL 10 SECONDS EMIT EVERY INTERVAL 4 SECONDS
        ) AS s FROM Reading
    """) == table("""
        complete | k | v  | s
        false    | b | 2  | 3
        false    | b | 2  | 3
        true     | a | 4  | 7
        true     | a | 8  | 15
        false    | a | 8  | 15
        false    | a | 8  | 15
        true     | b | 16 | 31
    """)


def test_results_that_slide_are_a_stream_again(readings: Streams) -> None:
    readings.mill.execute("""
        CREATE STREAM Calm AS SELECT k, t, max(v) OVER (
            PARTITION BY k RANGE INTERVAL 5 SECONDS PRECEDING SLIDE INTERVAL 10 SECONDS
        ) AS m FROM Reading;
    """)
    assert readings.run("SELECT k, m, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM Calm") == table("""
        k | m  | n
        b | 2  | 1
        a | 4  | 2
        a | 8  | 3
        b | 16 | 4
    """)


def test_whether_a_result_is_complete_is_known_where_there_are_partial_ones(bids: Streams) -> None:
    with pytest.raises(AnalysisError, match="unknown column 'complete'"):
        bids.run("SELECT complete, count(*) OVER (ROWS 1 PRECEDING SLIDE 4) AS n FROM Bid")
    assert bids.run("""
        SELECT t FROM (
            SELECT t, complete AS whole, count(*) OVER (ROWS 1 PRECEDING SLIDE 4 EMIT EVERY 2) FROM Bid
        ) WHERE NOT whole
    """) == table("""
        t
        2
        7
    """)
