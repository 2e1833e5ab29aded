"""Windows over a call that slide, and that emit early, end to end (semantics, section 5)."""

import pytest

from millstream.errors import AnalysisError
from millstream.testing import Streams, table

BIDS = """
    item | price | t
    1    | 10    | 1
    2    | 5     | 2
    1    | 20    | 3
    2    |       | 4
    1    | 30    | 6
    1    | 40    | 7
    2    | 7     | 8
    1    | 50    | 9
"""
EARLY = """
    k | v  | t
    a | 1  | 2026-01-01 10:00:01
    b | 2  | 2026-01-01 10:00:03
    a | 4  | 2026-01-01 10:00:08
"""
LATER = """
    k | v  | t
    a | 8  | 2026-01-01 10:00:11
    b | 16 | 2026-01-01 10:00:25
"""
CALM = """
    CREATE STREAM Calm AS SELECT k, t, max(v) OVER (
        PARTITION BY k RANGE INTERVAL 5 SECONDS PRECEDING SLIDE INTERVAL 10 SECONDS
    ) AS m FROM Reading;
"""
CASES = {
    "the last tuple of every slot of its partition gives a row": (
        """
        SELECT item, t, sum(price) OVER (PARTITION BY item ROWS 2 PRECEDING SLIDE 2) AS last_three,
               count(*) OVER (PARTITION BY item RANGE 3 PRECEDING SLIDE 2) AS recent,
               max(price) OVER (PARTITION BY item ROWS UNBOUNDED PRECEDING SLIDE 2) AS highest
        FROM Bid
        """,
        """
        item | t | last_three | recent | highest
        1    | 3 | 30.0       | 2      | 20.0
        2    | 4 | 5.0        | 2      | 5.0
        1    | 7 | 90.0       | 2      | 40.0
        """,
    ),
    "a tumble is about the end of its slot only": (
        "SELECT t, sum(price) OVER (ROWS 1 PRECEDING SLIDE 4) AS s FROM Bid",
        """
        t | s
        4 | 20.0
        9 | 57.0
        """,
    ),
    "the last tuple of a slot of time gives a row": (
        """
        SELECT k, v, sum(v) OVER (
            PARTITION BY k RANGE INTERVAL 5 SECONDS PRECEDING SLIDE INTERVAL 10 SECONDS
        ) AS s FROM Reading
        """,
        """
        k | v  | s
        b | 2  | 2
        a | 4  | 4
        a | 8  | 12
        b | 16 | 16
        """,
    ),
    "partial results every so many tuples": (
        """
        SELECT t, count(*) OVER (ROWS UNBOUNDED PRECEDING SLIDE 4 EMIT EVERY 3) AS n, complete FROM Bid
        """,
        """
        t | n | complete
        3 | 3 | false
        4 | 4 | true
        7 | 6 | false
        9 | 8 | true
        """,
    ),
    # At :24 the slot has no tuple yet, and time does not come to :28 before the end.
    "partial results every so often are stamped when they are given out": (
        """
        SELECT complete, k, v, sum(v) OVER (
            RANGE UNBOUNDED PRECEDING SLIDE INTERVAL 10 SECONDS EMIT EVERY INTERVAL 4 SECONDS
        ) AS s FROM Reading
        """,
        """
        complete | k | v  | s
        false    | b | 2  | 3
        false    | b | 2  | 3
        true     | a | 4  | 7
        true     | a | 8  | 15
        false    | a | 8  | 15
        false    | a | 8  | 15
        true     | b | 16 | 31
        """,
    ),
    "results that slide are a stream again": (
        "SELECT k, m, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS n FROM Calm",
        """
        k | m  | n
        b | 2  | 1
        a | 4  | 2
        a | 8  | 3
        b | 16 | 4
        """,
    ),
    "whether a result is complete is known where there are partial ones": (
        """
        SELECT t FROM (
            SELECT t, complete AS whole, count(*) OVER (ROWS 1 PRECEDING SLIDE 4 EMIT EVERY 2) FROM Bid
        ) WHERE NOT whole
        """,
        """
        t
        2
        7
        """,
    ),
}


@pytest.fixture
def streams(local: Streams) -> Streams:
    local.add("CREATE STREAM Bid (item INT, price DOUBLE, t INT) ORDER BY t", BIDS)
    local.add("CREATE STREAM Reading (k STRING, v INT, t TIMESTAMP) ORDER BY t", EARLY, LATER)
    local.engine.execute(CALM)
    return local


@pytest.mark.parametrize("case", CASES)
def test_a_window_that_slides(streams: Streams, case: str) -> None:
    query, expected = CASES[case]
    assert streams.run(query) == table(expected)


def test_whether_a_result_is_complete_is_unknown_where_there_are_no_partial_ones(streams: Streams) -> None:
    with pytest.raises(AnalysisError, match="unknown column 'complete'"):
        streams.run("SELECT complete, count(*) OVER (ROWS 1 PRECEDING SLIDE 4) AS n FROM Bid")
