"""Chains of operators, drawn at random: base streams of many kinds, streams derived from them, and a query.

Each operator reads a stream with a key `k` and a number `n`, and makes one with the same columns, so that
every operator can stand above every other.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oracle import Arrivals, Input, Row
from tests.engine.relational import TIMES, Drawing
from tests.engine.simulated import Course

AGGREGATES = """
CREATE AGGREGATE running(x BIGINT) : BIGINT {
  TABLE st(m BIGINT);
  INITIALIZE : { INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (x); }
  ITERATE : { UPDATE st SET m = coalesce(m, 0) + coalesce(x, 0); INSERT INTO RETURN SELECT m FROM st; }
};
CREATE AGGREGATE total(x BIGINT) : BIGINT {
  TABLE st(m BIGINT);
  INITIALIZE : { INSERT INTO st VALUES (coalesce(x, 0)); }
  ITERATE : { UPDATE st SET m = m + coalesce(x, 0); }
  TERMINATE : { INSERT INTO RETURN SELECT m FROM st; }
};
CREATE AGGREGATE highest(x BIGINT) : BIGINT {
  TABLE seen(v BIGINT);
  INITIALIZE : { INSERT INTO seen VALUES (x); }
  ITERATE : { INSERT INTO seen VALUES (x); }
  TERMINATE : { INSERT INTO RETURN SELECT v FROM seen WHERE v > 0 ORDER BY v DESC LIMIT 2; }
};
"""

STATELESS = {
    "filter": "SELECT k, n FROM {s} WHERE n > 1",
    "project": "SELECT upper(k) AS k, n + 1 AS n FROM {s}",
    "table": "SELECT x.name AS k, s.n AS n FROM {s} s JOIN names x ON s.k = x.k",
    "left table": "SELECT s.k AS k, length(x.name) + s.n AS n FROM {s} s LEFT JOIN names x ON s.k = x.k",
}
REPORTS = {
    "tumble": "SELECT k, sum(n) AS n FROM {s} [TUMBLE {i}] GROUP BY k",
    "tumble having": "SELECT k, sum(n) AS n FROM {s} [TUMBLE {i}] GROUP BY k HAVING count(*) > 1",
    "tumble alone": "SELECT max(k) AS k, count(*) AS n FROM {s} [TUMBLE {i}]",
    "tumble wid": "SELECT k, count(*) AS n FROM {s} [TUMBLE {i}] WHERE n > 0 GROUP BY k, wid",
    "slide": "SELECT k, sum(n) AS n FROM {s} [RANGE {j} SLIDE {i}] GROUP BY k",
    "slide alone": "SELECT min(k) AS k, max(n) AS n FROM {s} [RANGE {j} SLIDE {i}]",
    "slide own": "SELECT k, total(n) AS n FROM {s} [RANGE {j} SLIDE {i}] GROUP BY k",
    "tumble several": "SELECT k, highest(n) AS n FROM {s} [TUMBLE {j}] GROUP BY k",
    "emit": "SELECT k, sum(n) AS n FROM {s} [TUMBLE {j} EMIT EVERY {i}] GROUP BY k",
    "rows": "SELECT max(k) AS k, sum(n) AS n FROM {s} [ROWS {m}]",
    "rows slide": "SELECT k, count(*) AS n FROM {s} [ROWS {m} SLIDE {l}] GROUP BY k",
    "rows apart": "SELECT k, sum(n) AS n FROM {s} [ROWS {m} SLIDE {l} PATTR k]",
    "session": "SELECT k, count(*) AS n FROM {s} [SESSION GAP {i}] GROUP BY k",
    "session apart": "SELECT k, sum(n) AS n FROM {s} [SESSION GAP {i} PATTR k]",
    "predicate": "SELECT max(k) AS k, sum(n) AS n FROM {s} [START WHEN n > 1 END WHEN n < 2]",
    "predicate apart": "SELECT k, count(*) AS n FROM {s} [START WHEN n > 1 END WHEN n < 2 PATTR k]",
    "landmark": "SELECT k, sum(n) AS n FROM {s} [LANDMARK START AT {x}] GROUP BY k",
    "landmark slide": "SELECT k, sum(n) AS n "
    "FROM {s} [LANDMARK START AT {x} END AT {y} SLIDE {i}] GROUP BY k",
    "unbounded slide": "SELECT k, max(n) AS n FROM {s} [UNBOUNDED SLIDE {i}] GROUP BY k",
    "unbounded": "SELECT max(k) AS k, count(*) AS n FROM {s} [UNBOUNDED]",
    "lag": "SELECT k, count(*) AS n FROM {s} [RANGE {j} SLIDE {i} LAG {i}] GROUP BY k",
    "empty": "SELECT max(k) AS k, count(*) AS n FROM {s} [TUMBLE {i} EMIT EMPTY]",
    "rollup": "SELECT k, sum(n) AS n FROM {s} [TUMBLE {i}] GROUP BY ROLLUP (k)",
    "first of windows": "SELECT k, n FROM {s} [TUMBLE {i}] ORDER BY n DESC, k LIMIT 2",
    "ranks in windows": "SELECT k, row_number() OVER (PARTITION BY k ORDER BY n) AS n FROM {s} [TUMBLE {i}]",
    "rows with bounds": "SELECT k, n FROM {s} [RANGE {j} SLIDE {i}] WHERE window_end > window_start",
    "groups of reports": "SELECT max(k) AS k, count(*) AS n FROM "
    "(SELECT k, window_end AS e, count(*) AS c FROM {s} [TUMBLE {i}] GROUP BY k) GROUP BY e",
    "origin": "SELECT k, count(*) AS n FROM {s} [RANGE {j} SLIDE {i} ORIGIN {x}] GROUP BY k",
}
MAINTAINED = {
    "distinct": "SELECT DISTINCT k, n FROM {s} [RANGE {i}]",
    "distinct rows": "SELECT DISTINCT k, n FROM {s} [ROWS {m}]",
    "group": "SELECT k, count(*) AS n FROM {s} [RANGE {i}] GROUP BY k",
    "group alone": "SELECT max(k) AS k, sum(n) AS n FROM {s} [RANGE {i}]",
    "group several": "SELECT k, highest(n) AS n FROM {s} [RANGE {i}] GROUP BY k",
    "leaving": "SELECT DSTREAM k, n FROM {s} [RANGE {i}]",
    "leaving slide": "SELECT DSTREAM k, n FROM {s} [RANGE {j} SLIDE {i}]",
    "whole": "SELECT RSTREAM k, n FROM {s} [RANGE {j} SLIDE {i}]",
    "changes": "SELECT CHANGES k, n FROM {s} [RANGE {i}]",
    "changes of groups": "SELECT CHANGES k, sum(n) AS n FROM {s} [ROWS {m}] GROUP BY k",
    "now": "SELECT k, n FROM {s} [NOW]",
    "join": "SELECT x.k AS k, x.n + y.n AS n FROM {s} [RANGE {i}] x JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "join rows": "SELECT x.k AS k, y.n AS n FROM {s} [ROWS {m}] x JOIN {o} [ROWS {l}] y ON x.k = y.k",
    "join slide": "SELECT x.k AS k, y.n AS n "
    "FROM {s} [RANGE {j} SLIDE {i}] x JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "left join": "SELECT x.k AS k, y.n AS n FROM {s} [RANGE {i}] x LEFT JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "full join": "SELECT coalesce(x.k, y.k) AS k, x.n AS n "
    "FROM {o} [ROWS {m}] x FULL JOIN {s} [RANGE {i}] y ON x.k = y.k",
    "semi join": "SELECT x.k AS k, x.n AS n "
    "FROM {s} [RANGE {i}] x LEFT SEMI JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "anti join": "SELECT x.k AS k, x.n AS n "
    "FROM {s} [RANGE {i}] x LEFT ANTI JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "self join": "SELECT x.k AS k, y.n AS n FROM {s} [NOW] x JOIN {s} [RANGE {i}] y ON x.k = y.k",
    "join of groups": "SELECT x.k AS k, y.n AS n FROM {s} [RANGE {i}] x JOIN "
    "(SELECT k, sum(n) AS n FROM {o} [RANGE {j}] GROUP BY k) y ON x.k = y.k",
    "groups of a join": "SELECT x.k AS k, sum(y.n) AS n "
    "FROM {s} [RANGE {i}] x JOIN {o} [RANGE {j}] y ON x.k = y.k GROUP BY x.k",
    "whole and growing": "SELECT RSTREAM k, n FROM {s} [UNBOUNDED SLIDE {i}]",
    "own of groups": "SELECT k, total(c) AS n FROM "
    "(SELECT k, n, count(*) AS c FROM {s} [RANGE {i}] GROUP BY k, n) GROUP BY k",
    "join of rows that slide": "SELECT x.k AS k, y.n AS n "
    "FROM {s} [ROWS {m} SLIDE {l}] x JOIN {o} [RANGE {j}] y ON x.k = y.k",
    "except": "SELECT k, n FROM {s} [RANGE {i}] EXCEPT SELECT k, n FROM {o} [RANGE {j}]",
    "except all": "SELECT k, n FROM {s} [RANGE {i}] EXCEPT ALL SELECT k, n FROM {o} [ROWS {m}]",
    "intersect": "SELECT k, n FROM {s} [RANGE {i}] INTERSECT SELECT k, n FROM {o} [RANGE {j}]",
    "union of windows": "SELECT k, n FROM {s} [RANGE {i}] UNION SELECT k, n FROM {o} [RANGE {j}]",
}
ALONG = {
    "over": "SELECT k, sum(n) OVER (PARTITION BY k RANGE {i} PRECEDING) AS n FROM {s}",
    "over rows": "SELECT k, count(*) OVER (ROWS {m} PRECEDING) AS n FROM {s}",
    "over unbounded": "SELECT k, max(n) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS n FROM {s}",
    "over slide": "SELECT k, sum(n) OVER (PARTITION BY k ROWS {m} PRECEDING SLIDE {l}) AS n FROM {s}",
    "over instants": "SELECT k, sum(n) OVER (PARTITION BY k RANGE {j} PRECEDING SLIDE RANGE {i}) AS n "
    "FROM {s}",
    "over active": "SELECT k, count(*) OVER (PARTITION BY k RANGE {i} PRECEDING ACTIVE EXPIRATION) AS n "
    "FROM {s}",
    "over own": "SELECT k, total(n) OVER (PARTITION BY k RANGE {i} PRECEDING) AS n FROM {s}",
    "over both": "SELECT k, n "
    "FROM (SELECT k, sum(n) OVER (ROWS {m} PRECEDING) + min(n) OVER (RANGE {i} PRECEDING) AS n FROM {s})",
    "over before": "SELECT k, sum(n) OVER (PARTITION BY k ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS n "
    "FROM {s}",
    "over following": "SELECT k, sum(n) OVER (PARTITION BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n "
    "FROM {s}",
    "lag and lead": "SELECT k, lag(n) OVER (PARTITION BY k) + lead(n) OVER (PARTITION BY k) AS n FROM {s}",
    "rank": "SELECT k, rank() OVER (PARTITION BY k) AS n FROM {s}",
    "first rows": "SELECT k, n FROM {s} QUALIFY row_number() OVER (PARTITION BY k) <= 2",
    "elements": "SELECT k, q.x AS n FROM {s}, UNNEST(array(n, n + 1)) AS q(x)",
    "base": "SELECT k, running(n) AS n FROM {s} GROUP BY k",
    "base alone": "SELECT k, running(n) AS n FROM {s}",
    "pattern": "SELECT X.k AS k, Y.n AS n FROM {s} PARTITION BY k AS (X, Y) WHERE Y.n > X.n",
    "pattern alone": "SELECT X.k AS k, Y.n AS n FROM {s} AS (X, Y) WHERE Y.n >= X.n",
    "star": "SELECT X.k AS k, count(*Y) AS n FROM {s} PARTITION BY k AS (X, *Y) WHERE Y.n >= X.n",
    "leading star": "SELECT Z.k AS k, sum(*Y.n) AS n FROM {s} AS (*Y, Z) WHERE Y.n > 1 AND Z.n < 2",
}
UNIONS = {
    "union": "SELECT k, n FROM {s} UNION ALL SELECT k, n FROM {o}",
    "union once": "SELECT k, n FROM {s} UNION SELECT k, n FROM {o}",
    "union with itself": "SELECT k, n FROM {s} UNION ALL SELECT k, n + 1 FROM {s} WHERE n > 1",
    "union with reports": "SELECT k, n FROM {s} UNION ALL SELECT k, sum(n) FROM {o} [TUMBLE {i}] GROUP BY k",
}
OPERATORS = {**STATELESS, **REPORTS, **MAINTAINED, **ALONG, **UNIONS}

SHOWN = {
    "bounds": "SELECT window_start, window_end, wid, k, sum(n) AS s "
    "FROM {s} [RANGE {j} SLIDE {i}] GROUP BY k",
    "emitted": "SELECT window_end, complete, count(*) AS c FROM {s} [TUMBLE {j} EMIT EVERY {i}]",
    "many": "SELECT k, first(n) AS a, last(n) AS b, median(n) AS c, collect_list(n) AS d, "
    "count(DISTINCT n) AS e "
    "FROM {s} [TUMBLE {j}] GROUP BY k",
}
"""Further queries, that no other one stands above."""


@dataclass(frozen=True)
class Chain:
    """A script: declarations, streams that are derived one from the other, and a query over the last."""

    base: str
    derived: tuple[str, ...]
    query: str
    inputs: dict[str, Input]
    names: tuple[str, ...]

    @property
    def definitions(self) -> str:
        return "".join(f"CREATE STREAM d{i} AS {text};\n" for i, text in enumerate(self.derived))

    @property
    def script(self) -> str:
        return f"{self.base}{self.definitions}{self.query};"

    def __repr__(self) -> str:
        given = "\n".join(f"{name}: {rows!r}" for name, rows in self.inputs.items())
        return f"{self.script}\n{given}"


class Catalog:
    """Base streams a, b and c, ordered by timestamps of one type, each with a clause about disorder."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.time = chance.choice(TIMES)
        self.draw = Drawing(chance, self.time, "STRING", "BIGINT")
        self.clauses = {name: self._clause(name) for name in "abc"}

    def _clause(self, name: str) -> str:
        slack = f"SLACK {self.draw.amount(2)}"
        kinds = [
            "",
            "",
            slack,
            slack,
            "SLACK 2 ROWS",
            f"{slack} GENEROUS",
            "ORDERED PER (k)",
            "PUNCTUATED BY (p)",
        ]
        into = self.chance.choice(["", "", f" LATE INTO {name}_late BAD INTO {name}_bad"])
        return self.chance.choice(kinds) + into

    @property
    def script(self) -> str:
        columns = f"k STRING, n BIGINT, p BOOLEAN, t {self.time}"
        streams = (f"CREATE STREAM {s} ({columns}) ORDER BY t {c};\n" for s, c in self.clauses.items())
        return f"{AGGREGATES}{''.join(streams)}CREATE TABLE names (k STRING, name STRING);\n"

    def inputs(self) -> dict[str, Input]:
        names = [{"k": key, "name": self.chance.choice(["xx", "y", None])} for key in ("x", "y", "y")]
        return {**{name: self._arrivals() for name in "abc"}, "names": names}

    def _arrivals(self) -> Arrivals:
        return Arrivals([self._partition() for _ in range(self.chance.choice([1, 1, 1, 2]))])

    def _partition(self) -> Sequence[Row]:
        rows, tick = [], 0
        for _ in range(self.chance.choice([0, 3, 8, 12])):
            tick += self.chance.choice([0, 0, 1, 1, 2, 4])
            at = max(0, tick - self.chance.choice([0, 0, 0, 1, 3]))
            values: dict[str, Any] = {"t": self.draw.instant(at) if self.chance.random() < 0.97 else None}
            values["k"] = self.chance.choice(["x", "x", "y", "z", None])
            values["n"] = self.chance.choice([0, 1, 1, 2, 3, None])
            values["p"] = self.chance.random() < 0.2
            rows.append(Row({name: values[name] for name in ("k", "n", "p", "t")}))
        return rows

    def filled(self, text: str, stream: str, other: str) -> str:
        """An operator over a stream, with lengths of windows."""
        draw, amount = self.chance.randint, self.draw.amount
        lengths = {"i": amount(draw(1, 4)), "j": amount(draw(2, 7)), "m": draw(1, 4), "l": draw(1, 3)}
        bounds = {"x": self.draw.bound(draw(0, 3)), "y": self.draw.bound(draw(5, 14))}
        return text.format(s=stream, o=other, **lengths, **bounds)


def chain(names: Sequence[str], seed: object, kind: type[Catalog] = Catalog) -> Chain:
    """The operators of those names one above the other; the last is the query."""
    chance = random.Random(f"{names} {seed}")
    catalog = kind(chance)
    texts: list[str] = []
    every = {**OPERATORS, **SHOWN}
    for i, name in enumerate(names):
        stream = chance.choice("ab") if not i else f"d{i - 1}"
        others = [*"abc", *(f"d{j}" for j in range(i))]
        texts.append(catalog.filled(every[name], stream, chance.choice(others)))
    return Chain(catalog.script, tuple(texts[:-1]), texts[-1], catalog.inputs(), tuple(names))


def drawn(seed: int, kind: type[Catalog] = Catalog) -> Chain:
    """A chain of two to four operators."""
    chance = random.Random(seed)
    names = [chance.choice(list(OPERATORS)) for _ in range(chance.randint(1, 3))]
    return chain([*names, chance.choice([*OPERATORS, *SHOWN])], seed, kind)


def course(chance: random.Random) -> Course:
    """A run through a few micro-batches, with restarts: somewhere, perhaps again, perhaps before the end."""
    batches = chance.randint(2, 6)
    restarts = {chance.randint(1, batches - 1) for _ in range(chance.randint(1, 2))}
    restarts |= chance.choice([set(), {batches - 1}])
    pauses = {number for number in restarts if number < batches - 1 and chance.random() < 0.4}
    return Course(batches, chance.randint(1, 3), frozenset(restarts), frozenset(pauses), forgetful=False)
