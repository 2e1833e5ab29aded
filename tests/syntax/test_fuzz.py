"""Random input gives trees, or an error with a place; and trees survive printing.

Default runs are short. For a long one: pytest tests/syntax --hypothesis-profile=soak --timeout=0
"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import EslSyntaxError
from millstream.syntax import parse_expression, parse_script, to_sql
from millstream.syntax.spark_only_queries import is_plain_spark
from tests.chance import drawn
from tests.syntax.conftest import LISTINGS
from tests.syntax.slips import VOCABULARY, slipped

# The number of examples is that of the profile, times three.
FUZZ = settings(
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def check(text: str) -> int:
    """Parse a text that may be anything; returns how many statements it has."""
    error, statements = None, []
    try:
        statements = parse_script(text)
    except EslSyntaxError as raised:
        error = raised
    assert error is None or (error.place is not None and error.message and str(error))
    for statement in statements:
        if is_plain_spark(statement.tree):
            # Spark gets its text as it was written: such a tree is never printed.
            continue
        printed = to_sql(statement.tree)
        [again] = parse_script(printed)
        assert again.tree == statement.tree, printed
        assert to_sql(again.tree) == printed
    return len(statements)


# ---------------------------------------------------------------- anything at all


@FUZZ
@given(st.text())
def test_any_text(text: str) -> None:
    check(text)


@FUZZ
@given(st.text(alphabet="'\"`\\/*-;(){}[]<>=|:., \naA1_eErRxX\0é"))
def test_any_text_of_dangerous_characters(text: str) -> None:
    check(text)


@FUZZ
@given(st.lists(st.sampled_from(VOCABULARY), max_size=40))
def test_any_words(words: list[str]) -> None:
    check(" ".join(words))
    check("SELECT " + " ".join(words))
    check("SELECT a FROM s " + " ".join(words))


# ---------------------------------------------------------------- listings with slips


@FUZZ
@given(st.sampled_from(list(LISTINGS.values())).flatmap(drawn(slipped)))
def test_listings_with_slips(text: str) -> None:
    check(text)


@FUZZ
@given(data=st.data())
def test_listings_cut_anywhere(listings: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(listings))
    start = data.draw(st.integers(0, len(text)))
    check(text[:start])
    check(text[start:])


def test_queries_of_spark_alone_need_not_survive_printing() -> None:
    assert check("FROM SELECT f(a) SELECT b;") == 1


# ---------------------------------------------------------------- statements by the rules

# Rules of a grammar. The first alternative of each leads to an end.
GRAMMAR = {
    "name": "a|b|t1|slide|date|`q r`|end|window|start|value|istream|interval",
    "int": "1|7|100",
    "literal": "1|2.5|'x'|NULL|TRUE|DATE '2020-01-01'|INTERVAL 5 MINUTES|X'1F'|3L|'it''s'|INTERVAL '1' DAY",
    "type": "INT|DOUBLE|STRING|DECIMAL(10, 2)|ARRAY<<type>>|MAP<STRING, <type>>|STRUCT<a: <type>, b: INT>",
    "column": "<name>|<name>.<name>|<name>.previous.<name>",
    "sign": "+|-|*|/|%|DIV|=|<>|<=>|<|>=|&|^|<<|>>",
    "frame": "ROWS 3 PRECEDING|ROWS UNBOUNDED PRECEDING|RANGE <length> PRECEDING <slide>"
    "|RANGE <int> PRECEDING",
    "slide": "|SLIDE <int>|SLIDE INTERVAL 1 MINUTE EMIT EVERY 5 SECONDS|ACTIVE EXPIRATION",
    "over": "(<frame>)|(PARTITION BY <value> ORDER BY <order> <frame>)|w|()",
    "call": "f()|count(*)|sum(<value>)|count(DISTINCT <value>, <value>)"
    "|max(<condition>) FILTER (WHERE <condition>)|avg(<value>) OVER <over>"
    "|transform(<name>, x -> x + <value>)|count(*Y)|avg(*Y.<name>)|oldest().<name>"
    "|last(<value>) IGNORE NULLS OVER <over>|listagg(<value>, ',') WITHIN GROUP (ORDER BY <order>)",
    "value": "<column>|<literal>|<call>|<value> <sign> <value>|(<condition>)|- <value>"
    "|CAST(<condition> AS <type>)|<name>[<value>]|<name>::<type>"
    "|CASE WHEN <condition> THEN <value> ELSE <value> END|(<query>)|TRIM(BOTH <value> FROM <value>)"
    "|EXTRACT(YEAR FROM <value>)|POSITION(<value> IN <value>)|<call>.<name>",
    "condition": "<value>|<value> IS NOT NULL|<value> IN (<value>, <value>)|<value> NOT IN (<query>)"
    "|<value> BETWEEN <value> AND <value>|<value> NOT LIKE <value>|NOT <condition>|EXISTS (<query>)"
    "|<condition> AND <condition>|<condition> OR <condition>|<value> IS DISTINCT FROM <value>",
    "order": "<value>|<value> DESC NULLS FIRST|<value> ASC, <order>",
    "length": "5 MINUTES|INTERVAL '1' HOUR|1 HOUR 30 MINUTES|INTERVAL 5 SECONDS",
    "range": "<length>|<int>|2.5|<int> ROWS|1 ROW",
    "window": "[NOW]|[ROWS <int>]|[RANGE <range> SLIDE <range> WATTR <name>]"
    "|[TUMBLE <length> EMIT EVERY <length>]"
    "|[RANGE <length> RATTR <name> SLIDE 5 ROWS SATTR rank(<name>) PATTR <name>, <name>]"
    "|[SESSION GAP <length>]|[LANDMARK START AT <literal> END AT <literal> SLIDE <range>]"
    "|[START WHEN <condition> END WHEN <condition>]"
    "|[PARTITION BY <name>.<name> ROWS <int> ORIGIN <literal>]|[UNBOUNDED]",
    "pattern": "AS (X, *Y, Z)|PARTITION BY <name> AS (*Y)|PARTITION BY <name> SEQUENCE BY <name> AS (X, *Y)",
    "relation": "<name>|c.<name> <window>|<name> <window> AS <name>|<name> <pattern>|(<query>) AS <name>"
    "|(<query>) <window> AS <name>|<name> AS <name>(a, b)|LATERAL (<query>) AS <name>"
    "|VALUES (1, <value>) AS v(a, b)|(<relation> JOIN <relation> ON <condition>)",
    "from": "<relation>|<from>, <relation>|<from> JOIN <relation> ON <condition>"
    "|<from> LEFT SEMI JOIN <relation>|<from> FULL OUTER JOIN <relation> USING (a, b)",
    "item": "<value>|<condition> AS <name>|explode(<value>) AS (k, v)",
    "items": "<item>|*|<item>, <items>|* EXCEPT (a, b), <item>",
    "modifier": "|DISTINCT|ISTREAM|DSTREAM DISTINCT|CHANGES|ALL",
    "group": "|GROUP BY <value>|GROUP BY <value>, ROLLUP(a, b) HAVING <condition>"
    "|GROUP BY GROUPING SETS ((a), ())",
    "select": "SELECT 1 AS x|SELECT <modifier> <items> FROM <from> <group>"
    "|SELECT <modifier> <items> FROM <from> WHERE <condition> <group>"
    "|SELECT <items> FROM <from> LATERAL VIEW OUTER explode(<value>) e AS x"
    " WINDOW w AS (PARTITION BY <value>)",
    "query": "<select>|<select> UNION ALL <select>|<select> EXCEPT (<query>)"
    "|<select> INTERSECT <select> LIMIT <int>|<select> ORDER BY <order> LIMIT <int> OFFSET <int>"
    "|WITH <name> AS (<query>), b(x) AS (<query>) <select>|(<query>) ORDER BY <order>",
    "columns": "a INT|<name> <type>, <columns>|<name>, <columns>",
    "clause": "|SLACK <range> GENEROUS ON b <clause>|ORDERED PER (a, b) IDLE AFTER <length> <clause>"
    "|BAD INTO x|PUNCTUATED BY (<condition>) PER (a) <clause>|HEARTBEAT <length> <clause>|LATE DROP"
    "|LATE INTO l",
    "change": "INSERT INTO RETURN VALUES (<value>)"
    "|INSERT INTO <name> VALUES (<value>, <value>), (1, 2) WHERE <condition>"
    "|INSERT INTO <name> <query>"
    "|UPDATE <name> SET <name> = <condition>, b = <value> WHERE <condition>"
    "|DELETE FROM <name> WHERE <column> > <column> + n minutes|DELETE FROM <name>",
    "block": "TERMINATE : { }|ITERATE : { <change>; <change> } <block>|EXPIRE : { <change>; }; <block>",
    "statement": "<query>|CREATE STREAM <name> AS <query>|CREATE VIEW <name> AS <query>"
    "|EXPLAIN CODE <query>"
    "|CREATE STREAM <name> (<columns>) ORDER BY <name> USING csv OPTIONS (path 'x', n 5) <clause>"
    "|STREAM <name>(<columns>) SOURCE 'port1' <clause>"
    "|CREATE OR REPLACE TABLE <name> (<columns>) USING a.b.C|INSERT INTO <name> <query>"
    "|SPLIT STREAM <name> INTO a AS (<query>), b AS (<query>)|DROP WINDOW AGGREGATE <name>"
    "|CREATE FUNCTION <name>(<columns>) : <type> AS <condition>|CREATE SINK <name> USING csv"
    "|SET a.b = <int>"
    "|CREATE WINDOW AGGREGATE <name>(<columns>) : (<columns>) ALGEBRAIC { TABLE <name>(<columns>); <block> }"
    "|AGGREGATE <name>() : <type> { <block> }"
    "|CREATE AGGREGATE <name>(a INT) : INT LANGUAGE PYTHON AS 'a:B'",
}
# Alternatives are separated by bars, but || and | are also signs.
RULES = {symbol: re.split(r"(?<!\|)\|(?!\|)", rule) for symbol, rule in GRAMMAR.items()}
SYMBOL = re.compile(r"<([a-z]+)>")


@st.composite
def sentences(draw: st.DrawFn, symbol: str, depth: int) -> str:
    """A random text by the rules, with the first alternatives where it would get too deep."""
    alternatives = RULES[symbol]
    choice = alternatives[draw(st.integers(0, len(alternatives) - 1))] if depth > 0 else alternatives[0]
    return SYMBOL.sub(lambda match: draw(sentences(match[1], depth - 1)), choice)


@FUZZ
@given(sentences("statement", 7))
def test_statements_by_the_rules(text: str) -> None:
    assert check(text) == 1


@FUZZ
@given(sentences("condition", 6))
def test_expressions_by_the_rules(text: str) -> None:
    tree = parse_expression(text)
    assert parse_expression(to_sql(tree)) == tree


# ---------------------------------------------------------------- size

HOSTILE = {
    "parentheses": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "open parentheses": "SELECT " + "(" * 10_000,
    "parentheses in FROM": "SELECT 1 FROM " + "(" * 10_000 + "t" + ")" * 10_000,
    "queries": "SELECT * FROM " + "(SELECT * FROM " * 5_000 + "t" + ")" * 5_000,
    "calls": "SELECT " + "f(" * 10_000 + ")" * 10_000,
    "cases": "SELECT " + "CASE WHEN a THEN " * 5_000,
    "types": "SELECT CAST(a AS " + "ARRAY<" * 10_000 + "INT" + ">" * 10_000 + ")",
    "lambdas": "SELECT " + "f(x -> " * 5_000,
    "groupings": "SELECT a GROUP BY " + "ROLLUP (" * 5_000,
    "windows": "SELECT " + "sum(a) OVER (ORDER BY " * 5_000,
    "common tables": "WITH " + "a AS (WITH " * 5_000,
    "minus signs": "SELECT " + "- " * 10_000 + "1",
    "negations": "SELECT " + "NOT " * 10_000 + "a",
    "sums": "SELECT " + "1 + " * 10_000 + "1",
    "fields": "SELECT a" + ".b" * 10_000,
    "casts": "SELECT a" + "::INT" * 10_000,
    "unions": "SELECT 1" + " UNION SELECT 1" * 5_000,
    "conditions": "SELECT " + "a AND b OR " * 3_000 + "c",
    "joins": "SELECT * FROM a" + " JOIN b" * 3_000,
    "values": "SELECT a IN (" + "1, " * 10_000 + "1)",
    "nested limits": "SELECT 1 LIMIT " + "(SELECT 1 LIMIT " * 20 + "1" + ")" * 20,
    "types that look like calls": "SELECT " + "decimal(" * 45 + "1" + ")" * 45,
    "special calls": "SELECT " + "substring(" * 45 + "a" + ")" * 45,
    "intervals": "SELECT " + "INTERVAL (" * 45 + "1" + ") DAYS" * 45,
    "statements": "SELECT 1;" * 3_000,
    "zero bytes": "SELECT \0 FROM s\0" * 100,
    "a long line": "SELECT " + "a, " * 20_000 + "b FROM s WHERE ,",
    "a long text": "SELECT '" + "x" * 1_000_000 + "'",
    "a long text with quotes": "SELECT '" + "x''" * 300_000 + "'",
    "a long open text": "SELECT '" + "x''" * 300_000,
    "a long text of backslashes": "SELECT '" + "\\" * 1_000_001,
    "a long number": "SELECT " + "1" * 1_000_000,
    "a long name": "SELECT " + "a" * 1_000_000,
    "a long comment": "SELECT 1 /*" + " /* */" * 100_000 + "*/",
    "a long open comment": "SELECT 1 " + "/*" * 500_000,
    "many quotes": "'" * 1_000_001,
    "many semicolons": ";" * 100_000,
    "braces": "AGGREGATE f(x) : INT " + "{" * 10_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_size_is_no_problem(text: str) -> None:
    start = time.perf_counter()
    check(text)
    assert time.perf_counter() - start < 20


def test_what_is_nested_too_deeply_is_said_so() -> None:
    for text in (HOSTILE["parentheses"], HOSTILE["sums"]):
        with pytest.raises(EslSyntaxError, match="nested too deeply"):
            parse_script(text)


def test_nesting_as_people_write_it_is_no_problem() -> None:
    assert check("SELECT " + "(" * 40 + "1" + ")" * 40) == 1
    assert check("SELECT " + "f(a + " * 40 + "1" + ")" * 40) == 1
    assert check("SELECT " + "1 + 2 * 3 - " * 40 + "1") == 1
    assert check("SELECT * FROM " + "(SELECT * FROM " * 20 + "t" + ")" * 20) == 1
