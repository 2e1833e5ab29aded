"""Diagnoses of bad records: the column, its value, and the option that helps."""

import pytest

from millstream.analysis.definitions.statement_analyzer import Definition, analyse
from millstream.catalog import Catalog
from millstream.catalog.entries import NO_TIMESTAMP, NOT_FINITE, NOT_IN_SCHEMA, Stream
from millstream.runtime.queries.bad_records import diagnosis
from millstream.syntax import parse_script


def stream(definition: str) -> Stream:
    catalog = Catalog()
    (statement,) = parse_script(definition)
    assert isinstance(analyse(statement, catalog).meaning, Definition)
    found = catalog.relation("q")
    assert isinstance(found, Stream)
    return found


def of_csv(columns: str, options: str = "") -> Stream:
    return stream(f"CREATE STREAM q ({columns}) USING csv OPTIONS (path 'q.csv'{options})")


@pytest.mark.parametrize(
    ("columns", "record", "cause"),
    [
        (
            "at TIMESTAMP, m DOUBLE",
            "2016/01/01 00:30:04.91,2.1",
            "'2016/01/01 00:30:04.91'; add timestampFormat 'yyyy/MM/dd HH:mm:ss.SS' to OPTIONS",
        ),
        ("at TIMESTAMP", "25/12/2015 7:05", "add timestampFormat 'dd/MM/yyyy H:mm' to OPTIONS"),
        (
            "at TIMESTAMP",
            "1/2/2015 17:05",
            "add timestampFormat 'M/d/yyyy HH:mm' or timestampFormat 'd/M/yyyy HH:mm' to OPTIONS",
        ),
        (
            "at TIMESTAMP",
            "17/May/2015:10:05:03 +0000",
            "add timestampFormat 'dd/MMM/yyyy:HH:mm:ss Z' to OPTIONS",
        ),
        ("at TIMESTAMP", "1467331200000", "these look like milliseconds since 1970; declare it BIGINT"),
        ("at TIMESTAMP", "noon", "add timestampFormat to OPTIONS"),
        ("d DATE", "12/31/2020", "add dateFormat 'MM/dd/yyyy' to OPTIONS"),
        ("a INT", "12.5", "column 'a' int cannot be read from '12.5'; declare it DOUBLE"),
        ("a INT", "3000000000", "declare it BIGINT"),
        ("a INT", " 7", "add ignoreLeadingWhiteSpace 'true', ignoreTrailingWhiteSpace 'true' to OPTIONS"),
        ("a INT, b INT", "1,NA", "if that stands for NULL, add nullValue 'NA' to OPTIONS"),
        ("a INT, b STRING", "x,y", "column 'a' int cannot be read from 'x'; declare it STRING"),
        ("a INT, b STRING", "A,b", "it is a header; add header 'true' to OPTIONS"),
        ("a INT, b INT", "1;2", "it has 1 field, and the stream has 2 columns; add sep ';' to OPTIONS"),
        ("a INT, b INT", "1,2,3", "it has 3 fields, and the stream has 2 columns"),
        ("a BOOLEAN", "yes", "column 'a' boolean cannot be read from 'yes'"),
        ("a DECIMAL(10,2)", "1_0", "column 'a' decimal(10,2) cannot be read from '1_0'; declare it STRING"),
    ],
)
def test_a_record_of_a_csv_file(columns: str, record: str, cause: str) -> None:
    assert diagnosis(record, NOT_IN_SCHEMA, of_csv(columns)).endswith(cause)


def test_values_that_can_be_read_are_not_blamed() -> None:
    good = "2016-01-01T00:30:04.91Z,2016-01-01,1,1e3,1.50,TRUE,x"
    columns = "t TIMESTAMP, d DATE, i INT, x DOUBLE, n DECIMAL(10,2), b BOOLEAN, s STRING"
    assert diagnosis(good, NOT_IN_SCHEMA, of_csv(columns)) == repr(good)


def test_a_given_format_is_suspected_only_when_nothing_else_is_wrong() -> None:
    given = of_csv("at TIMESTAMP, a INT", ", timestampFormat 'yyyy/MM/dd'")
    assert "column 'a' int" in diagnosis("2016/01/01,x", NOT_IN_SCHEMA, given)
    assert diagnosis("01.01.2016,1", NOT_IN_SCHEMA, given).endswith(
        "it may not match the given format 'yyyy/MM/dd'"
    )


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        ('{"a": "7"}', "column 'a' int cannot be read from '\"7\"'; it is a text; declare it STRING"),
        ('{"a": 1.5}', "column 'a' int cannot be read from '1.5'; declare it DOUBLE"),
        ('{"a": 1', "it is not valid JSON"),
        ("[1]", "it is not a JSON object"),
        ('{"a": 1, "at": "2016/01/01"}', "add timestampFormat 'yyyy/MM/dd' to OPTIONS"),
        ('{"a": {"b": 1}}', "column 'a' int cannot be read from '{\"b\": 1}'"),
    ],
)
def test_a_record_of_a_json_file(record: str, cause: str) -> None:
    given = stream("CREATE STREAM q (a INT, at TIMESTAMP) USING json OPTIONS (path 'q.json')")
    assert diagnosis(record, NOT_IN_SCHEMA, given).endswith(cause)


def test_a_line_at_a_port_is_json_or_csv_and_has_no_arrival_time() -> None:
    port = stream("CREATE STREAM q (a INT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port4445'")
    assert "column 'a' int" in diagnosis("x", NOT_IN_SCHEMA, port)
    assert "column 'a' int" in diagnosis('{"a": "x"}', NOT_IN_SCHEMA, port)


def test_timestamps_that_are_no_place_in_time() -> None:
    given = stream("CREATE STREAM q (a INT, t DOUBLE) ORDER BY t USING csv OPTIONS (path 'q.csv')")
    assert diagnosis('{"a":1}', NO_TIMESTAMP, given).endswith("column 't', the timestamp, is NULL")
    assert diagnosis('{"a":1}', NOT_FINITE, given).endswith(
        "column 't', the timestamp, is not a finite number"
    )


def test_a_long_record_is_cut() -> None:
    assert len(diagnosis("x" * 10_000, NOT_IN_SCHEMA, of_csv("a STRING, b STRING"))) < 250
