"""A table that changes while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.errors import ExecutionError
from millstream.runtime.table_refresh import RefreshedTable


def refreshed(states: Iterator[int], published: list[Any], monkeypatch: pytest.MonkeyPatch) -> RefreshedTable:
    """Each look at the files of the table gives the next of these states."""
    monkeypatch.setattr(RefreshedTable, "_files", lambda self: next(states))
    table: Any = SimpleNamespace(name="t", place=None, refresh=SimpleNamespace(microseconds=10**9))
    frame: Any = SimpleNamespace(schema="s", toArrow=lambda: "rows")
    versions: Any = SimpleNamespace(publish=published.append)
    return RefreshedTable(table, versions, lambda table: frame, spark=None)  # type: ignore[arg-type]


def test_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[Any] = []
    found = refreshed(iter([1, 2, 2, 3, 3, 3]), published, monkeypatch)
    found.stop()
    assert published == ["rows"]
    assert found.problem is None


def test_it_is_refused_if_it_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[Any] = []
    with pytest.raises(ExecutionError, match="was being written while it was read"):
        refreshed(iter(range(100)), published, monkeypatch)
    assert published == []
