"""Every mistake has a message that names it, a place, and (mostly) a hint.

A fixture is a small script with one mistake in it. It begins with the message that people get:

    -- error: unknown column 'prise'
    -- at: 4:8
    -- hint: did you mean 'price'?

Line and column count the whole file. If the mistake is several, each has such lines, in the order of the
text. What all fixtures may use is in prelude.esl.
"""

import re
from pathlib import Path

import pytest

from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, RunQuery, analyse
from millstream.catalog import Catalog
from millstream.errors import MillstreamError, NotExecutableError
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.plan.refusals import require_executable
from millstream.syntax import parse_script

HERE = Path(__file__).parent
FIXTURES = sorted((HERE / "fixtures").glob("*.esl"))
HEADER = re.compile(r"-- error: (?P<message>.+)\n-- at: (?P<place>\d+:\d+)\n(-- hint: (?P<hint>.+)\n)?")


@pytest.fixture(scope="module")
def prelude() -> Catalog:
    catalog = Catalog()
    for statement in parse_script((HERE / "prelude.esl").read_text(), "prelude.esl"):
        analyse(statement, catalog)
    return catalog


def mistake(text: str, name: str, catalog: Catalog) -> MillstreamError:
    try:
        analyse_script(text, name, catalog, _require_executable)
    except MillstreamError as error:
        return error
    pytest.fail(f"{name} has no mistake in it")


def _require_executable(statement: AnalysedStatement) -> None:
    if isinstance(statement.meaning, RunQuery):
        query = statement.meaning.query
        try:
            require_executable(optimize(build(query)), query)
        except NotExecutableError as error:
            raise error.locate(statement.source) from None


def place(error: MillstreamError) -> str:
    assert error.place is not None
    return f"{error.place.line}:{error.place.column}"


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_the_mistake_is_named(path: Path, prelude: Catalog) -> None:
    text = path.read_text()
    assert HEADER.match(text), f"{path.name} must begin with the message and the place that it expects"
    expected = []
    end = 0
    while header := HEADER.match(text, end):
        expected.append((header["message"], header["place"], header["hint"]))
        end = header.end()
    error = mistake(text, path.name, prelude.copy())
    assert [(one.message, place(one), one.hint) for one in error.all] == expected


def test_there_are_many_fixtures() -> None:
    assert len(FIXTURES) >= 60
