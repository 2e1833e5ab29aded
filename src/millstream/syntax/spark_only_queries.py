"""Queries that only Spark understands.

A query over tables may use all of Spark SQL, and is passed to Spark unchanged. So constructs that our own
parser does not know (PIVOT, time travel, pipes, paths into variants) need not be understood here: sqlglot
parses them as Databricks SQL, which includes them all, and the tree names the tables.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from millstream.syntax.spans import set_span

_ONLY_SPARK = re.compile(
    r"\bPIVOT\b|\bUNPIVOT\b|\|>|\b(VERSION|TIMESTAMP)\s+AS\s+OF\b|\bSYMMETRIC\b|^\s*FROM\b|[\w`)]:[\w`\[]",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\(|(SELECT|FROM|WITH|VALUES|TABLE)\b", re.IGNORECASE)
_MARK = "esl_only_spark"


def parse_plain_spark(text: str, start: int) -> exp.Query | None:
    """Parse such a query; the tree has no span but its own. Return None for any other text."""
    # sqlglot logs a warning for each statement of which it knows only the first word.
    if not _QUERY.match(text) or not _ONLY_SPARK.search(text):
        return None
    try:
        tree = sqlglot.parse_one(text, dialect="databricks", error_level=ErrorLevel.IMMEDIATE)
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Query):
        return None
    for node in tree.walk():
        # Their places count from the start of the statement, not of the script.
        for key in ("start", "end", "line", "col"):
            node.meta.pop(key, None)
    set_span(tree, (start, start + len(text) - 1))
    tree.meta[_MARK] = True
    return tree


def is_plain_spark(node: exp.Expr) -> bool:
    """Return whether the tree came from Spark's own grammar."""
    return bool(node.meta.get(_MARK))
