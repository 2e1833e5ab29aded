"""Bounds of windows are known without Spark."""

from __future__ import annotations

import pytest

from millstream.analysis.types.instants import instant
from millstream.errors import NotExecutableError
from millstream.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, Type

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "type_", "zone", "moment"),
    [
        ("1970-01-01", TIMESTAMP, "UTC", 0),
        ("epoch", TIMESTAMP, "Europe/Vienna", 0),
        ("1970-01-02 00:00:00", DATE, "UTC", DAY),
        ("1969", TIMESTAMP_NTZ, "UTC", -365 * DAY),
        ("1970-1-1 1:2:3.000004", TIMESTAMP, "UTC", 3_723_000_004),
        ("1970-01-01 00:00:00", TIMESTAMP, "Europe/Vienna", -3_600_000_000),
        ("1970-01-01 00:00:00Z", TIMESTAMP, "Europe/Vienna", 0),
        ("1970-01-01 00:00:00 America/New_York", TIMESTAMP, "UTC", 18_000_000_000),
        ("1970-01-01 00:00:00-05:30", TIMESTAMP, "UTC", 19_800_000_000),
        ("1970-01-01 00:00:00-05:30", TIMESTAMP_NTZ, "UTC", 0),
        ("+12345-01-01", DATE, "UTC", 3_789_391 * DAY),
    ],
)
def test_instants(text: str, type_: Type, zone: str, moment: int) -> None:
    assert instant(text, type_, zone) == moment


@pytest.mark.parametrize("text", ["noon", "1970-02-30", "1970-01-01 00:00:00 Nowhere/Else"])
def test_texts_that_are_no_instants(text: str) -> None:
    with pytest.raises(NotExecutableError):
        instant(text, TIMESTAMP)
