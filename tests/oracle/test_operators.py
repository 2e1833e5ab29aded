"""Transducers, joins with tables, unions; and what is refused by name."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from millstream.catalog.entries import Registered, Table
from millstream.plan.nodes import TableScan, WindowAggregate, Windowed
from millstream.quantity import Distance
from millstream.types import INT, Field
from millstream.windows.window_spec import RangeWindow
from oracle import Arrivals, Heartbeat, NotInterpreted, Row, answer, run
from tests.oracle.little import ask, late, shown, table

STREAM = "CREATE STREAM s (k INT, v STRING, t INT) ORDER BY t"
TABLE = "CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'names.csv')"
ARRIVALS = "k | v | t\n1 | a | 1\n2 | b | 2\n | c | 3\n3 | d | 4"
NAMES = "k | name\n1 | one\n2 | two\n2 | zwei\n | none"


def test_a_transducer() -> None:
    result = ask(f"{STREAM}; SELECT k + 1 AS next, v FROM s WHERE k > 1 AND v <> 'd'", s=ARRIVALS)
    assert shown(result) == [("time", "next", "v"), ("2", "3", "b")]


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("JOIN names n ON s.k = n.k", ["a one", "b two", "b zwei"]),
        ("LEFT JOIN names n ON s.k = n.k", ["a one", "b two", "b zwei", "c ", "d "]),
        ("JOIN names n USING (k)", ["a one", "b two", "b zwei"]),
        ("JOIN names n ON s.k = n.k AND n.name > 'u'", ["b zwei"]),
        ("CROSS JOIN names n WHERE s.k = 3", ["d one", "d two", "d zwei", "d none"]),
    ],
)
def test_each_tuple_meets_the_table(join: str, rows: list[str]) -> None:
    result = ask(f"{STREAM}; {TABLE}; SELECT v, name FROM s {join}", s=ARRIVALS, names=NAMES)
    assert [" ".join(row) for row in shown(result, time=False)[1:]] == rows


@pytest.mark.parametrize(("kind", "kept"), [("SEMI", "ab"), ("ANTI", "cd")])
def test_joins_that_only_ask(kind: str, kept: str) -> None:
    script = f"{STREAM}; {TABLE}; SELECT v FROM s LEFT {kind} JOIN names n ON s.k = n.k"
    assert "".join(row.values[0] for row in ask(script, s=ARRIVALS, names=NAMES).rows) == kept


def test_the_table_may_stand_first() -> None:
    script = f"{STREAM}; {TABLE}; SELECT v, name, t FROM names n JOIN s ON s.k = n.k"
    assert shown(ask(script, s=ARRIVALS, names=NAMES)) == table("""
        time | v | name | t
        1    | a | one  | 1
        2    | b | two  | 2
        2    | b | zwei | 2
    """)


def test_a_window_joined_with_a_table() -> None:
    result = ask(
        f"""
        {STREAM}; {TABLE};
        SELECT name, count(*) AS n FROM s [TUMBLE 10] JOIN names n ON s.k = n.k GROUP BY name
        """,
        s=ARRIVALS,
        names=NAMES,
    )
    assert shown(result, time=False) == [("name", "n"), ("one", "1"), ("two", "1"), ("zwei", "1")]


# ---------------------------------------------------------------- unions


OTHER = "CREATE STREAM r (k BIGINT, v STRING, u INT) ORDER BY u"


def test_union_all_is_merged_by_timestamp_and_the_left_stream_first() -> None:
    result = ask(
        f"{STREAM}; {OTHER}; SELECT k, v, t FROM s UNION ALL SELECT k, v, u FROM r",
        s="k | v | t\n1 | a | 1\n2 | b | 3",
        r="k | v | u\n1 | x | 1\n1 | y | 2\n1 | z | 3",
    )
    assert shown(result) == table("""
        time | k | v | t
        1    | 1 | a | 1
        1    | 1 | x | 1
        2    | 1 | y | 2
        3    | 2 | b | 3
        3    | 1 | z | 3
    """)


def test_union_removes_tuples_equal_in_every_column_and_in_timestamp() -> None:
    result = ask(
        f"{STREAM}; {OTHER}; SELECT k, v FROM s UNION SELECT k, v FROM r",
        s="k | v | t\n1 | a | 1\n1 | a | 1\n1 | a | 2\n | b | 3",
        r="k | v | u\n1 | a | 2\n | b | 3\n | b | 4",
    )
    assert shown(result) == table("""
        time | k | v
        1    | 1 | a
        2    | 1 | a
        3    |   | b
        4    |   | b
    """)


def test_columns_of_a_union_have_their_common_type() -> None:
    result = ask(
        """
        CREATE STREAM s (v INT, t INT) ORDER BY t;
        CREATE STREAM r (v DOUBLE, t BIGINT) ORDER BY t;
        SELECT v FROM s UNION SELECT v FROM r
        """,
        s="v | t\n1 | 1",
        r="v | t\n1.0 | 1\n-0.0 | 2\n0.0 | 2\nNaN | 3\nNaN | 3",
    )
    assert [row[1] for row in shown(result)[1:]] == ["1.0", "-0.0", "nan"]


def test_a_union_of_dates_and_timestamps_is_ordered_by_timestamps() -> None:
    result = ask(
        """
        CREATE STREAM s (v STRING, t DATE) ORDER BY t;
        CREATE STREAM r (v STRING, t TIMESTAMP) ORDER BY t;
        SELECT v FROM s UNION ALL SELECT v FROM r
        """,
        s="v | t\na | 2026-01-01\nb | 2026-01-02",
        r="v | t\nx | 12:00:00",
    )
    assert shown(result) == [("time", "v"), ("00:00", "a"), ("12:00", "x"), ("2026-01-02 00:00", "b")]


def test_a_union_with_a_latent_stream_is_latent() -> None:
    result = ask(
        f"{STREAM}; CREATE STREAM r (k INT, v STRING); SELECT k, v FROM s UNION ALL SELECT k, v FROM r",
        s="k | v | t\n1 | a | 7\n1 | b | 9",
        r="k | v\n1 | x",
    )
    assert [row.time for row in result.rows] == [None, None, None]
    assert [row.values[1] for row in result.rows] == ["a", "b", "x"]


def test_a_stream_united_with_itself() -> None:
    result = ask(f"{STREAM}; SELECT v FROM s UNION ALL SELECT v FROM s WHERE k = 1", s=ARRIVALS)
    assert [row.values[0] for row in result.rows] == ["a", "a", "b", "c", "d"]


def test_windows_over_a_union_wait_for_both_streams() -> None:
    script = f"""
        {STREAM}; {OTHER};
        CREATE STREAM u AS SELECT k, t FROM s UNION ALL SELECT k, u FROM r;
        SELECT wid, count(*) AS n FROM u [TUMBLE 10]
    """
    s, r = "k | v | t\n1 | a | 1\n1 | a | 30", "k | v | u\n1 | a | 5\n1 | a | 12"
    assert [row.values for row in ask(script, s=s, r=r, ended=False).rows] == [(0, 2)]
    assert [row.values for row in ask(script, s=s, r=r).rows] == [(0, 2), (1, 1), (3, 1)]


def test_a_tuple_on_time_stands_for_an_equal_one_that_is_late() -> None:
    script = """
        CREATE STREAM s (v INT, t INT) ORDER BY t SLACK 1 GENEROUS;
        CREATE STREAM r (v INT, t INT) ORDER BY t;
        CREATE STREAM u AS SELECT v, t FROM s UNION SELECT v, t FROM r;
        SELECT wid, sum(v) AS s FROM u [TUMBLE 10];
    """
    result = ask(script, s="v | t\n0 | 20\n7 | 3", r="v | t\n7 | 3")
    assert shown(result, time=False) == [("wid", "s"), ("0", "7"), ("2", "0")]
    assert late(result) == [("7", "3")]


# ---------------------------------------------------------------- timestamps of the system's own


def test_an_internal_timestamp_is_the_stamp_that_was_recorded() -> None:
    script = """
        CREATE STREAM s (v INT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port4445';
        SELECT v FROM s
    """
    result = ask(script, s="v | current_time\n1 | 10:00:00\n2 | 10:00:00\n3 | 10:00:01")
    assert shown(result) == [("time", "v"), ("10:00", "1"), ("10:00", "2"), ("10:00:01", "3")]
    with pytest.raises(ValueError, match="recorded on arrival"):
        ask(script, s="v | current_time\n1 |")


def test_a_latent_tuple_has_the_stamp_that_an_operator_recorded() -> None:
    def at(second: int) -> datetime:
        return datetime(2026, 1, 1, 10, 0, second, tzinfo=UTC)

    script = "CREATE STREAM s (v INT); SELECT sum(v) AS s FROM s [TUMBLE 10 SECONDS]"
    stamped = [Row({"v": v}, stamp=at(second)) for v, second in ((1, 1), (2, 9), (4, 10))]
    result = answer(script, {"s": Arrivals([stamped])})
    assert [(row.time, row.values) for row in result.rows] == [(at(10), (3,)), (at(20), (4,))]
    with pytest.raises(NotInterpreted, match="latent tuple that has no recorded stamp"):
        answer(script, {"s": Arrivals([[Row({"v": 1})]])})


# ---------------------------------------------------------------- tables


def test_windows_and_groups_of_tables() -> None:
    """Analysis does not let windows on tables through yet, so this plan is made by hand."""
    fields = (Field("v", INT), Field("t", INT))
    scan = TableScan(Table("x", fields, Registered(is_bounded=True)), "x")
    window = RangeWindow(attribute="t", range=Distance(Decimal(10)), slide=Distance(Decimal(10)))
    plan = WindowAggregate(Windowed(scan, "x", window, Field("edge", INT)), (), ())
    result = run(plan, {"x": [{"v": 1, "t": 12}, {"v": 2, "t": 3}, {"v": 4, "t": 11}, {"v": 8}]})
    assert [(row.time, row.values) for row in result.rows] == [(10, (0, 10, 0)), (20, (10, 20, 1))]
    whole = run(WindowAggregate(scan, (), ()), {"x": []})
    assert [row.values for row in whole.rows] == [()]


# ---------------------------------------------------------------- refused by name


PRELUDE = """
    CREATE STREAM s (k INT, v INT, t TIMESTAMP) ORDER BY t;
    CREATE STREAM r (k INT, t TIMESTAMP) ORDER BY t;
    CREATE TABLE x (k INT) USING csv OPTIONS (path 'x.csv');
"""


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT k FROM x", "over tables only"),
        (
            "SELECT count(*) FROM (SELECT sum(v) OVER (ROWS 3 PRECEDING) FROM s) [RANGE 5 WATTR row_num]",
            "row_num",
        ),
        ("SELECT max(*Y) FROM s AS (X, *Y)", "'max' of whole tuples"),
        ("SELECT count_min_sketch(v, 0.1, 0.9, 1) OVER (ROWS 3 PRECEDING) FROM s", "count_min_sketch"),
        ("SELECT sin(v) FROM s", "sin"),
        ("SELECT CASE WHEN v IN (SELECT k FROM x) THEN 1 END FROM s", "IN with a query"),
        ("SELECT v & 1 FROM s", "BITWISEAND"),
    ],
)
def test_what_is_not_interpreted_is_refused_by_name(query: str, named: str) -> None:
    with pytest.raises(NotInterpreted, match=named):
        ask(f"{PRELUDE} {query}", s="k | v | t\n1 | 1 | 10:00:00", r="k | t\n1 | 10:00:00", x="k\n1")


def test_distinct_with_a_user_defined_aggregate_is_refused_by_name() -> None:
    script = f"""{PRELUDE}
        CREATE AGGREGATE double_it(n INT) : INT {{
            TABLE state(v INT);
            INITIALIZE : {{ INSERT INTO RETURN VALUES (n * 2); }}
            ITERATE : {{ INSERT INTO RETURN VALUES (n * 2); }}
        }};
        SELECT double_it(DISTINCT v) OVER (ROWS 3 PRECEDING) FROM s"""
    with pytest.raises(NotInterpreted, match="double_it"):
        ask(script, s="k | v | t\n1 | 1 | 10:00:00")


@pytest.mark.parametrize(
    "row",
    [{"v": "text"}, {"v": 2**31}, {"v": True}, {"nobody": 1}, {"t": datetime(2026, 1, 1)}],  # noqa: DTZ001
)
def test_input_that_is_not_of_its_type_is_a_mistake_of_the_test(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is no value of type|has no column"):
        answer(f"{PRELUDE} SELECT v FROM s", {"s": Arrivals([[Row(row)]])})


def test_a_heartbeat_needs_a_promise_to_renew() -> None:
    with pytest.raises(ValueError, match="promises nothing"):
        answer("CREATE STREAM s (v INT); SELECT v FROM s", {"s": Arrivals([[Heartbeat(1)]])})
