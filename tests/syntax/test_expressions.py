"""Expressions as in Spark SQL: every form, its tree, and its way through the printer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from millstream.syntax import parse_expression, to_sql

Check = Callable[[str], exp.Expr]

# What is printed for an expression, if it is not the text itself.
PRINTED = {
    "a == b": "a = b",
    "a != b": "a <> b",
    "!a": "NOT a",
    "+a": "a",
    "a >>> 2": "shiftrightunsigned(a, 2)",
    "a IS NOT NULL": "NOT a IS NULL",
    "a IS UNKNOWN": "a IS NULL",
    "a IS NOT TRUE": "NOT a IS TRUE",
    "a IS NOT DISTINCT FROM b": "a <=> b",
    "a NOT BETWEEN 1 AND 2": "NOT a BETWEEN 1 AND 2",
    "a NOT IN (1, 2)": "NOT a IN (1, 2)",
    "a NOT RLIKE 'x'": "NOT a RLIKE 'x'",
    "a REGEXP 'x'": "a RLIKE 'x'",
    "a LIKE SOME ('x', 'y')": "a LIKE ANY ('x', 'y')",
    "a::INT": "CAST(a AS INT)",
    "a.b::DECIMAL(3, 1)::STRING": "CAST(CAST(a.b AS DECIMAL(3, 1)) AS STRING)",
    "-a::INT": "-CAST(a AS INT)",
    "DATE '2020-01-01'": "CAST('2020-01-01' AS DATE)",
    "TIMESTAMP '2020-01-01 00:00:00'": "CAST('2020-01-01 00:00:00' AS TIMESTAMP)",
    "TIMESTAMP_NTZ '2020-01-01'": "CAST('2020-01-01' AS TIMESTAMP_NTZ)",
    "TIME '10:00:00'": "CAST('10:00:00' AS TIME)",
    "1L": "CAST(1 AS BIGINT)",
    "1S": "CAST(1 AS SMALLINT)",
    "1y": "CAST(1 AS TINYINT)",
    "1.0D": "CAST(1.0 AS DOUBLE)",
    "1.5f": "CAST(1.5 AS FLOAT)",
    "1BD": "CAST('1' AS DECIMAL(1, 0))",
    "1.50BD": "CAST('1.50' AS DECIMAL(3, 2))",
    "1e2BD": "CAST('1e2' AS DECIMAL(3, 0))",
    ".5": "0.5",
    "'it''s'": "'it\\'s'",
    '"it\'s"': "'it\\'s'",
    "'a' 'b'": "'ab'",
    r"r'\d'": r"'\\d'",
    r"'\u0041\x\101'": "'AxA'",
    "SUBSTRING(a FROM 1 FOR 2)": "SUBSTRING(a, 1, 2)",
    "SUBSTR(a FROM 1)": "SUBSTRING(a, 1)",
    "POSITION('a', b)": "POSITION('a' IN b)",
    "OVERLAY(a, b, 3)": "OVERLAY(a PLACING b FROM 3)",
    "TRIM(x, a)": "TRIM(x FROM a)",
    "INTERVAL 5 MINUTES": "INTERVAL '5' MINUTES",
    "INTERVAL -5 minutes": "INTERVAL '-5' MINUTES",
    "INTERVAL '5 minutes'": "INTERVAL '5' MINUTES",
    "INTERVAL 1 HOUR 30 MINUTES": "(INTERVAL '1' HOUR + INTERVAL '30' MINUTES)",
    "INTERVAL '1 hour -30 minutes'": "(INTERVAL '1' HOUR + INTERVAL '-30' MINUTES)",
    "CAST(a AS LONG)": "CAST(a AS BIGINT)",
    "CAST(a AS VARCHAR(10))": "CAST(a AS STRING)",
    "CAST(a AS STRUCT<x INT, y: ARRAY<STRING>>)": "CAST(a AS STRUCT<x: INT, y: ARRAY<STRING>>)",
    "sum(ALL a)": "sum(a)",
    "sum(a) OVER (ROWS 3 PRECEDING)": "sum(a) OVER (ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "sum(a) OVER (w)": "sum(a) OVER w",
    "sum(a) FILTER (WHERE b > 1)": "sum(a) FILTER(WHERE b > 1)",
    "sum(a) OVER (ORDER BY b DESC NULLS LAST)": "sum(a) OVER (ORDER BY b DESC)",
}

# These are printed as they are.
PLAIN = """
a | a.b.c.d.e | t.previous.v | `a b`.`c``d`
NULL | TRUE | FALSE | 1 | 2.5 | 1e3 | 1.5E-3 | 5. | 'x' | X'1F' | X'' | 12345678901234567890123
a + b - c | a * b / c % d | a DIV b | -a | - -a | -(-a) | a - -1 | ~a | (a) | ((a))
a & b | c ^ d | a << 2 >> 1 | a || b || 'c'
a = b | a <> b | a < b | a <= b | a > b | a >= b | a <=> b | a IS DISTINCT FROM b
NOT a | NOT NOT a | a AND b OR NOT c AND d | (a OR b) AND c
a IS NULL | a IS TRUE | a = b IS NULL | a IN (1, 2) | (a, b) IN ((1, 2), (3, 4))
a BETWEEN 1 AND 2 AND b
a LIKE 'x%' | a NOT LIKE 'x' | a LIKE 'x!%' ESCAPE '!' | a LIKE ANY ('x', 'y') | a NOT LIKE ALL ('x')
a ILIKE 'x'
a ILIKE ANY ('x', 'y') | a RLIKE 'x'
CASE WHEN a > 1 THEN 'x' WHEN b THEN 'y' ELSE 'z' END | CASE a WHEN 1 THEN 2 END
CASE WHEN a THEN end END
CAST(a AS INT) | CAST(a AS DECIMAL(10, 2)) | CAST(a AS MAP<STRING, ARRAY<INT>>)
CAST(a AS TIMESTAMP_LTZ)
CAST(a AS INTERVAL) | a > ALL (SELECT 1) | a = ANY (SELECT 1)
CAST(a AS INTERVAL DAY TO SECOND) | CAST(a AS INTERVAL YEAR) | CAST(a AS VOID) | CAST(a AS TIME)
CAST(a AS VARIANT)
CAST(a AS BOOLEAN) | CAST(a AS TINYINT) | CAST(a AS SMALLINT) | CAST(a AS BINARY) | CAST(a AS DOUBLE)
CAST(a AS DATE)
CAST(a AS STRING COLLATE UTF8_LCASE) | TRY_CAST(a AS INT) | a COLLATE UTF8_LCASE
EXTRACT(YEAR FROM ts) | EXTRACT(DAYOFWEEK FROM ts)
TRIM(a) | TRIM(BOTH 'x' FROM a) | TRIM(LEADING FROM a) | TRIM(TRAILING 'x' FROM a) | TRIM('x' FROM a)
POSITION('a' IN b) | POSITION('a', b, 3) | SUBSTRING(a, 1, 2) | SUBSTRING(a)
OVERLAY(a PLACING b FROM 3 FOR 2)
INTERVAL '5' MINUTE | INTERVAL '1-2' YEAR TO MONTH | INTERVAL '1 02:03:04' DAY TO SECOND
INTERVAL n DAYS
INTERVAL t.n DAYS | INTERVAL (a + 1) DAYS | interval + 1 | interval | -INTERVAL '5' DAYS | interval(1)
a[1] | array[1] | m['k'][0].x | map['k'] | f(x).y.z | f(x)[0] | (a).b | struct.field | a.b(1)
a.b.c(1).d
f() | f(a, b) | f(a => 1, b => 2) | `f`(1) | if(a, b, c) | left(a, 1) | like(a, 'x')
date('2020-01-01') | replace(a, 'x')
transform(a, x -> x + 1) | aggregate(a, 0, (acc, x) -> acc + x.y) | exists(a, x -> x > 0)
filter(a, x -> NOT x)
count(*) | count(t.*) | count(DISTINCT a, b) | struct(a AS x, 1) | (a AS x, b) | struct(*) | count(*Y)
avg(*Y.price)
first(a) IGNORE NULLS | first(a IGNORE NULLS) | lag(a, 1) RESPECT NULLS OVER (PARTITION BY b ORDER BY c)
sum(a) OVER w | sum(a) OVER () | sum(a) FILTER(WHERE b) OVER w
sum(a) OVER (ORDER BY b NULLS LAST, c DESC NULLS FIRST, d ASC)
percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC)
percentile_cont(0.5) WITHIN GROUP (ORDER BY *Y.a DESC)
listagg(a, ',') WITHIN GROUP (ORDER BY a) FILTER(WHERE b)
(SELECT max(x) FROM t) | a = (SELECT max(x) FROM t) | a IN (SELECT b FROM t)
EXISTS(SELECT 1 FROM t WHERE t.x = y)
a IN ((SELECT 1)) | (a, b) IN (SELECT c, d FROM t) | NOT EXISTS(SELECT 1)
current_date | current_timestamp() | timestampadd(DAY, 1, a) | window(ts, '5 minutes').start
oldest().c | oldest(2)
"""


@pytest.mark.parametrize(
    "text", [e.strip() for line in PLAIN.splitlines() for e in line.split(" | ") if e.strip()]
)
def test_printed_as_written(text: str, expression: Check) -> None:
    assert to_sql(expression(text)) == text


@pytest.mark.parametrize(("text", "printed"), PRINTED.items())
def test_printed_otherwise_but_the_same(text: str, printed: str, expression: Check) -> None:
    assert to_sql(expression(text)) == printed


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a || b + c", "((a || b) + c)"),
        ("a | b ^ c & d << e + f * -g", "(a | (b ^ (c & (d << (e + (f * (-g)))))))"),
        ("a < b | c = d", "((a < (b | c)) = d)"),
        ("a <=> b = c", "((a <=> b) = c)"),
        ("a IS NOT DISTINCT FROM b = c", "(a <=> (b = c))"),
        ("NOT a = b AND c OR d", "(((NOT (a = b)) AND c) OR d)"),
        ("NOT a IS NULL", "(NOT (a IS NULL))"),
        ("a = b IS NULL", "((a = b) IS NULL)"),
        ("a + 1 BETWEEN b - 1 AND c | 2 OR d", "(((a + 1) BETWEEN (b - 1) AND (c | 2)) OR d)"),
        ("-a.b[0]::INT", "(-CAST(a.b[0] AS INT))"),
        ("a DIV b DIV c % d", "(((a DIV b) DIV c) % d)"),
        ("a - b - c", "((a - b) - c)"),
        ("a OR b OR c AND d", "((a OR b) OR (c AND d))"),
    ],
)
def test_precedence_is_sparks(text: str, explicit: str) -> None:
    assert fully_parenthesized(parse_expression(text)) == explicit


def fully_parenthesized(node: exp.Expr) -> str:
    root = exp.Paren(this=node.copy())
    operators = (exp.Binary, exp.Neg, exp.BitwiseNot, exp.Not, exp.Between)
    for part in [part for part in root.this.walk() if isinstance(part, operators)]:
        paren = exp.Paren()
        part.replace(paren)
        paren.set("this", part)
    return to_sql(root.this)


def test_a_cast_and_an_attempt_differ() -> None:
    assert type(parse_expression("CAST(a AS INT)")) is exp.Cast
    assert type(parse_expression("TRY_CAST(a AS INT)")) is exp.TryCast


def test_parameters_of_a_lambda_are_no_columns() -> None:
    tree = parse_expression("transform(a, x -> x + b + x.c)")
    assert {column.name for column in tree.find_all(exp.Column)} == {"a", "b"}


@given(st.text())
def test_every_text_can_be_written(text: str) -> None:
    surrogates = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    printed = to_sql(exp.Literal.string(surrogates))
    assert parse_expression(printed) == exp.Literal.string(surrogates)


@given(st.text(min_size=1))
def test_every_name_can_be_written(name: str) -> None:
    column = exp.Column(this=exp.to_identifier(name, quoted=True))
    assert parse_expression(to_sql(column)) == column
