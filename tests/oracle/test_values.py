"""Expressions and aggregates: their values, as Spark has them in ANSI mode."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D  # noqa: N817 (there are many)

import pytest

from oracle import Arrivals, DivisionByZero, NotConvertible, Overflow, Row, answer
from oracle.values.values import Months, order_key

COLUMNS = """
    i INT, l BIGINT, x DOUBLE, f FLOAT, d DECIMAL(10, 2), s STRING, b BOOLEAN, ts TIMESTAMP, dt DATE, t INT
"""
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
ROW = {
    "i": 7,
    "l": -3,
    "x": 2.5,
    "f": 0.5,
    "d": D("1.25"),
    "s": "Abc",
    "b": True,
    "ts": NOON,
    "dt": date(2026, 1, 31),
    "t": 0,
}


def value(expression: str, **changed: object) -> object:
    script = f"CREATE STREAM z ({COLUMNS}) ORDER BY t; SELECT {expression} AS e FROM z"
    [(found,)] = answer(script, {"z": Arrivals([[Row({**ROW, **changed})]])}).values
    return found


EXPRESSIONS: dict[str, object] = {
    # literals
    "1": 1,
    "-2147483648": -(2**31),
    "1.50": D("1.50"),
    "1e2": 100.0,
    "'it''s'": "it's",
    "TRUE": True,
    "NULL": None,
    "TIMESTAMP '2026-01-31 12:00:00'": NOON,
    "TIMESTAMP '2026-01-31T13:00:00+01:00'": NOON,
    "DATE '2026-01-31'": date(2026, 1, 31),
    "INTERVAL 90 SECONDS": timedelta(seconds=90),
    "INTERVAL '1 hour 30 minutes'": timedelta(minutes=90),
    "INTERVAL 2 YEARS": Months(24),
    # arithmetic on integers
    "i + l": 4,
    "i * -2": -14,
    "i / 2": 3.5,
    "i % 4": 3,
    "l % 2": -1,
    "mod(i, -4)": 3,
    "l DIV 2": -1,
    "i + NULL": None,
    "NULL / 0": None,
    "abs(l)": 3,
    "-l": 3,
    # on doubles
    "x + i": 9.5,
    "x * x": 6.25,
    "x % 2": 0.5,
    "f + f": 1.0,
    "-x % 2": -0.5,
    # on decimals
    "d + 1": D("2.25"),
    "d * d": D("1.5625"),
    "d / 3": D("0.416667"),
    "d % 1": D("0.25"),
    "d + x": 3.75,
    "1 / 3.0": D("0.333333"),
    # on times
    "ts + INTERVAL 1 HOUR": NOON + timedelta(hours=1),
    "ts - INTERVAL 1 MONTH": datetime(2025, 12, 31, 12, tzinfo=UTC),
    "ts + INTERVAL 1 MONTH": datetime(2026, 2, 28, 12, tzinfo=UTC),
    "dt + 1": date(2026, 2, 1),
    "dt - INTERVAL 1 DAY": date(2026, 1, 30),
    "dt + INTERVAL 1 MONTH": date(2026, 2, 28),
    "dt + INTERVAL 12 HOURS": NOON,
    "ts - TIMESTAMP '2026-01-31 11:59:00'": timedelta(minutes=1),
    "dt - DATE '2026-01-01'": timedelta(days=30),
    "INTERVAL 10 SECONDS * 1.5": timedelta(seconds=15),
    "INTERVAL 10 SECONDS / 4": timedelta(seconds=2.5),
    "INTERVAL 1 MINUTE - INTERVAL 1 SECOND": timedelta(seconds=59),
    # comparisons
    "i > l": True,
    "i = 7.0": True,
    "d = 1.250": True,
    "x <> NULL": None,
    "s < 'abc'": True,
    "ts = dt + INTERVAL 12 HOURS": True,
    "dt < ts": True,
    "CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)": True,
    "CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)": True,
    "-0.0D = 0.0D": True,
    "9007199254740993 = 9007199254740992D": True,  # a BIGINT becomes a DOUBLE
    "'7' = i": True,
    "NULL <=> NULL": True,
    "i IS DISTINCT FROM NULL": True,
    # conditions
    "b AND NULL": None,
    "NOT b AND NULL": False,
    "b OR NULL": True,
    "NOT b OR NULL": None,
    "NOT NULL": None,
    "i IS NULL": False,
    "NULL IS NULL": True,
    "i IS NOT NULL": True,
    "b IS FALSE": False,
    "(b AND NULL) IS TRUE": False,
    "i BETWEEN 1 AND 7": True,
    "i NOT BETWEEN 1 AND 7": False,
    "i BETWEEN 8 AND NULL": False,
    "i BETWEEN 1 AND NULL": None,
    "i IN (1, 7)": True,
    "i IN (1, NULL)": None,
    "i NOT IN (1, 2)": True,
    "CASE WHEN i > 10 THEN 'big' WHEN i > 5 THEN 'middle' ELSE 'small' END": "middle",
    "CASE i WHEN 1 THEN 1 WHEN 7 THEN 2.5 END": D("2.5"),
    "CASE WHEN b AND NULL THEN 1 END": None,
    "if(b, i, x)": 7.0,
    "if(NULL, 1, 2)": 2,
    "coalesce(NULL, l, i)": -3,
    "i = 0 OR 1 / i > 0": True,
    # strings
    "s || '-' || i": "Abc-7",
    "s || NULL": None,
    "upper(s)": "ABC",
    "lower(s)": "abc",
    "length(s)": 3,
    # casts
    "CAST(x AS INT)": 2,
    "CAST(-2.9D AS INT)": -2,
    "CAST(d AS INT)": 1,
    "CAST(i AS DOUBLE)": 7.0,
    "CAST(0.125D AS DECIMAL(3, 2))": D("0.13"),
    "CAST(i AS STRING)": "7",
    "CAST(x AS STRING)": "2.5",
    "CAST(f AS STRING)": "0.5",
    "CAST(d AS STRING)": "1.25",
    "CAST(b AS STRING)": "true",
    "CAST(ts AS STRING)": "2026-01-31 12:00:00",
    "CAST(ts AS DATE)": date(2026, 1, 31),
    "CAST(dt AS TIMESTAMP)": datetime(2026, 1, 31, tzinfo=UTC),
    "CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)": -1,
    "CAST(' 12 ' AS INT)": 12,
    "CAST('1.5' AS DECIMAL(3, 1))": D("1.5"),
    "CAST('yes' AS BOOLEAN)": True,
    "CAST(b AS INT)": 1,
    "CAST('2026-01-31 12:00' AS TIMESTAMP)": NOON,
    "TRY_CAST('x' AS INT)": None,
    "CAST(NULL AS INT)": None,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    found, wanted = value(expression), EXPRESSIONS[expression]
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("i + 2147483647", Overflow),
        ("-i - 2147483642", Overflow),
        ("l * 9223372036854775807", Overflow),
        ("abs(-2147483648)", Overflow),
        ("CAST(1e10 AS INT)", Overflow),
        ("CAST(CAST('NaN' AS DOUBLE) AS INT)", Overflow),
        ("CAST(d AS DECIMAL(2, 2))", Overflow),
        ("i / 0", DivisionByZero),
        ("x / 0", DivisionByZero),
        ("i % 0", DivisionByZero),
        ("d / 0", DivisionByZero),
        ("CAST('1.5' AS INT)", NotConvertible),
        ("CAST('soon' AS TIMESTAMP)", NotConvertible),
    ],
)
def test_errors_stop_a_query(expression: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        value(expression)


# ---------------------------------------------------------------- aggregates


def aggregate(call: str, type_: str, *values: object) -> object:
    script = f"CREATE STREAM z (v {type_}, t INT) ORDER BY t; SELECT {call} AS e FROM z [TUMBLE 10]"
    [(found,)] = answer(script, {"z": Arrivals([[Row({"v": v, "t": 0}) for v in values]])}).values
    return found


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("call", "type_", "values", "result"),
    [
        ("count(*)", "INT", (1, None), 2),
        ("count(v)", "INT", (1, None), 1),
        ("count(DISTINCT v)", "INT", (1, 1, 2, None), 2),
        ("sum(v)", "INT", (2**31 - 1, 1, None), 2**31),
        ("sum(v)", "BIGINT", (2**63 - 1, 1, -1), 2**63 - 1),
        ("sum(v)", "INT", (None, None), None),
        ("sum(v)", "DECIMAL(3, 1)", (D("99.9"), D("0.1")), D("100.0")),
        ("sum(v)", "DOUBLE", (0.1,) * 10, 1.0),
        ("sum(v)", "DOUBLE", (1e300, 1.0, -1e300), 1.0),
        ("sum(v)", "DOUBLE", (1e308, 1e308, -1e308), 1e308),
        ("sum(v)", "DOUBLE", (INF, 1.0), INF),
        ("sum(v)", "DOUBLE", (INF, -INF), NAN),
        ("sum(v)", "DOUBLE", (NAN, 1.0), NAN),
        ("sum(v)", "STRING", ("1", "2.5"), 3.5),
        ("avg(v)", "INT", (1, 2, None), 1.5),
        ("avg(v)", "BIGINT", (2**63 - 1, 2**63 - 1), float(2**63)),
        ("avg(v)", "DECIMAL(3, 1)", (D("0.1"), D("0.1"), D("0.3")), D("0.16667")),
        ("avg(v)", "DOUBLE", (1.0, 2.0), 1.5),
        ("avg(v)", "DOUBLE", (), None),
        ("min(v)", "DOUBLE", (NAN, 2.0, None), 2.0),
        ("max(v)", "DOUBLE", (NAN, INF, None), NAN),
        ("max(v)", "STRING", ("b", "a", None), "b"),
        ("min(v)", "BOOLEAN", (True, False), False),
        ("min(v)", "DATE", (date(2026, 1, 2), date(2026, 1, 1)), date(2026, 1, 1)),
        ("first(v)", "INT", (None, 1, 2), None),
        ("first(v, true)", "INT", (None, 1, 2), 1),
        ("last(v)", "INT", (1, 2, None), None),
        ("sum(v) FILTER (WHERE v > 1)", "INT", (1, 2, 3), 5),
        ("sum(v + 1) * 2", "INT", (1, 2), 10),
        ("sum(DISTINCT v)", "INT", (1, 3, 1, None), 4),
        ("count(v, CASE WHEN v <> 2 THEN v END)", "INT", (1, 2, None), 1),
        ("count(DISTINCT v, v % 2)", "INT", (1, 1, 2, None), 2),
        ("count_if(v > 1)", "INT", (1, 2, 3, None), 2),
        ("approx_count_distinct(v)", "INT", (1, 1, 2, None), 2),
        ("try_sum(v)", "BIGINT", (2**63 - 1, 1), None),
        ("try_avg(v)", "INT", (1, 2), 1.5),
        ("stddev(v)", "DOUBLE", (1.0, 2.0, 4.0, 3.0, None), 1.2909944487358056),
        ("stddev_pop(v)", "INT", (1, 2, 4, 3), 1.118033988749895),
        ("variance(v)", "DECIMAL(3, 1)", (D("1.0"), D("2.0"), D("4.0"), D("3.0")), 5 / 3),
        ("var_pop(v)", "INT", (1, 2, 4, 3), 1.25),
        ("var_samp(v)", "INT", (1,), None),
        ("var_pop(v)", "INT", (1,), 0.0),
        ("var_pop(v)", "DOUBLE", (INF,), NAN),
        ("skewness(v)", "INT", (1, 2, 4, 3), 0.0),
        ("skewness(v)", "INT", (1, 1), None),
        ("kurtosis(v)", "INT", (1, 2, 4, 3), -1.36),
        ("kurtosis(v)", "INT", (1, 1), None),
        ("covar_samp(v, 2 * v)", "INT", (1, 3), 4.0),
        ("covar_pop(v, 2 * v)", "INT", (1, 3), 2.0),
        ("corr(v, -v)", "INT", (1, 3, 7), -1.0),
        ("corr(v, 1)", "INT", (1, 3), None),
        ("regr_slope(2 * v + 1, v)", "INT", (1, 3, None), 2.0),
        ("regr_intercept(2 * v + 1, v)", "INT", (1, 3, None), 1.0),
        ("regr_r2(1, v)", "INT", (1, 3), 1.0),
        ("regr_r2(v, 1)", "INT", (1, 3), None),
        ("regr_sxy(v, v)", "INT", (1, 3), 2.0),
        ("regr_sxx(v, 2)", "DOUBLE", (INF,), 0.0),
        ("regr_slope(v, 2)", "DOUBLE", (INF,), None),
        ("regr_avgx(0, v)", "INT", (1, 2), 1.5),
        ("regr_count(v, v)", "INT", (1, 3, None), 2),
        ("median(v)", "INT", (4, 1, 2, 3, None), 2.5),
        ("median(v)", "DECIMAL(3, 1)", (D("1.0"), D("2.5")), 1.75),
        ("percentile(v, 0.3)", "DOUBLE", (1.0, 2.0, 4.0, 3.0), 1.9),
        ("percentile(v, array(0.0, 0.25, 1.0))", "DOUBLE", (1.0, 2.0, 4.0, 3.0), [1.0, 1.75, 4.0]),
        ("percentile(v, 0.3, 2)", "DOUBLE", (1.0, 2.0, 4.0, 3.0), 2.0),
        ("percentile_cont(0.3) WITHIN GROUP (ORDER BY v)", "DOUBLE", (1.0, 2.0, 4.0, 3.0), 1.9),
        ("percentile_disc(0.3) WITHIN GROUP (ORDER BY v DESC)", "DOUBLE", (1.0, 2.0, 4.0, 3.0), 3.0),
        ("approx_percentile(v, 0.3)", "INT", (1, 2, 4, 3), 2),
        ("min_by(v, -v)", "INT", (1, 3, 2), 3),
        ("max_by(v, v % 2)", "INT", (1, 2, 3, None), 3),
        ("max_by(v, 1)", "INT", (1, None), None),
        ("any_value(v)", "INT", (None, 1), None),
        ("any_value(v) IGNORE NULLS", "INT", (None, 1), 1),
        ("mode(v)", "STRING", ("b", "a", "b", "a", "c", None), "a"),
        ("bool_and(v > 1)", "INT", (2, 1, None), False),
        ("every(v > 1)", "INT", (2, None), True),
        ("bool_or(v > 1)", "INT", (2, 1), True),
        ("some(v > 1)", "INT", (None,), None),
        ("bit_and(v)", "INT", (6, 3, None), 2),
        ("bit_or(v)", "INT", (6, 3, None), 7),
        ("bit_xor(v)", "INT", (6, 3, None), 5),
        ("collect_list(v)", "INT", (2, None, 1, 2), [2, 1, 2]),
        ("collect_list(v)", "INT", (None,), []),
        ("collect_set(v)", "INT", (2, None, 1, 2), [2, 1]),
        ("array_agg(DISTINCT v)", "INT", (2, 1, 2), [2, 1]),
        ("listagg(v, ', ')", "STRING", ("b", None, "a"), "b, a"),
        ("string_agg(v)", "STRING", ("b", "a", "b"), "bab"),
        ("string_agg(DISTINCT v, '-')", "STRING", ("b", "a", "b"), "b-a"),
        ("listagg(v, '') WITHIN GROUP (ORDER BY v DESC)", "STRING", ("b", "c", "a"), "cba"),
        ("listagg(v)", "STRING", (None,), None),
    ],
)
def test_aggregate(call: str, type_: str, values: tuple[object, ...], result: object) -> None:
    if not values:
        values = (None,)
    found = aggregate(call, type_, *values)
    assert order_key(found) == order_key(result)
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("call", "type_", "values"),
    [
        ("sum(v)", "BIGINT", (2**63 - 1, 1)),
        ("sum(v)", "DECIMAL(38, 0)", (D(10**38 - 1), D(1))),
    ],
)
def test_a_sum_that_does_not_fit_is_an_error(call: str, type_: str, values: tuple[object, ...]) -> None:
    with pytest.raises(Overflow, match=r"sum\(v\) does not fit"):
        aggregate(call, type_, *values)


def test_of_two_zeros_the_first_is_the_minimum() -> None:
    assert math.copysign(1, aggregate("min(v)", "DOUBLE", -0.0, 0.0)) == -1  # type: ignore[arg-type]
    assert math.copysign(1, aggregate("max(v)", "DOUBLE", 0.0, -0.0)) == 1  # type: ignore[arg-type]


def test_groups_of_equal_values() -> None:
    script = (
        "CREATE STREAM z (v DOUBLE, t INT) ORDER BY t; SELECT v, count(*) AS n FROM z [TUMBLE 10] GROUP BY v"
    )
    rows = [Row({"v": v, "t": 0}) for v in (NAN, 0.0, -0.0, None, -NAN, None, 1.0)]
    found = answer(script, {"z": Arrivals([rows])}).values
    assert [(repr(v), n) for v, n in found] == [("None", 2), ("0.0", 2), ("1.0", 1), ("nan", 2)]
