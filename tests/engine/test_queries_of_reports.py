"""Groups and joins of reports of windows by their bounds: the rows of the same SQL over whole tables."""

from __future__ import annotations

import random

import pytest

from tests.engine.test_joins_by_time import KINDS, compare

REPORTS = "(SELECT k, count(*) AS n, {s} AS s, {e} AS e FROM {stream} {window} GROUP BY {by})"
GROUPS = (
    "SELECT {time} e, max(n) AS m FROM {a} GROUP BY e",
    "SELECT {time} s, e, n, count(*) FROM {a} GROUP BY s, e, n",
    "SELECT {time} s, count(*) AS c FROM {a} GROUP BY 1{shift} HAVING count(*) > 1",
    "SELECT {time} q.e AS last, min(q.k) AS m FROM {a} q WHERE q.n > 0 GROUP BY last",
    "SELECT {time} e FROM {a} WHERE n > 1 GROUP BY e",
    "SELECT {time} e, max(m) FROM (SELECT e, n, max(k) AS m FROM {a} GROUP BY e, n) GROUP BY e",
    # The eighth and the fifth query of NEXMark.
    "SELECT {time} x.k, x.s FROM {a} x JOIN {b} y ON x.k = y.k AND x.s = y.s AND x.e = y.e",
    (
        "SELECT {time} x.k, x.n FROM {a} AS x"
        " JOIN (SELECT max(q.n) AS m, q.s, q.e FROM {a} AS q GROUP BY q.s, q.e) y"
        " ON x.s = y.s AND x.e = y.e AND x.n >= y.m"
    ),
    "SELECT {time} x.e, x.k, count(*) AS c FROM {a} x, {b} y WHERE x.e = y.e AND x.n <= y.n GROUP BY 1, x.k",
    "SELECT {time} e, sum(d) FROM (SELECT x.e, x.n - y.n AS d FROM {a} x JOIN {b} y USING (k, e)) GROUP BY e",
    "SELECT {time} x.n, y.v FROM {a} x JOIN b y ON x.k = y.k AND y.t >= x.s AND y.t < x.e",
)


def written(form: str, size: int) -> tuple[str, str]:
    """Return a query over reports of windows of a size, and the same in plain SQL with its timestamp."""
    esl, sql = form, form
    for name, stream in (("{a}", "a"), ("{b}", "b")):
        bounds = {"s": "window_start", "e": "window_end", "window": f"[TUMBLE {size}]", "by": "k"}
        esl = esl.replace(name, REPORTS.format(stream=stream, **bounds))
        start = f"{size} * floor(t / {size})::INT"
        bounds = {"s": start, "e": f"{start} + {size}", "window": "", "by": f"k, {start}"}
        sql = sql.replace(name, REPORTS.format(stream=stream, **bounds))
    alias = "x.e" if " x " in form or " x," in form else "e"
    alias = "q.e" if "q.e AS last" in form else f"s + {size}" if "{shift}" in form else alias
    alias = "e" if "sum(d)" in form else alias
    sql = sql.replace("{time}", f"{alias},").replace("GROUP BY 1{shift}", "GROUP BY s")
    return esl.replace("{time}", "").replace("{shift}", ""), sql


@pytest.mark.parametrize("form", GROUPS)
def test_of_one_instant(form: str) -> None:
    count = 0
    for seed in range(3):
        chance = random.Random(seed)
        count += compare(*written(form, chance.randint(2, 7)), chance, least=6)
    assert count > 3


@pytest.mark.parametrize("kind", KINDS)
def test_joins_of_all_kinds(kind: str) -> None:
    is_half = kind in ("SEMI JOIN", "ANTI JOIN")
    outputs = "x.n, x.e" if is_half else "x.n AS p, y.n AS q, y.e"
    time = "x.e" if is_half else "coalesce(x.e, y.e)"
    form = f"SELECT {{time}} {outputs} FROM {{a}} x {kind} {{b}} y ON x.k = y.k AND x.e = y.e"
    for seed in range(2):
        chance = random.Random(seed)
        esl, sql = written(form, chance.randint(3, 7))
        compare(esl, sql.replace("SELECT x.e,", f"SELECT {time},", 1), chance)


def test_windows_over_groups_of_instants_go_by_their_bound() -> None:
    inner = "SELECT {time} x.e AS e, count(*) AS c FROM {a} x JOIN {b} y ON x.e = y.e GROUP BY x.e"
    esl, sql = written(inner, 3)
    esl = f"SELECT sum(c) FROM ({esl}) [TUMBLE 6]"
    time = "6 * (floor(e / 6)::INT + 1)"
    sql = f"SELECT {time}, sum(c) FROM ({sql.replace('x.e,', '', 1)}) GROUP BY {time}"
    compare(esl, sql, random.Random(2))
