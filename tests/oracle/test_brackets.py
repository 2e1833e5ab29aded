"""Windows over a stream (semantics, section 6), with the examples of the Window-ID paper."""

import pytest

from millstream.errors import AnalysisError
from tests.oracle.little import ask, late, shown, table

TRAFFIC = "CREATE STREAM Traffic (seg_id STRING, speed INT, ts TIMESTAMP) ORDER BY ts"
NUMBERS = "CREATE STREAM s (k STRING, v INT, t INT) ORDER BY t"


# ---------------------------------------------------------------- the paper's running example


def test_q1_max_and_min_speed_over_five_minutes_every_minute() -> None:
    result = ask(
        f"""
        {TRAFFIC};
        SELECT wid, window_start, window_end, seg_id, max(speed) AS hi, min(speed) AS lo
        FROM Traffic [RANGE 300 SECONDS SLIDE 60 SECONDS WATTR ts ORIGIN TIMESTAMP '2026-01-01 12:00:00']
        WHERE ts >= TIMESTAMP '2026-01-01 12:10:00'
        GROUP BY seg_id
        """,
        Traffic="""
        seg_id | speed | ts
        s6     | 70    | 12:09:59
        s6     | 55    | 12:10:20
        s7     | 60    | 12:10:40
        s6     | 50    | 12:13:00
        """,
    )
    assert shown(result) == table("""
        time  | wid | window_start | window_end | seg_id | hi | lo
        12:11 | 10  | 12:06        | 12:11      | s6     | 55 | 55
        12:11 | 10  | 12:06        | 12:11      | s7     | 60 | 60
        12:12 | 11  | 12:07        | 12:12      | s6     | 55 | 55
        12:12 | 11  | 12:07        | 12:12      | s7     | 60 | 60
        12:13 | 12  | 12:08        | 12:13      | s6     | 55 | 55
        12:13 | 12  | 12:08        | 12:13      | s7     | 60 | 60
        12:14 | 13  | 12:09        | 12:14      | s6     | 55 | 50
        12:14 | 13  | 12:09        | 12:14      | s7     | 60 | 60
        12:15 | 14  | 12:10        | 12:15      | s6     | 55 | 50
        12:15 | 14  | 12:10        | 12:15      | s7     | 60 | 60
        12:16 | 15  | 12:11        | 12:16      | s6     | 50 | 50
        12:17 | 16  | 12:12        | 12:17      | s6     | 50 | 50
        12:18 | 17  | 12:13        | 12:18      | s6     | 50 | 50
    """)


def test_the_papers_punctuation_closes_window_10_and_nothing_else() -> None:
    """p1: no more tuples of segment s6 before 12:11:00; s6 is the only segment here."""
    script = f"""
        {TRAFFIC} PUNCTUATED BY (speed IS NULL) PER (seg_id);
        SELECT wid, seg_id, max(speed) AS hi
        FROM Traffic [RANGE 300 SECONDS SLIDE 60 SECONDS WATTR ts ORIGIN TIMESTAMP '2026-01-01 12:00:00']
        GROUP BY seg_id
    """
    arrivals = """
        seg_id | speed | ts
        s6     | 55    | 12:10:20
        s6     | 70    | 12:11:05
        s6     |       | 12:11:00
    """
    result = ask(script, Traffic=arrivals, ended=False)
    assert shown(result) == [("time", "wid", "seg_id", "hi"), ("12:11", "10", "s6", "55")]
    # With another segment that has promised nothing, window 10 stays open.
    result = ask(script, Traffic=arrivals.replace("s6     | 70", "s7     | 70"), ended=False)
    assert result.rows == []


def test_windows_at_the_beginning_are_partial() -> None:
    """Windows 0 to 3 of Q1 are 1, 2, 3 and 4 minutes long: nothing is before 12:00:00."""
    result = ask(
        f"""
        {TRAFFIC};
        SELECT wid, count(*) AS n
        FROM Traffic [RANGE 300 SECONDS SLIDE 60 SECONDS ORIGIN '2026-01-01 12:00:00']
        """,
        Traffic="seg_id | speed | ts\n" + "\n".join(f"s6 | 50 | 12:0{minute}:00" for minute in range(6)),
    )
    counts = [row.values for row in result.rows]
    assert counts[:6] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5)]
    assert counts[6:] == [(6, 4), (7, 3), (8, 2), (9, 1)]


# ---------------------------------------------------------------- section 3, sentence by sentence


def test_windows_are_aligned_at_the_epoch() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_start, window_end, count(*) AS n FROM s [RANGE 10 SLIDE 5]",
        s="k | v | t\n| 1 | -3\n| 1 | 0\n| 1 | 7",
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | n
        0    | -1  | -10          | 0          | 1
        5    | 0   | -5           | 5          | 2
        10   | 1   | 0            | 10         | 2
        15   | 2   | 5            | 15         | 1
    """)


def test_a_window_begins_with_its_start_and_ends_before_its_end() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, first(t) AS first, last(t) AS last FROM s [TUMBLE 10]",
        s="k | v | t\n| 1 | 0\n| 1 | 9\n| 1 | 10\n| 1 | 19\n| 1 | 20",
    )
    assert shown(result, time=False) == [
        ("wid", "first", "last"),
        ("0", "0", "9"),
        ("1", "10", "19"),
        ("2", "20", "20"),
    ]


def test_tuples_between_windows_that_do_not_touch_are_in_none() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_start, sum(v) AS s FROM s [RANGE 2 SLIDE 10]",
        s="k | v | t\n| 1 | 0\n| 2 | 8\n| 4 | 9\n| 8 | 10\n| 16 | 18",
    )
    assert shown(result) == [
        ("time", "wid", "window_start", "s"),
        ("10", "0", "8", "6"),
        ("20", "1", "18", "16"),
    ]


def test_an_empty_window_gives_no_row() -> None:
    result = ask(f"{NUMBERS}; SELECT wid, count(*) AS n FROM s [TUMBLE 10]", s="k | v | t\n| 1 | 5\n| 1 | 95")
    assert shown(result) == [("time", "wid", "n"), ("10", "0", "1"), ("100", "9", "1")]


def test_a_result_comes_when_punctuation_reaches_the_end_of_its_window() -> None:
    script = f"{NUMBERS}; SELECT wid, count(*) AS n FROM s [TUMBLE 10]"
    assert ask(script, s="k | v | t\n| 1 | 5\n| 1 | 9", ended=False).rows == []
    result = ask(script, s="k | v | t\n| 1 | 5\n| 1 | 10", ended=False)
    assert shown(result) == [("time", "wid", "n"), ("10", "0", "1")]


def test_progress_of_the_stream_is_the_minimum_over_source_partitions() -> None:
    script = f"{NUMBERS}; SELECT wid, count(*) AS n FROM s [TUMBLE 10]"
    result = ask(script, s="k | v | t\n| 1 | 5\n| 1 | 30\n---\n| 1 | 7\n| 1 | 12", ended=False)
    assert shown(result) == [("time", "wid", "n"), ("10", "0", "2")]


def test_out_of_order_tuples_count_where_they_belong() -> None:
    result = ask(
        f"{NUMBERS} SLACK 10; SELECT wid, sum(v) AS s, first(v) AS first, last(v) AS last FROM s [TUMBLE 10]",
        s="k | v | t\n| 4 | 12\n| 1 | 5\n| 2 | 2\n| 8 | 11",
    )
    assert shown(result, time=False) == table("""
        wid | s  | first | last
        0   | 3  | 2     | 1
        1   | 12 | 8     | 4
    """)


def test_group_by_divides_the_content_of_a_window() -> None:
    result = ask(
        f"""
        {NUMBERS};
        SELECT k, v % 2 AS parity, count(*) AS n, sum(v) + 1 AS s FROM s [TUMBLE 10]
        GROUP BY k, v % 2 HAVING count(*) > 1
        """,
        s="""
        k | v | t
        y | 1 | 1
        x | 2 | 2
        x | 3 | 3
        x | 4 | 4
        y | 5 | 5
          | 7 | 6
          | 9 | 7
        """,
    )
    assert shown(result) == table("""
        time | k | parity | n | s
        10   |   | 1      | 2 | 17
        10   | x | 0      | 2 | 7
        10   | y | 1      | 2 | 7
    """)


def test_pattr_is_group_by_where_windows_do_not_count_rows() -> None:
    arrivals = "k | v | t\nx | 1 | 1\ny | 2 | 2\nx | 4 | 3"
    by_pattr = ask(f"{NUMBERS}; SELECT k, sum(v) AS s FROM s [TUMBLE 10 PATTR k]", s=arrivals)
    by_group = ask(f"{NUMBERS}; SELECT k, sum(v) AS s FROM s [TUMBLE 10] GROUP BY k", s=arrivals)
    assert shown(by_pattr) == shown(by_group) == [("time", "k", "s"), ("10", "x", "5"), ("10", "y", "2")]


def test_a_group_of_nulls_is_a_row_all_the_same() -> None:
    result = ask(
        f"{NUMBERS}; SELECT count(*) AS n, count(v) AS c, sum(v) AS s, max(v) AS m FROM s [TUMBLE 10]",
        s="k | v | t\n| | 1\n| | 2",
    )
    assert shown(result) == [("time", "n", "c", "s", "m"), ("10", "2", "0", "", "")]


def test_a_window_on_another_attribute_closes_at_the_end_of_the_input() -> None:
    script = """
        CREATE STREAM s (v INT, a INT, t INT) ORDER BY t USING csv OPTIONS (path 'x.csv');
        SELECT wid, sum(v) AS s FROM s [RANGE 10 SLIDE 10 WATTR a]
    """
    arrivals = "v | a | t\n1 | 12 | 1\n2 | 3 | 2\n4 | | 3\n8 | 15 | 4"
    assert shown(ask(script, s=arrivals)) == [("time", "wid", "s"), ("10", "0", "2"), ("20", "1", "9")]
    assert ask(script, s=arrivals, ended=False).rows == []


def test_a_promise_on_another_attribute_closes_its_windows() -> None:
    result = ask(
        """
        CREATE STREAM s (v INT, a INT, t INT) ORDER BY t SLACK 5 ON a;
        SELECT wid, sum(v) AS s FROM s [RANGE 10 SLIDE 10 WATTR a]
        """,
        s="v | a | t\n1 | 12 | 1\n2 | 8 | 2\n4 | 15 | 3",
        ended=False,
    )
    assert shown(result) == [("time", "wid", "s"), ("10", "0", "2")]


BESIDE = "CREATE STREAM s (v INT, a INT, t INT) ORDER BY t SLACK 9 SLACK 9 ON a"


def test_the_content_of_a_window_is_in_the_order_of_its_attribute_and_ties_in_order_of_arrival() -> None:
    result = ask(
        f"{BESIDE}; SELECT wid, first(v) AS f, last(v) AS l FROM s [TUMBLE 10 WATTR a]",
        s="v | a | t\n1 | 5 | 4\n2 | 3 | 5\n3 | 3 | 1\n4 | 5 | 3",
    )
    assert shown(result, time=False) == [("wid", "f", "l"), ("0", "2", "4")]


def test_a_time_of_day_is_one_on_the_day_of_the_smallest_value() -> None:
    result = ask(
        """
        CREATE STREAM s (v INT, a TIMESTAMP, t INT) ORDER BY t SLACK INTERVAL 1 HOUR ON a;
        SELECT window_start, sum(v) AS s FROM s [LANDMARK START AT '10:00:30' WATTR a]
        """,
        s="v | a | t\n1 | 10:00:20 | 1\n2 | 10:00:40 | 2",
    )
    assert shown(result, time=False) == [("window_start", "s"), ("10:00:30", "2")]


@pytest.mark.parametrize(
    ("derived", "closes"),
    [
        ("SELECT v, a AS b FROM s WHERE v > 0", True),
        ("SELECT v, a AS b FROM s UNION ALL SELECT v, a FROM s", True),
        ("SELECT v, a AS b FROM s UNION SELECT v, a FROM s", False),
        ("SELECT sum(v) OVER (ROWS 1 PRECEDING) AS v, a AS b FROM s", False),
    ],
)
def test_promises_go_with_an_attribute_while_tuples_pass_as_read(derived: str, closes: bool) -> None:
    script = f"{BESIDE}; CREATE STREAM d AS {derived}; SELECT wid FROM d [TUMBLE 10 WATTR b] GROUP BY v % 1"
    if not closes:
        with pytest.raises(AnalysisError, match="nothing promises progress on 'b'"):
            ask(script, s="v | a | t")
        return
    result = ask(script, s="v | a | t\n1 | 5 | 1\n1 | 25 | 2", ended=False)
    assert shown(result, time=False) == [("wid",), ("0",)]


# ---------------------------------------------------------------- late tuples


SLACK = "{stream} SLACK 5 {mode}; SELECT wid, window_end, sum(v) AS s FROM s [RANGE 10 SLIDE 5]"
ARRIVALS = """
    k | v  | t
      | 1  | 18
      | 2  | 12
      | 4  | 11
"""


def test_consistent_slack_drops_a_late_tuple_from_all_its_windows() -> None:
    # The promise is 13 when the second and the third tuple come.
    result = ask(SLACK.format(stream=NUMBERS, mode="CONSISTENT"), s=ARRIVALS)
    assert shown(result) == table("""
        time | wid | window_end | s
        20   | 3   | 20         | 1
        25   | 4   | 25         | 1
    """)
    assert [row[1] for row in late(result)] == ["2", "4"]


def test_generous_slack_counts_it_in_windows_that_end_after_the_promise() -> None:
    result = ask(SLACK.format(stream=NUMBERS, mode="GENEROUS"), s=ARRIVALS)
    assert shown(result) == table("""
        time | wid | window_end | s
        15   | 2   | 15         | 6
        20   | 3   | 20         | 7
        25   | 4   | 25         | 1
    """)
    assert [row[1] for row in late(result)] == ["2", "4"]


def test_generous_slack_leaves_windows_alone_that_end_at_the_promise() -> None:
    # 20 - 5 = 15 is promised, so the window that ends at 15 is over.
    result = ask(SLACK.format(stream=NUMBERS, mode="GENEROUS"), s="k | v | t\n| 1 | 20\n| 2 | 12")
    assert shown(result) == table("""
        time | wid | window_end | s
        20   | 3   | 20         | 2
        25   | 4   | 25         | 1
        30   | 5   | 30         | 1
    """)


def test_generosity_is_measured_by_the_source_partition_of_the_tuple() -> None:
    arrivals = "k | v | t\n| 1 | 40\n| 2 | 12\n---\n| 4 | 12"
    result = ask(SLACK.format(stream=NUMBERS, mode="GENEROUS"), s=arrivals)
    # The first source has promised 35, which all windows of its late tuple are behind; the other has not.
    assert shown(result, time=False) == table("""
        wid | window_end | s
        2   | 15         | 4
        3   | 20         | 4
        8   | 45         | 1
        9   | 50         | 1
    """)


def test_late_tuples_reach_windows_through_derived_streams() -> None:
    result = ask(
        f"""
        {NUMBERS} SLACK 5 GENEROUS;
        CREATE STREAM d AS SELECT v + 1 AS w, t AS u FROM s WHERE v < 4;
        SELECT wid, sum(w) AS s FROM d [RANGE 10 SLIDE 5 WATTR u]
        """,
        s=ARRIVALS,
    )
    assert shown(result, time=False) == [("wid", "s"), ("2", "3"), ("3", "5"), ("4", "2")]


def test_a_tuple_must_have_broken_generous_promises_only() -> None:
    script = """
        CREATE STREAM s (v INT, a INT, t INT) ORDER BY t SLACK 5 GENEROUS SLACK 5 {mode} ON a;
        SELECT wid, sum(v) AS s FROM s [TUMBLE 100]
    """
    arrivals = "v | a | t\n1 | 20 | 50\n2 | 20 | 40\n4 | 10 | 60\n8 | 10 | 40"
    # 2 is late for t, 4 for a, 8 for both.
    for mode, total in (("CONSISTENT", 3), ("GENEROUS", 15)):
        result = ask(script.format(mode=mode), s=arrivals)
        assert [row.values for row in result.rows] == [(0, total)]
        assert [row[0] for row in late(result)] == ["2", "4", "8"]


# ---------------------------------------------------------------- types of the attribute


def test_windows_on_dates_decimals_and_doubles() -> None:
    by_date = ask(
        "CREATE STREAM s (d DATE) ORDER BY d; SELECT window_end, count(*) AS n FROM s [TUMBLE 7 DAYS]",
        s="d\n1970-01-01\n1970-01-07\n1970-01-08",
    )
    assert shown(by_date) == [
        ("time", "window_end", "n"),
        ("1970-01-08", "1970-01-08", "2"),
        ("1970-01-15", "1970-01-15", "1"),
    ]
    by_decimal = ask(
        "CREATE STREAM s (d DECIMAL(5, 2)) ORDER BY d; SELECT window_end, count(*) AS n FROM s [TUMBLE 0.5]",
        s="d\n0.49\n0.50",
    )
    assert shown(by_decimal, time=False) == [("window_end", "n"), ("0.50", "1"), ("1.00", "1")]
    by_double = ask(
        "CREATE STREAM s (d DOUBLE) ORDER BY d; SELECT window_end, count(*) AS n FROM s [TUMBLE 0.25]",
        s="d\n0.2499\n0.25",
    )
    assert shown(by_double, time=False) == [("window_end", "n"), ("0.25", "1"), ("0.5", "1")]


def test_an_edge_that_is_no_value_of_the_attribute_is_refused() -> None:
    with pytest.raises(AnalysisError, match=r"TUMBLE 2\.5 is finer than 't', which is of type int"):
        ask(f"{NUMBERS}; SELECT count(*) AS n FROM s [TUMBLE 2.5]", s="k | v | t\n| 1 | 1")


# ---------------------------------------------------------------- results that go on


def test_results_of_windows_are_a_stream_stamped_with_window_end() -> None:
    result = ask(
        f"""
        {NUMBERS};
        CREATE STREAM w AS SELECT k, count(*) AS n, window_end AS e FROM s [TUMBLE 10] GROUP BY k;
        SELECT k, n, sum(n) OVER (PARTITION BY k RANGE 10 PRECEDING) AS m FROM w
        """,
        s="k | v | t\nx | 1 | 1\nx | 1 | 2\ny | 1 | 3\nx | 1 | 15\nx | 1 | 29\ny | 1 | 30",
    )
    assert shown(result) == table("""
        time | k | n | m
        10   | x | 2 | 2
        10   | y | 1 | 1
        20   | x | 1 | 3
        30   | x | 1 | 2
        40   | y | 1 | 1
    """)


def test_results_up_to_where_windows_are_complete_are_final() -> None:
    script = f"""
        {NUMBERS};
        CREATE STREAM w AS SELECT k, count(*) AS n FROM s [TUMBLE 10] GROUP BY k;
        SELECT k, sum(n) OVER (ROWS 9 PRECEDING) AS m FROM w
    """
    result = ask(script, s="k | v | t\nx | 1 | 1\ny | 1 | 2\nx | 1 | 10", ended=False)
    assert shown(result) == [("time", "k", "m"), ("10", "x", "1"), ("10", "y", "2")]


def test_windows_over_the_results_of_windows() -> None:
    result = ask(
        f"""
        {NUMBERS};
        CREATE STREAM w AS SELECT count(*) AS n FROM s [TUMBLE 10];
        SELECT wid, window_end, max(n) AS m FROM w [RANGE 20 SLIDE 20]
        """,
        s="k | v | t\n| 1 | 1\n| 1 | 2\n| 1 | 12\n| 1 | 25",
    )
    # The counts are stamped 10, 20 and 30: the one at 20 is in the window that begins there.
    assert shown(result) == table("""
        time | wid | window_end | m
        20   | 0   | 20         | 2
        40   | 1   | 40         | 1
    """)
