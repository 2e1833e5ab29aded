"""A connection without Python code refuses everything else, too, that runs code or reaches other hosts."""

import pytest

from millstream.analysis.definitions.fence import check_fence
from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.catalog import Catalog
from millstream.errors import AnalysisError
from millstream.syntax import parse_script

PRELUDE = """
CREATE STREAM s (a STRING, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 's.csv');
CREATE TABLE r (a STRING) USING parquet OPTIONS (path 'r');
"""


def analysed(text: str, *allow: str, allow_python: bool = False) -> None:
    catalog = Catalog(allow_python=allow_python, allow=allow)
    for statement in parse_script(PRELUDE + text):
        analyse(statement, catalog)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect('java.lang.System', 'getenv', a) FROM s",
        "SELECT a FROM s WHERE JAVA_METHOD('java.util.UUID', 'randomUUID') = a",
        "SELECT try_reflect('java.util.UUID', 'randomUUID') FROM r",
        "SELECT `reflect`('java.util.UUID', 'randomUUID') FROM r",
        "SELECT system.builtin.reflect('java.util.UUID', 'randomUUID') FROM r",
        "SELECT a FROM s WHERE a IN (SELECT reflect('java.util.UUID', 'randomUUID') FROM r)",
        "SELECT IDENTIFIER('reflect') FROM r",
        "FROM r |> SELECT reflect('java.util.UUID', 'randomUUID')",
        "CREATE FUNCTION f(x STRING) : STRING AS reflect('java.lang.System', 'getenv', x)",
        (
            "CREATE STREAM p (a STRING, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'p') "
            "PUNCTUATED BY (reflect('java.util.UUID', 'randomUUID') = a)"
        ),
        "EXPLAIN SELECT reflect('java.util.UUID', 'randomUUID') FROM s",
    ],
)
def test_functions_that_call_java(text: str) -> None:
    with pytest.raises(AnalysisError, match=r"function '(\w*reflect|java_method|identifier)' is not"):
        analysed(text)


def test_variables_of_the_environment_in_the_text_of_a_query() -> None:
    with pytest.raises(AnalysisError, match=r"'\$\{' is not allowed here"):
        analysed("SELECT '${env:HOME}' AS home FROM r")


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.execution.pyspark.python",
        "spark.python.daemon.module",
        "spark.jars",
        "spark.driver.extraClassPath",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.sql.parquet.output.committer.class",
        "spark.hadoop.fs.file.impl",
        "spark.plugins",
    ],
)
def test_settings_that_run_code(key: str) -> None:
    with pytest.raises(AnalysisError, match=f"setting '{key}' is not allowed here"):
        analysed(f"SET {key} = 'x'")


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("jdbc OPTIONS (url 'jdbc:derby:memory:x', dbtable 't')", "format 'jdbc'"),
        ("org.apache.spark.sql.jdbc OPTIONS (url 'x')", "format 'org.apache.spark.sql.jdbc'"),
        ("kafka OPTIONS (subscribe 'x')", "format 'kafka'"),
        ("socket OPTIONS (host 'x', port '1')", "format 'socket'"),
        ("parquet OPTIONS (path 'http://10.0.0.1/x')", "a path of 'http'"),
        ("parquet OPTIONS (path 'S3A://bucket/x')", "a path of 's3a'"),
        ("parquet OPTIONS (path 'x', fs.file.impl 'a.B')", "option 'fs.file.impl'"),
        ("parquet OPTIONS (path 'x', 'parquet.crypto.factory.class' 'a.B')", "option 'parquet.crypto"),
        ("csv OPTIONS (path 'x', compression 'a.B')", "option 'compression' with a class"),
    ],
)
def test_formats_that_load_classes_or_reach_hosts(source: str, refused: str) -> None:
    for text in (f"CREATE TABLE x (a STRING) USING {source}", f"CREATE SINK x USING {source}"):
        with pytest.raises(AnalysisError, match=f"{refused}.* is not allowed here"):
            analysed(text)


def test_files_that_a_query_names_itself() -> None:
    analysed("SELECT * FROM parquet.`some/file`")
    for table in ("jdbc.x", "parquet.`http://10.0.0.1/x`", "`org.some.Class`.`x`"):
        with pytest.raises(AnalysisError, match="is not allowed here"):
            analysed(f"SELECT * FROM {table}")


def test_what_the_operator_has_allowed() -> None:
    analysed("CREATE STREAM k (value STRING) USING kafka OPTIONS (kafka.x 'y', subscribe 'z')", "kafka")
    analysed("CREATE TABLE k (a STRING) USING parquet OPTIONS (path 's3a://bucket/x')", "S3A")
    analysed("SELECT * FROM shop.customers", "shop")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT upper(a) AS reflect FROM s",
        "SELECT a AS `java_method` FROM r",
        "SET spark.sql.shuffle.partitions = 4",
        "SET spark.sql.session.timeZone = 'Europe/Vienna'",
        "SET spark.sql.files.maxPartitionBytes = '1MB'",
        "CREATE TABLE x (a STRING) USING csv OPTIONS (path 'file:/tmp/x', compression 'gzip')",
        "CREATE SINK x USING console",
    ],
)
def test_what_needs_no_permission(text: str) -> None:
    analysed(text)


def test_without_the_fence_all_is_allowed() -> None:
    analysed("SELECT reflect('java.util.UUID', 'randomUUID') FROM s", allow_python=True)
    (statement,) = parse_script("SELECT reflect('java.util.UUID', 'randomUUID')")
    check_fence(statement, Catalog())
