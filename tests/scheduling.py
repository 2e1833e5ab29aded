"""The order of tests when two run side by side, and the file of durations that it is made from.

`pytest -n 2` gives whole files to its workers (`--dist=loadfile`), in the order of the collection. The files
that take longest come first, so that no worker is left alone with a long file at the end. Files that need
Spark come before all others: both workers start their Spark at once, and use it for every file of theirs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

DURATIONS = Path(__file__).with_name("durations.json")
"""Seconds by file; `make durations` renews them."""

UNKNOWN_WITH_SPARK, UNKNOWN = 30.0, 5.0
"""Seconds assumed for a file that is not in the list."""

Durations = dict[str, float]


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def recorded() -> Durations:
    found: Durations = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return found


def longest_first(items: Sequence[pytest.Item], seconds: Durations) -> list[pytest.Item]:
    """Sort the files of tests; the tests of a file keep their order."""
    with_spark = {file_of(item.nodeid) for item in items if item.get_closest_marker("spark") is not None}

    def place(item: pytest.Item) -> tuple[bool, float, str]:
        file = file_of(item.nodeid)
        needs_spark = file in with_spark
        assumed = UNKNOWN_WITH_SPARK if needs_spark else UNKNOWN
        return not needs_spark, -seconds.get(file, assumed), file

    return sorted(items, key=place)


class Recorder:
    """Adds up the seconds of each file, and writes them down when the run has ended well."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            # Below a second, the order makes no difference, and the list would change with every run.
            kept = {file: round(s) for file, s in {**recorded(), **self._seconds}.items() if s >= 1}
            kept = {file: s for file, s in kept.items() if (DURATIONS.parents[1] / file).exists()}
            DURATIONS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
