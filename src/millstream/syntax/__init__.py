"""Syntax: the ESL dialect on sqlglot, from text to trees and back."""

from millstream.syntax.script import (
    BrokenStatement,
    ParsedStatement,
    parse_expression,
    parse_script,
    parse_statements,
    to_sql,
)

__all__ = [
    "BrokenStatement",
    "ParsedStatement",
    "parse_expression",
    "parse_script",
    "parse_statements",
    "to_sql",
]
