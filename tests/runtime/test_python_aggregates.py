"""Aggregates in Python, end to end."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import millstream as ms
from millstream.testing import Streams, table


def add_bids(streams: Streams) -> Streams:
    streams.add(
        "CREATE STREAM Bid (item INT, price INT, bidder STRING, t TIMESTAMP) ORDER BY t",
        """
        item | price | bidder | t
        1    | 10    | ann    | 2026-01-01 10:00:00
        2    | 7     | bob    | 2026-01-01 10:00:01
        1    | 12    | bob    | 2026-01-01 10:00:02
        1    |       | ann    | 2026-01-01 10:00:04
        2    | 9     | ann    | 2026-01-01 10:00:05
        1    | 11    | ann    | 2026-01-01 10:00:09
    """,
    )
    return streams


@pytest.fixture
def bids(local: Streams) -> Streams:
    return add_bids(local)


@pytest.fixture
def bids_on_spark(streams: Streams) -> Streams:
    return add_bids(streams)


def test_an_aggregate_that_a_statement_names(bids: Streams) -> None:
    bids.engine.execute(
        "CREATE AGGREGATE mysum(x BIGINT) : BIGINT LANGUAGE PYTHON AS 'tests.python_aggregates:MySum'"
    )
    assert bids.run(
        "SELECT item, mysum(price) OVER (PARTITION BY item ROWS 1 PRECEDING) AS s FROM Bid"
    ) == table(
        """
        item | s
        1    | 10
        2    | 7
        1    | 22
        1    | 12
        2    | 16
        1    | 11
    """
    )


def test_functions_one_by_one(bids: Streams) -> None:
    bids.engine.aggregate_function(
        "texts",
        init=list,
        add=lambda state, x: [*state, x],
        merge=lambda a, b: a + b,
        result="+".join,
        returns="string",
    )
    assert bids.run("SELECT texts(bidder) OVER (RANGE INTERVAL 3 SECONDS PRECEDING) AS s FROM Bid") == table(
        """
        s
        ann
        ann+bob
        ann+bob+bob
        bob+bob+ann
        bob+ann+ann
        ann
    """
    )


def test_a_class_of_ones_own_with_a_state_of_its_own_kind(bids_on_spark: Streams) -> None:
    class Seen:
        def __init__(self) -> None:
            self.counts: Counter[str] = Counter()

    class Bidders:
        """A local class, and a state of another one: neither can be imported where it is run."""

        def init(self) -> Seen:
            return Seen()

        def add(self, state: Seen, bidder: str) -> Seen:
            state.counts[bidder] += 1
            return state

        def remove(self, state: Seen, bidder: str) -> Seen:
            state.counts -= Counter([bidder])
            return state

        def result(self, state: Seen) -> tuple[int, list[str]]:
            return len(state.counts), sorted(state.counts)

    bids_on_spark.engine.aggregate_function("bidders", Bidders, returns="(n INT, names ARRAY<STRING>)")
    assert bids_on_spark.run(
        "SELECT item, bidders(bidder) OVER (PARTITION BY item RANGE INTERVAL 3 SECONDS PRECEDING) FROM Bid"
    ) == table("""
        item | n | names
        1    | 1 | ["ann"]
        2    | 1 | ["bob"]
        1    | 2 | ["ann","bob"]
        1    | 2 | ["ann","bob"]
        2    | 1 | ["ann"]
        1    | 1 | ["ann"]
    """)


def test_four_states_return_any_number_of_rows(bids: Streams) -> None:
    class Raises:
        """Each bid that is higher than the one before it, with both prices; nothing otherwise."""

        def initialize(self, ctx: Any, price: int | None) -> None:
            self.best = price

        def iterate(self, ctx: Any, price: int | None) -> None:
            if price is not None and self.best is not None and price > self.best:
                ctx.ret(self.best, price)
                ctx.ret({"before": price, "after": None})
                self.best = price

    bids.engine.aggregate_function("raises", Raises, returns="(before INT, after INT)")
    assert bids.run("SELECT item, raises(price) FROM Bid GROUP BY item") == table("""
        item | before | after
        1    | 10     | 12
        1    | 12     |
        2    | 7      | 9
        2    | 9      |
    """)


def test_on_a_table_an_aggregate_sees_all_of_its_group(streams: Streams) -> None:
    class Counted:
        """A row for every second value, and one for all of them."""

        def initialize(self, ctx: Any, price: int) -> None:
            self.seen = [price]

        def iterate(self, ctx: Any, price: int) -> None:
            self.seen.append(price)
            if len(self.seen) % 2 == 0:
                ctx.ret(f"{len(self.seen)}")

        def terminate(self, ctx: Any) -> None:
            ctx.ret(f"of {self.seen}")

    mill = streams.engine
    streams.add(
        "CREATE TABLE Sold (item INT, price INT)",
        """
        item | price
        1    | 10
        2    | 7
        1    | 12
        1    | 11
    """,
    )
    mill.execute(
        "CREATE AGGREGATE mysum(x BIGINT) : BIGINT LANGUAGE PYTHON AS 'tests.python_aggregates:MySum'"
    )
    mill.aggregate_function("spread", lambda prices: max(prices) - min(prices), returns="int")
    mill.aggregate_function("counted", Counted, returns="string")
    both = "SELECT item, mysum(price) AS s, spread(price) AS d FROM Sold GROUP BY item"
    assert streams.run(both) == table("""
        item | s  | d
        1    | 33 | 2
        2    | 7  | 0
    """)
    assert streams.run("SELECT mysum(price) AS s FROM Sold") == table("""
        s
        40
    """)
    assert streams.run("SELECT item, counted(price) AS c FROM Sold GROUP BY item") == table("""
        item | c
        1    | 2
        1    | of [10, 12, 11]
        2    | of [7]
    """)


def test_active_expiration(bids: Streams) -> None:
    class Here:
        def initialize(self, ctx: Any, bidder: str) -> None:
            ctx.ret(f"{bidder} comes")

        iterate = initialize

        def expire(self, ctx: Any) -> None:
            ctx.ret(f"{ctx.oldest()} leaves, {len(ctx.inwindow) - 1} left")

    bids.engine.aggregate_function("here", Here, returns="string")
    assert bids.run(
        "SELECT here(bidder) OVER (RANGE INTERVAL 4 SECONDS PRECEDING ACTIVE EXPIRATION) AS s FROM Bid "
    ) == table("""
        s
        ann comes
        bob comes
        bob comes
        ann comes
        ann leaves, 3 left
        ann comes
        bob leaves, 3 left
        bob leaves, 2 left
        ann leaves, 1 left
        ann comes
        ann leaves, 1 left
        ann leaves, 0 left
    """)


def test_windows_over_a_stream_and_a_function_of_lists(bids: Streams) -> None:
    bids.engine.execute(
        """
        CREATE AGGREGATE slope(x DOUBLE, y DOUBLE) : DOUBLE
          LANGUAGE PYTHON AS 'tests.python_aggregates:slope'
        """
    )
    assert bids.run(
        "SELECT item, slope(second(t), price) AS s, count(*) AS n FROM Bid [TUMBLE 5 SECONDS] "
        "WHERE price IS NOT NULL GROUP BY item"
    ) == table("""
        item | s   | n
        1    | 1.0 | 2
        2    | 0.0 | 1
        1    | 0.0 | 1
        2    | 0.0 | 1
    """)


def test_slides(bids: Streams) -> None:
    bids.engine.aggregate_function("texts", "+".join, returns="string")
    for over, expected in (
        ("ROWS 2 PRECEDING SLIDE 2", ["ann+bob", "bob+bob+ann", "ann+ann+ann"]),
        ("ROWS 0 PRECEDING SLIDE 3", ["bob", "ann"]),
        ("RANGE INTERVAL 1 SECOND PRECEDING SLIDE INTERVAL 5 SECONDS", ["ann", "ann"]),
    ):
        rows = bids.run(f"SELECT texts(bidder) OVER ({over}) AS s FROM Bid")
        assert [row[0] for row in rows[1:]] == expected


def test_values_are_those_of_python(streams: Streams) -> None:
    streams.add(
        """CREATE STREAM s (i INT, d DECIMAL(10,2), day DATE, at TIMESTAMP, n INT) ORDER BY n""",
        """
        i | d    | day        | at                      | n
        1 | 2.50 | 2026-01-02 | 2026-01-02 03:04:05.006 | 1
          |      |            |                         | 2
    """,
    )
    seen = "int, Decimal, date, datetime, timedelta, list, bytes, bool, dict"

    def kinds(*columns: list[Any]) -> str:
        return ", ".join(type(column[-1]).__name__ for column in columns)

    streams.engine.aggregate_function(
        "kinds", kinds, returns="string", parameters="a INT, b DECIMAL(10,2), c DATE, d TIMESTAMP, "
        "e INTERVAL DAY TO SECOND, f ARRAY<INT>, g BINARY, h BOOLEAN, j MAP<STRING, INT>"
    )  # fmt: skip
    assert streams.run(
        "SELECT kinds(i, d, day, at, at - at, array(i), CAST('x' AS BINARY), i > 0, map('a', i)) "
        "OVER (ROWS 0 PRECEDING) AS k FROM s"
    ) == [("k",), (seen,), ("NoneType, NoneType, NoneType, NoneType, NoneType, list, bytes, NoneType, dict",)]

    def returned(columns: list[Any]) -> Any:
        return Decimal("1.005"), date(2026, 1, 2), datetime(2026, 1, 2, 3), timedelta(hours=1), [1, None]  # noqa: DTZ001

    streams.engine.aggregate_function(
        "given", returned, returns="(d DECIMAL(5,2), c DATE, t TIMESTAMP, i INTERVAL HOUR, l ARRAY<INT>)"
    )
    assert streams.run("SELECT given(i) FROM s [TUMBLE 5]") == [
        ("d", "c", "t", "i", "l"),
        ("1.01", "2026-01-02", "2026-01-02 03:00:00", "0 01:00:00", "[1,null]"),
    ]


def test_an_exception_stops_the_query_with_the_tuple_and_the_users_traceback(bids_on_spark: Streams) -> None:
    def divided(prices: list[int]) -> float:
        return 100 / (prices[-1] - 12)

    mill = bids_on_spark.engine
    mill.aggregate_function("divided", init=int, add=lambda _, x: divided([x]), returns="double")
    query = mill.start("SELECT divided(price) OVER (ROWS UNBOUNDED PRECEDING) FROM Bid")
    with pytest.raises(ms.ExecutionError) as caught:
        query.collect()
    message = caught.value.message
    assert message.startswith(
        "aggregate 'divided': ZeroDivisionError: division by zero, for the arguments (12)\n"
    )
    assert [line.rpartition(" in ")[2] for line in message.splitlines() if "File" in line] == [
        "<lambda>",
        "divided",
    ]
    assert "millstream" not in message.replace(__file__, "")
    assert caught.value.place is not None


def test_explain_says_how(bids: Streams) -> None:
    bids.engine.aggregate_function("f", init=int, add=max, remove=max, returns="int", parameters="x INT")
    bids.engine.aggregate_function("g", init=int, add=max, merge=max, returns="int", parameters="x INT")
    bids.engine.aggregate_function("h", max, returns="int", parameters="x INT")
    ways = {
        "f(price) OVER (ROWS 9 PRECEDING)": "delta maintenance with its remove, O(1)",
        "g(price) OVER (ROWS 9 PRECEDING SLIDE 2)": "two stacks with its merge, O(1)",
        "g(price) OVER (ROWS UNBOUNDED PRECEDING)": "kept up to date, O(1)",
        "h(price) OVER (ROWS 9 PRECEDING)": "recomputed from the content, O(w)",
    }
    for call, way in ways.items():
        assert f"in Python, {way}" in bids.engine.explain(f"SELECT {call} FROM Bid")


def test_what_is_wrong_with_functions_is_told(bids: Streams) -> None:
    wrong: list[tuple[str, Any, dict[str, Any]]] = [
        ("'add' of 'f' does not take the arguments (state, x)", None, {"init": int, "add": lambda state: 1}),
        ("unknown function 'ad' of an aggregate", None, {"init": int, "ad": max}),
        ("aggregate 'f' has neither a class nor functions", None, {}),
        ("aggregate 'f' has both a class and functions", max, {"init": int}),
        ("'f' has 'add' and no 'init'", None, {"add": lambda state, x: x}),
    ]
    for message, subject, methods in wrong:
        with pytest.raises(ms.AnalysisError) as caught:
            bids.engine.aggregate_function("f", subject, returns="int", parameters="x INT", **methods)
        assert caught.value.message == message
    with pytest.raises(ms.AnalysisError, match="the parameters of 'f' are not known"):
        bids.engine.aggregate_function("f", max, returns="int")
    with pytest.raises(ms.MillstreamError, match="'it' is not a type"):
        bids.engine.aggregate_function("f", middle, returns="it")


def middle(values: list[int]) -> int:
    return values[len(values) // 2]
