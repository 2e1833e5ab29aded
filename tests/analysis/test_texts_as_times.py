"""Texts beside dates and timestamps: those that Spark can read pass, all others are refused."""

import pytest
from sqlglot import exp

from millstream.analysis.types.literal_checks import check_literal
from millstream.errors import AnalysisError
from millstream.types import DATE, TIMESTAMP, TIMESTAMP_NTZ

TIMES = """
    2015 | 2015-3 | 2015-03-1 | +2015-03-18 | -2015-03-18 | 2015-03-18 12 | 2015-03-18T12 | 2015-03-18 1:2:3
    2015-03-18T12:03:17Z | 2015-03-18T12:03:17+02:00 | 2015-03-18 12:03:17 Europe/Berlin | 2016-02-29 | 201503
    2015-03-18 12:03:17.123456789 | 12:03 | T12:03:01 | 10:30:00 UTC | 0000-01-01 | 2015-03-18 12:03:17.
    2015-03-18 12:03:17PST | 2015-03-18 12:03:17+0200 | 99999-01-01
"""
"""Texts that Spark reads as timestamps."""
NO_TIMES = """
    2015-13-45 | 2015-02-29 | 2015-03-18 24:00:00 | 2015-03-18 12:60 | 2015-03-18 12:03:61 | 2015/03/18
    20150318 | 15-03-18 | 2015-03-18 noon | 2015-03-18x | 2015-03- | 2015-00-01 | 12 | 2015-03-18 12:
"""


def texts(several: str) -> list[str]:
    return [text.strip() for line in several.strip().splitlines() for text in line.split("|")]


@pytest.mark.parametrize("text", texts(TIMES))
def test_what_spark_reads_as_a_timestamp(text: str) -> None:
    check_literal(exp.Literal.string(text), TIMESTAMP)


@pytest.mark.parametrize("text", texts(NO_TIMES))
def test_what_spark_cannot_read_as_a_timestamp(text: str) -> None:
    with pytest.raises(AnalysisError, match="is not a time, but stands beside a value of type timestamp"):
        check_literal(exp.Literal.string(text), TIMESTAMP)


def test_a_date_ends_before_the_time() -> None:
    check_literal(exp.Literal.string("2015-03-18 noon"), DATE)
    with pytest.raises(AnalysisError, match="is not a date") as raised:
        check_literal(exp.Literal.string("7:30"), DATE)
    assert raised.value.hint == "write '2026-01-31'"


def test_only_a_timestamp_with_a_time_zone_may_be_a_time_of_today() -> None:
    with pytest.raises(AnalysisError, match="is not a time"):
        check_literal(exp.Literal.string("7:30"), TIMESTAMP_NTZ)
