"""Constructs of other systems, and their counterparts in ESL.

One table for the syntax of Flink, Spark, RisingWave, ksqlDB and Esper. The parser consults it after a syntax
error, the analysis when it resolves a call. ``docs/coming_from.md`` shows each construct with an example.
"""

from __future__ import annotations

from dataclasses import dataclass

AMOUNT = "#"
"""Placeholder in a phrase for a number or a text."""


@dataclass(frozen=True)
class Phrase:
    """A construct of another system.

    Attributes:
        words: The words and signs that identify it.
        written: Its name in messages.
        instead: Its counterpart in ESL, as a hint.
        reach: The number of tokens after the first word within which the parser gives up.
    """

    words: tuple[str, ...]
    written: str
    instead: str
    reach: int = 8

    @property
    def message(self) -> str:
        return f"{self.written} is not part of ESL"


_TUMBLE = "put the window behind the stream: FROM Bid [TUMBLE 10 MINUTES]"
_HOP = "put the window behind the stream: FROM Bid [RANGE 10 MINUTES SLIDE 5 MINUTES]"
_SESSION = "put the window behind the stream: FROM Bid [SESSION GAP 30 MINUTES]"
_CUMULATE = "partial results of a window: FROM Bid [TUMBLE 1 DAY EMIT EVERY 1 HOUR]"
_LATEST = "the latest row of each key is a window: rates [PARTITION BY currency ROWS 1]"
_BEST = "the best n of each window: FROM s [TUMBLE 1 HOUR] GROUP BY k ORDER BY count(*) DESC LIMIT 10"
_EXPLODE = "it stands in FROM: FROM Bid, UNNEST(tags) AS q(tag)"
_LIMITED = (
    "write the limit into the windows of a join, a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR],"
    " or into WHERE of a pattern"
)
_OPTIONS = "name the source behind the columns: USING kafka OPTIONS (subscribe 'bids')"
_COMPUTED = "only columns of CREATE STREAM and CREATE TABLE are computed"
_BETWEEN = "describe the tuples between in WHERE: AS (X, *Y, Z)"
_KEYLESS = "leave it out: streams and tables have no keys"

PHRASES = (
    # windows as functions
    Phrase(("TABLE", "(", "TUMBLE"), "TABLE(TUMBLE(...))", _TUMBLE),
    Phrase(("TABLE", "(", "HOP"), "TABLE(HOP(...))", _HOP),
    Phrase(("TABLE", "(", "SESSION"), "TABLE(SESSION(...))", _SESSION),
    Phrase(("TABLE", "(", "CUMULATE"), "TABLE(CUMULATE(...))", _CUMULATE),
    Phrase(("TUMBLE", "("), "TUMBLE(...)", _TUMBLE),
    Phrase(("HOP", "("), "HOP(...)", _HOP),
    Phrase(("CUMULATE", "("), "CUMULATE(...)", _CUMULATE),
    # windows as clauses
    Phrase(("WINDOW", "TUMBLING"), "WINDOW TUMBLING", _TUMBLE),
    Phrase(("WINDOW", "HOPPING"), "WINDOW HOPPING", _HOP),
    Phrase(("WINDOW", "SESSION"), "WINDOW SESSION", _SESSION),
    Phrase(
        ("WIN", ":"),
        "win:time(...)",
        "put the window behind the stream: FROM Bid [RANGE 10 SECONDS]",
    ),
    # time of results
    Phrase(
        ("EMIT", "CHANGES"),
        "EMIT CHANGES",
        "leave it out; SELECT CHANGES returns the rows that enter and leave the result of a window",
    ),
    Phrase(("EMIT", "FINAL"), "EMIT FINAL", "leave it out: a window is reported when it is final"),
    Phrase(("EMIT", "ON"), "EMIT ON WINDOW CLOSE", "leave it out: a window is reported when it is final"),
    Phrase(("OUTPUT", "EVERY"), "OUTPUT EVERY", "write it into the window: [TUMBLE 1 DAY EMIT EVERY 1 HOUR]"),
    # declarations
    Phrase(
        ("WATERMARK", "FOR"),
        "WATERMARK FOR",
        "declare the permitted delay after the columns: ORDER BY bid_time ... SLACK INTERVAL 5 SECONDS",
    ),
    Phrase(("WITH", "("), "WITH (...)", _OPTIONS),
    Phrase(("PRIMARY", "KEY"), "PRIMARY KEY", _KEYLESS),
    Phrase(("PARTITIONED", "BY"), "PARTITIONED BY", "leave it out: windows and patterns have PARTITION BY"),
    Phrase(("TIMESTAMP", "("), "TIMESTAMP(n)", "write TIMESTAMP, which has microseconds", reach=1),
    Phrase(("TIMESTAMP", "WITH"), "TIMESTAMP WITH TIME ZONE", "write TIMESTAMP", reach=1),
    Phrase(("DOUBLE", "PRECISION"), "DOUBLE PRECISION", "write DOUBLE"),
    Phrase(
        ("CREATE", "MATERIALIZED"),
        "CREATE MATERIALIZED VIEW",
        "write CREATE VIEW v AS SELECT ... FROM s [UNBOUNDED] GROUP BY k, or CREATE STREAM s AS ...",
    ),
    Phrase(("CREATE", "SOURCE"), "CREATE SOURCE", "write CREATE STREAM s (...) ORDER BY t USING ..."),
    Phrase(("CREATE", "SCHEMA"), "CREATE SCHEMA", "write CREATE STREAM s (...) ORDER BY t USING ..."),
    Phrase(("CREATE", "CONNECTOR"), "CREATE CONNECTOR", "write CREATE STREAM or CREATE SINK with USING"),
    Phrase(("SHOW", "CREATE"), "SHOW CREATE", "DESCRIBE name shows its definition"),
    # joins
    Phrase(
        ("FOR", "SYSTEM_TIME"),
        "FOR SYSTEM_TIME AS OF",
        "leave it out for a table, which REFRESH EVERY reads again; for a stream write"
        " orders o ASOF JOIN rates r ON o.currency = r.currency AND o.t >= r.t",
    ),
    Phrase(("WITHIN", "INTERVAL"), "WITHIN", _LIMITED),
    Phrase(("WITHIN", AMOUNT), "WITHIN", _LIMITED),
    Phrase(("WITHIN", "("), "WITHIN", _LIMITED),
    # patterns
    Phrase(
        ("MATCH_RECOGNIZE", "("),
        "MATCH_RECOGNIZE",
        "put the pattern behind the stream: FROM Bid PARTITION BY itemID AS (X, *Y) "
        "WHERE Y.price > Y.previous.price",
    ),
    Phrase(
        ("FROM", "PATTERN", "["),
        "pattern [...]",
        "put the pattern behind the stream: FROM Bid PARTITION BY itemID AS (X, Y) WHERE Y.price > X.price",
    ),
    # a part of the result
    Phrase(("FETCH", "FIRST"), "FETCH FIRST", _BEST),
    Phrase(("TOP", AMOUNT), "TOP", _BEST),
    Phrase(("DISTINCT", "ON"), "DISTINCT ON", _LATEST),
)

WINDOW_FUNCTIONS = {
    "tumble": _TUMBLE,
    "hop": _HOP,
    "session": _SESSION,
    "cumulate": _CUMULATE,
    "window": f"{_TUMBLE}, or [RANGE 10 MINUTES SLIDE 5 MINUTES]",
    "session_window": _SESSION,
    **{
        f"{kind}_{edge}": f"{window}; its bounds are window_start and window_end"
        for kind, window in (("tumble", _TUMBLE), ("hop", _HOP), ("session", _SESSION))
        for edge in ("start", "end", "rowtime", "proctime")
    },
}
"""Functions that define a window in other systems."""

RELATIONS = frozenset({"tumble", "hop", "cumulate"})
"""Functions that stand in FROM in other systems."""

FUNCTIONS = {
    "unnest": _EXPLODE,
    "prev": "the tuple before Y in its partition is Y.previous: Y.previous.price",
    "classifier": "give each kind of match a query of its own",
    "match_number": "count the matches: count(*) OVER (ROWS UNBOUNDED PRECEDING) on a stream of them",
    "proctime": "ORDER BY current_time, declared as current_time TIMESTAMP, stamps tuples on arrival",
    "current_watermark": "late tuples are a stream: LATE INTO in CREATE STREAM",
    "latest_by_offset": "write last(x)",
    "earliest_by_offset": "write first(x)",
    "topk": _BEST,
    "topkdistinct": _BEST,
    "collect": "write collect_list(x)",
    "string_to_array": "write split(text, ',')",
}
"""Other functions that Spark does not have."""

OTHER_NAMES = {
    "average": "avg",
    "cnt": "count",
    "total": "sum",
    "maximum": "max",
    "minimum": "min",
    "stdev": "stddev",
    "std_dev": "stddev",
    "standard_deviation": "stddev",
    "variance_pop": "var_pop",
    "count_distinct": "count(DISTINCT x)",
    "group_concat": "listagg",
    "ifelse": "if",
    "strlen": "length",
    "to_date_time": "to_timestamp",
    "todatetime": "to_timestamp",
    "to_datetime": "to_timestamp",
}
"""Other names of Spark's functions, which may be misspelt too."""

RANKED = _BEST
"""Hint for other functions with OVER."""

TYPES = {
    **dict.fromkeys(("TEXT", "CLOB", "NVARCHAR", "UUID", "JSON", "JSONB"), "STRING"),
    **dict.fromkeys(("INT2", "INT16"), "SMALLINT"),
    **dict.fromkeys(("INT4", "INT32", "SERIAL"), "INT"),
    **dict.fromkeys(("INT8", "INT64", "UINT64", "BIGSERIAL", "HUGEINT"), "BIGINT"),
    **dict.fromkeys(("FLOAT4", "FLOAT32"), "FLOAT"),
    **dict.fromkeys(("FLOAT8", "FLOAT64", "NUMBER"), "DOUBLE"),
    **dict.fromkeys(("DATETIME", "TIMESTAMPTZ"), "TIMESTAMP"),
    **dict.fromkeys(("BYTES", "BYTEA", "BLOB", "VARBINARY"), "BINARY"),
    "BOOL": "BOOLEAN",
    "ROW": "STRUCT<name: type, ...>",
    "LIST": "ARRAY<type>",
}
"""Other names of types."""

COLUMNS = {
    "NOT": "leave NOT NULL out: a column may be NULL, and WHERE x IS NOT NULL keeps the rest",
    "DEFAULT": "leave it out: coalesce(x, 0) replaces NULL by a value",
    "UNIQUE": _KEYLESS,
    "KEY": _KEYLESS,
    "AS": _COMPUTED,
    "GENERATED": "an expression follows a column of CREATE STREAM: at TIMESTAMP AS (timestamp_millis(ms))",
    "METADATA": "name a column as Spark's source does: topic, partition, offset, timestamp",
    "COMMENT": "write a comment behind --",
}
"""Words after the type of a column."""

ELEMENTS = {
    "+": ("a star stands before its variable", "write *Y for one tuple or more"),
    "*": ("a star stands before its variable", "write *Y for one tuple or more"),
    "{": ("a star takes as many tuples as it can", "limit them in WHERE: *Y with ccount(Y) <= 5"),
    "|": ("a pattern has no alternatives", "put them into the condition: WHERE Y.price > 10 OR Y.price < 5"),
    "->": ("elements of a pattern are separated by commas", "write AS (X, Y)"),
    "?": ("an element of a pattern cannot be optional", "write a query without it"),
    "!": ("a pattern has no negation", _BETWEEN),
    "NOT": ("a pattern has no negation", _BETWEEN),
}
"""Signs and words at an element of a pattern: the error, and its remedy."""

CHARACTERS = {
    "#": "put the window behind the stream: FROM Bid [RANGE 10 SECONDS]",
}
"""Characters that begin no token."""
