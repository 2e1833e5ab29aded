"""Messages for syntax errors: the mistake, its place, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.errors import EslSyntaxError
from millstream.syntax import parse_expression, parse_script

# In each paragraph: a text with a slip, marks under the place, the message, and perhaps a hint.
SLIPS = (Path(__file__).parent / "slips.txt").read_text(encoding="utf-8").strip("\n").split("\n\n")


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.splitlines()[0])
def test_slips(slip: str) -> None:
    text, marks, message, *hint = slip.splitlines()
    with pytest.raises(EslSyntaxError) as caught:
        parse_script(text)
    error = caught.value
    assert error.message == message
    assert error.hint == (hint[0] if hint else None)
    assert error.place is not None
    assert " " * (error.place.column - 1) + "^" * error.place.length == marks


def test_the_whole_message() -> None:
    with pytest.raises(EslSyntaxError) as caught:
        parse_script("SHOW STREAMS;\n\nSELECT a,\n\tb + FROM s;\nSELECT 1", "my.esl")
    assert str(caught.value).splitlines() == [
        "my.esl:4:6: expected an expression after '+' but found 'FROM'",
        "  4 | \tb + FROM s;",
        "    | \t    ^^^^",
    ]


def test_an_expression_has_a_place_too() -> None:
    with pytest.raises(EslSyntaxError) as caught:
        parse_expression("a + ")
    assert str(caught.value.place) == "<expression>:1:4"


@pytest.mark.parametrize(
    "text", ["SELECT a FROM s GROUP BY", "SELECT (", "CREATE STREAM s (a", "SELECT 'x", "/*"]
)
def test_a_slip_at_the_end_is_shown_in_the_last_line(text: str) -> None:
    with pytest.raises(EslSyntaxError) as caught:
        parse_script(f"SHOW STREAMS;\n{text}\n\n-- the end\n")
    assert caught.value.place is not None
    assert caught.value.place.line == 2


def test_a_message_is_short_even_if_the_text_is_long() -> None:
    with pytest.raises(EslSyntaxError) as caught:
        parse_script(f"SELECT a '{'x' * 1000}' FROM s")
    assert len(caught.value.message) < 80


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a AT TIME ZONE 'UTC'",
            "a -> 'x'",
            "a #> b",
            "[1, 2]",
            "{'a': 1}",
            ":p",
            "$1",
            "@x",
            "a ?? b",
            "N'x'",
        ),
        *(
            "CAST(a AS DATETIME)",
            "CAST(a AS TEXT)",
            "CAST(a AS ARRAY)",
            "CAST(a AS DECIMAL(1, 2, 3))",
            "f(a AS x)",
        ),
        *(
            "a.*",
            "*",
            "1.x",
            "a = NOT b",
            "a IS NULL IS NULL",
            "DISTINCT a",
            "f(DISTINCT)",
            "X'G'",
            "f((x) -> x)",
        ),
        *(
            "CASE END",
            "CASE a END",
            "()",
            "a IN b",
            "a b",
            "INTERVAL '5 parsecs'",
            "EXISTS (SELECT 1) = a",
        ),
    ],
)
def test_what_other_systems_know_is_refused(text: str) -> None:
    with pytest.raises(EslSyntaxError):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "SELECT TOP 5 a FROM s",
            "SELECT a INTO b FROM s",
        ),
        *(
            "SELECT a FROM s FOR UPDATE",
            "SELECT a FROM s FETCH FIRST 5 ROWS ONLY",
        ),
        *("SELECT a FROM s FULL JOIN", "MERGE INTO t USING u ON a", "TRUNCATE TABLE t"),
        *("ALTER TABLE t ADD a INT", "USE db", "CREATE INDEX i ON t (a)", "BEGIN", "COMMIT"),
        *(
            "SELECT DISTINCT ON (a) b FROM s",
            "SELECT a FROM s LIMIT 1, 2",
        ),
        *(
            "GRANT SELECT ON t TO u",
            "CALL f()",
            "SELECT a 'b' FROM s",
        ),
    ],
)
def test_statements_of_other_systems_are_refused(text: str) -> None:
    with pytest.raises(EslSyntaxError):
        parse_script(text)


def test_the_parser_of_spark_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(EslSyntaxError):
        parse_script("CREATE STREAM s (a INT) USING csv OPTIONS '07:00:00' (path 'x')")
    assert not caplog.records
