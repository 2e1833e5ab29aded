"""Bodies at random whose statements look for the same rows again and again, most often by a key."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.chance import BOOLEANS, Chance, drawn, shuffled
from tests.codegen.udas.bodies import PARAMETERS, RESULTS

NUMBER = ["x", "x + 1", "1", "2", "NULL"]
TEXT = ["z", "'p'", "NULL"]
DOUBLE = ["y", "0e0", "1.5e0"]
COUNT = ["0", "1", "x"]
USUAL = ("x", "z", "y", "1")
"""Most statements of a body are about the same row."""

arguments = st.tuples(
    st.sampled_from([1, 2, 1, 2, None]),
    st.sampled_from([0.0, -0.0, 1.5, 1.5, float("nan"), None]),
    st.sampled_from(["p", "p", "q", None]),
)


def row(chance: Chance) -> tuple[str, str, str, str]:
    """Values for ``t(a INT, s STRING, d DOUBLE, n INT)``."""
    if chance.randint(0, 3):
        return USUAL
    return chance.choice(NUMBER), chance.choice(TEXT), chance.choice(DOUBLE), chance.choice(COUNT)


def guarded(chance: Chance, key: str) -> str:
    """An INSERT of a row whose key is not there yet; at times it looks for something else."""
    a, s, d, n = row(chance)
    sought = dict(zip("asd", row(chance) if chance.randint(0, 5) == 0 else (a, s, d), strict=False))
    if len(key) == 1 and chance.choice(BOOLEANS):
        guard = f"{sought[key]} NOT IN (SELECT {key} FROM t)"
    else:
        guard = f"NOT EXISTS (SELECT n FROM t WHERE {' AND '.join(f'{c} = {sought[c]}' for c in key)})"
    more = chance.choice(["", "", "x IS NOT NULL AND ", "y > 0e0 AND "])
    return f"INSERT INTO t VALUES ({a}, {s}, {d}, {n}) WHERE {more}{guard}"


def some(chance: Chance, key: str, alias: str = "") -> str:
    """Conditions for a row with a key, and sometimes more."""
    a, s, d, n = row(chance)
    values = {"a": a, "s": s, "d": d}
    tests = [f"{alias}{c} = {values[c]}" for c in key[: chance.randint(0, len(key))] or key]
    tests += chance.choice([[], [], [f"{alias}n > 0"], [f"{alias}n = {n}"]])
    return " AND ".join(shuffled(chance, tests))


def statement(chance: Chance, key: str) -> str:
    kinds = (
        ["guarded"] * 3 + ["update"] * 3 + ["delete", "other", "other", "rows", "join", "foremost", "value"]
    )
    where = some(chance, key)
    match chance.choice(kinds):
        case "guarded":
            return guarded(chance, key)
        case "update":
            column = chance.choice(["n = n + 1", "n = n + 1", "n = -n", "d = d, n = 0", "a = 1", "a = a + 1"])
            return f"UPDATE t SET {column} WHERE {where}"
        case "delete":
            return f"DELETE FROM t WHERE {where}"
        case "other":
            changes = [
                f"INSERT INTO u VALUES ({chance.choice(NUMBER)}, y)",
                f"UPDATE u SET d = d + 1e0 WHERE c = {chance.choice(NUMBER)}",
                f"UPDATE u SET c = c + 1 WHERE c = {chance.choice(NUMBER)}",
                f"DELETE FROM u WHERE c = {chance.choice(NUMBER)} AND d > 1e0",
                f"INSERT INTO RETURN SELECT c, d, z FROM u WHERE c = {chance.choice(NUMBER)}",
            ]
            return chance.choice(changes)
        case "rows":
            return f"INSERT INTO RETURN SELECT n, d, s FROM t WHERE {where}"
        case "join":
            on = [f"t.{c} = {'u.c' if c == 'a' else 'u.d' if c == 'd' else 'z'}" for c in key]
            on += chance.choice([[], ["t.n > 0"]])
            join = f"u LEFT JOIN t ON {' AND '.join(on)}"
            return f"INSERT INTO RETURN SELECT t.n + u.c, u.d, t.s FROM {join}"
        case "foremost":
            keys = [chance.choice(["n", "a", "s", "d", "a + n"]) for _ in range(chance.randint(1, 2))]
            how = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
            order = ", ".join(f"{one}{chance.choice(how)}" for one in keys)
            test = f" WHERE {where}" if chance.choice(BOOLEANS) else ""
            return f"INSERT INTO RETURN SELECT n, d, s FROM t{test} ORDER BY {order} LIMIT 1"
    return f"INSERT INTO RETURN VALUES ((SELECT max(n) FROM t WHERE {where}), y, z)"


def keyed_text(chance: Chance) -> str:
    key = chance.choice(["a", "a", "as", "d"])
    first = [guarded(chance, key) for _ in range(chance.randint(0, 2))]
    first += [f"INSERT INTO t VALUES ({', '.join(row(chance))})" for _ in range(chance.randint(0, 2))]
    further = [statement(chance, key) for _ in range(chance.randint(2, 8))]
    parameters = ", ".join(f"{n} {t}" for n, t in PARAMETERS.items())
    results = ", ".join(f"{n} {t}" for n, t in RESULTS.items())
    return f"""CREATE AGGREGATE agg({parameters}) : ({results}) {{
    TABLE t(a INT, s STRING, d DOUBLE, n INT);
    TABLE u(c INT, d DOUBLE);
    INITIALIZE : {{ {" ".join(f"{one};" for one in first)} INSERT INTO u VALUES (x, y); }}
    ITERATE    : {{ {" ".join(f"{one};" for one in further)} }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT n, d, s FROM t; }}
}};"""


keyed = drawn(keyed_text)
