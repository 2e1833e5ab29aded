"""Bodies at random whose statements look for the same rows again and again, most often by a key."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.uda.bodies import PARAMETERS, RESULTS

NUMBER = st.sampled_from(["x", "x + 1", "1", "2", "NULL"])
TEXT = st.sampled_from(["z", "'p'", "NULL"])
DOUBLE = st.sampled_from(["y", "0e0", "1.5e0"])
COUNT = st.sampled_from(["0", "1", "x"])
USUAL = ("x", "z", "y", "1")
"""Most statements of a body are about the same row."""

arguments = st.tuples(
    st.sampled_from([1, 2, 1, 2, None]),
    st.sampled_from([0.0, -0.0, 1.5, 1.5, float("nan"), None]),
    st.sampled_from(["p", "p", "q", None]),
)


@st.composite
def row(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Values for ``t(a INT, s STRING, d DOUBLE, n INT)``."""
    if draw(st.integers(0, 3)):
        return USUAL
    return draw(NUMBER), draw(TEXT), draw(DOUBLE), draw(COUNT)


@st.composite
def guarded(draw: st.DrawFn, key: str) -> str:
    """An INSERT of a row whose key is not there yet; at times it looks for something else."""
    a, s, d, n = draw(row())
    sought = dict(zip("asd", draw(row()) if draw(st.integers(0, 5)) == 0 else (a, s, d), strict=False))
    if len(key) == 1 and draw(st.booleans()):
        guard = f"{sought[key]} NOT IN (SELECT {key} FROM t)"
    else:
        guard = f"NOT EXISTS (SELECT n FROM t WHERE {' AND '.join(f'{c} = {sought[c]}' for c in key)})"
    more = draw(st.sampled_from(["", "", "x IS NOT NULL AND ", "y > 0e0 AND "]))
    return f"INSERT INTO t VALUES ({a}, {s}, {d}, {n}) WHERE {more}{guard}"


@st.composite
def some(draw: st.DrawFn, key: str, alias: str = "") -> str:
    """Conditions for a row with a key, and sometimes more."""
    a, s, d, n = draw(row())
    values = {"a": a, "s": s, "d": d}
    tests = [f"{alias}{c} = {values[c]}" for c in key[: draw(st.integers(0, len(key)))] or key]
    tests += draw(st.sampled_from([[], [], [f"{alias}n > 0"], [f"{alias}n = {n}"]]))
    return " AND ".join(draw(st.permutations(tests)))


@st.composite
def statement(draw: st.DrawFn, key: str) -> str:
    kinds = (
        ["guarded"] * 3 + ["update"] * 3 + ["delete", "other", "other", "rows", "join", "foremost", "value"]
    )
    where = draw(some(key))
    match draw(st.sampled_from(kinds)):
        case "guarded":
            return draw(guarded(key))
        case "update":
            column = draw(
                st.sampled_from(["n = n + 1", "n = n + 1", "n = -n", "d = d, n = 0", "a = 1", "a = a + 1"])
            )
            return f"UPDATE t SET {column} WHERE {where}"
        case "delete":
            return f"DELETE FROM t WHERE {where}"
        case "other":
            changes = [
                f"INSERT INTO u VALUES ({draw(NUMBER)}, y)",
                f"UPDATE u SET d = d + 1e0 WHERE c = {draw(NUMBER)}",
                f"UPDATE u SET c = c + 1 WHERE c = {draw(NUMBER)}",
                f"DELETE FROM u WHERE c = {draw(NUMBER)} AND d > 1e0",
                f"INSERT INTO RETURN SELECT c, d, z FROM u WHERE c = {draw(NUMBER)}",
            ]
            return draw(st.sampled_from(changes))
        case "rows":
            return f"INSERT INTO RETURN SELECT n, d, s FROM t WHERE {where}"
        case "join":
            on = [f"t.{c} = {'u.c' if c == 'a' else 'u.d' if c == 'd' else 'z'}" for c in key]
            on += draw(st.sampled_from([[], ["t.n > 0"]]))
            join = f"u LEFT JOIN t ON {' AND '.join(on)}"
            return f"INSERT INTO RETURN SELECT t.n + u.c, u.d, t.s FROM {join}"
        case "foremost":
            keys = draw(st.lists(st.sampled_from(["n", "a", "s", "d", "a + n"]), min_size=1, max_size=2))
            how = st.sampled_from(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
            order = ", ".join(f"{one}{draw(how)}" for one in keys)
            test = f" WHERE {where}" if draw(st.booleans()) else ""
            return f"INSERT INTO RETURN SELECT n, d, s FROM t{test} ORDER BY {order} LIMIT 1"
    return f"INSERT INTO RETURN VALUES ((SELECT max(n) FROM t WHERE {where}), y, z)"


@st.composite
def keyed(draw: st.DrawFn) -> str:
    key = draw(st.sampled_from(["a", "a", "as", "d"]))
    first = [draw(guarded(key)) for _ in range(draw(st.integers(0, 2)))]
    first += [f"INSERT INTO t VALUES ({', '.join(draw(row()))})" for _ in range(draw(st.integers(0, 2)))]
    further = draw(st.lists(statement(key), min_size=2, max_size=8))
    parameters = ", ".join(f"{n} {t}" for n, t in PARAMETERS.items())
    results = ", ".join(f"{n} {t}" for n, t in RESULTS.items())
    return f"""CREATE AGGREGATE agg({parameters}) : ({results}) {{
    TABLE t(a INT, s STRING, d DOUBLE, n INT);
    TABLE u(c INT, d DOUBLE);
    INITIALIZE : {{ {" ".join(f"{one};" for one in first)} INSERT INTO u VALUES (x, y); }}
    ITERATE    : {{ {" ".join(f"{one};" for one in further)} }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT n, d, s FROM t; }}
}};"""
