"""Start-up times without Spark: the command's help, and the check of a script of 200 statements."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.report import Measurement, command, in_turn

STATEMENTS = 200


def measure(quick: bool = False) -> list[Measurement]:
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "many.esl"
        script.write_text(many_statements(STATEMENTS))
        return in_turn(
            {
                "millstream --help": lambda: command("-m", "millstream", "--help"),
                f"millstream check, {STATEMENTS} statements": lambda: command(
                    "-m", "millstream", "check", str(script)
                ),
            }
        )


def many_statements(number: int) -> str:
    """A script with a bit of everything, over and over."""
    group = """
        CREATE STREAM s{n} (a INT, b DOUBLE, c STRING, t TIMESTAMP) ORDER BY t
            USING csv OPTIONS (path 's{n}.csv') SLACK INTERVAL 5 SECONDS LATE INTO late{n} BAD INTO bad{n};
        CREATE STREAM d{n} AS SELECT a, b * 2 AS bb, upper(c) AS u, t FROM s{n} WHERE b > 10 AND c LIKE 'x%';
        CREATE AGGREGATE agg{n}(x DOUBLE) : DOUBLE {{
            TABLE state(total DOUBLE, n INT);
            INITIALIZE : {{ INSERT INTO state VALUES (x, 1); INSERT INTO RETURN VALUES (x); }}
            ITERATE : {{ UPDATE state SET total = total + x, n = n + 1;
                        INSERT INTO RETURN SELECT total / n FROM state; }}
        }};
        SELECT a, agg{n}(bb) FROM d{n} GROUP BY a;
        SELECT u, avg(bb), max(a) - min(a) FROM d{n} [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY u;
        SELECT a, sum(b) OVER (PARTITION BY c ROWS 99 PRECEDING SLIDE 10) FROM s{n};
        SELECT X.a, LAST(Y).b FROM s{n} PARTITION BY c AS (X, *Y) WHERE X.b > 50 AND Y.b < Y.previous.b;
        SELECT s.a, d.bb FROM s{n} [RANGE 1 MINUTE] AS s JOIN d{n} [ROWS 100] AS d ON s.a = d.a;
    """
    return "".join(group.format(n=n) for n in range(number // 8))
