"""The phrase book of other systems; what is said of each phrase is in tests/errors/fixtures/foreign_*."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.catalog.functions import builtin
from millstream.errors import EslSyntaxError
from millstream.syntax import parse_script
from millstream.syntax.foreign_syntax import FUNCTIONS, PHRASES, TYPES, Phrase

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.written)
def test_every_phrase_is_on_the_page_for_newcomers(phrase: Phrase) -> None:
    assert phrase.written.split("(...")[0].split("(n)")[0] in PAGE


def test_functions_and_types_of_others_are_not_ours() -> None:
    assert [name for name in FUNCTIONS if builtin(name) is not None] == []
    for name in TYPES:
        with pytest.raises(EslSyntaxError, match="is not a type"):
            parse_script(f"SELECT CAST(a AS {name}) FROM s")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s [TUMBLE 1 MINUTE] WHERE b = = 3",
        "SELECT tumble FROM s WHERE top > = 1",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM s WHERE FROM",
        "CREATE STREAM s (a INT) ORDER BY",
        "WITH q AS (SELECT a FROM s) SELECT a FROM q q q",
    ],
)
def test_other_slips_are_not_taken_for_phrases(text: str) -> None:
    with pytest.raises(EslSyntaxError) as caught:
        parse_script(text)
    assert "not part of ESL" not in caught.value.message
