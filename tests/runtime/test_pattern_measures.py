"""Aggregates of stars, end to end: lists, rows, and the user's own in Python."""

from __future__ import annotations

import pytest

from millstream.testing import Streams, table

PRICES = """
    item | price | word | t
    1    | 10    | a    | 1
    2    | 7     | b    | 2
    1    | 12    | c    | 3
    1    | 15    | a    | 4
    2    | 9     | b    | 5
    1    | 11    | d    | 6
    2    | 8     | e    | 7
"""

EXTENT = """
    CREATE AGGREGATE extent(Next INT) : (least INT, most INT) {
        TABLE state(a INT, b INT);
        INITIALIZE : { INSERT INTO state VALUES (Next, Next); }
        ITERATE    : { UPDATE state SET a = Next WHERE Next < a; UPDATE state SET b = Next WHERE Next > b; }
        TERMINATE  : { INSERT INTO RETURN SELECT a, b FROM state; }
    }
"""


@pytest.fixture
def prices(local: Streams) -> Streams:
    local.add("CREATE STREAM Price (item INT, price INT, word STRING, t INT) ORDER BY t", PRICES)
    return local


def test_all_kinds_of_aggregates_at_once(prices: Streams) -> None:
    def spread(values: list[int]) -> int:
        return max(values) - min(values)

    prices.engine.aggregate_function("spread", compute=spread, parameters="x INT", returns="INT")
    prices.engine.execute(EXTENT)
    assert prices.run(
        """
        SELECT item, collect_list(*A.price) AS l, median(*A.price) AS m, extent(*A.price).most AS most,
            extent(*A.price) AS e, spread(*A.price) AS s, var_pop(*A.item) AS v, listagg(*A.word, '+') AS w,
            max_by(*A.word, *A.price) AS best, sum(*A.price - item) AS net, Z.price
        FROM Price PARTITION BY item AS (*A, Z)
        WHERE (A.price > A.previous.price) IS NOT FALSE AND Z.price < Z.previous.price
          AND (spread(A.price) OVER (ROWS 1 PRECEDING) < 5) AND median(*A.price) > 7
        """
    ) == table(
        """
        item | l          | m    | most | e                      | s | v   | w     | best | net | price
        1    | [10,12,15] | 12.0 | 15   | {"least":10,"most":15} | 5 | 0.0 | a+c+a | a    | 34  | 11
        2    | [7,9]      | 8.0  | 9    | {"least":7,"most":9}   | 2 | 0.0 | b+b   | b    | 12  | 8
    """
    )
