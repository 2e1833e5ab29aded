"""Windowed queries as plain SQL over the same rows: an oracle that shares nothing with Millstream.

The reference interpreter plans with the engine's own analysis, so it repeats mistakes of that. DuckDB has a
parser, a planner and operators of its own. A window over an aggregate call becomes a subquery over the tuples
that the definition names, a bracket a join with a table of windows, and a maintained result one query for
each instant, over the contents of the windows at that instant (semantics, sections 2, 3 and 6).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from oracle import Arrivals, Row

COLUMNS = ("n", "k", "v", "t")
STREAMS = ("a", "b", "c")
LAST = 24
"""The largest timestamp; windows reach 9 beyond it at most."""
INSTANTS = range(LAST + 11)

Rows = list[tuple[Any, ...]]
Tuples = list[tuple[int, int | None, int | None, int]]


@dataclass(frozen=True)
class Comparison:
    """An ESL query, and its rows as DuckDB has them, or its contents instant by instant."""

    esl: str
    sql: str
    maintained: bool = False


@dataclass(frozen=True)
class Window:
    """A bracket that moves with every instant, and its content at instant ``{now}`` as a query."""

    esl: str
    content: str


# ---------------------------------------------------------------- data


def tuples(chance: random.Random) -> Tuples:
    """Draw tuples in order of arrival: ties, NULLs, and disorder of at most 2."""
    count = chance.choice([0, 1, 6, 12, 18])
    times = sorted(chance.randint(0, LAST) for _ in range(count))
    late = sorted(range(count), key=lambda i: times[i] + chance.choice([0, 0, 1, 2]))
    return [
        (n, chance.choice([1, 1, 2, 3, None]), chance.choice([0, 1, 2, 5, -3, None]), times[i])
        for n, i in enumerate(late)
    ]


def declared(slack: int = 2) -> str:
    columns = "n INT, k INT, v INT, t INT"
    return "".join(f"CREATE STREAM {name} ({columns}) ORDER BY t SLACK {slack};\n" for name in STREAMS)


def arrivals(rows: Tuples) -> Arrivals:
    return Arrivals([[Row(dict(zip(COLUMNS, row, strict=True))) for row in rows]])


class Database:
    """Tuples of a case in DuckDB, in tables with the names of the streams."""

    def __init__(self, given: dict[str, Tuples]) -> None:
        self._db = duckdb.connect()
        for name, rows in given.items():
            self._db.execute(f"CREATE TABLE {name} (n INT, k INT, v INT, t INT)")
            if rows:
                self._db.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)

    def rows(self, sql: str) -> Rows:
        return self._db.execute(sql).fetchall()

    def contents(self, sql: str) -> Iterator[Counter[tuple[Any, ...]]]:
        """Yield the result at every instant."""
        for now in INSTANTS:
            yield Counter(self.rows(sql.replace("{now}", str(now))))

    def close(self) -> None:
        self._db.close()


def folded(changes: Iterable[tuple[Any, ...]]) -> Iterator[Counter[tuple[Any, ...]]]:
    """Yield the relation at every instant, from its changes (time, '+' or '-', columns)."""
    content: Counter[tuple[Any, ...]] = Counter()
    waiting = sorted(changes, key=lambda change: change[0])
    for now in INSTANTS:
        while waiting and waiting[0][0] <= now:
            _, sign, *values = waiting.pop(0)
            content[tuple(values)] += 1 if sign == "+" else -1
        yield Counter({row: count for row, count in content.items() if count})
    assert not waiting, "a change after everything has left"


# ---------------------------------------------------------------- windows over an aggregate call

AGGREGATES = (
    "count(*)",
    "count({v})",
    "sum({v})",
    "min({v})",
    "max({v})",
    "avg({v})",
    "count(DISTINCT {v})",
    "sum(DISTINCT {v})",
    "count(*) FILTER (WHERE {v} > 0)",
    "median({v})",
    "bool_or({v} > 1)",
)


def over(chance: random.Random) -> Comparison:
    """Draw calls with OVER: ROWS or RANGE, partitioned or not, with and without SLIDE."""
    reach = chance.randint(0, 6)
    rows = chance.random() < 0.5
    partition, same = chance.choice([("PARTITION BY k ", "x.k IS NOT DISTINCT FROM y.k"), ("", "true")])
    unbounded = chance.random() < 0.2
    frame = "UNBOUNDED" if unbounded else str(reach)
    esl_frame = f"{partition}{'ROWS' if rows else 'RANGE'} {frame} PRECEDING"
    before = f"{same} AND (x.t, x.n) <= (y.t, y.n)"
    if not unbounded:
        before += f" AND x.r >= y.r - {reach}" if rows else f" AND x.t >= y.t - {reach}"
    slide = chance.randint(2, 5) if chance.random() < 0.3 else 0
    calls = chance.sample(AGGREGATES, 2)
    where = chance.choice(["", "", " WHERE v IS NOT NULL", " WHERE k = 1"])
    slid = f" SLIDE {slide}" if slide else ""
    esl = ", ".join(f"{_call(call, 'v')} OVER ({esl_frame}{slid}) AS c{i}" for i, call in enumerate(calls))
    sql = ", ".join(
        f"(SELECT {call.format(v='x.v')} FROM r x WHERE {before}) AS c{i}" for i, call in enumerate(calls)
    )
    numbered = f"SELECT *, row_number() OVER ({partition}ORDER BY t, n) AS r FROM a{where}"
    chosen = f" WHERE r % {slide} = 0" if slide else ""
    return Comparison(
        f"SELECT n, {esl} FROM a{where}", f"WITH r AS ({numbered}) SELECT n, {sql} FROM r y{chosen}"
    )


def _call(call: str, column: str) -> str:
    return call.format(v=column)


# ---------------------------------------------------------------- windows over a stream


def bracket(chance: random.Random) -> Comparison:
    """Draw aggregates over sliding, tumbling and landmark windows: a join with a table of windows."""
    size, slide, origin = chance.randint(1, 9), chance.randint(1, 6), chance.choice([0, 0, 1, -2])
    kind = chance.choice(["slide", "tumble", "landmark", "band"])
    start, end = chance.randint(0, 8), chance.randint(12, 20)
    ends = f"SELECT {origin} + i * {slide} AS e FROM range(-10, 50) g(i)"
    at = f" ORIGIN {origin}" if origin else ""
    match kind:
        case "slide":
            window, inside = f"RANGE {size} SLIDE {slide}{at}", f"t >= e - {size} AND t < e"
        case "tumble":
            window, inside = f"TUMBLE {slide}{at}", f"t >= e - {slide} AND t < e"
        case "landmark":
            # After the first end that takes in the last tuple no window is new.
            window, inside = f"LANDMARK START AT {start} SLIDE {slide}", f"t >= {start} AND t < e"
            multiples = f"SELECT i * {slide} AS e FROM range(-10, 50) g(i) WHERE e > {start}"
            last = f"SELECT min(e) FROM ({multiples}) WHERE e > (SELECT max(t) FROM a)"
            ends = f"{multiples} AND e <= ({last})"
        case _:
            window = f"LANDMARK START AT {start} END AT {end}"
            inside, ends = f"t >= {start} AND t < e", f"SELECT {end} AS e"
    keys, group = chance.choice([("k, ", " GROUP BY k"), ("", ""), ("k, v > 1, ", " GROUP BY k, v > 1")])
    calls = ", ".join(_call(call, "v") for call in chance.sample(AGGREGATES, 3))
    where = chance.choice(["", "", " WHERE v IS NOT NULL"])
    having = " HAVING count(*) > 1" if group and chance.random() < 0.3 else ""
    also = "WHERE" if not where else f"{where} AND"
    by = f"{group}, e" if group else " GROUP BY e"
    return Comparison(
        f"SELECT window_end, {keys}{calls} FROM a [{window}]{where}{group}{having}",
        f"WITH w AS ({ends}) SELECT e, {keys}{calls} FROM w, a {also} {inside}{by}{having}",
    )


def session(chance: random.Random) -> Comparison:
    """Draw sessions, of the whole stream or of each key: maximal runs whose gaps are at most g."""
    gap = chance.randint(1, 4)
    per, key = chance.choice([(" PATTR k", "k, "), ("", "")])
    partition = "PARTITION BY k " if key else ""
    calls = ", ".join(_call(call, "v") for call in chance.sample(AGGREGATES, 2))
    new = f"coalesce(t - lag(t) OVER ({partition}ORDER BY t, n) > {gap}, true)"
    marked = f"SELECT *, {new} AS new FROM a"
    numbered = f"SELECT *, sum(new::INT) OVER ({partition}ORDER BY t, n) AS s FROM ({marked})"
    return Comparison(
        f"SELECT window_start, window_end, {key}{calls} FROM a [SESSION GAP {gap}{per}]",
        f"SELECT min(t), max(t) + {gap}, {key}{calls} FROM ({numbered}) GROUP BY {key}s",
    )


# ---------------------------------------------------------------- maintained results


def moving(chance: random.Random, name: str) -> Window:
    """Draw a window that moves with every instant."""
    n = chance.randint(1, 6)
    so_far = f"SELECT * FROM {name} WHERE t <= {{now}}"
    latest = f"QUALIFY row_number() OVER (PARTITION BY {{}} ORDER BY t DESC, n DESC) <= {n}"
    return chance.choice(
        [
            recent(name, n),
            recent(name, n),
            Window("NOW", f"{so_far} AND t = {{now}}"),
            Window("UNBOUNDED", so_far),
            Window(f"ROWS {n}", f"{so_far} {latest.format(1)}"),
            Window(f"ROWS {n} PATTR k", f"{so_far} {latest.format('k')}"),
            Window(f"LANDMARK START AT {n}", f"{so_far} AND t >= {n}"),
        ]
    )


def recent(name: str, size: int) -> Window:
    return Window(f"RANGE {size}", f"SELECT * FROM {name} WHERE t > {{now}} - {size} AND t <= {{now}}")


CONDITIONS = (
    "x.k = y.k",
    "x.k = y.k",
    "x.k = y.k AND x.v < y.v",
    "x.k = y.k AND x.v > 0",
    "x.k = y.k AND y.v IS NOT NULL",
    "x.k IS NOT DISTINCT FROM y.k",
    "true",
    "false",
    "x.k = y.k AND false",
    "x.v < y.v",
    "x.k = y.k OR x.v = y.v",
    "NULL",
)
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
FORMS: tuple[Callable[[random.Random], str], ...] = (
    lambda r: f"SELECT x.n AS p, y.n AS q FROM {{a}} x {r.choice(JOINS)} {{b}} y ON {r.choice(CONDITIONS)}",
    lambda r: f"SELECT x.n AS p, y.n AS q FROM {{a}} x, {{b}} y WHERE {r.choice(CONDITIONS)}",
    lambda r: (
        f"SELECT x.n, x.k FROM {{a}} x {r.choice(['SEMI', 'ANTI'])} JOIN {{b}} y ON {r.choice(CONDITIONS)}"
    ),
    lambda r: (
        "SELECT x.k, count(*) AS c, sum(y.v) AS s, max(x.v) AS m "
        f"FROM {{a}} x {r.choice(JOINS[:2])} {{b}} y ON {r.choice(CONDITIONS[:4])} GROUP BY x.k"
    ),
    lambda r: "SELECT DISTINCT k, v FROM {a} x",
    lambda r: (
        f"SELECT k, v FROM {{a}} x {r.choice(['UNION', 'EXCEPT', 'INTERSECT'])} {r.choice(['ALL ', ''])}"
        "SELECT k, v FROM {b} y"
    ),
    lambda r: "SELECT k, count(*) AS c, sum(v) AS s, min(v) AS m, avg(v) AS g FROM {a} x GROUP BY k",
    # As a relation in a join, an aggregate needs a window of time (docs/semantics.md).
    lambda r: (
        f"SELECT x.n, g.c FROM {{a}} x {r.choice(JOINS[:2])} "
        "(SELECT k, count(*) AS c FROM {d} y GROUP BY k) g ON x.k = g.k"
    ),
    lambda r: (
        f"SELECT x.n AS p, y.n AS q, z.n AS r FROM {{a}} x JOIN {{b}} y ON {r.choice(CONDITIONS[:4])} "
        "JOIN {c} z ON y.k = z.k"
    ),
    lambda r: "SELECT k, count(*) AS c FROM (SELECT DISTINCT k, v FROM {a} x) d GROUP BY k",
    lambda r: "SELECT x.k, y.v FROM (SELECT DISTINCT k FROM {a} x) x JOIN {b} y ON x.k = y.k",
)


def relational(chance: random.Random) -> Comparison:
    """Draw a join, DISTINCT, set operation or aggregate over windows that move with every instant."""
    form = chance.choice(FORMS)(chance)
    windows = {name: moving(chance, name) for name in STREAMS}
    windows["d"] = recent("b", chance.randint(1, 6))
    streams = {**{name: name for name in STREAMS}, "d": "b"}
    esl = form.format(**{name: f"{streams[name]} [{window.esl}]" for name, window in windows.items()})
    sql = form.format(**{name: f"({window.content})" for name, window in windows.items()})
    esl = esl.replace(" SEMI JOIN", " LEFT SEMI JOIN").replace(" ANTI JOIN", " LEFT ANTI JOIN")
    return Comparison(esl.replace("SELECT", "SELECT CHANGES", 1), sql, maintained=True)


KINDS: tuple[Callable[[random.Random], Comparison], ...] = (over, bracket, session, relational, relational)
