"""Each kind of window over a stream, as little tables (semantics, section 6); Q1 is in test_brackets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import Arrivals, Row, answer
from tests.oracle.little import ask, late, shown, table

TRAFFIC = "CREATE STREAM Traffic (seg_id STRING, speed INT, ts TIMESTAMP) ORDER BY ts"
NUMBERS = "CREATE STREAM s (k STRING, v INT, t INT) ORDER BY t"
CARS = """
    seg_id | speed | ts
    s6     | 50    | 12:00:00
    s7     | 60    | 12:01:00
    s6     | 70    | 12:04:00
    s6     | 40    | 12:05:00
    s7     | 30    | 12:05:00
    s6     | 20    | 12:09:00
"""


def numbers(*times: int) -> str:
    """A stream of tuples at these times, whose values are powers of two: a sum tells which were added."""
    return "k | v | t\n" + "\n".join(f"{'xy'[i % 2]} | {2**i} | {t}" for i, t in enumerate(times))


# ---------------------------------------------------------------- rows


def test_q2_the_last_four_rows_every_two_divided_by_segment() -> None:
    result = ask(
        f"""
        {TRAFFIC};
        SELECT wid, window_start, window_end, seg_id, count(*) AS n
        FROM Traffic [RANGE 4 ROWS SLIDE 2 ROWS WATTR row_num] GROUP BY seg_id
        """,
        Traffic=CARS,
    )
    assert shown(result) == table("""
        time  | wid | window_start | window_end | seg_id | n
        12:01 | 0   | -2           | 2          | s6     | 1
        12:01 | 0   | -2           | 2          | s7     | 1
        12:05 | 1   | 0            | 4          | s6     | 3
        12:05 | 1   | 0            | 4          | s7     | 1
        12:09 | 2   | 2            | 6          | s6     | 3
        12:09 | 2   | 2            | 6          | s7     | 1
        12:09 | 3   | 4            | 8          | s6     | 1
        12:09 | 3   | 4            | 8          | s7     | 1
    """)


def test_q4_the_last_four_rows_every_two_of_each_segment() -> None:
    result = ask(
        f"""
        {TRAFFIC};
        SELECT wid, window_start, window_end, seg_id, count(*) AS n
        FROM Traffic [RANGE 4 ROWS SLIDE 2 ROWS WATTR row_num PATTR seg_id] GROUP BY seg_id
        """,
        Traffic=CARS,
    )
    # What the end of the input completes, window 1 of s7 and window 2 of s6, has the largest time of all.
    assert shown(result) == table("""
        time  | wid | window_start | window_end | seg_id | n
        12:04 | 0   | -2           | 2          | s6     | 2
        12:05 | 0   | -2           | 2          | s7     | 2
        12:09 | 1   | 0            | 4          | s6     | 4
        12:09 | 1   | 0            | 4          | s7     | 2
        12:09 | 2   | 2            | 6          | s6     | 2
    """)


def test_rows_are_counted_in_stream_order_and_row_num_in_order_of_arrival() -> None:
    arrivals = "k | v | t\n| 1 | 3\n| 2 | 1\n| 4 | 2\n| 8 | 5"
    by_time = ask(f"{NUMBERS} SLACK 9; SELECT wid, sum(v) AS s FROM s [TUMBLE 2 ROWS]", s=arrivals)
    assert shown(by_time) == [("time", "wid", "s"), ("2", "0", "6"), ("5", "1", "9")]
    by_arrival = ask(
        f"{NUMBERS} SLACK 9; SELECT wid, sum(v) AS s FROM s [RANGE 2 ROWS SLIDE 2 ROWS WATTR row_num]",
        s=arrivals,
    )
    # The first window is complete with the second tuple, but the first one was later.
    assert shown(by_arrival) == [("time", "wid", "s"), ("3", "0", "3"), ("5", "1", "12")]


def test_a_row_window_slides_by_one_row_if_nothing_else_is_said() -> None:
    result = ask(f"{NUMBERS}; SELECT wid, sum(v) AS s FROM s [ROWS 2]", s=numbers(1, 2, 2))
    assert shown(result) == [
        ("time", "wid", "s"),
        ("1", "0", "1"),
        ("2", "1", "3"),
        ("2", "2", "6"),
    ], "the two latest tuples do not become fewer because the input ends"


def test_row_windows_do_not_count_late_tuples_generous_or_not() -> None:
    for mode in ("CONSISTENT", "GENEROUS"):
        result = ask(
            f"{NUMBERS} SLACK 1 {mode}; SELECT wid, sum(v) AS s FROM s [TUMBLE 2 ROWS]",
            s=numbers(1, 9, 2, 10),
        )
        assert shown(result) == [("time", "wid", "s"), ("9", "0", "3"), ("10", "1", "8")]
        assert [row[1] for row in late(result)] == ["4"]


def test_where_divides_what_rows_have_counted() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, sum(v) AS s FROM s [TUMBLE 2 ROWS] WHERE k = 'x'", s=numbers(1, 2, 3, 4)
    )
    assert shown(result) == [("time", "wid", "s"), ("2", "0", "1"), ("4", "1", "4")]


def test_a_row_window_is_out_when_its_last_tuple_is_final() -> None:
    script = f"{NUMBERS} SLACK 2; SELECT wid, sum(v) AS s FROM s [TUMBLE 2 ROWS]"
    result = ask(script, s=numbers(1, 2, 3, 5), ended=False)
    assert shown(result) == [("time", "wid", "s"), ("2", "0", "3")]


def test_a_latent_stream_is_counted_without_any_time() -> None:
    result = ask("CREATE STREAM s (v INT); SELECT wid, sum(v) AS s FROM s [TUMBLE 2 ROWS]", s="v\n1\n2\n4")
    assert shown(result) == [("time", "wid", "s"), ("", "0", "3"), ("", "1", "4")]


# ---------------------------------------------------------------- sliding by tuples


def test_q3_a_window_for_every_tuple_reaches_back_for_five_minutes() -> None:
    result = ask(
        f"""
        {TRAFFIC};
        SELECT wid, window_start, window_end, seg_id, count(*) AS n
        FROM Traffic [RANGE 300 SECONDS RATTR ts SLIDE 1 ROW SATTR row_num] GROUP BY seg_id
        """,
        Traffic=CARS,
    )
    # At 12:05 there are two tuples and one window, which 12:00 has just left.
    assert shown(result) == table("""
        time  | wid   | window_start | window_end | seg_id | n
        12:00 | 12:00 | 11:55        | 12:00      | s6     | 1
        12:01 | 12:01 | 11:56        | 12:01      | s6     | 1
        12:01 | 12:01 | 11:56        | 12:01      | s7     | 1
        12:04 | 12:04 | 11:59        | 12:04      | s6     | 2
        12:04 | 12:04 | 11:59        | 12:04      | s7     | 1
        12:05 | 12:05 | 12:00        | 12:05      | s6     | 2
        12:05 | 12:05 | 12:00        | 12:05      | s7     | 2
        12:09 | 12:09 | 12:04        | 12:09      | s6     | 2
        12:09 | 12:09 | 12:04        | 12:09      | s7     | 1
    """)


def test_q5_slides_in_the_order_of_ts_and_not_of_arrival() -> None:
    arrivals = """
    seg_id | speed | ts
    s6     | 1     | 12:03:00
    s6     | 2     | 12:01:00
    s6     | 4     | 12:02:00
    s6     | 8     | 12:04:00
    """
    script = f"""
        {TRAFFIC} SLACK INTERVAL 5 MINUTES;
        SELECT wid, sum(speed) AS s FROM Traffic [RANGE 300 SECONDS RATTR ts SLIDE 2 ROWS SATTR %s]
    """
    by_rank = ask(script % "rank(ts)", Traffic=arrivals)
    assert shown(by_rank, time=False) == [("wid", "s"), ("12:02", "6"), ("12:04", "15")]
    by_arrival = ask(script % "row_num", Traffic=arrivals)
    assert shown(by_arrival, time=False) == [("wid", "s"), ("12:01", "2"), ("12:04", "15")]


def test_pattr_makes_windows_of_each_partition() -> None:
    script = (
        f"{NUMBERS}; SELECT k, wid, sum(v) AS s FROM s [RANGE 10 RATTR t SLIDE 2 ROWS SATTR row_num PATTR k]"
    )
    assert shown(ask(script, s=numbers(1, 2, 3, 4, 5)), time=False) == [
        ("k", "wid", "s"),
        ("x", "3", "5"),
        ("y", "4", "10"),
    ]


def test_a_window_that_ends_with_a_tuple_waits_for_others_at_its_end() -> None:
    script = f"{NUMBERS}; SELECT wid, sum(v) AS s FROM s [RANGE 10 RATTR t SLIDE 1 ROW SATTR row_num]"
    assert shown(ask(script, s=numbers(1, 3), ended=False), time=False) == [("wid", "s"), ("1", "1")]


# ---------------------------------------------------------------- NOW


def test_now_holds_the_tuples_of_an_instant() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_start, window_end, sum(v) AS s FROM s [NOW]", s=numbers(-4, 3, 3)
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | s
        -4   | -4  | -4           | -4         | 1
        3    | 3   | 3            | 3          | 6
    """)
    by_time = ask(f"{TRAFFIC}; SELECT wid, window_end, sum(speed) AS s FROM Traffic [NOW]", Traffic=CARS)
    assert shown(by_time)[4] == ("12:05", "12:05", "12:05", "70")


def test_an_instant_is_over_when_the_promise_exceeds_it() -> None:
    result = ask(f"{NUMBERS}; SELECT wid, sum(v) AS s FROM s [NOW]", s=numbers(1, 3), ended=False)
    assert shown(result) == [("time", "wid", "s"), ("1", "1", "1")]


# ---------------------------------------------------------------- landmarks


def test_a_lower_bounded_landmark_reports_all_since_then_at_every_slide() -> None:
    result = ask(
        f"""{NUMBERS};
        SELECT wid, window_start, window_end, sum(v) AS s FROM s [LANDMARK START AT 5 SLIDE 10]""",
        s=numbers(4, 5, 9, 10, 31),
    )
    # The window that ends at 40 is the first that ends after the last tuple; nothing was new from 11 to 30.
    assert shown(result) == table("""
        time | wid | window_start | window_end | s
        10   | 0   | 5            | 10         | 6
        20   | 1   | 5            | 20         | 14
        30   | 2   | 5            | 30         | 14
        40   | 3   | 5            | 40         | 30
    """)


def test_an_upper_bounded_landmark_is_frozen_at_its_bound() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_start, window_end, sum(v) AS s FROM s [LANDMARK END AT 25 SLIDE 10]",
        s=numbers(-3, 12, 25, 60),
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | s
        0    | -1  |              | 0          | 1
        10   | 0   |              | 10         | 1
        20   | 1   |              | 20         | 3
        25   | 2   |              | 25         | 3
    """)


def test_a_fixed_band_is_one_window() -> None:
    script = (
        f"{NUMBERS}; SELECT wid, window_start, window_end, sum(v) AS s FROM s [LANDMARK START AT 5 END AT 25]"
    )
    expected = [("time", "wid", "window_start", "window_end", "s"), ("25", "0", "5", "25", "6")]
    assert shown(ask(script, s=numbers(4, 5, 24, 25))) == expected
    assert shown(ask(script, s=numbers(4, 5, 24, 25), ended=False)) == expected
    assert ask(script, s=numbers(4, 5, 24), ended=False).rows == []


def test_what_has_no_end_is_complete_at_the_end_of_the_input() -> None:
    for window, start, total in (("UNBOUNDED", "", 7), ("UNBOUNDED START AT 5", "5", 6)):
        script = f"{NUMBERS}; SELECT wid, window_start, window_end, sum(v) AS s FROM s [{window}]"
        assert shown(ask(script, s=numbers(4, 5, 30))) == [
            ("time", "wid", "window_start", "window_end", "s"),
            ("30", "0", start, "30", str(total)),
        ]
        assert ask(script, s=numbers(4, 5, 30), ended=False).rows == []


def test_a_time_of_day_is_one_on_the_day_of_the_first_tuple() -> None:
    result = ask(
        f"""{TRAFFIC};
        SELECT window_start, window_end, sum(speed) AS s
        FROM Traffic [LANDMARK START AT '12:01' END AT '12:05:00']""",
        Traffic=CARS,
    )
    assert shown(result) == [("time", "window_start", "window_end", "s"), ("12:05", "12:01", "12:05", "130")]


def test_promises_go_on_after_the_last_tuple_of_a_landmark() -> None:
    script = f"{NUMBERS} PUNCTUATED BY (v IS NULL); SELECT wid, sum(v) AS s FROM s [UNBOUNDED SLIDE 10]"
    arrivals = "k | v | t\n| 1 | 3\n|  | 30"
    for ended in (True, False):
        assert shown(ask(script, s=arrivals, ended=ended)) == [
            ("time", "wid", "s"),
            ("10", "0", "1"),
            ("20", "1", "1"),
            ("30", "2", "1"),
        ]


# ---------------------------------------------------------------- sessions


def test_a_session_is_closed_by_a_silence_longer_than_the_gap() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_start, window_end, sum(v) AS s FROM s [SESSION GAP 5]",
        s=numbers(1, 6, 12, 13),
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | s
        11   | 0   | 1            | 11         | 3
        18   | 1   | 12           | 18         | 12
    """)


def test_sessions_of_the_whole_stream_or_of_each_partition() -> None:
    arrivals = numbers(1, 4, 7, 20)
    whole = ask(f"{NUMBERS}; SELECT k, wid, sum(v) AS s FROM s [SESSION GAP 5] GROUP BY k", s=arrivals)
    assert shown(whole) == table("""
        time | k | wid | s
        12   | x | 0   | 5
        12   | y | 0   | 2
        25   | y | 1   | 8
    """)
    each = ask(f"{NUMBERS}; SELECT k, wid, sum(v) AS s FROM s [SESSION GAP 5 PATTR k]", s=arrivals)
    assert shown(each) == table("""
        time | k | wid | s
        6    | x | 0   | 1
        9    | y | 0   | 2
        12   | x | 1   | 4
        25   | y | 1   | 8
    """)


def test_where_does_not_say_what_a_session_is() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, sum(v) AS s FROM s [SESSION GAP 5] WHERE k = 'x'", s=numbers(1, 5, 9)
    )
    assert shown(result) == [("time", "wid", "s"), ("14", "0", "5")]


def test_a_session_is_over_when_the_promise_exceeds_its_end() -> None:
    script = f"{NUMBERS} PUNCTUATED BY (v IS NULL); SELECT wid, sum(v) AS s FROM s [SESSION GAP 5]"
    assert ask(script, s="k | v | t\n| 1 | 3\n|  | 8", ended=False).rows == []
    result = ask(script, s="k | v | t\n| 1 | 3\n|  | 8\n| 2 | 8\n|  | 14", ended=False)
    assert shown(result) == [("time", "wid", "s"), ("13", "0", "3")]


# ---------------------------------------------------------------- predicates


def test_a_predicate_window_goes_from_start_to_end_both_included() -> None:
    result = ask(
        f"""{NUMBERS};
        SELECT wid, window_start, window_end, count(*) AS n, first(v) AS first, last(v) AS last
        FROM s [START WHEN v > 5 END WHEN v < 3]""",
        s="k | v | t\n| 4 | 1\n| 6 | 2\n| 9 | 3\n| 2 | 4\n| 1 | 5\n| 7 | 6\n| 5 | 8",
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | n | first | last
        4    | 0   | 2            | 4          | 3 | 6     | 2
        8    | 1   | 6            | 8          | 2 | 7     | 5
    """)


def test_one_tuple_may_start_and_end_a_window() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_end, count(*) AS n FROM s [START WHEN v > 1 END WHEN v > 2 PATTR k]",
        s="k | v | t\nx | 3 | 1\ny | 2 | 2\nx | 3 | 3\ny | 3 | 4",
    )
    assert shown(result, time=False) == table("""
        wid | window_end | n
        0   | 1          | 1
        1   | 3          | 1
        0   | 4          | 2
    """)


# ---------------------------------------------------------------- EMIT EVERY


def test_a_window_is_reported_as_it_stands_while_it_forms() -> None:
    """EPIC's frequently emitting window: the one that ends next, at every multiple that is no end itself."""
    result = ask(
        f"{NUMBERS}; SELECT wid, window_end, complete, sum(v) AS s FROM s [RANGE 10 SLIDE 5 EMIT EVERY 2]",
        s=numbers(1, 3, 6, 9),
    )
    # Nothing is promised beyond 9, and the end of the input makes no further partial results.
    assert shown(result) == table("""
        time | wid | window_end | complete | s
        2    | 0   | 5          | false    | 1
        4    | 0   | 5          | false    | 3
        5    | 0   | 5          | true     | 3
        6    | 1   | 10         | false    | 3
        8    | 1   | 10         | false    | 7
        10   | 1   | 10         | true     | 15
        15   | 2   | 15         | true     | 12
    """)


def test_row_windows_are_reported_after_every_so_many_tuples() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_end, complete, sum(v) AS s FROM s [ROWS 4 SLIDE 4 EMIT EVERY 3 ROWS]",
        s=numbers(1, 2, 3, 4, 5, 6, 7),
    )
    assert shown(result) == table("""
        time | wid | window_end | complete | s
        3    | 0   | 4          | false    | 7
        4    | 0   | 4          | true     | 15
        6    | 1   | 8          | false    | 48
        7    | 1   | 8          | true     | 112
    """)


def test_landmarks_are_reported_too_with_the_end_that_comes_next() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_end, complete, sum(v) AS s FROM s [UNBOUNDED EMIT EVERY 4]",
        s=numbers(1, 3, 9),
    )
    assert shown(result) == table("""
        time | wid | window_end | complete | s
        4    | 0   | 4          | false    | 3
        8    | 0   | 8          | false    | 3
        9    | 0   | 9          | true     | 7
    """)
    band = ask(
        f"{NUMBERS}; SELECT window_end, complete, sum(v) AS s FROM s [UNBOUNDED SLIDE 4 EMIT EVERY 2]",
        s=numbers(1, 5, 9),
    )
    assert shown(band) == table("""
        time | window_end | complete | s
        2    | 4          | false    | 1
        4    | 4          | true     | 1
        6    | 8          | false    | 3
        8    | 8          | true     | 3
        12   | 12         | true     | 7
    """)


def test_open_sessions_are_reported_with_the_end_that_they_would_have() -> None:
    result = ask(
        f"{NUMBERS}; SELECT wid, window_end, complete, sum(v) AS s FROM s [SESSION GAP 3 EMIT EVERY 2]",
        s=numbers(1, 3, 9, 10),
    )
    assert shown(result) == table("""
        time | wid | window_end | complete | s
        2    | 0   | 4          | false    | 1
        4    | 0   | 6          | false    | 3
        6    | 0   | 6          | false    | 3
        6    | 0   | 6          | true     | 3
        10   | 1   | 12         | false    | 4
        13   | 1   | 13         | true     | 12
    """)


def test_open_predicate_windows_are_reported_up_to_their_last_tuple() -> None:
    result = ask(
        f"""{NUMBERS};
        SELECT wid, window_start, window_end, complete, sum(v) AS s
        FROM s [START WHEN v = 1 OR v = 16 END WHEN v = 4 EMIT EVERY 4]""",
        s=numbers(1, 3, 8, 9, 12),
    )
    assert shown(result) == table("""
        time | wid | window_start | window_end | complete | s
        4    | 0   | 1            | 3          | false    | 3
        8    | 0   | 1            | 3          | false    | 3
        8    | 0   | 1            | 8          | true     | 7
        12   | 1   | 12           | 12         | true     | 16
    """)


def test_partial_results_count_late_tuples_that_were_in_time_for_them() -> None:
    script = f"""{NUMBERS} SLACK 3 GENEROUS;
        SELECT window_end, complete, sum(v) AS s FROM s [TUMBLE 10 EMIT EVERY 4]"""
    # When the second tuple comes 6 is promised: it is too late for 4, and in time for 8 and 10.
    assert shown(ask(script, s=numbers(3, 9, 2, 12))) == table("""
        time | window_end | complete | s
        4    | 10         | false    | 1
        8    | 10         | false    | 5
        10   | 10         | true     | 7
        20   | 20         | true     | 8
    """)


# ---------------------------------------------------------------- disorder


@pytest.mark.parametrize(
    "window",
    [
        "RANGE 7 SLIDE 3 EMIT EVERY 2",
        "ROWS 3 SLIDE 2 EMIT EVERY 3 ROWS",
        "TUMBLE 3 ROWS PATTR k",
        "RANGE 5 RATTR t SLIDE 1 ROW SATTR row_num",
        "RANGE 5 RATTR t SLIDE 2 ROWS SATTR rank(t)",
        "NOW",
        "UNBOUNDED EMIT EVERY 3",
        "LANDMARK START AT 3 END AT 15 SLIDE 4",
        "SESSION GAP 2 EMIT EVERY 2",
        "SESSION GAP 2 PATTR k",
        "START WHEN v > 0 END WHEN v < 0 EMIT EVERY 3",
    ],
)
def test_disorder_within_the_slack_changes_nothing(window: str) -> None:
    """Invariant 7: the same as for the sorted input."""
    key = "k, " if "PATTR" in window else ""
    script = f"""{NUMBERS} SLACK 10;
        SELECT {key}wid, window_start, window_end, collect_list(v) AS l FROM s [{window}]"""
    # A tuple that is no more than 9 behind is never late.
    tuples = st.tuples(st.sampled_from("xy"), st.integers(-2, 2), st.integers(0, 20), st.integers(0, 9))

    @settings(max_examples=20, deadline=None)
    @given(st.lists(tuples, max_size=15).map(lambda rows: sorted(rows, key=lambda row: row[2] + row[3])))
    def check(arrivals: list[tuple[str, int, int, int]]) -> None:
        rows = [Row({"k": k, "v": v, "t": t}) for k, v, t, _ in arrivals]
        found = answer(script, {"s": Arrivals([rows])})
        assert not any(found.late.values())
        in_order = sorted(rows, key=lambda row: row.values["t"])
        assert found.rows == answer(script, {"s": Arrivals([in_order])}).rows

    check()
