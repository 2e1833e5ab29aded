"""Windows over an aggregate call, sentence by sentence (semantics, section 5)."""

import pytest

from millstream.errors import AnalysisError
from tests.oracle.little import ask, late, shown, table

STREAM = "CREATE STREAM s (k STRING, v INT, t TIMESTAMP) ORDER BY t"


def test_rows_the_tuple_and_the_n_before_it_in_its_partition() -> None:
    result = ask(
        f"{STREAM}; SELECT k, v, sum(v) OVER (PARTITION BY k ROWS 1 PRECEDING) AS s FROM s",
        s="""
        k | v  | t
        x | 1  | 10:00:00
        y | 10 | 10:00:01
        x | 2  | 10:00:02
        x | 3  | 10:00:03
        y | 20 | 10:00:04
        """,
    )
    assert shown(result) == table("""
        time     | k | v  | s
        10:00    | x | 1  | 1
        10:00:01 | y | 10 | 10
        10:00:02 | x | 2  | 3
        10:00:03 | x | 3  | 5
        10:00:04 | y | 20 | 30
    """)


def test_range_the_tuples_since_the_timestamp_minus_t_both_ends_included() -> None:
    result = ask(
        f"{STREAM}; SELECT v, count(*) OVER (RANGE INTERVAL 10 SECONDS PRECEDING) AS n FROM s",
        s="""
        k | v | t
          | 1 | 10:00:00
          | 2 | 10:00:05
          | 3 | 10:00:10
          | 4 | 10:00:11
          | 5 | 10:00:21
        """,
    )
    assert shown(result) == table("""
        time     | v | n
        10:00    | 1 | 1
        10:00:05 | 2 | 2
        10:00:10 | 3 | 3
        10:00:11 | 4 | 3
        10:00:21 | 5 | 2
    """)


def test_a_tuple_does_not_see_later_tuples_of_its_own_timestamp() -> None:
    result = ask(
        f"{STREAM}; SELECT v, sum(v) OVER (RANGE INTERVAL 1 SECOND PRECEDING) AS s FROM s",
        s="""
        k | v | t
          | 1 | 10:00:00
          | 2 | 10:00:00
        ---
          | 4 | 10:00:00
        """,
    )
    assert shown(result, time=False) == [("v", "s"), ("1", "1"), ("2", "3"), ("4", "7")]


def test_the_current_row_alone() -> None:
    result = ask(
        f"""{STREAM}; SELECT v,
            sum(v) OVER (ROWS 0 PRECEDING) AS r,
            sum(v) OVER (RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS t FROM s""",
        s="""
        k | v | t
          | 1 | 10:00:00
          | 2 | 10:00:00
          | 4 | 10:00:01
        """,
    )
    assert shown(result, time=False) == [("v", "r", "t"), ("1", "1", "1"), ("2", "2", "3"), ("4", "4", "4")]


def test_several_windows_in_one_select() -> None:
    result = ask(
        f"""
        {STREAM};
        SELECT v, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS everything,
               count(*) OVER (PARTITION BY k RANGE UNBOUNDED PRECEDING) AS in_k,
               max(v) OVER (PARTITION BY v % 2 ROWS 1 PRECEDING) AS by_parity FROM s
        """,
        s="""
        k | v | t
        x | 5 | 10:00:00
        y | 4 | 10:00:01
        x | 3 | 10:00:02
        x | 1 | 10:00:03
        """,
    )
    assert shown(result, time=False) == table("""
        v | everything | in_k | by_parity
        5 | 1          | 1    | 5
        4 | 2          | 1    | 4
        3 | 3          | 2    | 5
        1 | 4          | 3    | 3
    """)


def test_disorder_within_the_slack_gives_the_results_of_the_sorted_input() -> None:
    result = ask(
        f"{STREAM} SLACK INTERVAL 10 SECONDS; SELECT v, sum(v) OVER (ROWS 1 PRECEDING) AS s FROM s",
        s="""
        k | v | t
          | 4 | 10:00:10
          | 1 | 10:00:00
          | 2 | 10:00:05
        """,
    )
    assert shown(result, time=False) == [("v", "s"), ("1", "1"), ("2", "3"), ("4", "6")]


def test_late_tuples_are_in_no_window_generous_or_not() -> None:
    for mode in ("CONSISTENT", "GENEROUS"):
        result = ask(
            f"{STREAM} SLACK INTERVAL 1 SECOND {mode}; SELECT v, sum(v) OVER (ROWS 9 PRECEDING) AS s FROM s",
            s="""
            k | v   | t
              | 1   | 10:00:10
              | 100 | 10:00:00
              | 2   | 10:00:11
            """,
        )
        assert shown(result, time=False) == [("v", "s"), ("1", "1"), ("2", "3")]
        assert [row[1] for row in late(result)] == ["100"]


def test_filter_takes_tuples_out_of_the_aggregate_but_not_out_of_the_window() -> None:
    result = ask(
        f"{STREAM}; SELECT v, sum(v) FILTER (WHERE v > 1) OVER (ROWS 1 PRECEDING) AS s FROM s",
        s="""
        k | v | t
          | 2 | 10:00:00
          | 1 | 10:00:01
          | 1 | 10:00:02
          | 3 | 10:00:03
        """,
    )
    assert shown(result, time=False) == [("v", "s"), ("2", "2"), ("1", "2"), ("1", ""), ("3", "3")]


def test_where_comes_before_the_window() -> None:
    result = ask(
        f"{STREAM}; SELECT v, count(*) OVER (ROWS 1 PRECEDING) AS n FROM s WHERE v > 1",
        s="k | v | t\n| 2 | 10:00:00\n| 1 | 10:00:01\n| 3 | 10:00:02",
    )
    assert shown(result, time=False) == [("v", "n"), ("2", "1"), ("3", "2")]


def test_the_timestamp_travels_along_unselected() -> None:
    result = ask(
        f"""
        {STREAM};
        CREATE STREAM d AS SELECT v * 10 AS w FROM s WHERE v > 1;
        SELECT w, sum(w) OVER (RANGE INTERVAL 2 SECONDS PRECEDING) AS s FROM d
        """,
        s="k | v | t\n| 2 | 10:00:00\n| 1 | 10:00:01\n| 3 | 10:00:02\n| 4 | 10:00:03",
    )
    assert shown(result) == table("""
        time     | w  | s
        10:00    | 20 | 20
        10:00:02 | 30 | 50
        10:00:03 | 40 | 70
    """)


def test_a_latent_stream_is_counted_in_order_of_arrival() -> None:
    result = ask(
        "CREATE STREAM s (v INT); SELECT v, sum(v) OVER (ROWS 1 PRECEDING) AS s FROM s",
        s="v\n3\n1\n---\n2",
    )
    assert shown(result) == [("time", "v", "s"), ("", "3", "3"), ("", "1", "4"), ("", "2", "3")]


# ---------------------------------------------------------------- SLIDE


def test_slide_k_gives_the_result_of_the_last_tuple_of_each_slot() -> None:
    result = ask(
        f"{STREAM}; SELECT k, v, sum(v) OVER (PARTITION BY k ROWS 2 PRECEDING SLIDE 2) AS s FROM s",
        s="""
        k | v | t
        x | 1 | 10:00:00
        y | 9 | 10:00:01
        x | 2 | 10:00:02
        x | 3 | 10:00:03
        x | 4 | 10:00:04
        x | 5 | 10:00:05
        """,
    )
    assert shown(result) == table("""
        time     | k | v | s
        10:00:02 | x | 2 | 3
        10:00:04 | x | 4 | 9
    """)


def test_a_slide_longer_than_the_window_is_a_tumble() -> None:
    result = ask(
        f"{STREAM}; SELECT sum(v) OVER (ROWS 1 PRECEDING SLIDE 3) AS s FROM s",
        s="k | v | t\n" + "\n".join(f"| {v} | 10:00:0{v}" for v in range(1, 8)),
    )
    assert shown(result, time=False) == [("s",), ("5",), ("11",)]


def test_slide_interval_yields_the_last_tuple_of_each_slot_from_the_epoch() -> None:
    script = f"""
        {STREAM}; SELECT v, count(*) OVER (RANGE INTERVAL 7 SECONDS PRECEDING SLIDE INTERVAL 5 SECONDS) AS n
        FROM s"""
    arrivals = """
        k | v | t
          | 1 | 10:00:01
          | 2 | 10:00:04
          | 3 | 10:00:05
          | 4 | 10:00:09
          | 5 | 10:00:12
        """
    assert shown(ask(script, s=arrivals)) == table("""
        time     | v | n
        10:00:04 | 2 | 2
        10:00:09 | 4 | 3
        10:00:12 | 5 | 3
    """)
    # The last slot is not over before something promises it: a tuple at its end does.
    assert [row.values[0] for row in ask(script, s=arrivals, ended=False).rows] == [2, 4]
    longer = f"{arrivals.rstrip()}\n | 6 | 10:00:15"
    assert [row.values[0] for row in ask(script, s=longer, ended=False).rows] == [2, 4, 5]


# ---------------------------------------------------------------- finality


def test_a_result_is_final_when_nothing_before_its_tuple_can_come() -> None:
    script = (
        "CREATE STREAM s (v STRING, t INT) ORDER BY t; SELECT v, count(*) OVER (ROWS 9 PRECEDING) AS n FROM s"
    )
    arrivals = """
        v | t
        a | 1
        b | 3
        c | 3
        d | 4
        ---
        e | 2
        f | 3
        """
    # The second partition has promised 3: its next tuple may stand before d and behind f, never before b.
    result = ask(script, s=arrivals, ended=False)
    assert [row.values for row in result.rows] == [("a", 1), ("e", 2), ("b", 3), ("c", 4), ("f", 5)]
    assert len(ask(script, s=arrivals).rows) == 6


def test_of_equal_timestamps_those_of_later_partitions_wait_for_the_earlier_ones() -> None:
    script = (
        "CREATE STREAM s (v STRING, t INT) ORDER BY t; SELECT v, count(*) OVER (ROWS 9 PRECEDING) AS n FROM s"
    )
    # Another tuple of the first partition at 3 would stand behind a and before b.
    result = ask(script, s="v | t\na | 3\n---\nb | 3\nc | 4", ended=False)
    assert [row.values for row in result.rows] == [("a", 1)]


def test_a_partition_that_has_promised_nothing_holds_back_everything() -> None:
    script = """CREATE STREAM s (v STRING, t INT) ORDER BY t SLACK 2 ROWS;
        SELECT v, count(*) OVER (ROWS 9 PRECEDING) AS n FROM s"""
    arrivals = "v | t\na | 1\nb | 2\nc | 3\nd | 4\n---\ne | 9"
    assert ask(script, s=arrivals, ended=False).rows == []
    assert [row.values for row in ask(script, s=arrivals).rows][-1] == ("e", 5)


# ---------------------------------------------------------------- EMIT EVERY


def test_emit_every_so_many_tuples_reports_the_tuples_that_yield_nothing() -> None:
    result = ask(
        f"""{STREAM};
        SELECT v, complete, sum(v) OVER (PARTITION BY k ROWS 2 PRECEDING SLIDE 4 EMIT EVERY 2) AS s FROM s""",
        s="k | v | t\n" + "\n".join(f"{'y' if v == 4 else 'x'} | {v} | 10:00:0{v}" for v in range(1, 9)),
    )
    # Of x the tuples are 1, 2, 3, 5, 6, 7, 8; of y there is only one.
    assert shown(result) == table("""
        time     | v | complete | s
        10:00:02 | 2 | false    | 3
        10:00:05 | 5 | true     | 10
        10:00:07 | 7 | false    | 18
    """)


def test_emit_every_interval_reports_the_last_tuple_of_the_open_slot() -> None:
    script = f"""{STREAM};
        SELECT v, complete, count(*) OVER (
            RANGE INTERVAL 7 SECONDS PRECEDING SLIDE INTERVAL 6 SECONDS EMIT EVERY INTERVAL 2 SECONDS) AS n
        FROM s"""
    arrivals = """
        k | v | t
          | 1 | 10:00:01
          | 2 | 10:00:02
          | 3 | 10:00:07
          | 4 | 10:00:08
          | 5 | 10:00:14
        """
    # At 6 and 12 slots end, and when 13 would be reported nothing has been promised beyond 14.
    expected = table("""
        time     | v | complete | n
        10:00:02 | 1 | false    | 1
        10:00:02 | 2 | true     | 2
        10:00:04 | 2 | false    | 2
        10:00:08 | 3 | false    | 3
        10:00:08 | 4 | true     | 4
        10:00:10 | 4 | false    | 4
        10:00:14 | 5 | true     | 3
    """)
    assert shown(ask(script, s=arrivals)) == expected
    assert shown(ask(script, s=arrivals, ended=False)) == expected[:-1]


def test_emit_every_and_slide_are_measured_alike() -> None:
    for over in ("SLIDE 2 EMIT EVERY INTERVAL 1 SECOND", "SLIDE INTERVAL 2 SECONDS EMIT EVERY 1"):
        with pytest.raises(AnalysisError, match="both count tuples, or both are lengths along the timestamp"):
            ask(f"{STREAM}; SELECT sum(v) OVER (ROWS 2 PRECEDING {over}) AS s FROM s", s="k | v | t")


def test_what_is_held_back_in_a_slot_holds_back_what_is_computed_from_it() -> None:
    script = f"""
        {STREAM} HEARTBEAT INTERVAL 1 SECOND;
        CREATE STREAM d AS SELECT v, sum(v) OVER (ROWS 9 PRECEDING SLIDE INTERVAL 5 SECONDS) AS s FROM s;
        SELECT count(*) AS n FROM d [TUMBLE 1 SECOND]
        """
    arrivals = "k | v | t\n| 1 | 10:00:01\nheartbeat 10:00:04"
    # The tuple at 1 is still to come, when its slot is over: the window that ends at 2 must wait for it.
    assert ask(script, s=arrivals, ended=False).rows == []
    result = ask(script, s=arrivals + "\nheartbeat 10:00:05", ended=False)
    assert shown(result) == [("time", "n"), ("10:00:02", "1")]
