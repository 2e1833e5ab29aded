"""Promises of the clauses of CREATE STREAM, and the tuples that are late for them (semantics, section 4).

In the tables of arrivals the column `promised` is a note for the reader: the promise of the source partition
when the tuple came.
"""

import re

import pytest

from oracle import Answer
from tests.oracle.little import ask, ask_all, late, shown, table


def read(clauses: str, arrivals: str, type_: str = "INT") -> Answer:
    """A stream with these clauses, read as it is; the notes are for the reader only."""
    script = f"""
        CREATE STREAM s (k STRING, v STRING, t {type_}) ORDER BY t {clauses};
        SELECT v FROM s
    """
    rows = arrivals.strip().splitlines()
    without_notes = "\n".join(re.sub(r"\|[^|]*$", "", row) for row in rows)
    return ask(script, s=without_notes)


def lateness(result: Answer) -> str:
    return "".join(row[1] for row in late(result))


# ---------------------------------------------------------------- no clause


def test_without_a_clause_a_source_partition_is_in_order() -> None:
    result = read(
        "",
        """
        k | v | t | promised
          | a | 1 |
          | b | 3 | 1
          | c | 2 | 3 late
          | d | 3 | 3
          | e | 4 | 3
        """,
    )
    assert shown(result) == table("""
        time | v
        1    | a
        3    | b
        3    | d
        4    | e
    """)
    assert lateness(result) == "c"


def test_a_late_tuple_is_in_the_late_tuples_only_and_whole() -> None:
    result = read("", "k | v | t | promised\nx | a | 5 |\ny | b | 4 | 5 late")
    assert late(result) == [("y", "b", "4")]
    assert shown(result) == [("time", "v"), ("5", "a")]


def test_promises_bind_their_own_source_partition() -> None:
    result = read(
        "",
        """
        k | v | t | promised
          | a | 5 |
          | b | 6 | 5
        ---
          | c | 1 |
          | d | 2 | 1
        """,
    )
    assert [row.values for row in result.rows] == [("c",), ("d",), ("a",), ("b",)]
    assert lateness(result) == ""


def test_equal_timestamps_keep_the_order_of_arrival() -> None:
    result = read(
        "",
        """
        k | v | t | promised
          | a | 1 |
          | b | 1 | 1
        ---
          | c | 1 |
          | d | 1 | 1
        """,
    )
    assert [row.values for row in result.rows] == [("a",), ("b",), ("c",), ("d",)]
    assert [row.order for row in result.rows] == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]


# ---------------------------------------------------------------- SLACK


def test_slack_interval_promises_the_largest_timestamp_minus_it() -> None:
    result = read(
        "SLACK INTERVAL 5 SECONDS",
        """
        k | v | t        | promised
          | a | 10:00:10 |
          | b | 10:00:05 | 10:00:05
          | c | 10:00:04 | 10:00:05 late
          | d | 10:00:20 | 10:00:05
          | e | 10:00:14 | 10:00:15 late
          | f | 10:00:15 | 10:00:15
        """,
        "TIMESTAMP",
    )
    assert shown(result) == table("""
        time     | v
        10:00:05 | b
        10:00:10 | a
        10:00:15 | f
        10:00:20 | d
    """)
    assert lateness(result) == "ce"


def test_slack_on_a_number() -> None:
    result = read(
        "SLACK 2.5",
        """
        k | v | t    | promised
          | a | 10.0 |
          | b | 7.5  | 7.5
          | c | 7.4  | 7.5 late
        """,
        "DOUBLE",
    )
    assert lateness(result) == "c"


def test_slack_rows_promises_the_next_largest() -> None:
    result = read(
        "SLACK 2 ROWS",
        """
        k | v | t  | promised
          | a | 10 |
          | b | 8  |
          | c | 1  |
          | d | 9  | 1
          | e | 8  | 8
          | f | 7  | 8 late
          | g | 12 | 8
          | h | 8  | 9 late
          | i | 9  | 9
        """,
    )
    assert lateness(result) == "fh"


def test_late_tuples_have_a_rank_too() -> None:
    # After 10, 9 and the late 3, 3 the two largest are still 10 and 9.
    result = read(
        "SLACK 1 ROWS",
        """
        k | v | t  | promised
          | a | 10 |
          | b | 9  |
          | c | 3  | 9 late
          | d | 3  | 9 late
          | e | 9  | 9
          | f | 11 | 9
          | g | 9  | 10 late
        """,
    )
    assert lateness(result) == "cdg"


# ---------------------------------------------------------------- ORDERED PER


def test_ordered_per_lets_each_sub_stream_have_its_own_order() -> None:
    result = read(
        "ORDERED PER (k)",
        """
        k | v | t  | promised
        x | a | 10 |
        y | b | 20 | 10
        x | c | 12 | 10
        y | d | 19 | 12 late, because y has reached 20
        y | e | 20 | 12
        x | f | 11 | 12 late, because x has reached 12
        """,
    )
    assert lateness(result) == "df"


def test_a_new_sub_stream_that_is_behind_the_promise_is_late() -> None:
    result = read(
        "ORDERED PER (k)",
        """
        k | v | t  | promised
        x | a | 10 |
        y | b | 5  | 10 late
        y | c | 9  | 10 late: the promise made before y came stands
        y | d | 10 | 10
        x | e | 15 | 10
        z | f | 10 | 10
        """,
    )
    assert lateness(result) == "bc"


def test_null_is_a_sub_stream_like_any_other() -> None:
    result = read(
        "ORDERED PER (k)",
        """
        k | v | t  | promised
          | a | 10 |
        x | b | 30 | 10
          | c | 20 | 10
          | d | 19 | 20 late
        """,
    )
    assert lateness(result) == "d"


def test_idle_sub_streams_do_not_hold_back_the_others() -> None:
    result = read(
        "ORDERED PER (k) IDLE AFTER INTERVAL 10 SECONDS",
        """
        k | v | t        | promised
        x | a | 10:00:00 |
        y | b | 10:00:10 | 10:00:00
        x | c | 10:00:05 | 10:00:00: x is 10 seconds behind, not more
        y | d | 10:00:16 | 10:00:05
        x | e | 10:00:15 | 10:00:16 late: x was 11 seconds behind and did not count
        x | f | 10:00:16 | 10:00:16
        """,
        "TIMESTAMP",
    )
    assert lateness(result) == "e"


# ---------------------------------------------------------------- PUNCTUATED BY


def test_punctuation_is_no_data_but_a_promise() -> None:
    result = read(
        "PUNCTUATED BY (v = 'end')",
        """
        k | v   | t  | promised
          | a   | 30 |
          | b   | 10 |
          | end | 20 |
          | c   | 19 | 20 late
          | d   | 20 | 20
          | end | 15 | 20
          | e   | 18 | 20 late
        """,
    )
    assert shown(result) == table("""
        time | v
        10   | b
        20   | d
        30   | a
    """)
    assert lateness(result) == "ce"


def test_a_null_in_a_punctuation_ends_the_source_partition() -> None:
    result = read(
        "PUNCTUATED BY (v = 'end')",
        """
        k | v   | t  | promised
          | a   | 30 |
          | end |    |
          | b   | 99 | everything late
        ---
          | c   | 10 |
        """,
    )
    assert lateness(result) == "b"
    assert shown(result) == [("time", "v"), ("10", "c"), ("30", "a")]
    assert result.bad == {"s": []}


def test_punctuation_per_sub_stream() -> None:
    result = read(
        "PUNCTUATED BY (v = 'end') PER (k)",
        """
        k | v   | t  | promised
        x | a   | 10 |
        y | b   | 10 |
        x | end | 20 |
        x | c   | 19 | late: x has promised 20
        y | d   | 5  | y has promised nothing
        y | end | 15 |
        y | e   | 14 | 15 late
        z | f   | 14 | 15 late: the promise was made before z came
        z | g   | 15 | 15
        x | end | 40 | 15, since z has promised nothing
        y | h   | 15 | 15
        """,
    )
    assert lateness(result) == "cef"


def test_a_sub_stream_that_has_ended_is_over_and_holds_nothing_back() -> None:
    result = read(
        "PUNCTUATED BY (v = 'end') PER (k)",
        """
        k | v   | t  | promised
        x | end | 10 |
        y | end | 30 | 10
        y | a   | 30 | 10
        x | end |    | 10
        x | b   | 99 | 30 late: x has ended
        y | c   | 30 | 30
        z | d   | 29 | 30 late
        y | end |    | 30: only z is left, which has promised nothing
        z | e   | 30 | 30
        """,
    )
    assert lateness(result) == "bd"


def test_when_all_sub_streams_have_ended_another_may_begin() -> None:
    result = read(
        "PUNCTUATED BY (v = 'end') PER (k)",
        """
        k | v   | t  | promised
        x | end | 10 |
        x | end |    | 10
        y | a   | 9  | 10 late
        y | b   | 10 | 10
        """,
    )
    assert lateness(result) == "a"


# ---------------------------------------------------------------- HEARTBEAT and combinations


def test_a_heartbeat_is_a_promise_like_any_other() -> None:
    result = read(
        "HEARTBEAT INTERVAL 1 SECOND",
        """
        k | v | t        | promised
          | a | 10:00:00 |
        heartbeat 10:00:05
          | b | 10:00:04 | 10:00:05 late
          | c | 10:00:05 | 10:00:05
          | d | 10:00:09 | 10:00:05
          | e | 10:00:08 | 10:00:09 late: the stream is in order as well
        """,
        "TIMESTAMP",
    )
    assert lateness(result) == "be"


def test_of_two_promises_the_larger_holds() -> None:
    result = read(
        "SLACK INTERVAL 10 SECONDS HEARTBEAT INTERVAL 1 SECOND",
        """
        k | v | t        | promised
          | a | 10:00:20 |
        heartbeat 10:00:05
          | b | 10:00:10 | 10:00:10 by the slack
          | c | 10:00:09 | 10:00:10 late
        heartbeat 10:00:15
          | d | 10:00:14 | 10:00:15 late
          | e | 10:00:15 | 10:00:15
        """,
        "TIMESTAMP",
    )
    assert lateness(result) == "cd"


def test_a_heartbeat_speaks_for_all_sub_streams() -> None:
    result = read(
        "ORDERED PER (k) HEARTBEAT INTERVAL 1 SECOND",
        """
        k | v | t        | promised
        x | a | 10:00:00 |
        y | b | 10:00:20 | 10:00:00
        heartbeat 10:00:10
        x | c | 10:00:09 | 10:00:10 late
        x | d | 10:00:10 | 10:00:10
        """,
        "TIMESTAMP",
    )
    assert lateness(result) == "c"


def test_a_promise_on_another_attribute_can_be_broken_too() -> None:
    result = ask(
        """
        CREATE STREAM s (v STRING, a INT, t INT) ORDER BY t SLACK 5 ON a;
        SELECT v FROM s
        """,
        s="""
        v | a  | t
        p | 20 | 1
        q | 15 | 2
        r | 14 | 3
        s |    | 3
        u | 20 | 2
        """,
    )
    assert [row[0] for row in late(result)] == ["r", "u"]
    assert [row.values for row in result.rows] == [("p",), ("q",), ("s",)]


# ---------------------------------------------------------------- bad records


@pytest.mark.parametrize(("type_", "time"), [("INT", "2"), ("TIMESTAMP", "10:00:02"), ("DOUBLE", "2.0")])
def test_a_tuple_without_a_timestamp_is_bad_and_stops_nothing(type_: str, time: str) -> None:
    result = read("", f"k | v | t | promised\nx | a | {time} |\ny | b |  |\nz | c | {time} |", type_)
    assert [row.values for row in result.rows] == [("a",), ("c",)]
    assert result.bad == {"s": [("y", "b", None)]}


def test_a_timestamp_that_is_no_number_is_bad() -> None:
    result = read(
        "", "k | v | t | promised\n| a | 1.0 |\n| b | NaN |\n| c | Infinity |\n| d | 2.0 |", "DOUBLE"
    )
    assert [row.values for row in result.rows] == [("a",), ("d",)]
    assert [values[1] for values in result.bad["s"]] == ["b", "c"]


# ---------------------------------------------------------------- LATE INTO, BAD INTO


def test_late_tuples_and_bad_records_are_streams_without_a_timestamp() -> None:
    results = ask_all(
        """
        CREATE STREAM s (v STRING, t INT) ORDER BY t LATE INTO l BAD INTO b;
        SELECT v, t FROM s;
        SELECT t, v FROM l WHERE t > 1;
        SELECT record, reason FROM b;
        SELECT v, count(*) OVER (ROWS 1 PRECEDING) AS n FROM l
        """,
        s="""
        v | t
        a | 5
        b | 4
        c |
        d | 1
        e | 3
        """,
    )
    assert shown(results["q1"]) == [("time", "v", "t"), ("5", "a", "5")]
    assert shown(results["q2"]) == [("time", "t", "v"), ("", "4", "b"), ("", "3", "e")]
    assert shown(results["q3"]) == [("time", "record", "reason"), ("", '{"v":"c"}', "the timestamp is NULL")]
    assert shown(results["q4"], time=False) == [("v", "n"), ("b", "1"), ("d", "2"), ("e", "2")]
