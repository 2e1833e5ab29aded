"""Operators on the contents of windows, as they are at every instant (semantics, section 9)."""

from tests.oracle.little import ask, shown, table

TRACES = """
    CREATE STREAM a (k STRING, v INT, t INT) ORDER BY t;
    CREATE STREAM b (k STRING, v INT, t INT) ORDER BY t;
"""
A = """
    k | v | t
    x | 1 | 1
    y | 2 | 2
    x | 3 | 4
    x | 1 | 7
"""
B = """
    k | v | t
    x | 9 | 2
    y | 8 | 5
    x | 7 | 6
"""


def test_a_join_of_windows_gives_each_pair_when_the_later_of_the_two_comes() -> None:
    """x1 leaves at 4 and y2 at 5, before y8 comes; x9 leaves at 5."""
    query = "SELECT a.v AS av, b.v AS bv FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k"
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | av | bv
        2    | 1  | 9
        4    | 3  | 9
        6    | 3  | 7
        7    | 1  | 7
    """)


def test_what_leaves_a_join_leaves_with_the_first_of_the_two() -> None:
    query = "SELECT DSTREAM a.v AS av, b.v AS bv FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k"
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | av | bv
        4    | 1  | 9
        5    | 3  | 9
        7    | 3  | 7
        9    | 1  | 7
    """)


def test_a_value_is_distinct_until_its_last_copy_leaves() -> None:
    query = "SELECT CHANGES DISTINCT k FROM a [RANGE 3]"
    assert shown(ask(f"{TRACES} {query}", a=A)) == table("""
        time | op | k
        1    | +  | x
        2    | +  | y
        5    | -  | y
        10   | -  | x
    """)


def test_a_difference_goes_by_multiplicity() -> None:
    query = "SELECT k FROM a [UNBOUNDED] EXCEPT ALL SELECT k FROM b [ROWS 1]"
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | k
        1    | x
        2    | y
        4    | x
        5    | x
        6    | y
        7    | x
    """)


def test_with_a_slide_the_result_is_evaluated_at_slides_only() -> None:
    """At 4 the window is [0, 4), at 8 it is [4, 8), at 12 it is empty."""
    query = "SELECT RSTREAM DISTINCT k FROM a [RANGE 4 SLIDE 4]"
    assert shown(ask(f"{TRACES} {query}", a=A)) == table("""
        time | k
        4    | x
        4    | y
        8    | x
    """)


def test_an_outer_join_takes_back_what_it_had_no_match_for() -> None:
    query = "SELECT CHANGES a.v AS av, b.v AS bv FROM a [ROWS 1] LEFT JOIN b [RANGE 1] ON a.k = b.k"
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | op | av | bv
        1    | +  | 1  |
        2    | -  | 1  |
        2    | +  | 2  |
        4    | -  | 2  |
        4    | +  | 3  |
        6    | -  | 3  |
        6    | +  | 3  | 7
        7    | -  | 3  | 7
        7    | +  | 1  |
    """)


def test_an_aggregate_over_a_join_loses_groups_that_have_vanished() -> None:
    query = """SELECT CHANGES a.k AS k, count(*) AS n FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k
               GROUP BY a.k"""
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | op | k | n
        2    | +  | x | 1
        5    | -  | x | 1
        6    | +  | x | 1
        9    | -  | x | 1
    """)


def test_a_tuple_enters_even_if_an_equal_one_leaves() -> None:
    """x1 leaves at 4, when x3 comes."""
    assert shown(ask(f"{TRACES} SELECT k FROM a [RANGE 3]", a=A)) == table("""
        time | k
        1    | x
        2    | y
        4    | x
        7    | x
    """)


def test_rows_of_a_partition_make_room_in_that_partition_only() -> None:
    assert shown(ask(f"{TRACES} SELECT DSTREAM k, v FROM a [PARTITION BY k ROWS 1]", a=A)) == table("""
        time | k | v
        4    | x | 1
        7    | x | 3
    """)


def test_of_tuples_at_one_instant_only_those_that_fit_into_a_row_window_are_ever_seen() -> None:
    stream = "k | v | t\nx | 1 | 1\nx | 2 | 1\nx | 3 | 1"
    assert shown(ask(f"{TRACES} SELECT CHANGES v FROM a [ROWS 2]", a=stream)) == table("""
        time | op | v
        1    | +  | 2
        1    | +  | 3
    """)


def test_a_row_window_that_slides_changes_with_every_so_many_tuples() -> None:
    assert shown(ask(f"{TRACES} SELECT CHANGES v FROM a [ROWS 1 SLIDE 2]", a=A)) == table("""
        time | op | v
        2    | +  | 2
        7    | -  | 2
        7    | +  | 1
    """)


def test_now_holds_an_instant() -> None:
    query = "SELECT CHANGES a.v AS av, b.v AS bv FROM a [NOW] JOIN b [UNBOUNDED] ON a.k = b.k"
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | op | av | bv
        4    | +  | 3  | 9
        5    | -  | 3  | 9
        7    | +  | 1  | 7
        7    | +  | 1  | 9
        8    | -  | 1  | 7
        8    | -  | 1  | 9
    """)


def test_a_landmark_with_a_sliding_window_is_given_whole_at_every_slide() -> None:
    """The mixed windows of Patroumpas and Sellis: a counts from 2 on, b is [0, 4) at 4 and [4, 8) at 8."""
    query = """SELECT a.k AS k, max(a.v) AS most, avg(b.v) AS mean
               FROM a [UNBOUNDED START AT 2], b [RANGE 4 SLIDE 4] WHERE a.k = b.k GROUP BY a.k"""
    assert shown(ask(f"{TRACES} {query}", a=A, b=B)) == table("""
        time | k | most | mean
        4    | x | 3    | 9.0
        8    | x | 3    | 7.0
        8    | y | 2    | 8.0
    """)


def test_nothing_is_said_of_instants_that_are_not_over() -> None:
    """Another tuple may come at 7."""
    query = "SELECT CHANGES DISTINCT k FROM a [RANGE 3]"
    assert shown(ask(f"{TRACES} {query}", a=A, ended=False)) == table("""
        time | op | k
        1    | +  | x
        2    | +  | y
        5    | -  | y
    """)


def test_windowed_queries_are_streams_for_further_queries() -> None:
    script = f"""{TRACES}
        CREATE STREAM pairs AS
          SELECT a.k AS k, a.v + b.v AS total FROM a [RANGE 3] JOIN b [RANGE 3] ON a.k = b.k;
        SELECT k, sum(total) OVER (ROWS 1 PRECEDING) AS s FROM pairs"""
    assert shown(ask(script, a=A, b=B)) == table("""
        time | k | s
        2    | x | 10
        4    | x | 22
        6    | x | 22
        7    | x | 18
    """)
