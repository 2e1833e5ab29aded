"""The order of test files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.scheduling import longest_first


def item(nodeid: str, *, spark: bool = False) -> Any:
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: name if spark else None)


def test_files_with_spark_come_first_and_among_them_those_that_take_longest() -> None:
    items = [
        item("short.py::a"),
        item("long.py::a"),
        item("short.py::b"),
        item("new.py::a"),
        item("mixed.py::a"),
        item("mixed.py::b", spark=True),
        item("new_with_spark.py::a", spark=True),
        item("long_with_spark.py::a", spark=True),
    ]
    seconds = {"short.py": 1, "long.py": 60, "mixed.py": 3, "long_with_spark.py": 90}
    assert [one.nodeid for one in longest_first(items, seconds)] == [
        "long_with_spark.py::a",
        "new_with_spark.py::a",
        "mixed.py::a",
        "mixed.py::b",
        "long.py::a",
        "new.py::a",
        "short.py::a",
        "short.py::b",
    ]
