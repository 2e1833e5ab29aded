"""Text to tree: the ESL dialect on sqlglot."""

from millstream.syntax.script import ParsedStatement, parse_expression, parse_script, to_sql

__all__ = ["ParsedStatement", "parse_expression", "parse_script", "to_sql"]
