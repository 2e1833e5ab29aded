"""The patterns of the papers: the listings of ESL-TS, its text search, and a double bottom of SQL-TS."""

from __future__ import annotations

from dataclasses import dataclass

CLICKS = """
    CREATE STREAM Sessions (SessNo INT, ClickTime BIGINT, PageNo INT, PageType STRING)
    ORDER BY ClickTime USING parquet OPTIONS (path 'x');
"""
SPEED = """
    CREATE STREAM speed (stationId INT, speed DOUBLE, speedTime BIGINT)
    ORDER BY speedTime USING parquet OPTIONS (path 'x');
    CREATE TABLE stations (stationId INT, location STRING) USING csv OPTIONS (path 'x');
"""
DIFF = """
    CREATE STREAM diff (stationId INT, speed_diff DOUBLE, speedTime BIGINT)
    ORDER BY speedTime USING parquet OPTIONS (path 'x');
"""
EVENTS = """
    CREATE STREAM events (time BIGINT, name INT, type STRING, magnitude DOUBLE)
    ORDER BY time USING parquet OPTIONS (path 'x');
"""
QUOTES = """
    CREATE STREAM quote (name INT, price DOUBLE, date BIGINT)
    ORDER BY date USING parquet OPTIONS (path 'x');
"""
LETTERS = "CREATE STREAM text (letter STRING, place BIGINT) ORDER BY place USING parquet OPTIONS (path 'x');"


@dataclass(frozen=True)
class Example:
    """A query over a stream that ``streams`` makes by name, partitioned by a column, or by none."""

    name: str
    stream: str
    key: str
    script: str


def double_bottom(least: int = 5, falls: str = "<=", rises: str = ">=") -> str:
    """Example 1.7; prices that stay belong to both legs."""
    legs = " AND ".join(
        f"{name}.price {than} {name}.previous.price AND count(*{name}) >= {least}"
        for name, than in zip("WXYZ", (falls, rises, falls, rises), strict=True)
    )
    return f"""{QUOTES}
        SELECT W.name, FIRST(W).date, FIRST(W).price, LAST(Z).date, LAST(Z).price
        FROM quote PARTITION BY name SEQUENCE BY date AS (*W, *X, *Y, *Z) WHERE {legs};
    """


def _flat(name: str) -> str:
    return f"0.98 * {name}.previous.price < {name}.price AND {name}.price < 1.02 * {name}.previous.price"


RELAXED = f"""{QUOTES}
    SELECT X.name, X.date, S.date FROM quote PARTITION BY name
    AS (X, *Y, *Z, *T, *U, *V, *W, *R, S)
    WHERE X.price >= 0.98 * X.previous.price AND Y.price < 0.98 * Y.previous.price AND {_flat("Z")}
      AND T.price > 1.02 * T.previous.price AND {_flat("U")} AND V.price < 0.98 * V.previous.price
      AND {_flat("W")} AND R.price > 1.02 * R.previous.price AND S.price <= 1.02 * S.previous.price;
"""


def _text(wanted: str) -> str:
    """Section 6: one letter after the other."""
    names = [f"P{number}" for number in range(1, len(wanted) + 1)]
    where = " AND ".join(f"{name}.letter = '{letter}'" for name, letter in zip(names, wanted, strict=True))
    return f"{LETTERS} SELECT P1.place FROM text AS ({', '.join(names)}) WHERE {where};"


STRICTLY = Example("1.7, strictly", "prices", "name", double_bottom(falls="<", rises=">"))
JUMP = Example(
    "a fall, then a jump (X, *Y, Z)",
    "prices",
    "name",
    f"""{QUOTES} SELECT X.date, Z.date FROM quote PARTITION BY name AS (X, *Y, Z)
    WHERE Y.price < Y.previous.price AND Z.price > 1.03 * Z.previous.price;""",
)
"""Every tuple of a fall could be its X: an attempt that fails behind the star has been made in vain."""

EXAMPLES = (
    Example(
        "1.1 (X, Y, Z)",
        "clicks",
        "SessNo",
        f"""{CLICKS} SELECT Y.PageNo, Z.ClickTime FROM Sessions PARTITION BY SessNo AS (X, Y, Z)
        WHERE X.PageType = 'a' AND Y.PageType = 'd' AND Z.PageType = 'p';""",
    ),
    Example(
        "1.2 (*A, B)",
        "clicks",
        "SessNo",
        f"""{CLICKS} SELECT SessNo, count(*A) FROM Sessions PARTITION BY SessNo AS (*A, B)
        WHERE A.PageType <> 'd' AND B.PageType = 'd' AND count(*A) < 20;""",
    ),
    Example(
        "1.3 (X, *Y)",
        "speeds",
        "stationId",
        f"""{SPEED} SELECT A.location, LAST(Y).speedTime
        FROM stations AS A, speed PARTITION BY stationId AS (X, *Y)
        WHERE X.speed > 50 AND Y.speed < Y.previous.speed AND LAST(*Y).speed < 0.3 * X.speed
          AND ccount(Y) <= 6 AND X.stationId = A.stationId;""",
    ),
    Example(
        "1.4 (X, *Y, *Z)",
        "differences",
        "stationId",
        f"""{DIFF} SELECT X.stationId, FIRST(Y).speedTime, LAST(Z).speedTime, LAST(Z).speed_diff
        FROM diff PARTITION BY stationId AS (X, *Y, *Z)
        WHERE X.speed_diff <= 15 AND Y.speed_diff > Y.previous.speed_diff
          AND LAST(*Y).speed_diff > 2 * X.speed_diff AND ccount(Y) <= 6
          AND Z.speed_diff > 1.1 * X.speed_diff AND ccount(Z) <= 60;""",
    ),
    Example(
        "1.5 (*E, V)",
        "events",
        "",
        f"""{EVENTS} SELECT V.name, LAST(E).name FROM events AS (*E, V)
        WHERE E.type = 'Earthquake' AND V.type = 'Volcano' AND LAST(E).magnitude >= 7.0;""",
    ),
    Example("1.7 (*W, *X, *Y, *Z)", "prices", "name", double_bottom()),
    Example("1.7, legs of three", "prices", "name", double_bottom(3)),
    STRICTLY,
    Example("relaxed (X, *Y, ..., *R, S)", "prices", "name", RELAXED),
    Example("section 6, abcabcacab", "letters", "", _text("abcabcacab")),
)

ON_REAL_PRICES = tuple(example for example in EXAMPLES if example.stream == "prices")
