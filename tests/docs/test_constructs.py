"""The table of constructs in docs/language.md: each cell says what the analysis and the planner say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.catalog import Catalog
from millstream.cli.check_command import planned, query_of
from millstream.errors import MillstreamError
from millstream.physical.query_plan import plan_without_spark
from millstream.plan.refusals import why_not

DOCUMENT = Path(__file__).parents[2] / "docs" / "language.md"
COLUMNS = "(k INT, g INT, v INT, x DOUBLE, t TIMESTAMP)"
PRELUDE = f"""
CREATE STREAM s {COLUMNS} ORDER BY t SLACK 1 ON x USING csv OPTIONS (path 's.csv');
CREATE STREAM o {COLUMNS} ORDER BY t SLACK 1 ON x USING csv OPTIONS (path 'o.csv');
CREATE TABLE st {COLUMNS} ORDER BY t USING csv OPTIONS (path 's.csv');
CREATE TABLE ot {COLUMNS} ORDER BY t USING csv OPTIONS (path 'o.csv');
CREATE TABLE names (k INT, name STRING) USING csv OPTIONS (path 'names.csv');
CREATE AGGREGATE total(x INT) : INT {{
  TABLE sums(m INT);
  INITIALIZE : {{ INSERT INTO sums VALUES (x); }}
  ITERATE : {{ UPDATE sums SET m = m + x; }}
  TERMINATE : {{ INSERT INTO RETURN SELECT m FROM sums; }}
}};
CREATE AGGREGATE running(x INT) : INT {{
  TABLE sums(m INT);
  INITIALIZE : {{ INSERT INTO sums VALUES (x); INSERT INTO RETURN VALUES (x); }}
  ITERATE : {{ UPDATE sums SET m = m + x; INSERT INTO RETURN SELECT m FROM sums; }}
}};
"""
COUNT = "SELECT k, count(*) AS n FROM {s}"
REPORTS = "(SELECT k, window_end, count(*) AS n FROM {s} [TUMBLE 5 SECONDS] GROUP BY k)"
CONSTRUCTS = {
    "expressions, `WHERE`": "SELECT k, v + 1 AS w FROM {s} WHERE v > 0",
    "`LIMIT`, `OFFSET`": "SELECT k, v FROM {s} LIMIT 3 OFFSET 1",
    "joins with tables": "SELECT a.k, n.name FROM {s} a LEFT JOIN names n ON a.k = n.k",
    "`LATERAL VIEW`, `UNNEST`, table functions": "SELECT k, w FROM {s}, UNNEST(array(v, v + 1)) AS q(w)",
    "`UNION ALL`": "SELECT k FROM {s} UNION ALL SELECT k FROM {o}",
    "blocking aggregates, `GROUP BY`": COUNT + " GROUP BY k",
    "aggregates of your own that are not blocking": "SELECT k, running(v) AS n FROM {s} GROUP BY k",
    "`TUMBLE`, `RANGE ... SLIDE`": COUNT + " [RANGE 5 SECONDS SLIDE 2 SECONDS] GROUP BY k",
    "`RANGE`, `ROWS`, `NOW`, `UNBOUNDED`": COUNT + " [RANGE 5 SECONDS] GROUP BY k",
    "`LANDMARK`": COUNT + " [LANDMARK START AT '07:00:00'] GROUP BY k",
    "`ROWS ... SLIDE`": COUNT + " [ROWS 5 SLIDE 2] GROUP BY k",
    "`WATTR` other than the timestamp": COUNT + " [RANGE 5 WATTR x] GROUP BY k",
    "`row_num`": COUNT + " [RANGE 5 ROWS SLIDE 2 ROWS WATTR row_num] GROUP BY k",
    "`SATTR`": COUNT + " [RANGE 5 SECONDS RATTR t SLIDE 2 ROWS SATTR rank(t)] GROUP BY k",
    "`SESSION`, `START WHEN`": "SELECT k, count(*) AS n FROM {s} [SESSION GAP 5 SECONDS PATTR k]",
    "months and years": COUNT + " [TUMBLE 1 MONTH] GROUP BY k",
    "`EMIT EVERY`": COUNT + " [TUMBLE 1 MINUTE EMIT EVERY 5 SECONDS] GROUP BY k",
    "`LAG`, `EMIT EMPTY`": "SELECT count(*) AS n FROM {s} [TUMBLE 5 SECONDS LAG 3 SECONDS EMIT EMPTY]",
    "bounds of windows in rows and in `WHERE`": (
        "SELECT window_end, k FROM {s} [TUMBLE 5 SECONDS] WHERE wid > 1"
    ),
    "`GROUPING SETS`, `ROLLUP`, `CUBE`, `GROUP BY ALL`": COUNT + " [TUMBLE 5 SECONDS] GROUP BY ROLLUP (k, g)",
    "`ORDER BY ... LIMIT` of windows": COUNT + " [TUMBLE 5 SECONDS] GROUP BY k ORDER BY n DESC LIMIT 3",
    "ranks within windows": "SELECT k, v, rank() OVER (ORDER BY v) AS r FROM {s} [TUMBLE 5 SECONDS]",
    "aggregates of your own over windows": "SELECT k, total(v) AS n FROM {s} [TUMBLE 5 SECONDS] GROUP BY k",
    "`OVER` with any frame": (
        "SELECT sum(v) OVER (ORDER BY t ROWS BETWEEN 5 PRECEDING AND 1 FOLLOWING) AS n FROM {s}"
    ),
    "`OVER ... SLIDE`, `EMIT EVERY`": "SELECT sum(v) OVER (ROWS 5 PRECEDING SLIDE 2) AS n FROM {s}",
    "`ACTIVE EXPIRATION`": (
        "SELECT sum(v) OVER (RANGE INTERVAL 5 SECONDS PRECEDING ACTIVE EXPIRATION) AS n FROM {s}"
    ),
    "`row_number`, `rank`, `lag`, `lead`, `nth_value`": (
        "SELECT lag(v) OVER (PARTITION BY k ORDER BY t) AS n FROM {s}"
    ),
    "first rows of a partition, `QUALIFY`": (
        "SELECT k, v FROM {s} QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) = 1"
    ),
    "`ntile`, `percent_rank`, `cume_dist`": "SELECT ntile(3) OVER (PARTITION BY k ORDER BY t) AS n FROM {s}",
    "sequence patterns": "SELECT X.k, count(*Y) AS n FROM {s} PARTITION BY k AS (X, *Y) WHERE Y.v > X.v",
    "`DISTINCT`, `UNION`, `INTERSECT`, `EXCEPT`": (
        "SELECT DISTINCT k FROM {s} [RANGE 5 SECONDS] EXCEPT SELECT k FROM {o} [ROWS 3]"
    ),
    "joins of windows, inner, outer, semi, anti": (
        "SELECT a.k FROM {s} [RANGE 5 SECONDS] a FULL JOIN {o} [ROWS 3] b ON a.k = b.k"
    ),
    "joins of windows with tables": (
        "SELECT a.k FROM {s} [RANGE 5 SECONDS] a, {o} [ROWS 3] b, names n WHERE a.k = b.k AND n.k = a.k"
    ),
    "joins of reports by `window_end`": (
        f"SELECT a.k FROM {REPORTS} a JOIN {REPORTS} b ON a.k = b.k AND a.window_end = b.window_end"
    ),
    "aggregates of reports by `window_end`": (
        f"SELECT window_end, max(n) AS m FROM {REPORTS} GROUP BY window_end"
    ),
    "aggregates of aggregates": (
        "SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM {s} [RANGE 5 SECONDS] GROUP BY k)"
    ),
    "interval joins": (
        "SELECT a.k FROM {s} a LEFT JOIN {o} b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 5 SECONDS AND a.t"
    ),
    "`ASOF JOIN`": "SELECT a.k FROM {s} a ASOF JOIN {o} b MATCH_CONDITION (a.t >= b.t) ON a.k = b.k",
    "`IN`, `EXISTS` and scalar subqueries": (
        "SELECT k, v FROM {s} WHERE k NOT IN (SELECT k FROM {o} [RANGE 1 MINUTE])"
    ),
    "`ISTREAM`, `DSTREAM`, `RSTREAM`, `CHANGES`": "SELECT CHANGES k FROM {s} [RANGE 5 SECONDS]",
}
ROW = re.compile(
    r"^\| (?P<construct>.+?) \| (?P<stream>\S+) \| (?P<table>\S+) \| (?P<view>\S+) \|$", re.MULTILINE
)
REASON = re.compile(r"^- \*(?P<letter>[a-z])\* `(?P<message>.+?)`", re.MULTILINE)


def _section() -> str:
    return DOCUMENT.read_text().partition("## 13 Where constructs run\n")[2]


def _rows() -> dict[str, re.Match[str]]:
    return {row["construct"]: row for row in ROW.finditer(_section()) if row["construct"] in CONSTRUCTS}


def _reasons() -> dict[str, str]:
    return {reason["letter"]: reason["message"] for reason in REASON.finditer(_section())}


def outcome(query: str) -> str | None:
    """Return the refusal of a query, or None if it can be run."""
    try:
        *_, statement = analyse_script(f"{PRELUDE}{query};", "constructs", Catalog(), lambda statement: None)
        wanted = query_of(statement)
        assert wanted is not None
        plan = planned(statement, wanted)
        refusal = why_not(plan)
        if refusal is None:
            plan_without_spark(plan, Catalog())
    except MillstreamError as error:
        return error.message
    return None if refusal is None else refusal.message


def cells(query: str) -> dict[str, str | None]:
    on_stream = query.format(s="s", o="o")
    return {
        "stream": outcome(on_stream),
        "table": outcome(query.format(s="st", o="ot")),
        "view": outcome(f"CREATE VIEW shown AS {on_stream}"),
    }


def test_the_table_has_all_constructs() -> None:
    assert list(_rows()) == list(CONSTRUCTS)


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_construct_runs_where_the_table_says(construct: str) -> None:
    row, reasons = _rows()[construct], _reasons()
    for column, message in cells(CONSTRUCTS[construct]).items():
        cell = row[column]
        if message is None:
            assert cell == "yes", (construct, column)
        else:
            assert cell in reasons, (construct, column, message)
            assert message.startswith(reasons[cell]), (construct, column)
