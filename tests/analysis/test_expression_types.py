"""The typer alone; that Spark agrees is checked in tests/spark/test_types_agree_with_spark.py."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlglot import exp

from millstream.analysis.types.coercion import Widening, can_cast, stores
from millstream.analysis.types.expression_types import Typer, common_type, field_type, from_datatype
from millstream.catalog.functions import NON_DETERMINISTIC, builtin, builtin_names, is_deterministic
from millstream.errors import AnalysisError
from millstream.syntax import parse_expression
from millstream.syntax.nodes import Starred
from millstream.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_INTERVAL,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Type,
    array,
    decimal,
)


def parse_type(text: str) -> Type:
    cast = parse_expression(f"CAST(x AS {text})")
    return from_datatype(cast.args["to"])


COLUMNS = {
    "b": BOOLEAN,
    "i": INT,
    "l": BIGINT,
    "f": FLOAT,
    "d": DOUBLE,
    "n": decimal(10, 2),
    "s": STRING,
    "day": DATE,
    "t": TIMESTAMP,
    "gap": DAY_TIME_INTERVAL,
    "xs": array(INT),
    "m": parse_type("MAP<STRING, INT>"),
    "p": parse_type("STRUCT<x: INT, y: STRING>"),
    "unknown": UNKNOWN,
}


def column_type(node: exp.Column) -> Type:
    name, *fields = (part.name for part in node.parts)
    if name not in COLUMNS:
        raise AnalysisError(f"unknown column '{name}'")
    type_ = COLUMNS[name]
    for field in fields:
        type_ = field_type(type_, field, node)
    return type_


def query_type(query: exp.Query) -> Type:
    return typer.type_of(query.selects[0])


typer = Typer(column=column_type, query=query_type)


def type_of(text: str) -> str:
    return str(typer.type_of(parse_expression(text)))


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        # literals
        ("1", "int"),
        ("-2147483648", "int"),
        ("5000000000", "bigint"),
        ("99999999999999999999", "decimal(20,0)"),
        ("1.5", "decimal(2,1)"),
        ("0.05", "decimal(2,2)"),
        ("1e3", "double"),
        ("1L", "bigint"),
        ("1.0D", "double"),
        ("1BD", "decimal(1,0)"),
        ("1S", "smallint"),
        ("1Y", "tinyint"),
        ("1F", "float"),
        ("'a'", "string"),
        ("X'1F'", "binary"),
        ("NULL", "void"),
        ("DATE '2020-01-01'", "date"),
        ("TIMESTAMP '2020-01-01 00:00:00'", "timestamp"),
        ("INTERVAL 5 MINUTES", "interval day to second"),
        ("INTERVAL '1' DAY", "interval day"),
        ("INTERVAL 2 MONTHS", "interval year to month"),
        # arithmetic
        ("i + i", "int"),
        ("i + l", "bigint"),
        ("i / i", "double"),
        ("i DIV i", "bigint"),
        ("f * f", "float"),
        ("f + i", "double"),
        ("n + 1", "decimal(11,2)"),
        ("n + i", "decimal(13,2)"),
        ("n * n", "decimal(21,4)"),
        ("n / n", "decimal(23,13)"),
        ("n % 3", "decimal(3,2)"),
        ("n * 1e0", "double"),
        ("'1' + 1", "bigint"),
        ("s * 1.5", "double"),
        ("-i", "int"),
        ("~l", "bigint"),
        ("i & l", "bigint"),
        ("l << 2", "bigint"),
        # times
        ("day + 1", "date"),
        ("day - day", "interval day"),
        ("t - t", "interval day to second"),
        ("t - INTERVAL 1 HOUR", "timestamp"),
        ("day + INTERVAL 1 DAY", "date"),
        ("day + INTERVAL 1 HOUR", "timestamp"),
        ("day + INTERVAL 1 MONTH", "date"),
        ("2 * INTERVAL 1 DAY", "interval day to second"),
        ("INTERVAL 1 HOUR / 2", "interval day to second"),
        ("dateadd(DAY, 1, t)", "timestamp"),
        ("datediff(HOUR, day, t)", "bigint"),
        ("EXTRACT(YEAR FROM t)", "int"),
        ("EXTRACT(SECOND FROM t)", "decimal(8,6)"),
        ("current_date", "date"),
        ("current_timestamp - t", "interval day to second"),
        # conditions
        ("i > 1.5 AND s = 'a' OR NOT b", "boolean"),
        ("i BETWEEN 1 AND '7'", "boolean"),
        ("i IN (1, 2.5, '7')", "boolean"),
        ("i IN (SELECT 1)", "boolean"),
        ("(i, s) IN ((1, 'a'))", "boolean"),
        ("EXISTS (SELECT 1)", "boolean"),
        ("s LIKE ANY ('a', 'b')", "boolean"),
        ("s NOT RLIKE 'a'", "boolean"),
        ("i <=> NULL", "boolean"),
        ("b IS NOT TRUE", "boolean"),
        # choices
        ("CASE WHEN b THEN 1 END", "int"),
        ("CASE i WHEN 1 THEN 1 ELSE 2.5 END", "decimal(11,1)"),
        ("if(b, 1, 2L)", "bigint"),
        ("coalesce(i, 'a')", "bigint"),
        ("coalesce(NULL, day, t)", "timestamp"),
        # conversions
        ("CAST(s AS DECIMAL(5, 2))", "decimal(5,2)"),
        ("TRY_CAST(i AS STRING)", "string"),
        ("s::INT", "int"),
        ("decimal(i)", "decimal(10,0)"),
        # strings
        ("s || i", "string"),
        ("xs || array(1L)", "array<bigint>"),
        ("upper(s)", "string"),
        ("UPPER(i)", "string"),
        ("trim(BOTH 'x' FROM s)", "string"),
        ("substring(s, 1, 2)", "string"),
        ("length(s)", "int"),
        ("split(s, ',')", "array<string>"),
        # numbers
        ("round(n, 1)", "decimal(10,1)"),
        ("ceil(d)", "bigint"),
        ("ceil(n)", "decimal(9,0)"),
        ("sqrt(i)", "double"),
        ("greatest(i, 2.5)", "decimal(11,1)"),
        # parts and collections
        ("xs[0]", "int"),
        ("m['a']", "int"),
        ("p.x", "int"),
        ("p['y']", "string"),
        ("struct(i, s AS name, 1)", "struct<i:int,name:string,col3:int>"),
        ("named_struct('a', 1)", "struct<a:int>"),
        ("map('a', 1, 'b', 2.5)", "map<string,decimal(11,1)>"),
        ("size(xs)", "int"),
        ("element_at(m, 'a')", "int"),
        ("transform(xs, x -> x + 0.5)", "array<decimal(12,1)>"),
        ("transform(xs, x -> X + 1L)", "array<bigint>"),
        ("filter(xs, x -> x > 1)", "array<int>"),
        ("aggregate(xs, 0L, (acc, x) -> acc + x)", "bigint"),
        # aggregates
        ("count(*)", "bigint"),
        ("count(DISTINCT i, s)", "bigint"),
        ("sum(i)", "bigint"),
        ("sum(f)", "double"),
        ("sum(n)", "decimal(20,2)"),
        ("sum(s)", "double"),
        ("avg(i)", "double"),
        ("avg(n)", "decimal(14,6)"),
        ("min(t)", "timestamp"),
        ("max_by(s, t)", "string"),
        ("collect_list(p)", "array<struct<x:int,y:string>>"),
        ("stddev(i)", "double"),
        ("approx_count_distinct(s)", "bigint"),
        ("bool_and(b)", "boolean"),
        ("percentile(i, array(0.5, 0.9))", "array<double>"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY i)", "double"),
        ("listagg(s, ',') WITHIN GROUP (ORDER BY i)", "string"),
        ("sum(i) FILTER (WHERE b)", "bigint"),
        ("first(s) IGNORE NULLS", "string"),
        ("sum(i) OVER (PARTITION BY s ORDER BY t)", "bigint"),
        ("row_number() OVER (ORDER BY t)", "int"),
        ("lag(n, 1, 0) OVER (ORDER BY t)", "decimal(10,2)"),
        ("(SELECT 1.5) + i", "decimal(12,1)"),
        # what only Spark knows
        ("unknown + 1", "unknown"),
        ("coalesce(unknown, 1)", "unknown"),
        ("sum(unknown)", "unknown"),
        ("count(unknown)", "bigint"),
        ("unknown > t AND unknown", "boolean"),
        ("histogram_numeric(i, 5)", "array<struct<x:int,y:double>>"),
        ("count_min_sketch(i, 0.1, 0.9, 1)", "unknown"),
    ],
)
def test_type(text: str, type_: str) -> None:
    assert type_of(text) == type_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b + 1", "cannot compute boolean + int"),
        ("xs + 1", "cannot compute array<int> + int"),
        ("t + 1", "cannot compute timestamp + int"),
        ("s + s", "cannot compute string + string"),
        ("d DIV 2", "cannot compute double div int"),
        ("b > 1", "cannot compare boolean with int"),
        ("t = 1", "cannot compare timestamp with int"),
        ("xs = 1", "cannot compare array<int> with int"),
        ("m = m", "cannot compare map<string,int> with map<string,int>"),
        ("i BETWEEN 1 AND b", "cannot compare int with boolean"),
        ("i AND b", "AND joins conditions, but this is int"),
        ("s OR s", "OR joins conditions, not string and string"),
        ("NOT i", "NOT needs a condition, but this is int"),
        ("xs LIKE 'a'", "cannot match array<int> with a pattern"),
        ("i IN (1, b)", "cannot look for int among int, boolean"),
        ("i & d", "bitwise operators are for whole numbers"),
        ("CASE WHEN b THEN 1 ELSE b END", "the branches of CASE have no common type: int and boolean"),
        ("CASE WHEN i THEN 1 END", "WHEN needs a condition, but this is int"),
        ("CAST(b AS DATE)", "cannot convert boolean to date"),
        ("date(i)", "cannot convert int to date"),
        ("CAST(s AS DECIMAL(39, 0))", "there is no DECIMAL(39, 0)"),
        ("coalesce(i, b)", "argument 2 of 'coalesce' must be compatible with int, but this is boolean"),
        ("sum(b)", "the argument of 'sum' must be numeric or interval or timestamp, but this is boolean"),
        ("avg(day)", "must be numeric or interval or timestamp, but this is date"),
        ("max(m)", "the argument of 'max' must be of a type with an order, but this is map<string,int>"),
        ("count_if(i)", "must be boolean, but this is int"),
        ("lower(xs)", "must be string, but this is array<int>"),
        ("size(i)", "must be array or map, but this is int"),
        ("lower()", "'lower' takes 1 argument, not 0"),
        ("substr(s)", "'substr' takes 2 to 3 arguments, not 1"),
        ("pi(1)", "'pi' takes no arguments, not 1"),
        ("p.z", "unknown field 'z'"),
        ("s.z", "string has no field 'z'"),
        ("xs['a']", "cannot take an element of array<int> by string"),
        ("EXTRACT(MONTH FROM gap)", "cannot extract month from interval day to second"),
        ("filter(xs, x -> x + 1)", "must return a boolean, but returns int"),
        ("transform(xs, x -> x + b)", "cannot compute int + boolean"),
        ("sum(i) FILTER (WHERE s)", "FILTER needs a condition, but this is string"),
        ("sum(i) OVER (PARTITION BY nothing)", "unknown column 'nothing'"),
    ],
)
def test_mistake(text: str, message: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        type_of(text)
    assert message in caught.value.message


def test_mistakes_are_located_and_come_with_hints() -> None:
    with pytest.raises(AnalysisError) as caught:
        type_of("i > 1 AND uper(s) = 'A'")
    assert (caught.value.message, caught.value.hint) == ("unknown function 'uper'", "did you mean 'upper'?")
    assert caught.value.span is not None
    assert caught.value.span[0] == 10

    with pytest.raises(AnalysisError) as caught:
        type_of("i > 1 AND t + 5 > t")
    assert caught.value.hint == "use an interval, such as INTERVAL 5 SECONDS"


def test_owner_knows_more_functions_and_nodes() -> None:
    def call(name: str, node: exp.Expr, types: list[Type]) -> Type | None:
        return types[0] if name in ("mine", "sum") else None

    def node(node: exp.Expr) -> Type | None:
        return typer.type_of(node.this) if isinstance(node, Starred) else None

    typer = Typer(column=column_type, call=call, node=node, names=lambda: ["mine"])
    assert typer.type_of(parse_expression("mine(DISTINCT day)")) == DATE
    assert typer.type_of(parse_expression("sum(i)")) == INT  # asked before the built-ins
    assert typer.type_of(parse_expression("avg(*n)")) == decimal(14, 6)
    with pytest.raises(AnalysisError) as caught:
        typer.type_of(parse_expression("mime(day)"))
    assert caught.value.hint == "did you mean 'mine'?"


def test_a_column_wins_over_a_function_without_parentheses() -> None:
    text = parse_expression("current_date")
    assert Typer(column=lambda node: INT).type_of(text) == INT
    assert Typer(column=lambda node: None).type_of(text) == DATE


def test_long_conditions_do_not_exhaust_the_stack() -> None:
    assert type_of(" OR ".join(f"i = {n}" for n in range(2000))) == "boolean"


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        (INT, BIGINT, BIGINT),
        (INT, FLOAT, DOUBLE),
        (INT, decimal(10, 2), decimal(12, 2)),
        (decimal(38, 10), decimal(38, 0), decimal(38, 0)),
        (STRING, INT, BIGINT),
        (STRING, DATE, DATE),
        (STRING, DAY_TIME_INTERVAL, None),
        (DATE, TIMESTAMP, TIMESTAMP),
        (DAY_INTERVAL, DAY_TIME_INTERVAL, DAY_TIME_INTERVAL),
        (NULL, array(INT), array(INT)),
        (array(INT), array(STRING), array(BIGINT)),
        (INT, BOOLEAN, None),
        (INT, UNKNOWN, UNKNOWN),
    ],
)
def test_common_type(a: Type, b: Type, common: Type | None) -> None:
    assert common_type(a, b) == common
    assert common_type(b, a) == common


def test_common_type_without_changing_values() -> None:
    assert common_type(INT, BIGINT, Widening.TIGHT) == BIGINT
    assert common_type(STRING, INT, Widening.TIGHT) is None
    assert common_type(STRING, INT, Widening.WIDE) is None
    assert common_type(INT, decimal(10, 2), Widening.TIGHT) is None
    assert common_type(INT, decimal(10, 2), Widening.WIDE) == decimal(12, 2)


def test_conversions() -> None:
    assert can_cast(STRING, DATE)
    assert not can_cast(DATE, INT)
    assert stores(DOUBLE, INT)
    assert not stores(STRING, INT)
    assert not stores(TIMESTAMP, BIGINT)


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("INTEGER", "int"),
        ("LONG", "bigint"),
        ("SHORT", "smallint"),
        ("BYTE", "tinyint"),
        ("REAL", "float"),
        ("DEC(3, 1)", "decimal(3,1)"),
        ("NUMERIC", "decimal(10,0)"),
        ("VARCHAR(10)", "string"),
        ("CHAR(3)", "string"),
        ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
        ("INTERVAL DAY TO SECOND", "interval day to second"),
        ("INTERVAL YEAR", "interval year to month"),
        ("ARRAY<MAP<STRING, INT>>", "array<map<string,int>>"),
        ("STRUCT<a: INT, b STRING>", "struct<a:int,b:string>"),
        ("VARIANT", "variant"),
    ],
)
def test_written_type(written: str, known: str) -> None:
    assert str(parse_type(written)) == known


def test_builtin_functions() -> None:
    total = builtin("SUM")
    assert total is not None
    assert (total.kind, total.min_args, total.max_args) == ("aggregate", 1, 1)
    assert [builtin(name).kind for name in ("upper", "rank", "explode", "||")] == [  # type: ignore[union-attr]
        *("scalar", "window", "generator", "operator"),
    ]
    unsigned = builtin("count_min_sketch")
    assert unsigned is not None
    assert (unsigned.min_args, unsigned.max_args, unsigned.result) == (0, None, "unknown")
    assert builtin("no_such_function") is None


@pytest.mark.parametrize("type_", [INT, NULL, STRING, array(INT)])
def test_signatures_are_well_formed(type_: Type) -> None:
    typer = Typer(column=lambda node: type_)
    for name in sorted(builtin_names()):
        function = builtin(name)
        assert function is not None
        most = function.min_args + 2 if function.max_args is None else function.max_args
        for count in range(function.min_args, most + 1):
            call = exp.Anonymous(this=name, expressions=[exp.column("c") for _ in range(count)])
            with suppress(AnalysisError):  # a misspelt type or rule would be a KeyError
                typer.type_of(call)


def test_determinism() -> None:
    assert builtin_names() >= NON_DETERMINISTIC
    assert not is_deterministic("RAND", 0)
    assert not is_deterministic("unix_timestamp", 0)
    assert is_deterministic("unix_timestamp", 1)
