"""Words that can be names, and scripts of comments, semicolons, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from millstream.syntax import parse_script, to_sql

Check = Callable[[str], exp.Expr]

AWKWARD = [
    *("istream", "slide", "range", "rows", "window", "start", "end", "current_time", "date", "time", "name"),
    *("state", "timestamp", "interval", "offset", "partition", "key", "value", "values", "table", "stream"),
    *("first", "last", "left", "right", "filter", "over", "set", "type", "now", "session", "gap", "previous"),
    *("all", "any", "exists", "row", "unbounded", "every", "minutes", "sort", "cluster", "semi", "lateral"),
]


@pytest.mark.parametrize("name", AWKWARD)
def test_most_words_can_be_names(name: str, again: Check) -> None:
    tree = again(f"""
        SELECT {name}, t.{name}, f({name}, 1), {name} + 1 AS {name}, a {name} FROM t AS {name}
        WHERE {name} > 1 AND {name} IS NOT NULL GROUP BY {name} ORDER BY {name} DESC
    """)
    assert {column.name for column in tree.find_all(exp.Column)} == {name, "a"}
    again(f"CREATE STREAM {name} ({name} INT, b {'INT'}) ORDER BY {name}")
    again(f"SELECT a FROM {name} [ROWS 5] AS x JOIN {name} ON x.{name} = {name}.a")
    again(
        f"AGGREGATE {name}({name}) : INT {{ TABLE {name}({name}); "
        f"ITERATE : {{ UPDATE {name} SET {name} = 1; }} }}"
    )


def test_any_word_can_be_a_name_in_backquotes_or_behind_a_dot(again: Check) -> None:
    tree = again("SELECT `select`, t.from, `a b`.`c``d`, `x`(1) FROM `my table` AS `where`")
    assert [column.name for column in tree.find_all(exp.Column)] == ["select", "from", "c`d"]


def test_case_does_not_matter_for_keywords_but_is_kept_in_names(again: Check) -> None:
    lower, upper = again("select Aa from s [range 5 slide 2]"), again("SELECT Aa FROM s [RANGE 5 SLIDE 2]")
    assert lower == upper
    assert lower.expressions[0].name == "Aa"


# ---------------------------------------------------------------- scripts


def test_comments_may_stand_everywhere() -> None:
    plain = "SELECT a , sum ( b ) OVER ( ROWS 3 PRECEDING SLIDE 2 ) FROM s [ RANGE 5 MINUTES ] WHERE a > 'x'"
    commented = " /* c; ' /* nested */ */ ".join(plain.split(" ")) + " -- the end"
    lines = "-- first\n" + " -- it's; so\n".join(plain.split(" "))
    expected = parse_script(plain)[0].tree
    assert [s.tree for s in parse_script(commented)] == [expected]
    assert [s.tree for s in parse_script(lines)] == [expected]


def test_statements_end_at_semicolons_outside_of_texts_names_and_bodies() -> None:
    script = """
        ;; SELECT 'a;b', `c;d` FROM s; -- one; two
        AGGREGATE f(x) : INT { TABLE t(a); ITERATE : { DELETE FROM t; } };
        /* ; */ SHOW STREAMS
    """
    assert [s.text.split()[0] for s in parse_script(script)] == ["SELECT", "AGGREGATE", "SHOW"]


@pytest.mark.parametrize("text", ["", " \n", ";", "-- nothing", "/* nothing */;", "\ufeff"])
def test_an_empty_script_has_no_statements(text: str) -> None:
    assert parse_script(text) == []


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_script("\ufeffSHOW STREAMS")[0].text == "SHOW STREAMS"


def test_long_chains_of_conditions_do_not_make_deep_trees(again: Check) -> None:
    tree = again("SELECT a FROM s WHERE " + " OR ".join(f"a = {i} AND b = {i}" for i in range(1000)))
    leaves = list(tree.args["where"].this.flatten())
    assert len(leaves) == 1000
    assert to_sql(leaves[-1]) == "a = 999 AND b = 999"
