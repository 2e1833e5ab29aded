"""Fixtures of the tests of the parser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.syntax import parse_expression, parse_script, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp


LISTINGS = {
    path.stem: path.read_text() for path in sorted((Path(__file__).parent / "listings").glob("*.esl"))
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a listing is run on every one."""
    if "listing" in metafunc.fixturenames:
        metafunc.parametrize("listing", LISTINGS.values(), ids=LISTINGS.keys())


@pytest.fixture(scope="session")
def listings() -> list[str]:
    return list(LISTINGS.values())


@pytest.fixture(scope="session")
def again() -> Callable[[str], exp.Expr]:
    """Parse a statement, print it, parse that: the tree must be the same, and so must the next text."""

    def check(text: str) -> exp.Expr:
        [statement] = parse_script(text)
        printed = to_sql(statement.tree)
        [reparsed] = parse_script(printed)
        # Trees are compared and not texts: what the printer forgets is missing from both texts.
        assert reparsed.tree == statement.tree, printed
        assert to_sql(reparsed.tree) == printed
        return statement.tree

    return check


@pytest.fixture(scope="session")
def expression() -> Callable[[str], exp.Expr]:
    """Return a parser of expressions."""

    def check(text: str) -> exp.Expr:
        tree = parse_expression(text)
        printed = to_sql(tree)
        assert parse_expression(printed) == tree, printed
        assert to_sql(parse_expression(printed)) == printed
        return tree

    return check
