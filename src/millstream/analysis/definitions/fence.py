"""The fence of a connection with ``allow_python=False``: statements neither run code nor reach other hosts.

Functions are refused by a list, because Spark has only a few that run code. Formats, path schemes, options
and settings are allowed by lists: an extension of Spark may bring others at any time. What statements may
read and write of the local disk is not restricted here: the rights of the process decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from millstream.catalog import Catalog
from millstream.errors import AnalysisError, Span
from millstream.syntax import ParsedStatement, nodes
from millstream.syntax.spans import span_of

REFUSED_FUNCTIONS = frozenset({"reflect", "java_method", "try_reflect", "identifier"})
"""The first three call any static method of Java; the last one can spell their names in pieces."""

FORMATS = frozenset(
    {
        *("csv", "json", "parquet", "orc", "text", "xml", "avro", "binaryfile"),
        *("rate", "rate-micro-batch", "console", "noop", "memory"),
    }
)
"""Formats that read and write the local disk, or nothing."""

SETTINGS = frozenset(
    {
        "spark.sql.session.timezone",
        "spark.sql.shuffle.partitions",
        "spark.sql.autobroadcastjointhreshold",
        "spark.sql.ansi.enabled",
        "spark.sql.casesensitive",
    }
)
SETTING_PREFIXES = ("millstream.", "spark.sql.adaptive.", "spark.sql.files.")
"""Settings about results and speed. All others may name classes, programs or directories."""

_SESSION_SPACES = frozenset({"default", "global_temp", "spark_catalog", "session"})
"""Qualifiers of tables that the session has anyway."""
_HINT = (
    "this connection was made with allow_python=False, whose operator has to allow it: see docs/operations.md"
)


def check_fence(statement: ParsedStatement, catalog: Catalog) -> None:
    """Refuse a statement that runs code or reaches other hosts, unless the connection allows that."""
    if catalog.allow_python:
        return
    if "${" in statement.text:
        start = statement.span[0] + statement.text.index("${")
        raise _refusal("'${'", (start, start + 1))
    for node in statement.tree.walk():
        for what, at in _refused(node, catalog.allow):
            raise _refusal(what, span_of(at) or statement.span)


def _refusal(what: str, span: Span) -> AnalysisError:
    return AnalysisError(f"{what} is not allowed here", span=span, hint=_HINT)


def _refused(node: exp.Expr, allow: frozenset[str]) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the parts of a node that the fence refuses, with a description."""
    match node:
        case exp.Func() if _function_name(node) in REFUSED_FUNCTIONS:
            yield f"function '{_function_name(node)}'", node
        case exp.Table() if node.db:
            space = (node.catalog or node.db).lower()
            if space not in FORMATS | _SESSION_SPACES | allow:
                yield f"a table of '{space}'", node
            yield from _refused_path(node.name, node, allow)
        case nodes.SetOption() if not _is_plain_setting(node.this.name):
            yield f"setting '{node.this.name}'", node.this
        case nodes.CreateStream() | nodes.CreateTable() | nodes.CreateSink() if node.args.get("format"):
            yield from _refused_source(node, allow)


def _function_name(node: exp.Func) -> str:
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def _is_plain_setting(key: str) -> bool:
    return key.lower() in SETTINGS or key.lower().startswith(SETTING_PREFIXES)


def _refused_source(node: exp.Expression, allow: frozenset[str]) -> Iterator[tuple[str, exp.Expr]]:
    format_ = node.args["format"].name.lower()
    if format_ not in FORMATS | allow:
        yield f"format '{format_}'", node.args["format"]
    for option in node.args.get("options") or ():
        key, value = option.name.lower(), option.args["value"].name
        if key in ("path", "paths"):
            yield from _refused_path(value, option, allow)
        if format_ in allow:
            continue
        # Spark makes all options settings of Hadoop, where names with dots choose classes.
        if "." in key or key.endswith("class"):
            yield f"option '{key}'", option
        if key in ("compression", "codec") and "." in value:
            yield f"option '{key}' with a class", option


def _refused_path(path: str, at: exp.Expr, allow: frozenset[str]) -> Iterator[tuple[str, exp.Expr]]:
    for scheme in re.findall(r"(?:^|[\s\"',\[])([A-Za-z][\w+.-]*):", path):
        if scheme.lower() not in {"file"} | allow:
            yield f"a path of '{scheme.lower()}'", at
