"""All listings of the language's description and of the five papers are ESL, and survive printing."""

from __future__ import annotations

import re
from pathlib import Path

from millstream.syntax import parse_script, to_sql

LISTINGS = Path(__file__).parent / "listings"


def test_it_parses(listing: str) -> None:
    assert parse_script(listing)


def test_it_says_where_it_comes_from_and_what_was_repaired(listing: str) -> None:
    comment = re.match(r"(--.*\n)+", listing)
    assert comment, "a listing begins with a comment that names the paper and the example"
    assert re.search("repairs", comment[0], re.IGNORECASE)


def test_it_survives_printing(listing: str) -> None:
    for statement in parse_script(listing):
        printed = to_sql(statement.tree)
        [again] = parse_script(printed)
        assert again.tree == statement.tree, printed
        assert to_sql(again.tree) == printed


def test_its_statements_are_found_in_the_text(listing: str) -> None:
    for statement in parse_script(listing):
        [alone] = parse_script(statement.text)
        assert alone.tree == statement.tree
        assert alone.text == statement.text


def test_no_listing_is_missing() -> None:
    names = {path.stem for path in LISTINGS.glob("*.esl")}
    assert {f"esl-{n:02}" for n in range(1, 19)} <= names
    # Example 1.6 is written in another language, SQL/LPP+.
    assert {f"eslts-1-{n:02}" for n in range(1, 13) if n != 6} <= names
    assert {f"wid-q{n}" for n in range(1, 6)} <= names
    assert {"epic-listing-1", "epic-mysum", "epic-windows"} <= names
    assert {"windows-q2prime", *(f"windows-q{n}" for n in range(1, 7))} <= names
    assert {name.split("-")[1] for name in names if name.startswith("language-")} == set("123456789")
