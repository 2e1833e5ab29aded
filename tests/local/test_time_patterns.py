"""Patterns of times: the texts that Spark reads, in microseconds."""

from datetime import UTC, datetime

import pytest

from millstream.local.time_patterns import read_time

READ = {
    ("2024-05-06 07:08:09", "yyyy-MM-dd HH:mm:ss"): (2024, 5, 6, 7, 8, 9),
    ("2024-05-06T07:08:09", "yyyy-MM-dd'T'HH:mm:ss"): (2024, 5, 6, 7, 8, 9),
    ("2024-05-06T07:08:09.25", "yyyy-MM-dd'T'HH:mm:ss[.SSS]"): (2024, 5, 6, 7, 8, 9, 250_000),
    ("2024-05-06T07:08:09", "yyyy-MM-dd'T'HH:mm:ss[.SSS]"): (2024, 5, 6, 7, 8, 9),
    ("10/Oct/2000:13:55:36 -0700", "dd/MMM/yyyy:HH:mm:ss Z"): (2000, 10, 10, 20, 55, 36),
    ("10/oct/2000:13:55:36 +0000", "dd/MMM/yyyy:HH:mm:ss Z"): (2000, 10, 10, 13, 55, 36),
    ("6/5/24 7:08 PM", "d/M/yy h:mm a"): (2024, 5, 6, 19, 8),
    ("12:30 AM", "hh:mm a"): (1970, 1, 1, 0, 30),
    ("2024-05-06Z", "yyyy-MM-ddXXX"): (2024, 5, 6),
    ("2024-05-06+02:00", "yyyy-MM-ddXXX"): (2024, 5, 5, 22),
    ("May 2024", "MMM yyyy"): (2024, 5, 1),
    ("20240506", "yyyyMMdd"): (2024, 5, 6),
    ("it's 2024", "'it''s' yyyy"): (2024, 1, 1),
}


@pytest.mark.parametrize(("text", "pattern"), READ)
def test_a_time_is_read(text: str, pattern: str) -> None:
    expected = datetime(*READ[text, pattern], tzinfo=UTC)  # type: ignore[misc]
    assert read_time(text, pattern) == int(expected.timestamp()) * 1_000_000 + expected.microsecond


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("2024-5-06", "yyyy-MM-dd"),
        ("2024-02-30", "yyyy-MM-dd"),
        ("2024-05-06 ", "yyyy-MM-dd"),
        ("13:30 AM", "hh:mm a"),
        ("", "yyyy"),
        ("2024-05-06T07:08:09", "yyyy-MM-dd HH:mm:ss"),
    ],
)
def test_a_text_of_another_form_fails(text: str, pattern: str) -> None:
    assert read_time(text, pattern) is None
