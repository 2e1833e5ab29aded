"""Whole scripts: every statement analysed, and the mistakes of all of them collected."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, analyse
from millstream.analysis.error_collector import ErrorCollector
from millstream.catalog import Catalog
from millstream.errors import MillstreamError, UnknownNameError
from millstream.syntax import BrokenStatement, ParsedStatement, parse_statements
from millstream.syntax.defined_names import defined_names

Look = Callable[[AnalysedStatement], None]
"""Looks at a statement that is right, and raises what is against it."""


def analyse_script(
    text: str, name: str, catalog: Catalog, look: Look = lambda statement: None
) -> list[AnalysedStatement]:
    """Analyse a script; all its mistakes are raised as one error.

    Names whose definitions have mistakes are unclear in what follows. Where they are used no mistake is told
    that only follows from that, and what is defined by them is unclear too.
    """
    mistakes = ErrorCollector()
    analysed: list[AnalysedStatement] = []
    for statement in parse_statements(text, name):
        try:
            analysed.append(_analysed(statement, catalog))
        except MillstreamError as error:
            found, error.more = error.all, ()
            for one in found:
                if not _follows(one, catalog):
                    mistakes.add(one)
            for defined in defined_names(statement.text):
                catalog.obscure(defined.name, is_function=defined.is_function)
            continue
        try:
            look(analysed[-1])
        except MillstreamError as error:
            mistakes.add(error)
    mistakes.check()
    return analysed


def _analysed(statement: ParsedStatement | BrokenStatement, catalog: Catalog) -> AnalysedStatement:
    if isinstance(statement, BrokenStatement):
        raise statement.error
    return analyse(statement, catalog)


def _follows(error: MillstreamError, catalog: Catalog) -> bool:
    """Tell whether an error only says that a name is unclear."""
    return isinstance(error, UnknownNameError) and any(
        catalog.is_unclear(error.name, is_function=is_function) for is_function in (False, True)
    )
